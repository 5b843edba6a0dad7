use std::panic::{AssertUnwindSafe, catch_unwind};

use super::guarded::panicked;
use crate::account::{CallFailure, InvokeFailure};
use crate::dead_letter::DeadLetter;
use crate::decide::{Action, Decision, decide};
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
        Self::of(record, isolated(|| decide(record, policy, now)))
    }

    fn of(record: &'a Record, decision: Result<Decision<'a>, CallFailure>) -> Self {
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

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use super::*;

    /// No message can be had that makes `decide` panic, so the panic is made here.
    #[test]
    fn a_message_whose_decision_panicked_is_kept_and_to_be_hidden() {
        let (sent, body) = (Timestamp::from_secs(1), "7".into());
        let (message_id, receipt_handle) = ("m-1".into(), "h-1".into());
        let record = Record { message_id, receipt_handle, body, receive_count: 1, sent, first_receive: sent };
        let item = Item::of(&record, isolated(|| resume_unwind(Box::new("planned"))));
        assert!(item.failed && !item.outcome.settled);
        assert_eq!((item.outcome.message_id, item.outcome.step), ("m-1", None));
        assert_eq!(item.outcome.problem, Some(panicked()));
    }
}
