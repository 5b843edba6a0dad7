//! Exposes the simulated queue, mapping and failure records to the contract tests, which also run against real AWS.

use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::Id;
use super::agenda::{Agenda, START};
use super::mapping::kept;
use super::queue::{Attributes, Depth, QueueSettings, QueueTimer, ReceiptHandle, Sent, SqsQueue};
use super::target::{FailedInvocation, FailureRecords, TARGET_ARN, TargetError};

/// A simulated queue for contract tests; each call advances its clock by a millisecond.
#[derive(Debug)]
pub struct QueueUnderContract {
    now: Timestamp,
    agenda: Agenda<QueueTimer>,
    queue: SqsQueue<()>,
    message_ids: Xoshiro256PlusPlus,
    records: FailureRecords,
}

impl QueueUnderContract {
    /// Creates an empty queue with this visibility timeout.
    #[must_use]
    pub fn new(visibility_timeout: Duration) -> Self {
        Self {
            now: START,
            agenda: Agenda::default(),
            queue: SqsQueue::new(QueueSettings { visibility_timeout, ..QueueSettings::default() }),
            message_ids: Xoshiro256PlusPlus::seed_from_u64(1),
            records: FailureRecords::of(TARGET_ARN),
        }
    }

    /// Sends a message, as `SendMessage` does, and returns its id.
    pub fn send(&mut self, body: &str) -> String {
        self.send_delayed(body, Duration::ZERO, Attributes::default()).expect("BUG: it has no delay")
    }

    /// Sends a message with attributes and a delay in whole seconds; returns its id, or SQS's error.
    pub fn send_delayed(
        &mut self,
        body: &str,
        delay: Duration,
        attributes: Attributes,
    ) -> Result<String, String> {
        self.tick();
        let id = Id::draw(&mut self.message_ids);
        let end = START.saturating_add(Duration::MAX);
        let attributes = Some(Box::new(attributes));
        let sent = Sent { id, body: body.to_owned(), delay, attributes, carried: () };
        self.queue.send(self.now, end, &mut self.agenda, sent).map(|_| id.to_string())
    }

    /// Sends the invocation record of a failed asynchronous invocation with this payload, as Lambda does.
    pub fn fail(&mut self, payload: &str, error: TargetError) {
        let request_id = Id::draw(&mut self.message_ids);
        let failed = FailedInvocation { request_id, payload, error };
        let body = self.records.write(self.now, failed, String::new());
        self.send(&body);
    }

    /// Receives up to `most` messages, as `ReceiveMessage` or the event source mapping does.
    pub fn receive(&mut self, most: usize) -> Vec<Record> {
        self.tick();
        let mut records = Vec::new();
        self.queue.receive(self.now, most, &mut self.agenda, &mut records);
        records
    }

    /// Returns the attributes of the message that was received with this handle and has not been deleted.
    #[must_use]
    pub fn attributes(&self, handle: &str) -> Attributes {
        let message = ReceiptHandle::parse(handle).and_then(|receipt| self.queue.message(receipt));
        message.and_then(|message| message.attributes.as_deref()).cloned().unwrap_or_default()
    }

    /// Changes the visibility timeout of a message, as `ChangeMessageVisibility` does, or fails with SQS's error.
    pub fn change_visibility(&mut self, handle: &str, timeout: Duration) -> Result<(), String> {
        self.tick();
        self.queue.change_visibility(self.now, &mut self.agenda, handle, timeout)
    }

    /// Deletes a message. Ignores a stale handle, as `DeleteMessage` does.
    pub fn delete(&mut self, handle: &str) {
        self.tick();
        if let Some(receipt) = ReceiptHandle::parse(handle) {
            self.queue.delete(receipt);
        }
    }

    /// Ends a batch as the mapping does when its function responds with these `batchItemFailures`.
    pub fn answer(&mut self, batch: &[Record], batch_item_failures: &[&str]) {
        for (record, kept) in batch.iter().zip(kept(batch, batch_item_failures)) {
            if !kept {
                self.delete(&record.receipt_handle);
            }
        }
    }

    /// Number of messages in each state, as `GetQueueAttributes` reports them.
    pub fn depth(&mut self) -> Depth {
        self.tick();
        self.queue.depth()
    }

    /// Moves the clock to the end of the next delay or visibility timeout; returns false if there is none.
    pub fn wait(&mut self) -> bool {
        let Some((at, timer)) = self.agenda.next_until(START.saturating_add(Duration::MAX)) else {
            return false;
        };
        self.now = self.now.max(at);
        self.queue.run_out(self.now, timer);
        true
    }

    fn tick(&mut self) {
        self.now = self.now.saturating_add(Duration::from_millis(1));
        while let Some((_, timer)) = self.agenda.next_until(self.now) {
            self.queue.run_out(self.now, timer);
        }
    }
}
