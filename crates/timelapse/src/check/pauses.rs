//! The pauses and requests that the handler of a batch can know: those that operators had made when its environment
//! last read the parameter.

use std::time::Duration;

use comeback_engine::{Pause, Pauses, Request, Timestamp};

use crate::aws::agenda::START;
use crate::aws::target::TARGET_ARN;

/// Longest time that the handler hides a message of a paused function at once.
const HOLD: Duration = Duration::from_secs(1_344);
/// Longest time between two attempts of an environment to read the pauses: at least every 30 s, or 0.3 s for each
/// possible environment, and a quarter more.
const BETWEEN_READS: Duration = Duration::from_millis(37_500);
const PER_ENVIRONMENT: Duration = Duration::from_millis(375);
/// Longest time that a retry request lasts.
const LONGEST_REQUEST: Duration = Duration::from_secs(25 * 3_600);
/// Allowance for rounding: visibility timeouts are whole seconds, rounded up.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// Returns the longest time between two reads of the pauses by one environment, if there are at most this many
/// environments.
pub(crate) fn between_reads(environments: u64) -> Duration {
    BETWEEN_READS.max(PER_ENVIRONMENT * environments as u32)
}

/// The texts that operators have written to the pauses parameter, each with its moment, the latest last.
#[derive(Debug, Default)]
pub(crate) struct Written(Vec<(Timestamp, KnownPauses)>);

/// A handler's knowledge of the pauses parameter.
#[derive(Clone, Debug)]
pub(crate) struct KnownPauses {
    /// Pauses of the target, in the order of their beginnings; `None` if the handler has never read the parameter.
    spans: Option<Vec<Span>>,
    requests: Vec<RetryRequest>,
    cancels: Vec<CancelRequest>,
    /// The number of texts that had been written.
    texts: usize,
}

/// Pauses and requests that a handler knows, by number: of texts that were written, and of pauses that have ended. Each
/// may start another wait.
pub(crate) type Boundaries = (usize, usize);

/// An operator's request to retry waiting events now.
#[derive(Clone, Copy, Debug)]
struct RetryRequest {
    at: Timestamp,
    until: Timestamp,
}

/// An operator's request to cancel waiting events; only those with one of these errors, if it names any.
#[derive(Clone, Debug)]
struct CancelRequest {
    at: Timestamp,
    until: Timestamp,
    errors: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    from: Timestamp,
    until: Option<Timestamp>,
    spread: Duration,
}

impl Written {
    /// Adds a text. Pauses and requests that are missing in it are forgotten, and so are those that cannot be read.
    pub(crate) fn add(&mut self, text: &str, now: Timestamp) {
        let texts = self.0.len() + 1;
        self.0.push((now, KnownPauses::of(&Pauses::read(text).unwrap_or_default(), texts)));
    }

    /// Returns what a handler knows that reads the parameter at `moment`.
    pub(crate) fn known_at(&self, moment: Timestamp) -> KnownPauses {
        let written = self.0.iter().rev().find(|(at, _)| *at <= moment);
        written.map_or(KnownPauses::NO_PAUSES, |(_, known)| known.clone())
    }
}

impl KnownPauses {
    pub(crate) const NOTHING: Self =
        Self { spans: None, requests: Vec::new(), cancels: Vec::new(), texts: 0 };
    /// Knowledge of no pauses at all, for a handler that reads no parameter.
    pub(crate) const NO_PAUSES: Self =
        Self { spans: Some(Vec::new()), requests: Vec::new(), cancels: Vec::new(), texts: 0 };

    fn of(pauses: &Pauses, texts: usize) -> Self {
        let spans = pauses.iter().filter(|pause| pause.target.covers(TARGET_ARN));
        let span = |pause: &Pause| Span { from: pause.from, until: pause.until, spread: pause.spread };
        let mut spans: Vec<Span> = spans.map(span).collect();
        spans.sort_by_key(|span| span.from);
        let is_obeyed = |request: &Request| !request.withdrawn && request.target.covers(TARGET_ARN);
        let until = |request: &Request| {
            let latest = request.at.saturating_add(LONGEST_REQUEST);
            request.until.map_or(latest, |until| until.min(latest))
        };
        let retries = pauses.retries().map(|retry| &retry.request).filter(|it| is_obeyed(it));
        let cancels = pauses.cancels().map(|cancel| &cancel.request).filter(|it| is_obeyed(it));
        let cancel = |it: &Request| CancelRequest { at: it.at, until: until(it), errors: it.errors.clone() };
        Self {
            spans: Some(spans),
            requests: retries.map(|it| RetryRequest { at: it.at, until: until(it) }).collect(),
            cancels: cancels.map(cancel).collect(),
            texts,
        }
    }

    fn spans(&self) -> &[Span] {
        self.spans.as_deref().unwrap_or_default()
    }

    fn active(&self, now: Timestamp) -> Option<&Span> {
        let is_active = |span: &&Span| span.from <= now && span.until.is_none_or(|until| now < until);
        self.spans().iter().find(is_active)
    }

    /// Returns the reason why the handler must not invoke the target at `now`; `None` if it may.
    pub(crate) fn forbids_invokes(&self, now: Timestamp) -> Option<String> {
        if self.is_nothing() {
            return Some("its handler has never read the pauses".into());
        }
        self.active(now).map(|span| format!("its handler knows that it has been paused since {}", span.from))
    }

    /// Returns the longest wait at `now` of an event that is held, or that waits as after a failure because the pauses
    /// are unknown.
    pub(crate) fn longest_keep(
        &self,
        now: Timestamp,
        receives: u32,
        after_failure: Duration,
    ) -> Option<Duration> {
        if self.is_nothing() {
            return Some(after_failure);
        }
        (receives > 1 && self.active(now).is_some()).then_some(HOLD)
    }

    /// Returns true if the handler has never read the pauses, so that any function may be paused.
    pub(crate) const fn is_nothing(&self) -> bool {
        self.spans.is_none()
    }

    /// Returns when an event is too old, as seen at `now`. Paused time does not count towards `max_age`: from the
    /// beginning of a pause until the handler must know of its end, up to `between_reads` later, and a hold beyond
    /// that. While the pauses are unknown, all time counts.
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

    /// Returns end and spread of each pause that ended between `start` and `now`. Each may have changed the due time of
    /// a wait from `start`. Another environment may not know of it yet.
    pub(crate) fn over(
        &self,
        start: Timestamp,
        now: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, Duration)> {
        let ends = self.spans().iter().filter_map(|span| Some((span.until?, span.spread)));
        ends.filter(move |(until, _)| start < *until && *until <= now)
    }

    /// Returns the latest due time, as seen at `now`, of a wait that began at `start` and would end by `latest` without
    /// pauses.
    pub(crate) fn latest_due(&self, start: Timestamp, latest: Timestamp, now: Timestamp) -> Timestamp {
        let dues = self.over(start, now).map(|(until, spread)| until.saturating_add(spread + SECOND));
        dues.fold(latest, Timestamp::max)
    }

    /// Returns the earliest retry request that may, at `now`, bring back a message sent at `sent`; `None` if no request
    /// covers it.
    pub(crate) fn requested(&self, sent: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let reaches = |request: &&RetryRequest| sent < request.at && now <= request.until;
        self.requests.iter().filter(reaches).map(|request| request.at).min()
    }

    /// Returns true if a cancel request that is active at `now` covers a message sent at `sent` with this error.
    pub(crate) fn cancelled(&self, sent: Timestamp, error: Option<&str>, now: Timestamp) -> bool {
        self.cancels.iter().any(|CancelRequest { at, until, errors }| {
            let is_named = errors.is_empty() || errors.iter().any(|named| Some(&**named) == error);
            (*at..=*until).contains(&now) && sent < *at && is_named
        })
    }

    /// Counts the beginnings and ends of pauses and requests known so far.
    pub(crate) fn boundaries(&self, now: Timestamp) -> Boundaries {
        (self.texts, self.over(START, now).count())
    }
}
