//! The page with the doctor's findings by area, each with a fix to copy. Areas with a broken check come first.

use std::cmp::Reverse;

use askama::Template;
use axum::Router;
use axum::response::Response;

use comeback_operate::Text;
use comeback_operate::doctor::diagnosis::area;
use comeback_operate::doctor::findings::Finding;
use comeback_operate::doctor::judgement::Outcome;

use crate::console::Console;
use crate::page::{Frame, Problem, Visit, ok, page};

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/doctor", page(doctor))
}

/// A finding of the doctor, as `ui/findings.html` draws it.
pub(super) struct Shown {
    pub(super) colour: &'static str,
    pub(super) mark: &'static str,
    pub(super) name: String,
    /// The fault that the doctor found or, if the check is ok, the expectation that was met.
    pub(super) found: Text,
    pub(super) means: Option<Text>,
    pub(super) fix: Option<String>,
}

impl Shown {
    pub(super) fn of(finding: &Finding) -> Self {
        let judgement = &finding.judgement;
        let (mark, colour) = match judgement.outcome {
            Outcome::Ok => ("ok", "good"),
            Outcome::Skipped => ("skipped", ""),
            Outcome::Warning => ("WARNING", ""),
            Outcome::Broken => ("BROKEN", "bad"),
        };
        Self {
            colour,
            mark,
            name: finding.name(),
            found: finding.found(),
            means: judgement.means.clone(),
            fix: judgement.fix.as_ref().map(Text::to_string),
        }
    }
}

/// The doctor's findings in one area, or about one function.
pub(super) struct Findings {
    /// Findings that are not ok, with the worst first.
    pub(super) problems: Vec<Shown>,
    pub(super) others: Vec<Shown>,
}

impl Findings {
    pub(super) fn of<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Self {
        let mut all: Vec<&Finding> = findings.into_iter().collect();
        all.sort_by_key(|finding| Reverse(finding.judgement.outcome));
        let (problems, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|finding| finding.judgement.outcome > Outcome::Ok);
        let shown = |some: Vec<&Finding>| some.into_iter().map(Shown::of).collect();
        Self { problems: shown(problems), others: shown(others) }
    }
}

#[derive(Template)]
#[template(path = "doctor.html")]
struct DoctorPage {
    frame: Frame,
    summary: String,
    areas: Vec<(&'static str, Findings)>,
}

async fn doctor(visit: Visit) -> Result<Response, Problem> {
    let read = visit.console.checks(None).await;
    let diagnosis = read.value?;
    ok(&DoctorPage {
        frame: visit.frame("Doctor", None).of(read.at),
        summary: diagnosis.summary(),
        areas: by_area(&diagnosis.checks),
    })
}

/// The findings by area. Areas with something broken come first; otherwise, areas keep their order.
fn by_area(findings: &[Finding]) -> Vec<(&'static str, Findings)> {
    let areas = findings.chunk_by(|one, next| one.check.group == next.check.group);
    let mut areas: Vec<&[Finding]> = areas.collect();
    areas.sort_by_key(|area| Reverse(area.iter().map(|finding| finding.judgement.outcome).max()));
    areas.into_iter().map(|some| (area(some[0].check.group), Findings::of(some))).collect()
}
