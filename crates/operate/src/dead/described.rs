use comeback_engine::{Letter, LetterKind, Timestamp};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::filter::ReasonName;
use super::queue::Received;

/// A letter on one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Described {
    /// The event's key. A message that was not understood has none.
    pub key: Option<String>,
    /// SQS's id of the message.
    pub message_id: String,
    /// `event`; `verbatim` for a body that was left as it was received; `record` for what SQS's own redrive took;
    /// `unknown` for what is none of Comeback's.
    pub kind: &'static str,
    /// The reason's name, `max_receive_count` or `unknown`.
    pub reason: &'static str,
    /// The function's ARN, with its qualifier.
    pub target: Option<String>,
    /// The last error's type.
    pub error_type: Option<String>,
    /// Retries made.
    pub retries: Option<u64>,
    /// When the event was given up.
    #[serde(serialize_with = "moment")]
    pub given_up: Timestamp,
    /// When the message was sent.
    #[serde(serialize_with = "moment")]
    pub sent: Timestamp,
}

/// A letter with all that is in it.
#[derive(Clone, Debug, Serialize)]
pub struct Whole {
    /// The line of it.
    #[serde(flatten)]
    pub described: Described,
    /// What was found, and against which limit.
    pub detail: Option<String>,
    /// The last error's message.
    pub error_message: Option<String>,
    /// When the event first failed.
    #[serde(serialize_with = "some_moment")]
    pub first_failure: Option<Timestamp>,
    /// The event, byte for byte.
    pub payload: Option<Box<RawValue>>,
    /// The message's body, where no event was found in it.
    pub body: Option<String>,
}

impl Described {
    pub(super) fn of(received: &Received, letter: &Letter<'_>) -> Self {
        Self {
            key: letter.key.clone(),
            message_id: received.record.message_id.clone(),
            kind: match letter.kind {
                LetterKind::Event => "event",
                LetterKind::Verbatim => "verbatim",
                LetterKind::Record => "record",
                LetterKind::Unknown => "unknown",
            },
            reason: ReasonName::of(letter).name(),
            target: letter.function_arn.as_deref().map(ToOwned::to_owned),
            error_type: letter.error_type.clone(),
            retries: letter.retries_made,
            given_up: letter.given_up,
            sent: received.record.sent,
        }
    }
}

impl Whole {
    pub(super) fn of(received: &Received, letter: Letter<'_>) -> Self {
        let described = Described::of(received, &letter);
        let payload = letter.payload.map(|payload| payload.into_owned());
        Self {
            described,
            detail: letter.detail,
            error_message: letter.error_message,
            first_failure: letter.first_failure,
            body: payload.is_none().then(|| received.record.body.clone()),
            payload,
        }
    }
}

/// As `2026-09-14T15:46:54.145Z`.
pub(super) fn moment<S: Serializer>(moment: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(moment)
}

fn some_moment<S: Serializer>(moment: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    moment.map(|moment| moment.to_string()).serialize(serializer)
}
