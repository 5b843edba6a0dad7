use std::cell::RefCell;
use std::time::Duration;

use comeback_engine::Record;
use comeback_timelapse::{QueueUnderContract, TargetError};

use crate::invocation::{ERROR_MESSAGE, ERROR_TYPE};
use crate::stand::{Difference, Stand};

/// The model that simulations run on. It follows AWS throughout.
pub(crate) struct Model(RefCell<QueueUnderContract>);

impl Model {
    pub(crate) fn new(visibility_timeout: u64) -> Self {
        Self(RefCell::new(QueueUnderContract::new(Duration::from_secs(visibility_timeout))))
    }
}

impl Stand for Model {
    fn differs(&self, _: Difference) -> bool {
        false
    }

    async fn send(&self, body: &str) -> String {
        self.0.borrow_mut().send(body)
    }

    async fn fail(&self, payload: &str) {
        let error = TargetError { error_type: ERROR_TYPE, error_message: ERROR_MESSAGE };
        self.0.borrow_mut().fail(payload, error);
    }

    async fn receive(&self) -> Vec<Record> {
        self.0.borrow_mut().receive(10)
    }

    async fn next(&self) -> Record {
        let mut queue = self.0.borrow_mut();
        loop {
            if let Some(record) = queue.receive(1).pop() {
                return record;
            }
            assert!(queue.wait(), "no message will ever be visible");
        }
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

    async fn held(&self) -> usize {
        self.0.borrow().held()
    }

    async fn deliver(&self, messages: usize) -> Vec<Record> {
        let batch = self.receive().await;
        assert_eq!(batch.len(), messages);
        batch
    }

    async fn answer(&self, batch: &[Record], batch_item_failures: &[&str]) {
        self.0.borrow_mut().answer(batch, batch_item_failures);
    }
}
