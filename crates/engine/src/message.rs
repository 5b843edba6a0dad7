//! The states of a message while its batch is handled, and the table of transitions.

use std::mem::take;
use std::time::Duration;

use comeback_envelope::Envelope;

use crate::account::{CallFailure, Move, isolated};
use crate::dead_letter::{DeadLetter, Reason, SQS_MESSAGE_BYTES};
use crate::decide::Action;
use crate::failed_event::FailedEvent;
use crate::outcome::{Cause, Early, Location, What};
use crate::record::{Moved, Record};
use crate::time::Timestamp;
use crate::waits::Wait;

pub(crate) struct BatchMessage<'a> {
    pub(crate) record: &'a Record,
    /// The failed event in the message; `None` if the message could not be parsed.
    pub(crate) event: Option<FailedEvent<'a>>,
    pub(crate) guard: Guard,
    pub(crate) state: State<'a>,
}

/// A guard hides a message before its re-invocation or move, so that the step is not repeated soon after a crash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    NotTried,
    Hidden,
    Failed,
}

/// The step that the handler takes next for a message.
#[derive(Default)]
pub(crate) enum State<'a> {
    #[default]
    Received,
    /// The message is kept hidden, because its backoff is not over or a call for it failed.
    Wait { what: What, wait: Wait },
    /// The message has to be replaced by a delayed copy, because there is no room to hide the message.
    Move { what: What, wait: Wait },
    /// The target has to be re-invoked.
    Invoke { due: Timestamp, early: Option<Early>, envelope: Envelope<'a> },
    /// The event has to be dead-lettered.
    DeadLetter { due: Option<Timestamp>, reason: Reason, dead_letter: DeadLetter },
    /// Nothing is left to do.
    Done(What, Location),
}

pub(crate) enum Happened {
    /// The environment has no room to hide another message.
    NoRoom,
    /// The result of the call that hides the message until its wait ends.
    Hidden(Result<(), CallFailure>),
    /// The result of the call that hides the message before its target is re-invoked or its copy is sent.
    Guarded(Result<(), CallFailure>),
    Moved,
    /// SQS did not accept the copy, or did not respond.
    NotMoved {
        at_least: Duration,
    },
    /// The request id of the new invocation, if Lambda returned one.
    Reinvoked(Option<String>),
    DeadLettered,
    /// The call to re-invoke the target, or to send the dead-letter, failed.
    Failed {
        cause: Cause,
        failure: CallFailure,
        wait: Wait,
    },
}

impl<'a> BatchMessage<'a> {
    pub(crate) const fn received(record: &'a Record) -> Self {
        Self { record, event: None, guard: Guard::NotTried, state: State::Received }
    }

    pub(crate) fn decided(&mut self, action: Action<'a>, now: Timestamp) {
        self.state = match action {
            Action::Defer { due, visibility_timeout, due_by, early } => {
                let wait =
                    Wait { visibility_timeout, left: due.since(now), not_before: None, is_guard: false };
                let delay = visibility_timeout.as_secs();
                State::Wait { what: What::Defer { due, due_by, delay, early, failure: None }, wait }
            }
            Action::Hold { due, visibility_timeout } => {
                let wait = Wait::from(now, visibility_timeout);
                let delay = visibility_timeout.as_secs();
                State::Wait { what: What::Hold { due, delay, not_before: None, failure: None }, wait }
            }
            Action::Reinvoke { due, early, envelope } => State::Invoke { due, early, envelope },
            Action::DeadLetter { reason } => return self.dead_letter(reason, now),
        };
    }

    pub(crate) fn keep(&mut self, cause: Cause, failure: Option<CallFailure>, wait: Wait) {
        self.state = State::Wait { what: What::kept(cause, None, None, failure), wait };
    }

    /// Keeps a message for which no decision could be made. With a reason in `expiring`, dead-letters it instead.
    pub(crate) fn keep_unless(
        &mut self,
        expiring: Option<Reason>,
        cause: Cause,
        failure: Option<CallFailure>,
        now: Timestamp,
    ) {
        match expiring {
            Some(reason) => self.dead_letter(reason, now),
            None => self.keep(cause, failure, Wait::after_failure(self.record, now)),
        }
    }

    pub(crate) fn dead_letter(&mut self, reason: Reason, now: Timestamp) {
        let due = if let State::Invoke { due, .. } = self.state { Some(due) } else { None };
        let dead_letter = isolated(|| match &self.event {
            Some(event) => event.dead_letter(self.record, &reason, now),
            None => DeadLetter::verbatim(self.record, &reason),
        });
        self.state = match dead_letter {
            Ok(dead_letter) => State::DeadLetter { due, reason, dead_letter },
            Err(failure) => {
                let what = What::kept(Cause::DeadLetterNotSent, due, Some(reason), Some(failure));
                State::Wait { what, wait: Wait::after_failure(self.record, now) }
            }
        };
    }

    /// Changes the message's state in response to what happened.
    pub(crate) fn next(&mut self, happened: Happened) {
        if let Happened::Guarded(answer) = &happened {
            self.guard = if answer.is_ok() { Guard::Hidden } else { Guard::Failed };
        }
        self.state = match (take(&mut self.state), happened) {
            (State::Wait { what, wait }, Happened::NoRoom) => State::Move { what, wait },
            (State::Wait { what, wait }, Happened::Hidden(answer)) => {
                let location = match answer {
                    Ok(()) if wait.is_guard => Location::Guarded,
                    Ok(()) => Location::Hidden,
                    Err(_) => Location::NotHidden,
                };
                State::Done(what.with_wait(wait.visibility_timeout, None, answer.err()), location)
            }
            // Without a guard, the original could become visible again while its copy is waiting, so it is not copied.
            (State::Move { what, wait }, Happened::Guarded(Err(_))) => State::Wait { what, wait },
            (State::Move { what, wait }, Happened::Moved) => {
                State::Done(what.with_wait(wait.hop(), wait.not_before, None), Location::Moved)
            }
            (State::Move { what, wait }, Happened::NotMoved { at_least }) => {
                let visibility_timeout = wait.visibility_timeout.max(at_least);
                let is_guard = wait.is_guard || !at_least.is_zero();
                State::Wait { what, wait: Wait { visibility_timeout, is_guard, ..wait } }
            }
            (State::Invoke { due, early, .. }, Happened::Reinvoked(invoke_request_id)) => {
                State::Done(What::Reinvoke { due, invoke_request_id, early }, Location::Settled)
            }
            (State::Invoke { due, .. }, Happened::Failed { cause, failure, wait }) => {
                State::Wait { what: What::kept(cause, Some(due), None, Some(failure)), wait }
            }
            (State::DeadLetter { due, reason, .. }, Happened::DeadLettered) => {
                State::Done(What::DeadLetter { reason, due }, Location::Settled)
            }
            (State::DeadLetter { due, reason, .. }, Happened::Failed { cause, failure, wait }) => {
                State::Wait { what: What::kept(cause, due, Some(reason), Some(failure)), wait }
            }
            (state, _) => state,
        };
    }

    pub(crate) fn copy(&self) -> Option<Move<'a>> {
        let State::Move { what, wait } = &self.state else { return None };
        Some(self.copy_for(what, wait))
    }

    fn copy_for(&self, what: &What, wait: &Wait) -> Move<'a> {
        let attribute = Moved::next(self.record, wait.not_before, what.failure().is_none());
        Move { record: self.record, attribute, delay: wait.hop() }
    }

    /// Returns the total size, in bytes, of the copies to send if this message is moved, or `u64::MAX` if it must not
    /// be moved. Returns `None` if the message is not waiting.
    pub(crate) fn cost_of_moves(&self) -> Option<u64> {
        let State::Wait { what, wait } = &self.state else { return None };
        let bytes = self.copy_for(what, wait).size();
        let may_move = self.guard != Guard::Failed && bytes <= SQS_MESSAGE_BYTES;
        Some(if may_move { wait.hops() * bytes as u64 } else { u64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use super::*;
    use crate::decide::expiring;

    /// No known message makes `decide` panic, so the test causes the panic itself.
    #[test]
    fn a_panicking_decision_keeps_the_message() {
        let sent = Timestamp::from_secs(1);
        let record = Record {
            message_id: "m-1".into(),
            receipt_handle: "h-1".into(),
            body: "7".into(),
            receive_count: 1,
            sent,
            first_receive: sent,
            moved: None,
            trace_header: None,
            attributes: Vec::new(),
        };
        let panic = isolated::<()>(|| resume_unwind(Box::new("planned"))).unwrap_err();
        let undecided = |now| {
            let mut message = BatchMessage::received(&record);
            let panic = Some(panic.clone());
            message.keep_unless(expiring(&record, sent, now), Cause::Undecided, panic, now);
            message
        };
        let last = Timestamp::from_secs(1 + (13 * 24 + 12) * 3_600);
        let mut kept = undecided(last);
        let State::Wait { wait, .. } = kept.state else { panic!("it is not kept") };
        kept.next(Happened::Hidden(Ok(())));
        let undone = What::kept(Cause::Undecided, None, None, Some(panic.clone()));
        let hidden = undone.with_wait(wait.left, None, None);
        assert!(matches!(kept.state, State::Done(what, Location::Hidden) if what == hidden));
        let late = undecided(last.saturating_add(Duration::from_millis(1)));
        assert!(matches!(late.state, State::DeadLetter { .. }));
    }
}
