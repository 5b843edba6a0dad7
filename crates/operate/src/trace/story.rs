use std::collections::BTreeSet;

use comeback_engine::Timestamp;
use serde::{Serialize, Serializer};

use crate::trace::line::HandlerLine;

/// What happened to one event, as the handler logged it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Story {
    /// The same on every retry of the event.
    pub key: String,
    /// The function that is retried.
    pub target: String,
    /// When the event first failed.
    #[serde(serialize_with = "optional_text")]
    pub first_failure: Option<Timestamp>,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// How it stands.
    pub end: End,
    /// Failures of an attempt beyond its first: copies of the event, each with retries of its own.
    pub copies: usize,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// When the handler logged it.
    #[serde(serialize_with = "text")]
    pub at: Timestamp,
    /// What it was.
    #[serde(flatten)]
    pub what: What,
}

/// A kind of step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// An attempt had failed. Its failure reached the handler at this time.
    Failed {
        /// 0 for the first invocation, then the retry's number.
        attempt: u64,
        /// Of the attempt, if its record has it.
        request_id: Option<String>,
        /// What it failed with, if that is known.
        error_type: Option<String>,
    },
    /// It was given up before, and an operator sent it back: its retries start anew.
    Redriven,
    /// It waits for a retry.
    Waits {
        /// The retry's number.
        retry: u64,
        /// When the retry is due.
        #[serde(serialize_with = "text")]
        due: Timestamp,
    },
    /// Its retry is due, and its function is paused.
    Held {
        /// The retry's number.
        retry: u64,
        /// When it was looked at last.
        #[serde(serialize_with = "text")]
        last: Timestamp,
    },
    /// The target was invoked again.
    Invoked {
        /// The retry's number.
        retry: u64,
        /// Of the invocation.
        request_id: Option<String>,
        /// How long after it was due, in milliseconds.
        late_ms: Option<u64>,
    },
    /// A step did not work, and the event was kept.
    Kept {
        /// The step: `defer`, `reinvoke`, …
        action: String,
        /// What went wrong.
        problem: String,
        /// What an operator can do about it, where that is known.
        remedy: Option<String>,
    },
    /// It was dead-lettered.
    GivenUp {
        /// The dead-letter's reason.
        reason: String,
        /// The reason in words.
        detail: Option<String>,
    },
}

/// How an event stands, after its last line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum End {
    /// It waits for a retry, or has since become due.
    Waiting {
        /// When the retry is due.
        #[serde(serialize_with = "text")]
        due: Timestamp,
    },
    /// Its function is paused.
    Held,
    /// It was invoked, and nothing was heard of it since: a success leaves no line.
    Invoked {
        /// Of the invocation.
        request_id: Option<String>,
        /// When.
        #[serde(serialize_with = "text")]
        at: Timestamp,
    },
    /// A step did not work, and the event comes back.
    Kept,
    /// It was dead-lettered.
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

/// Makes steps of lines.
#[derive(Default)]
struct Teller {
    steps: Vec<Step>,
    /// The attempts whose failure was seen: the retry that follows, and the attempt's own id.
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

    /// Every line of a message says which attempt had failed; the first of them tells it.
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

/// RFC 3339.
pub(crate) fn text<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

pub(crate) fn optional_text<S: Serializer>(
    time: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.collect_str(time),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests;
