//! From the queue to the handler and back: polls, batches and their answers, and what strikes them.

use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use rand::RngExt;

use super::World;
use crate::aws::agenda::Happening;
use crate::aws::mapping::{Batch, Death, LONG_POLL};
use crate::aws::queue::{Receipt, Received};
use crate::faults::fault::Fault;
use crate::figures::calls::Operation;
use crate::scenario::{HANDLER_TIMEOUT, START};
use crate::world::handling::{Done, Handling};

/// How far the clocks of SQS and of Lambda are apart at most.
const SKEW_MS: u64 = 5_000;

impl World {
    /// The pollers take what is visible, as far as the mapping's concurrency goes.
    pub(super) fn poll(&mut self) {
        self.mapping.poll_planned = false;
        while self.can_receive() {
            if self.dice.strikes(Fault::InFlightLimit, self.now, []) {
                self.mapping.poll_planned = true;
                return self.plan(LONG_POLL, Happening::Poll);
            }
            let mut records = self.mapping.buffers();
            let most = self.scenario.batch_size;
            let mut received = self.queue.receive(self.now, most, &mut self.agenda, &mut records);
            if received.is_empty() {
                return;
            }
            self.strike_messages(&mut received, &mut records);
            let events = received.iter().map(|received| received.event);
            if self.dice.strikes(Fault::PollerThrottled, self.now, events) {
                self.calls.add(Operation::ReceiveMessage, 1);
                self.mapping.recycle(records);
                continue;
            }
            self.hand_over(Batch::new(self.now, records, received));
        }
    }

    fn hand_over(&mut self, mut batch: Batch) {
        batch.clock = self.handlers_clock(&batch);
        batch.death = self.draw_death(batch.received.len() as u64);
        let run_time = match batch.death {
            Some(Death { calls_at: Some(calls_at), .. }) => calls_at,
            _ => self.scenario.handler_run_time,
        };
        let (place, polls) = self.mapping.start(batch);
        self.calls.add(Operation::ReceiveMessage, polls);
        self.calls.add(Operation::InvokeHandler, 1);
        self.plan(run_time, Happening::BatchEnds(place));
    }

    /// What goes wrong with each message on its way to a poller.
    fn strike_messages(&mut self, received: &mut Vec<Received>, records: &mut Vec<Record>) {
        for place in 0..received.len() {
            let Received { receipt, event, .. } = received[place];
            if self.dice.strikes(Fault::ReceiveCountHigh, self.now, [event]) {
                records[place].receive_count += 1;
            }
            if self.dice.strikes(Fault::ReceiveCountLow, self.now, [event]) {
                records[place].receive_count -= 1;
            }
            if let Some(rng) = self.dice.roll(Fault::DuplicateDelivery, self.now) {
                // Half of the copies come at once, in the same batch where there is room. The others
                // come within milliseconds or an hour, each order of magnitude as likely.
                if received.len() < self.scenario.batch_size && rng.random_bool(0.5) {
                    let copy = self.queue.hand_out_again(self.now, receipt, &mut self.agenda, records);
                    received.push(copy);
                    self.duplicate(copy);
                } else {
                    let after = Duration::from_secs_f64(10f64.powf(rng.random_range(-2.0..3.5)));
                    self.plan(after, Happening::AppearsEarly(receipt));
                }
            } else if self.dice.strikes(Fault::StaleReceiptHandle, self.now, [event]) {
                self.queue.make_stale(receipt, &mut self.agenda);
                self.excuse(received[place]);
            }
        }
    }

    /// SQS hands a message out again though it is hidden, unless it has moved on meanwhile.
    pub(super) fn appear_early(&mut self, receipt: Receipt) {
        if let Some(message) = self.queue.appear_early(receipt) {
            self.duplicate(message);
        }
    }

    fn duplicate(&mut self, message: Received) {
        self.dice.note(Fault::DuplicateDelivery, [message.event]);
        self.excuse(message);
    }

    /// One more copy of a message is explained.
    pub(super) fn excuse(&mut self, message: Received) {
        let settled = self.queue.get(&message).is_some_and(|message| message.settled);
        self.copies.excuse(message.id, settled);
    }

    fn handlers_clock(&mut self, batch: &Batch) -> Timestamp {
        let Some(rng) = self.dice.roll(Fault::ClockSkew, self.now) else { return self.now };
        let ahead = rng.random_range(0..=2 * SKEW_MS);
        self.dice.note(Fault::ClockSkew, batch.events());
        Timestamp::from_millis(self.now.as_millis() + ahead - SKEW_MS)
    }

    /// Whether and how the handler dies of a batch with so many messages. It strikes when it does.
    fn draw_death(&mut self, messages: u64) -> Option<Death> {
        let (now, dice) = (self.now, &mut self.dice);
        let at_once = |fault| Death { fault, calls: 0, calls_at: None };
        if dice.roll(Fault::HandlerOutage, now).is_some() {
            return Some(at_once(Fault::HandlerOutage));
        }
        if dice.roll(Fault::HandlerDiedBefore, now).is_some() {
            return Some(at_once(Fault::HandlerDiedBefore));
        }
        if let Some(rng) = dice.roll(Fault::HandlerDiedBetween, now) {
            let calls = rng.random_range(1..messages.max(2));
            return Some(Death { calls, ..at_once(Fault::HandlerDiedBetween) });
        }
        if dice.roll(Fault::HandlerDiedAfter, now).is_some() {
            return Some(Death { calls: u64::MAX, ..at_once(Fault::HandlerDiedAfter) });
        }
        let rng = dice.roll(Fault::HandlerTimedOut, now)?;
        let calls = rng.random_range(0..=messages);
        let calls_at = Duration::from_millis(rng.random_range(0..HANDLER_TIMEOUT.as_millis() as u64));
        Some(Death { fault: Fault::HandlerTimedOut, calls, calls_at: Some(calls_at) })
    }

    /// The handler's calls come now. Gives it its batch.
    pub(crate) fn open_batch(&mut self, place: usize) -> Batch {
        let batch = match self.mapping.death_of(place) {
            Some(Death { fault: Fault::HandlerTimedOut, .. }) => {
                let batch = self.mapping.quiet(self.now, place);
                self.agenda.plan(batch.started.saturating_add(HANDLER_TIMEOUT), Happening::BatchDies(place));
                batch
            }
            _ => self.mapping.end(self.now, place),
        };
        let calls_left = batch.death.map_or(u64::MAX, |death| death.calls);
        self.handling = Some(Handling::of(&batch, calls_left, |received| {
            self.queue.get(received).map_or(START, |message| message.not_before)
        }));
        batch
    }

    /// The handler died: nothing is deleted, and what it did it will do again.
    pub(crate) fn bury(&mut self, batch: Batch, fault: Fault) {
        self.dice.note(fault, batch.events());
        let mut looks = self.handling.take().expect("BUG: it was handling this batch").looks;
        looks.retain(|look| look.done == Done::Settled);
        looks.into_iter().for_each(|look| self.excuse(look.received));
        self.mapping.recycle(batch.records);
    }

    /// The mapping deletes what the handler did not report failed.
    pub(crate) fn delete_settled(&mut self, batch: Batch, kept: &[bool]) {
        let mut deleted = false;
        for (received, kept) in batch.received.iter().zip(kept) {
            if !kept {
                deleted = true;
                if let Some(body) = self.queue.delete(received.receipt) {
                    self.target.reuse(body);
                    self.drop_carrier(received.event);
                }
            }
        }
        self.calls.add(Operation::DeleteMessageBatch, u64::from(deleted));
        self.mapping.recycle(batch.records);
    }
}
