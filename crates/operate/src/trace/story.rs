//! Reconstructs an event's history, step by step, from the handler's log lines about the event.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::RandomState;
use std::time::Duration;

use comeback_engine::{Cause, Early, LogFold, LogLine, LoggedEvent, MessageState, Timestamp, WaitsFor, What};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::json;

/// Everything that the handler logged about one event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Story {
    /// The event's key.
    pub key: String,
    /// The ARN of the event's target, or of the function to which an operator redrove the event.
    pub target: String,
    /// The target of each invocation, by the invocation's request id.
    #[serde(skip)]
    pub targets: BTreeMap<String, String>,
    /// The time when the event first failed.
    pub first_failure: Option<Timestamp>,
    /// The event's steps, oldest first.
    pub steps: Vec<StoryStep>,
    /// The state after the event's latest failure.
    pub end: StoryEnd,
    /// The number of failures that copies of the event caused: in each attempt, all failures except the first.
    pub copies: usize,
    /// The handler's log lines about the event, verbatim.
    #[serde(skip)]
    pub lines: Vec<LoggedLine>,
}

/// A line from a log, verbatim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoggedLine {
    /// The time when the line was written to the log.
    pub at: Timestamp,
    /// The text of the line.
    pub line: String,
}

/// One step in an event's history, such as a failure or an invocation. Log lines that repeat a wait add no step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryStep {
    /// The time of the first log line about the step.
    pub at: Timestamp,
    /// The time of the last log line about the step.
    pub last: Timestamp,
    /// The kind of step, with its details.
    pub happened: StepKind,
    /// The event and its next retry, according to the last log line about the step.
    pub event: LoggedEvent<'static>,
}

/// The kinds of steps in an event's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// An attempt failed. [`StoryStep::at`] is the time of the handler's first line about the failure.
    Failed,
    /// An operator redrove the dead-lettered event, so its retries started over.
    Redriven,
    /// The handler acted on the event's message, as logged.
    Logged(What),
}

/// The state after an event's latest failure, derived from all the log lines about the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum StoryEnd {
    /// The event is waiting for its retry to become due.
    Waiting {
        /// The time when the retry is due.
        due: Timestamp,
    },
    /// The event is waiting for the end of its function's pause.
    Held,
    /// The event is waiting for the handler's next attempt, because a call failed or the handler could not decide yet.
    Kept,
    /// The event was retried, and the handler has logged nothing about it since. A success leaves no line in the
    /// handler's log.
    Invoked {
        /// The request id of the invocation, if Lambda returned one.
        request_id: Option<String>,
        /// The time when the handler invoked the function.
        at: Timestamp,
    },
    /// The event was dead-lettered.
    DeadLettered,
}

impl Story {
    /// Builds a story from the unordered log lines about one event, or returns `None` if there are none.
    pub fn of(mut lines: Vec<LogLine<'static>>) -> Option<Self> {
        lines.sort_by_key(|line| line.timestamp);
        let events = || lines.iter().filter_map(|line| line.event.as_ref());
        let last = events().next_back()?;
        let (key, target) = (last.key.to_string(), last.target.to_string());
        // The first line for a request id counts, because a redriven dead-letter keeps the id and may have another
        // target.
        let targets = lines.iter().rev().filter_map(|line| Some((line.event.as_ref()?, &line.what)));
        let targets = targets.flat_map(|(event, what)| {
            let ids = event.request_id.as_deref().into_iter().chain(what.invoke_request_id());
            ids.map(|id| (id.to_owned(), event.target.to_string()))
        });
        let targets = targets.collect();
        let first_failure = events().map(|event| event.first_failure).min();
        let end = StoryEnd::of(&lines)?;
        let mut timeline = Timeline::default();
        lines.into_iter().for_each(|line| timeline.take(line));
        let Timeline { steps, copies, .. } = timeline;
        Some(Self { key, target, targets, first_failure, steps, end, copies, lines: Vec::new() })
    }

    /// The last step in which an attempt failed.
    pub fn last_failure(&self) -> Option<&StoryStep> {
        self.steps.iter().rfind(|step| step.happened == StepKind::Failed)
    }

    /// The distinct request ids of the event's invocations, in order.
    pub fn request_ids(&self) -> impl Iterator<Item = &str> {
        let mut seen = BTreeSet::new();
        self.steps.iter().filter_map(StoryStep::request_id).filter(move |id| seen.insert(*id))
    }
}

#[derive(Default)]
struct Timeline {
    steps: Vec<StoryStep>,
    /// The attempts whose failure already has a step, by the number of the next retry and the request id.
    failed: BTreeSet<(u64, Option<String>)>,
    copies: usize,
}

impl Timeline {
    fn take(&mut self, line: LogLine<'static>) {
        let LogLine { timestamp: at, event: Some(event), what, .. } = line else { return };
        let what = what.into_owned();
        self.failure(at, &event);
        // If the message was kept although no call failed, its wait simply continues.
        if matches!(what, What::Keep { failure: None, .. }) {
            return;
        }
        // The due time from a later check is more exact, because it is counted from the message's first receive.
        match self
            .steps
            .last_mut()
            .filter(|last| last.event.retry == event.retry && last.is_checked_again(&what))
        {
            Some(last) => {
                *last = StoryStep { at: last.at, last: at, happened: StepKind::Logged(what), event }
            }
            None => self.steps.push(StoryStep { at, last: at, happened: StepKind::Logged(what), event }),
        }
    }

    /// Adds a step for a failed attempt, unless an earlier log line already did.
    fn failure(&mut self, at: Timestamp, event: &LoggedEvent<'static>) {
        let Some(attempt) = event.retry.checked_sub(1) else { return };
        let starts_anew = attempt == 0 && self.steps.last().is_some_and(StoryStep::is_dead_letter);
        if starts_anew {
            self.failed.clear();
        }
        let is_copy = self.failed.iter().any(|(retry, _)| *retry == event.retry);
        if self.failed.insert((event.retry, event.request_id.as_deref().map(ToOwned::to_owned))) {
            self.copies += usize::from(is_copy);
            let happened = if starts_anew { StepKind::Redriven } else { StepKind::Failed };
            self.steps.push(StoryStep { at, last: at, happened, event: event.clone() });
        }
    }
}

impl StoryStep {
    /// The number of the last attempt that had failed by this step. The first invocation is attempt 0.
    pub fn attempt(&self) -> u64 {
        self.event.retry.saturating_sub(1)
    }

    /// The request id of the invocation that failed or was made in this step, if known.
    pub fn request_id(&self) -> Option<&str> {
        match &self.happened {
            StepKind::Failed => self.event.request_id.as_deref(),
            StepKind::Redriven => None,
            StepKind::Logged(what) => what.invoke_request_id(),
        }
    }

    /// Returns true if the event was dead-lettered in this step.
    pub fn is_dead_letter(&self) -> bool {
        matches!(self.happened, StepKind::Logged(What::DeadLetter { .. }))
    }

    /// Returns true if this step is a wait and the log line says that the wait continues.
    fn is_checked_again(&self, line: &What) -> bool {
        let StepKind::Logged(known) = &self.happened else { return false };
        matches!(
            (known, line),
            (What::Hold { failure: None, .. }, What::Hold { failure: None, .. })
                | (What::Defer { failure: None, .. }, What::Defer { failure: None, .. })
        )
    }

    /// Returns how late the retry was. If a request brought it forward, the original due time counts.
    pub fn late(&self, due: Timestamp, early: Option<&Early>) -> Duration {
        self.at.since(early.map_or(due, |early| early.otherwise_due))
    }
}

impl Serialize for StoryStep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LoggedEvent { retry, request_id, error_type, policy, retry_after_ignored, .. } = &self.event;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", &self.at)?;
        macro_rules! members {
            ($what:literal $(, $name:literal: $value:expr)*) => {{
                map.serialize_entry("what", $what)?;
                $(map.serialize_entry($name, $value)?;)*
            }};
        }
        let what = match &self.happened {
            StepKind::Redriven => {
                members!("redriven");
                return map.end();
            }
            StepKind::Failed => {
                members!("failed", "attempt": &self.attempt(), "request_id": request_id, "error_type": error_type,
                    "retry_after_ignored": retry_after_ignored);
                return map.end();
            }
            StepKind::Logged(what) => what,
        };
        if let Some(failure) = what.failure() {
            members!("kept", "cause": &cause(what), "problem": &failure.cause, "remedy": &failure.remedy);
            return map.end();
        }
        match what {
            What::Defer { due, due_by, .. } => {
                members!("waits", "retry": retry, "due": due, "due_by": due_by, "policy": policy);
            }
            What::Hold { .. } => members!("held", "retry": retry, "last": &self.last),
            What::Reinvoke { due, invoke_request_id, early } => {
                let late = self.late(*due, early.as_ref()).as_millis() as u64;
                let early = early.as_ref().map(|Early { otherwise_due, asked_at, asked_by }| {
                    json!({"asked_at": asked_at, "asked_by": asked_by, "otherwise_due": otherwise_due})
                });
                members!("invoked", "retry": retry, "request_id": invoke_request_id, "late_ms": &late, "early": &early,
                    "policy": policy);
            }
            What::DeadLetter { reason, .. } => {
                members!("dead_lettered", "reason": &reason.code, "detail": &reason.detail, "policy": policy);
            }
            What::Keep { .. } => members!("kept"),
        }
        map.end()
    }
}

pub(super) const fn cause(what: &What) -> Option<Cause> {
    match what {
        What::Keep { cause, .. } => Some(*cause),
        _ => None,
    }
}

impl StoryEnd {
    /// Returns true if the event is waiting, held or kept.
    pub const fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting { .. } | Self::Held | Self::Kept)
    }

    /// The time when the next retry is due, or `None` if it is unknown or the event is not waiting.
    pub const fn due(&self) -> Option<Timestamp> {
        if let Self::Waiting { due } = self { Some(*due) } else { None }
    }

    /// The state after the event's latest failure, or `None` if no line is about an event.
    fn of(lines: &[LogLine<'_>]) -> Option<Self> {
        let mut log = LogFold::<RandomState>::default();
        lines.iter().for_each(|line| log.take(line));
        let number = |event: &LoggedEvent<'_>| (event.first_failure, event.retry);
        let latest = lines.iter().filter_map(|line| line.event.as_ref()).map(number).max()?;
        let about =
            lines.iter().filter(|line| line.event.as_ref().is_some_and(|event| number(event) == latest));
        let waiting = about.clone().filter_map(|line| match log.state_of(line.event.as_ref()?)? {
            MessageState::Waiting(message) => Some(message),
            MessageState::Settled => None,
        });
        if let Some(message) = waiting.max_by_key(|message| message.at) {
            return Some(match message.waits_for {
                WaitsFor::Due { due, .. } => Self::Waiting { due },
                WaitsFor::Resume => Self::Held,
                WaitsFor::NextTry { .. } => Self::Kept,
            });
        }
        let settling = about.rev().find(|line| line.what.settles())?;
        Some(match &*settling.what {
            What::Reinvoke { invoke_request_id, .. } => {
                let request_id = invoke_request_id.as_deref().map(Into::into);
                Self::Invoked { request_id, at: settling.timestamp }
            }
            _ => Self::DeadLettered,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::log::test_line;
    use crate::trace::sentence::sentence;

    /// A log line about event `k-1`, written at time `second`.
    fn line(second: u64, retry: u64, mut more: Value) -> LogLine<'static> {
        let known = more.as_object_mut().unwrap();
        known.insert("timestamp".into(), json!(Timestamp::from_secs(second)));
        known.insert("retry".into(), json!(retry));
        known.entry("request_id").or_insert(json!(format!("r-{}", retry - 1)));
        test_line(more)
    }

    fn defers(second: u64, retry: u64, due: u64) -> LogLine<'static> {
        let due = Timestamp::from_secs(due);
        line(second, retry, json!({"action": "defer", "due": due, "due_by": "policy", "delay": 60}))
    }

    fn invokes(second: u64, retry: u64, due: u64) -> LogLine<'static> {
        let (due, id) = (Timestamp::from_secs(due), format!("r-{retry}"));
        line(second, retry, json!({"action": "reinvoke", "due": due, "invoke_request_id": id}))
    }

    fn dead_letters(second: u64, retry: u64) -> LogLine<'static> {
        let detail = "2 retries made";
        line(second, retry, json!({"action": "dead_letter", "reason": "max_retries", "detail": detail}))
    }

    fn event_of<'l>(line: &'l mut LogLine<'static>) -> &'l mut LoggedEvent<'static> {
        line.event.as_mut().unwrap()
    }

    fn story(lines: Vec<LogLine<'static>>) -> Story {
        Story::of(lines).unwrap()
    }

    fn steps(story: &Story) -> Vec<String> {
        story.steps.iter().map(|step| json(step)["what"].as_str().unwrap().to_owned()).collect()
    }

    fn json(step: &StoryStep) -> Value {
        serde_json::to_value(step).unwrap()
    }

    #[test]
    fn an_event_fails_waits_and_is_invoked() {
        let story = story(vec![invokes(13, 1, 12), defers(10, 1, 12), defers(20, 2, 30)]);
        assert_eq!(steps(&story), ["failed", "waits", "invoked", "failed", "waits"]);
        assert_eq!(story.end, StoryEnd::Waiting { due: Timestamp::from_secs(30) });
        assert_eq!(story.request_ids().collect::<Vec<_>>(), ["r-0", "r-1"]);
        let failed = json(&story.steps[3]);
        assert_eq!((&failed["attempt"], &failed["error_type"]), (&1.into(), &"TargetDown".into()));
        assert_eq!(json(&story.steps[2])["late_ms"], 1_000);
        assert_eq!(story.copies, 0);
    }

    /// Because of a request, the retry was due at second 1,000. The handler found the request at second 1,813.
    #[test]
    fn early_retry_is_late_after_its_original_time() {
        for (otherwise_due, expected) in [(20_000, 0), (1_000, 813_000)] {
            let early = json!({
                "action": "reinvoke", "due": Timestamp::from_secs(1_000), "asked_at": Timestamp::from_secs(1_000),
                "otherwise_due": Timestamp::from_secs(otherwise_due),
            });
            let story = story(vec![defers(10, 1, 20_000), line(1_813, 1, early)]);
            assert_eq!(json(&story.steps[2])["late_ms"], expected);
        }
    }

    #[test]
    fn an_ignored_wait_is_named_with_its_failure() {
        let mut first = defers(10, 1, 90);
        event_of(&mut first).retry_after_ignored = Some("\"soon\": why".into());
        let story = story(vec![first]);
        let step = &story.steps[0];
        assert_eq!(json(step)["retry_after_ignored"], "\"soon\": why");
        let sentence = sentence(step).to_string();
        assert!(sentence.contains(", whose wait was ignored: \"soon\": why"), "{sentence}");
    }

    /// The event's policy changed while the event was waiting.
    #[test]
    fn the_policy_of_the_last_check_gave_the_due_time() {
        let by = |mut line: LogLine<'static>, policy: &str| {
            event_of(&mut line).policy = Some(policy.to_owned().into());
            line
        };
        let story = story(vec![by(defers(10, 1, 90), "o*"), by(defers(60, 1, 70), "orders")]);
        let wait = json!({"at": "1970-01-01T00:00:10.000Z", "what": "waits", "retry": 1, "policy": "orders",
                          "due": "1970-01-01T00:01:10.000Z", "due_by": "policy"});
        assert_eq!(json(&story.steps[1]), wait);
    }

    /// The log has no line after the invocation, so its outcome is unknown.
    #[test]
    fn after_an_invocation_nothing_is_claimed() {
        let story = story(vec![defers(10, 1, 12), invokes(13, 1, 12)]);
        assert_eq!(
            story.end,
            StoryEnd::Invoked { request_id: Some("r-1".into()), at: Timestamp::from_secs(13) }
        );
    }

    /// The batch that logged the deferral ended after the batch that logged the re-invocation.
    #[test]
    fn a_late_line_does_not_make_a_settled_event_wait() {
        let story = story(vec![defers(10, 1, 12), invokes(13, 1, 12), defers(15, 1, 12)]);
        assert!(matches!(story.end, StoryEnd::Invoked { .. }), "{:?}", story.end);
    }

    #[test]
    fn a_message_that_comes_back_early_waits_once() {
        let story = story(vec![defers(10, 1, 51), defers(20, 1, 50), defers(30, 1, 50), invokes(50, 1, 50)]);
        assert_eq!(steps(&story), ["failed", "waits", "invoked"]);
        assert_eq!(json(&story.steps[1])["due"], "1970-01-01T00:00:50.000Z");
    }

    /// A log line about a retry implies the failure before it, even if that failure has no log line of its own.
    #[test]
    fn an_invocation_alone_tells_the_failure_before_it() {
        let story = story(vec![invokes(50, 3, 50)]);
        assert_eq!(steps(&story), ["failed", "invoked"]);
        assert_eq!(json(&story.steps[0])["attempt"], 2);
    }

    #[test]
    fn a_pause_is_one_step_however_often_the_event_is_checked() {
        let hold =
            |second| line(second, 1, json!({"action": "hold", "due": Timestamp::from_secs(12), "delay": 60}));
        let held = story(vec![defers(10, 1, 12), hold(12), hold(1_356), hold(2_700)]);
        assert_eq!(steps(&held), ["failed", "waits", "held"]);
        assert_eq!(json(&held.steps[2])["last"], "1970-01-01T00:45:00.000Z");
        assert_eq!(held.end, StoryEnd::Held);
    }

    #[test]
    fn a_failed_action_has_its_remedy_beside_it() {
        let refused = json!({"action": "keep", "cause": "refused", "problem": "denied", "remedy": "allow it", "delay": 4});
        let kept = story(vec![defers(10, 1, 12), line(12, 1, refused)]);
        assert_eq!(steps(&kept), ["failed", "waits", "kept"]);
        assert_eq!(serde_json::to_value(&kept.end).unwrap(), json!({"end": "kept"}));
        // The event has not ended if its dead-letter could not be sent.
        let unsent = json!({"action": "keep", "cause": "dead_letter_not_sent", "reason": "max_retries", "problem": "denied"});
        assert_eq!(story(vec![line(12, 1, unsent)]).end, StoryEnd::Kept);
    }

    #[test]
    fn a_dead_letter_is_the_end_until_it_is_redriven() {
        let end = story(vec![defers(10, 2, 12), dead_letters(12, 3)]);
        assert_eq!(end.end, StoryEnd::DeadLettered, "its last re-invocation has no line");
        let redriven = |mut line: LogLine<'static>| {
            event_of(&mut line).first_failure = Timestamp::from_secs(700);
            line
        };
        let anew = [defers(90, 1, 91), invokes(91, 1, 91)].map(redriven);
        let anew = story([vec![defers(10, 2, 12), dead_letters(12, 3)], anew.into()].concat());
        assert!(matches!(anew.end, StoryEnd::Invoked { .. }), "{:?}", anew.end);
        assert_eq!(
            steps(&anew),
            ["failed", "waits", "failed", "dead_lettered", "redriven", "waits", "invoked"]
        );
    }

    #[test]
    fn a_retargeted_event_has_invocations_of_both_functions() {
        let moved = |mut line: LogLine<'static>| {
            event_of(&mut line).target = "arn:g".into();
            line
        };
        let due = Timestamp::from_secs(91);
        let again = line(91, 1, json!({"action": "reinvoke", "due": due, "invoke_request_id": "r-7"}));
        let lines = vec![
            defers(10, 1, 12),
            invokes(13, 1, 12),
            dead_letters(20, 2),
            moved(defers(90, 1, 91)),
            moved(again),
        ];
        let story = story(lines);
        assert_eq!(story.target, "arn:g");
        let targets = ["r-0", "r-1", "r-7"].map(|id| &*story.targets[id]);
        assert_eq!(targets, ["arn:orders", "arn:orders", "arn:g"]);
    }

    #[test]
    fn two_failures_of_one_attempt_are_copies() {
        let other = line(
            25,
            2,
            json!({"action": "defer", "due": Timestamp::from_secs(40), "due_by": "policy", "delay": 9, "request_id": "r-9"}),
        );
        let story = story(vec![defers(10, 1, 12), defers(20, 2, 30), other]);
        assert_eq!(story.copies, 1);
    }
}
