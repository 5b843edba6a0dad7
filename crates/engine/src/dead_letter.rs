//! The format of dead-letters, and the reasons for dead-lettering an event.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::json::{non_empty_text, present};
use crate::record::{Attribute, Record};

/// Maximum size of an SQS message including its attributes, in bytes. Source: SQS quotas, 1 MiB since August 2025.
pub const SQS_MESSAGE_BYTES: usize = 1_048_576;

/// Maximum number of characters in the value of an attribute that is added to a dead-letter for filtering.
pub const ATTRIBUTE_CHARACTERS: usize = 256;

/// The reason for dead-lettering an event: a code for programs, and an explanation for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The reason's code, for filtering and counting.
    #[serde(rename = "reason")]
    pub code: ReasonCode,
    /// A human-readable explanation, which never quotes the payload.
    pub detail: String,
}

impl Reason {
    pub(crate) fn new(code: ReasonCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// The handler's reasons for dead-lettering an event; users filter by their names, so the names never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// The event has been re-invoked `MAX_RETRIES` times.
    MaxRetries,
    /// Too little of `MAX_AGE` is left for another retry, or SQS will soon delete the message.
    MaxAge,
    /// The error matches `NON_RETRYABLE_ERRORS`, or its type is a directive not to retry, such as `NonRetryable`.
    NonRetryableError,
    /// The target function does not exist.
    TargetNotFound,
    /// Lambda will never accept this event for the target function.
    TargetRefused,
    /// `TARGET_FUNCTIONS` does not allow the target.
    TargetNotAllowed,
    /// The event is too large for a re-invocation, or the invocation record of its next failure could be too large for
    /// SQS.
    PayloadTooLarge,
    /// The body of the message is not an invocation record.
    MalformedRecord,
    /// The payload has a `_retry_metadata` that is not a valid envelope.
    MalformedEnvelope,
    /// The invocation record has no payload; Lambda may have omitted it because it was too large.
    PayloadLost,
    /// An operator cancelled the event with a [request](crate::Request).
    Cancelled,
}

impl ReasonCode {
    /// Every reason, in the order in which `docs/what-happens-to.md` lists them.
    pub const ALL: [Self; 11] = [
        Self::MaxRetries,
        Self::MaxAge,
        Self::NonRetryableError,
        Self::TargetNotFound,
        Self::TargetRefused,
        Self::TargetNotAllowed,
        Self::PayloadTooLarge,
        Self::MalformedRecord,
        Self::MalformedEnvelope,
        Self::PayloadLost,
        Self::Cancelled,
    ];

    /// The reason's name in dead-letters and logs, such as `max_age`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaxRetries => "max_retries",
            Self::MaxAge => "max_age",
            Self::NonRetryableError => "non_retryable_error",
            Self::TargetNotFound => "target_not_found",
            Self::TargetRefused => "target_refused",
            Self::TargetNotAllowed => "target_not_allowed",
            Self::PayloadTooLarge => "payload_too_large",
            Self::MalformedRecord => "malformed_record",
            Self::MalformedEnvelope => "malformed_envelope",
            Self::PayloadLost => "payload_lost",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the reason with this name, or `None` if the name is unknown.
    ///
    /// ```
    /// use comeback_engine::ReasonCode;
    ///
    /// assert_eq!(ReasonCode::named("max_age"), Some(ReasonCode::MaxAge));
    /// assert_eq!(ReasonCode::named("MAX_AGE"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

/// A message to send to the dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The dead-letter as JSON, or the received body verbatim if it cannot be parsed or is too large to wrap.
    pub body: String,
    /// Message attributes: `Reason` and the attributes that describe the event. If the message could not be parsed,
    /// its own attributes are included.
    pub attributes: Vec<Attribute>,
}

#[derive(Serialize)]
pub(crate) struct Body<'a> {
    pub(crate) reason: &'static str,
    pub(crate) detail: &'a str,
    pub(crate) function_arn: &'a str,
    pub(crate) retries_made: u64,
    pub(crate) initial_timestamp: u64,
    pub(crate) dead_lettered_at: u64,
    pub(crate) origin_request_id: &'a str,
    pub(crate) error: Option<InvocationError<'a>>,
    pub(crate) payload: &'a RawValue,
}

/// The error in a record's `responsePayload`, with its members unparsed. A dead-letter calls them `type` and `message`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct InvocationError<'a> {
    /// The value of the member `errorType`, as raw JSON.
    #[serde(borrow, default, deserialize_with = "present")]
    #[serde(rename(deserialize = "errorType", serialize = "type"))]
    pub error_type: Option<&'a RawValue>,
    /// The value of the member `errorMessage`, as raw JSON.
    #[serde(borrow, default, deserialize_with = "present", rename(deserialize = "errorMessage"))]
    pub message: Option<&'a RawValue>,
}

/// The JSON members that a redrive needs from a received dead-letter, and those that tell a dead-letter from other
/// JSON.
#[derive(Deserialize)]
pub(crate) struct ReceivedBody<'a> {
    #[serde(deserialize_with = "reason")]
    pub(crate) reason: ReasonCode,
    #[serde(borrow)]
    pub(crate) function_arn: Cow<'a, str>,
    pub(crate) dead_lettered_at: u64,
    #[serde(borrow)]
    pub(crate) origin_request_id: &'a RawValue,
    #[serde(borrow)]
    pub(crate) payload: &'a RawValue,
}

fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReasonCode, D::Error> {
    let name = Cow::<str>::deserialize(deserializer)?;
    ReasonCode::named(&name).ok_or_else(|| D::Error::custom("not a known reason"))
}

/// Serializes a body, escaping U+FFFE and U+FFFF because SQS refuses them.
pub(crate) fn json_of(body: &Body<'_>) -> String {
    let json = serde_json::to_string(body).expect("BUG: strings, numbers and raw JSON are JSON");
    json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

impl DeadLetter {
    pub(crate) fn of_event(record: &Record, reason: &Reason, body: &Body<'_>) -> Self {
        let error_type = body.error.and_then(|error| error.error_type).and_then(non_empty_text);
        let retries_made = body.retries_made.to_string();
        let wrapped = Self {
            body: json_of(body),
            attributes: attributes([
                text("Reason", body.reason),
                text("TargetFunction", body.function_arn),
                Attribute { name: "RetriesMade".into(), data_type: "Number".into(), value: retries_made },
                text("ErrorType", &error_type.unwrap_or_default()),
            ]),
        };
        if wrapped.size() <= SQS_MESSAGE_BYTES { wrapped } else { Self::received(record, reason, []) }
    }

    /// Creates the dead-letter for a message that could not be parsed, and keeps the sender's attributes.
    pub(crate) fn verbatim(record: &Record, reason: &Reason) -> Self {
        let ours = attributes([text("Reason", reason.code.name()), text("Detail", &reason.detail)]);
        let all = Attribute::beside(ours.clone(), &record.attributes);
        Self::received(record, reason, [all, ours])
    }

    /// Creates a dead-letter from the received body and the first list of attributes that fits SQS's size limit.
    fn received<const N: usize>(record: &Record, reason: &Reason, lists: [Vec<Attribute>; N]) -> Self {
        let mut dead_letter = Self { body: record.body.clone(), attributes: Vec::new() };
        for list in lists.into_iter().chain([attributes([text("Reason", reason.code.name())])]) {
            dead_letter.attributes = list;
            if dead_letter.size() <= SQS_MESSAGE_BYTES {
                return dead_letter;
            }
        }
        Self { attributes: Vec::new(), ..dead_letter }
    }

    /// The dead-letter's size as SQS counts it, in bytes: the body, and each attribute's name, type and value.
    pub fn size(&self) -> usize {
        self.body.len() + self.attributes.iter().map(Attribute::size).sum::<usize>()
    }
}

fn text(name: &'static str, value: &str) -> Attribute {
    let value = value.chars().take(ATTRIBUTE_CHARACTERS).map(accepted).collect();
    Attribute { name: name.into(), data_type: "String".into(), value }
}

fn attributes<const N: usize>(candidates: [Attribute; N]) -> Vec<Attribute> {
    candidates.into_iter().filter(|attribute| !attribute.value.is_empty()).collect()
}

/// Returns the character, or U+FFFD if SQS would refuse it. Source: `SendMessage`, SQS API reference.
fn accepted(character: char) -> char {
    match character {
        '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'.. => character,
        _ => char::REPLACEMENT_CHARACTER,
    }
}
