//! From the target to the queue: records of failures, and what strikes them.

use std::time::Duration;

use rand::RngExt;

use super::World;
use crate::aws::agenda::Happening;
use crate::aws::failure_record::{of_another_function, without_a_member};
use crate::aws::id::Id;
use crate::aws::queue::{Flaw, Sent};
use crate::aws::target::Ended;
use crate::faults::fault::Fault;
use crate::figures::calls::Operation;

impl World {
    /// An invocation ends: delivered, or Lambda sends the record of its failure to the retry queue.
    pub(crate) fn end_invocation(&mut self, place: usize) -> Ended {
        let mut ended = self.target.end(self.now, place);
        match &mut ended.failure {
            None => {
                self.ledger.deliver(ended.event, self.now);
                self.minute().delivered += 1;
            }
            Some((_, record)) => {
                let body = std::mem::take(record);
                self.ledger.fail(ended.event, self.now);
                self.send(ended.event, ended.attempt, body);
            }
        }
        self.drop_carrier(ended.event);
        ended
    }

    /// Lambda sends the record of a failure to the retry queue.
    pub(super) fn send(&mut self, event: usize, attempt: u64, mut body: String) {
        let flaw = self.strike_record(event, &mut body);
        let id = Id::draw(&mut self.message_ids);
        let content = Sent { id, body, event, attempt, flaw };
        let slot = self.queue.send(self.now, self.scenario.end(), &mut self.agenda, content);
        self.ledger.carry(event);
        self.calls.add(Operation::SendMessage, 1);
        if let Some(rng) = self.dice.roll(Fault::RetentionEnded, self.now) {
            let left = Duration::from_millis(rng.random_range(0..12 * 3_600_000));
            let place = self.expiring.len();
            self.expiring.push((slot, id));
            self.plan(left, Happening::ExpiresEarly(place));
        }
    }

    fn strike_record(&mut self, event: usize, body: &mut String) -> Option<Flaw> {
        if let Some(rng) = self.dice.roll(Fault::IncompleteRecord, self.now) {
            let flaw = without_a_member(body, rng);
            self.dice.note(Fault::IncompleteRecord, [event]);
            return flaw;
        }
        self.dice.strikes(Fault::UnlistedFunction, self.now, [event]).then(|| of_another_function(body))
    }

    /// A retention ends early, unless the message is gone by now.
    pub(super) fn expire_early(&mut self, place: usize) {
        let (slot, id) = self.expiring[place];
        if let Some(event) = self.queue.expire_early(slot, id) {
            self.dice.note(Fault::RetentionEnded, [event]);
        }
    }
}
