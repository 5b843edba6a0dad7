//! A consumer's dead-letter, in the same format as the retry handler's.

use std::collections::HashMap;

use aws_lambda_events::sqs::{SqsMessage, SqsMessageAttribute};
use comeback_engine::{ATTRIBUTE_CHARACTERS, ReasonCode, Timestamp};
use lambda_runtime::Diagnostic;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::policy::{NoRetry, SystemAttributes};

/// Maximum size of an SQS message with its attributes, in bytes.
const MOST_BYTES: usize = 1_048_576;
const MOST_ATTRIBUTES: usize = 10;
/// A consumer's reasons for dead-lettering a message.
const REASONS: [ReasonCode; 3] = [ReasonCode::MaxRetries, ReasonCode::MaxAge, ReasonCode::NonRetryableError];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeadLetter {
    pub(crate) body: String,
    pub(crate) attributes: Vec<DeadLetterAttribute>,
    /// The failed message's FIFO group or, on a standard queue, its tenant for SQS's fair queues.
    pub(crate) group: Option<String>,
    pub(crate) trace_header: Option<String>,
    pub(crate) deduplication_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadLetterAttribute {
    pub(crate) name: String,
    pub(crate) data_type: String,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Bytes(Vec<u8>),
}

/// The failure that ended a message's retries.
pub(crate) struct Last<'a> {
    pub(crate) error: &'a Diagnostic,
    pub(crate) end: &'a NoRetry,
    pub(crate) at: Timestamp,
}

#[derive(Serialize)]
struct Body<'a> {
    reason: &'a str,
    detail: &'a str,
    function_arn: &'a str,
    retries_made: u32,
    initial_timestamp: u64,
    dead_lettered_at: u64,
    origin_request_id: &'a str,
    error: ErrorBody<'a>,
    /// The body of the failed message, as a JSON string, so that any body can be restored verbatim.
    payload: &'a str,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    r#type: &'a str,
    message: &'a str,
}

/// The JSON members that distinguish Comeback's dead-letters from other messages.
#[derive(Deserialize)]
struct ReceivedBody {
    reason: String,
    #[serde(rename = "dead_lettered_at")]
    _dead_lettered_at: IgnoredAny,
    payload: String,
}

/// Returns the record, with its original body if the body is a dead-letter that was moved back to the queue.
pub(crate) fn redriven(record: &SqsMessage) -> SqsMessage {
    let mut record = record.clone();
    let body = record.body.as_deref().filter(|body| body.starts_with("{\"reason\":"));
    let dead_letter: Option<ReceivedBody> = body.and_then(|body| serde_json::from_str(body).ok());
    if let Some(it) = dead_letter.filter(|it| REASONS.iter().any(|reason| reason.name() == it.reason)) {
        record.body = Some(it.payload);
    }
    record
}

impl DeadLetter {
    /// Makes the dead-letter for a message, with fewer details if it would otherwise be too large for SQS.
    pub(crate) fn of(
        record: &SqsMessage,
        sent: SystemAttributes,
        last: &Last<'_>,
        function_arn: &str,
    ) -> Self {
        let Last { error, end, at } = last;
        let payload = redriven(record).body.unwrap_or_default();
        let retries_made = sent.receives.saturating_sub(1);
        let mut body = Body {
            reason: end.reason.name(),
            detail: &end.detail,
            function_arn,
            retries_made,
            initial_timestamp: sent.sent.as_secs(),
            dead_lettered_at: at.as_secs(),
            origin_request_id: record.message_id.as_deref().unwrap_or_default(),
            error: ErrorBody { r#type: &error.error_type, message: &error.error_message },
            payload: &payload,
        };
        let json = |body: &Body<'_>| {
            let json = serde_json::to_string(body).expect("BUG: strings and numbers are JSON");
            // SQS refuses these two characters unless they are escaped.
            json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
        };
        let reason = text("Reason", end.reason.name());
        let number = DeadLetterAttribute {
            name: "RetriesMade".into(),
            data_type: "Number".into(),
            value: Value::Text(retries_made.to_string()),
        };
        let ours = [
            reason.clone(),
            text("TargetFunction", function_arn),
            number,
            text("ErrorType", &error.error_type),
        ];
        let mut attributes: Vec<DeadLetterAttribute> =
            ours.into_iter().filter(|it| it.value != Value::Text(String::new())).collect();
        let own = own_attributes(&record.message_attributes, &attributes);
        attributes.extend(own);
        let received = record.body.clone().unwrap_or_default();
        let beside = |name: &str| record.attributes.get(name).filter(|text| !text.is_empty()).cloned();
        let least = Self {
            body: received,
            group: beside("MessageGroupId"),
            trace_header: beside("AWSTraceHeader"),
            ..Self::default()
        };
        let full = Self { body: json(&body), attributes: attributes.clone(), ..least.clone() };
        body.error.message = "";
        let without_text = Self { body: json(&body), attributes, ..least.clone() };
        let verbatim = Self { attributes: vec![reason], ..least.clone() };
        let fits = [full, without_text, verbatim].into_iter().find(|it| it.size() <= MOST_BYTES);
        fits.unwrap_or(least)
    }

    /// Adds the message group id and the deduplication id that a FIFO queue requires.
    pub(crate) fn in_order(self, group: &str, message_id: &str) -> Self {
        Self { group: Some(group.into()), deduplication_id: Some(message_id.into()), ..self }
    }

    /// Returns the size in bytes, as SQS counts it: the body, and each attribute's name, type and value.
    fn size(&self) -> usize {
        let attribute = |it: &DeadLetterAttribute| {
            let value = match &it.value {
                Value::Text(text) => text.len(),
                Value::Bytes(bytes) => bytes.len(),
            };
            it.name.len() + it.data_type.len() + value
        };
        self.body.len() + self.attributes.iter().map(attribute).sum::<usize>()
    }
}

/// Returns the received message's attributes that fit beside `ours`, within SQS's limit of ten.
fn own_attributes(
    given: &HashMap<String, SqsMessageAttribute>,
    ours: &[DeadLetterAttribute],
) -> Vec<DeadLetterAttribute> {
    let mut own: Vec<DeadLetterAttribute> = given
        .iter()
        .filter(|(name, _)| ours.iter().all(|it| it.name != **name))
        .filter_map(|(name, given)| {
            let text = given.string_value.clone().filter(|text| !text.is_empty()).map(Value::Text);
            let binary = given.binary_value.as_ref().filter(|bytes| !bytes.0.is_empty());
            let value = binary.map(|bytes| Value::Bytes(bytes.0.clone())).or(text)?;
            let data_type = given.data_type.clone().unwrap_or_else(|| "String".into());
            Some(DeadLetterAttribute { name: name.clone(), data_type, value })
        })
        .collect();
    // A map has no order. Without sorting, different attributes could be left out each time.
    own.sort_by(|one, other| one.name.cmp(&other.name));
    own.truncate(MOST_ATTRIBUTES - ours.len());
    own
}

fn text(name: &str, value: &str) -> DeadLetterAttribute {
    // SQS refuses all characters outside these ranges. Source: SendMessage, SQS API reference.
    let accepted = |it: char| match it {
        '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'.. => it,
        _ => char::REPLACEMENT_CHARACTER,
    };
    let value = value.chars().take(ATTRIBUTE_CHARACTERS).map(accepted).collect();
    DeadLetterAttribute { name: name.into(), data_type: "String".into(), value: Value::Text(value) }
}
