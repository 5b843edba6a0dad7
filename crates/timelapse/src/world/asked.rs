//! What the handler asks for, held against the invariants before anything comes of it.

use comeback_engine::{DeadLetter, ReasonCode, VisibilityChange};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::World;
use crate::handling::{Done, Look};
use crate::invariants::{Broken, Invariant};
use crate::payload;
use crate::queue::Flaw;
use crate::scenario::TARGET_ARN;

/// A message for the dead-letter queue that holds up against the invariants.
pub(crate) struct Letter<'a> {
    pub(crate) message: &'a DeadLetter,
    /// In the handler's batch.
    pub(super) place: usize,
    pub(super) reason: ReasonCode,
}

impl World {
    /// Holds one entry against the invariants. Gives its event, if the entry is of this batch.
    pub(super) fn ask_to_hide(&mut self, entry: &VisibilityChange<'_>) -> Option<usize> {
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

    /// Holds a re-invocation against the invariants. Gives the message's place in the batch.
    pub(super) fn ask_to_invoke(&mut self, function_arn: &str, payload: &str) -> Result<usize, Broken> {
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

    /// What the handler is about to dead-letter, held against the invariants; `None` if one is broken.
    pub(crate) fn letters<'a>(&mut self, messages: &[&'a DeadLetter]) -> Option<Vec<Letter<'a>>> {
        let letters = messages.iter().map(|&message| self.letter(message)).collect();
        self.hold(letters)
    }

    fn letter<'a>(&mut self, message: &'a DeadLetter) -> Result<Letter<'a>, Broken> {
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
        Ok(Letter { message, place, reason })
    }

    /// The message's place in the batch.
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
