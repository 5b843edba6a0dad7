//! A policy that a plan compares, with its figures.

use std::collections::BTreeMap;

use comeback_engine::{HideUpTo, MAXIMUM_CONCURRENCY_RANGE, Policy, Settings};
use serde::Serialize;

use super::goal::Goal;
use crate::aws::queue::{IN_FLIGHT_LIMIT, LONGEST_DELAY};
use crate::figures::Minute;
use crate::figures::prices::{usd_a_move, usd_a_retry};
use crate::figures::{Percentiles, Summary};
use crate::schedule::Schedule;
use crate::schedule::in_flight::pollers;
use crate::simulation::{RunError, run};

/// Number of simulated events that never succeed.
const NEVER_SUCCEEDING: usize = 100;
const MINUTE: f64 = 60.0;

/// A policy that a plan compares, with its figures at the goal's event rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The policy's `MAX_BACKOFF`, in seconds.
    pub max_backoff: u64,
    /// The policy's `JITTER`.
    pub jitter: &'static str,
    /// The policy's `BASE_BACKOFF`, in seconds.
    pub base_backoff: u64,
    /// Milliseconds from the outage's end to the delivery of each event that failed during it; `None` if none is
    /// delivered.
    pub recovery_ms: Option<Percentiles>,
    /// Mean number of retries of an event that reaches the target during the outage.
    pub retries_per_event: f64,
    /// Number of retries per second in the busiest minute after the end of the outage.
    pub peak_retries_per_second: f64,
    /// `peak_retries_per_second` divided by the usual event rate. It does not include the usual events, which the
    /// target receives in addition to the retries.
    pub peak_load: f64,
    /// Peak number of waiting events.
    pub waiting: f64,
    /// List price, in US dollars, for retrying and moving a million events in the outage, if every batch is full.
    pub usd_per_million_events: f64,
    /// Number of concurrent batches in the busiest minute, the minimum for `MAXIMUM_CONCURRENCY`.
    pub maximum_concurrency: u64,
    /// For each reason, the number of rehearsed events that were dead-lettered although they could have succeeded.
    pub dead_lettered: BTreeMap<&'static str, usize>,
}

impl Candidate {
    /// Rehearses the goal's outage with `events` events. Every message is hidden, and as many pollers run as Lambda
    /// allows.
    ///
    /// # Errors
    ///
    /// Fails if a part of the goal is out of range, or if the run breaks an invariant.
    ///
    /// # Panics
    ///
    /// Panics if a [`Policy`] refuses the settings.
    pub fn rehearse(goal: &Goal, settings: &Settings, events: usize) -> Result<Self, RunError> {
        let ideal = Settings {
            hide_up_to: HideUpTo::Always,
            maximum_concurrency: *MAXIMUM_CONCURRENCY_RANGE.end(),
            ..settings.clone()
        };
        let policy = |settings| Policy::new(settings).expect("BUG: the grid has an invalid policy");
        let summary = run(&goal.scenario(settings, events), &policy(ideal).into(), &mut ())?;
        let events = if goal.never_succeed > 0.0 { NEVER_SUCCEEDING } else { 0 };
        let never = Schedule::of(&policy(settings.clone()), goal.seed, events, &|| {});
        Ok(Self::computed(goal, settings, summary, &never))
    }

    /// `never` is the schedule of the events that never succeed. It may be empty.
    fn computed(goal: &Goal, settings: &Settings, summary: Summary, never: &Schedule) -> Self {
        let never_retries = never.retries_made.mean;
        let never = never.in_flight(goal.events_per_second * goal.never_succeed, IN_FLIGHT_LIMIT);
        let never_retries_per_second = never.events_per_second * never_retries;
        let (rate, rehearsed) = (goal.events_per_second, summary.events as f64);
        let factor = goal.events_to_recover() / rehearsed;
        let a_second = |minutes: &[Minute]| {
            let retries = minutes.iter().map(|minute| minute.retries).max().unwrap_or_default();
            f64::from(retries) * factor / MINUTE + never_retries_per_second
        };
        let recovering = (goal.outage.as_secs() / 60) as usize;
        let peak = a_second(&summary.minutes[recovering..]);
        let retries_per_second = a_second(&summary.minutes);
        let room = match settings.hide_up_to {
            HideUpTo::Always => f64::INFINITY,
            HideUpTo::UpTo(messages) => (messages as f64 - never.waiting).max(0.0),
        };
        let (moves, moves_per_second) = moves_of_delayed(&summary.minutes, factor, room);
        let retries_per_event = (1.0 - goal.never_succeed) * summary.retries as f64 / rehearsed
            + goal.never_succeed * never_retries;
        let moves_per_event = moves / (rate * goal.outage.as_secs_f64()) + never.moves.per_second / rate;
        let usd = retries_per_event * usd_a_retry() + moves_per_event * usd_a_move();
        Self {
            max_backoff: settings.max_backoff,
            jitter: settings.jitter.name(),
            base_backoff: settings.base_backoff,
            recovery_ms: summary.recovery_delay_ms,
            retries_per_event,
            peak_retries_per_second: peak,
            peak_load: peak / rate,
            waiting: summary.peak_in_flight as f64 * factor + never.waiting,
            usd_per_million_events: usd * 1e6,
            maximum_concurrency: pollers(retries_per_second, moves_per_second + never.moves.per_second),
            dead_lettered: summary.dead_lettered,
        }
    }

    /// Returns true if the policy delivers every event that can succeed, and needs no more pollers than Lambda allows.
    pub fn loses_nothing(&self) -> bool {
        self.dead_lettered.is_empty() && self.maximum_concurrency <= *MAXIMUM_CONCURRENCY_RANGE.end()
    }

    pub(super) fn has_default_backoff(&self) -> bool {
        let Settings { max_backoff, jitter, base_backoff, .. } = Settings::default();
        (self.max_backoff, self.jitter, self.base_backoff) == (max_backoff, jitter.name(), base_backoff)
    }
}

/// Returns the total number of moves, and the number of moves per second in the busiest minute.
fn moves_of_delayed(minutes: &[Minute], factor: f64, room: f64) -> (f64, f64) {
    let delayed = minutes.iter().map(|minute| (f64::from(minute.in_flight) * factor - room).max(0.0));
    let (sum, most) = delayed.fold((0.0, 0.0f64), |(sum, most), delayed| (sum + delayed, most.max(delayed)));
    let longest = LONGEST_DELAY.as_secs_f64();
    (sum * MINUTE / longest, most / longest)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::aws::target::TARGET_ARN;
    use crate::plan::REHEARSED;
    use crate::scenario::Scenario;

    /// The tolerance covers empty polls and batches that are not quite full.
    #[test]
    fn price_of_a_retry_matches_a_run_with_full_batches() {
        let settings = Settings {
            target_functions: vec![TARGET_ARN.into()],
            max_backoff: 60,
            base_backoff: 60,
            hide_up_to: HideUpTo::Always,
            ..Settings::default()
        };
        // Messages wait for a poller long enough to fill each batch.
        let scenario = Scenario {
            events: 2_000,
            arrival_spread: Duration::from_secs(60),
            outage: Duration::from_secs(3_600),
            duration: Duration::from_secs(2 * 3_600),
            poll_delay: Duration::from_secs(20),
            ..Scenario::default()
        };
        let summary = run(&scenario, &Policy::new(settings).unwrap().into(), &mut ()).unwrap();
        let measured = summary.cost_usd / summary.retries as f64;
        let ratio = usd_a_retry() / measured;
        assert!((0.94..=1.0).contains(&ratio), "{} beside {measured}", usd_a_retry());
    }

    #[test]
    fn low_capacity_delays_recovery() {
        let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() };
        let soon = Goal { outage: Duration::from_secs(3_600), ..Goal::default() };
        let p99 = |goal: &Goal| {
            let candidate =
                Candidate::rehearse(goal, &settings, REHEARSED).expect("a run without a violation");
            candidate.recovery_ms.expect("all is delivered").p99
        };
        let little = Goal { capacity: Some(0.5), ..soon.clone() };
        let half_fail = Goal { never_succeed: 0.5, ..little.clone() };
        for goal in [&little, &half_fail] {
            let ratio = p99(goal) as f64 / goal.least_recovery().as_millis() as f64;
            assert!((0.98..1.5).contains(&ratio), "{ratio}");
        }
        let [soon, little] = [soon, little].map(|goal| p99(&goal));
        assert!(soon < little, "{soon}, {little}");
    }
}
