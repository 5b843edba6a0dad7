use crate::Timestamp;

/// A message of the retry queue as the event source mapping hands it over: SQS's facts typed, the
/// body still JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// SQS's id; the same on every receive.
    pub message_id: String,
    /// This receive's handle; a later receive makes it stale.
    pub receipt_handle: String,
    /// The invocation record, as JSON text.
    pub body: String,
    /// `ApproximateReceiveCount`: 1 on the first receive, and not exact.
    pub receive_count: u32,
    /// `SentTimestamp`.
    pub sent: Timestamp,
    /// `ApproximateFirstReceiveTimestamp`.
    pub first_receive: Timestamp,
}
