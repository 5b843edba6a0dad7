//! The page with the doctor's findings, problems first.

use std::cmp::Reverse;

use askama::Template;
use axum::response::Response;

use comeback_operate::alarms::TopicArn;
use comeback_operate::doctor::diagnosis::area;
use comeback_operate::doctor::findings::Finding;
use comeback_operate::doctor::judgement::Judgement;
use comeback_operate::text::Text;
use futures_util::future::join;

use crate::page::{Frame, Problem, Visit, ok};

/// A form field for the ARN of an SNS topic, which some fixes need.
#[derive(Clone, Default)]
pub(super) struct TopicField {
    pub(super) value: String,
    /// The topic's ARN, or the reason why the text is not a usable ARN. `None` for an empty field or an unreadable
    /// deployment.
    read: Option<Result<TopicArn, String>>,
}

impl TopicField {
    /// Reads the ARN of an SNS topic from the page's URL.
    async fn of(visit: &Visit) -> Self {
        let fields = visit.query();
        let Some(value) = fields.get("topic").map(str::trim) else { return Self::default() };
        let deployment = visit.console.deployment().await.value.ok();
        let read = deployment.map(|deployment| TopicArn::read(value, &deployment.handler_arn));
        Self { value: value.to_owned(), read }
    }

    pub(super) fn fix_lines(&self, judgement: &Judgement) -> Vec<Text> {
        judgement.fix_lines(self.read.as_ref().and_then(|read| read.as_ref().ok()))
    }

    pub(super) fn refused(&self) -> Option<&String> {
        self.read.as_ref()?.as_ref().err()
    }
}

/// The doctor's findings about one function.
pub(super) struct Findings<'d> {
    /// The worst problem comes first.
    pub(super) problems: Vec<&'d Finding>,
    pub(super) others: Vec<&'d Finding>,
}

impl<'d> Findings<'d> {
    pub(super) fn of(findings: impl Iterator<Item = &'d Finding>) -> Self {
        let mut all: Vec<_> = findings.collect();
        all.sort_by_key(|finding| Reverse(finding.judgement.outcome));
        let (problems, others) = all.into_iter().partition(|finding| finding.is_problem());
        Self { problems, others }
    }
}

#[derive(Template)]
#[template(path = "doctor.html")]
struct DoctorPage<'d> {
    frame: Frame,
    summary: String,
    /// The worst problem comes first.
    problems: Vec<&'d Finding>,
    /// All other findings, by area.
    others: Vec<(&'static str, Vec<&'d Finding>)>,
    topic: TopicField,
}

pub(super) async fn doctor(visit: Visit) -> Result<Response, Problem> {
    let (read, topic) = join(visit.console.checks(None), TopicField::of(&visit)).await;
    let diagnosis = read.value?;
    let by_area = diagnosis.checks.chunk_by(|one, next| one.check.group == next.check.group);
    let others = by_area.map(|findings| {
        let others = findings.iter().filter(|finding| !finding.is_problem());
        (area(findings[0].check.group), others.collect::<Vec<_>>())
    });
    ok(&DoctorPage {
        frame: visit.frame("Doctor", None).of(read.at),
        summary: diagnosis.summary(),
        problems: Findings::of(diagnosis.checks.iter()).problems,
        others: others.filter(|(_, findings)| !findings.is_empty()).collect(),
        topic,
    })
}
