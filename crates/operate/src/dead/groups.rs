//! Groups of similar dead-letters, and short descriptions of individual dead-letters.

use std::cmp::Reverse;

use comeback_engine::{DeadLetterKind, RETENTION, ReasonCode, ReceivedDeadLetter, Timestamp};
use serde::Serialize;

use crate::aws::Received;
use crate::dead::filter::reason_of;
use crate::deployment::Deployment;
use crate::durations;
use crate::function::shown_name;
use crate::layout::Table;
use crate::numbers::grouped;
use crate::text::{Piece, Text};

/// The maximum number of groups. Without it, every dead-letter might get its own group, because functions can report
/// any string as an error's type.
pub(super) const MOST_GROUPS: usize = 1_000;
/// The maximum length of an error's type, message and details, in characters.
pub(super) const LONGEST_ERROR: usize = 256;
/// The maximum length of an error message in a table, in characters.
const SHOWN_OF_A_MESSAGE: usize = 40;

/// The values that all dead-letters in a group share, and the error message of the first one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Alike {
    /// The name of the reason: one of the handler's, `max_receive_count`, `unknown`, or `other` once there are too many
    /// groups.
    pub reason: &'static str,
    /// The ARN of the function; `None` if it is unknown.
    pub target: Option<String>,
    /// The last error's type, truncated to 256 characters; `None` if it is unknown.
    pub error_type: Option<String>,
    /// The error message of the group's first dead-letter, truncated to 256 characters. `None` if that dead-letter has
    /// no error message.
    pub error_message: Option<String>,
    /// The reason why the messages could not be parsed, truncated to 256 characters. `None` if they were parsed, or if
    /// the dead-letters name another error.
    pub detail: Option<String>,
}

impl Alike {
    /// The group for all dead-letters that fit no existing group once there are [`MOST_GROUPS`] groups.
    pub(super) const OTHER: Self =
        Self { reason: "other", target: None, error_type: None, error_message: None, detail: None };

    pub(super) fn of(dead_letter: &ReceivedDeadLetter<'_>) -> Self {
        let error_type = dead_letter.error_type.as_ref();
        Self {
            reason: reason_of(dead_letter),
            target: dead_letter.function_arn.as_deref().map(ToOwned::to_owned),
            error_type: error_type.map(|text| text.chars().take(LONGEST_ERROR).collect()),
            error_message: None,
            detail: malformation(dead_letter).map(|text| cut(text, LONGEST_ERROR)),
        }
    }
}

/// A group of dead-letters with the same reason, function and error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The values that the dead-letters in the group share.
    #[serde(flatten)]
    pub alike: Alike,
    /// The number of dead-letters in the group.
    pub count: u64,
    /// The time when the first event in the group was dead-lettered.
    pub oldest: Timestamp,
    /// The time when the last event in the group was dead-lettered.
    pub newest: Timestamp,
    /// The time when SQS deletes the first of the dead-letters.
    pub expires: Timestamp,
}

impl Group {
    pub(super) fn empty(alike: Alike) -> Self {
        let (first, last) = (Timestamp::from_millis(0), Timestamp::from_millis(u64::MAX));
        Self { alike, count: 0, oldest: last, newest: first, expires: last }
    }

    pub(super) fn add(&mut self, dead_lettered_at: Timestamp, sent: Timestamp) {
        self.count += 1;
        self.oldest = dead_lettered_at.min(self.oldest);
        self.newest = dead_lettered_at.max(self.newest);
        self.expires = expires(sent).min(self.expires);
    }
}

/// The time when SQS deletes a dead-letter that was sent to the dead-letter queue at `sent`.
pub(super) fn expires(sent: Timestamp) -> Timestamp {
    sent.saturating_add(RETENTION)
}

pub(super) fn largest_first<T>(groups: &mut [(T, Group)]) {
    let key = |group: &Group| (Reverse(group.count), Alike { error_message: None, ..group.alike.clone() });
    groups.sort_by_cached_key(|(_, group)| key(group));
}

/// A short description of one dead-letter, without its payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Described {
    /// The event's key; `None` for a message that could not be parsed.
    pub key: Option<String>,
    /// The message's SQS id.
    pub message_id: String,
    /// The message's format: `event` (the handler's own), `verbatim` (the body as received), `record` (moved by SQS) or
    /// `unknown`.
    pub kind: &'static str,
    /// The name of the reason: `max_receive_count`, `unknown`, or one of the handler's reasons.
    pub reason: &'static str,
    /// The ARN of the function; `None` if it is unknown.
    pub target: Option<String>,
    /// The last error's type; `None` if it is unknown.
    pub error_type: Option<String>,
    /// The last error's message; `None` if it is unknown.
    pub error_message: Option<String>,
    /// The number of retries that were made; `None` if it is unknown.
    pub retries: Option<u64>,
    /// The time when the event was dead-lettered.
    pub dead_lettered_at: Timestamp,
    /// The time when the message was sent to the dead-letter queue.
    pub sent: Timestamp,
    /// Details of the reason, if any, such as the limit that was exceeded and the actual value.
    pub detail: Option<String>,
}

impl Described {
    pub(super) fn of(received: &Received, dead_letter: &ReceivedDeadLetter<'_>) -> Self {
        Self {
            key: dead_letter.key.clone(),
            message_id: received.id().to_owned(),
            kind: match dead_letter.kind {
                DeadLetterKind::Event => "event",
                DeadLetterKind::Verbatim => "verbatim",
                DeadLetterKind::Record => "record",
                DeadLetterKind::Unknown => "unknown",
            },
            reason: reason_of(dead_letter),
            target: dead_letter.function_arn.as_deref().map(ToOwned::to_owned),
            error_type: dead_letter.error_type.clone(),
            error_message: dead_letter.error_message.clone(),
            retries: dead_letter.retries_made,
            dead_lettered_at: dead_letter.dead_lettered_at,
            sent: received.record.sent,
            detail: dead_letter.detail.clone(),
        }
    }

    pub(super) fn cut(self) -> Self {
        let [error_type, error_message, detail] = [&self.error_type, &self.error_message, &self.detail]
            .map(|text| text.as_ref().map(|text| cut(text, LONGEST_ERROR)));
        Self { error_type, error_message, detail, ..self }
    }
}

/// Lays out groups as a table.
pub(super) fn groups_table<'g>(
    groups: impl IntoIterator<Item = &'g Group>,
    deployment: &Deployment,
    now: Timestamp,
) -> Table {
    let mut table = Table::new([
        "dead-letters",
        "reason",
        "function",
        "error",
        "message",
        "oldest",
        "newest",
        "SQS deletes the first",
    ]);
    for group in groups {
        let Alike { reason, target, error_type, error_message, detail } = &group.alike;
        table.row([
            grouped(group.count).into(),
            (*reason).into(),
            function(target.as_deref(), deployment),
            error_type.as_deref().unwrap_or_default().into(),
            shown_message(error_message.as_deref().or(detail.as_deref())),
            ago(group.oldest, now),
            ago(group.newest, now),
            until(group.expires, now),
        ]);
    }
    table
}

pub(super) struct RowValues<'l> {
    pub(super) key: Option<&'l str>,
    pub(super) message_id: &'l str,
    pub(super) target: Option<&'l str>,
    pub(super) reason: &'static str,
    pub(super) error_type: Option<&'l str>,
    /// The last error's message or, if there is none, details of why the event was dead-lettered.
    pub(super) message: Option<&'l str>,
    pub(super) retries: Option<u64>,
    pub(super) dead_lettered_at: Timestamp,
    pub(super) sent: Timestamp,
}

impl Described {
    pub(super) fn line(&self) -> RowValues<'_> {
        RowValues {
            key: self.key.as_deref(),
            message_id: &self.message_id,
            target: self.target.as_deref(),
            reason: self.reason,
            error_type: self.error_type.as_deref(),
            message: self.error_message.as_deref().or(self.detail.as_deref()),
            retries: self.retries,
            dead_lettered_at: self.dead_lettered_at,
            sent: self.sent,
        }
    }
}

pub(super) fn dead_letters_table<'l>(
    lines: impl IntoIterator<Item = RowValues<'l>>,
    deployment: &Deployment,
    now: Timestamp,
) -> Table {
    let mut table =
        Table::new(["key", "function", "reason", "error", "message", "retries", "age", "SQS deletes it"]);
    for line in lines {
        table.row([
            line.key.map_or_else(|| line.message_id.into(), |key| Piece::Event(key.to_owned()).into()),
            function(line.target, deployment),
            line.reason.into(),
            line.error_type.unwrap_or_default().into(),
            shown_message(line.message),
            line.retries.map(|retries| retries.to_string()).unwrap_or_default().into(),
            ago(line.dead_lettered_at, now),
            until(expires(line.sent), now),
        ]);
    }
    table
}

fn function(arn: Option<&str>, deployment: &Deployment) -> Text {
    arn.map(|arn| deployment.function(arn, shown_name(arn))).unwrap_or_default()
}

fn shown_message(message: Option<&str>) -> Text {
    let line = message.map(|text| cut(text.lines().next().unwrap_or_default(), SHOWN_OF_A_MESSAGE));
    line.unwrap_or_default().into()
}

fn ago(at: Timestamp, now: Timestamp) -> Text {
    Piece::Moment { shown: durations::since(at, now), at }.into()
}

fn until(at: Timestamp, now: Timestamp) -> Text {
    let shown = if at <= now { "now".into() } else { format!("in {}", durations::until(at, now)) };
    Piece::Moment { shown, at }.into()
}

pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// The parse error of a dead-letter that names no other error. Other details are not used for grouping: they contain
/// ages and counts, so almost every dead-letter would have its own group.
fn malformation<'l>(dead_letter: &'l ReceivedDeadLetter<'_>) -> Option<&'l str> {
    use ReasonCode::{MalformedEnvelope, MalformedRecord, PayloadLost};
    let is_malformed = matches!(dead_letter.reason, Some(MalformedRecord | MalformedEnvelope | PayloadLost));
    let has_error = dead_letter.error_type.is_some() || dead_letter.error_message.is_some();
    let detail = dead_letter.detail.as_deref().filter(|_| is_malformed && !has_error)?;
    // The position of a JSON error differs from dead-letter to dead-letter.
    Some(detail.split_once(" at line ").map_or(detail, |(what, _)| what))
}
