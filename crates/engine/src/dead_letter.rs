//! The dead-letter on the wire: what an operator sees of an event that was given up, and what a
//! redrive starts it anew from.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::event::FailedEvent;
use crate::{Reason, ReasonCode, Record, Timestamp};

/// Bytes of an SQS message with its attributes.
/// Source: SQS quotas, 1 MiB since August 2025.
pub const SQS_MESSAGE_BYTES: usize = 1_048_576;

/// Attributes are for filtering; whoever wants more reads the body.
const ATTRIBUTE_CHARACTERS: usize = 256;

/// A message for the dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// JSON, or the received body verbatim where that was not understood or leaves no room.
    pub body: String,
    /// `Reason` and what else is known.
    pub attributes: Vec<Attribute>,
}

/// A message attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// `String` or `Number`.
    pub data_type: &'static str,
    /// At most 256 characters, never empty.
    pub value: String,
}

#[derive(Serialize)]
struct Body<'a> {
    reason: &'static str,
    detail: &'a str,
    function_arn: &'a str,
    retries_made: u64,
    initial_timestamp: u64,
    dead_lettered_at: u64,
    origin_request_id: &'a str,
    error: Option<ErrorBody<'a>>,
    payload: &'a RawValue,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    r#type: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
}

impl DeadLetter {
    /// The dead-letter of a record, `event` being what could be understood of it.
    pub(crate) fn new(
        record: &Record,
        event: Option<&FailedEvent<'_>>,
        reason: &Reason,
        now: Timestamp,
    ) -> Self {
        let full = match event {
            Some(event) => Self::of_event(event, reason, now),
            None => Self {
                body: record.body.clone(),
                attributes: attributes([text("Reason", reason.code.name()), text("Detail", &reason.detail)]),
            },
        };
        full.or_verbatim(record, reason)
    }

    fn of_event(event: &FailedEvent<'_>, reason: &Reason, now: Timestamp) -> Self {
        let error = event.error.as_ref();
        let body = Body {
            reason: reason.code.name(),
            detail: &reason.detail,
            function_arn: &event.function_arn,
            retries_made: event.retries_made(),
            initial_timestamp: event.first_failure.as_secs(),
            dead_lettered_at: now.as_secs(),
            origin_request_id: &event.origin_request_id,
            error: error.map(|error| ErrorBody { r#type: error.error_type, message: error.message }),
            payload: &event.payload,
        };
        let body = serde_json::to_string(&body).expect("BUG: strings, numbers and raw JSON are JSON");
        Self {
            // Raw U+FFFE and U+FFFF can come out of a decoded escape; SQS refuses both.
            body: body.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff"),
            attributes: attributes([
                text("Reason", reason.code.name()),
                text("TargetFunction", &event.function_arn),
                Attribute {
                    name: "RetriesMade",
                    data_type: "Number",
                    value: event.retries_made().to_string(),
                },
                text("ErrorType", &event.error_type().unwrap_or_default()),
            ]),
        }
    }

    /// Itself if it fits; else the received body, with as much of an attribute as fits beside it.
    fn or_verbatim(self, record: &Record, reason: &Reason) -> Self {
        if self.size() <= SQS_MESSAGE_BYTES {
            return self;
        }
        let mut verbatim =
            Self { body: record.body.clone(), attributes: attributes([text("Reason", reason.code.name())]) };
        if verbatim.size() > SQS_MESSAGE_BYTES {
            verbatim.attributes.clear();
        }
        verbatim
    }

    /// What SQS counts: the body, and each attribute's name, type and value.
    pub fn size(&self) -> usize {
        let attributes = self.attributes.iter();
        self.body.len() + attributes.map(|a| a.name.len() + a.data_type.len() + a.value.len()).sum::<usize>()
    }
}

fn text(name: &'static str, value: &str) -> Attribute {
    let value = value.chars().take(ATTRIBUTE_CHARACTERS).map(accepted).collect();
    Attribute { name, data_type: "String", value }
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

/// Whether `name` is one of our reasons: how a dead-letter body is told from anything else.
pub(crate) fn is_reason(name: &str) -> bool {
    ReasonCode::ALL.iter().any(|code| code.name() == name)
}

#[cfg(test)]
mod tests;
