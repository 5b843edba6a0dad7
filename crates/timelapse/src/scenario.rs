//! The scenario for a run: everything that determines the run, except the policies at its start.

use std::ops::RangeInclusive;
use std::time::Duration;

use comeback_engine::{HANDLER_TIMEOUT, Policies, Timestamp};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::aws::agenda::START;
use crate::aws::mapping::LONG_POLL;
use crate::aws::queue::IN_FLIGHT_LIMIT;
use crate::event::EventNumber;
use crate::faults::mix::Faults;
use crate::faults::records::UNLISTED_ARN;
use crate::operators::MakeOperators;
use crate::targets::SimulatedTarget;

const MINUTE: Duration = Duration::from_secs(60);
const YEAR: Duration = Duration::from_secs(365 * 86_400);
/// Accepted range for the waits that a target may request, up to SQS's longest retention period.
const ASKED: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(14 * 86_400);

/// Largest payload, in bytes: SQS's limit of 1 MiB, minus 2 KiB for the rest of the invocation record.
const LARGEST_PAYLOAD: usize = (1_024 - 2) * 1_024;

/// Everything that determines a run, except the policies at its start. The default is the scenario of
/// `comeback simulate`: a 24-hour run with 1,000 events. Their target is down for the first 3 hours.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seed for all random numbers.
    pub seed: u64,
    /// The target functions that receive the events; at least one.
    pub targets: Vec<SimulatedTarget>,
    /// Number of events; 1 to 10,000,000.
    pub events: usize,
    /// Events arrive at random times during this first part of the run.
    pub arrival_spread: Duration,
    /// Duration of the outage, counted from the run's start, for targets that have none of their own. Every invocation
    /// that begins while the target is down fails.
    pub outage: Duration,
    /// Probability that an invocation fails while the target is up, from 0 to 1.
    pub failure_rate: f64,
    /// Fraction of all events that fail on every invocation, from 0 to 1.
    pub poison: f64,
    /// Length of each down or up phase during the outage, at least a minute; `None` if the target stays down.
    pub flapping: Option<Duration>,
    /// Time after which a hanging invocation times out, at most 15 minutes. Invocations hang only while the target is
    /// down. `None` means that no invocation hangs.
    pub hang: Option<Duration>,
    /// Capacity of the target per minute, as a multiple of its usual traffic (0.1 to 1000); `None` if unlimited.
    /// Invocations beyond the capacity fail.
    pub capacity: Option<f64>,
    /// Wait that the target requests with `RetryAfter` on each failure: whole seconds, at most 14 days. `None` if the
    /// target requests no wait.
    pub retry_after: Option<Duration>,
    /// Minimum size of a payload, in bytes; at most 1,046,528.
    pub payload_size: usize,
    /// Run time of an invocation of the target, whether or not it fails; at most 15 minutes.
    pub run_time: Duration,
    /// Virtual duration of the whole run; at most 365 days.
    pub duration: Duration,
    /// Maximum number of messages in a batch; 1 to 10.
    pub batch_size: usize,
    /// Time from the start of a batch until the retry handler's calls reach AWS; at most 60 s, the handler's timeout.
    pub handler_run_time: Duration,
    /// Time until a poller receives a visible message; at most 20 s, the length of a long poll.
    pub poll_delay: Duration,
    /// Maximum number of messages in flight; [`IN_FLIGHT_LIMIT`] in SQS.
    pub in_flight_limit: usize,
    /// Faults to inject, besides the target's failures.
    pub faults: Faults,
    /// Operators who act during the run; with `None`, the handler does not read the pauses parameter.
    pub operators: Option<MakeOperators>,
    /// Changes to the policies during the run, in the order in which they take effect.
    pub changes: Vec<PolicyChange>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            seed: 1,
            targets: vec![SimulatedTarget::default()],
            events: 1_000,
            arrival_spread: Duration::from_secs(3 * 3_600),
            outage: Duration::from_secs(3 * 3_600),
            failure_rate: 0.0,
            poison: 0.0,
            flapping: None,
            hang: None,
            capacity: None,
            retry_after: None,
            payload_size: 0,
            run_time: Duration::from_millis(200),
            duration: Duration::from_secs(24 * 3_600),
            batch_size: 10,
            handler_run_time: Duration::from_millis(100),
            poll_delay: Duration::from_millis(20),
            in_flight_limit: IN_FLIGHT_LIMIT,
            faults: Faults::default(),
            operators: None,
            changes: Vec::new(),
        }
    }
}

/// Error for an invalid setting in a [`Scenario`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{setting} is {value}; it must be {range}")]
pub struct ScenarioError {
    /// Name of the setting, as on the command line.
    pub setting: &'static str,
    /// The invalid value.
    pub value: String,
    /// The accepted values.
    pub range: &'static str,
}

/// A change to the policies during a run. The queue-wide settings must stay the same.
#[derive(Clone, Debug)]
pub struct PolicyChange {
    /// Time at which the new policies take effect, counted from the run's start.
    pub at: Duration,
    /// The policies that apply after the change.
    pub policies: Policies,
}

impl Scenario {
    /// Draws the arrival times of the events, latest first.
    pub(crate) fn arrivals(&self, seed: u64) -> Vec<Timestamp> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let spread = self.arrival_spread.as_millis() as u64;
        let mut moments: Vec<Timestamp> = (0..self.events)
            .map(|_| START.saturating_add(Duration::from_millis(rng.random_range(0..=spread))))
            .collect();
        moments.sort_unstable_by(|one, other| other.cmp(one));
        moments
    }

    /// Checks every setting; fails with one error for each invalid setting.
    pub fn check(&self) -> Result<(), Vec<ScenarioError>> {
        let mut refused = Vec::new();
        let mut check = |setting, range, valid: bool, value: String| {
            if !valid {
                refused.push(ScenarioError { setting, value, range });
            }
        };
        for (setting, count, range, most) in [
            ("events", self.events, "1 to 10000000", 10_000_000),
            ("batch-size", self.batch_size, "1 to 10", 10),
            ("in-flight-limit", self.in_flight_limit, "at least 1", usize::MAX),
        ] {
            check(setting, range, (1..=most).contains(&count), count.to_string());
        }
        let Self { run_time, handler_run_time: handler_time, .. } = *self;
        for (setting, time, range, most) in [
            ("arrival-spread", self.arrival_spread, "at most 365 days", YEAR),
            ("outage", self.outage, "at most 365 days", YEAR),
            ("for", self.duration, "at most 365 days", YEAR),
            ("run-time", run_time, "at most 15 minutes, Lambda's own limit", Duration::from_secs(900)),
            (
                "hang",
                self.hang.unwrap_or_default(),
                "at most 15 minutes, Lambda's own limit",
                Duration::from_secs(900),
            ),
            ("handler-run-time", handler_time, "at most 60 s, the handler's timeout", HANDLER_TIMEOUT),
            ("poll-delay", self.poll_delay, "at most 20 s, a long poll", LONG_POLL),
        ] {
            check(setting, range, time <= most, format!("{time:?}"));
        }
        for (setting, share) in [("failure-rate", self.failure_rate), ("poison", self.poison)] {
            check(setting, "0 to 1", (0.0..=1.0).contains(&share), share.to_string());
        }
        let turn = self.flapping.unwrap_or(YEAR);
        check("flapping", "at least 1 minute", turn >= MINUTE, format!("{turn:?}"));
        let capacity = self.capacity.unwrap_or(1.0);
        check("capacity", "0.1 to 1000", (0.1..=1_000.0).contains(&capacity), capacity.to_string());
        let asked = self.retry_after.unwrap_or(*ASKED.start());
        let is_whole = asked.subsec_nanos() == 0 && ASKED.contains(&asked);
        check("retry-after", "whole seconds, 1 s to 14 days", is_whole, format!("{asked:?}"));
        let size = self.payload_size;
        let range = "at most 1046528, so that SQS takes the record of its failure";
        check("payload-size", range, size <= LARGEST_PAYLOAD, size.to_string());
        for (fault, strikes) in self.faults.iter() {
            let range = "a rate of 0 to 1, within a window that is not empty";
            check("fault", range, strikes.is_valid(), format!("{fault}={}", strikes.rate));
        }
        refused.extend(self.refused_targets());
        if refused.is_empty() { Ok(()) } else { Err(refused) }
    }

    fn refused_targets(&self) -> Vec<ScenarioError> {
        let mut refused = Vec::new();
        let mut check = |valid: bool, range, value: String| {
            refused.extend((!valid).then_some(ScenarioError { setting: "target", value, range }));
        };
        for (position, target) in self.targets.iter().enumerate() {
            let SimulatedTarget { name, share, outage } = target;
            let is_name = (1..=64).contains(&name.len())
                && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it));
            check(
                is_name && target.arn() != UNLISTED_ARN,
                "the name of a function, other than payroll",
                name.clone(),
            );
            let is_new = self.targets[..position].iter().all(|other| other.name != *name);
            check(is_new, "named once", name.clone());
            check(
                share.is_finite() && *share > 0.0,
                "a name with a share of more than 0",
                format!("{name}:{share}"),
            );
            let is_short = outage.is_none_or(|outage| outage <= YEAR);
            check(is_short, "down for at most 365 days", format!("{name},outage={outage:?}"));
        }
        let all: f64 = self.targets.iter().map(|target| target.share).sum();
        let each_is_finite = self.targets.iter().all(|target| target.share.is_finite());
        check(all.is_finite() || !each_is_finite, "shares with a finite sum", all.to_string());
        check(!self.targets.is_empty(), "at least one", self.targets.len().to_string());
        refused
    }

    pub(crate) fn end(&self) -> Timestamp {
        START.saturating_add(self.duration)
    }

    pub(crate) fn outage_end(&self, target: usize) -> Timestamp {
        START.saturating_add(self.targets[target].outage.unwrap_or(self.outage))
    }

    /// Returns the number of invocations that a target can handle in a minute, on average; `None` if the number is
    /// unlimited.
    pub(crate) fn capacity_of(&self, target: usize) -> Option<f64> {
        let all: f64 = self.targets.iter().map(|target| target.share).sum();
        let minutes = self.arrival_spread.as_secs_f64().max(60.0) / 60.0;
        let traffic = self.events as f64 / minutes * self.targets[target].share / all;
        self.capacity.map(|times| times * traffic)
    }

    /// Returns the longest outage of any target.
    pub fn longest_outage(&self) -> Duration {
        self.targets.iter().map(|target| target.outage.unwrap_or(self.outage)).max().unwrap_or_default()
    }

    /// Returns the ARNs of all target functions, as a value for the environment variable `TARGET_FUNCTIONS`.
    pub fn target_functions(&self) -> String {
        self.targets.iter().map(SimulatedTarget::arn).collect::<Vec<_>>().join(",")
    }

    /// Draws the index of an event's target from the seed and the event's number.
    pub(crate) fn target_of(&self, event: EventNumber) -> usize {
        if self.targets.len() == 1 {
            return 0;
        }
        let seed = self.seed.wrapping_add((event.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let all: f64 = self.targets.iter().map(|target| target.share).sum();
        let mut left = Xoshiro256PlusPlus::seed_from_u64(seed).random_range(0.0..all);
        let drawn = self.targets.iter().position(|target| {
            left -= target.share;
            left < 0.0
        });
        drawn.unwrap_or(self.targets.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_whose_sum_is_not_finite_are_refused() {
        let target = |name: &str| SimulatedTarget { name: name.into(), share: 1e308, outage: None };
        let scenario = Scenario { targets: vec![target("orders"), target("a")], ..Scenario::default() };
        let refused = scenario.check().unwrap_err();
        assert_eq!(refused.iter().map(|it| it.range).collect::<Vec<_>>(), ["shares with a finite sum"]);
    }

    #[test]
    fn events_follow_the_targets_shares() {
        let target = |share| SimulatedTarget { share, ..SimulatedTarget::default() };
        let targets = vec![target(7.0), target(1.0), target(2.0)];
        let scenario = Scenario { targets, ..Scenario::default() };
        let mut counts = [0; 3];
        (0..10_000).for_each(|event| counts[scenario.target_of(EventNumber(event))] += 1);
        for (count, expected) in counts.into_iter().zip([7_000i32, 1_000, 2_000]) {
            assert!((count - expected).abs() < 200, "{counts:?}");
        }
    }
}
