//! The output of `comeback trace`: the history of one event, from the logs of the handler and the event's targets.

mod ending;
pub mod logs;
pub mod sentence;
pub mod story;

use std::cell::Cell;
use std::time::Duration;

use comeback_engine::Timestamp;
use serde::Serialize;

use crate::change::Answer;
use crate::deployment::{Deployment, Unlisted};
use crate::failure::Failure;
use crate::function::shown_name;
use crate::layout::{Block, Fact, Layout, TimelineEntry};
use crate::operator::{Operator, Progress};
use crate::pauses::in_force::InForce;
use crate::pauses::noticed_within;
use crate::pauses::parameter::read_pauses;
use crate::text;
use crate::text::{Piece, Text};
use crate::trace::logs::{InvocationReport, LoggedInvocation, Logs};
use crate::trace::sentence::sentence;
use crate::trace::story::{StepKind, Story, StoryEnd, StoryStep};

/// The history of one event, read from the logs.
#[derive(Clone, Debug, Serialize)]
pub struct Trace {
    /// The event's history, according to the handler's log.
    #[serde(flatten)]
    pub story: Story,
    /// The invocations that were looked up in the targets' logs, in order.
    pub invocations: Vec<LoggedInvocation>,
    /// The current state of the function's pauses, or `None` if it is unknown or the event is not waiting.
    pub pause: Option<InForce>,
    /// The reason why the pauses could not be read, if any.
    pub pause_unknown: Option<Text>,
    /// The handler's treatment of the waiting event if its function is not on the allow-list.
    pub not_allowed: Option<Unlisted>,
    /// The time when the logs were read.
    #[serde(skip)]
    pub now: Timestamp,
    /// The deployment that retries the event.
    #[serde(skip)]
    pub deployment: Deployment,
}

/// Options for [`trace`].
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// The event's key, or the request id of one of its invocations.
    pub id: String,
    /// The invocations whose lines are read from the function's log. The handler's log is always read.
    pub lines: LinesOf,
    /// The maximum age of the log lines to search.
    pub since: Duration,
}

/// Selects the invocations whose log lines are read. Reading the lines of one invocation takes two searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinesOf {
    /// Selects no invocation.
    None,
    /// Selects the invocation that failed last, according to the handler's log.
    LastFailure,
    /// Selects all invocations.
    All,
}

/// Searches the logs for the event that `options.id` identifies, and returns its history.
///
/// # Errors
///
/// Fails if no log line mentions the id, if the id belongs to several events, or if the handler's log cannot be read.
pub async fn trace(operator: &Operator, options: &TraceOptions) -> Result<Trace, Failure> {
    let now = operator.now();
    let deployment = operator.deployment().await?;
    let lines = Cell::new(0);
    let progress = |of| {
        operator.follow.progress(Progress { done: lines.get(), of, unit: "lines of the log" });
    };
    progress(None);
    let found = |count: usize| {
        lines.set(count as u64);
        progress(None);
    };
    let (account, since) = (&operator.account, now.before(options.since));
    let logs = Logs { account, deployment: &deployment, since, progress: &found };
    let trace = operator.interrupt.or(Trace::find(&logs, options, now)).await;
    progress(Some(lines.get()));
    trace
}

impl Trace {
    async fn find(logs: &Logs<'_>, options: &TraceOptions, now: Timestamp) -> Result<Self, Failure> {
        let id = &options.id;
        let Logs { account, deployment, since, .. } = *logs;
        let story = logs.story(id).await?.ok_or_else(|| {
            Failure::could_not(format!(
                "no line in {} since {since} has {id}, so Comeback knows of no failure: the event succeeded at once, \
                 or failed just now (its first failure is logged after some seconds, or a minute if its function is \
                 throttled)",
                deployment.log_group
            ))
        })?;
        let last_failure = story.last_failure().and_then(StoryStep::request_id).map(ToOwned::to_owned);
        let last_retry = match &story.end {
            StoryEnd::Invoked { request_id, .. } => request_id.clone(),
            _ => None,
        };
        // The request ids to look up, and whether to read all lines of each invocation.
        let asked: Vec<(String, bool)> = match options.lines {
            LinesOf::All => story.request_ids().map(|id| (id.to_owned(), true)).collect(),
            LinesOf::LastFailure => {
                let failure = last_failure.map(|id| (id, true));
                failure.into_iter().chain(last_retry.map(|id| (id, false))).collect()
            }
            LinesOf::None => last_retry.into_iter().map(|id| (id, false)).collect(),
        };
        let mut invocations = Vec::new();
        for (request_id, all_lines) in asked {
            let target = story.targets.get(&request_id).unwrap_or(&story.target);
            invocations.push(logs.invocation(target, &request_id, all_lines).await?);
        }
        let waits = story.end.is_waiting();
        let pause = match waits {
            true => read_pauses(account, deployment).await.map(|pauses| {
                let noticed = noticed_within(deployment).unwrap_or_default();
                Some(InForce::of(&pauses.unwrap_or_default(), &story.target, noticed, now))
            }),
            false => Ok(None),
        };
        // The trace is shown even if the pauses cannot be read.
        let pause_unknown = pause.as_ref().err().map(Failure::text);
        let policies = deployment.policies().ok().filter(|_| waits);
        let not_allowed = policies.and_then(|policies| Unlisted::of(&policies, &story.target));
        let (pause, deployment) = (pause.unwrap_or_default(), deployment.clone());
        Ok(Self { story, invocations, pause, pause_unknown, not_allowed, now, deployment })
    }

    /// The invocation with this request id, or `None` if its log was not read.
    pub fn invocation(&self, request_id: Option<&str>) -> Option<&LoggedInvocation> {
        self.invocations.iter().find(|invocation| Some(&*invocation.request_id) == request_id)
    }

    /// Lambda's report on the last retry. `None` if the event did not end with a retry, or if the function's log was
    /// not read.
    pub fn last_report(&self) -> Option<&InvocationReport> {
        let StoryEnd::Invoked { request_id, .. } = &self.story.end else { return None };
        Some(&self.invocation(request_id.as_deref())?.report)
    }

    /// The event's function and last error, and what comes next.
    pub fn facts(&self) -> Vec<Fact> {
        let Story { target, first_failure, steps, .. } = &self.story;
        let last_error = steps.iter().rev().find_map(|step| {
            let error = step.event.error_type.as_ref().filter(|_| step.happened == StepKind::Failed)?;
            Some(text![format!("{error}, attempt {} at ", step.attempt()), step.at])
        });
        let facts = [
            ("Function", Some(self.deployment.function(target, shown_name(target)))),
            ("First failure", first_failure.map(Text::from)),
            ("Error", last_error),
            (if self.is_over() { "Outcome" } else { "Next" }, Some(self.ending())),
        ];
        facts.into_iter().filter_map(|(title, text)| Some(Fact::new(title, vec![text?]))).collect()
    }

    /// The steps in the event's history, described in words.
    pub fn timeline(&self) -> Vec<TimelineEntry> {
        self.story.steps.iter().map(|step| self.moment(step)).collect()
    }

    /// A note that copies of the event are being retried too, if the log shows any.
    pub fn copies(&self) -> Option<Text> {
        let copies = Some(self.story.copies).filter(|copies| *copies > 0)?;
        Some(
            format!("{copies} attempts failed more than once: copies of the event are being retried too")
                .into(),
        )
    }

    /// A note that the pauses could not be read, with the reason.
    pub fn unknown_pause(&self) -> Option<Text> {
        let why = self.pause_unknown.as_ref()?;
        Some(text!["Unknown whether its function is paused now: ", why])
    }

    fn moment(&self, step: &StoryStep) -> TimelineEntry {
        // The log of the first attempt is shown below its failure, because the handler did not make that invocation.
        let id = match step.happened {
            StepKind::Failed if step.attempt() > 0 => None,
            _ => step.request_id(),
        };
        let logged = self.invocation(id).into_iter().flat_map(|invocation| &invocation.lines);
        let below = logged.flat_map(|logged| logged.line.lines()).map(ToOwned::to_owned).collect();
        TimelineEntry { at: step.at, text: sentence(step), below }
    }
}

impl Answer for Trace {
    fn layout(&self) -> Layout {
        let Story { key, target, .. } = &self.story;
        let mut layout = Layout::default();
        layout.line(text!["event   ", Piece::Event(key.clone())]);
        layout.line(text!["target  ", self.deployment.function(target, target)]);
        layout.0.push(Block::Timeline(self.timeline()));
        if let Some(copies) = self.copies() {
            layout.line("");
            layout.line(copies);
        }
        layout.line("");
        layout.line(self.ending());
        self.unknown_pause().into_iter().for_each(|why| layout.line(why));
        layout
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::aws::simulated::{Call, Fault, Sample, SimulatedAws, function_arn};
    use crate::change::tests::plain;
    use crate::deployment::find::Which;
    use crate::log::test_line;
    use crate::text::Span;

    pub(crate) fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(1_789_400_000 + second)
    }

    pub(crate) fn due(second: u64) -> StoryEnd {
        StoryEnd::Waiting { due: at(second) }
    }

    pub(crate) fn holds() -> Value {
        json!({"action": "hold", "due": at(0), "delay": 60})
    }

    pub(crate) fn dead_letters() -> Value {
        json!({"action": "dead_letter", "reason": "max_age", "detail": "it is too old"})
    }

    pub(crate) fn invoked() -> Value {
        json!({"action": "reinvoke", "due": at(0), "invoke_request_id": "r-1"})
    }

    /// Builds a trace of one event for tests, from the time (in seconds) and the fields of each log line.
    pub(crate) fn trace(lines: &[(u64, Value)], end: StoryEnd, invocations: Vec<LoggedInvocation>) -> Trace {
        let steps = lines.iter().map(|(second, fields)| {
            let mut fields = fields.clone();
            fields["timestamp"] = json!(at(*second));
            let line = test_line(fields);
            let (happened, event) = (StepKind::Logged(line.what.into_owned()), line.event.unwrap());
            StoryStep { at: line.timestamp, last: line.timestamp, happened, event }
        });
        let (key, target, first_failure) = ("k-1".into(), "arn:f".into(), Some(at(0)));
        let (targets, steps) = (BTreeMap::new(), steps.collect());
        let story = Story { key, target, targets, first_failure, steps, end, copies: 0, lines: Vec::new() };
        let (now, deployment) = (at(64), Deployment::sample());
        Trace { story, invocations, pause: None, pause_unknown: None, not_allowed: None, now, deployment }
    }

    fn account(lines: &[(u64, Value)]) -> SimulatedAws {
        let aws = Sample { is_attached: true, ..Sample::new(at(64)) }.build();
        for (second, fields) in lines {
            let mut fields = fields.clone();
            fields["timestamp"] = json!(at(*second));
            fields["target"] = json!(function_arn(Sample::ORDERS));
            let line = serde_json::to_string(&test_line(fields)).unwrap();
            aws.state().log_groups.get_mut(Sample::LOG_GROUP).unwrap().write(at(*second), "s", line);
        }
        aws
    }

    async fn traced(aws: &SimulatedAws, lines: LinesOf) -> Trace {
        let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
        let options = TraceOptions { id: "k-1".into(), lines, since: Duration::from_secs(86_400) };
        super::trace(&operator, &options).await.unwrap()
    }

    #[tokio::test]
    async fn the_targets_lines_stand_below_its_invocation() {
        let defers =
            json!({"action": "defer", "due": at(3), "due_by": "policy", "delay": 2, "policy": "orders-*"});
        let aws = account(&[(1, defers), (4, invoked())]);
        for (second, line) in
            [(4, "START r-1"), (4, "succeeded"), (5, "REPORT RequestId: r-1\tDuration: 2 ms")]
        {
            aws.state().log_groups.get_mut("/aws/lambda/orders").unwrap().write(at(second), "s", line);
        }
        let expected = "\
event   k-1
target  arn:aws:lambda:eu-west-1:123456789012:function:orders
2026-09-14T15:33:21.000Z attempt 0 failed with TargetDown  r-0
2026-09-14T15:33:21.000Z waits 2s for retry 1, until 2026-09-14T15:33:23.000Z, by the policy of orders-*
2026-09-14T15:33:24.000Z retry 1 invoked, 4s after it was due at 15:33:20  r-1
| START r-1
| succeeded
| REPORT RequestId: r-1\tDuration: 2 ms

Retry 1 probably succeeded: it ended at 2026-09-14T15:33:25.000Z, and no failure followed in 59s.
";
        assert_eq!(plain(&traced(&aws, LinesOf::All).await), expected);
        let short = traced(&aws, LinesOf::None).await;
        assert!(!plain(&short).contains("| START") && plain(&short).contains("Retry 1 probably succeeded"));
    }

    #[tokio::test]
    async fn lines_of_the_last_failure_are_read_alone() {
        let defers = |retry: u64, failed: &str| json!({"action": "defer", "due": at(30), "due_by": "policy", "delay": 2, "retry": retry, "request_id": failed});
        let aws = account(&[(1, defers(1, "r-0")), (4, invoked()), (8, defers(2, "r-1"))]);
        for (second, line) in
            [(0, "START r-0"), (1, "END r-0"), (4, "START r-1"), (4, "boom"), (5, "END r-1")]
        {
            aws.state().log_groups.get_mut("/aws/lambda/orders").unwrap().write(at(second), "s", line);
        }
        let invocations = traced(&aws, LinesOf::LastFailure).await.invocations;
        let [last] = &invocations[..] else { panic!("{invocations:?}") };
        let lines: Vec<_> = last.lines.iter().map(|line| &*line.line).collect();
        assert_eq!((&*last.request_id, lines), ("r-1", vec!["START r-1", "boom", "END r-1"]));
    }

    #[tokio::test]
    async fn lines_that_cannot_be_read_do_not_end_the_trace() {
        let group = "/aws/lambda/orders";
        let aws = account(&[(4, invoked())]);
        aws.state().log_groups.get_mut(group).unwrap().write(at(4), "s", "START r-1");
        let mut reads = 0;
        aws.on_call(move |call: Call<'_>| {
            reads += u32::from(call.action == "logs:FilterLogEvents" && call.of == group);
            (reads == 3).then_some(Fault::CallFails)
        });
        let trace = traced(&aws, LinesOf::All).await;
        let [_, invocation] = &trace.invocations[..] else { panic!("{:?}", trace.invocations) };
        assert!(matches!(invocation.report, InvocationReport::Unread { .. }), "{invocation:?}");
    }

    #[tokio::test]
    async fn pauses_that_cannot_be_read_are_a_note_with_the_fix() {
        let aws = account(&[(1, holds())]);
        aws.account().aws.put_parameter(Sample::PAUSES, "garbled", true).await.unwrap();
        let trace = traced(&aws, LinesOf::None).await;
        let is_command = |span: &Span| matches!(span.piece, Piece::Command(..));
        assert!(trace.unknown_pause().unwrap().spans().iter().any(is_command));
        let text = plain(&trace);
        let (_, note) = text.split_once("\nUnknown whether its function is paused now: ").unwrap();
        assert!(note.contains("; `comeback resume --all` puts back the last readable version"), "{text}");
        let paused = "\nIts function is paused. `comeback pause --list` shows who paused it, and why.\n";
        assert!(text.contains(paused), "{text}");
    }
}
