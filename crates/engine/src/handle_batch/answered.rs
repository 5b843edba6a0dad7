use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::guarded::{Answer, panicked};
use super::hiding::after_failure;
use super::waiting::{Wait, Waiting};
use crate::account::CallFailure;
use crate::dead_letter::DeadLetter;
use crate::decide::due::is_first_receive;
use crate::message::event::FailedEvent;
use crate::report::{Outcome, Retry, Step};
use crate::{Reason, Record, Timestamp, TraceHeader};

/// A message whose re-invocation, if it had one, was answered.
pub(super) enum Answered<'a> {
    Ended(Outcome<'a>),
    DeadLetter(GivenUp<'a>),
    Waits(Waiting<'a>),
}

/// A message whose dead-letter, if it had one, was answered as well.
pub(super) enum Sent<'a> {
    Ended(Outcome<'a>),
    Waits(Waiting<'a>),
}

impl<'a> Sent<'a> {
    pub(super) const fn waiting(&mut self) -> Option<&mut Waiting<'a>> {
        match self {
            Self::Waits(waiting) => Some(waiting),
            Self::Ended(_) => None,
        }
    }

    pub(super) fn outcome(self) -> Outcome<'a> {
        match self {
            Self::Ended(outcome) => outcome,
            Self::Waits(waiting) => waiting.outcome(),
        }
    }
}

/// To be sent to the dead-letter queue.
pub(super) struct GivenUp<'a> {
    attempt: Attempt<'a>,
    now: Timestamp,
    pub(super) letter: DeadLetter,
}

impl<'a> GivenUp<'a> {
    pub(super) fn of(
        record: &'a Record,
        event: Option<&FailedEvent<'_>>,
        due: Option<Timestamp>,
        reason: Reason,
        now: Timestamp,
    ) -> Answered<'a> {
        let letter = isolated(|| match event {
            Some(event) => event.dead_letter(record, &reason, now),
            None => DeadLetter::verbatim(record, &reason),
        });
        let attempt =
            Attempt { record, retry: event.map(Retry::of), step: Some(Step::DeadLetter { due, reason }) };
        match letter {
            Ok(letter) => Answered::DeadLetter(Self { attempt, now, letter }),
            Err(problem) => Answered::Waits(attempt.failed(problem, now)),
        }
    }

    pub(super) fn answered(self, answer: Answer) -> Sent<'a> {
        match answer {
            Ok(()) => Sent::Ended(self.attempt.outcome(None, None, None)),
            Err(problem) => Sent::Waits(self.attempt.failed(problem, self.now)),
        }
    }
}

/// A step for a message; none if deciding itself failed.
pub(super) struct Attempt<'a> {
    pub(super) record: &'a Record,
    pub(super) retry: Option<Retry>,
    pub(super) step: Option<Step>,
}

impl<'a> Attempt<'a> {
    /// Its step did not work, and it waits for a while.
    pub(super) fn failed(self, problem: CallFailure, now: Timestamp) -> Waiting<'a> {
        let wait = Wait::from(now, after_failure(self.record));
        Waiting::new(self, Some(problem), wait)
    }

    pub(super) fn outcome(
        self,
        problem: Option<CallFailure>,
        hidden_for: Option<Duration>,
        moved: Option<Duration>,
    ) -> Outcome<'a> {
        let Self { record, retry, step } = self;
        Outcome {
            message_id: &record.message_id,
            retry,
            step,
            invoke_request_id: None,
            problem,
            hidden_for,
            moved,
            is_copy: record.moved.is_some(),
            is_first_receive: is_first_receive(record),
            trace: TraceHeader::of(record).map(TraceHeader::root),
        }
    }

    /// Its re-invocation was accepted.
    pub(super) fn invoked(self, invoke_request_id: Option<String>) -> Outcome<'a> {
        Outcome { invoke_request_id, ..self.outcome(None, None, None) }
    }
}

/// Runs what handles one record so that a bug in it harms no other.
pub(super) fn isolated<O>(work: impl FnOnce() -> O) -> Result<O, CallFailure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked())
}
