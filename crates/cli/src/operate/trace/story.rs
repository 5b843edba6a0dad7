//! The handler's lines about one event, in order, as what happened to it.

use std::collections::BTreeSet;

use comeback_engine::Timestamp;
use serde::Serialize;

use crate::operate::log::HandlerLine;

/// What happened to one event, as the handler logged it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Story {
    pub(crate) key: String,
    pub(crate) target: String,
    pub(crate) first_failure: Option<Timestamp>,
    pub(crate) steps: Vec<Step>,
    pub(crate) end: End,
    /// Failures of an attempt beyond its first: copies of the event, each with retries of its own.
    pub(crate) copies: usize,
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
    },
    /// It was given up before, and an operator sent it back: its retries start anew.
    Redriven,
    Waits {
        retry: u64,
        due: Timestamp,
    },
    Held {
        retry: u64,
        last: Timestamp,
    },
    Invoked {
        retry: u64,
        request_id: Option<String>,
        late_ms: Option<u64>,
    },
    Kept {
        /// The step: `defer`, `reinvoke`, …
        action: String,
        problem: String,
        /// What an operator can do about it, where that is known.
        remedy: Option<String>,
    },
    GivenUp {
        reason: String,
        detail: Option<String>,
    },
}

/// The event's state after its last line.
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
    GivenUp,
}

impl Story {
    /// Puts the lines of one event in order; `None` if there are none.
    pub(crate) fn of(mut lines: Vec<HandlerLine>) -> Option<Self> {
        lines.sort_by_key(HandlerLine::at);
        let key = lines.first()?.key.clone();
        let target = lines.iter().map(|line| &line.target).find(|target| !target.is_empty())?.clone();
        let first_failure = lines.iter().filter_map(|line| line.first_failure).min();
        let mut teller = Teller::default();
        lines.into_iter().for_each(|line| teller.take(line));
        let Teller { steps, copies, .. } = teller;
        let end = End::after(steps.last()?);
        Some(Self { key, target, first_failure, steps, end, copies })
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

#[derive(Default)]
struct Teller {
    steps: Vec<Step>,
    /// Attempts that were seen to fail: the number of the next retry, and the attempt's own request id.
    failed: BTreeSet<(u64, Option<String>)>,
    copies: usize,
}

impl Teller {
    fn take(&mut self, line: HandlerLine) {
        self.failure(&line);
        let at = line.at();
        let what = self.what(line);
        if let Some(what) = what {
            self.steps.push(Step { at, what });
        }
    }

    /// Every line of a message says which attempt failed; only the first makes a step.
    fn failure(&mut self, line: &HandlerLine) {
        let Some(attempt) = line.retry.checked_sub(1) else { return };
        let was_given_up = matches!(self.steps.last(), Some(Step { what: What::GivenUp { .. }, .. }));
        if was_given_up && attempt == 0 {
            self.failed.clear();
            self.failed.insert((line.retry, line.request_id.clone()));
            self.steps.push(Step { at: line.at(), what: What::Redriven });
            return;
        }
        let is_known = self.failed.iter().any(|(retry, _)| *retry == line.retry);
        if self.failed.insert((line.retry, line.request_id.clone())) {
            self.copies += usize::from(is_known);
            let (request_id, error_type) = (line.request_id.clone(), line.error_type.clone());
            self.steps.push(Step { at: line.at(), what: What::Failed { attempt, request_id, error_type } });
        }
    }

    /// What a line adds, unless it only repeats the step before it.
    fn what(&mut self, line: HandlerLine) -> Option<What> {
        let (at, retry) = (line.at(), line.retry);
        if let (true, Some(reason)) = (line.problem.is_none(), line.reason) {
            return Some(What::GivenUp { reason, detail: line.detail });
        }
        if let Some(problem) = line.problem {
            return Some(What::Kept { action: line.action, problem, remedy: line.remedy });
        }
        match (line.action.as_str(), line.due) {
            ("reinvoke", due) => {
                let late_ms = due.and_then(|due| u64::try_from(at.since(due).as_millis()).ok());
                Some(What::Invoked { retry, request_id: line.invoke_request_id, late_ms })
            }
            ("hold", _) => match self.steps.last_mut() {
                Some(Step { what: What::Held { retry: held, last }, .. }) if *held == retry => {
                    *last = at;
                    None
                }
                _ => Some(What::Held { retry, last: at }),
            },
            // A later look knows the due time better: it counts from the message's first receive.
            ("defer", Some(due)) => match self.steps.last_mut() {
                Some(Step { what: What::Waits { retry: waiting, due: known }, .. }) if *waiting == retry => {
                    *known = due;
                    None
                }
                _ => Some(What::Waits { retry, due }),
            },
            // The wait after a step that did not work goes on.
            _ => None,
        }
    }
}

impl End {
    fn after(last: &Step) -> Self {
        match &last.what {
            What::Waits { due, .. } => Self::Waiting { due: *due },
            What::Held { .. } => Self::Held,
            What::Invoked { request_id, .. } => Self::Invoked { request_id: request_id.clone(), at: last.at },
            What::GivenUp { .. } => Self::GivenUp,
            What::Kept { .. } | What::Failed { .. } | What::Redriven => Self::Kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A line of the event k-1, whose first attempt was r-0, at that second.
    fn line(second: u64, retry: u64, more: Value) -> HandlerLine {
        let mut line = json!({
            "timestamp": Timestamp::from_secs(second).to_string(), "key": "k-1", "target": "arn:f", "retry": retry,
            "request_id": format!("r-{}", retry - 1),
        });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        HandlerLine::read(&line.to_string()).unwrap()
    }

    fn defers(second: u64, retry: u64, due: u64) -> HandlerLine {
        let due = Timestamp::from_secs(due).to_string();
        line(second, retry, json!({"action": "defer", "due": due, "error_type": "TargetDown"}))
    }

    fn invokes(second: u64, retry: u64, due: u64) -> HandlerLine {
        let (due, id) = (Timestamp::from_secs(due).to_string(), format!("r-{retry}"));
        line(
            second,
            retry,
            json!({"action": "reinvoke", "due": due, "invoke_request_id": id, "error_type": "TargetDown"}),
        )
    }

    fn gives_up(second: u64, retry: u64) -> HandlerLine {
        line(
            second,
            retry,
            json!({"action": "dead_letter", "reason": "max_retries", "detail": "2 retries made"}),
        )
    }

    fn story(lines: Vec<HandlerLine>) -> Story {
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

    /// All that is known after it: no line came.
    #[test]
    fn after_an_invocation_nothing_is_claimed() {
        let story = story(vec![defers(10, 1, 12), invokes(13, 1, 12)]);
        assert_eq!(story.end, End::Invoked { request_id: Some("r-1".into()), at: Timestamp::from_secs(13) });
    }

    #[test]
    fn a_message_that_comes_back_early_waits_once() {
        let story = story(vec![defers(10, 1, 51), defers(20, 1, 50), defers(30, 1, 50), invokes(50, 1, 50)]);
        assert_eq!(steps(&story), ["failed", "waits", "invoked"]);
        assert_eq!(story.steps[1].what, What::Waits { retry: 1, due: Timestamp::from_secs(50) });
    }

    /// It was moved while it waited, which has no line of its own.
    #[test]
    fn an_invocation_alone_tells_the_failure_before_it() {
        let story = story(vec![invokes(50, 3, 50)]);
        assert_eq!(steps(&story), ["failed", "invoked"]);
        assert!(matches!(story.steps[0].what, What::Failed { attempt: 2, .. }));
    }

    #[test]
    fn a_pause_is_one_step_however_often_the_event_is_looked_at() {
        let hold = |second| line(second, 1, json!({"action": "hold"}));
        let held = story(vec![defers(10, 1, 12), hold(12), hold(1_356), hold(2_700)]);
        assert_eq!(steps(&held), ["failed", "waits", "held"]);
        assert_eq!(held.steps[2].what, What::Held { retry: 1, last: Timestamp::from_secs(2_700) });
        assert_eq!(held.end, End::Held);
    }

    #[test]
    fn a_step_that_did_not_work_has_its_remedy_beside_it() {
        let refused =
            json!({"action": "reinvoke", "problem": "AccessDenied", "remedy": "allow it", "delay": 4});
        let kept = story(vec![defers(10, 1, 12), line(12, 1, refused)]);
        assert_eq!(steps(&kept), ["failed", "waits", "kept"]);
        assert_eq!(kept.end, End::Kept);
        // A dead-letter that could not be sent is not the end.
        let unsent = json!({"action": "dead_letter", "reason": "max_retries", "problem": "AccessDenied"});
        assert_eq!(story(vec![line(12, 1, unsent)]).end, End::Kept);
    }

    #[test]
    fn a_dead_letter_is_the_end_until_it_is_redriven() {
        let end = story(vec![defers(10, 2, 12), gives_up(12, 3)]);
        assert_eq!(end.end, End::GivenUp);
        let anew = story(vec![defers(10, 2, 12), gives_up(12, 3), defers(90, 1, 91), invokes(91, 1, 91)]);
        assert_eq!(steps(&anew), ["failed", "waits", "failed", "given_up", "redriven", "waits", "invoked"]);
    }

    #[test]
    fn two_failures_of_one_attempt_are_copies() {
        let other = line(
            25,
            2,
            json!({"action": "defer", "due": Timestamp::from_secs(40).to_string(), "request_id": "r-9"}),
        );
        let story = story(vec![defers(10, 1, 12), defers(20, 2, 30), other]);
        assert_eq!(story.copies, 1);
    }
}
