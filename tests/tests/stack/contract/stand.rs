//! The implementations against which the contracts are checked. An implementation with an event source mapping is
//! called a *stand*.

use std::cell::RefCell;
use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use comeback_timelapse::{Attributes, Depth, QueueUnderContract, TargetError};

use super::engine;

/// Error type of the function in `tests/targets/failing_target.py`.
pub(crate) const ERROR_TYPE: &str = "OrderRefused";
pub(crate) const ERROR_MESSAGE: &str = "never \u{e9}";

/// The operations that the contracts use on a retry queue.
pub(crate) trait Queue {
    /// Returns true if this implementation of SQS is known to differ from AWS's in this way.
    fn differs(&self, difference: Difference) -> bool;

    async fn send(&self, body: &str) -> String;

    /// Receives up to ten messages that are visible now.
    async fn receive(&self) -> Vec<Record>;

    /// Waits until a message is visible, and receives it.
    async fn next(&self) -> Record;

    /// Sets the visibility timeouts of messages, in seconds, with one batch call. Returns true for each entry that the
    /// queue accepts.
    async fn hide(&self, entries: &[(&str, u64)]) -> Vec<bool>;

    /// Deletes a message, and returns true if the queue reports success.
    async fn delete(&self, handle: &str) -> bool;

    /// Number of messages in the queue, visible or not.
    async fn held(&self) -> usize;
}

/// A retry queue and its event source mapping, with support for message delays and attributes.
pub(crate) trait Stand: Queue {
    /// Sends a message with attributes and a delay, and returns its id, or `None` if the queue refuses it.
    async fn send_delayed(&self, message: &Delayed) -> Option<String>;

    /// Sends messages in one batch call, and returns the id of each, or `None` if the queue refuses it.
    async fn send_batch(&self, messages: &[Delayed]) -> Vec<Option<String>>;

    /// Asynchronously invokes a function that fails; its failures go to the queue, without Lambda's own retries.
    async fn fail(&self, payload: &str);

    fn attributes(&self, receipt_handle: &str) -> Attributes;

    /// The numbers of visible, hidden and delayed messages that the queue reports.
    async fn depth(&self) -> Depth;

    /// Waits until the mapping passes a batch of this many messages to its function, and returns them.
    async fn deliver(&self, messages: usize) -> Vec<Record>;

    /// Makes the function report these messages as failed, and waits until the mapping has finished the batch.
    async fn answer(&self, batch: &[Record], batch_item_failures: &[&str]);
}

pub(crate) fn all(Depth { visible, in_flight, delayed }: Depth) -> usize {
    visible + in_flight + delayed
}

/// A message to send with attributes and a delay in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Delayed {
    pub(crate) body: &'static str,
    pub(crate) delay: u64,
    pub(crate) attributes: Attributes,
}

/// Known differences between MiniStack 1.5.33 and AWS, each asserted by the contracts until MiniStack fixes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// MiniStack can hide a message for more than 12 hours, which AWS refuses with `InvalidParameterValue`.
    HidesOverTwelveHours,
    /// MiniStack can hide a message that has become visible again.
    ///
    /// AWS documents that hiding such a message fails with `MessageNotInflight`, but some users report that it
    /// succeeds without any effect. The simulations' [`Model`] returns the error.
    HidesWhatIsVisible,
    /// MiniStack can delay a message for more than 15 minutes. AWS refuses such a delay with `InvalidParameterValue`.
    DelaysOverFifteenMinutes,
    /// MiniStack loses the system attributes of a message that was sent in a batch.
    DropsTraceHeadersOfBatches,
    /// Once a message has been received again, MiniStack refuses its old receipt handle.
    ///
    /// On AWS, the old handle can still change the visibility timeout. A deletion with it succeeds, but might not
    /// delete the message.
    RefusesOldHandles,
    /// If a batch response has an unknown or empty id, MiniStack deletes all messages that the response does not name.
    ///
    /// AWS keeps the whole batch.
    DeletesDespiteUnknownIds,
    /// MiniStack's invocation records lack `version`, `timestamp`, `executedVersion` and the function's qualifier.
    LeavesOutOfRecords,
    /// MiniStack's invocation records always report three invocations. AWS reports one if Lambda's retries are off.
    CountsThreeInvokes,
    /// MiniStack re-serializes the payload in invocation records. The simulations' [`Model`] keeps the payload's
    /// bytes.
    ///
    /// AWS documents only that the payload is the event.
    RewritesPayloads,
}

/// The simulations' model of SQS and the event source mapping. It has no known differences from AWS.
pub(crate) struct Model(RefCell<QueueUnderContract>);

impl Model {
    pub(crate) fn new(visibility_timeout: u64) -> Self {
        Self(RefCell::new(QueueUnderContract::new(Duration::from_secs(visibility_timeout))))
    }

    /// Waits until a message is visible, and receives up to `most` messages.
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

impl Queue for Model {
    fn differs(&self, _: Difference) -> bool {
        false
    }

    async fn send(&self, body: &str) -> String {
        self.0.borrow_mut().send(body)
    }

    async fn receive(&self) -> Vec<Record> {
        self.0.borrow_mut().receive(10)
    }

    async fn next(&self) -> Record {
        self.wait_for(1).remove(0)
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
        all(self.depth().await)
    }
}

impl Stand for Model {
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

    fn attributes(&self, receipt_handle: &str) -> Attributes {
        self.0.borrow().attributes(receipt_handle)
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

/// The queue that the engine's tests use, on a clock that advances by a millisecond with each call.
pub(crate) struct EngineQueue(RefCell<(Timestamp, engine::Queue<()>)>);

impl EngineQueue {
    pub(crate) fn new(visibility_timeout: u64) -> Self {
        let queue = engine::Queue::new(Duration::from_secs(visibility_timeout));
        Self(RefCell::new((Timestamp::from_secs(1_000_000_000), queue)))
    }

    fn call<T>(&self, call: impl FnOnce(Timestamp, &mut engine::Queue<()>) -> T) -> T {
        let (now, queue) = &mut *self.0.borrow_mut();
        *now = now.saturating_add(Duration::from_millis(1));
        call(*now, queue)
    }

    fn receive_visible(&self) -> Option<Record> {
        self.call(|now, queue| {
            let place = queue.messages().iter().position(|message| message.visible <= now)?;
            Some(queue.receive(now, place).record())
        })
    }
}

impl Queue for EngineQueue {
    fn differs(&self, _: Difference) -> bool {
        false
    }

    async fn send(&self, body: &str) -> String {
        self.call(|now, queue| queue.send(now, body.to_owned(), ()))
    }

    async fn receive(&self) -> Vec<Record> {
        std::iter::from_fn(|| self.receive_visible()).take(10).collect()
    }

    async fn next(&self) -> Record {
        self.receive_visible().unwrap_or_else(|| {
            let next = self.0.borrow().1.next_visible().expect("no message will ever be visible");
            self.0.borrow_mut().0 = next;
            self.receive_visible().expect("it is visible by now")
        })
    }

    async fn hide(&self, entries: &[(&str, u64)]) -> Vec<bool> {
        let hide = |(handle, seconds): &(&str, u64)| {
            self.call(|now, queue| queue.hide(now, handle, Duration::from_secs(*seconds)))
        };
        entries.iter().map(hide).collect()
    }

    async fn delete(&self, handle: &str) -> bool {
        self.call(|_, queue| queue.delete(handle));
        true
    }

    async fn held(&self) -> usize {
        self.call(|_, queue| queue.messages().len())
    }
}
