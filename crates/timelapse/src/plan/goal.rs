//! The goal of a plan, and the grid of settings that the plan compares.

use std::ops::RangeInclusive;
use std::time::Duration;

use comeback_engine::{Jitter, Settings};
use serde::{Serialize, Serializer};

use crate::scenario::{Scenario, ScenarioError};

/// Accepted range for the durations in a goal, up to SQS's longest retention period.
const TIMES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(14 * 86_400);

/// Number of events rehearsed under each policy.
pub const REHEARSED: usize = 1_000;

/// The outage to recover from, and the time allowed for the recovery.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// Seed for all random numbers.
    pub seed: u64,
    /// Duration of the outage, during which every invocation of the target fails; 1 s to 14 days.
    #[serde(rename = "outage_seconds", serialize_with = "seconds")]
    pub outage: Duration,
    /// Number of events that reach the target per second; more than 0.
    pub events_per_second: f64,
    /// Time allowed between the end of the outage and the delivery of 99 % of the outage's events. The range is 1 s
    /// to 14 days.
    #[serde(rename = "recover_within_seconds", serialize_with = "seconds")]
    pub recover_within: Duration,
    /// Fraction of all events that fail on every invocation, even after the outage; from 0 to less than 1.
    pub never_succeed: f64,
    /// Capacity of the target per minute, as a multiple of the usual event rate (0.1 to 1000); `None` if unlimited.
    /// Invocations beyond the capacity fail. After the outage, all of it is available for retries of the events that
    /// can succeed.
    pub capacity: Option<f64>,
}

/// The goal that the documentation of `comeback plan` uses as an example.
impl Default for Goal {
    fn default() -> Self {
        Self {
            seed: 1,
            outage: Duration::from_secs(3 * 3_600),
            events_per_second: 10.0,
            recover_within: Duration::from_secs(30 * 60),
            never_succeed: 0.0,
            capacity: None,
        }
    }
}

impl Goal {
    /// Creates a scenario: the outage, followed by enough time to deliver or dead-letter every event.
    pub(super) fn scenario(&self, settings: &Settings, events: usize) -> Scenario {
        // A scenario's capacity is relative to the traffic of its own events. The traffic is spread over at least a
        // minute.
        let shorter = (60.0 / self.outage.as_secs_f64()).max(1.0);
        let capacity = self.capacity.map(|times| (times * shorter / (1.0 - self.never_succeed)).min(1_000.0));
        Scenario {
            seed: self.seed,
            events,
            arrival_spread: self.outage,
            outage: self.outage,
            duration: self.outage + Duration::from_secs(settings.max_age + 3_600),
            in_flight_limit: events,
            capacity,
            ..Scenario::default()
        }
    }

    /// Number of events that arrive during the outage and can succeed.
    pub fn events_to_recover(&self) -> f64 {
        self.events_per_second * (1.0 - self.never_succeed) * self.outage.as_secs_f64()
    }

    /// Shortest time in which the target can handle 99 % of the [events to recover](Self::events_to_recover); zero if
    /// the target's capacity is unlimited.
    pub fn least_recovery(&self) -> Duration {
        let per_second = self.capacity.map(|times| times * self.events_per_second);
        per_second.map_or(Duration::ZERO, |per_second| {
            Duration::from_secs_f64(0.99 * self.events_to_recover() / per_second)
        })
    }

    pub(super) fn takes_too_little(&self) -> bool {
        self.least_recovery() > self.recover_within
    }

    /// Checks every part of the goal; fails with one error for each invalid part.
    pub fn check(&self) -> Result<(), Vec<ScenarioError>> {
        let Self { outage, events_per_second: rate, recover_within, never_succeed: never, .. } = self;
        let (time, share) = ("1 s to 14 days", "at least 0 and less than 1");
        let checks = [
            ("outage", time, TIMES.contains(outage), format!("{outage:?}")),
            ("rate", "more than 0", rate.is_finite() && *rate > 0.0, rate.to_string()),
            ("recover-within", time, TIMES.contains(recover_within), format!("{recover_within:?}")),
            ("never-succeed", share, (0.0..1.0).contains(never), never.to_string()),
        ];
        let refused = checks.into_iter().filter(|(.., valid, _)| !valid);
        let mut refused: Vec<_> =
            refused.map(|(setting, range, _, value)| ScenarioError { setting, value, range }).collect();
        let scenario = Scenario { capacity: self.capacity, ..Scenario::default() };
        refused.extend(scenario.check().err().into_iter().flatten());
        if refused.is_empty() { Ok(()) } else { Err(refused) }
    }
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// Values of `BASE_BACKOFF` that a plan compares, in seconds. A longer base would delay events that fail outside an
/// outage.
const BASES: [u64; 3] = [1, 10, 60];
/// Values of `MAX_BACKOFF` that a plan compares, in seconds. The last is the setting's maximum.
const CAPS: [u64; 18] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_200, 1_800, 2_700, 3_600, 7_200, 21_600, 43_170];
/// Values of `JITTER` that a plan compares. `none` is left out: it would look cheap, but only because the plan's events
/// arrive evenly. Without jitter, events that fail together are also retried together.
const JITTERS: [Jitter; 3] = [Jitter::Full, Jitter::Equal, Jitter::Decorrelated];

/// Returns the settings to compare. If the grid does not contain the defaults, they are added at the front.
pub(super) fn grid(goal: &Goal, settings: &Settings) -> Vec<Settings> {
    // A cap below half of the goal's recovery time would only raise the cost.
    let shortest = (goal.recover_within / 2).as_secs();
    let first = CAPS.iter().rposition(|&cap| cap <= shortest).unwrap_or(0);
    let mut grid = Vec::new();
    for &max_backoff in &CAPS[first..] {
        for jitter in JITTERS {
            for base_backoff in BASES.into_iter().filter(|&base| base <= max_backoff) {
                grid.push(Settings { base_backoff, max_backoff, jitter, ..settings.clone() });
            }
        }
    }
    let Settings { base_backoff, max_backoff, jitter, .. } = Settings::default();
    let defaults = Settings { base_backoff, max_backoff, jitter, ..settings.clone() };
    if !grid.contains(&defaults) {
        grid.insert(0, defaults);
    }
    grid
}

#[cfg(test)]
mod tests {
    use comeback_engine::Policy;

    use super::*;

    #[test]
    fn caps_range_from_half_the_goal_to_the_longest() {
        for (goal, shortest) in
            [(1, 1), (59, 15), (60, 30), (1_800, 900), (8_000, 3_600), (86_400 * 14, 43_170)]
        {
            let goal = Goal { recover_within: Duration::from_secs(goal), ..Goal::default() };
            let grid = super::grid(&goal, &Settings::default());
            let others = grid.iter().filter(|settings| **settings != Settings::default());
            let caps: Vec<u64> = others.map(|settings| settings.max_backoff).collect();
            assert_eq!((caps.first(), caps.last()), (Some(&shortest), Some(&43_170)), "{goal:?}");
            assert!(grid.contains(&Settings::default()), "it has the defaults");
            assert!(grid.into_iter().all(|settings| Policy::new(settings).is_ok()));
        }
    }
}
