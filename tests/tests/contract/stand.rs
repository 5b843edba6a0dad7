use comeback_engine::Record;
use comeback_timelapse::{Attributes, Depth};

/// A retry queue and its event source mapping, be they real or a model.
pub(crate) trait Stand {
    /// Whether this stand is known to do otherwise than AWS here.
    fn differs(&self, difference: Difference) -> bool;

    /// Sends a message and gives its id.
    async fn send(&self, body: &str) -> String;

    /// Sends a message with attributes and a delay. Gives its id, unless it is refused.
    async fn send_delayed(&self, message: &Delayed) -> Option<String>;

    /// The same, with several messages in one call.
    async fn send_batch(&self, messages: &[Delayed]) -> Vec<Option<String>>;

    /// A function whose failure destination is the queue is invoked asynchronously with this payload, and fails, once.
    async fn fail(&self, payload: &str);

    /// Receives what is visible now, ten messages at most.
    async fn receive(&self) -> Vec<Record>;

    /// Waits for a message to be visible, and receives it.
    async fn next(&self) -> Record;

    /// The attributes of a message that was received or delivered with this handle.
    fn attributes(&self, receipt_handle: &str) -> Attributes;

    /// One batch of visibility timeouts, in seconds: which were accepted.
    async fn hide(&self, entries: &[(&str, u64)]) -> Vec<bool>;

    /// Whether the queue says that it deleted.
    async fn delete(&self, handle: &str) -> bool;

    /// How many messages the queue has, as it says.
    async fn depth(&self) -> Depth;

    /// Messages in the queue, visible or not.
    async fn held(&self) -> usize {
        let Depth { visible, in_flight, delayed } = self.depth().await;
        visible + in_flight + delayed
    }

    /// Waits for the mapping to hand a batch of so many messages to its function.
    async fn deliver(&self, messages: usize) -> Vec<Record>;

    /// The function reports these as failed; waits until the mapping is done with the batch.
    async fn answer(&self, batch: &[Record], batch_item_failures: &[&str]);
}

/// What is sent with a delay, in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Delayed {
    pub(crate) body: &'static str,
    pub(crate) delay: u64,
    pub(crate) attributes: Attributes,
}

/// Where MiniStack 1.5.33 is known to differ from AWS. Each is asserted as it is, so that the suite
/// fails, and the exception goes, once MiniStack is corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// It hides a message for more than 12 hours. AWS: `InvalidParameterValue`.
    /// Why: it checks no visibility timeout.
    HidesOverTwelveHours,
    /// It hides a message that is visible again. AWS: `MessageNotInflight`.
    /// Why: it looks for the receipt handle only.
    HidesWhatIsVisible,
    /// It delays a message for more than 15 minutes. AWS: `InvalidParameterValue`.
    /// Why: it checks the delay of a queue only.
    DelaysOverFifteenMinutes,
    /// A message that is sent in a batch comes back without its system attributes. AWS: with them.
    /// Why: it copies an entry's other members only.
    DropsTraceHeadersOfBatches,
    /// It refuses to delete by a handle that a later receive made stale. AWS: success, and the message
    /// may stay. Why: no handle, no message. What becomes of the message is the same.
    RefusesStaleDeletes,
    /// A batch response with an id that is unknown or empty deletes all messages that it does not
    /// name. AWS: the whole batch is kept.
    /// Why: it takes away the ids that failed from those of the batch.
    DeletesDespiteUnknownIds,
    /// A failure's record has no `version`, `timestamp` or `executedVersion`, and no qualifier in `functionArn`.
    /// AWS: all are there. Why: it writes what it knows of an event after its retries. (Nor has it a `requestId`, but for
    /// `tests/tools/run_ministack.py`.)
    LeavesOutOfRecords,
    /// A failure's record says that there were three invokes. AWS: one, where retries are off. Why: a constant.
    CountsThreeInvokes,
    /// A failure's record has its payload written anew. AWS documents only that it is the event; the model
    /// keeps its bytes. Why: it parses each event.
    RewritesPayloads,
    /// A failure's record names each error of a Python function `Runtime.HandlerError`. AWS: the exception's
    /// class. Why: a constant.
    NamesAllErrorsAlike,
}
