//! A message of the retry queue, with the data in its attributes: the original of a moved message, and the trace.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::json::object;
use crate::time::Timestamp;

/// A message of the retry queue, as the event source mapping delivers it: SQS's attributes are typed, the body is still JSON
/// text. [`restore`](Self::restore) turns a moved message back into its original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// SQS's id; the same on every receive.
    pub message_id: String,
    /// This receive's handle; a later receive makes it stale.
    pub receipt_handle: String,
    /// The invocation record, as JSON text.
    pub body: String,
    /// `ApproximateReceiveCount`: 1 on the first receive, and not exact. For a moved message, it includes the receives of
    /// its original and of earlier copies.
    pub receive_count: u32,
    /// `SentTimestamp`.
    pub sent: Timestamp,
    /// `ApproximateFirstReceiveTimestamp`; for a moved message, that of its original.
    pub first_receive: Timestamp,
    /// The original of a moved message; `None` if the message was never moved.
    pub moved: Option<Moved>,
    /// `AWSTraceHeader`, which joins the message to a trace of X-Ray.
    pub trace_header: Option<String>,
    /// The message attributes of its sender. The handler's own, `Comeback`, is in `moved`.
    pub attributes: Vec<Attribute>,
}

/// A message attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: Cow<'static, str>,
    /// `String`, `Number` or `Binary`, perhaps with a label: `Number.int`.
    pub data_type: Cow<'static, str>,
    /// The value, which is never empty. In Base64 if it is binary.
    pub value: String,
}

/// Maximum number of a message's attributes. Source: "Amazon SQS message metadata", SQS Developer Guide.
const MOST_ATTRIBUTES: usize = 10;

impl Attribute {
    /// Returns true if the value is Base64, as in the event of a mapping.
    pub fn is_binary(&self) -> bool {
        base_type(&self.data_type) == "Binary"
    }

    /// The bytes that SQS counts. For a binary value this is a third too many, because the value is Base64.
    pub(crate) fn size(&self) -> usize {
        self.name.len() + self.data_type.len() + self.value.len()
    }

    /// `ours`, followed by the sender's attributes, up to the ten that SQS accepts. If a name is in both, ours wins.
    pub(crate) fn beside(mut ours: Vec<Self>, senders: &[Self]) -> Vec<Self> {
        let is_free = |it: &&Self| ours.iter().all(|our| our.name != it.name);
        let kept: Vec<Self> = senders.iter().filter(is_free).cloned().collect();
        ours.extend(kept);
        ours.truncate(MOST_ATTRIBUTES);
        ours
    }
}

/// The type without its label.
pub(crate) fn base_type(data_type: &str) -> &str {
    data_type.split('.').next().unwrap_or_default()
}

impl Record {
    /// Turns a moved message back into its original, by its attribute `Comeback`: the due time stays the same, and the receive
    /// is never the first. SQS's own times bound those in the attribute.
    ///
    /// # Errors
    ///
    /// The attribute cannot be read. The message stays as it was.
    pub fn restore(&mut self, attribute: &str) -> Result<(), GarbledAttribute> {
        let moved = Moved::read(attribute, self.sent)?;
        self.first_receive = moved.first_receive;
        self.receive_count = moved.receives.saturating_add(self.receive_count.max(1));
        self.moved = Some(moved);
        Ok(())
    }

    /// Returns true on the message's first receive: its event has just failed.
    pub fn is_first_receive(&self) -> bool {
        self.receive_count <= 1
    }

    /// The id of the message as first sent: the original's, if it was moved. It seeds the draw of the backoff.
    pub(crate) fn first_id(&self) -> &str {
        self.moved.as_ref().map_or(&self.message_id, |moved| &moved.message_id)
    }

    /// When the message was first sent: the original, if it was moved.
    pub(crate) fn first_sent(&self) -> Timestamp {
        self.moved.as_ref().map_or(self.sent, |moved| moved.sent)
    }
}

/// The name of the message attribute that describes the original of a moved message, a String.
pub const MOVED_ATTRIBUTE: &str = "Comeback";
/// Maximum number of characters of a message id. Source: "Queue and message identifiers", SQS Developer Guide.
const LONGEST_ID: usize = 100;
/// The latest end of a wait that a message carries, counted from its sending: two hours, the longest wait after an unanswered
/// `Invoke`.
pub(crate) const LONGEST_CARRIED: Duration = Duration::from_secs(7_200);

/// The original of a moved message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Its SQS id.
    pub message_id: String,
    /// Its `SentTimestamp`; not after this message's own.
    pub sent: Timestamp,
    /// Its `ApproximateFirstReceiveTimestamp`; not before its `SentTimestamp`, and not after this message's.
    pub first_receive: Timestamp,
    /// Its receives, and those of later copies whose wait was over; 1 at least.
    pub receives: u32,
    /// The number of moves since; 1 at least.
    pub moves: u32,
    /// The earliest moment for a call, because an earlier call failed or the function is paused.
    pub not_before: Option<Timestamp>,
}

/// An attribute `Comeback` that cannot be read. The message counts as a new one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the attribute Comeback is unreadable: {0}")]
pub struct GarbledAttribute(pub(crate) String);

/// The attribute's JSON. Times are in milliseconds since the epoch, as SQS writes them.
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
    /// Reads the attribute of a message that SQS received at `sent`.
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
        let latest = sent.saturating_add(LONGEST_CARRIED);
        Ok(Self {
            message_id: wire.message_id.into_owned(),
            sent: first_sent,
            first_receive: Timestamp::from_millis(wire.first_receive).clamp(first_sent, sent),
            receives: wire.receives,
            moves: wire.moves,
            not_before: wire.not_before.map(|moment| Timestamp::from_millis(moment).min(latest)),
        })
    }

    /// The attribute of this message's next copy. Receives of a copy that only `waits_on` do not count, so that the whole wait
    /// counts as one receive, like that of a hidden message.
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

/// Maximum length of a trace header that is passed on; Lambda's own have some 150 bytes.
const LONGEST_TRACE: usize = 512;

/// An `AWSTraceHeader` in X-Ray's form: `Root=1-8 hex digits-24 hex digits`, then nothing or a `;` and more. It is queue
/// content, so a header in any other form is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHeader<'a>(&'a str);

impl<'a> TraceHeader<'a> {
    /// The message's header; `None` if it has none, or one in another form.
    pub fn of(record: &'a Record) -> Option<Self> {
        Self::read(record.trace_header.as_deref()?)
    }

    fn read(text: &'a str) -> Option<Self> {
        // It becomes an HTTP header.
        let is_printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let header = Self(text);
        let mut parts =
            text.strip_prefix("Root=").filter(|_| is_printable).map(|_| header.root().split('-'))?;
        let is_hex = |part: Option<&str>, digits| {
            part.is_some_and(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        let has_form = parts.next() == Some("1")
            && is_hex(parts.next(), 8)
            && is_hex(parts.next(), 24)
            && parts.next().is_none();
        (has_form && text.len() <= LONGEST_TRACE).then_some(header)
    }

    /// The whole header.
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// The id of its trace, such as `1-5759e988-bd862e3fe1be46a994272793`.
    pub fn root(self) -> &'a str {
        let root = self.0.split(';').next().unwrap_or_default();
        root.strip_prefix("Root=").unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
