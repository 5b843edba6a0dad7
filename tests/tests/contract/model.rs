use std::cell::RefCell;
use std::time::Duration;

use comeback_engine::Record;
use comeback_timelapse::{Attributes, Depth, QueueUnderContract, TargetError};

use crate::invocation::{ERROR_MESSAGE, ERROR_TYPE};
use crate::stand::{Delayed, Difference, Stand};

/// The model that simulations run on. It follows AWS throughout.
pub(crate) struct Model(RefCell<QueueUnderContract>);

impl Model {
    pub(crate) fn new(visibility_timeout: u64) -> Self {
        Self(RefCell::new(QueueUnderContract::new(Duration::from_secs(visibility_timeout))))
    }

    /// Waits until something is visible, and receives it.
    fn wait_for(&self, most: usize) -> Vec<Record> {
        let mut queue = self.0.borrow_mut();
        loop {
            let records = queue.receive(most);
            if !records.is_empty() {
                return records;
            }
            assert!(queue.wait(), "no message will ever be visible");
        }
    }
}

impl Stand for Model {
    fn differs(&self, _: Difference) -> bool {
        false
    }

    async fn send(&self, body: &str) -> String {
        self.0.borrow_mut().send(body)
    }

    async fn send_delayed(&self, message: &Delayed) -> Option<String> {
        let Delayed { body, delay, attributes } = message;
        self.0.borrow_mut().send_delayed(body, Duration::from_secs(*delay), attributes.clone()).ok()
    }

    async fn send_batch(&self, messages: &[Delayed]) -> Vec<Option<String>> {
        let mut sent = Vec::new();
        for message in messages {
            sent.push(self.send_delayed(message).await);
        }
        sent
    }

    async fn fail(&self, payload: &str) {
        let error = TargetError { error_type: ERROR_TYPE, error_message: ERROR_MESSAGE, retry_after: None };
        self.0.borrow_mut().fail(payload, error);
    }

    async fn receive(&self) -> Vec<Record> {
        self.0.borrow_mut().receive(10)
    }

    async fn next(&self) -> Record {
        self.wait_for(1).remove(0)
    }

    fn attributes(&self, receipt_handle: &str) -> Attributes {
        self.0.borrow().attributes(receipt_handle)
    }

    async fn hide(&self, entries: &[(&str, u64)]) -> Vec<bool> {
        let mut queue = self.0.borrow_mut();
        let mut hide = |(handle, seconds): &(&str, u64)| {
            queue.change_visibility(handle, Duration::from_secs(*seconds)).is_ok()
        };
        entries.iter().map(&mut hide).collect()
    }

    async fn delete(&self, handle: &str) -> bool {
        self.0.borrow_mut().delete(handle);
        true
    }

    async fn depth(&self) -> Depth {
        self.0.borrow_mut().depth()
    }

    async fn deliver(&self, messages: usize) -> Vec<Record> {
        let batch = self.wait_for(10);
        assert_eq!(batch.len(), messages);
        batch
    }

    async fn answer(&self, batch: &[Record], batch_item_failures: &[&str]) {
        self.0.borrow_mut().answer(batch, batch_item_failures);
    }
}
