//! The page with the doctor's findings. Problems come first. Each has a fix, which the operator can start with a button
//! or copy. All other findings are collapsed into one line. A fix that needs an SNS topic has a field for the topic.

use std::cmp::Reverse;

use askama::Template;
use axum::Router;
use axum::response::Response;

use comeback_operate::Text;
use comeback_operate::alarms::TopicArn;
use comeback_operate::doctor::diagnosis::area;
use comeback_operate::doctor::findings::Finding;
use comeback_operate::doctor::judgement::{FixLine, Outcome};
use futures_util::future::join;

use crate::console::Console;
use crate::draw::button;
use crate::page::{Frame, Problem, Visit, ok, page};

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/doctor", page(doctor))
}

/// A finding of the doctor, as `templates/findings.html` draws it.
pub(super) struct Shown {
    pub(super) colour: &'static str,
    pub(super) mark: &'static str,
    pub(super) name: String,
    /// The problem. If the check is ok, the check's title with the facts.
    pub(super) found: Text,
    pub(super) means: Option<Text>,
    /// The lines of the fix, without the lines that still need a topic; empty if nothing is wrong.
    pub(super) fix: Vec<FixLine>,
    /// A field for the topic that the fix needs; `None` if the fix needs no topic.
    pub(super) topic: Option<TopicField>,
    /// Words and path of the button that opens the plan of the fix; `None` unless the fix is a `comeback` command.
    pub(super) button: Option<(String, String)>,
}

/// A form field for the ARN of an SNS topic. The ARN completes the command of a fix.
#[derive(Clone, Default)]
pub(super) struct TopicField {
    /// The text in the field.
    pub(super) value: String,
    /// The topic's ARN, or the reason why the text is not a usable ARN. `None` if the field is empty or the deployment
    /// could not be read.
    read: Option<Result<TopicArn, String>>,
}

impl TopicField {
    /// Reads the field from the query in the page's address. Refuses a topic outside the handler's region.
    async fn of(visit: &Visit) -> Self {
        let fields = visit.query();
        let Some(value) = fields.get("topic").map(str::trim) else { return Self::default() };
        let deployment = visit.console.deployment().await.value.ok();
        let read = deployment.map(|deployment| TopicArn::read(value, &deployment.handler_arn));
        Self { value: value.to_owned(), read }
    }

    fn topic(&self) -> Option<&TopicArn> {
        self.read.as_ref()?.as_ref().ok()
    }

    pub(super) fn refused(&self) -> Option<&String> {
        self.read.as_ref()?.as_ref().err()
    }
}

impl Shown {
    pub(super) fn of(finding: &Finding) -> Self {
        Self::with_topic(finding, &TopicField::default())
    }

    fn with_topic(finding: &Finding, topic: &TopicField) -> Self {
        let judgement = &finding.judgement;
        let (mark, colour) = match judgement.outcome {
            Outcome::Ok => ("ok", "good"),
            Outcome::Skipped => ("skipped", ""),
            Outcome::Warning => ("WARNING", "warn"),
            Outcome::Broken => ("BROKEN", "bad"),
        };
        let lines = judgement.fix_lines(topic.topic()).into_iter();
        Self {
            colour,
            mark,
            name: finding.name(),
            found: finding.found(),
            means: judgement.means.clone(),
            fix: lines.filter(|line| !line.lacks_topic).collect(),
            topic: judgement.needs_topic().then(|| topic.clone()),
            button: judgement.fix.as_ref().and_then(button),
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
    /// All findings that are not ok, the worst first, each with its area.
    problems: Vec<(&'static str, Shown)>,
    /// All other findings by area.
    others: Vec<(&'static str, Vec<Shown>)>,
}

impl DoctorPage {
    fn others_count(&self) -> usize {
        self.others.iter().map(|(_, findings)| findings.len()).sum()
    }
}

async fn doctor(visit: Visit) -> Result<Response, Problem> {
    let (read, topic) = join(visit.console.checks(None), TopicField::of(&visit)).await;
    let diagnosis = read.value?;
    let (mut problems, mut others) = (Vec::new(), Vec::new());
    for findings in diagnosis.checks.chunk_by(|one, next| one.check.group == next.check.group) {
        let area = area(findings[0].check.group);
        let (bad, good): (Vec<&Finding>, Vec<&Finding>) =
            findings.iter().partition(|finding| finding.judgement.outcome > Outcome::Ok);
        problems.extend(bad.into_iter().map(|finding| (area, finding)));
        others.push((area, good.into_iter().map(Shown::of).collect::<Vec<_>>()));
    }
    problems.sort_by_key(|(_, finding)| Reverse(finding.judgement.outcome));
    others.retain(|(_, findings)| !findings.is_empty());
    ok(&DoctorPage {
        frame: visit.frame("Doctor", None).of(read.at),
        summary: diagnosis.summary(),
        problems: problems.into_iter().map(|(area, it)| (area, Shown::with_topic(it, &topic))).collect(),
        others,
    })
}
