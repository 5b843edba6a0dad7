//! A message from the retry queue, with its attributes.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::json::object;
use crate::time::Timestamp;

/// A message from the retry queue, as the event source mapping delivers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// SQS's id for the message, which is the same on every receive.
    pub message_id: String,
    /// The receipt handle from this receive.
    pub receipt_handle: String,
    /// The invocation record of the failed event, as unparsed JSON.
    pub body: String,
    /// SQS's `ApproximateReceiveCount`: 1 on the first receive. For a moved message, it includes the receives of its
    /// original and earlier copies.
    pub receive_count: u32,
    /// SQS's `SentTimestamp`.
    pub sent: Timestamp,
    /// SQS's `ApproximateFirstReceiveTimestamp`; for a moved message, the timestamp of its original.
    pub first_receive: Timestamp,
    /// Data about the original message if this message is a moved copy; otherwise `None`.
    pub moved: Option<Moved>,
    /// SQS's `AWSTraceHeader`, which makes the message part of an X-Ray trace; `None` if the message has no such
    /// header.
    pub trace_header: Option<String>,
    /// The message attributes that the sender added, without the handler's own attribute, `Comeback`.
    pub attributes: Vec<Attribute>,
}

/// An SQS message attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The attribute's name.
    pub name: Cow<'static, str>,
    /// The attribute's type: `String`, `Number` or `Binary`, optionally with a label, as in `Number.int`.
    pub data_type: Cow<'static, str>,
    /// The attribute's value, never empty. A binary value is in Base64.
    pub value: String,
}

/// Maximum number of attributes of a message. Source: "Amazon SQS message metadata", SQS Developer Guide.
const MOST_ATTRIBUTES: usize = 10;

impl Attribute {
    /// Returns true if the value is binary.
    pub fn is_binary(&self) -> bool {
        base_type(&self.data_type) == "Binary"
    }

    /// The size of the attribute's name, type and value, in bytes. For a binary value, this is more than SQS counts,
    /// because `value` is in Base64.
    pub(crate) fn size(&self) -> usize {
        self.name.len() + self.data_type.len() + self.value.len()
    }

    /// Adds the sender's attributes to `ours`, up to `MOST_ATTRIBUTES` in total. Skips names that `ours` already
    /// contains.
    pub(crate) fn beside(mut ours: Vec<Self>, senders: &[Self]) -> Vec<Self> {
        let is_free = |it: &&Self| ours.iter().all(|our| our.name != it.name);
        let kept: Vec<Self> = senders.iter().filter(is_free).cloned().collect();
        ours.extend(kept);
        ours.truncate(MOST_ATTRIBUTES);
        ours
    }
}

/// An attribute's type without the optional label: `Number` for `Number.int`.
pub(crate) fn base_type(data_type: &str) -> &str {
    data_type.split('.').next().unwrap_or_default()
}

impl Record {
    /// Restores a moved message's state from its attribute `Comeback`, so that the handler treats it like the original
    /// message.
    ///
    /// # Errors
    ///
    /// Fails if the attribute cannot be read. The record is then unchanged.
    pub fn restore(&mut self, attribute: &str) -> Result<(), GarbledAttribute> {
        let moved = Moved::read(attribute, self.sent)?;
        self.first_receive = moved.first_receive;
        self.receive_count = moved.receives.saturating_add(self.receive_count.max(1));
        self.moved = Some(moved);
        Ok(())
    }

    /// Returns true on the message's first receive, when its event has just failed.
    pub fn is_first_receive(&self) -> bool {
        self.receive_count <= 1
    }

    /// The trace header if it is in X-Ray's form: `Root=1-`, eight hex digits, `-` and 24 hex digits, optionally with
    /// more fields.
    pub fn trace(&self) -> Option<&str> {
        let header = self.trace_header.as_deref()?;
        // The value is sent as an HTTP header, so it must be printable.
        let is_printable = header.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let is_hex =
            |part: &str, digits| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (time, id) = root(header).strip_prefix("1-")?.split_once('-')?;
        let has_form = is_printable && is_hex(time, 8) && is_hex(id, 24);
        (has_form && header.len() <= LONGEST_TRACE).then_some(header)
    }

    /// The id of the X-Ray trace that the message belongs to; `None` if it is not part of one.
    pub fn trace_id(&self) -> Option<&str> {
        self.trace().map(root)
    }

    /// The id of the original message, or the message's own id if it was not moved.
    pub(crate) fn first_id(&self) -> &str {
        self.moved.as_ref().map_or(&self.message_id, |moved| &moved.message_id)
    }

    pub(crate) fn first_sent(&self) -> Timestamp {
        self.moved.as_ref().map_or(self.sent, |moved| moved.sent)
    }
}

/// Name of the message attribute that marks a moved message and holds data about the original message.
pub const MOVED_ATTRIBUTE: &str = "Comeback";
/// Maximum number of characters in a message id. Source: "Queue and message identifiers", SQS Developer Guide.
const LONGEST_ID: usize = 100;
/// Maximum wait after an `Invoke` call without a response. If a moved message's [`MOVED_ATTRIBUTE`] records a longer
/// wait, the wait is shortened to this maximum.
pub const LONGEST_UNANSWERED: Duration = Duration::from_secs(7_200);

/// Data about the original of a moved message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// SQS's id for the original message, which the moved message is a copy of.
    pub message_id: String,
    /// The `SentTimestamp` of the original message, never later than the copy's own.
    pub sent: Timestamp,
    /// The time when the original message was first received.
    pub first_receive: Timestamp,
    /// The number of receives of the original message and of the copies before this one; at least 1.
    pub receives: u32,
    /// The number of moves since the original was sent; at least 1.
    pub moves: u32,
    /// The earliest time at which the handler may re-invoke the target, or `None` if the event is only waiting for its
    /// backoff.
    pub not_before: Option<Timestamp>,
}

/// Error for an unreadable message attribute `Comeback`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the attribute Comeback is unreadable: {0}")]
pub struct GarbledAttribute(pub(crate) String);

/// The JSON value of the attribute `Comeback`. Times are in milliseconds since the epoch.
#[derive(Deserialize, Serialize)]
struct Wire<'a> {
    #[serde(borrow)]
    message_id: Cow<'a, str>,
    sent: u64,
    first_receive: u64,
    receives: u32,
    moves: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_before: Option<u64>,
}

impl Moved {
    pub(crate) fn read(attribute: &str, sent: Timestamp) -> Result<Self, GarbledAttribute> {
        let wire: Wire<'_> = object(attribute).map_err(GarbledAttribute)?;
        let is_id = (1..=LONGEST_ID).contains(&wire.message_id.len())
            && wire.message_id.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_id {
            return Err(GarbledAttribute("message_id is not an id".into()));
        }
        if wire.receives == 0 || wire.moves == 0 {
            return Err(GarbledAttribute("receives and moves must be at least 1".into()));
        }
        let first_sent = Timestamp::from_millis(wire.sent).min(sent);
        let latest = sent.saturating_add(LONGEST_UNANSWERED);
        Ok(Self {
            message_id: wire.message_id.into_owned(),
            sent: first_sent,
            first_receive: Timestamp::from_millis(wire.first_receive).clamp(first_sent, sent),
            receives: wire.receives,
            moves: wire.moves,
            not_before: wire.not_before.map(|moment| Timestamp::from_millis(moment).min(latest)),
        })
    }

    /// Returns the value of the attribute `Comeback` for the message's next copy.
    ///
    /// If `waits_on` is true, the message only continues to wait, and the current receive of a moved message is not
    /// counted.
    pub(crate) fn next(record: &Record, not_before: Option<Timestamp>, waits_on: bool) -> String {
        let receives = match &record.moved {
            Some(moved) if waits_on => moved.receives,
            _ => record.receive_count.max(1),
        };
        let wire = Wire {
            message_id: record.first_id().into(),
            sent: record.first_sent().as_millis(),
            first_receive: record.first_receive.as_millis(),
            receives,
            moves: record.moved.as_ref().map_or(0, |moved| moved.moves).saturating_add(1),
            not_before: not_before.map(Timestamp::as_millis),
        };
        serde_json::to_string(&wire).expect("BUG: strings and numbers are JSON")
    }
}

/// Maximum length of a trace header that is passed on; Lambda's own headers are about 150 bytes long.
const LONGEST_TRACE: usize = 512;

/// The id of the X-Ray trace in a trace header, such as `1-5759e988-bd862e3fe1be46a994272793`.
fn root(header: &str) -> &str {
    let root = header.split(';').next().unwrap_or_default();
    root.strip_prefix("Root=").unwrap_or_default()
}

#[cfg(test)]
mod tests;
