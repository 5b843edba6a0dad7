//! The handler's calls, one function for each call to AWS. Each is counted, held against the
//! invariants, and struck by faults. A call whose answer is lost still takes effect.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | hiding, re-invoking and dead-lettering |
//! | `moving`, `looking` | moves, and looks at the queue |
//! | `pauses` | reads of the pauses |
//! | `requests`, `spacing` | what is asked for, held against the invariants |

pub(in crate::world) mod looking;
mod moving;
mod pauses;
pub(super) mod requests;
mod spacing;

use comeback_delivery::{Answer, ErrorKind, ServiceError};
use comeback_engine::{CallFailure, InvokeFailure, VisibilityChange};
use rand::RngExt;

use super::World;
use super::handling::{Done, Position};
use super::happening::Happening;
use crate::check::invariants::{Broken, Invariant};
use crate::check::origin::Attempt;
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::figures::calls::ApiCall;
use requests::CheckedDeadLetter;

/// An answer for each entry, or one for the whole call.
type Answers = Result<Vec<Answer>, ServiceError>;

impl World {
    /// SQS `ChangeMessageVisibilityBatch` on the retry queue.
    pub(crate) fn change_visibility_batch(&mut self, entries: &[&&VisibilityChange<'_>]) -> Answers {
        self.calls.add(ApiCall::ChangeMessageVisibilityBatch, 1);
        let events: Vec<EventNumber> = entries.iter().filter_map(|entry| self.check_hiding(entry)).collect();
        if self.dice.strikes(Fault::VisibilityRefused, self.now, events.iter().copied()) {
            return Err(transient("ServiceUnavailable", "the request has failed"));
        }
        let refused = self.refused_entries(entries.len(), &events);
        let hide = |(entry, refused): (&&&VisibilityChange<'_>, bool)| {
            if refused {
                return Err(transient("InternalError", "the entry has failed"));
            }
            let (now, agenda) = (self.now, &mut self.agenda);
            let timeout = entry.visibility_timeout;
            let hidden = self.queue.change_visibility(now, agenda, &entry.record.receipt_handle, timeout);
            hidden.map_err(|error| ServiceError::new(ErrorKind::Refused, "", error.to_string()))
        };
        let answers: Vec<Answer> = entries.iter().zip(refused).map(hide).collect();
        let hidden = entries.iter().zip(&answers).filter(|(_, answer)| answer.is_ok());
        hidden.for_each(|(entry, _)| self.note_hidden(entry));
        if self.dice.strikes(Fault::VisibilityLost, self.now, events) {
            return Err(transient("", "no answer in time"));
        }
        Ok(answers)
    }

    /// Lambda `Invoke` of a function, asynchronous.
    pub(crate) fn invoke(
        &mut self,
        function_arn: &str,
        payload: String,
    ) -> Result<Option<String>, InvokeFailure> {
        self.calls.add(ApiCall::InvokeTarget, 1);
        let checked = self.check_invoke(function_arn, &payload);
        let Some(position) = self.note_broken(checked) else { return Ok(None) };
        let event = self.event_at(position);
        if self.dice.strikes(Fault::InvokeThrottled, self.now, [event]) {
            return Err(InvokeFailure::Later(failure("TooManyRequestsException: Rate Exceeded")));
        }
        let unanswered = || Err(InvokeFailure::Unanswered("no answer in time".into()));
        if self.dice.strikes(Fault::InvokeTimedOut, self.now, [event]) {
            self.check_spacing(position);
            self.handling_mut().mark_unanswered(position);
            return unanswered();
        }
        let request_id = self.accept_retry(position, payload);
        self.check_spacing(position);
        if self.dice.strikes(Fault::InvokeAnswerLost, self.now, [event]) {
            self.excuse_at(position);
            self.handling_mut().mark_unanswered(position);
            return unanswered();
        }
        Ok(Some(request_id))
    }

    /// SQS `SendMessageBatch` to the dead-letter queue.
    pub(crate) fn send_message_batch(&mut self, dead_letters: &[&CheckedDeadLetter<'_>]) -> Answers {
        let bytes = dead_letters.iter().map(|checked| checked.dead_letter.size()).sum();
        self.calls.add_carrying(ApiCall::SendMessageBatch, bytes);
        let events: Vec<EventNumber> =
            dead_letters.iter().map(|checked| self.event_at(checked.position)).collect();
        if self.dice.strikes(Fault::DeadLetterRefused, self.now, events.iter().copied()) {
            return Err(transient("ServiceUnavailable", "the request has failed"));
        }
        for checked in dead_letters {
            self.duplicate_dead_letters += u64::from(self.settle(checked.position));
            self.give_up(self.event_at(checked.position), checked.reason.name());
        }
        if self.dice.strikes(Fault::DeadLetterLost, self.now, events) {
            dead_letters.iter().for_each(|checked| self.excuse_at(checked.position));
            return Err(transient("", "no answer in time"));
        }
        Ok(vec![Ok(()); dead_letters.len()])
    }

    /// About half of the entries, if the fault strikes.
    fn refused_entries(&mut self, entries: usize, events: &[EventNumber]) -> Vec<bool> {
        let Some(rng) = self.dice.roll(Fault::VisibilityHalfRefused, self.now) else {
            return vec![false; entries];
        };
        let refused: Vec<bool> = (0..entries).map(|_| rng.random_bool(0.5)).collect();
        if refused.contains(&true) {
            let struck = events.iter().zip(&refused).filter(|(_, refused)| **refused);
            self.dice.note(Fault::VisibilityHalfRefused, struck.map(|(&event, _)| event));
        }
        refused
    }

    /// Gives the request id of the invocation.
    fn accept_retry(&mut self, position: Position, payload: String) -> String {
        self.duplicate_retries += u64::from(self.settle(position));
        let origin = self.handling().at(position).look.origin;
        let attempt = Attempt { event: origin.event, number: origin.attempt + 1 };
        self.retries += 1;
        self.minutes.at(self.now).retries += 1;
        self.ledger.attempt(attempt.event, attempt.number);
        self.ledger.carry(attempt.event);
        let invocation = self.target.start(self.now, attempt, payload);
        self.plan(self.scenario.run_time, Happening::InvocationEnds(invocation));
        self.target.request_id(invocation)
    }

    /// A message was re-invoked, dead-lettered or moved. Gives whether this is a duplicate.
    pub(super) fn settle(&mut self, position: Position) -> bool {
        self.handling_mut().mark(position, Done::Settled);
        let (event, received) = (self.event_at(position), self.handling().at(position).received);
        let flag = self.queue.carried_mut(&received).map(|tracked| &mut tracked.settled);
        let settled = self.copies.settle(received.id, flag).map_err(|_| {
            let detail = format!("message {} was re-invoked, dead-lettered or moved before", received.id);
            Broken::new(Invariant::ExplainedDuplicates, event, detail)
        });
        self.note_broken(settled).unwrap_or_default()
    }

    pub(super) fn excuse_at(&mut self, position: Position) {
        self.excuse(self.handling().at(position).received);
    }

    fn event_at(&self, position: Position) -> EventNumber {
        self.handling().at(position).look.origin.event
    }
}

/// A failure that another call may not meet.
fn transient(code: &str, message: &str) -> ServiceError {
    ServiceError::new(ErrorKind::Transient, code, message)
}

fn failure(cause: &str) -> CallFailure {
    CallFailure { cause: cause.into(), remedy: None }
}

#[cfg(test)]
mod tests;
