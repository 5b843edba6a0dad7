//! From the target to the queue: records of failures, and the faults that strike them.

use std::time::Duration;

use rand::RngExt;

use super::World;
use super::happening::{EarlyExpiryKey, Happening};
use crate::aws::id::Id;
use crate::aws::queue::Sent;
use crate::aws::target::{Ended, InvocationKey};
use crate::check::asked::Asked;
use crate::check::origin::{Attempt, Origin, Tracked};
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::faults::records::{
    Flaw, RESPONSE_PAYLOAD, name_unlisted_function, without_a_member, write_hostile_message,
};
use crate::figures::calls::ApiCall;

impl World {
    /// An invocation ends: delivered, or Lambda sends the record of its failure to the retry queue.
    pub(super) fn end_invocation(&mut self, invocation: InvocationKey) -> Ended<Attempt> {
        let mut ended = self.target.end(self.now, invocation);
        let attempt = ended.carried;
        match &mut ended.failure {
            None => {
                self.ledger.deliver(attempt.event, self.now);
                self.minutes.at(self.now).delivered += 1;
            }
            Some((error, record)) => {
                let (body, asked) = (std::mem::take(record), error.retry_after);
                self.ledger.fail(attempt.event, self.now);
                self.send(attempt, body, asked);
            }
        }
        self.drop_carrier(attempt.event);
        ended
    }

    /// Lambda sends the record of a failed attempt to the retry queue. The attempt asked for a wait, or did not.
    pub(super) fn send(&mut self, failed: Attempt, mut body: String, mut asked: Option<Duration>) {
        let event = failed.event;
        let flaw = self.strike_record(event, &mut body, &mut asked);
        let written = body.contains(r#""timestamp":"#).then_some(self.now);
        let asked = asked.map(|wait| Asked { wait, written });
        let origin = Origin { event, attempt: failed.number, flaw, asked };
        self.calls.add_carrying(ApiCall::SendMessage, body.len());
        let id = Id::draw(&mut self.message_ids);
        let carried = Tracked::new(origin, self.now);
        let sent = Sent { id, body, delay: Duration::ZERO, attributes: None, carried };
        let slot = self.queue.send(self.now, self.scenario.end(), &mut self.agenda, sent);
        let slot = slot.expect("BUG: it has no delay");
        self.ledger.carry(event);
        if let Some(rng) = self.dice.roll(Fault::RetentionEnded, self.now) {
            let left = Duration::from_millis(rng.random_range(0..12 * 3_600_000));
            let expiry = EarlyExpiryKey(self.early_expiries.len());
            self.early_expiries.push((slot, id, event));
            self.plan(left, Happening::ExpiresEarly(expiry));
        }
    }

    fn strike_record(
        &mut self,
        event: EventNumber,
        body: &mut String,
        asked: &mut Option<Duration>,
    ) -> Option<Flaw> {
        if let Some(rng) = self.dice.roll(Fault::IncompleteRecord, self.now) {
            let flaw = without_a_member(body, rng);
            asked.take_if(|_| !body.contains(RESPONSE_PAYLOAD));
            self.dice.note(Fault::IncompleteRecord, [event]);
            return flaw;
        }
        if self.dice.strikes(Fault::UnlistedFunction, self.now, [event]) {
            return Some(name_unlisted_function(body));
        }
        if let Some(rng) = self.dice.roll(Fault::HostileMessage, self.now) {
            *asked = write_hostile_message(body, rng);
            self.dice.note(Fault::HostileMessage, [event]);
        }
        None
    }

    /// A retention ends early, unless the message is gone by now.
    pub(super) fn expire_early(&mut self, expiry: EarlyExpiryKey) {
        let (slot, id, event) = self.early_expiries[expiry.0];
        self.early_expiry = self.queue.expire_early(slot, id);
        if self.early_expiry {
            self.dice.note(Fault::RetentionEnded, [event]);
        }
    }
}
