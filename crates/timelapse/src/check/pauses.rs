//! What the handler of a batch can know of the pauses, by what the operators had done when its environment last read.

use std::time::Duration;

use comeback_engine::Timestamp;

use crate::aws::agenda::START;
use crate::aws::target::TARGET_ARN;
use crate::operators::OperatorPause;

/// Longest hiding of a message of a paused function.
const HOLD: Duration = Duration::from_secs(1_344);
/// An environment reads again this long after it has tried to, at the latest: at least every 30 s, or 0.3 s for
/// each environment that there may be, and a quarter more.
const BETWEEN_READS: Duration = Duration::from_millis(37_500);
const PER_ENVIRONMENT: Duration = Duration::from_millis(375);
/// Visibility timeouts are whole seconds, rounded up.
const SECOND: Duration = Duration::from_secs(1);

/// The longest time between two reads of an environment, if there may be this many.
pub(crate) fn between_reads(environments: u64) -> Duration {
    BETWEEN_READS.max(PER_ENVIRONMENT * environments as u32)
}

/// What a handler knows.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// Nothing: it has never read the parameter.
    Nothing,
    /// The pauses of the target, in the order in which they begin; none without a parameter.
    Pauses(Vec<Span>),
}

/// A pause as a handler knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    from: Timestamp,
    until: Option<Timestamp>,
    spread: Duration,
}

impl Known {
    /// No pauses: a handler that reads no parameter.
    pub(crate) const fn none() -> Self {
        Self::Pauses(Vec::new())
    }

    /// The pauses at a moment.
    pub(crate) fn at(all: &[OperatorPause], moment: Timestamp) -> Self {
        let begun = all
            .iter()
            .filter(|pause| pause.target.covers(TARGET_ARN) && START.saturating_add(pause.at) <= moment);
        let span = |pause: &OperatorPause| Span {
            from: START.saturating_add(pause.at),
            until: pause.end().filter(|until| pause.is_planned || *until <= moment),
            spread: pause.spread,
        };
        let mut spans: Vec<Span> = begun.map(span).collect();
        spans.sort_by_key(|span| span.from);
        Self::Pauses(spans)
    }

    fn spans(&self) -> &[Span] {
        match self {
            Self::Nothing => &[],
            Self::Pauses(spans) => spans,
        }
    }

    /// Why the target must not be invoked at `now`, if it must not.
    pub(crate) fn forbids_invokes(&self, now: Timestamp) -> Option<String> {
        match self {
            Self::Nothing => Some("its handler has never read the pauses".into()),
            Self::Pauses(spans) => {
                let active = spans.iter().find(|span| span.is_active(now))?;
                Some(format!("its handler knows that it is paused since {}", active.from))
            }
        }
    }

    /// Whether a wait at `now` may be that of a held event, or of one that is kept because nothing is known: as long as
    /// after a failed call.
    pub(crate) fn may_keep(
        &self,
        now: Timestamp,
        receives: u32,
        wait: Duration,
        after_failure: Duration,
    ) -> bool {
        match self {
            Self::Nothing => wait <= after_failure,
            Self::Pauses(_) => receives > 1 && wait <= HOLD && self.forbids_invokes(now).is_some(),
        }
    }

    /// Longest wait of that kind.
    pub(crate) fn longest_keep(&self, after_failure: Duration) -> Duration {
        if self.is_nothing() { after_failure } else { HOLD }
    }

    /// Whether the handler has never read the pauses, so that any function may be paused.
    pub(crate) const fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// When an event is too old, as seen at `now`: `max_age` counts only while no handler could know of a pause, nor hold
    /// the event for one that was over for less than `between_reads`. While nothing is known, all time counts.
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

    /// The latest due time at `now` of a wait from `start` that ends at `latest` at the latest.
    pub(crate) fn latest_due(&self, start: Timestamp, latest: Timestamp, now: Timestamp) -> Timestamp {
        let over = self.spans().iter().filter_map(|span| Some((span.until?, span.spread)));
        let after = over.filter(|(until, _)| start < *until && *until <= now);
        after.map(|(until, spread)| until.saturating_add(spread + SECOND)).fold(latest, Timestamp::max)
    }

    /// Whether a pause that is over at `now` may have moved the due time of a wait from `start`. Another
    /// environment may not know of that pause yet.
    pub(crate) fn moves_dues(&self, start: Timestamp, now: Timestamp) -> bool {
        self.spans().iter().any(|span| span.until.is_some_and(|until| start < until && until <= now))
    }

    /// Pause boundaries known so far. Each may begin another wait.
    pub(crate) fn boundaries(&self, now: Timestamp) -> usize {
        let ends = self.spans().iter().filter(|span| span.until.is_some_and(|until| until <= now));
        self.spans().len() + ends.count()
    }
}

impl Span {
    fn is_active(&self, now: Timestamp) -> bool {
        self.from <= now && self.until.is_none_or(|until| now < until)
    }
}
