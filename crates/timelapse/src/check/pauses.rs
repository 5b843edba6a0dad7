//! The pauses and requests that a handler knows from its last read of the pauses parameter.

use std::sync::Arc;
use std::time::Duration;

use comeback_engine::Timestamp;

use super::parameter::{Document, WrittenPause, WrittenRequest};
use super::{HOLD, SECOND};
use crate::aws::agenda::START;
use crate::aws::target::TARGET_ARN;

/// Longest time between two attempts by one environment to read the pauses: 5/4 of the handler's own interval.
const BETWEEN_READS: Duration = Duration::from_millis(37_500);
const PER_ENVIRONMENT: Duration = Duration::from_millis(375);

/// Returns the longest time between two consecutive attempts by one environment to read the pauses, if at most
/// `environments` environments exist.
pub(crate) fn between_reads(environments: u64) -> Duration {
    BETWEEN_READS.max(PER_ENVIRONMENT * environments as u32)
}

/// The values that operators have written to the pauses parameter.
#[derive(Debug, Default)]
pub(crate) struct WrittenValues {
    /// Every value of the pauses parameter and the time when it was written, oldest first.
    texts: Vec<(Timestamp, KnownPauses)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Reads {
    pub(super) known: KnownPauses,
    pub(super) last_tried: Option<Timestamp>,
}

/// Content of the pauses parameter, as a handler last read it.
#[derive(Clone, Debug)]
pub(crate) struct KnownPauses {
    /// The parameter's parsed value; `None` if the handler has never read the parameter.
    document: Option<Arc<Document>>,
    /// Number of values written to the parameter before the handler read it.
    texts: usize,
}

/// The numbers of parameter values and of ended pauses that a handler knows of.
pub(crate) type Boundaries = (usize, usize);

/// Properties of a failed event that a request can use to select it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed<'a> {
    /// Time at which the event's first message was sent.
    pub(super) sent: Timestamp,
    pub(super) error: Option<&'a str>,
    /// The key in the event's envelope or dead-letter. `None` if neither has a key.
    pub(super) key: Option<&'a str>,
}

impl WrittenValues {
    pub(super) fn add(&mut self, mut document: Document, now: Timestamp) {
        document.date_withdrawals(&self.latest(), now);
        let texts = self.texts.len() + 1;
        self.texts.push((now, KnownPauses { document: Some(Arc::new(document)), texts }));
    }

    /// Returns the last value that operators wrote to the pauses parameter; empty if they wrote none.
    pub(super) fn latest(&self) -> Arc<Document> {
        self.texts.last().and_then(|(_, known)| known.document.clone()).unwrap_or_default()
    }

    pub(crate) fn known_at(&self, moment: Timestamp) -> KnownPauses {
        let written = self.texts.iter().rev().find(|(at, _)| *at <= moment);
        written.map_or_else(KnownPauses::no_pauses, |(_, known)| known.clone())
    }
}

impl KnownPauses {
    pub(crate) const NOTHING: Self = Self { document: None, texts: 0 };

    /// Returns the value for a handler that does not read the pauses parameter: no function is paused.
    pub(crate) fn no_pauses() -> Self {
        Self { document: Some(Arc::default()), texts: 0 }
    }

    /// Returns the pauses that apply to the run's functions, ordered by start time.
    fn pauses(&self) -> impl Iterator<Item = &WrittenPause> {
        let pauses = self.document.iter().flat_map(|document| &document.pauses);
        pauses.filter(|pause| covers(&pause.target))
    }

    /// Returns the requests that cover the run's functions and have not been withdrawn.
    fn requests(&self) -> impl Iterator<Item = &WrittenRequest> {
        let requests = self.document.iter().flat_map(|document| &document.requests);
        requests.filter(|request| !request.withdrawn && covers(&request.target))
    }

    pub(super) fn active(&self, now: Timestamp) -> Option<&WrittenPause> {
        self.pauses().find(|pause| pause.from() <= now && !pause.is_over(now))
    }

    /// Returns true if the handler has never read the pauses.
    pub(crate) const fn is_nothing(&self) -> bool {
        self.document.is_none()
    }

    /// Returns the time at which an event becomes too old, as far as is known at `now`. Each pause and the following
    /// `between_reads` + `HOLD` do not count toward `max_age`.
    pub(crate) fn end(
        &self,
        first_failure: Timestamp,
        max_age: Duration,
        between_reads: Duration,
        now: Timestamp,
    ) -> Timestamp {
        let (mut clock, mut left) = (first_failure, max_age);
        for pause in self.pauses().filter(|pause| pause.from() <= now) {
            let noticed = pause.until().map_or(now, |until| until.saturating_add(between_reads).min(now));
            if noticed <= first_failure {
                continue;
            }
            let runs = pause.from().since(clock);
            if runs > left {
                break;
            }
            left -= runs;
            clock = clock.max(noticed.saturating_add(HOLD));
        }
        clock.saturating_add(left)
    }

    /// Returns the end and the spread period of each pause that ended between `start` and `now`.
    pub(crate) fn over(
        &self,
        start: Timestamp,
        now: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, Duration)> {
        let ends = self.pauses().filter_map(|pause| Some((pause.until()?, pause.spread())));
        ends.filter(move |(until, _)| start < *until && *until <= now)
    }

    /// Returns the latest time at which a wait that began at `start` may end: `latest`, or later because of a pause.
    pub(crate) fn latest_due(&self, start: Timestamp, latest: Timestamp, now: Timestamp) -> Timestamp {
        let dues = self.over(start, now).map(|(until, spread)| until.saturating_add(spread + SECOND));
        dues.fold(latest, Timestamp::max)
    }

    /// Returns the time of the earliest retry request that may end this event's wait at `now`. If the target asked for
    /// the wait (`is_asked`), only a request that names keys counts.
    pub(super) fn requested(&self, failed: Failed<'_>, is_asked: bool, now: Timestamp) -> Option<Timestamp> {
        let reaches = |request: &&WrittenRequest| {
            let may_end_it = request.within.is_some() && (!is_asked || !request.keys.is_empty());
            failed.sent < request.at() && now <= request.until() && names(request, failed) && may_end_it
        };
        self.requests().filter(reaches).map(WrittenRequest::at).min()
    }

    /// Returns true if a request cancels the event at `now`. A request that names keys also covers later failures.
    pub(super) fn cancelled(&self, failed: Failed<'_>, now: Timestamp) -> bool {
        self.requests().filter(|request| request.within.is_none()).any(|request| {
            let has_failed = failed.sent < request.at() || !request.keys.is_empty();
            (request.at()..=request.until()).contains(&now) && has_failed && names(request, failed)
        })
    }

    pub(crate) fn boundaries(&self, now: Timestamp) -> Boundaries {
        (self.texts, self.over(START, now).count())
    }
}

fn names(request: &WrittenRequest, Failed { error, key, .. }: Failed<'_>) -> bool {
    let names = |named: &[String], value: Option<&str>| {
        named.is_empty() || named.iter().any(|named| Some(&**named) == value)
    };
    names(&request.errors, error) && names(&request.keys, key)
}

fn covers(target: &str) -> bool {
    target == "*" || target == TARGET_ARN
}
