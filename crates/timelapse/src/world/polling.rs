//! From the queue to the handler and back: polls, batches and their answers, and the faults that
//! strike them.

use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use rand::RngExt;

use super::World;
use super::batch::{Batch, Death, Polled};
use super::handling::Handling;
use super::happening::Happening;
use crate::aws::mapping::{BatchKey, LONG_POLL};
use crate::aws::queue::{Receipt, Received};
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::figures::calls::ApiCall;
use crate::scenario::{HANDLER_TIMEOUT, START};

/// How far the clocks of SQS and of Lambda differ at most.
const SKEW_MS: u64 = 5_000;

impl World {
    /// The pollers take what is visible, up to the mapping's concurrency.
    pub(super) fn poll(&mut self) {
        self.mapping.poll_planned = false;
        while self.can_receive() {
            if self.dice.strikes(Fault::InFlightLimit, self.now, []) {
                self.mapping.poll_planned = true;
                return self.plan(LONG_POLL, Happening::Poll);
            }
            let mut records = self.mapping.buffers();
            let most = self.scenario.batch_size;
            let received = self.queue.receive(self.now, most, &mut self.agenda, &mut records);
            if received.is_empty() {
                return;
            }
            let mut messages = received.into_iter().map(|received| self.polled(received)).collect();
            self.strike_messages(&mut messages, &mut records);
            let batch = Batch::new(self.now, records, messages);
            if self.dice.strikes(Fault::PollerThrottled, self.now, batch.events()) {
                self.calls.add(ApiCall::ReceiveMessage, 1);
                self.mapping.recycle(batch.records);
                continue;
            }
            self.hand_over(batch);
        }
    }

    fn polled(&self, received: Received) -> Polled {
        let tracked = self.queue.carried(&received).expect("BUG: a message was received and is gone");
        Polled { received, origin: tracked.origin }
    }

    fn hand_over(&mut self, mut batch: Batch) {
        batch.clock = self.handlers_clock(&batch);
        batch.death = self.draw_death(batch.messages.len() as u64);
        let run_time = match batch.death {
            Some(Death { calls_at: Some(calls_at), .. }) => calls_at,
            _ => self.scenario.handler_run_time,
        };
        let (key, polls) = self.mapping.start(self.now, batch);
        self.calls.add(ApiCall::ReceiveMessage, polls);
        self.calls.add(ApiCall::InvokeHandler, 1);
        self.plan(run_time, Happening::BatchEnds(key));
    }

    /// The faults that strike each message on its way to a poller.
    fn strike_messages(&mut self, messages: &mut Vec<Polled>, records: &mut Vec<Record>) {
        for index in 0..messages.len() {
            let Polled { received, origin } = messages[index];
            let event = origin.event;
            if self.dice.strikes(Fault::ReceiveCountHigh, self.now, [event]) {
                records[index].receive_count += 1;
            }
            if self.dice.strikes(Fault::ReceiveCountLow, self.now, [event]) {
                records[index].receive_count -= 1;
            }
            if let Some(rng) = self.dice.roll(Fault::DuplicateDelivery, self.now) {
                // Half of the copies come at once, in the same batch if it has room. The others come
                // within milliseconds to an hour, each order of magnitude being equally likely.
                if messages.len() < self.scenario.batch_size && rng.random_bool(0.5) {
                    let receipt = received.receipt;
                    let copy = self.queue.hand_out_again(self.now, receipt, &mut self.agenda, records);
                    messages.push(Polled { received: copy, origin });
                    self.duplicate(copy, event);
                } else {
                    let after = Duration::from_secs_f64(10f64.powf(rng.random_range(-2.0..3.5)));
                    self.plan(after, Happening::AppearsEarly(received.receipt));
                }
            } else if self.dice.strikes(Fault::StaleReceiptHandle, self.now, [event]) {
                self.queue.make_stale(received.receipt, &mut self.agenda);
                self.excuse(received);
            }
        }
    }

    /// SQS hands a message out again though it is hidden, unless it has moved on meanwhile.
    pub(super) fn appear_early(&mut self, receipt: Receipt) {
        if let Some(received) = self.queue.appear_early(receipt) {
            let event = self.polled(received).origin.event;
            self.duplicate(received, event);
        }
    }

    fn duplicate(&mut self, received: Received, event: EventNumber) {
        self.dice.note(Fault::DuplicateDelivery, [event]);
        self.excuse(received);
    }

    /// A fault explains one more copy of a message.
    pub(super) fn excuse(&mut self, received: Received) {
        let settled = self.queue.carried(&received).is_some_and(|tracked| tracked.settled);
        self.copies.excuse(received.id, settled);
    }

    fn handlers_clock(&mut self, batch: &Batch) -> Timestamp {
        let Some(rng) = self.dice.roll(Fault::ClockSkew, self.now) else { return self.now };
        let ahead = rng.random_range(0..=2 * SKEW_MS);
        self.dice.note(Fault::ClockSkew, batch.events());
        Timestamp::from_millis(self.now.as_millis() + ahead - SKEW_MS)
    }

    /// Whether and how the handler dies of a batch with this many messages. The fault strikes when it does.
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
    pub(super) fn open_batch(&mut self, key: BatchKey) -> Batch {
        let batch = self.mapping.take(key);
        match batch.death {
            Some(Death { fault: Fault::HandlerTimedOut, .. }) => {
                let timeout = batch.started.saturating_add(HANDLER_TIMEOUT);
                self.agenda.plan(timeout, Happening::HandlerTimesOut(key));
            }
            _ => self.mapping.end(self.now, key),
        }
        let calls_left = batch.death.map_or(u64::MAX, |death| death.calls);
        self.handling = Some(Handling::of(&batch, calls_left, |received| {
            self.queue.carried(received).map_or(START, |tracked| tracked.not_before)
        }));
        batch
    }

    /// The handler died: SQS deletes nothing, and what it has done will be done again.
    pub(crate) fn bury(&mut self, batch: Batch, fault: Fault) {
        self.dice.note(fault, batch.events());
        let handling = self.handling.take().expect("BUG: it was handling this batch");
        handling.settled().for_each(|received| self.excuse(received));
        self.mapping.recycle(batch.records);
    }

    /// The mapping deletes the messages that the handler did not report failed.
    pub(crate) fn delete_settled(&mut self, batch: Batch, kept: &[bool]) {
        let mut deleted = false;
        for (message, kept) in batch.messages.iter().zip(kept) {
            if !kept {
                deleted = true;
                if let Some(body) = self.queue.delete(message.received.receipt) {
                    self.target.reuse(body);
                    self.drop_carrier(message.origin.event);
                }
            }
        }
        self.calls.add(ApiCall::DeleteMessageBatch, u64::from(deleted));
        self.mapping.recycle(batch.records);
    }
}
