use std::panic::{AssertUnwindSafe, catch_unwind};

use super::calls::panicked;
use crate::dead_letter::DeadLetter;
use crate::decide::{Action, Decision, decide};
use crate::ports::{CallFailure, InvokeFailure};
use crate::report::{Outcome, Step};
use crate::{Envelope, Policy, Reason, ReasonCode, Record, Timestamp};

/// A record on its way through the batch.
pub(super) struct Item<'a> {
    pub(super) record: &'a Record,
    /// `None` if deciding panicked.
    decision: Option<Decision<'a>>,
    pub(super) outcome: Outcome<'a>,
    /// The step was tried and did not work, so the message is hidden for a while.
    pub(super) failed: bool,
}

impl<'a> Item<'a> {
    pub(super) fn decided(record: &'a Record, policy: &Policy, now: Timestamp) -> Self {
        let decision = isolated(|| decide(record, policy, now));
        let outcome = match &decision {
            Ok(decision) => Outcome::of(record, decision),
            Err(failure) => Outcome { problem: Some(failure.clone()), ..Outcome::undecided(record) },
        };
        Self { record, failed: decision.is_err(), decision: decision.ok(), outcome }
    }

    /// What to call, and with what.
    pub(super) fn reinvocation(&self) -> (&str, &Envelope<'a>) {
        match &self.decision {
            Some(Decision { event: Some(event), action: Action::Reinvoke(envelope), .. }) => {
                (&event.function_arn, envelope)
            }
            _ => unreachable!("BUG: only decided re-invocations are invoked"),
        }
    }

    /// The dead-letter of an event that is given up.
    pub(super) fn letter(&self, now: Timestamp) -> Result<DeadLetter, CallFailure> {
        let event = self.decision.as_ref().and_then(|decision| decision.event.as_ref());
        let reason = self.outcome.reason.as_ref().expect("BUG: a dead-letter has its reason");
        isolated(|| DeadLetter::new(self.record, event, reason, now))
    }

    pub(super) fn invoked(&mut self, answer: Result<(), InvokeFailure>) {
        match answer {
            Ok(()) => self.settle(Ok(())),
            Err(InvokeFailure::Later(failure)) => self.settle(Err(failure)),
            Err(InvokeFailure::NotFound(cause)) => self.give_up(ReasonCode::TargetNotFound, cause),
            Err(InvokeFailure::TooLarge(cause)) => self.give_up(ReasonCode::PayloadTooLarge, cause),
            Err(InvokeFailure::Refused(cause)) => self.give_up(ReasonCode::TargetRefused, cause),
        }
    }

    pub(super) fn settle(&mut self, answer: Result<(), CallFailure>) {
        self.outcome.settled = answer.is_ok();
        self.failed = answer.is_err();
        self.outcome.problem = answer.err();
    }

    /// The target will never take the event: it is dead-lettered after all.
    fn give_up(&mut self, code: ReasonCode, cause: String) {
        self.outcome.step = Some(Step::DeadLetter);
        self.outcome.reason = Some(Reason::new(code, cause));
    }
}

/// Runs what handles one record so that a bug in it harms no other.
fn isolated<O>(work: impl FnOnce() -> O) -> Result<O, CallFailure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked())
}
