//! What the handler asks for, held against the invariants before it takes effect.

use std::time::Duration;

use comeback_engine::{DeadLetter, ReasonCode, VisibilityChange};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::aws::target::TARGET_ARN;
use crate::check::bounds::{Bounds, Look};
use crate::check::invariants::{Broken, Invariant};
use crate::event::EventNumber;
use crate::faults::records::Flaw;
use crate::world::World;
use crate::world::handling::{Done, InHand, Position};

/// A dead-letter that breaks no invariant, and the message that it belongs to.
pub(crate) struct CheckedDeadLetter<'a> {
    pub(crate) dead_letter: &'a DeadLetter,
    pub(super) position: Position,
    pub(super) reason: ReasonCode,
}

impl World {
    /// Checks an entry of a batch of visibility timeouts. Gives its event, if the entry is of this batch.
    pub(super) fn check_hiding(&mut self, entry: &VisibilityChange<'_>) -> Option<EventNumber> {
        let position = self.handling().of_receipt(&entry.record.receipt_handle)?;
        let message = *self.handling().at(position);
        let event = message.look.origin.event;
        let hidden_for = entry.visibility_timeout;
        if message.copied {
            let (now, first_failure) = (self.handling().now, self.ledger.first_failure(event));
            let shortest = self.bounds.shortest_after_unanswered(now, first_failure);
            let checked = self.bounds.hiding_after_lost_copy(&message.look, now, shortest, hidden_for);
            self.note_broken(checked);
            return Some(event);
        }
        if self.is_held(&message, hidden_for) || self.may_be_kept(&message, hidden_for) {
            return Some(event);
        }
        if matches!(message.done, Done::Tried | Done::Settled) {
            let (now, first_failure) = (self.handling().now, self.ledger.first_failure(event));
            let checked = if message.unanswered {
                self.bounds.hiding_after_unanswered(&message.look, now, first_failure, hidden_for)
            } else {
                self.bounds.hiding_after_failure(&message.look, hidden_for)
            };
            self.note_broken(checked);
            return Some(event);
        }
        self.handling_mut().mark(position, Done::Deferred);
        let (now, first_failure) = (self.handling().now, self.ledger.first_failure(event));
        let checked = self.bounds.deferral(&message.look, now, first_failure, hidden_for);
        let not_before = self.note_broken(checked)?;
        let is_old = self.handling().is_old;
        // An old handler's backoff is not the one that the message's copies will serve.
        if let Some(tracked) = self.queue.carried_mut(&message.received).filter(|_| !is_old) {
            tracked.not_before = tracked.not_before.max(not_before);
        }
        Some(event)
    }

    /// Whether a wait is the one that a message carries, about which nothing was done. When that ends is
    /// known from above only, so a longer wait may be a backoff.
    pub(super) fn is_held(&self, message: &InHand, wait: Duration) -> bool {
        let is_kept = matches!(message.done, Done::Nothing | Done::Deferred);
        let now = self.handling().now;
        is_kept && message.look.held_until.is_some_and(|until| Bounds::ends_by(until, now, wait))
    }

    /// Whether a wait is a hold, or that of a message of which it is not known whether it is paused. A backoff that
    /// is as short may be taken for one.
    pub(super) fn may_be_kept(&self, message: &InHand, wait: Duration) -> bool {
        let after_failure = self.bounds.longest_after_failure(&message.look, false);
        let (now, receives) = (self.handling().now, message.look.receive_count);
        matches!(message.done, Done::Nothing | Done::Deferred)
            && self.bounds.known.may_keep(now, receives, wait, after_failure)
    }

    /// Checks a re-invocation. Gives the message that it belongs to.
    pub(super) fn check_invoke(&mut self, function_arn: &str, payload: &str) -> Result<Position, Broken> {
        let opened = self.payloads.open(payload);
        if function_arn.strip_suffix(":$LATEST").unwrap_or(function_arn) != TARGET_ARN {
            let event = opened.ok().map(|(event, _)| event);
            return Err(Broken::new(Invariant::AllowList, event, format!("{function_arn} was invoked")));
        }
        let (event, claim) = opened?;
        let (now, first_failure) = (self.handling().now, self.ledger.first_failure(event));
        self.check_paused(event)?;
        let check = |message: &InHand| self.bounds.reinvocation(&message.look, now, first_failure, claim);
        let of_event = |look: &Look| look.origin.event == event && look.origin.flaw.is_none();
        let position = self.handling().find(of_event, check).unwrap_or_else(|| Err(foreign(event)))?;
        self.handling_mut().mark(position, Done::Tried);
        Ok(position)
    }

    /// Checks what the handler is about to dead-letter; `None` if an invariant is broken.
    pub(crate) fn check_dead_letters<'a>(
        &mut self,
        dead_letters: &[&'a DeadLetter],
    ) -> Option<Vec<CheckedDeadLetter<'a>>> {
        let checked = dead_letters.iter().map(|&dead_letter| self.check_dead_letter(dead_letter)).collect();
        self.note_broken(checked)
    }

    fn check_dead_letter<'a>(
        &mut self,
        dead_letter: &'a DeadLetter,
    ) -> Result<CheckedDeadLetter<'a>, Broken> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            payload: &'a RawValue,
            retries_made: u64,
        }
        let reason = reason_of(dead_letter)?;
        let body: Result<Body<'_>, _> = serde_json::from_str(&dead_letter.body);
        let event = body.as_ref().ok().and_then(|body| EventNumber::of_payload(body.payload.get()));
        let position = match (body, event) {
            (Ok(body), Some(event)) => {
                self.payloads.dead_letter(event, body.payload.get())?;
                self.position_of(event, body.retries_made, reason)?
            }
            _ => self.position_of_verbatim(&dead_letter.body, reason)?,
        };
        self.handling_mut().mark(position, Done::Tried);
        Ok(CheckedDeadLetter { dead_letter, position, reason })
    }

    /// The message that a dead-letter belongs to.
    fn position_of(
        &self,
        event: EventNumber,
        retries_made: u64,
        reason: ReasonCode,
    ) -> Result<Position, Broken> {
        let check = |message: &InHand| {
            let attempt = message.look.origin.attempt;
            if attempt != retries_made {
                let detail =
                    format!("its dead-letter says {retries_made} retries; attempt {attempt} has failed");
                return Err(Broken::new(Invariant::AttemptsByOne, event, detail));
            }
            self.check_reason(&message.look, reason)
        };
        let found = self.handling().find(|look| look.origin.event == event, check);
        found.unwrap_or_else(|| Err(foreign(event)))
    }

    /// The message that a dead-letter belongs to whose body, which could not be understood, is the
    /// message's own.
    fn position_of_verbatim(&self, body: &str, reason: ReasonCode) -> Result<Position, Broken> {
        let unreadable = |look: &Look| look.origin.flaw == Some(Flaw::Unreadable);
        let check = |message: &InHand| match self.queue.body(&message.received) {
            Some(original) if original != body => {
                let detail = format!("its dead-letter is {body}, not {original}");
                Err(Broken::new(Invariant::PayloadVerbatim, message.look.origin.event, detail))
            }
            _ => self.check_reason(&message.look, reason),
        };
        self.handling().find(unreadable, check).unwrap_or_else(|| {
            let detail = format!("a dead-letter is of no message of its batch: {body}");
            Err(Broken::new(Invariant::PayloadVerbatim, None, detail))
        })
    }

    fn check_reason(&self, look: &Look, reason: ReasonCode) -> Result<(), Broken> {
        let first_failure = self.ledger.first_failure(look.origin.event);
        self.bounds.dead_letter(look, self.handling().now, first_failure, reason)
    }
}

/// The reason in the attribute that operators filter by.
fn reason_of(dead_letter: &DeadLetter) -> Result<ReasonCode, Broken> {
    let attribute = dead_letter.attributes.iter().find(|attribute| attribute.name == "Reason");
    let code =
        attribute.and_then(|reason| ReasonCode::ALL.into_iter().find(|code| code.name() == reason.value));
    code.ok_or_else(|| {
        let detail = format!("a dead-letter has no reason that we know: {}", dead_letter.body);
        Broken::new(Invariant::TrueReasons, None, detail)
    })
}

fn foreign(event: EventNumber) -> Broken {
    let detail = "it was re-invoked or dead-lettered from a batch that has no message of it";
    Broken::new(Invariant::ExplainedDuplicates, event, detail)
}
