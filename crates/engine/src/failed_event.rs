//! A failed event, read from its message in the retry queue.

use std::borrow::Cow;
use std::time::Duration;

use comeback_envelope::Metadata;
use serde_json::value::RawValue;

use crate::dead_letter::{Body, DeadLetter, InvocationError, Reason, ReasonCode, ReceivedBody};
use crate::directive::Directive;
use crate::invocation_record::InvocationRecord;
use crate::json::{id, lossy_text, object};
use crate::policies::Policies;
use crate::record::Record;
use crate::stray;
use crate::time::Timestamp;

/// Longest plausible time from a failure to the delivery of its record. An older record counts as redriven by
/// an operator.
const LATEST_DELIVERY: Duration = Duration::from_secs(24 * 3_600);

/// Maximum length of a logged string, in characters. CloudWatch would drop a line that is too long.
const LONGEST_LOGGED: usize = 512;

/// Returns the part of a string that is logged: its first 512 characters. Event keys are compared by this part only.
pub fn logged(text: &str) -> &str {
    if text.len() <= LONGEST_LOGGED {
        return text; // counting its characters would take longer
    }
    text.char_indices().nth(LONGEST_LOGGED).map_or(text, |(end, _)| &text[..end])
}

/// A failed event, as read from a message.
#[derive(Clone, Debug)]
pub struct FailedEvent<'a> {
    /// The ARN of the function to re-invoke, exactly as in the record.
    pub function_arn: Cow<'a, str>,
    /// The number of the next retry, starting at 1.
    pub retry: u64,
    /// When the event first failed, in whole seconds.
    pub first_failure: Timestamp,
    /// The event's key, which is the same on every retry.
    pub origin_request_id: String,
    /// The request id of the invocation that failed; `None` if the record does not have this id.
    pub request_id: Option<String>,
    /// When the last attempt failed: the record's `timestamp`, or the time when the record was sent if the
    /// `timestamp` is missing or later.
    pub failed_at: Timestamp,
    /// The error from the last attempt; `None` if it is unknown.
    pub error: Option<InvocationError<'a>>,
    /// The directive given by the error of the last attempt; `None` for an ordinary error.
    pub directive: Option<Directive>,
    /// True if the record says that the target function does not exist.
    pub not_found: bool,
    /// The payload of the first invocation, without an envelope.
    pub payload: Cow<'a, RawValue>,
    pub(crate) error_type: Option<Cow<'a, str>>,
    /// The size of the payload in the received message, in bytes, including its envelope.
    pub(crate) received_payload_bytes: usize,
}

impl<'a> FailedEvent<'a> {
    /// Reads the event from a message whose body is an invocation record, a redriven dead-letter, or a redriven record.
    ///
    /// # Errors
    ///
    /// Fails with the reason `malformed_record`, `malformed_envelope` or `payload_lost`.
    pub fn read(record: &'a Record) -> Result<Self, Reason> {
        match InvocationRecord::read(&record.body) {
            Ok(failure) => Self::failed(record, failure),
            Err(reason) => match object::<ReceivedBody<'_>>(&record.body) {
                Ok(dead_letter) => Self::redriven(record, dead_letter),
                Err(_) => Err(stray::named(record)
                    .map_or(reason, |detail| Reason::new(ReasonCode::MalformedRecord, detail))),
            },
        }
    }

    /// Drops the directive if `DIRECTIVES` is off in the policy for the event's function.
    pub fn under(self, policies: &Policies) -> Self {
        let obeys = policies.of(&self.function_arn).settings().directives;
        Self { directive: self.directive.filter(|_| obeys), ..self }
    }

    /// The number of retries made so far.
    pub fn retries_made(&self) -> u64 {
        self.retry - 1
    }

    /// The type of the event's error; `None` if it is unknown or not a string.
    pub fn error_type(&self) -> Option<&str> {
        self.error_type.as_deref()
    }

    pub(crate) fn dead_letter(&self, record: &Record, reason: &Reason, now: Timestamp) -> DeadLetter {
        let body = Body {
            reason: reason.code.name(),
            detail: &reason.detail,
            function_arn: &self.function_arn,
            retries_made: self.retries_made(),
            initial_timestamp: self.first_failure.as_secs(),
            dead_lettered_at: now.as_secs(),
            origin_request_id: &self.origin_request_id,
            error: self.error,
            payload: &self.payload,
        };
        DeadLetter::of_event(record, reason, &body)
    }

    fn failed(record: &Record, failure: InvocationRecord<'a>) -> Result<Self, Reason> {
        let event = open(failure.request_payload)?;
        let (attempt, first_failure, key) = match event.metadata {
            Some(Metadata { attempt, initial_timestamp, origin_request_id }) => {
                (attempt, Timestamp::from_secs(initial_timestamp), origin_request_id)
            }
            None => (0, failure.timestamp.unwrap_or(record.first_sent()), None),
        };
        let key = key.or_else(|| failure.request_id.clone());
        let anew = Self::anew(record, failure.function_arn, key, event.payload, failure.request_payload);
        let anew = Self { request_id: failure.request_id, ..anew };
        if failure.timestamp.is_some_and(|written| record.first_sent().since(written) > LATEST_DELIVERY) {
            return Ok(anew);
        }
        // A `timestamp` after the time of sending is wrong, and must not delay the retry.
        let failed_at = failure.timestamp.unwrap_or(record.first_sent()).min(record.first_sent());
        let error = failure.error;
        let error_type = error.and_then(|error| error.error_type).and_then(lossy_text);
        let error_type = error_type.filter(|error_type| !error_type.is_empty());
        let directive = error_type.as_deref().and_then(|error_type| {
            Directive::of(error_type, error.and_then(|error| error.message), failed_at)
        });
        Ok(Self {
            retry: attempt.saturating_add(1),
            // The claimed time is capped at SQS's own time, so that a forged claim cannot get around MAX_AGE.
            first_failure: Timestamp::from_secs(first_failure.min(record.first_sent()).as_secs()),
            failed_at,
            error,
            directive,
            not_found: failure.not_found,
            error_type,
            ..anew
        })
    }

    /// Reads the event from a redriven dead-letter, and unwraps its payload if it is in an envelope.
    fn redriven(record: &Record, dead_letter: ReceivedBody<'a>) -> Result<Self, Reason> {
        let ReceivedBody { function_arn, origin_request_id, payload, .. } = dead_letter;
        Ok(Self::anew(record, function_arn, id(origin_request_id), open(payload)?.payload, payload))
    }

    /// Creates an event that starts over: earlier errors and retries do not count.
    fn anew(
        record: &Record,
        function_arn: Cow<'a, str>,
        key: Option<String>,
        payload: Cow<'a, RawValue>,
        received_payload: &RawValue,
    ) -> Self {
        Self {
            function_arn,
            retry: 1,
            first_failure: Timestamp::from_secs(record.first_sent().as_secs()),
            origin_request_id: key.unwrap_or_else(|| record.first_id().to_owned()),
            request_id: None,
            failed_at: record.first_sent(),
            error: None,
            directive: None,
            not_found: false,
            payload,
            error_type: None,
            received_payload_bytes: received_payload.get().len(),
        }
    }
}

fn open(payload: &RawValue) -> Result<comeback_envelope::Event<'_>, Reason> {
    comeback_envelope::open(payload)
        .map_err(|malformed| Reason::new(ReasonCode::MalformedEnvelope, malformed.to_string()))
}
