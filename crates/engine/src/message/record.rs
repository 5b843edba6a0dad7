use crate::Timestamp;
use crate::message::moved::{GarbledAttribute, Moved};

/// A message of the retry queue as the event source mapping hands it over: SQS's facts typed, the
/// body still JSON text. Of a message that was moved, [`restore`](Self::restore) makes it the message
/// that it was first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// SQS's id; the same on every receive.
    pub message_id: String,
    /// This receive's handle; a later receive makes it stale.
    pub receipt_handle: String,
    /// The invocation record, as JSON text.
    pub body: String,
    /// `ApproximateReceiveCount`: 1 on the first receive, and not exact. Of a moved message, with the
    /// receives of the messages before it.
    pub receive_count: u32,
    /// `SentTimestamp`.
    pub sent: Timestamp,
    /// `ApproximateFirstReceiveTimestamp`; of a moved message, that of the message it was first.
    pub first_receive: Timestamp,
    /// What else a moved message was first; `None` if it was never moved.
    pub moved: Option<Moved>,
    /// `AWSTraceHeader`, which joins the message to a trace of X-Ray.
    pub trace_header: Option<String>,
}

impl Record {
    /// Makes a moved message the one that it was first, by its attribute `Comeback`: it has the same due
    /// time, and is on no first receive. The times that it claims are bounded by SQS's own.
    ///
    /// # Errors
    ///
    /// The attribute cannot be read. The message is as it was.
    pub fn restore(&mut self, attribute: &str) -> Result<(), GarbledAttribute> {
        let moved = Moved::read(attribute, self.sent)?;
        self.first_receive = moved.first_receive;
        self.receive_count = moved.receives.saturating_add(self.receive_count.max(1));
        self.moved = Some(moved);
        Ok(())
    }

    /// The id of the message that it was first, which seeds the draw of its backoff.
    pub(crate) fn first_id(&self) -> &str {
        self.moved.as_ref().map_or(&self.message_id, |moved| &moved.message_id)
    }

    /// When the message that it was first was sent.
    pub(crate) fn first_sent(&self) -> Timestamp {
        self.moved.as_ref().map_or(self.sent, |moved| moved.sent)
    }
}
