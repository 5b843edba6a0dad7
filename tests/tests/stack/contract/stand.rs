//! A stand is a queue with its mapping, on which contracts run. The model used by simulations is one. The queue of the
//! engine's tests has no mapping.

use std::cell::RefCell;
use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use comeback_timelapse::{Attributes, Depth, QueueUnderContract, TargetError};

use super::engine;

/// The error of `tests/targets/failing_target.py`.
pub(crate) const ERROR_TYPE: &str = "OrderRefused";
pub(crate) const ERROR_MESSAGE: &str = "never \u{e9}";

/// A retry queue, real or modelled.
pub(crate) trait Queue {
    /// Returns true if it is known to have this difference from AWS.
    fn differs(&self, difference: Difference) -> bool;

    /// Sends a message and returns its id.
    async fn send(&self, body: &str) -> String;

    /// Receives the messages that are visible now, ten at most.
    async fn receive(&self) -> Vec<Record>;

    /// Waits for a message to be visible, and receives it.
    async fn next(&self) -> Record;

    /// Sets visibility timeouts in seconds, in one batch. Returns true for each that was accepted.
    async fn hide(&self, entries: &[(&str, u64)]) -> Vec<bool>;

    /// Returns true if the queue reports success.
    async fn delete(&self, handle: &str) -> bool;

    /// Messages in the queue, visible or not.
    async fn held(&self) -> usize;
}

/// A retry queue that delays messages, with its event source mapping.
pub(crate) trait Stand: Queue {
    /// Sends a message with attributes and a delay. Returns its id; `None` if it is refused.
    async fn send_delayed(&self, message: &Delayed) -> Option<String>;

    /// Sends several messages in one call.
    async fn send_batch(&self, messages: &[Delayed]) -> Vec<Option<String>>;

    /// Invokes a function asynchronously, with the queue as its failure destination. It fails once.
    async fn fail(&self, payload: &str);

    /// The attributes of a message that was received or delivered with this handle.
    fn attributes(&self, receipt_handle: &str) -> Attributes;

    /// The message counts that the queue reports.
    async fn depth(&self) -> Depth;

    /// Waits for the mapping to pass a batch of this many messages to its function.
    async fn deliver(&self, messages: usize) -> Vec<Record>;

    /// Reports these messages as failed, and waits until the mapping is done with the batch.
    async fn answer(&self, batch: &[Record], batch_item_failures: &[&str]);
}

pub(crate) fn all(Depth { visible, in_flight, delayed }: Depth) -> usize {
    visible + in_flight + delayed
}

/// A message to send with a delay in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Delayed {
    pub(crate) body: &'static str,
    pub(crate) delay: u64,
    pub(crate) attributes: Attributes,
}

/// Known differences of MiniStack 1.5.33 from AWS. Each is asserted, so that the suite fails once MiniStack fixes one;
/// then its exception is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// It hides a message for more than 12 hours. AWS: `InvalidParameterValue`. Cause: it does not check visibility
    /// timeouts.
    HidesOverTwelveHours,
    /// It hides a message that is visible again. AWS: `MessageNotInflight`, as documented, or success without effect, as others
    /// have seen. The model refuses.
    /// Why: it looks for the receipt handle only.
    HidesWhatIsVisible,
    /// It delays a message for more than 15 minutes. AWS: `InvalidParameterValue`. Cause: it checks only the delay of a
    /// queue.
    DelaysOverFifteenMinutes,
    /// A message sent in a batch comes back without its system attributes. AWS: with them. Cause: it copies only an
    /// entry's other members.
    DropsTraceHeadersOfBatches,
    /// It refuses a handle after a later receive. AWS: it changes the visibility, even after that receive; deleting
    /// succeeds too, though the message may stay. Cause: it does not find the handle. The message stays either way.
    RefusesOldHandles,
    /// A batch response with an unknown or empty id deletes all messages that it does not name. AWS: the whole batch is
    /// kept. Cause: it subtracts the failed ids from those of the batch.
    DeletesDespiteUnknownIds,
    /// A failure's record has no `version`, `timestamp` or `executedVersion`, and no qualifier in `functionArn`. AWS:
    /// all are there. Cause: it writes what is left of an event after its retries. (`tests/tools/run_ministack.py` adds
    /// the `requestId`.)
    LeavesOutOfRecords,
    /// A failure's record reports three invokes. AWS: one, with retries off. Cause: the number is a constant.
    CountsThreeInvokes,
    /// A failure's record has its payload re-serialized. AWS documents only that it is the event; the model keeps its
    /// bytes. Cause: it parses each event.
    RewritesPayloads,
}

/// The model used by simulations. It follows AWS throughout.
pub(crate) struct Model(RefCell<QueueUnderContract>);

impl Model {
    pub(crate) fn new(visibility_timeout: u64) -> Self {
        Self(RefCell::new(QueueUnderContract::new(Duration::from_secs(visibility_timeout))))
    }

    /// Waits until a message is visible, and receives it.
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

/// The queue of the engine's tests, whose clock advances by a millisecond with each call.
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
