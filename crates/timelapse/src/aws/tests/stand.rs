//! The implementations against which the contracts are checked. An implementation with an event source mapping is
//! called a *stand*.

use comeback_engine::Record;

use super::{Depth, QueuedAttributes};

/// Error type of the function in `tests/targets/failing_target.py`.
pub(crate) const ERROR_TYPE: &str = "OrderRefused";
pub(crate) const ERROR_MESSAGE: &str = "never \u{e9}";

/// A visibility timeout, in seconds, that does not end while a contract is being tested.
pub(crate) const LONG: u64 = 600;

/// Calls a macro with all contracts: for each, whether it needs a `stand` or only a `queue`, its function, and the
/// queue's visibility timeout.
macro_rules! contracts {
    ($each:ident) => {
        $each! {
            queue: (queue::message_is_received_as_sent, LONG),
            queue: (queue::received_message_is_hidden, LONG),
            queue: (queue::message_returns_after_the_queues_timeout, 1),
            queue: (queue::receives_are_counted_and_the_first_remembered, LONG),
            queue: (queue::hidden_message_returns_in_time, LONG),
            queue: (queue::timeout_replaces_the_one_before, LONG),
            queue: (queue::timeout_is_forgotten_on_the_next_receive, LONG),
            queue: (queue::old_handle_hides_but_does_not_delete, LONG),
            queue: (queue::timeouts_are_answered_entry_by_entry, LONG),
            queue: (queue::deleted_message_is_gone, LONG),
            stand: (queue::ten_messages_are_received_at_most, LONG),
            stand: (queue::nothing_is_hidden_for_over_twelve_hours, LONG),
            stand: (queue::visible_message_cannot_be_hidden, LONG),
            stand: (queue::delayed_message_is_not_received_early, LONG),
            stand: (queue::delayed_message_is_not_in_flight, LONG),
            stand: (queue::delayed_message_keeps_body_and_attributes, LONG),
            stand: (queue::nothing_is_delayed_for_over_fifteen_minutes, LONG),
            stand: (queue::batch_is_sent_entry_by_entry, LONG),
            stand: (mapping::record_holds_what_sqs_says, LONG),
            stand: (mapping::delayed_message_is_delivered_with_attributes, LONG),
            stand: (mapping::empty_answer_deletes_the_batch, LONG),
            stand: (mapping::named_messages_are_kept_and_the_rest_deleted, LONG),
            stand: (mapping::kept_message_keeps_its_visibility, LONG),
            stand: (mapping::unknown_id_keeps_the_whole_batch, LONG),
            stand: (mapping::empty_id_keeps_the_whole_batch, LONG),
            stand: (mapping::failure_is_recorded_with_its_payload, LONG),
            stand: (mapping::failure_record_has_these_members, LONG),
        }
    };
}

pub(crate) use contracts;

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

    fn attributes(&self, receipt_handle: &str) -> QueuedAttributes;

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
    pub(crate) attributes: QueuedAttributes,
}

/// Known differences between MiniStack 1.5.33 and AWS, each asserted by the contracts until MiniStack fixes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// MiniStack can hide a message for more than 12 hours, which AWS refuses with `InvalidParameterValue`.
    HidesOverTwelveHours,
    /// MiniStack can hide a message that has become visible again.
    ///
    /// AWS documents that hiding such a message fails with `MessageNotInflight`, but some users report that it
    /// succeeds without any effect. The simulations' model returns the error.
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
    /// MiniStack re-serializes the payload in invocation records. The simulations' model keeps the payload's bytes.
    ///
    /// AWS documents only that the payload is the event.
    RewritesPayloads,
}
