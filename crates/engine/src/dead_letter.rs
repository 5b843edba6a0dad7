//! The dead-letter on the wire, and its reason. An operator sees it, and a redrive starts its event anew from it.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::json::{non_empty_text, object};
use crate::record::{Attribute, Record};

/// Largest SQS message, with its attributes, in bytes. Source: SQS quotas, 1 MiB since August 2025.
pub const SQS_MESSAGE_BYTES: usize = 1_048_576;

/// Maximum number of characters of our attributes. They are for filtering; the body holds the whole text.
const ATTRIBUTE_CHARACTERS: usize = 256;

/// The reason to dead-letter an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// For filtering and counting.
    pub code: ReasonCode,
    /// For people: the value that was found, and the limit that it broke. Never the payload.
    pub detail: String,
}

impl Reason {
    pub(crate) fn new(code: ReasonCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// The handler's reasons to dead-letter. Users filter by their names, which never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// `MAX_RETRIES` re-invocations were made.
    MaxRetries,
    /// `MAX_AGE` has passed since the first failure, or no backoff fits before it.
    MaxAge,
    /// The error matches `NON_RETRYABLE_ERRORS`.
    NonRetryableError,
    /// The target does not exist.
    TargetNotFound,
    /// Lambda will never accept this event for this target.
    TargetRefused,
    /// The target is not on `TARGET_FUNCTIONS`.
    TargetNotAllowed,
    /// The event, or the record of its next failure, is over the size limit.
    PayloadTooLarge,
    /// The message's body is not an invocation record.
    MalformedRecord,
    /// The payload's `_retry_metadata` cannot be read.
    MalformedEnvelope,
    /// The invocation record has no payload: Lambda may leave out one that is too large.
    PayloadLost,
    /// An operator asked for it, by a [`Cancel`](crate::Cancel).
    Cancelled,
}

impl ReasonCode {
    /// Every reason, in the order of the documentation.
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

    /// The name on the wire.
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

    /// The reason with this name.
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

/// A message for the dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// JSON, or the received body verbatim if it could not be parsed or is too large to wrap.
    pub body: String,
    /// `Reason` and whatever else is known. If the message could not be parsed, also its sender's attributes.
    pub attributes: Vec<Attribute>,
}

/// The body for an event that was parsed.
#[derive(Serialize)]
pub(crate) struct Body<'a> {
    pub(crate) reason: &'static str,
    pub(crate) detail: &'a str,
    pub(crate) function_arn: &'a str,
    pub(crate) retries_made: u64,
    pub(crate) initial_timestamp: u64,
    pub(crate) dead_lettered_at: u64,
    pub(crate) origin_request_id: &'a str,
    pub(crate) error: Option<ErrorBody<'a>>,
    pub(crate) payload: &'a RawValue,
}

#[derive(Serialize)]
pub(crate) struct ErrorBody<'a> {
    pub(crate) r#type: Option<&'a RawValue>,
    pub(crate) message: Option<&'a RawValue>,
}

/// The body read back: the members that distinguish our dead-letters from any other JSON, and those that a redrive needs.
#[derive(Deserialize)]
pub(crate) struct Redriven<'a> {
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

impl<'a> Redriven<'a> {
    pub(crate) fn read(body: &'a str) -> Option<Self> {
        object(body).ok()
    }
}

fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReasonCode, D::Error> {
    let name = Cow::<str>::deserialize(deserializer)?;
    ReasonCode::named(&name).ok_or_else(|| D::Error::custom("not a known reason"))
}

/// The JSON of a body. SQS refuses raw U+FFFE and U+FFFF, which a decoded escape can contain.
pub(crate) fn json_of(body: &Body<'_>) -> String {
    let json = serde_json::to_string(body).expect("BUG: strings, numbers and raw JSON are JSON");
    json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

impl DeadLetter {
    /// The dead-letter of an event, in place of the received record.
    pub(crate) fn of_event(record: &Record, reason: &Reason, body: &Body<'_>) -> Self {
        let error_type = body.error.as_ref().and_then(|error| error.r#type).and_then(non_empty_text);
        let retries_made = body.retries_made.to_string();
        let dead_letter = Self {
            body: json_of(body),
            attributes: attributes([
                text("Reason", body.reason),
                text("TargetFunction", body.function_arn),
                Attribute { name: "RetriesMade".into(), data_type: "Number".into(), value: retries_made },
                text("ErrorType", &error_type.unwrap_or_default()),
            ]),
        };
        dead_letter.or_verbatim(record, reason)
    }

    /// The dead-letter of a record that could not be parsed, with its sender's attributes, which may tell what the record is.
    pub(crate) fn verbatim(record: &Record, reason: &Reason) -> Self {
        let ours = attributes([text("Reason", reason.code.name()), text("Detail", &reason.detail)]);
        let all = Attribute::beside(ours.clone(), &record.attributes);
        let dead_letter = Self { body: record.body.clone(), attributes: all };
        if dead_letter.fits() {
            return dead_letter;
        }
        Self { attributes: ours, ..dead_letter }.or_verbatim(record, reason)
    }

    /// This dead-letter if it fits; otherwise the received body, with `Reason` if that fits.
    fn or_verbatim(self, record: &Record, reason: &Reason) -> Self {
        if self.fits() {
            return self;
        }
        let mut verbatim =
            Self { body: record.body.clone(), attributes: attributes([text("Reason", reason.code.name())]) };
        if !verbatim.fits() {
            verbatim.attributes.clear();
        }
        verbatim
    }

    fn fits(&self) -> bool {
        self.size() <= SQS_MESSAGE_BYTES
    }

    /// The size that SQS counts: the body, and each attribute's name, type and value.
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

/// The character, or a stand-in for one that SQS refuses.
/// Source: `SendMessage`, SQS API reference: #x9, #xA, #xD, #x20 and up, without #xFFFE and #xFFFF.
fn accepted(character: char) -> char {
    match character {
        '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'.. => character,
        _ => char::REPLACEMENT_CHARACTER,
    }
}
