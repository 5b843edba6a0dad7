//! Operators' requests to retry or cancel waiting events.

use std::borrow::Cow;
use std::time::Duration;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::arn::PauseTarget;
use crate::directive::error_matches;
use crate::failed_event::logged;
use crate::json::object;
use crate::seed::generator;
use crate::time::{LATEST, Timestamp};
use crate::timing::{HOLD, LONGEST_AFTER_FAILURE, QUEUE_VISIBILITY_TIMEOUT, longest_between_reads};

/// Maximum value of [`Request::within`]: 11 hours.
pub const LONGEST_WITHIN: Duration = Duration::from_secs(11 * 3_600);
/// Maximum lifetime of a request: [`LONGEST_WITHIN`], plus 14 hours for the handler to check every message.
pub const LONGEST_REQUEST: Duration = Duration::from_secs(25 * 3_600);
/// Maximum number of `keys` in a request, so that a few requests do not fill the SSM parameter.
pub const MOST_KEYS: usize = 20;

/// The kinds of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    /// A request to retry waiting events now. It is an entry in `retries`.
    Retry,
    /// A request to dead-letter waiting events. It is an entry in `cancels`.
    Cancel,
}

impl RequestKind {
    /// The name of the `comeback` subcommand that makes requests of this kind: `retry` or `cancel`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
        }
    }
}

/// A request to retry waiting events now, or to cancel (dead-letter) them.
///
/// A retry request with keys also ends waits that a `RetryAfter` requested. A cancel request with keys also applies
/// to later failures.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The kind of request: retry or cancel.
    pub kind: RequestKind,
    /// The functions whose events the request applies to.
    pub target: PauseTarget,
    /// The time of the request, in whole seconds; the request applies to earlier failures.
    pub at: Timestamp,
    /// The millisecond part of the request's time. It distinguishes otherwise identical requests made in the same
    /// second.
    pub millis: u64,
    /// The time after `at` within which the retries become due: whole seconds, at most [`LONGEST_WITHIN`]. Zero for a
    /// cancel request.
    pub within: Duration,
    /// Globs for the `errorType` of the events that the request applies to. Without globs, it applies to every error.
    pub errors: Vec<String>,
    /// Keys of the events that the request applies to, at most [`MOST_KEYS`]. Without keys, it applies to every event.
    ///
    /// A key is an `origin_request_id`, truncated to 512 characters as in the log.
    pub keys: Vec<String>,
    /// The operator who made the request; `None` if the request does not name one.
    pub by: Option<String>,
    /// The reason that the operator gave; `None` if the operator gave no reason.
    pub why: Option<String>,
    /// When the request ends, in whole seconds. If `None`, it ends [`LONGEST_REQUEST`] after it was made.
    pub until: Option<Timestamp>,
    /// True once an operator has withdrawn the request. Handlers then ignore it. It stays in the document, so that
    /// commands still know which messages they have already recalled because of it.
    pub withdrawn: bool,
}

impl Request {
    /// Returns the request with its end set: the time by which the handler will have checked every message that the
    /// request may apply to.
    ///
    /// `hidden` is the longest time that the handler hides a message after noticing the request.
    #[must_use]
    pub fn with_end(self, hidden: Duration, maximum_concurrency: u64) -> Self {
        let read = self.within + longest_between_reads(maximum_concurrency);
        let called = hidden.max(HOLD) + QUEUE_VISIBILITY_TIMEOUT + LONGEST_AFTER_FAILURE;
        let end = self.at.saturating_add((read + called).min(LONGEST_REQUEST));
        Self { until: Some(end.rounded_up_to_secs()), ..self }
    }

    /// When the request ends: at `until`, but no later than [`LONGEST_REQUEST`] after `at`.
    pub fn last_moment(&self) -> Timestamp {
        let latest = self.at.saturating_add(LONGEST_REQUEST);
        self.until.map_or(latest, |until| until.min(latest))
    }

    pub(crate) fn is_in_force(&self, now: Timestamp) -> bool {
        !self.withdrawn && (self.at..=self.last_moment()).contains(&now)
    }

    /// Returns true if the request names individual events by their keys.
    pub fn names_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Returns true if the request applies to events of this function with this error and this key.
    pub fn covers(&self, function_arn: &str, error_type: Option<&str>, key: &str) -> bool {
        let names_event = self.keys.is_empty() || self.keys.iter().any(|named| logged(named) == logged(key));
        names_event && self.target.covers(function_arn) && self.names_error(error_type)
    }

    fn names_error(&self, error_type: Option<&str>) -> bool {
        let matches = |error_type: &str| self.errors.iter().any(|glob| error_matches(glob, error_type));
        self.errors.is_empty() || error_type.is_some_and(matches)
    }

    /// Returns the time at which this request makes a message's retry due: a random time between `at` and `at` +
    /// `within`.
    ///
    /// `first_id` is the id that the message had when it was first sent.
    pub fn due_of(&self, first_id: &str, retry: u64) -> Timestamp {
        let share: f64 = generator(&format!("{first_id} {retry} retry"), self.at.as_secs()).random();
        self.at.saturating_add(self.within.mul_f64(share))
    }
}

/// An entry in the pauses document. `text` is its JSON, including members that this version does not read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestEntry {
    pub(crate) kind: RequestKind,
    pub(crate) text: String,
    pub(crate) request: Result<Request, String>,
    /// When the entry leaves the document; `None` if even its `at` is unreadable.
    pub(crate) end: Option<Timestamp>,
}

/// The time of a request, in seconds since the epoch. Every version can read this member.
#[derive(Deserialize)]
struct When {
    at: u64,
}

#[derive(Deserialize, Serialize)]
struct Wire<'a> {
    target: String,
    at: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    millis: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<String>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    by: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    why: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    withdrawn: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl RequestEntry {
    pub(crate) fn read(text: &str, kind: RequestKind) -> Self {
        let request = object(text).and_then(|wire| Request::read(wire, kind));
        let given = object(text).ok().map(|When { at }| at).filter(|at| *at <= LATEST);
        let latest = given.map(|at| Timestamp::from_secs(at).saturating_add(LONGEST_REQUEST));
        let until = request.as_ref().ok().and_then(|request| request.until);
        Self { kind, text: text.into(), request, end: latest.into_iter().chain(until).min() }
    }

    /// Converts a request into an entry. Rounds the request's time up to a whole second, so that the request covers
    /// failures in the same second.
    pub(crate) fn of(request: &Request) -> Self {
        let is_retry = request.kind == RequestKind::Retry;
        debug_assert!(is_retry || request.within.is_zero(), "BUG: a cancel takes no time");
        let wire = Wire {
            target: request.target.to_string(),
            at: request.at.rounded_up_to_secs().as_secs(),
            millis: request.millis,
            within: is_retry.then_some(request.within.as_secs()),
            errors: request.errors.clone(),
            keys: request.keys.clone(),
            by: request.by.as_deref().map(Into::into),
            why: request.why.as_deref().map(Into::into),
            until: request.until.map(Timestamp::as_secs),
            withdrawn: request.withdrawn,
        };
        Self::read(&serde_json::to_string(&wire).expect("BUG: strings and numbers are JSON"), request.kind)
    }

    /// Returns this entry marked as withdrawn. Members that this version does not know are kept.
    pub(crate) fn withdrawn(&self) -> Self {
        let text = self.text.trim_end();
        let members = text.strip_suffix('}').unwrap_or(text);
        Self::read(&format!(r#"{members},"withdrawn":true}}"#), self.kind)
    }

    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.end.is_none_or(|end| end < now)
    }

    /// The error in this entry; `None` if the entry is readable or has ended.
    pub(crate) fn problem(&self, now: Timestamp) -> Option<&str> {
        let in_force = self.end.is_none_or(|end| now <= end);
        self.request.as_ref().err().filter(|_| in_force).map(String::as_str)
    }
}

impl Request {
    fn read(wire: Wire<'_>, kind: RequestKind) -> Result<Self, String> {
        let Wire { target, at, millis, within, errors, keys, by, why, until, withdrawn } = wire;
        if at > LATEST {
            return Err("at must be seconds since the epoch, before the year 10000".into());
        }
        if keys.len() > MOST_KEYS || keys.iter().any(String::is_empty) {
            return Err("keys must be at most 20 non-empty strings".into());
        }
        let target =
            target.parse().map_err(|problem| format!("target {problem}; it must be a function or *"))?;
        let within = match kind {
            RequestKind::Retry => within.ok_or("missing field `within`")?,
            RequestKind::Cancel => 0,
        };
        if within > LONGEST_WITHIN.as_secs() {
            return Err("within must be seconds, at most 39600 (11 hours)".into());
        }
        Ok(Self {
            kind,
            target,
            at: Timestamp::from_secs(at),
            millis,
            within: Duration::from_secs(within),
            errors,
            keys,
            by: by.map(Into::into),
            why: why.map(Into::into),
            until: until.map(Timestamp::from_secs),
            withdrawn,
        })
    }
}
