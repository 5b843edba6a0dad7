//! Dead-letters by reason, function and error, and short descriptions of them.

use std::cmp::Reverse;

use comeback_engine::{DeadLetterKind, RETENTION, ReasonCode, ReceivedDeadLetter, Timestamp};
use serde::Serialize;

use crate::dead::filter::reason_of;
use crate::dead::received::Received;
use crate::deployment::Deployment;
use crate::durations;
use crate::function::shown_name;
use crate::layout::Table;
use crate::numbers::grouped;
use crate::text::{Piece, Text};

/// The most groups: a function may write anything as an error's type. All further dead-letters are counted together.
pub(super) const MOST_GROUPS: usize = 1_000;
/// Characters of an error that are kept.
pub(super) const LONGEST_ERROR: usize = 256;
/// Characters of an error's message in a table.
const SHOWN_OF_A_MESSAGE: usize = 40;

/// The traits shared by a group's dead-letters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alike {
    /// The reason's name, `max_receive_count` or `unknown`.
    pub reason: &'static str,
    /// The function's ARN.
    pub target: Option<String>,
    /// The last error's type, or its first 256 characters.
    pub error_type: Option<String>,
    /// The problem with dead-letters that were not understood and name no error, cut after 256 characters.
    pub detail: Option<String>,
}

impl Alike {
    /// The group of dead-letters beyond the limit.
    pub(super) const OTHER: Self = Self { reason: "other", target: None, error_type: None, detail: None };

    pub(super) fn of(dead_letter: &ReceivedDeadLetter<'_>) -> Self {
        let error_type = dead_letter.error_type.as_ref();
        Self {
            reason: reason_of(dead_letter),
            target: dead_letter.function_arn.as_deref().map(ToOwned::to_owned),
            error_type: error_type.map(|text| text.chars().take(LONGEST_ERROR).collect()),
            detail: malformation(dead_letter).map(|text| cut(text, LONGEST_ERROR)),
        }
    }
}

/// Dead-letters with the same reason, target and error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The reason's name, `max_receive_count` or `unknown`.
    pub reason: &'static str,
    /// The function's ARN.
    pub target: Option<String>,
    /// The last error's type, or its first 256 characters.
    pub error_type: Option<String>,
    /// The error's message in one of its dead-letters, or its first 256 characters.
    pub error_message: Option<String>,
    /// The problem with dead-letters that were not understood and name no error, cut after 256 characters.
    pub detail: Option<String>,
    /// Dead-letters in the group.
    pub count: u64,
    /// When the first of them was dead-lettered.
    pub oldest: Timestamp,
    /// When the last of them was dead-lettered.
    pub newest: Timestamp,
    /// When SQS deletes the first of them.
    pub expires: Timestamp,
}

impl Group {
    /// A group without dead-letters yet, with the message and the times of its first.
    pub(super) fn of(
        alike: &Alike,
        message: Option<String>,
        dead_lettered_at: Timestamp,
        sent: Timestamp,
    ) -> Self {
        let Alike { reason, target, error_type, detail } = alike.clone();
        Self {
            reason,
            target,
            error_type,
            error_message: message,
            detail,
            count: 0,
            oldest: dead_lettered_at,
            newest: dead_lettered_at,
            expires: expires(sent),
        }
    }

    pub(super) fn add(&mut self, dead_lettered_at: Timestamp, sent: Timestamp) {
        self.count += 1;
        self.oldest = dead_lettered_at.min(self.oldest);
        self.newest = dead_lettered_at.max(self.newest);
        self.expires = expires(sent).min(self.expires);
    }
}

/// The time when SQS deletes a dead-letter that was sent at this time.
pub fn expires(sent: Timestamp) -> Timestamp {
    sent.saturating_add(RETENTION)
}

/// Orders groups by size, the largest first.
pub(super) fn largest_first<T>(groups: &mut [(T, Group)]) {
    let traits =
        |group: &Group| (group.reason, group.target.clone(), group.error_type.clone(), group.detail.clone());
    groups.sort_by_cached_key(|(_, group)| (Reverse(group.count), traits(group)));
}

/// A short description of a dead-letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Described {
    /// The event's key. A message that was not understood has none.
    pub key: Option<String>,
    /// SQS's id.
    pub message_id: String,
    /// `event`; `verbatim` for a body left as it was received; `record` for a message that SQS's own redrive took;
    /// `unknown` for any other message.
    pub kind: &'static str,
    /// The reason's name, `max_receive_count` or `unknown`.
    pub reason: &'static str,
    /// The function's ARN.
    pub target: Option<String>,
    /// The last error's type.
    pub error_type: Option<String>,
    /// The last error's message.
    pub error_message: Option<String>,
    /// Retries made.
    pub retries: Option<u64>,
    /// When it was dead-lettered.
    pub dead_lettered_at: Timestamp,
    /// When its message was sent.
    pub sent: Timestamp,
    /// The value that was found, and the limit that it broke.
    pub detail: Option<String>,
}

impl Described {
    /// The description of a dead-letter, with its texts as they are.
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

    /// The same description with the beginning of each long text.
    pub(super) fn cut(self) -> Self {
        let [error_type, error_message, detail] = [&self.error_type, &self.error_message, &self.detail]
            .map(|text| text.as_ref().map(|text| cut(text, LONGEST_ERROR)));
        Self { error_type, error_message, detail, ..self }
    }
}

/// The groups as a table.
pub fn groups_table<'g>(
    groups: impl IntoIterator<Item = &'g Group>,
    deployment: &Deployment,
    now: Timestamp,
) -> Table {
    let mut table =
        Table::new(["dead-letters", "reason", "function", "error", "message", "oldest", "newest"]);
    for group in groups {
        table.row([
            grouped(group.count).into(),
            group.reason.into(),
            function(group.target.as_deref(), deployment),
            group.error_type.as_deref().unwrap_or_default().into(),
            shown_message(group.error_message.as_deref().or(group.detail.as_deref())),
            ago(group.oldest, now),
            ago(group.newest, now),
        ]);
    }
    table
}

/// A dead-letter on one line.
pub(super) struct Line<'l> {
    pub(super) key: Option<&'l str>,
    pub(super) message_id: &'l str,
    pub(super) target: Option<&'l str>,
    pub(super) reason: &'static str,
    pub(super) error_type: Option<&'l str>,
    /// The last error's message or, if the dead-letter was not understood, the reason.
    pub(super) message: Option<&'l str>,
    pub(super) retries: Option<u64>,
    pub(super) dead_lettered_at: Timestamp,
}

impl Described {
    /// The description on one line.
    pub(super) fn line(&self) -> Line<'_> {
        Line {
            key: self.key.as_deref(),
            message_id: &self.message_id,
            target: self.target.as_deref(),
            reason: self.reason,
            error_type: self.error_type.as_deref(),
            message: self.error_message.as_deref().or(self.detail.as_deref()),
            retries: self.retries,
            dead_lettered_at: self.dead_lettered_at,
        }
    }
}

/// Dead-letters as a table.
pub(super) fn dead_letters_table<'l>(
    lines: impl IntoIterator<Item = Line<'l>>,
    deployment: &Deployment,
    now: Timestamp,
) -> Table {
    let mut table = Table::new(["key", "function", "reason", "error", "message", "retries", "age"]);
    for line in lines {
        table.row([
            line.key.map_or_else(|| line.message_id.into(), |key| Piece::Event(key.to_owned()).into()),
            function(line.target, deployment),
            line.reason.into(),
            line.error_type.unwrap_or_default().into(),
            shown_message(line.message),
            line.retries.map(|retries| retries.to_string()).unwrap_or_default().into(),
            ago(line.dead_lettered_at, now),
        ]);
    }
    table
}

fn function(arn: Option<&str>, deployment: &Deployment) -> Text {
    arn.map(|arn| deployment.function(arn, shown_name(arn))).unwrap_or_default()
}

/// A message on one line of a table.
fn shown_message(message: Option<&str>) -> Text {
    let line = message.map(|text| cut(text.lines().next().unwrap_or_default(), SHOWN_OF_A_MESSAGE));
    line.unwrap_or_default().into()
}

fn ago(at: Timestamp, now: Timestamp) -> Text {
    Piece::Moment { shown: age(at, now), at }.into()
}

/// The time since a moment, in short.
fn age(moment: Timestamp, now: Timestamp) -> String {
    durations::short(now.since(moment).as_secs_f64().floor())
}

/// The first characters of a text, with `…` in place of the rest.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// The detail of a dead-letter that was not understood and names no error. Other details contain ages and counts, so
/// hardly two are equal.
fn malformation<'l>(dead_letter: &'l ReceivedDeadLetter<'_>) -> Option<&'l str> {
    use ReasonCode::{MalformedEnvelope, MalformedRecord, PayloadLost};
    let is_malformed = matches!(dead_letter.reason, Some(MalformedRecord | MalformedEnvelope | PayloadLost));
    let has_error = dead_letter.error_type.is_some() || dead_letter.error_message.is_some();
    let detail = dead_letter.detail.as_deref().filter(|_| is_malformed && !has_error)?;
    // Without the position of a JSON error, which differs from dead-letter to dead-letter.
    Some(detail.split_once(" at line ").map_or(detail, |(what, _)| what))
}
