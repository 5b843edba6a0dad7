//! Parses messages from the dead-letter queue, which are untrusted: anyone may have sent them.

use std::borrow::Cow;

use comeback_envelope::Event;
use serde_json::value::RawValue;

use crate::dead_letter::{Body, Reason, ReasonCode, ReceivedBody, json_of};
use crate::failed_event::FailedEvent;
use crate::invocation_record::InvocationRecord;
use crate::json::{Members, id, non_empty_text, object};
use crate::record::Record;
use crate::time::Timestamp;

/// The kinds of messages that may be in the dead-letter queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadLetterKind {
    /// A dead-letter whose event was parsed.
    Event,
    /// A received body that the handler dead-lettered verbatim, because the body could not be parsed or was too large
    /// to wrap.
    Verbatim,
    /// An invocation record that SQS itself moved to the dead-letter queue, under the retry queue's redrive policy.
    Record,
    /// Any message that is not one of Comeback's dead-letters.
    Unknown,
}

/// A parsed message from the dead-letter queue. Missing or unreadable members are `None`.
#[derive(Clone, Debug)]
pub struct ReceivedDeadLetter<'a> {
    record: &'a Record,
    /// The message's kind.
    pub kind: DeadLetterKind,
    /// The reason for dead-lettering the event; `None` for a [`DeadLetterKind::Record`], because SQS gives no reason.
    pub reason: Option<ReasonCode>,
    /// The reason in words.
    pub detail: Option<String>,
    /// The ARN of the event's function, with its qualifier.
    pub function_arn: Option<Cow<'a, str>>,
    /// The number of retries that were made.
    pub retries_made: Option<u64>,
    /// When the event first failed.
    pub first_failure: Option<Timestamp>,
    /// When the event was dead-lettered: the earlier of the message's `dead_lettered_at` and its send time.
    pub dead_lettered_at: Timestamp,
    /// The event's `origin_request_id` or, without one, the request id of the failed invocation. If both are missing,
    /// the key is SQS's id for the event's first message. `None` if the event is unreadable.
    pub key: Option<String>,
    /// The `errorType` of the last failure.
    pub error_type: Option<String>,
    /// The `errorMessage` of the last failure.
    pub error_message: Option<String>,
    /// The event's payload, byte for byte.
    pub payload: Option<Cow<'a, RawValue>>,
}

impl<'a> ReceivedDeadLetter<'a> {
    /// Reads a message from the dead-letter queue. `attribute` returns the message attribute with a given name.
    pub fn read(record: &'a Record, attribute: impl Fn(&str) -> Option<&'a str>) -> Self {
        let reason = attribute("Reason").and_then(ReasonCode::named);
        let unread = Self {
            record,
            kind: if reason.is_some() { DeadLetterKind::Verbatim } else { DeadLetterKind::Unknown },
            reason,
            detail: reason.and(attribute("Detail")).map(Into::into),
            function_arn: None,
            retries_made: None,
            first_failure: None,
            dead_lettered_at: record.sent,
            key: None,
            error_type: None,
            error_message: None,
            payload: None,
        };
        // The handler also tries these two formats in this order.
        match (InvocationRecord::read(&record.body), object::<ReceivedBody<'_>>(&record.body)) {
            (Ok(failure), _) => unread.with_record(failure),
            (Err(_), Ok(dead_letter)) => unread.with_event(dead_letter),
            (Err(_), Err(_)) => unread,
        }
    }

    /// Returns a message body that makes the event start over when it is sent to the retry queue. The message needs no
    /// attributes.
    ///
    /// `function_arn` and `payload`, if given, replace those of the event. The event keeps its key, but not its error.
    ///
    /// # Errors
    ///
    /// Fails if no event can be read from the body, with the reason that the handler would give for it.
    pub fn redriven(&self, function_arn: Option<&str>, payload: Option<&RawValue>) -> Result<String, Reason> {
        let event = FailedEvent::read(self.record)?;
        Ok(json_of(&Body {
            // A redrive checks only that the reason is known. `MaxAge` is the closest reason for a record that SQS
            // dead-lettered.
            reason: self.reason.unwrap_or(ReasonCode::MaxAge).name(),
            detail: self.detail.as_deref().unwrap_or_default(),
            function_arn: function_arn.unwrap_or(&event.function_arn),
            retries_made: self.retries_made.unwrap_or(0),
            initial_timestamp: self.first_failure.unwrap_or(event.first_failure).as_secs(),
            dead_lettered_at: self.dead_lettered_at.as_secs(),
            origin_request_id: &event.origin_request_id,
            error: None,
            payload: payload.unwrap_or(&event.payload),
        }))
    }

    /// Reads an invocation record that the handler or SQS sent to the dead-letter queue unchanged.
    fn with_record(self, failure: InvocationRecord<'a>) -> Self {
        let event = comeback_envelope::open(failure.request_payload).ok();
        let retries_made = event.as_ref().map(Event::attempt);
        let verbatim = Event { payload: Cow::Borrowed(failure.request_payload), metadata: None };
        let Event { payload, metadata } = event.unwrap_or(verbatim);
        let claimed = metadata.as_ref().map(|metadata| Timestamp::from_secs(metadata.initial_timestamp));
        let error = failure.error.as_ref();
        Self {
            kind: if self.reason.is_some() { DeadLetterKind::Verbatim } else { DeadLetterKind::Record },
            function_arn: Some(failure.function_arn),
            retries_made,
            first_failure: claimed.or(failure.timestamp),
            key: metadata
                .and_then(|metadata| metadata.origin_request_id)
                .or(failure.request_id)
                .or_else(|| Some(self.record.first_id().to_owned())),
            error_type: error.and_then(|error| error.error_type).and_then(non_empty_text),
            error_message: error.and_then(|error| error.message).and_then(non_empty_text),
            payload: Some(payload),
            ..self
        }
    }

    /// Adds the event from a body that is in the format of the handler's dead-letters.
    ///
    /// If the handler received this body and dead-lettered it unchanged, anyone may have written it. The body's reason,
    /// detail and time are then ignored.
    fn with_event(self, dead_letter: ReceivedBody<'a>) -> Self {
        let is_verbatim =
            self.detail.is_some() || self.reason.is_some_and(|reason| reason != dead_letter.reason);
        // A redrive does not need these members, so each may be missing or malformed.
        let history: Members<'_> = object(&self.record.body).unwrap_or_default();
        let error: Members<'_> =
            history.get("error").and_then(|raw| object(raw.get()).ok()).unwrap_or_default();
        let number = |name| history.get(name).and_then(|raw| raw.get().parse().ok());
        let text = |members: &Members<'_>, name| members.get(name).and_then(|raw| non_empty_text(raw));
        let event = Self {
            function_arn: Some(dead_letter.function_arn),
            retries_made: number("retries_made"),
            first_failure: number("initial_timestamp").map(Timestamp::from_secs),
            key: id(dead_letter.origin_request_id).or_else(|| Some(self.record.first_id().to_owned())),
            error_type: text(&error, "type"),
            error_message: text(&error, "message"),
            payload: Some(Cow::Borrowed(dead_letter.payload)),
            ..self
        };
        if is_verbatim {
            return event;
        }
        Self {
            kind: DeadLetterKind::Event,
            reason: Some(dead_letter.reason),
            detail: text(&history, "detail"),
            dead_lettered_at: Timestamp::from_secs(dead_letter.dead_lettered_at).min(event.record.sent),
            ..event
        }
    }
}
