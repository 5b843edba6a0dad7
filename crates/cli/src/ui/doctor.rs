//! What `comeback doctor` finds: by area, what is broken first, with its fix to copy.

use std::cmp::Reverse;
use std::rc::Rc;

use askama::Template;
use axum::Router;
use axum::response::Response;

use crate::operate::doctor::diagnosis::Outcome;
use crate::operate::doctor::findings::Finding;
use crate::operate::doctor::text::{area, summary};
use crate::ui::console::Console;
use crate::ui::page::{Frame, Problem, Visit, ok, page};

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/doctor", page(doctor))
}

/// A finding, for `ui/findings.html`.
pub(super) struct Shown<'f> {
    pub(super) colour: &'static str,
    pub(super) mark: &'static str,
    pub(super) name: String,
    /// What was found; after what should be, if that is so.
    pub(super) found: String,
    pub(super) means: Option<&'f str>,
    pub(super) fix: Option<&'f str>,
}

impl<'f> Shown<'f> {
    pub(super) fn of(finding: &'f Finding) -> Self {
        let diagnosis = &finding.diagnosis;
        let (mark, colour) = match diagnosis.outcome {
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
            means: diagnosis.means.as_deref(),
            fix: diagnosis.fix.as_deref(),
        }
    }
}

/// Findings of one area, or about one function.
pub(super) struct Findings<'f> {
    /// What is not ok, the worst first.
    pub(super) problems: Vec<Shown<'f>>,
    pub(super) others: Vec<Shown<'f>>,
}

impl<'f> Findings<'f> {
    pub(super) fn of(findings: impl IntoIterator<Item = &'f Finding>) -> Self {
        let mut all: Vec<&Finding> = findings.into_iter().collect();
        all.sort_by_key(|finding| Reverse(finding.diagnosis.outcome));
        let (problems, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|finding| finding.diagnosis.outcome > Outcome::Ok);
        let shown = |some: Vec<&'f Finding>| some.into_iter().map(Shown::of).collect();
        Self { problems: shown(problems), others: shown(others) }
    }
}

#[derive(Template)]
#[template(path = "ui/doctor.html")]
struct DoctorPage<'f> {
    frame: Frame,
    summary: String,
    areas: Vec<(&'static str, Findings<'f>)>,
}

async fn doctor(visit: Visit) -> Result<Response, Problem> {
    let read = visit.console.checks(None).await;
    let findings: Rc<Vec<Finding>> = read.value?;
    ok(&DoctorPage {
        frame: visit.frame("Doctor", None).of(read.at),
        summary: summary(&findings),
        areas: by_area(&findings),
    })
}

/// The areas in their order, but for those with something broken, which come first.
fn by_area(findings: &[Finding]) -> Vec<(&'static str, Findings<'_>)> {
    let areas = findings.chunk_by(|one, next| one.check.group == next.check.group);
    let mut areas: Vec<&[Finding]> = areas.collect();
    areas.sort_by_key(|area| Reverse(area.iter().map(|finding| finding.diagnosis.outcome).max()));
    areas.into_iter().map(|some| (area(some[0].check.group), Findings::of(some))).collect()
}
