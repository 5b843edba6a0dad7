//! An operator's request to retry what waits now, and what it does to a retry.

use std::borrow::Cow;
use std::time::Duration;

use rand::RngExt;
use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

use crate::arn::PauseTarget;
use crate::directive::error_names;
use crate::json::object;
use crate::seed::generator;
use crate::time::{LATEST, Timestamp};
use crate::timing::{HOLD, LONGEST_AFTER_FAILURE, QUEUE_VISIBILITY_TIMEOUT, longest_between_reads};

/// The longest `within` of a [`RetryNow`].
pub const LONGEST_WITHIN: Duration = Duration::from_secs(11 * 3_600);
/// A [`RetryNow`] ends this long after its moment at the latest: the longest `within`, and the longest time until the handler
/// has checked every message.
pub const LONGEST_REQUEST: Duration = Duration::from_secs(25 * 3_600);

/// An operator's request to retry the events of functions that failed before a moment: the entry `retries` of the pauses'
/// document.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryNow {
    /// The functions.
    pub target: PauseTarget,
    /// The moment, in whole seconds. Events that failed before it are reached.
    pub at: Timestamp,
    /// Events become due within this time after the moment: whole seconds, at most [`LONGEST_WITHIN`].
    pub within: Duration,
    /// `errorType` globs: only events that failed with one of these. Empty for all events.
    pub errors: Vec<String>,
    /// Who made it.
    pub by: Option<String>,
    /// The reason they gave.
    pub why: Option<String>,
    /// Its [end](Self::end), in whole seconds: then it leaves the parameter. An entry without one stays for [`LONGEST_REQUEST`].
    pub until: Option<Timestamp>,
}

impl RetryNow {
    /// When the handler has checked everything that the request could reach, if it keeps no message hidden for longer than
    /// `hidden` after its moment, even if a message's next receive is throttled and the target then refuses the call. Events
    /// that fail later are not reached anyway.
    pub fn end(&self, hidden: Duration, maximum_concurrency: u64) -> Timestamp {
        let read = self.within + longest_between_reads(maximum_concurrency);
        let called = hidden.max(HOLD) + QUEUE_VISIBILITY_TIMEOUT + LONGEST_AFTER_FAILURE;
        self.at.saturating_add((read + called).min(LONGEST_REQUEST))
    }

    /// The same request, with its end.
    #[must_use]
    pub fn with_end(self, hidden: Duration, maximum_concurrency: u64) -> Self {
        Self { until: Some(self.end(hidden, maximum_concurrency).rounded_up_to_secs()), ..self }
    }

    /// When it ends.
    pub fn last_moment(&self) -> Timestamp {
        let latest = self.at.saturating_add(LONGEST_REQUEST);
        self.until.map_or(latest, |until| until.min(latest))
    }

    /// The moment at which a retry of a message is due by it: `at` + U(0, `within`), seeded by the message's first id and the
    /// retry.
    pub fn due_of(&self, first_id: &str, retry: u64) -> Timestamp {
        let share: f64 = generator(&format!("{first_id} {retry} retry"), self.at.as_secs()).random();
        self.at.saturating_add(self.within.mul_f64(share))
    }

    /// Whether it is for this function and this error.
    pub fn covers(&self, function_arn: &str, error_type: Option<&str>) -> bool {
        self.target.covers(function_arn) && self.names_error(error_type)
    }

    fn names_error(&self, error_type: Option<&str>) -> bool {
        let names = error_type.map(error_names).into_iter().flatten();
        self.errors.is_empty()
            || names.into_iter().any(|name| self.errors.iter().any(|glob| WildMatch::new(glob).matches(name)))
    }
}

/// An entry of the document, as its text. It keeps members that only a later version knows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RetryEntry {
    pub(crate) text: String,
    pub(crate) retry: Result<RetryNow, String>,
    /// When it leaves the document. An unreadable entry, perhaps from a later version, stays as long as the longest request.
    /// `None` if even its `at` is unreadable.
    pub(crate) end: Option<Timestamp>,
}

/// What every version reads of an entry.
#[derive(Deserialize)]
struct When {
    at: u64,
}

#[derive(Deserialize, Serialize)]
struct Wire<'a> {
    target: String,
    at: u64,
    within: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    by: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    why: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
}

impl RetryEntry {
    pub(crate) fn read(text: &str) -> Self {
        let retry = object(text).and_then(RetryNow::read);
        let given = object(text).ok().map(|When { at }| at).filter(|at| *at <= LATEST);
        let latest = given.map(|at| Timestamp::from_secs(at).saturating_add(LONGEST_REQUEST));
        let until = retry.as_ref().ok().and_then(|retry| retry.until);
        Self { text: text.into(), retry, end: latest.into_iter().chain(until).min() }
    }

    pub(crate) fn of(retry: &RetryNow) -> Self {
        let wire = Wire {
            target: retry.target.to_string(),
            at: retry.at.as_secs(),
            within: retry.within.as_secs(),
            errors: retry.errors.clone(),
            by: retry.by.as_deref().map(Into::into),
            why: retry.why.as_deref().map(Into::into),
            until: retry.until.map(Timestamp::as_secs),
        };
        Self::read(&serde_json::to_string(&wire).expect("BUG: strings and numbers are JSON"))
    }

    /// Whether no handler needs it any more.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.end.is_none_or(|end| end < now)
    }
}

impl RetryNow {
    fn read(wire: Wire<'_>) -> Result<Self, String> {
        let Wire { target, at, within, errors, by, why, until } = wire;
        if at > LATEST {
            return Err("at must be seconds since the epoch, before the year 10000".into());
        }
        if within > LONGEST_WITHIN.as_secs() {
            return Err("within must be seconds, at most 39600 (11 hours)".into());
        }
        Ok(Self {
            target: target
                .parse()
                .map_err(|problem| format!("target {problem}; it must be a function or *"))?,
            at: Timestamp::from_secs(at),
            within: Duration::from_secs(within),
            errors,
            by: by.map(Into::into),
            why: why.map(Into::into),
            until: until.map(Timestamp::from_secs),
        })
    }
}
