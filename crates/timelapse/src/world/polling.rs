//! From the queue to the handler and back: polls, batches and their answers.

use comeback_engine::HANDLER_TIMEOUT;

use super::World;
use super::batch::{Batch, Death, Polled};
use super::handling::Handling;
use super::happening::Happening;
use crate::aws::mapping::{BatchKey, LONG_POLL};
use crate::aws::queue::Received;
use crate::faults::fault::Fault;
use crate::figures::calls::ApiCall;
use crate::scenario::START;

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
                self.calls.add_carrying(ApiCall::ReceiveMessage, batch.bytes());
                self.mapping.recycle(batch.records);
                continue;
            }
            self.hand_over(batch);
        }
    }

    pub(super) fn polled(&self, received: Received) -> Polled {
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
        self.calls.add_carrying(ApiCall::ReceiveMessage, batch.bytes());
        self.decisions += batch.messages.len() as u64;
        let (key, empty_polls) = self.mapping.start(self.now, batch);
        self.calls.add(ApiCall::ReceiveMessage, empty_polls);
        self.calls.add(ApiCall::InvokeHandler, 1);
        self.plan(run_time, Happening::BatchEnds(key));
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
