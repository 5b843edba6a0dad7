//! From the queue to the handler and back: polls, batches and their answers.

use comeback_engine::{HANDLER_TIMEOUT, Pauses, RESERVE, Record};

use super::World;
use super::batch::{Batch, Death, Polled};
use super::handling::Handling;
use super::happening::Happening;
use crate::aws::mapping::{BatchKey, LONG_POLL};
use crate::aws::queue::Received;
use crate::check::invariants::{Broken, Invariant};
use crate::check::pauses::Known;
use crate::faults::fault::Fault;
use crate::figures::calls::ApiCall;

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
            let batch = self.batch(records, messages);
            if self.dice.strikes(Fault::PollerThrottled, self.now, batch.events()) {
                self.calls.add_carrying(ApiCall::ReceiveMessage, batch.bytes());
                self.release(batch);
                continue;
            }
            self.hand_over(batch);
        }
    }

    /// A batch whose handler starts now.
    fn batch(&mut self, records: Vec<Record>, messages: Vec<Polled>) -> Batch {
        let attributes =
            messages.iter().map(|message| self.queue.attributes(&message.received).cloned()).collect();
        let (started, environment) = (self.now, self.environments.take(self.now));
        Batch {
            started,
            clock: started,
            records,
            messages,
            attributes,
            environment,
            old_handler: false,
            death: None,
            struck: None,
        }
    }

    pub(super) fn polled(&self, received: Received) -> Polled {
        let tracked = self.queue.carried(&received).expect("BUG: a message was received and is gone");
        Polled { received, origin: tracked.origin }
    }

    fn hand_over(&mut self, mut batch: Batch) {
        batch.clock = self.handlers_clock(&batch);
        batch.old_handler = self.dice.strikes(Fault::OldHandler, self.now, batch.events());
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
        let mut batch = self.mapping.take(key);
        match batch.death {
            Some(Death { fault: Fault::HandlerTimedOut, .. }) => {
                let timeout = batch.started.saturating_add(HANDLER_TIMEOUT);
                self.agenda.plan(timeout, Happening::HandlerTimesOut(key));
            }
            _ => self.mapping.end(self.now, key),
        }
        let struck = self.strike_fields(&batch);
        if !batch.old_handler {
            batch.restore();
        }
        self.note_looks(&batch);
        let mut handling = Handling::of(&batch, |received| self.queue.carried(received));
        self.bounds.known = if batch.old_handler { Known::none() } else { batch.environment.known.clone() };
        let none = Pauses::default();
        let pauses = batch.environment.engine.pauses().filter(|_| !batch.old_handler);
        handling.tell_apart(&self.policy, pauses.unwrap_or(&none));
        if let Some(struck) = struck {
            struck.overlooked.into_iter().for_each(|position| handling.overlook(position));
            batch.struck = Some(struck.event);
        }
        self.handling = Some(handling);
        batch
    }

    /// What each message's checks need to know of the batch.
    fn note_looks(&mut self, batch: &Batch) {
        let deadline = batch.started.saturating_add(HANDLER_TIMEOUT - RESERVE);
        for message in &batch.messages {
            let Some(tracked) = self.queue.carried_mut(&message.received) else { continue };
            if batch.death.is_none() && self.now < deadline {
                tracked.decided = self.now;
            }
            if batch.clock != batch.started || batch.old_handler {
                tracked.hops.excuse();
            }
            // An old handler knows of no wait that a copy carries.
            tracked.duplicated |= batch.old_handler;
        }
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
        let handling = self.handling.take();
        if !kept.iter().all(|&kept| kept) && self.dice.strikes(Fault::DeleteLost, self.now, batch.events()) {
            handling.iter().flat_map(Handling::settled).for_each(|received| self.excuse(received));
            return self.release(batch);
        }
        for (message, kept) in batch.messages.iter().zip(kept) {
            if !kept {
                deleted = true;
                self.check_deletion(message);
                if let Some(body) = self.queue.delete(message.received.receipt) {
                    self.target.reuse(body);
                    self.drop_carrier(message.origin.event);
                }
            }
        }
        self.calls.add(ApiCall::DeleteMessageBatch, u64::from(deleted));
        self.release(batch);
    }

    /// What a batch has used is free for another.
    fn release(&mut self, batch: Batch) {
        self.mapping.recycle(batch.records);
        self.environments.give_back(self.now, batch.environment);
    }

    fn check_deletion(&mut self, message: &Polled) {
        let settled = self.queue.carried(&message.received).is_none_or(|tracked| tracked.settled);
        let detail = "its message is deleted, and was neither re-invoked nor dead-lettered nor moved";
        let broken = || Broken::new(Invariant::LeavesForAReason, message.origin.event, detail);
        self.note_broken(if settled { Ok(()) } else { Err(broken()) });
    }
}
