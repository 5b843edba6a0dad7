//! Schedules: the retries of events whose target fails every time.

pub(crate) mod in_flight;

use std::collections::BTreeMap;

use comeback_engine::{
    Action, HideUpTo, Jitter, Pauses, Policies, Policy, ReasonCode, Record, Settings, Style, Timestamp,
    decide,
};
use rayon::prelude::*;
use serde::Serialize;

use crate::aws::agenda::START;
use crate::aws::draw_id;
use crate::aws::queue::{LONGEST_DELAY, blank};
use crate::aws::target::{DOWN, FailedInvocation, FailureRecords, TARGET_ARN};
use crate::event::EventNumber;
use crate::faults::mix::seeded;
use crate::figures::nearest_rank;

/// Maximum number of events that a [`Schedule`] follows.
pub const MAX_EVENTS: usize = 100_000;
/// Default number of events that a [`Schedule`] follows. It follows fewer if these would need more than
/// [`RETRIES_IN_ALL`] retries.
const EVENTS: usize = 10_000;
const RETRIES_IN_ALL: usize = 1_000_000;
const FEWEST_EVENTS: usize = 100;

/// The number and the times of an event's retries under a policy, averaged over many events that fail every time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Schedule {
    /// Seed for all random numbers.
    pub seed: u64,
    /// Number of simulated events over which the schedule is averaged.
    pub events: usize,
    /// Mean, extremes and percentiles of the number of retries per event.
    pub retries_made: RetriesMade,
    /// Number of dead-lettered events, by reason.
    pub dead_lettered: BTreeMap<&'static str, usize>,
    /// Figures for the first retry, the second retry, and so on, up to the highest number that any event reached.
    pub retries: Vec<ScheduledRetry>,
    /// The total wait of each event, in seconds, from its first failure to its last retry. Sorted in ascending order.
    #[serde(skip)]
    waits: Vec<u32>,
    /// Mean number of moves for an event whose messages are never hidden.
    #[serde(skip)]
    moves_of_an_event: f64,
    #[serde(skip)]
    hide_up_to: HideUpTo,
}

/// Figures for the number of retries that an event gets before it is dead-lettered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RetriesMade {
    /// Mean number of retries per event.
    pub mean: f64,
    /// Lowest number of retries for any event.
    pub min: usize,
    /// 5th percentile of the number of retries per event.
    pub p5: usize,
    /// 95th percentile of the number of retries per event.
    pub p95: usize,
    /// Highest number of retries for any event.
    pub max: usize,
}

/// Figures for the *n*th retry, over all events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScheduledRetry {
    /// Number of the retry, *n*; 1 for the first.
    pub retry: u64,
    /// Ceiling of the wait before this retry, in seconds; `None` under decorrelated jitter.
    pub ceiling_seconds: Option<u64>,
    /// Number of events that were retried at least *n* times.
    pub events: usize,
    /// Time from the previous failure to this retry, in whole seconds.
    pub wait_seconds: Spread,
    /// Time from the event's first failure to this retry, in seconds.
    pub since_first_failure_seconds: Spread,
}

/// Mean, 5th percentile and 95th percentile of a set of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Mean of the values.
    pub mean: f64,
    /// 5th percentile of the values.
    pub p5: u32,
    /// 95th percentile of the values.
    pub p95: u32,
}

impl Schedule {
    /// Simulates this many events (0 to [`MAX_EVENTS`]) under a policy until they are dead-lettered, and calls
    /// `progress` after each. The figures are the same on any number of cores.
    ///
    /// ```
    /// use comeback_engine::{Policy, Settings};
    /// use comeback_timelapse::Schedule;
    ///
    /// let policy = Policy::new(Settings::default()).unwrap();
    /// let schedule = Schedule::of(&policy, 1, 500, &|| {});
    /// assert!((54.0..58.0).contains(&schedule.retries_made.mean));
    /// assert_eq!(schedule.retries[6].ceiling_seconds, Some(640));
    /// ```
    pub fn of(policy: &Policy, seed: u64, events: usize, progress: &(impl Fn() + Sync)) -> Self {
        let policies = of_the_followed(policy);
        let follow = |event| {
            let chain = Chain::follow(&policies, seed, EventNumber(event));
            progress();
            chain
        };
        let chains: Vec<Chain> = (0..events).into_par_iter().map(follow).collect();
        let mut dead_lettered = BTreeMap::new();
        for chain in &chains {
            *dead_lettered.entry(chain.dead_lettered.name()).or_default() += 1;
        }
        let retries_made = RetriesMade::of(chains.iter().map(|chain| chain.retries.len()).collect());
        let retries = (0..retries_made.max).into_par_iter().map(|i| ScheduledRetry::of(policy, i, &chains));
        let mut waits: Vec<u32> =
            chains.iter().map(|chain| chain.retries.last().map_or(0, |made| made.at)).collect();
        waits.sort_unstable();
        let made = chains.iter().flat_map(|chain| &chain.retries);
        let moves: u64 = made.map(|made| moves_of(made.wait)).sum();
        Self {
            seed,
            events,
            retries_made,
            dead_lettered,
            retries: retries.collect(),
            waits,
            moves_of_an_event: moves as f64 / events.max(1) as f64,
            hide_up_to: policy.settings().hide_up_to,
        }
    }

    /// Default number of events to follow: 10,000, or fewer if each event is retried often.
    pub fn default_events(policy: &Policy, seed: u64) -> usize {
        let retries = Chain::follow(&of_the_followed(policy), seed, EventNumber(0)).retries.len();
        (RETRIES_IN_ALL / retries.max(1)).clamp(FEWEST_EVENTS, EVENTS)
    }
}

/// Returns the policy with [`TARGET_ARN`] as its only target function.
fn of_the_followed(policy: &Policy) -> Policies {
    let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..policy.settings().clone() };
    Policy::new(settings).expect("BUG: only the allow-list has changed").into()
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
            ceiling_seconds: (backoff.jitter() != Jitter::Decorrelated)
                .then(|| backoff.ceiling(retry).as_secs()),
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

#[derive(Clone, Debug, PartialEq, Eq)]
struct Chain {
    retries: Vec<Made>,
    dead_lettered: ReasonCode,
}

/// The wait before a retry, and the time of the retry, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Made {
    /// Time from the previous failure to this retry.
    wait: u32,
    /// Time from the event's first failure to this retry.
    at: u32,
}

impl Chain {
    /// Simulates the retries of one event that fails every time, until it is dead-lettered.
    fn follow(policies: &Policies, seed: u64, event: EventNumber) -> Self {
        let mut rng = seeded([&seed.to_le_bytes(), &(event.0 as u64).to_le_bytes()]);
        let mut records = FailureRecords::of(TARGET_ARN);
        let mut payload = format!(r#"{{"order":{event}}}"#);
        let mut now = START;
        let mut retries = Vec::new();
        loop {
            let failed_at = now;
            let (message_id, request_id) = (draw_id(&mut rng).to_string(), draw_id(&mut rng));
            let failed = FailedInvocation { request_id, payload: &payload, error: DOWN };
            let mut record = Record {
                message_id,
                body: records.write(now, failed, String::new()),
                receive_count: 1,
                ..blank(now)
            };
            match serve_backoff(&mut record, policies, &mut now) {
                Ok(enveloped) => payload = enveloped,
                Err(dead_lettered) => return Self { retries, dead_lettered },
            }
            retries.push(Made { wait: seconds(failed_at, now), at: seconds(START, now) });
        }
    }
}

/// Advances `now` past the message's waits, and returns the retry's payload, or the reason if the event is
/// dead-lettered.
fn serve_backoff(
    record: &mut Record,
    policies: &Policies,
    now: &mut Timestamp,
) -> Result<String, ReasonCode> {
    loop {
        let hidden_for = match decide(record, policies, &Pauses::default(), *now) {
            Action::Defer { visibility_timeout, .. } | Action::Hold { visibility_timeout, .. } => {
                visibility_timeout
            }
            // The envelope's style does not affect the delays, and the engine reads both styles.
            Action::Reinvoke { envelope, .. } => return Ok(envelope.seal(Style::Wrap)),
            Action::DeadLetter { reason, .. } => return Err(reason.code),
        };
        *now = now.saturating_add(hidden_for);
        record.receive_count += 1;
    }
}

/// Returns the number of moves that a message needs during a wait of `wait` seconds if the message is never hidden.
fn moves_of(wait: u32) -> u64 {
    u64::from(wait).div_ceil(LONGEST_DELAY.as_secs())
}

fn seconds(from: Timestamp, to: Timestamp) -> u32 {
    u32::try_from(to.since(from).as_secs()).expect("BUG: MAX_AGE is 14 days at most")
}

#[cfg(test)]
mod tests {
    use comeback_engine::Settings;

    use super::*;

    #[test]
    fn spreads_are_means_and_values_at_their_nearest_rank() {
        let spread = |values: Vec<u32>| Spread::of(values);
        assert_eq!(spread((1..=100).rev().collect()), Spread { mean: 50.5, p5: 5, p95: 95 });
        assert_eq!(spread((1..=20).collect()), Spread { mean: 10.5, p5: 1, p95: 19 });
        assert_eq!(spread(vec![9]), Spread { mean: 9.0, p5: 9, p95: 9 });
        assert_eq!(spread(Vec::new()), Spread { mean: 0.0, p5: 0, p95: 0 });
    }

    fn chain(settings: Settings) -> Chain {
        Chain::follow(&of_the_followed(&Policy::new(settings).unwrap()), 1, EventNumber(0))
    }

    fn waits(settings: Settings) -> Vec<u32> {
        chain(settings).retries.iter().map(|made| made.wait).collect()
    }

    fn without_jitter() -> Settings {
        Settings { base_backoff: 1, max_backoff: 43_170, jitter: Jitter::None, ..Settings::default() }
    }

    #[test]
    fn the_allow_list_changes_no_schedule() {
        let refunds = "arn:aws:lambda:eu-west-1:123456789012:function:refunds";
        let of = |target_functions| {
            let settings = Settings { target_functions, ..Settings::default() };
            Schedule::of(&Policy::new(settings).unwrap(), 1, 20, &|| {})
        };
        let schedule = of(vec![refunds.into()]);
        assert!(schedule.dead_lettered.keys().eq(["max_age"].iter()), "{:?}", schedule.dead_lettered);
        assert_eq!(schedule.retries_made, of(vec![TARGET_ARN.into()]).retries_made);
    }

    #[test]
    fn last_retry_comes_before_max_age() {
        let chain = chain(Settings { max_age: 100, ..without_jitter() });
        let made: Vec<(u32, u32)> = chain.retries.iter().map(|made| (made.wait, made.at)).collect();
        // The first six waits add up to 63 s. A further wait of 64 s would exceed MAX_AGE, so it is shortened to end at
        // 90 % of MAX_AGE.
        assert_eq!(made, [(1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 63), (27, 90)]);
        assert_eq!(chain.dead_lettered, ReasonCode::MaxAge);
        // After 511 s, a wait of 512 s would exceed MAX_AGE. A tenth of MAX_AGE is over a minute, so the wait is
        // shortened to end one minute before the event's age reaches MAX_AGE.
        let cut = waits(Settings { max_age: 700, ..without_jitter() });
        assert_eq!(cut, [1, 2, 4, 8, 16, 32, 64, 128, 256, 700 - 60 - 511]);
    }

    #[test]
    fn fourteen_days_are_used_to_the_end() {
        let chain = chain(Settings { max_age: 14 * 86_400, ..without_jitter() });
        assert_eq!(chain.retries.last().map(|made| made.at), Some(14 * 86_400 - 60));
    }

    #[test]
    fn decorrelated_waits_follow_the_wait_before() {
        let decorrelated = Settings { jitter: Jitter::Decorrelated, ..Settings::default() };
        let waits = waits(decorrelated);
        let cut_off = waits.len() - 1;
        assert!(waits[..cut_off].windows(2).all(|pair| pair[1] <= 3 * pair[0]), "{waits:?}");
    }

    #[test]
    fn events_and_seeds_differ() {
        let policy =
            Policy::new(Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() });
        let policies = policy.unwrap().into();
        let [one, other, reseeded] =
            [(1, 0), (1, 1), (2, 0)].map(|(s, e)| Chain::follow(&policies, s, EventNumber(e)));
        assert!(one != other && one != reseeded && other != reseeded);
    }
}
