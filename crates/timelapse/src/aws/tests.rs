//! Tests that the simulated queue, mapping and failure records fulfil the contracts, which MiniStack fulfils too.

mod mapping;
mod queue;
mod stand;

use std::cell::{RefCell, RefMut};
use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use futures_util::FutureExt;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::agenda::{Agenda, START};
use super::draw_id;
use super::mapping::kept;
use super::queue::{
    Depth, OutgoingMessage, QueueSettings, QueueTimer, QueuedAttributes, ReceiptHandle, SqsQueue,
};
use super::target::{FailedInvocation, FailureRecords, TARGET_ARN, TargetError};
use stand::{Delayed, Difference, ERROR_MESSAGE, ERROR_TYPE, Queue, Stand, all};

/// A visibility timeout, in seconds, that does not end while a contract is being tested.
const LONG: u64 = 600;

/// The end of every test.
const END: Timestamp = Timestamp::from_millis(u64::MAX);

/// The simulations' SQS and event source mapping. They have no known differences from AWS.
struct Model(RefCell<State>);

struct State {
    now: Timestamp,
    agenda: Agenda<QueueTimer>,
    queue: SqsQueue<()>,
    ids: Xoshiro256PlusPlus,
    records: FailureRecords,
}

impl Model {
    fn new(visibility_timeout: u64) -> Self {
        let visibility_timeout = Duration::from_secs(visibility_timeout);
        Self(RefCell::new(State {
            now: START,
            agenda: Agenda::default(),
            queue: SqsQueue::new(QueueSettings { visibility_timeout, ..QueueSettings::default() }),
            ids: Xoshiro256PlusPlus::seed_from_u64(1),
            records: FailureRecords::of(TARGET_ARN),
        }))
    }

    /// Advances the clock by a millisecond, as every call does.
    fn tick(&self) -> RefMut<'_, State> {
        let mut state = self.0.borrow_mut();
        state.now = state.now.saturating_add(Duration::from_millis(1));
        let State { now, agenda, queue, .. } = &mut *state;
        while let Some((_, timer)) = agenda.next_until(*now) {
            queue.run_out(*now, timer);
        }
        state
    }

    fn post(&self, body: String, delay: u64, attributes: QueuedAttributes) -> Option<String> {
        let State { now, agenda, queue, ids, .. } = &mut *self.tick();
        let (id, attributes) = (draw_id(ids), Some(Box::new(attributes)));
        let sent = OutgoingMessage { id, body, delay: Duration::from_secs(delay), attributes, carried: () };
        queue.send(*now, END, agenda, sent).ok().map(|_| id.to_string())
    }

    fn receive_up_to(&self, most: usize) -> Vec<Record> {
        let State { now, agenda, queue, .. } = &mut *self.tick();
        let mut records = Vec::new();
        queue.receive(*now, most, agenda, &mut records);
        records
    }

    /// Waits until a message is visible, and receives up to `most` messages.
    fn wait_for(&self, most: usize) -> Vec<Record> {
        loop {
            let records = self.receive_up_to(most);
            if !records.is_empty() {
                return records;
            }
            let State { now, agenda, queue, .. } = &mut *self.0.borrow_mut();
            let (at, timer) = agenda.next_until(END).expect("no message will ever be visible");
            *now = at.max(*now);
            queue.run_out(*now, timer);
        }
    }
}

impl Queue for Model {
    fn differs(&self, _: Difference) -> bool {
        false
    }

    async fn send(&self, body: &str) -> String {
        self.post(body.to_owned(), 0, QueuedAttributes::default()).expect("it has no delay")
    }

    async fn receive(&self) -> Vec<Record> {
        self.receive_up_to(10)
    }

    async fn next(&self) -> Record {
        self.wait_for(1).remove(0)
    }

    async fn hide(&self, entries: &[(&str, u64)]) -> Vec<bool> {
        let hide = |(handle, seconds): &(&str, u64)| {
            let State { now, agenda, queue, .. } = &mut *self.tick();
            queue.change_visibility(*now, agenda, handle, Duration::from_secs(*seconds)).is_ok()
        };
        entries.iter().map(hide).collect()
    }

    async fn delete(&self, handle: &str) -> bool {
        self.tick().queue.delete(ReceiptHandle::parse(handle).expect("a handle of this queue"));
        true
    }

    async fn held(&self) -> usize {
        all(self.depth().await)
    }
}

impl Stand for Model {
    async fn send_delayed(&self, message: &Delayed) -> Option<String> {
        let Delayed { body, delay, attributes } = message;
        self.post((*body).to_owned(), *delay, attributes.clone())
    }

    async fn send_batch(&self, messages: &[Delayed]) -> Vec<Option<String>> {
        let mut sent = Vec::new();
        for message in messages {
            sent.push(self.send_delayed(message).await);
        }
        sent
    }

    async fn fail(&self, payload: &str) {
        let error = TargetError::new(ERROR_TYPE, ERROR_MESSAGE);
        let body = {
            let State { now, ids, records, .. } = &mut *self.0.borrow_mut();
            records.write(*now, FailedInvocation { request_id: draw_id(ids), payload, error }, String::new())
        };
        self.send(&body).await;
    }

    fn attributes(&self, receipt_handle: &str) -> QueuedAttributes {
        let receipt = ReceiptHandle::parse(receipt_handle).expect("a handle of this queue");
        let queue = &self.0.borrow().queue;
        let message = queue.message(receipt).expect("the message is in the queue");
        message.attributes.as_deref().cloned().unwrap_or_default()
    }

    async fn depth(&self) -> Depth {
        self.tick().queue.depth()
    }

    async fn deliver(&self, messages: usize) -> Vec<Record> {
        let batch = self.wait_for(10);
        assert_eq!(batch.len(), messages);
        batch
    }

    async fn answer(&self, batch: &[Record], batch_item_failures: &[&str]) {
        for (record, kept) in batch.iter().zip(kept(batch, batch_item_failures)) {
            if !kept {
                self.delete(&record.receipt_handle).await;
            }
        }
    }
}

#[test]
fn model_fulfils_the_contracts_of_a_queue() {
    let contracts = async {
        queue::message_is_received_as_sent(&Model::new(LONG)).await;
        queue::received_message_is_hidden(&Model::new(LONG)).await;
        queue::message_returns_after_the_queues_timeout(&Model::new(1)).await;
        queue::receives_are_counted_and_the_first_remembered(&Model::new(LONG)).await;
        queue::hidden_message_returns_in_time(&Model::new(LONG)).await;
        queue::timeout_replaces_the_one_before(&Model::new(LONG)).await;
        queue::timeout_is_forgotten_on_the_next_receive(&Model::new(LONG)).await;
        queue::old_handle_hides_but_does_not_delete(&Model::new(LONG)).await;
        queue::timeouts_are_answered_entry_by_entry(&Model::new(LONG)).await;
        queue::deleted_message_is_gone(&Model::new(LONG)).await;
        queue::ten_messages_are_received_at_most(&Model::new(LONG)).await;
        queue::nothing_is_hidden_for_over_twelve_hours(&Model::new(LONG)).await;
        queue::visible_message_cannot_be_hidden(&Model::new(LONG)).await;
        queue::delayed_message_is_not_received_early(&Model::new(LONG)).await;
        queue::delayed_message_is_not_in_flight(&Model::new(LONG)).await;
        queue::delayed_message_keeps_body_and_attributes(&Model::new(LONG)).await;
        queue::nothing_is_delayed_for_over_fifteen_minutes(&Model::new(LONG)).await;
        queue::batch_is_sent_entry_by_entry(&Model::new(LONG)).await;
    };
    contracts.now_or_never().expect("a model answers at once");
}

#[test]
fn model_fulfils_the_contracts_of_a_mapping() {
    let contracts = async {
        mapping::record_holds_what_sqs_says(&Model::new(LONG)).await;
        mapping::delayed_message_is_delivered_with_attributes(&Model::new(LONG)).await;
        mapping::empty_answer_deletes_the_batch(&Model::new(LONG)).await;
        mapping::named_messages_are_kept_and_the_rest_deleted(&Model::new(LONG)).await;
        mapping::kept_message_keeps_its_visibility(&Model::new(LONG)).await;
        mapping::unknown_id_keeps_the_whole_batch(&Model::new(LONG)).await;
        mapping::empty_id_keeps_the_whole_batch(&Model::new(LONG)).await;
        mapping::failure_is_recorded_with_its_payload(&Model::new(LONG)).await;
        mapping::failure_record_has_these_members(&Model::new(LONG)).await;
    };
    contracts.now_or_never().expect("a model answers at once");
}
