//! Faults that strike messages and batches on their way to the handler.

use std::time::Duration;

use comeback_engine::{HANDLER_TIMEOUT, Record, Timestamp};
use rand::RngExt;

use super::World;
use super::batch::{Batch, Death, Polled};
use super::happening::Happening;
use crate::aws::queue::{Receipt, Received};
use crate::event::EventNumber;
use crate::faults::fault::Fault;

/// How far the clocks of SQS and of Lambda differ at most.
const SKEW_MS: u64 = 5_000;

impl World {
    /// The faults that strike each message on its way to a poller.
    pub(super) fn strike_messages(&mut self, messages: &mut Vec<Polled>, records: &mut Vec<Record>) {
        for index in 0..messages.len() {
            let Polled { received, origin } = messages[index];
            let event = origin.event;
            if self.dice.strikes(Fault::ReceiveCountHigh, self.now, [event]) {
                records[index].receive_count += 1;
            }
            if self.dice.strikes(Fault::ReceiveCountLow, self.now, [event]) {
                records[index].receive_count -= 1;
                // On what it takes for a first receive the handler counts a wait from now.
                if let Some(tracked) = self.queue.carried_mut(&received) {
                    tracked.hops.excuse();
                }
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
        if let Some(tracked) = self.queue.carried_mut(&received) {
            tracked.duplicated = true;
            tracked.hops.excuse();
        }
    }

    /// A fault explains one more copy of a message.
    pub(super) fn excuse(&mut self, received: Received) {
        let settled = self.queue.carried(&received).is_some_and(|tracked| tracked.settled);
        self.copies.excuse(received.id, settled);
    }

    /// The handler's clock when it starts on a batch.
    pub(super) fn handlers_clock(&mut self, batch: &Batch) -> Timestamp {
        let Some(rng) = self.dice.roll(Fault::ClockSkew, self.now) else { return self.now };
        let ahead = rng.random_range(0..=2 * SKEW_MS);
        self.dice.note(Fault::ClockSkew, batch.events());
        Timestamp::from_millis(self.now.as_millis() + ahead - SKEW_MS)
    }

    /// Whether and how the handler dies of a batch with this many messages. The fault strikes when it does.
    pub(super) fn draw_death(&mut self, messages: u64) -> Option<Death> {
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
        if dice.roll(Fault::HandlerDiedAfterMove, now).is_some() {
            return Some(Death { calls: u64::MAX, ..at_once(Fault::HandlerDiedAfterMove) });
        }
        let rng = dice.roll(Fault::HandlerTimedOut, now)?;
        let calls = rng.random_range(0..=messages);
        let calls_at = Duration::from_millis(rng.random_range(0..HANDLER_TIMEOUT.as_millis() as u64));
        Some(Death { fault: Fault::HandlerTimedOut, calls, calls_at: Some(calls_at) })
    }
}
