//! The pauses and requests that the handler of a batch can know: those that operators had made when its environment
//! last read the parameter.

use std::time::Duration;

use comeback_engine::{Pause, Timestamp};

use crate::aws::agenda::START;
use crate::aws::target::TARGET_ARN;
use crate::check::UNHIDDEN;
use crate::operators::{OperatorCancel, OperatorPause, OperatorRetry};

/// Longest time that the handler hides a message of a paused function at once.
const HOLD: Duration = Duration::from_secs(1_344);
/// Longest time that the handler hides a message after a refused call.
const REFUSED: Duration = Duration::from_secs(3_600);
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

/// A handler's knowledge of the pauses parameter.
#[derive(Clone, Debug)]
pub(crate) struct KnownPauses {
    /// Pauses of the target, in the order of their beginnings; `None` if the handler has never read the parameter.
    spans: Option<Vec<Span>>,
    requests: Vec<RetryRequest>,
    cancels: Vec<CancelRequest>,
    /// Longest time that a message is hidden, which decides when requests end.
    longest_wait: Duration,
}

/// Everything that operators request during a run.
#[derive(Debug, Default)]
pub(crate) struct Requested {
    pub(crate) pauses: Vec<OperatorPause>,
    pub(crate) retries: Vec<OperatorRetry>,
    pub(crate) cancels: Vec<OperatorCancel>,
    /// Pauses that were dropped from the full parameter, each with the moment of the drop.
    pub(crate) forgotten: Vec<(Timestamp, Pause)>,
    /// Longest time that a message is hidden, which decides when requests end.
    pub(crate) longest_wait: Duration,
}

/// An operator's request to retry waiting events now.
#[derive(Clone, Copy, Debug)]
struct RetryRequest {
    at: Timestamp,
    within: Duration,
    is_withdrawn: bool,
}

/// An operator's request to cancel waiting events; only those with this error, if it names one.
#[derive(Clone, Copy, Debug)]
struct CancelRequest {
    at: Timestamp,
    error: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    from: Timestamp,
    until: Option<Timestamp>,
    spread: Duration,
}

impl Requested {
    pub(crate) fn is_nothing(&self) -> bool {
        self.pauses.is_empty() && self.retries.is_empty() && self.cancels.is_empty()
    }
}

impl KnownPauses {
    pub(crate) const NOTHING: Self =
        Self { spans: None, requests: Vec::new(), cancels: Vec::new(), longest_wait: Duration::ZERO };
    /// Knowledge of no pauses at all, for a handler that reads no parameter.
    pub(crate) const NO_PAUSES: Self = Self {
        spans: Some(Vec::new()),
        requests: Vec::new(),
        cancels: Vec::new(),
        longest_wait: Duration::ZERO,
    };

    /// Returns what a handler knows that reads the parameter at `moment`. Pauses dropped from it by then are missing.
    pub(crate) fn at(requested: &Requested, moment: Timestamp) -> Self {
        let Requested { pauses, retries, cancels, forgotten, longest_wait } = requested;
        let is_forgotten = |pause: &OperatorPause| {
            let gone = forgotten.iter().take_while(|(at, _)| *at <= moment).map(|(_, gone)| gone);
            // Adjoining pauses are one.
            let is_in = |gone: &Pause| {
                gone.target == pause.target
                    && gone.from <= START.saturating_add(pause.at)
                    && pause.end() <= gone.until
            };
            pause.end().is_some() && gone.into_iter().any(is_in)
        };
        let begun = pauses
            .iter()
            .filter(|pause| pause.target.covers(TARGET_ARN) && START.saturating_add(pause.at) <= moment)
            .filter(|pause| !is_forgotten(pause));
        let span = |pause: &OperatorPause| Span {
            from: START.saturating_add(pause.at),
            until: pause.end().filter(|until| pause.is_planned || *until <= moment),
            spread: pause.spread,
        };
        let mut spans: Vec<Span> = begun.map(span).collect();
        spans.sort_by_key(|span| span.from);
        let given = retries.iter().filter(|retry| !retry.is_garbled && retry.moment() <= moment);
        let is_withdrawn = |at: Timestamp, after: Option<Duration>| {
            after.is_some_and(|after| at.saturating_add(after) <= moment)
        };
        let request = |retry: &OperatorRetry| {
            let (at, within) = (retry.moment(), retry.within);
            RetryRequest { at, within, is_withdrawn: is_withdrawn(at, retry.withdrawn_after) }
        };
        let requests = given.map(request).collect();
        let cancels = cancels.iter().filter(|cancel| {
            cancel.moment() <= moment && !is_withdrawn(cancel.moment(), cancel.withdrawn_after)
        });
        let cancels = cancels.map(|it| CancelRequest { at: it.moment(), error: it.error }).collect();
        Self { spans: Some(spans), requests, cancels, longest_wait: *longest_wait }
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
    /// covers it. A request ends once a handler that knows of it has checked every message; handlers read the parameter
    /// within `between_reads`.
    pub(crate) fn requested(
        &self,
        sent: Timestamp,
        now: Timestamp,
        between_reads: Duration,
    ) -> Option<Timestamp> {
        // The end is rounded up to a second.
        let called = SECOND + self.checked_within(between_reads);
        let lasts = |request: &RetryRequest| (request.within + called).min(LONGEST_REQUEST);
        let reaches = |request: &&RetryRequest| {
            let ends = request.at.saturating_add(lasts(request));
            sent < request.at && now <= ends && !request.is_withdrawn
        };
        self.requests.iter().filter(reaches).map(|request| request.at).min()
    }

    /// Returns true if a cancel request that is active at `now` covers a message sent at `sent` with this error.
    /// Requests may last `slack` longer than usual.
    pub(crate) fn cancelled(
        &self,
        sent: Timestamp,
        error: Option<&str>,
        now: Timestamp,
        between_reads: Duration,
        slack: Duration,
    ) -> bool {
        let lasts = (self.checked_within(between_reads) + slack).min(LONGEST_REQUEST);
        self.cancels.iter().any(|cancel| {
            let is_in_force = cancel.at <= now && now <= cancel.at.saturating_add(lasts);
            is_in_force && sent < cancel.at && (cancel.error.is_none() || cancel.error == error)
        })
    }

    /// Returns the time after which every message that a request covers has been checked.
    fn checked_within(&self, between_reads: Duration) -> Duration {
        self.longest_wait.max(HOLD) + UNHIDDEN + REFUSED + between_reads
    }

    /// Counts the beginnings and ends of pauses and requests known so far. Each may start another wait.
    pub(crate) fn boundaries(&self, now: Timestamp) -> usize {
        self.spans().len() + self.over(START, now).count() + 2 * self.requests.len()
    }
}
