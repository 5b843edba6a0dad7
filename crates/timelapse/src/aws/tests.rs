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
use stand::{Delayed, Difference, ERROR_MESSAGE, ERROR_TYPE, LONG, Queue, Stand, all, contracts};

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

macro_rules! tests {
    ($($stand:ident: ($module:ident::$name:ident, $visibility_timeout:expr)),* $(,)?) => {
        $(#[test]
        fn $name() {
            let contract = $module::$name(&Model::new($visibility_timeout)).now_or_never();
            contract.expect("a model answers at once");
        })*
    };
}

contracts!(tests);
