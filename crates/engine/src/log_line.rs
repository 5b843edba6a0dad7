//! Lines in the handler's log, each about one message.

use std::borrow::Cow;

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::account::CallFailure;
use crate::directive::Directive;
use crate::failed_event::{FailedEvent, logged};
use crate::outcome::{Outcome, What};
use crate::report::BatchReport;
use crate::time::Timestamp;

/// Maximum length of a receipt handle in the log; SQS's handles have about 400 characters.
const LONGEST_HANDLE: usize = 1_024;

/// A JSON line in the handler's log, with the outcome of one message in one batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine<'a> {
    /// When the handler wrote the line, at the end of the batch.
    pub timestamp: Timestamp,
    /// The log level, by which Lambda's log settings filter the lines.
    pub level: LogLevel,
    /// The version of the line's format, always [`LOG_VERSION`].
    #[serde(deserialize_with = "version")]
    pub v: u64,
    /// SQS's id for the message. A copy of a moved message has its own id.
    pub message_id: Cow<'a, str>,
    /// The event in the message; `None` if the message was not parsed.
    #[serde(flatten)]
    pub event: Option<LoggedEvent<'a>>,
    /// The outcome of the message.
    #[serde(flatten)]
    pub what: Cow<'a, What>,
    /// The id of the X-Ray trace that the message belongs to; `None` if the message is not part of a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Cow<'a, str>>,
    /// The receipt handle for making the message visible early; see [`Outcome::receipt_handle`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt_handle: Option<Cow<'a, str>>,
}

/// The version of the log format. A reader ignores unknown members.
pub const LOG_VERSION: u64 = 1;

/// The level of a log line, named as in Lambda's log settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LogLevel {
    /// No call failed, and the event was not dead-lettered.
    Info,
    /// A call failed, the event was dead-lettered, or the event's `RetryAfter` could not be read.
    Warn,
    /// A call failed because of a problem that an operator can fix.
    Error,
}

/// The event in a message, and its next retry. All lines about the message and its copies have the same values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedEvent<'a> {
    /// The event's `origin_request_id`, the same on every retry.
    pub key: Cow<'a, str>,
    /// The ARN of the target function.
    pub target: Cow<'a, str>,
    /// The number of the next retry, starting at 1.
    pub retry: u64,
    /// When the event first failed.
    #[serde(serialize_with = "to_the_second")]
    pub first_failure: Timestamp,
    /// The request id of the invocation that failed before this retry; `None` if the invocation record does not
    /// contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Cow<'a, str>>,
    /// The `errorType` of the failed invocation; `None` if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<Cow<'a, str>>,
    /// The entry in `POLICIES` that applies to the function; `None` if the stack's policy applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Cow<'a, str>>,
    /// The time that a `RetryAfter` error requested; `None` for any other error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Timestamp>,
    /// For an ignored `RetryAfter` error, the start of its message and the reason for ignoring it; `None` for any
    /// other error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ignored: Option<Cow<'a, str>>,
}

/// The reason why a string is not a [`LogLine`] that this version can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotALine {
    /// The string is not a log line about a message.
    Other,
    /// The line has a later format version than this reader supports.
    Newer,
}

impl LogLine<'_> {
    /// Parses a line from the handler's log.
    ///
    /// # Errors
    ///
    /// Fails if the string is not a line about a message, or if its format version is too new.
    pub fn read(text: &str) -> Result<LogLine<'static>, NotALine> {
        #[derive(Deserialize)]
        struct AnyVersion {
            v: u64,
        }
        serde_json::from_str(text).map_err(|_| match serde_json::from_str(text) {
            Ok(AnyVersion { v: 2.. }) => NotALine::Newer,
            _ => NotALine::Other,
        })
    }
}

impl<'a> LogLine<'a> {
    /// Creates the log line for the outcome of one message.
    pub fn of(outcome: &'a Outcome<'_>, timestamp: Timestamp) -> Self {
        let event = outcome.event.as_ref().map(|event| LoggedEvent::of(event, outcome.policy.as_deref()));
        let is_ignored = event.as_ref().is_some_and(|event| event.retry_after_ignored.is_some());
        let level = match outcome.problem() {
            Some(CallFailure { remedy: Some(_), .. }) => LogLevel::Error,
            Some(_) => LogLevel::Warn,
            None if is_ignored || matches!(outcome.what, What::DeadLetter { .. }) => LogLevel::Warn,
            None => LogLevel::Info,
        };
        let trace = outcome.record.trace_id().map(Into::into);
        let receipt_handle = outcome.receipt_handle().filter(|handle| is_plain(handle)).map(Into::into);
        let (message_id, what) = (outcome.message_id().into(), Cow::Borrowed(&outcome.what));
        Self { timestamp, level, v: LOG_VERSION, message_id, event, what, trace, receipt_handle }
    }
}

impl BatchReport<'_> {
    /// Creates a log line for each message in the batch, except for copies that were only moved again.
    pub fn log_lines(&self, timestamp: Timestamp) -> impl Iterator<Item = LogLine<'_>> {
        let outcomes = self.outcomes.iter().filter(|outcome| !outcome.only_moves_on());
        outcomes.map(move |outcome| LogLine::of(outcome, timestamp))
    }
}

impl<'a> LoggedEvent<'a> {
    /// Creates the log fields for an event, with the entry in `POLICIES` that applies to its function.
    pub fn of(event: &'a FailedEvent<'_>, policy: Option<&'a str>) -> Self {
        let (retry_after, retry_after_ignored) = match &event.directive {
            Some(Directive::RetryAfter(moment)) => (Some(*moment), None),
            Some(Directive::Unreadable { text, why }) => (None, Some(format!("{text:?}: {why}").into())),
            Some(Directive::NonRetryable) | None => (None, None),
        };
        Self {
            key: cut(&event.origin_request_id),
            target: cut(&event.function_arn),
            retry: event.retry,
            first_failure: event.first_failure,
            request_id: event.request_id.as_deref().map(cut),
            error_type: event.error_type().map(cut),
            policy: policy.map(cut),
            retry_after,
            retry_after_ignored,
        }
    }
}

fn cut(text: &str) -> Cow<'_, str> {
    logged(text).into()
}

fn is_plain(handle: &str) -> bool {
    handle.len() <= LONGEST_HANDLE && handle.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        LOG_VERSION => Ok(LOG_VERSION),
        other => Err(D::Error::invalid_value(Unexpected::Unsigned(other), &"version 1")),
    }
}

/// Serializes the time of a first failure without milliseconds, because the time is always a whole second.
fn to_the_second<S: Serializer>(moment: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    let text = moment.to_string();
    match text.strip_suffix(".000Z") {
        Some(whole) => serializer.collect_str(&format_args!("{whole}Z")),
        None => serializer.serialize_str(&text),
    }
}

#[cfg(test)]
pub(crate) mod tests;
