//! What a policy means: the retries of events whose target fails every time, until they are given
//! up. No wait is computed here; each is an answer of [`comeback_engine::decide()`].
//!
//! | file | holds |
//! |---|---|
//! | `mod` | [`Schedule`]: figures over many events |
//! | `chain` | one event from its first failure to its last |
//! | `in_flight` | [`InFlight`](in_flight::InFlight): how many events wait at a rate of events, and where |
//! | `moves` | [`Moves`](moves::Moves): what the moves of those come to, and the pollers |

mod chain;
pub(crate) mod in_flight;
pub(crate) mod moves;

use std::collections::BTreeMap;

use comeback_backoff::ceiling;
use comeback_engine::{HideUpTo, Jitter, Policy};
use rayon::prelude::*;
use serde::Serialize;

use crate::event::EventNumber;
use crate::figures::percentiles::nearest_rank;

use chain::{Chain, Made};

/// The most events that are followed.
pub const MAX_EVENTS: usize = 100_000;
/// By default this many events are followed, unless they have many retries.
const EVENTS: usize = 10_000;
/// Then fewer are followed, with about this many retries in all.
const RETRIES_IN_ALL: usize = 1_000_000;
/// But never fewer events than this.
const FEWEST_EVENTS: usize = 100;

/// When retries come under a policy, and how many: figures over many events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Schedule {
    /// Everything random was drawn from it.
    pub seed: u64,
    /// How many events were followed.
    pub events: usize,
    /// How many retries an event had.
    pub retries_made: RetriesMade,
    /// Why events were given up in the end, with how many: a reason for each.
    pub given_up: BTreeMap<&'static str, usize>,
    /// Each retry that any event had, the first one first.
    pub retries: Vec<ScheduledRetry>,
    /// How long each event waited, from its first failure to its last retry, in seconds and
    /// ascending.
    #[serde(skip)]
    waits: Vec<u32>,
    /// Moves of an event if none of its waits is hidden: the mean.
    #[serde(skip)]
    moves_of_an_event: f64,
    /// The policy's.
    #[serde(skip)]
    hide_up_to: HideUpTo,
}

/// How many retries an event has before it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RetriesMade {
    /// The mean.
    pub mean: f64,
    /// The fewest that any event had.
    pub min: usize,
    /// 5 in 100 events have at most this many.
    pub p5: usize,
    /// 95 in 100 events have at most this many.
    pub p95: usize,
    /// The most that any event had.
    pub max: usize,
}

/// The retry of one number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScheduledRetry {
    /// 1 for the first.
    pub retry: u64,
    /// The ceiling of its wait; none under decorrelated jitter, which has only the cap.
    pub ceiling_seconds: Option<u64>,
    /// The events that had it. The figures below are over these.
    pub events: usize,
    /// Since the failure before it, in whole seconds as the engine waits.
    pub wait_seconds: Spread,
    /// Since the first failure.
    pub since_first_failure_seconds: Spread,
}

/// The middle of some values and where nine tenths of them lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// 5 in 100 values are at most this.
    pub p5: u32,
    /// 95 in 100 values are at most this.
    pub p95: u32,
}

impl Schedule {
    /// Follows this many events, 1 to [`MAX_EVENTS`], each from its first failure to its last. No event
    /// depends on another, and no figure on the number of threads. `progress` is called after each.
    ///
    /// ```
    /// use comeback_engine::{Policy, Settings};
    /// use comeback_timelapse::{Schedule, TARGET_ARN};
    ///
    /// let policy = Policy::new(Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() }).unwrap();
    /// let schedule = Schedule::of(&policy, 1, 500, &|| {});
    /// assert!((18.5..20.0).contains(&schedule.retries_made.mean));
    /// assert_eq!(schedule.retries[6].ceiling_seconds, Some(64));
    /// ```
    pub fn of(policy: &Policy, seed: u64, events: usize, progress: &(impl Fn() + Sync)) -> Self {
        let follow = |event| {
            let chain = Chain::follow(policy, seed, EventNumber(event));
            progress();
            chain
        };
        let chains: Vec<Chain> = (0..events).into_par_iter().map(follow).collect();
        let mut given_up = BTreeMap::new();
        for chain in &chains {
            *given_up.entry(chain.given_up.name()).or_default() += 1;
        }
        let retries_made = RetriesMade::of(chains.iter().map(|chain| chain.retries.len()).collect());
        let retries = (0..retries_made.max).into_par_iter().map(|i| ScheduledRetry::of(policy, i, &chains));
        let mut waits: Vec<u32> =
            chains.iter().map(|chain| chain.retries.last().map_or(0, |made| made.at)).collect();
        waits.sort_unstable();
        let made = chains.iter().flat_map(|chain| &chain.retries);
        let moves: u64 = made.map(|made| moves::moves_of(made.wait)).sum();
        Self {
            seed,
            events,
            retries_made,
            given_up,
            retries: retries.collect(),
            waits,
            moves_of_an_event: moves as f64 / events.max(1) as f64,
            hide_up_to: policy.hide_up_to(),
        }
    }

    /// How many events to follow by default: 10,000, or fewer if an event has many retries.
    pub fn default_events(policy: &Policy, seed: u64) -> usize {
        let retries = Chain::follow(policy, seed, EventNumber(0)).retries.len();
        (RETRIES_IN_ALL / retries.max(1)).clamp(FEWEST_EVENTS, EVENTS)
    }
}

impl RetriesMade {
    fn of(mut counts: Vec<usize>) -> Self {
        counts.sort_unstable();
        let rank = |percent| nearest_rank(&counts, percent).unwrap_or(0);
        let mean = counts.iter().sum::<usize>() as f64 / counts.len().max(1) as f64;
        Self { mean, min: counts.first().copied().unwrap_or(0), p5: rank(5), p95: rank(95), max: rank(100) }
    }
}

impl ScheduledRetry {
    fn of(policy: &Policy, index: usize, chains: &[Chain]) -> Self {
        let retry = index as u64 + 1;
        let backoff = policy.backoff();
        let made: Vec<Made> = chains.iter().filter_map(|chain| chain.retries.get(index).copied()).collect();
        Self {
            retry,
            ceiling_seconds: (backoff.jitter != Jitter::Decorrelated)
                .then(|| ceiling(backoff.base, backoff.cap, retry)),
            events: made.len(),
            wait_seconds: Spread::of(made.iter().map(|made| made.wait).collect()),
            since_first_failure_seconds: Spread::of(made.iter().map(|made| made.at).collect()),
        }
    }
}

impl Spread {
    fn of(mut values: Vec<u32>) -> Self {
        values.sort_unstable();
        let rank = |percent| nearest_rank(&values, percent).unwrap_or(0);
        let sum: u64 = values.iter().copied().map(u64::from).sum();
        Self { mean: sum as f64 / values.len().max(1) as f64, p5: rank(5), p95: rank(95) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_means_and_values_at_their_nearest_rank() {
        let spread = |values: Vec<u32>| Spread::of(values);
        assert_eq!(spread((1..=100).rev().collect()), Spread { mean: 50.5, p5: 5, p95: 95 });
        assert_eq!(spread((1..=20).collect()), Spread { mean: 10.5, p5: 1, p95: 19 });
        assert_eq!(spread(vec![9]), Spread { mean: 9.0, p5: 9, p95: 9 });
        assert_eq!(spread(Vec::new()), Spread { mean: 0.0, p5: 0, p95: 0 });
    }

    #[test]
    fn counts_have_their_extremes_too() {
        let made = RetriesMade::of((0..=99).rev().collect());
        assert_eq!(made, RetriesMade { mean: 49.5, min: 0, p5: 4, p95: 94, max: 99 });
    }
}
