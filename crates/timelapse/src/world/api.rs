//! The handler's calls, one function for each call to AWS. Each is counted, held against the
//! invariants, and struck by faults. An answer that is lost was an answer: the call had its effect.

use comeback_delivery::{Answer, ErrorKind};
use comeback_engine::{CallFailure, InvokeFailure, VisibilityChange};

use super::{Letter, World};
use crate::agenda::Happening;
use crate::calls::Operation;
use crate::faults::Fault;
use crate::handling::{Done, Handling, Look};
use crate::invariants::{Broken, Invariant};

/// An answer for each entry, or one for the whole call.
type Answers = Result<Vec<Answer>, comeback_delivery::ServiceError>;

impl World {
    /// SQS `ChangeMessageVisibilityBatch` on the retry queue.
    pub(crate) fn change_visibility_batch(&mut self, entries: &[&&VisibilityChange<'_>]) -> Answers {
        self.calls.add(Operation::ChangeMessageVisibilityBatch, 1);
        let events: Vec<usize> = entries.iter().filter_map(|entry| self.ask_to_hide(entry)).collect();
        if self.dice.strikes(Fault::VisibilityRefused, self.now, events.iter().copied()) {
            return Err(passing("ServiceUnavailable", "the request has failed"));
        }
        let refused = self.refused_entries(entries.len(), &events);
        let hide = |(entry, refused): (&&&VisibilityChange<'_>, bool)| {
            if refused {
                return Err(passing("InternalError", "the entry has failed"));
            }
            let (now, agenda) = (self.now, &mut self.agenda);
            let timeout = entry.visibility_timeout;
            let hidden = self.queue.change_visibility(now, agenda, entry.receipt_handle, timeout);
            hidden.map_err(|error| {
                comeback_delivery::ServiceError::new(ErrorKind::Refused, "", error.to_string())
            })
        };
        let answers = entries.iter().zip(refused).map(hide).collect();
        if self.dice.strikes(Fault::VisibilityLost, self.now, events) {
            return Err(passing("", "no answer in time"));
        }
        Ok(answers)
    }

    /// Lambda `Invoke` of a function, asynchronous.
    pub(crate) fn invoke(&mut self, function_arn: &str, payload: String) -> Result<(), InvokeFailure> {
        self.calls.add(Operation::InvokeTarget, 1);
        let checked = self.ask_to_invoke(function_arn, &payload);
        let Some(place) = self.hold(checked) else { return Ok(()) };
        let event = self.look(place).received.event;
        let later = |cause| Err(InvokeFailure::Later(failure(cause)));
        if self.dice.strikes(Fault::InvokeThrottled, self.now, [event]) {
            return later("TooManyRequestsException: Rate Exceeded");
        }
        if self.dice.strikes(Fault::InvokeTimedOut, self.now, [event]) {
            return later("no connection in time");
        }
        self.accept_retry(place, payload);
        if self.dice.strikes(Fault::InvokeAnswerLost, self.now, [event]) {
            self.excuse(self.look(place).received);
            return later("no answer in time");
        }
        Ok(())
    }

    /// SQS `SendMessageBatch` to the dead-letter queue.
    pub(crate) fn send_message_batch(&mut self, letters: &[&Letter<'_>]) -> Answers {
        self.calls.add(Operation::SendMessageBatch, 1);
        let events: Vec<usize> =
            letters.iter().map(|letter| self.look(letter.place).received.event).collect();
        if self.dice.strikes(Fault::DeadLetterRefused, self.now, events.iter().copied()) {
            return Err(passing("ServiceUnavailable", "the request has failed"));
        }
        for letter in letters {
            self.duplicate_dead_letters += u64::from(self.settle(letter.place));
            self.dead_letter(self.look(letter.place).received.event, letter.reason.name());
        }
        if self.dice.strikes(Fault::DeadLetterLost, self.now, events) {
            letters.iter().for_each(|letter| self.excuse(self.look(letter.place).received));
            return Err(passing("", "no answer in time"));
        }
        Ok(vec![Ok(()); letters.len()])
    }

    /// About half of the entries, where the fault strikes.
    fn refused_entries(&mut self, entries: usize, events: &[usize]) -> Vec<bool> {
        let Some(rng) = self.dice.roll(Fault::VisibilityHalfRefused, self.now) else {
            return vec![false; entries];
        };
        let refused: Vec<bool> = (0..entries).map(|_| rand::RngExt::random_bool(rng, 0.5)).collect();
        if refused.contains(&true) {
            let struck = events.iter().zip(&refused).filter(|(_, refused)| **refused);
            self.dice.note(Fault::VisibilityHalfRefused, struck.map(|(&event, _)| event));
        }
        refused
    }

    fn accept_retry(&mut self, place: usize, payload: String) {
        self.duplicate_retries += u64::from(self.settle(place));
        let (event, attempt) = (self.look(place).received.event, self.look(place).received.attempt + 1);
        self.retries += 1;
        self.minute().retries += 1;
        self.ledger.attempt(event, attempt);
        self.ledger.carry(event);
        let invocation = self.target.start(self.now, event, attempt, payload);
        self.plan(self.scenario.run_time, Happening::InvocationEnds(invocation));
    }

    /// A message was re-invoked or dead-lettered. Whether this is a duplicate.
    fn settle(&mut self, place: usize) -> bool {
        self.handling_mut().mark(place, Done::Settled);
        let message = self.look(place).received;
        let flag = self.queue.get_mut(&message).map(|message| &mut message.settled);
        let settled = self.copies.settle(message.id, flag).map_err(|_| {
            let detail = format!("message {} was re-invoked or dead-lettered before", message.id);
            Broken::new(Invariant::ExplainedDuplicates, message.event, detail)
        });
        self.hold(settled).unwrap_or_default()
    }

    pub(super) fn handling(&self) -> &Handling {
        self.handling.as_ref().expect("BUG: calls come from the handler")
    }

    pub(super) fn look(&self, place: usize) -> &Look {
        &self.handling().looks[place]
    }

    pub(super) fn handling_mut(&mut self) -> &mut Handling {
        self.handling.as_mut().expect("BUG: calls come from the handler")
    }
}

/// What another call may mend.
fn passing(code: &str, message: &str) -> comeback_delivery::ServiceError {
    comeback_delivery::ServiceError::new(ErrorKind::Transient, code, message)
}

fn failure(cause: &str) -> CallFailure {
    CallFailure { cause: cause.into(), remedy: None }
}

#[cfg(test)]
mod tests;
