use std::time::Duration;

use crate::account::CallFailure;
use crate::message::event::FailedEvent;
use crate::{Reason, Timestamp};

/// What became of a batch, one [`Outcome`] a message.
#[derive(Clone, Debug)]
pub struct BatchReport<'a> {
    /// In the order of the batch; of a message delivered twice in it, the later copy.
    pub outcomes: Vec<Outcome<'a>>,
}

impl BatchReport<'_> {
    /// The ids for `batchItemFailures`: every message that SQS must keep.
    pub fn batch_item_failures(&self) -> impl Iterator<Item = &str> {
        self.outcomes.iter().filter(|outcome| !outcome.settled()).map(|outcome| outcome.message_id)
    }
}

/// What was decided for a message and whether it worked; everything a log line needs.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// SQS's id.
    pub message_id: &'a str,
    /// The retry it is about; `None` if the message could not be understood.
    pub retry: Option<Retry>,
    /// The step; `None` only if deciding itself failed.
    pub step: Option<Step>,
    /// What went wrong with the step.
    pub problem: Option<CallFailure>,
    /// For how long the message was hidden because its step did not work; `None` if the step worked, or
    /// the hiding did not work either.
    pub hidden_for: Option<Duration>,
}

/// A retry of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The target.
    pub function_arn: String,
    /// 1 for the first.
    pub number: u64,
}

/// The step that was taken, or tried, for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Hide it and keep it.
    Defer {
        /// When the retry is due.
        due: Timestamp,
        /// For how long it is hidden.
        visibility_timeout: Duration,
    },
    /// Hide it and keep it, without a decision: no function may be re-invoked yet.
    Keep {
        /// For how long it is hidden.
        visibility_timeout: Duration,
    },
    /// Call the target again.
    Reinvoke {
        /// When the retry was due.
        due: Timestamp,
    },
    /// Send it to the dead-letter queue.
    DeadLetter {
        /// When the retry was due, if it was the target that refused it.
        due: Option<Timestamp>,
        /// Why the event is given up.
        reason: Reason,
    },
}

impl Step {
    /// `defer`, `keep`, `reinvoke` or `dead_letter`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Defer { .. } => "defer",
            Self::Keep { .. } => "keep",
            Self::Reinvoke { .. } => "reinvoke",
            Self::DeadLetter { .. } => "dead_letter",
        }
    }
}

impl Outcome<'_> {
    /// Re-invoked or dead-lettered. Anything else is reported failed, so that SQS keeps it.
    pub const fn settled(&self) -> bool {
        match self.step {
            Some(Step::Reinvoke { .. } | Step::DeadLetter { .. }) => self.problem.is_none(),
            Some(Step::Defer { .. } | Step::Keep { .. }) | None => false,
        }
    }

    /// When the retry is due.
    pub const fn due(&self) -> Option<Timestamp> {
        match self.step {
            Some(Step::Defer { due, .. } | Step::Reinvoke { due }) => Some(due),
            Some(Step::DeadLetter { due, .. }) => due,
            Some(Step::Keep { .. }) | None => None,
        }
    }

    /// Why the event is given up.
    pub const fn reason(&self) -> Option<&Reason> {
        match &self.step {
            Some(Step::DeadLetter { reason, .. }) => Some(reason),
            _ => None,
        }
    }

    /// The visibility timeout, either of the step or because the step did not work.
    pub const fn visibility_timeout(&self) -> Option<Duration> {
        match self.step {
            Some(Step::Defer { visibility_timeout, .. } | Step::Keep { visibility_timeout }) => {
                Some(visibility_timeout)
            }
            _ => self.hidden_for,
        }
    }
}

impl Retry {
    pub(crate) fn of(event: &FailedEvent<'_>) -> Self {
        Self { function_arn: event.function_arn.to_string(), number: event.retry }
    }
}
