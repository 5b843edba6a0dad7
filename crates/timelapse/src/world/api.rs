//! The handler's calls, one function for each call to AWS. Each is counted, held against the
//! invariants, and struck by faults. An answer that is lost was an answer: the call had its effect.

use comeback_engine::{CallFailure, DeadLetter, InvokeFailure, ReasonCode, VisibilityChange};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::World;
use crate::agenda::Happening;
use crate::calls::Operation;
use crate::faults::Fault;
use crate::handling::{Done, Handling, Look};
use crate::invariants::{Broken, Invariant};
use crate::payload;
use crate::queue::Flaw;
use crate::scenario::TARGET_ARN;

type Answers = Result<Vec<Result<(), CallFailure>>, CallFailure>;

impl World {
    /// SQS `ChangeMessageVisibilityBatch` on the retry queue: an answer for each entry, or one for
    /// the whole call.
    pub(crate) fn change_visibility_batch(&mut self, entries: &[VisibilityChange<'_>]) -> Answers {
        self.calls.add(Operation::ChangeMessageVisibilityBatch, 1);
        let events: Vec<usize> = entries.iter().filter_map(|entry| self.ask_to_hide(entry)).collect();
        if self.dice.strikes(Fault::VisibilityRefused, self.now, events.iter().copied()) {
            return Err(failure("ServiceUnavailable: the request has failed"));
        }
        let refused = self.refused_entries(entries.len(), &events);
        let hide = |(entry, refused): (&VisibilityChange<'_>, bool)| {
            if refused {
                return Err(failure("InternalError: the entry has failed"));
            }
            let (now, agenda) = (self.now, &mut self.agenda);
            let timeout = entry.visibility_timeout;
            let hidden = self.queue.change_visibility(now, agenda, entry.receipt_handle, timeout);
            hidden.map_err(|error| failure(&error.to_string()))
        };
        let answers = entries.iter().zip(refused).map(hide).collect();
        if self.dice.strikes(Fault::VisibilityLost, self.now, events) {
            return Err(failure("no answer in time"));
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

    /// SQS `SendMessageBatch` to the dead-letter queue: as above.
    pub(crate) fn send_message_batch(&mut self, messages: &[DeadLetter]) -> Answers {
        self.calls.add(Operation::SendMessageBatch, 1);
        let mut letters = Vec::with_capacity(messages.len());
        for message in messages {
            let checked = self.ask_to_dead_letter(message);
            letters.extend(self.hold(checked));
        }
        let events: Vec<usize> = letters.iter().map(|&(place, _)| self.look(place).received.event).collect();
        if self.dice.strikes(Fault::DeadLetterRefused, self.now, events.iter().copied()) {
            return Err(failure("ServiceUnavailable: the request has failed"));
        }
        for &(place, reason) in &letters {
            self.duplicate_dead_letters += u64::from(self.settle(place));
            self.dead_letter(self.look(place).received.event, reason.name());
        }
        if self.dice.strikes(Fault::DeadLetterLost, self.now, events) {
            letters.into_iter().for_each(|(place, _)| self.excuse(self.look(place).received));
            return Err(failure("no answer in time"));
        }
        Ok(vec![Ok(()); messages.len()])
    }

    /// Holds one entry against the invariants. Gives its event, if the entry is of this batch.
    fn ask_to_hide(&mut self, entry: &VisibilityChange<'_>) -> Option<usize> {
        let place = self.handling().of_receipt(entry.receipt_handle)?;
        let (now, look) = (self.handling().now, self.look(place).clone());
        let event = look.received.event;
        let hidden_for = entry.visibility_timeout;
        if matches!(look.done, Done::Tried | Done::Settled) {
            let checked = self.law.hiding(&look, hidden_for);
            self.hold(checked);
            return Some(event);
        }
        self.handling_mut().mark(place, Done::Deferred);
        let checked = self.law.deferral(&look, now, hidden_for);
        let not_before = self.hold(checked)?;
        if let Some(message) = self.queue.get_mut(&look.received) {
            message.not_before = message.not_before.max(not_before);
        }
        Some(event)
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

    /// Holds a re-invocation against the invariants. Gives the message's place in the batch.
    fn ask_to_invoke(&mut self, function_arn: &str, payload: &str) -> Result<usize, Broken> {
        let opened = self.target.open(payload);
        if function_arn.strip_suffix(":$LATEST").unwrap_or(function_arn) != TARGET_ARN {
            let event = opened.ok().map(|(event, _)| event);
            return Err(Broken::new(Invariant::AllowList, event, format!("{function_arn} was invoked")));
        }
        let (event, envelope) = opened?;
        let (now, first_failure) = (self.handling().now, self.ledger.first_failure(event));
        let check = |look: &Look| self.law.reinvocation(look, now, first_failure, envelope);
        let of_event = |look: &Look| look.received.event == event && look.received.flaw.is_none();
        let place = self.handling().find(of_event, check).unwrap_or_else(|| Err(foreign(event)))?;
        self.handling_mut().mark(place, Done::Tried);
        Ok(place)
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

    /// Holds a dead-letter against the invariants. Gives the message's place in the batch.
    fn ask_to_dead_letter(&mut self, message: &DeadLetter) -> Result<(usize, ReasonCode), Broken> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            payload: &'a RawValue,
            retries_made: u64,
        }
        let reason = reason_of(message)?;
        let body: Result<Body<'_>, _> = serde_json::from_str(&message.body);
        let event = body.as_ref().ok().and_then(|body| payload::event_of(body.payload.get()));
        let place = match (body, event) {
            (Ok(body), Some(event)) => {
                verbatim(event, body.payload.get())?;
                self.place_of(event, body.retries_made, reason)?
            }
            _ => self.place_of_verbatim(&message.body, reason)?,
        };
        self.handling_mut().mark(place, Done::Tried);
        Ok((place, reason))
    }

    fn place_of(&self, event: usize, retries_made: u64, reason: ReasonCode) -> Result<usize, Broken> {
        let check = |look: &Look| {
            let attempt = look.received.attempt;
            if attempt != retries_made {
                let detail =
                    format!("its dead-letter says {retries_made} retries; attempt {attempt} has failed");
                return Err(Broken::new(Invariant::AttemptsByOne, event, detail));
            }
            self.lawful(look, reason)
        };
        let found = self.handling().find(|look| look.received.event == event, check);
        found.unwrap_or_else(|| Err(foreign(event)))
    }

    /// The same of one that could not be understood, which keeps its whole body.
    fn place_of_verbatim(&self, body: &str, reason: ReasonCode) -> Result<usize, Broken> {
        let unreadable = |look: &Look| look.received.flaw == Some(Flaw::Unreadable);
        let check = |look: &Look| match self.queue.get(&look.received) {
            Some(message) if message.body() != body => {
                let detail = format!("its dead-letter is {body}, not {}", message.body());
                Err(Broken::new(Invariant::PayloadVerbatim, look.received.event, detail))
            }
            _ => self.lawful(look, reason),
        };
        self.handling().find(unreadable, check).unwrap_or_else(|| {
            let detail = format!("a dead-letter is of no message of its batch: {body}");
            Err(Broken::new(Invariant::PayloadVerbatim, None, detail))
        })
    }

    fn lawful(&self, look: &Look, reason: ReasonCode) -> Result<(), Broken> {
        let first_failure = self.ledger.first_failure(look.received.event);
        self.law.dead_letter(look, self.handling().now, first_failure, reason)
    }

    fn handling(&self) -> &Handling {
        self.handling.as_ref().expect("BUG: calls come from the handler")
    }

    fn look(&self, place: usize) -> &Look {
        &self.handling().looks[place]
    }

    pub(super) fn handling_mut(&mut self) -> &mut Handling {
        self.handling.as_mut().expect("BUG: calls come from the handler")
    }
}

/// What an operator filters by.
fn reason_of(message: &DeadLetter) -> Result<ReasonCode, Broken> {
    let attribute = message.attributes.iter().find(|attribute| attribute.name == "Reason");
    let code =
        attribute.and_then(|reason| ReasonCode::ALL.into_iter().find(|code| code.name() == reason.value));
    code.ok_or_else(|| {
        let detail = format!("a dead-letter has no reason that we know: {}", message.body);
        Broken::new(Invariant::TrueReasons, None, detail)
    })
}

fn verbatim(event: usize, payload: &str) -> Result<(), Broken> {
    let mut expected = String::new();
    payload::write(event, &mut expected);
    if payload == expected {
        return Ok(());
    }
    Err(Broken::new(Invariant::PayloadVerbatim, event, format!("its dead-letter has {payload}")))
}

fn foreign(event: usize) -> Broken {
    let detail = "it was re-invoked or dead-lettered from a batch that has no message of it";
    Broken::new(Invariant::ExplainedDuplicates, event, detail)
}

fn failure(cause: &str) -> CallFailure {
    CallFailure { cause: cause.into(), remedy: None }
}

#[cfg(test)]
mod tests;
