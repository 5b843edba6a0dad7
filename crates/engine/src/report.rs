use std::time::Duration;

use crate::account::CallFailure;
use crate::decide::{Action, Decision};
use crate::{Reason, Record, Timestamp};

/// What became of a batch, one [`Outcome`] a message.
#[derive(Clone, Debug)]
pub struct BatchReport<'a> {
    /// In the order of the batch; of a message delivered twice in it, the later copy.
    pub outcomes: Vec<Outcome<'a>>,
}

impl BatchReport<'_> {
    /// The ids for `batchItemFailures`: every message that SQS must keep.
    pub fn batch_item_failures(&self) -> impl Iterator<Item = &str> {
        self.outcomes.iter().filter(|outcome| !outcome.settled).map(|outcome| outcome.message_id)
    }
}

/// The step that was taken, or tried, for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Hide it and keep it.
    Defer,
    /// Call the target again.
    Reinvoke,
    /// Send it to the dead-letter queue.
    DeadLetter,
}

impl Step {
    /// `defer`, `reinvoke` or `dead_letter`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Defer => "defer",
            Self::Reinvoke => "reinvoke",
            Self::DeadLetter => "dead_letter",
        }
    }
}

/// What was decided for a message and whether it worked; everything a log line needs.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// SQS's id.
    pub message_id: &'a str,
    /// The target; `None` if the message could not be understood.
    pub function_arn: Option<String>,
    /// The retry it is about; `None` likewise.
    pub retry: Option<u64>,
    /// The step; `None` only if deciding itself failed.
    pub step: Option<Step>,
    /// When the retry is due.
    pub due: Option<Timestamp>,
    /// The visibility timeout asked for, be it as the step or because the step did not work.
    pub delay: Option<Duration>,
    /// Why the event is given up.
    pub reason: Option<Reason>,
    /// What went wrong with the step.
    pub problem: Option<CallFailure>,
    /// Re-invoked or dead-lettered. Anything else is reported failed, so that SQS keeps it.
    pub settled: bool,
}

impl<'a> Outcome<'a> {
    pub(crate) fn of(record: &'a Record, decision: &Decision<'a>) -> Self {
        let (step, delay, reason) = match &decision.action {
            Action::Defer { visibility_timeout } => (Step::Defer, Some(*visibility_timeout), None),
            Action::Reinvoke(_) => (Step::Reinvoke, None, None),
            Action::DeadLetter(reason) => (Step::DeadLetter, None, Some(reason.clone())),
        };
        Self {
            step: Some(step),
            function_arn: decision.event.as_ref().map(|event| event.function_arn.to_string()),
            retry: decision.event.as_ref().map(|event| event.retry),
            due: decision.due,
            delay,
            reason,
            ..Self::undecided(record)
        }
    }

    pub(crate) fn undecided(record: &'a Record) -> Self {
        Self {
            message_id: &record.message_id,
            function_arn: None,
            retry: None,
            step: None,
            due: None,
            delay: None,
            reason: None,
            problem: None,
            settled: false,
        }
    }
}
