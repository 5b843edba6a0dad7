use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::guarded::{Answer, panicked};
use super::hiding::after_failure;
use crate::account::{CallFailure, VisibilityChange};
use crate::dead_letter::DeadLetter;
use crate::message::event::FailedEvent;
use crate::report::{Outcome, Retry, Step};
use crate::{Reason, Record, Timestamp};

/// A message whose deferral or re-invocation, if it had one, was answered.
pub(super) enum Answered<'a> {
    Ended(Outcome<'a>),
    DeadLetter(GivenUp<'a>),
    Failed(Failed<'a>),
}

/// A message whose dead-letter, if it had one, was answered as well.
pub(super) enum Sent<'a> {
    Ended(Outcome<'a>),
    Failed(Failed<'a>),
}

/// To be sent to the dead-letter queue.
pub(super) struct GivenUp<'a> {
    attempt: Attempt<'a>,
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
            Ok(letter) => Answered::DeadLetter(Self { attempt, letter }),
            Err(problem) => Answered::Failed(attempt.failed(problem)),
        }
    }

    pub(super) fn answered(self, answer: Answer) -> Sent<'a> {
        match answer {
            Ok(()) => Sent::Ended(self.attempt.outcome(None, None)),
            Err(problem) => Sent::Failed(self.attempt.failed(problem)),
        }
    }
}

/// Kept, and to be hidden for a while, because its step did not work.
pub(super) struct Failed<'a> {
    attempt: Attempt<'a>,
    problem: CallFailure,
    hiding: Duration,
}

impl<'a> Failed<'a> {
    pub(super) fn change(&self) -> VisibilityChange<'a> {
        let receipt_handle = &self.attempt.record.receipt_handle;
        VisibilityChange { receipt_handle, visibility_timeout: self.hiding }
    }

    pub(super) fn answered(self, answer: Answer) -> Outcome<'a> {
        // Without an Ok it is back after the queue's own timeout.
        let hidden_for = answer.ok().map(|()| self.hiding);
        self.attempt.outcome(Some(self.problem), hidden_for)
    }
}

/// A step for a message; none if deciding itself failed.
pub(super) struct Attempt<'a> {
    pub(super) record: &'a Record,
    pub(super) retry: Option<Retry>,
    pub(super) step: Option<Step>,
}

impl<'a> Attempt<'a> {
    pub(super) fn failed(self, problem: CallFailure) -> Failed<'a> {
        let hiding = after_failure(self.record);
        self.hidden(problem, hiding)
    }

    pub(super) fn hidden(self, problem: CallFailure, hiding: Duration) -> Failed<'a> {
        Failed { attempt: self, problem, hiding }
    }

    pub(super) fn outcome(self, problem: Option<CallFailure>, hidden_for: Option<Duration>) -> Outcome<'a> {
        let Self { record, retry, step } = self;
        Outcome { message_id: &record.message_id, retry, step, problem, hidden_for }
    }
}

/// Runs what handles one record so that a bug in it harms no other.
pub(super) fn isolated<O>(work: impl FnOnce() -> O) -> Result<O, CallFailure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked())
}
