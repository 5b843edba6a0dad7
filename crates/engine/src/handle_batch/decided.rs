//! A message on its way through a batch: [`Decided`], then [`Answered`], then [`Sent`](super::answered::Sent).
//! A variant owns what its step needs, and the answer says what may follow: a re-invocation can become
//! a dead-letter, never the reverse.

use super::answered::{Answered, Attempt, GivenUp, isolated};
use super::guarded::Guarded;
use super::hiding::{after_failure, after_unanswered, carried};
use super::waiting::{Wait, Waiting};
use crate::account::{Account, CallFailure, INVOKE_TIMEOUT, InvokeFailure};
use crate::decide::action::Action;
use crate::decide::decide;
use crate::decide::ruled_out::expiring;
use crate::message::event::FailedEvent;
use crate::pauses::NO_PAUSES;
use crate::report::{Retry, Step};
use crate::{Envelope, Pauses, Policy, Reason, ReasonCode, Record, Timestamp, TraceHeader};

/// Said to an operator of a re-invocation that may have been accepted.
const UNANSWERED: &str = "it may have been accepted, and is made again in one to two hours: \
    look for an outage of Lambda or of the network";

/// A message that was decided on.
pub(super) enum Decided<'a> {
    /// It is kept, most often for what is left of its backoff. Even if that fails: an early return finds the
    /// backoff unserved and waits on.
    Waits(Waiting<'a>),
    Reinvoke(Reinvocation<'a>),
    /// It has neither step to wait for.
    Neither(Answered<'a>),
}

impl<'a> Decided<'a> {
    /// Without `pauses` it is not known whether any function is paused.
    pub(super) fn of(record: &'a Record, policy: &Policy, pauses: Option<&Pauses>, now: Timestamp) -> Self {
        if let Some(wait) = carried(record, now) {
            return Self::kept(record, None, wait);
        }
        if policy.keeps_everything() {
            return Self::unattached(record, now);
        }
        let action = isolated(|| decide(record, policy, pauses.unwrap_or(&NO_PAUSES), now));
        match action {
            Ok(action) if pauses.is_none() && hangs_on_pauses(&action, record, now) => {
                let retry = action.event().map(Retry::of);
                Self::kept(record, retry, Wait::from(now, after_failure(record)))
            }
            action => Self::from_action(record, action, now),
        }
    }

    /// No function may be re-invoked yet. The message waits for as long as one whose step did not work,
    /// so that a thousand receives outlast SQS's 14 days; before these end it is given up.
    fn unattached(record: &'a Record, now: Timestamp) -> Self {
        // By its first sending: a copy is new, and would be kept for ever.
        if let Some(reason) = expiring(record, record.first_sent(), now) {
            let event = isolated(|| FailedEvent::read(record).ok()).ok().flatten();
            return Self::Neither(GivenUp::of(record, event.as_ref(), None, reason, now));
        }
        Self::kept(record, None, Wait::from(now, after_failure(record)))
    }

    pub(super) const fn waiting(&mut self) -> Option<&mut Waiting<'a>> {
        match self {
            Self::Waits(waiting) => Some(waiting),
            Self::Reinvoke(_) | Self::Neither(_) => None,
        }
    }

    fn kept(record: &'a Record, retry: Option<Retry>, wait: Wait) -> Self {
        let step = Some(Step::Keep { visibility_timeout: wait.visibility_timeout });
        Self::Waits(Waiting::new(Attempt { record, retry, step }, None, wait))
    }

    fn from_action(record: &'a Record, action: Result<Action<'a>, CallFailure>, now: Timestamp) -> Self {
        match action {
            Ok(Action::Defer { event, due, visibility_timeout }) => {
                let (retry, step) = (Some(Retry::of(&event)), Some(Step::Defer { due, visibility_timeout }));
                let wait = Wait { visibility_timeout, left: due.since(now), not_before: None };
                Self::Waits(Waiting::new(Attempt { record, retry, step }, None, wait))
            }
            Ok(Action::Hold { event, due, visibility_timeout }) => {
                let (retry, step) = (Some(Retry::of(&event)), Some(Step::Hold { due, visibility_timeout }));
                let wait = Wait::from(now, visibility_timeout);
                Self::Waits(Waiting::new(Attempt { record, retry, step }, None, wait))
            }
            Ok(Action::Reinvoke { event, due, envelope }) => {
                Self::Reinvoke(Reinvocation { record, event, due, envelope })
            }
            Ok(Action::DeadLetter { event, reason }) => {
                Self::Neither(GivenUp::of(record, event.as_ref(), None, reason, now))
            }
            Err(problem) => match expiring(record, record.first_sent(), now) {
                Some(reason) => Self::Neither(GivenUp::of(record, None, None, reason, now)),
                None => {
                    let undecided = Attempt { record, retry: None, step: None };
                    Self::Neither(Answered::Waits(undecided.failed(problem, now)))
                }
            },
        }
    }
}

/// Whether a pause would lead to another action. SQS's own 14 days go on in a pause.
fn hangs_on_pauses(action: &Action<'_>, record: &Record, now: Timestamp) -> bool {
    match action {
        Action::Reinvoke { .. } => true,
        Action::DeadLetter { reason, .. } => {
            reason.code == ReasonCode::MaxAge && expiring(record, record.sent, now).is_none()
        }
        Action::Defer { .. } | Action::Hold { .. } => false,
    }
}

/// To be re-invoked now.
pub(super) struct Reinvocation<'a> {
    record: &'a Record,
    event: FailedEvent<'a>,
    due: Timestamp,
    envelope: Envelope<'a>,
}

impl<'a> Reinvocation<'a> {
    pub(super) async fn invoke<A: Account>(
        self,
        account: &Guarded<'_, A>,
        policy: &Policy,
        pauses: &Pauses,
        now: Timestamp,
    ) -> Answered<'a> {
        let trace = TraceHeader::of(self.record);
        match account.invoke(&self.event.function_arn, &self.envelope, policy.envelope, trace).await {
            Ok(request_id) => Answered::Ended(self.attempt().invoked(request_id)),
            Err(InvokeFailure::Later(problem)) => Answered::Waits(self.attempt().failed(problem, now)),
            Err(InvokeFailure::Unanswered(cause)) => {
                let hiding = after_unanswered(self.record, &self.event, policy, pauses, now);
                let problem = CallFailure { cause, remedy: Some(UNANSWERED) };
                // The wait begins when the invoke was given up, which the engine does not see.
                let wait = Wait { visibility_timeout: hiding, ..Wait::from(now, hiding + INVOKE_TIMEOUT) };
                Answered::Waits(Waiting::new(self.attempt(), Some(problem), wait))
            }
            Err(InvokeFailure::NotFound(cause)) => self.give_up(ReasonCode::TargetNotFound, cause, now),
            Err(InvokeFailure::TooLarge(cause)) => self.give_up(ReasonCode::PayloadTooLarge, cause, now),
            Err(InvokeFailure::Refused(cause)) => self.give_up(ReasonCode::TargetRefused, cause, now),
        }
    }

    fn attempt(self) -> Attempt<'a> {
        let step = Some(Step::Reinvoke { due: self.due });
        Attempt { record: self.record, retry: Some(Retry::of(&self.event)), step }
    }

    /// The target will never take the event: it is dead-lettered after all.
    fn give_up(self, code: ReasonCode, cause: String, now: Timestamp) -> Answered<'a> {
        GivenUp::of(self.record, Some(&self.event), Some(self.due), Reason::new(code, cause), now)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use super::super::guarded::panicked;
    use super::*;

    fn record() -> Record {
        let sent = Timestamp::from_secs(1);
        let (message_id, receipt_handle) = ("m-1".into(), "h-1".into());
        let (body, moved, trace_header) = ("7".into(), None, None);
        Record {
            message_id,
            receipt_handle,
            body,
            receive_count: 1,
            sent,
            first_receive: sent,
            moved,
            trace_header,
        }
    }

    /// No message is known that makes `decide` panic, so the test panics in its place.
    fn panicking<'a>() -> Result<Action<'a>, CallFailure> {
        isolated(|| resume_unwind(Box::new("planned")))
    }

    #[test]
    fn a_message_whose_decision_panics_is_given_up_before_sqs_deletes_it() {
        let (record, last) = (record(), Timestamp::from_secs(1 + (13 * 24 + 12) * 3_600));
        let kept = Decided::from_action(&record, panicking(), last);
        assert!(matches!(kept, Decided::Neither(Answered::Waits(_))));
        let late = last.saturating_add(std::time::Duration::from_millis(1));
        let given_up = Decided::from_action(&record, panicking(), late);
        assert!(matches!(given_up, Decided::Neither(Answered::DeadLetter(_))));
    }

    #[test]
    fn a_message_whose_decision_panicked_is_kept_and_to_be_hidden() {
        let record = record();
        let Decided::Neither(Answered::Waits(mut waiting)) =
            Decided::from_action(&record, panicking(), record.sent)
        else {
            panic!("it did not fail")
        };
        assert_eq!(waiting.change().receipt_handle, "h-1");
        waiting.hidden(Ok(()));
        let outcome = waiting.outcome();
        assert!(!outcome.settled());
        assert_eq!((outcome.message_id, &outcome.step), ("m-1", &None));
        assert_eq!(outcome.problem, Some(panicked()));
    }
}
