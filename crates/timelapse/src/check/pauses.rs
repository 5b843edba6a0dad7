//! The pauses and requests that the handler of a batch has read. The pauses parameter contained them when the handler's
//! environment last read it.

use std::time::Duration;

use comeback_engine::Timestamp;

use super::parameter::{Document, WrittenPause, WrittenRequest};
use super::{HOLD, SECOND};
use crate::aws::agenda::START;
use crate::aws::target::TARGET_ARN;

/// Longest time between two attempts of an environment to read the pauses. The handler's interval is 30 s, or 0.3 s for
/// each possible environment if that is longer. The limit is a quarter longer than the interval.
const BETWEEN_READS: Duration = Duration::from_millis(37_500);
const PER_ENVIRONMENT: Duration = Duration::from_millis(375);

/// Returns the longest time between two reads of the pauses by one environment, if there are at most this many
/// environments.
pub(crate) fn between_reads(environments: u64) -> Duration {
    BETWEEN_READS.max(PER_ENVIRONMENT * environments as u32)
}

/// The texts that operators have written to the pauses parameter.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Each text with the time when it was written, and its content as handlers read it. The latest text comes last.
    texts: Vec<(Timestamp, KnownPauses)>,
    pub(super) latest: Document,
}

/// The pauses that an environment of the handler has read, and the time of its last attempt to read them.
#[derive(Clone, Debug)]
pub(crate) struct Reads {
    pub(super) known: KnownPauses,
    pub(super) last_tried: Option<Timestamp>,
}

/// Content of the pauses parameter, as a handler last read it.
#[derive(Clone, Debug)]
pub(crate) struct KnownPauses {
    /// Pauses of the target, in the order of their start; `None` if the handler has never read the parameter.
    spans: Option<Vec<Span>>,
    retries: Vec<KnownRequest>,
    cancels: Vec<KnownRequest>,
    /// The number of texts that had been written when the handler read the parameter.
    texts: usize,
}

/// The number of written texts and the number of ended pauses, as known to a handler. If either number rises, the
/// handler may begin another wait.
pub(crate) type Boundaries = (usize, usize);

/// An operator's request to retry or cancel waiting events. A request that names errors covers only events with one of
/// these errors. A request that names keys covers only events with one of these keys.
#[derive(Clone, Debug)]
struct KnownRequest {
    at: Timestamp,
    until: Timestamp,
    errors: Vec<String>,
    keys: Vec<String>,
}

/// The properties of a failed event that requests use to select events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed<'a> {
    /// Time at which the event's first message was sent.
    pub(super) sent: Timestamp,
    /// The event's error type; `None` if the record has no error type.
    pub(super) error: Option<&'a str>,
    /// The key in the event's envelope or dead-letter; `None` if neither has a key.
    pub(super) key: Option<&'a str>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    from: Timestamp,
    until: Option<Timestamp>,
    spread: Duration,
}

impl Written {
    /// Adds the content of a text that operators write at `now`.
    pub(super) fn add(&mut self, mut document: Document, now: Timestamp) {
        document.date_withdrawals(&self.latest, now);
        self.texts.push((now, KnownPauses::of(&document, self.texts.len() + 1)));
        self.latest = document;
    }

    /// Returns the content that a handler gets if it reads the parameter at `moment`.
    pub(crate) fn known_at(&self, moment: Timestamp) -> KnownPauses {
        let written = self.texts.iter().rev().find(|(at, _)| *at <= moment);
        written.map_or(KnownPauses::NO_PAUSES, |(_, known)| known.clone())
    }
}

impl KnownPauses {
    pub(crate) const NOTHING: Self = Self { spans: None, retries: Vec::new(), cancels: Vec::new(), texts: 0 };
    /// Content for a handler that reads no pauses parameter: there are no pauses.
    pub(crate) const NO_PAUSES: Self =
        Self { spans: Some(Vec::new()), retries: Vec::new(), cancels: Vec::new(), texts: 0 };

    pub(super) fn of(document: &Document, texts: usize) -> Self {
        let pauses = document.pauses.iter().filter(|pause| covers(&pause.target));
        let span =
            |pause: &WrittenPause| Span { from: pause.from(), until: pause.until(), spread: pause.spread() };
        let mut spans: Vec<Span> = pauses.map(span).collect();
        spans.sort_by_key(|span| span.from);
        Self {
            spans: Some(spans),
            retries: KnownRequest::all(document.requests.iter().filter(|request| request.within.is_some())),
            cancels: KnownRequest::all(document.requests.iter().filter(|request| request.within.is_none())),
            texts,
        }
    }

    fn spans(&self) -> &[Span] {
        self.spans.as_deref().unwrap_or_default()
    }

    pub(super) fn active(&self, now: Timestamp) -> Option<&Span> {
        let is_active = |span: &&Span| span.from <= now && span.until.is_none_or(|until| now < until);
        self.spans().iter().find(is_active)
    }

    /// Returns true if the handler has never read the pauses, so that any function may be paused.
    pub(crate) const fn is_nothing(&self) -> bool {
        self.spans.is_none()
    }

    /// Returns the time at which an event becomes too old, as seen at `now`. Paused time does not count towards
    /// `max_age`. It begins with the pause, and lasts for one hold after the handler must have read the end of the
    /// pause. The handler may read the end up to `between_reads` late. If the handler has never read the pauses, all
    /// time counts.
    pub(crate) fn end(
        &self,
        first_failure: Timestamp,
        max_age: Duration,
        between_reads: Duration,
        now: Timestamp,
    ) -> Timestamp {
        let (mut clock, mut left) = (first_failure, max_age);
        for span in self.spans().iter().filter(|span| span.from <= now) {
            let noticed = span.until.map_or(now, |until| until.saturating_add(between_reads).min(now));
            if noticed <= first_failure {
                continue;
            }
            let runs = span.from.since(clock);
            if runs > left {
                break;
            }
            left -= runs;
            clock = clock.max(noticed.saturating_add(HOLD));
        }
        clock.saturating_add(left)
    }

    /// Returns the end and the spread of each pause that ended between `start` and `now`. Each end may have changed the
    /// due time of a wait that began at `start`. Another environment might not have read the end yet.
    pub(crate) fn over(
        &self,
        start: Timestamp,
        now: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, Duration)> {
        let ends = self.spans().iter().filter_map(|span| Some((span.until?, span.spread)));
        ends.filter(move |(until, _)| start < *until && *until <= now)
    }

    /// Returns the latest due time, as seen at `now`, of a wait that began at `start`. Without pauses, the wait would
    /// end by `latest`.
    pub(crate) fn latest_due(&self, start: Timestamp, latest: Timestamp, now: Timestamp) -> Timestamp {
        let dues = self.over(start, now).map(|(until, spread)| until.saturating_add(spread + SECOND));
        dues.fold(latest, Timestamp::max)
    }

    /// Returns the time of the earliest retry request that may end this event's wait at `now`. Returns `None` if no
    /// request covers the event. If the target requested the wait with `RetryAfter`, only a request that names the
    /// event's key ends the wait.
    pub(super) fn requested(&self, failed: Failed<'_>, is_asked: bool, now: Timestamp) -> Option<Timestamp> {
        let reaches = |request: &&KnownRequest| {
            let may_end_it = !is_asked || !request.keys.is_empty();
            failed.sent < request.at && now <= request.until && request.names(failed) && may_end_it
        };
        self.retries.iter().filter(reaches).map(|request| request.at).min()
    }

    /// Returns true if a cancel request that is active at `now` covers this event. A request that names keys also
    /// covers later failures of the events.
    pub(super) fn cancelled(&self, failed: Failed<'_>, now: Timestamp) -> bool {
        self.cancels.iter().any(|request| {
            let has_failed = failed.sent < request.at || !request.keys.is_empty();
            (request.at..=request.until).contains(&now) && has_failed && request.names(failed)
        })
    }

    /// Counts the written texts and the ended pauses known at `now`.
    pub(crate) fn boundaries(&self, now: Timestamp) -> Boundaries {
        (self.texts, self.over(START, now).count())
    }
}

impl KnownRequest {
    /// Returns the requests that cover the run's functions and are not withdrawn.
    fn all<'w>(written: impl Iterator<Item = &'w WrittenRequest>) -> Vec<Self> {
        let obeyed = written.filter(|request| !request.withdrawn && covers(&request.target));
        let known = obeyed.map(|request| Self {
            at: request.at(),
            until: request.until(),
            errors: request.errors.clone(),
            keys: request.keys.clone(),
        });
        known.collect()
    }

    fn names(&self, Failed { error, key, .. }: Failed<'_>) -> bool {
        let names = |named: &[String], value: Option<&str>| {
            named.is_empty() || named.iter().any(|named| Some(&**named) == value)
        };
        names(&self.errors, error) && names(&self.keys, key)
    }
}

/// Returns true if a pause or request for `target` covers the run's functions.
fn covers(target: &str) -> bool {
    target == "*" || target == TARGET_ARN
}
