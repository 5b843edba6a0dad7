use std::time::Duration;

use crate::account::CallFailure;
use crate::message::event::FailedEvent;
use crate::{Directive, Pause, Reason, Timestamp};

/// What became of a batch, one [`Outcome`] a message.
#[derive(Clone, Debug)]
pub struct BatchReport<'a> {
    /// In the order of the batch; of a message delivered twice in it, the later copy.
    pub outcomes: Vec<Outcome<'a>>,
    /// The messages that were to be moved.
    pub moves: Moves,
    /// Why a look at the queue gave no count. There is no room for hidden messages then, until the next.
    pub look_failure: Option<CallFailure>,
    /// What a read of the pauses gave, if there was one.
    pub pauses: Option<PausesRead>,
}

/// What a read of the pauses gave.
#[derive(Clone, Debug, PartialEq)]
pub enum PausesRead {
    /// The pauses.
    Known {
        /// Those that are open for over 24 hours: they may have been forgotten.
        long: Vec<Pause>,
    },
    /// Nothing. What was known before still counts.
    AsBefore(CallFailure),
    /// Nothing, as ever in this environment. Any function may be paused, so none is invoked, and no event is
    /// too old.
    Unknown(CallFailure),
}

/// What became of a batch's moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Sent again, each with a delay.
    pub made: usize,
    /// Hidden instead, because they could not be sent.
    pub failed: usize,
    /// Why the first of those could not be sent.
    pub problem: Option<CallFailure>,
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
    /// The request id of the invocation that was just made; `None` if none was accepted, or Lambda did not
    /// name it.
    pub invoke_request_id: Option<String>,
    /// What went wrong with the step.
    pub problem: Option<CallFailure>,
    /// For how long the message was hidden because its step did not work; `None` if the step worked, or
    /// the hiding did not work either.
    pub hidden_for: Option<Duration>,
    /// The delay with which it was sent again instead of being hidden. The copy takes its place.
    pub moved: Option<Duration>,
    /// Whether the message at hand is such a copy itself.
    pub is_copy: bool,
    /// Whether nobody has received it before: the event has just failed.
    pub is_first_receive: bool,
    /// The id of the X-Ray trace that it belongs to, and its re-invocation with it.
    pub trace: Option<&'a str>,
}

/// A retry of an event, and by what the event is found in the logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The target.
    pub function_arn: String,
    /// 1 for the first.
    pub number: u64,
    /// The event's `origin_request_id`: the same on every retry.
    pub key: String,
    /// The request id of the invocation that failed before this retry, if the record names it.
    pub request_id: Option<String>,
    /// The type of the error that it failed with, where that is known.
    pub error_type: Option<String>,
    /// What the function says of its retries by that error, unless `DIRECTIVES` is off.
    pub directive: Option<Directive>,
    /// When the event first failed, to the second.
    pub first_failure: Timestamp,
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
    /// Hide it and keep it, without a decision: no function may be re-invoked yet, the wait after an earlier
    /// step that did not work is not over, or it is not known whether its function is paused.
    Keep {
        /// For how long it is hidden.
        visibility_timeout: Duration,
    },
    /// Hide it and keep it, because its function is paused.
    Hold {
        /// When the retry was due.
        due: Timestamp,
        /// For how long it is hidden, until the next look.
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
    /// `defer`, `keep`, `hold`, `reinvoke` or `dead_letter`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Defer { .. } => "defer",
            Self::Keep { .. } => "keep",
            Self::Hold { .. } => "hold",
            Self::Reinvoke { .. } => "reinvoke",
            Self::DeadLetter { .. } => "dead_letter",
        }
    }

    /// For how long the message is hidden, if it is kept.
    const fn visibility_timeout(&self) -> Option<Duration> {
        match self {
            Self::Defer { visibility_timeout, .. }
            | Self::Keep { visibility_timeout }
            | Self::Hold { visibility_timeout, .. } => Some(*visibility_timeout),
            Self::Reinvoke { .. } | Self::DeadLetter { .. } => None,
        }
    }

    /// Hides a message that is kept for so long instead.
    pub(crate) const fn hide_for(&mut self, longer: Duration) {
        match self {
            Self::Defer { visibility_timeout, .. }
            | Self::Keep { visibility_timeout }
            | Self::Hold { visibility_timeout, .. } => *visibility_timeout = longer,
            Self::Reinvoke { .. } | Self::DeadLetter { .. } => {}
        }
    }
}

impl Outcome<'_> {
    /// Re-invoked, dead-lettered or moved. Anything else is reported failed, so that SQS keeps it.
    pub const fn settled(&self) -> bool {
        if self.moved.is_some() {
            return true;
        }
        match self.step {
            Some(Step::Reinvoke { .. } | Step::DeadLetter { .. }) => self.problem.is_none(),
            Some(Step::Defer { .. } | Step::Keep { .. } | Step::Hold { .. }) | None => false,
        }
    }

    /// Whether nothing but its wait goes on: a copy that was moved once more.
    pub const fn only_waits_on(&self) -> bool {
        self.is_copy && self.moved.is_some() && self.problem.is_none()
    }

    /// When the retry is due.
    pub const fn due(&self) -> Option<Timestamp> {
        match self.step {
            Some(Step::Defer { due, .. } | Step::Hold { due, .. } | Step::Reinvoke { due }) => Some(due),
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

    /// The visibility timeout, either of the step or because the step did not work; `None` if the message
    /// was moved.
    pub fn visibility_timeout(&self) -> Option<Duration> {
        if self.moved.is_some() {
            return None;
        }
        self.step.as_ref().and_then(Step::visibility_timeout).or(self.hidden_for)
    }
}

impl Retry {
    pub(crate) fn of(event: &FailedEvent<'_>) -> Self {
        Self {
            function_arn: event.function_arn.to_string(),
            number: event.retry,
            key: event.origin_request_id.clone(),
            request_id: event.request_id.clone(),
            error_type: event.error_type().map(Into::into),
            directive: event.directive,
            first_failure: event.first_failure,
        }
    }
}
