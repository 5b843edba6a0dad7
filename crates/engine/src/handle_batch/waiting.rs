use std::time::Duration;

use super::answered::Attempt;
use super::guarded::Answer;
use super::hiding::after_lost_copy;
use super::hop::{hop, hops};
use crate::account::{CallFailure, Move, VisibilityChange};
use crate::dead_letter::SQS_MESSAGE_BYTES;
use crate::message::moved::Moved;
use crate::report::Outcome;
use crate::{Pauses, Policy, Record, Timestamp};

/// A message that is kept: because its backoff is not over, or because its step did not work. Its wait is
/// performed by hiding it, or by moving it.
pub(super) struct Waiting<'a> {
    attempt: Attempt<'a>,
    /// Why its step did not work.
    problem: Option<CallFailure>,
    wait: Wait,
    performed: Performed,
}

/// For how long a message is kept.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    /// Whole seconds, 1 to 43,170: as much of the wait as SQS can hide the message for.
    pub(super) visibility_timeout: Duration,
    /// All of the wait, from now.
    pub(super) left: Duration,
    /// The end of a wait that the message itself does not show; the copy has to carry it.
    pub(super) not_before: Option<Timestamp>,
}

enum Performed {
    NotYet,
    Hidden(Answer),
    /// Sent again with this delay.
    Moved(Duration),
}

impl Wait {
    /// For some whole seconds from now, for a reason that the message itself does not show.
    pub(super) fn from(now: Timestamp, wait: Duration) -> Self {
        Self { visibility_timeout: wait, left: wait, not_before: Some(now.saturating_add(wait)) }
    }
}

impl<'a> Waiting<'a> {
    pub(super) fn new(attempt: Attempt<'a>, problem: Option<CallFailure>, wait: Wait) -> Self {
        Self { attempt, problem, wait, performed: Performed::NotYet }
    }

    pub(super) const fn is_due_to_wait(&self) -> bool {
        matches!(self.performed, Performed::NotYet)
    }

    /// What it costs to wait by moves, in bytes to be sent; `None` if SQS would refuse the copy.
    pub(super) fn cost_of_moves(&self) -> Option<u64> {
        let bytes = self.copy().size();
        (bytes <= SQS_MESSAGE_BYTES).then(|| hops(self.wait.left) * bytes as u64)
    }

    pub(super) fn change(&self) -> VisibilityChange<'a> {
        let receipt_handle = &self.record().receipt_handle;
        VisibilityChange { receipt_handle, visibility_timeout: self.wait.visibility_timeout }
    }

    pub(super) fn copy(&self) -> Move<'a> {
        let attribute = Moved::next(self.record(), self.wait.not_before, self.problem.is_none());
        Move { record: self.record(), attribute, delay: hop(self.wait.left) }
    }

    /// Its copy may be on its way. The message itself comes back late, in case it is not.
    pub(super) fn hide_after_lost_copy(&mut self, policy: &Policy, pauses: &Pauses, now: Timestamp) {
        let lost = after_lost_copy(self.record(), policy, pauses, now);
        self.wait.visibility_timeout = self.wait.visibility_timeout.max(lost);
        if let Some(step) = &mut self.attempt.step {
            step.hide_for(self.wait.visibility_timeout);
        }
    }

    pub(super) fn hidden(&mut self, answer: Answer) {
        self.performed = Performed::Hidden(answer);
    }

    pub(super) fn moved(&mut self, delay: Duration) {
        self.performed = Performed::Moved(delay);
    }

    pub(super) fn outcome(self) -> Outcome<'a> {
        let Self { attempt, problem, wait, performed } = self;
        match (performed, problem) {
            (Performed::Moved(delay), problem) => attempt.outcome(problem, None, Some(delay)),
            // Without an Ok it is back after the queue's own timeout.
            (Performed::Hidden(answer), None) => attempt.outcome(answer.err(), None, None),
            (Performed::Hidden(Ok(())), problem) => {
                attempt.outcome(problem, Some(wait.visibility_timeout), None)
            }
            (Performed::Hidden(Err(_)) | Performed::NotYet, problem) => attempt.outcome(problem, None, None),
        }
    }

    pub(super) const fn record(&self) -> &'a Record {
        self.attempt.record
    }
}
