//! The handler's moves: checked, then performed.

use std::time::Duration;

use comeback_delivery::{Answer, ErrorKind, ServiceError};
use comeback_engine::{BatchReport, Move, Step};

use crate::aws::id::Id;
use crate::aws::queue::{Attributes, Sent};
use crate::check::invariants::{Broken, Invariant};
use crate::check::origin::Tracked;
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::figures::calls::ApiCall;
use crate::world::World;
use crate::world::batch::Batch;
use crate::world::handling::{Done, Position};

impl World {
    /// SQS `SendMessageBatch` to the retry queue.
    pub(crate) fn send_again_batch(&mut self, moves: &[&&Move<'_>]) -> Result<Vec<Answer>, ServiceError> {
        let positions: Vec<Position> = moves.iter().filter_map(|copy| self.check_move(copy)).collect();
        if positions.len() < moves.len() {
            // An invariant is broken: the run ends here.
            return Ok(vec![Ok(()); moves.len()]);
        }
        self.calls.add_carrying(ApiCall::SendAgain, moves.iter().map(|copy| copy.size()).sum::<usize>());
        let events: Vec<EventNumber> =
            positions.iter().map(|&position| self.handling().at(position).look.origin.event).collect();
        if self.dice.strikes(Fault::MoveRefused, self.now, events.iter().copied()) {
            return Err(ServiceError::new(
                ErrorKind::Refused,
                "InvalidParameterValue",
                "the request is refused",
            ));
        }
        if self.dice.strikes(Fault::MoveThrottled, self.now, events.iter().copied()) {
            return Err(ServiceError::new(
                ErrorKind::Throttled,
                "RequestThrottled",
                "the request has failed",
            ));
        }
        for (copy, &position) in moves.iter().zip(&positions) {
            self.accept_move(copy, position);
        }
        let handling = self.handling_mut();
        if handling.dies_of_moves {
            handling.died = true;
            handling.calls_left = 0;
        }
        if self.dice.strikes(Fault::MoveLost, self.now, events) {
            for position in positions {
                self.excuse_at(position);
                self.handling_mut().mark_copied(position);
            }
            return Err(ServiceError::new(ErrorKind::Transient, "", "no answer in time"));
        }
        Ok(vec![Ok(()); moves.len()])
    }

    /// Checks a move. Gives the message that it belongs to, if that breaks no invariant.
    fn check_move(&mut self, copy: &Move<'_>) -> Option<Position> {
        let position = self.handling().of_receipt(&copy.record.receipt_handle)?;
        let message = *self.handling().at(position);
        let (event, now) = (message.look.origin.event, self.handling().now);
        let altered = |original: &str| original != copy.record.body;
        if self.queue.body(&message.received).is_some_and(altered) {
            let broken = Broken::new(Invariant::PayloadVerbatim, event, "its copy has another body");
            return self.note_broken(Err(broken));
        }
        if self.is_held(&message, copy.delay) || self.may_be_kept(&message, copy.delay) {
            return Some(position);
        }
        if message.done != Done::Tried && message.done != Done::Settled {
            self.handling_mut().mark(position, Done::Deferred);
            let first_failure = self.ledger.first_failure(event);
            let checked = self.bounds.deferral(&message.look, now, first_failure, copy.delay);
            self.note_broken(checked)?;
        }
        Some(position)
    }

    /// SQS accepts a copy.
    fn accept_move(&mut self, copy: &Move<'_>, position: Position) {
        let message = *self.handling().at(position);
        let event = message.look.origin.event;
        let Some(tracked) = self.tracked_of_copy(copy, position) else { return };
        self.duplicate_moves += u64::from(self.settle(position));
        let trace_header = copy.record.trace_header.as_deref().map(Into::into);
        let mut attributes = Attributes { comeback: Some(copy.attribute.as_str().into()), trace_header };
        let mut carried = tracked;
        self.strike_attribute(copy, event, &mut attributes, &mut carried);
        let id = Id::draw(&mut self.copy_ids);
        let body = self.target.copy(&copy.record.body);
        let (delay, attributes) = (copy.delay, Some(Box::new(attributes)));
        let sent = Sent { id, body, delay, attributes, carried };
        self.queue
            .send(self.now, self.scenario.end(), &mut self.agenda, sent)
            .expect("BUG: the delay was checked");
        self.ledger.carry(event);
        self.moves += 1;
        self.moves_with_room += u64::from(2 * self.queue.in_flight() < self.hide_up_to);
    }

    /// What a copy carries of what is known of its message; `None` if its hops break an invariant.
    fn tracked_of_copy(&mut self, copy: &Move<'_>, position: Position) -> Option<Tracked> {
        let message = *self.handling().at(position);
        let (event, now) = (message.look.origin.event, self.handling().now);
        let known = self.queue.carried(&message.received).copied();
        // Another receiver has taken the message out of the queue meanwhile.
        let mut tracked =
            known.unwrap_or_else(|| Tracked { duplicated: true, ..Tracked::new(message.look.origin, now) });
        if self.may_be_kept(&message, copy.delay) {
            let after_failure = self.bounds.longest_after_failure(&message.look, false);
            let until = now.saturating_add(self.bounds.known.longest_keep(after_failure));
            tracked.hops.held_until = tracked.hops.held_until.max(Some(until));
            tracked.hops.excuse();
        }
        if matches!(message.done, Done::Tried | Done::Settled) {
            let longest = self.bounds.longest_after_failure(&message.look, message.unanswered);
            tracked.hops.held_until = Some(now.saturating_add(longest));
            tracked.hops.excuse();
            if message.unanswered {
                let first_failure = self.ledger.first_failure(event);
                let shortest = self.bounds.shortest_after_unanswered(now, first_failure);
                tracked.no_invoke_before = now.saturating_add(shortest);
            }
        }
        tracked.hops.know_pauses(self.bounds.known.changes(now));
        let hops = tracked.hops.after(now, copy.delay);
        tracked.hops =
            self.note_broken(hops.map_err(|detail| Broken::new(Invariant::FewestHops, event, detail)))?;
        Some(Tracked { settled: false, decided: self.now, ..tracked })
    }

    /// Faults of a copy's attribute. What it carried is lost then, and it is a new message.
    fn strike_attribute(
        &mut self,
        copy: &Move<'_>,
        event: EventNumber,
        attributes: &mut Attributes,
        tracked: &mut Tracked,
    ) {
        if !copy.record.body.contains(r#""timestamp":"#) {
            return;
        }
        if self.dice.strikes(Fault::AttributeGarbled, self.now, [event]) {
            attributes.comeback = Some(copy.attribute[..copy.attribute.len() / 2].into());
        } else if self.dice.strikes(Fault::AttributeStripped, self.now, [event]) {
            attributes.comeback = None;
        } else {
            return;
        }
        *tracked = Tracked { duplicated: true, ..Tracked::new(tracked.origin, self.now) };
    }

    /// Holds the hops of a batch to the due times that the handler's report gives.
    pub(crate) fn check_hops(&mut self, batch: &Batch, report: &BatchReport<'_>) {
        let moved = report.outcomes.iter().filter_map(|outcome| Some((outcome, outcome.moved?)));
        let mut quiet = 0;
        for (outcome, delay) in moved {
            quiet += u64::from(outcome.only_waits_on());
            let Some(Step::Defer { due, .. }) = outcome.step else { continue };
            let end = batch.clock.saturating_add(delay);
            if end.since(due) > Duration::from_secs(1) {
                let detail =
                    format!("message {}: its hop ends at {end}, it is due at {due}", outcome.message_id);
                self.note_broken(Err::<(), _>(Broken::new(Invariant::HopsEndInTime, None, detail)));
            }
        }
        // Copies that are moved once more have one line together.
        self.decisions = self.decisions + u64::from(quiet > 0) - quiet;
    }
}
