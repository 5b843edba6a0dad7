//! One event's life: the handler's lines about it, put in order.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::RandomState;

use comeback_engine::{
    Cause, DueBy, LogFold, LogLine, LoggedEarly, LoggedEvent, LoggedFailure, MessageState, Timestamp,
    WaitsFor, What as Logged,
};
use serde::Serialize;

/// What happened to one event, as the handler logged it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Story {
    pub(crate) key: String,
    /// The function that is retried now: a redrive may have sent the event to another one.
    pub(crate) target: String,
    /// The target of each invocation, by its request id.
    #[serde(skip)]
    pub(crate) targets: BTreeMap<String, String>,
    pub(crate) first_failure: Option<Timestamp>,
    pub(crate) steps: Vec<Step>,
    pub(crate) end: End,
    /// Failures of an attempt beyond its first: copies of the event, each with retries of its own.
    pub(crate) copies: usize,
    /// The handler's lines about it, as they are.
    #[serde(skip)]
    pub(crate) lines: Vec<LoggedLine>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LoggedLine {
    pub(crate) at: Timestamp,
    pub(crate) line: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Step {
    pub(crate) at: Timestamp,
    #[serde(flatten)]
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum What {
    /// An attempt failed. Its failure reached the handler at this time.
    Failed {
        /// 0 for the first invocation, then the retry's number.
        attempt: u64,
        request_id: Option<String>,
        error_type: Option<String>,
        /// The text of its `RetryAfter`, if that was ignored, and why.
        retry_after_ignored: Option<String>,
    },
    /// It was dead-lettered before, and an operator sent it back: its retries start over.
    Redriven,
    Waits {
        retry: u64,
        due: Timestamp,
        due_by: DueBy,
        /// The entry of `POLICIES` in force; `None` if the stack's policy was.
        policy: Option<String>,
    },
    Held {
        retry: u64,
        last: Timestamp,
    },
    Invoked {
        retry: u64,
        request_id: Option<String>,
        /// How late it was. If a request moved it forward: how late without that request.
        late_ms: Option<u64>,
        /// The request that moved it forward.
        early: Option<Early>,
        /// The entry of `POLICIES` in force; `None` if the stack's policy was.
        policy: Option<String>,
    },
    Kept {
        /// `None` if it waits for its due time or a pause, and could not be hidden.
        cause: Option<Cause>,
        problem: String,
        /// What an operator can do about it, where that is known.
        remedy: Option<String>,
    },
    DeadLettered {
        reason: String,
        detail: Option<String>,
        /// The entry of `POLICIES` in force; `None` if the stack's policy was.
        policy: Option<String>,
    },
}

/// Why a retry came early: the request of a `comeback retry`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Early {
    pub(crate) asked_at: Timestamp,
    pub(crate) asked_by: Option<String>,
    /// When the retry would have been due without it.
    pub(crate) otherwise_due: Timestamp,
}

/// The state of the event's latest failure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub(crate) enum End {
    Waiting {
        due: Timestamp,
    },
    Held,
    /// It was invoked, and no line came since: a success leaves none.
    Invoked {
        request_id: Option<String>,
        at: Timestamp,
    },
    Kept,
    DeadLettered,
}

impl Story {
    /// Puts the lines of one event in order; `None` if there are none.
    pub(crate) fn of(mut lines: Vec<LogLine<'_>>) -> Option<Self> {
        lines.sort_by_key(|line| line.timestamp);
        let events = || lines.iter().filter_map(|line| line.event.as_ref());
        let last = events().next_back()?;
        let (key, target) = (last.key.to_string(), last.target.to_string());
        // The first line that names an invocation counts: a redriven dead-letter keeps the id, and may change the
        // target.
        let targets = lines.iter().rev().filter_map(|line| Some((line.event.as_ref()?, &line.what)));
        let targets = targets.flat_map(|(event, what)| {
            let invoked = match what {
                Logged::Reinvoke { invoke_request_id, .. } => invoke_request_id.as_ref(),
                _ => None,
            };
            let ids = event.request_id.as_ref().into_iter().chain(invoked);
            ids.map(|id| (id.to_string(), event.target.to_string()))
        });
        let targets = targets.collect();
        let first_failure = events().map(|event| event.first_failure).min();
        let end = End::of(&lines)?;
        let mut timeline = Timeline::default();
        lines.into_iter().for_each(|line| timeline.take(line));
        let Timeline { steps, copies, .. } = timeline;
        Some(Self { key, target, targets, first_failure, steps, end, copies, lines: Vec::new() })
    }

    /// The ids of the event's invocations, each once, in order.
    pub(crate) fn request_ids(&self) -> impl Iterator<Item = &str> {
        let mut seen = BTreeSet::new();
        let ids = self.steps.iter().filter_map(|step| match &step.what {
            What::Failed { request_id, .. } | What::Invoked { request_id, .. } => request_id.as_deref(),
            _ => None,
        });
        ids.filter(move |id| seen.insert(*id))
    }
}

/// The steps of an event, built line by line.
#[derive(Default)]
struct Timeline {
    steps: Vec<Step>,
    /// Attempts that were seen to fail: the number of the next retry, and the attempt's own request id.
    failed: BTreeSet<(u64, Option<String>)>,
    copies: usize,
}

impl Timeline {
    fn take(&mut self, line: LogLine<'_>) {
        let LogLine { timestamp: at, event: Some(event), what, .. } = line else { return };
        self.failure(at, &event);
        let LoggedEvent { retry, policy, .. } = event;
        let policy = policy.map(Into::into);
        let what = match what {
            Logged::Keep { cause, failure: Some(failure), .. } => What::kept(Some(cause), failure),
            Logged::Defer { failure: Some(failure), .. } | Logged::Hold { failure: Some(failure), .. } => {
                What::kept(None, failure)
            }
            Logged::Defer { due, due_by, .. } => What::Waits { retry, due, due_by, policy },
            Logged::Hold { .. } => What::Held { retry, last: at },
            Logged::Reinvoke { due, invoke_request_id, early } => {
                let early = early.map(Early::from);
                let due = early.as_ref().map_or(due, |early| early.otherwise_due);
                let late_ms = u64::try_from(at.since(due).as_millis()).ok();
                What::Invoked { retry, request_id: invoke_request_id.map(Into::into), late_ms, early, policy }
            }
            Logged::DeadLetter { reason, detail, .. } => {
                What::DeadLettered { reason: reason.name().into(), detail: Some(detail.into()), policy }
            }
            // The wait after a failed action goes on.
            Logged::Keep { failure: None, .. } => return,
        };
        // A later check knows the due time better: it counts from the message's first receive.
        let is_later_check = match (self.steps.last().map(|step| &step.what), &what) {
            (Some(What::Held { retry: known, .. }), What::Held { .. })
            | (Some(What::Waits { retry: known, .. }), What::Waits { .. }) => *known == retry,
            _ => false,
        };
        match self.steps.last_mut().filter(|_| is_later_check) {
            Some(step) => step.what = what,
            None => self.steps.push(Step { at, what }),
        }
    }

    /// Every line of a message says which attempt failed; only the first makes a step.
    fn failure(&mut self, at: Timestamp, event: &LoggedEvent<'_>) {
        let Some(attempt) = event.retry.checked_sub(1) else { return };
        let was_dead_lettered =
            matches!(self.steps.last(), Some(Step { what: What::DeadLettered { .. }, .. }));
        let starts_anew = was_dead_lettered && attempt == 0;
        if starts_anew {
            self.failed.clear();
        }
        let is_copy = self.failed.iter().any(|(retry, _)| *retry == event.retry);
        let request_id = event.request_id.as_deref().map(ToOwned::to_owned);
        if self.failed.insert((event.retry, request_id.clone())) {
            self.copies += usize::from(is_copy);
            let error_type = event.error_type.as_deref().map(Into::into);
            let retry_after_ignored = event.retry_after_ignored.as_deref().map(Into::into);
            let failed = What::Failed { attempt, request_id, error_type, retry_after_ignored };
            let what = if starts_anew { What::Redriven } else { failed };
            self.steps.push(Step { at, what });
        }
    }
}

impl What {
    fn kept(cause: Option<Cause>, LoggedFailure { problem, remedy }: LoggedFailure<'_>) -> Self {
        Self::Kept { cause, problem: problem.into(), remedy: remedy.map(Into::into) }
    }
}

impl From<LoggedEarly<'_>> for Early {
    fn from(LoggedEarly { otherwise_due, asked_at, asked_by }: LoggedEarly<'_>) -> Self {
        Self { asked_at, asked_by: asked_by.map(Into::into), otherwise_due }
    }
}

impl End {
    /// `None` without a line. Lines of an earlier failure may be missing, so only the latest counts, with its copies.
    fn of(lines: &[LogLine<'_>]) -> Option<Self> {
        let mut log = LogFold::new(RandomState::new());
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
        Some(match &settling.what {
            Logged::Reinvoke { invoke_request_id, .. } => {
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
    use crate::operate::log::tests::test_line;
    use crate::operate::trace::text::sentence;

    /// A line of the event k-1, whose first attempt was r-0, at that second.
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

    fn story(lines: Vec<LogLine<'_>>) -> Story {
        Story::of(lines).unwrap()
    }

    fn steps(story: &Story) -> Vec<String> {
        let name =
            |step: &Step| serde_json::to_value(&step.what).unwrap()["what"].as_str().unwrap().to_owned();
        story.steps.iter().map(name).collect()
    }

    #[test]
    fn an_event_fails_waits_and_is_invoked() {
        let story = story(vec![invokes(13, 1, 12), defers(10, 1, 12), defers(20, 2, 30)]);
        assert_eq!(steps(&story), ["failed", "waits", "invoked", "failed", "waits"]);
        assert_eq!(story.end, End::Waiting { due: Timestamp::from_secs(30) });
        assert_eq!(story.request_ids().collect::<Vec<_>>(), ["r-0", "r-1"]);
        let What::Failed { attempt, error_type, .. } = &story.steps[3].what else { panic!("{story:?}") };
        assert_eq!((*attempt, error_type.as_deref()), (1, Some("TargetDown")));
        let What::Invoked { late_ms, .. } = story.steps[2].what else { panic!("{story:?}") };
        assert_eq!(late_ms, Some(1_000));
        assert_eq!(story.copies, 0);
    }

    /// It was due when it was requested, and the handler found the request at its next check.
    #[test]
    fn an_early_retry_is_late_only_after_its_own_time() {
        for (otherwise_due, expected) in [(20_000, 0), (1_000, 813_000)] {
            let early = json!({
                "action": "reinvoke", "due": Timestamp::from_secs(1_000), "asked_at": Timestamp::from_secs(1_000),
                "otherwise_due": Timestamp::from_secs(otherwise_due),
            });
            let story = story(vec![defers(10, 1, 20_000), line(1_813, 1, early)]);
            let What::Invoked { late_ms, .. } = story.steps[2].what else { panic!("{story:?}") };
            assert_eq!(late_ms, Some(expected));
        }
    }

    #[test]
    fn an_ignored_wait_is_named_with_its_failure() {
        let mut first = defers(10, 1, 90);
        event_of(&mut first).retry_after_ignored = Some("\"soon\": why".into());
        let story = story(vec![first]);
        let step = &story.steps[0];
        let What::Failed { retry_after_ignored, .. } = &step.what else { panic!("{step:?}") };
        assert_eq!(retry_after_ignored.as_deref(), Some("\"soon\": why"));
        let sentence = anstream::adapter::strip_str(&sentence(step)).to_string();
        assert!(sentence.contains(", whose wait was ignored: \"soon\": why"), "{sentence}");
    }

    /// Its policy changed while it waited.
    #[test]
    fn the_policy_of_the_last_check_gave_the_due_time() {
        let by = |mut line: LogLine<'static>, policy: &str| {
            event_of(&mut line).policy = Some(policy.to_owned().into());
            line
        };
        let story = story(vec![by(defers(10, 1, 90), "o*"), by(defers(60, 1, 70), "orders")]);
        let policy = Some("orders".to_owned());
        assert_eq!(
            story.steps[1].what,
            What::Waits { retry: 1, due: Timestamp::from_secs(70), due_by: DueBy::Policy, policy }
        );
    }

    /// No line came after it, so nothing more is known.
    #[test]
    fn after_an_invocation_nothing_is_claimed() {
        let story = story(vec![defers(10, 1, 12), invokes(13, 1, 12)]);
        assert_eq!(story.end, End::Invoked { request_id: Some("r-1".into()), at: Timestamp::from_secs(13) });
    }

    /// The batch with the deferral ended later than the one with the re-invocation.
    #[test]
    fn a_late_line_does_not_make_a_settled_event_wait() {
        let story = story(vec![defers(10, 1, 12), invokes(13, 1, 12), defers(15, 1, 12)]);
        assert!(matches!(story.end, End::Invoked { .. }), "{:?}", story.end);
    }

    #[test]
    fn a_message_that_comes_back_early_waits_once() {
        let story = story(vec![defers(10, 1, 51), defers(20, 1, 50), defers(30, 1, 50), invokes(50, 1, 50)]);
        assert_eq!(steps(&story), ["failed", "waits", "invoked"]);
        assert_eq!(
            story.steps[1].what,
            What::Waits { retry: 1, due: Timestamp::from_secs(50), due_by: DueBy::Policy, policy: None }
        );
    }

    /// It was moved while it waited, which has no line of its own.
    #[test]
    fn an_invocation_alone_tells_the_failure_before_it() {
        let story = story(vec![invokes(50, 3, 50)]);
        assert_eq!(steps(&story), ["failed", "invoked"]);
        assert!(matches!(story.steps[0].what, What::Failed { attempt: 2, .. }));
    }

    #[test]
    fn a_pause_is_one_step_however_often_the_event_is_checked() {
        let hold =
            |second| line(second, 1, json!({"action": "hold", "due": Timestamp::from_secs(12), "delay": 60}));
        let held = story(vec![defers(10, 1, 12), hold(12), hold(1_356), hold(2_700)]);
        assert_eq!(steps(&held), ["failed", "waits", "held"]);
        assert_eq!(held.steps[2].what, What::Held { retry: 1, last: Timestamp::from_secs(2_700) });
        assert_eq!(held.end, End::Held);
    }

    #[test]
    fn a_failed_action_has_its_remedy_beside_it() {
        let refused = json!({"action": "keep", "cause": "refused", "problem": "denied", "remedy": "allow it", "delay": 4});
        let kept = story(vec![defers(10, 1, 12), line(12, 1, refused)]);
        assert_eq!(steps(&kept), ["failed", "waits", "kept"]);
        assert_eq!(kept.end, End::Kept);
        // A dead-letter that could not be sent is not the end.
        let unsent = json!({"action": "keep", "cause": "dead_letter_not_sent", "reason": "max_retries", "problem": "denied"});
        assert_eq!(story(vec![line(12, 1, unsent)]).end, End::Kept);
    }

    #[test]
    fn a_dead_letter_is_the_end_until_it_is_redriven() {
        let end = story(vec![defers(10, 2, 12), dead_letters(12, 3)]);
        assert_eq!(end.end, End::DeadLettered, "its last re-invocation has no line");
        let redriven = |mut line: LogLine<'static>| {
            event_of(&mut line).first_failure = Timestamp::from_secs(700);
            line
        };
        let anew = [defers(90, 1, 91), invokes(91, 1, 91)].map(redriven);
        let anew = story([vec![defers(10, 2, 12), dead_letters(12, 3)], anew.into()].concat());
        assert!(matches!(anew.end, End::Invoked { .. }), "{:?}", anew.end);
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
