//! The attribute `Comeback`: what a message that was sent again says of the message that it was first.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::message::json::object;
use crate::{Record, Timestamp};

/// The name of the message attribute, a String.
pub const MOVED_ATTRIBUTE: &str = "Comeback";
/// Characters of a message id. Source: "Queue and message identifiers", SQS Developer Guide.
const LONGEST_ID: usize = 100;
/// A wait that a message carries ends this long after its sending at the latest: two hours, the longest
/// after an unanswered `Invoke`.
pub(crate) const LONGEST_CARRIED: Duration = Duration::from_secs(7_200);

/// What a moved message was first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Its SQS id.
    pub message_id: String,
    /// Its `SentTimestamp`; not after this message's own.
    pub sent: Timestamp,
    /// Its `ApproximateFirstReceiveTimestamp`; between the two.
    pub first_receive: Timestamp,
    /// How often it was received, and the messages between whose wait was over; 1 at least.
    pub receives: u32,
    /// How often it was moved; 1 at least.
    pub moves: u32,
    /// No call is made for it before: one that was made did not work, or its function is paused.
    pub not_before: Option<Timestamp>,
}

/// An attribute `Comeback` that this version did not write. The message counts as a new one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the attribute Comeback is unreadable: {0}")]
pub struct GarbledAttribute(pub(crate) String);

/// Times are in milliseconds since the epoch, as SQS writes them.
#[derive(Deserialize, Serialize)]
struct Wire<'a> {
    #[serde(borrow)]
    message_id: std::borrow::Cow<'a, str>,
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
            return Err(GarbledAttribute("message_id is no id".into()));
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

    /// The attribute of the message that follows this one. A copy that only `waits_on` is received as often
    /// as a hidden message is: once, when its wait is over.
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

#[cfg(test)]
mod tests;
