//! The input of a run, apart from the policy.

use std::ops::RangeInclusive;
use std::time::Duration;

use comeback_engine::{HANDLER_TIMEOUT, PauseTarget, Policies, Timestamp};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::aws::agenda::START;
use crate::aws::mapping::LONG_POLL;
use crate::aws::queue::IN_FLIGHT_LIMIT;
use crate::faults::mix::Faults;
use crate::faults::records::UNLISTED_ARN;
use crate::operators::{OperatorCancel, OperatorPause, OperatorRetry, Parameter};
use crate::targets::SimulatedTarget;

const MINUTE: Duration = Duration::from_secs(60);
const YEAR: Duration = Duration::from_secs(365 * 86_400);
/// The range of waits that a target may request: SQS keeps no message longer.
const ASKED: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(14 * 86_400);

/// Lambda drops a failure's record over SQS's 1 MiB. The record has up to 2 KiB besides the payload.
const LARGEST_PAYLOAD: usize = (1_024 - 2) * 1_024;

/// The input of a run, apart from the policy. The default is the rehearsal of `comeback simulate`: 1,000 events, whose
/// target is down for the first 3 of 24 hours.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Seeds everything random.
    pub seed: u64,
    /// The functions that the events are for; at least one.
    pub targets: Vec<SimulatedTarget>,
    /// Events that reach the targets, each once; 1 to 10,000,000.
    pub events: usize,
    /// Events arrive at random moments, spread evenly over this time from the start.
    pub arrival_spread: Duration,
    /// Every invocation that begins within this time from the start fails, unless its target has an outage of its own.
    pub outage: Duration,
    /// Share of the invocations after the outage that fail; 0 to 1.
    pub failure_rate: f64,
    /// Share of the events that always fail; 0 to 1.
    pub poison: f64,
    /// If set, the target is down and up in turns of this length during its outage.
    pub flapping: Option<Duration>,
    /// If set, an invocation of a target that is down takes this long, until its timeout ends it; at most 15 minutes.
    pub hang: Option<Duration>,
    /// If set, the target handles this multiple of its usual traffic in each minute, and fails the rest.
    pub capacity: Option<f64>,
    /// The wait that the target requests with `RetryAfter` whenever it fails; whole seconds, at most 14 days.
    pub retry_after: Option<Duration>,
    /// Minimum size of a payload in bytes, at most 1,046,528; otherwise payloads have about 100.
    pub payload_size: usize,
    /// Run time of an invocation of the target, failed or not; at most 15 minutes.
    pub run_time: Duration,
    /// Virtual time of the whole run; at most 365 days.
    pub duration: Duration,
    /// Maximum number of messages in a batch; 1 to 10.
    pub batch_size: usize,
    /// Run time of the retry handler for a batch; at most its timeout of 60 s. Its calls reach AWS at the end.
    pub handler_run_time: Duration,
    /// Time that a visible message waits for a poller; at most 20 s, a long poll.
    pub poll_delay: Duration,
    /// Limit of messages in flight at once, [`IN_FLIGHT_LIMIT`] in SQS.
    pub in_flight_limit: usize,
    /// Faults besides the target's failures.
    pub faults: Faults,
    /// Pauses that operators open. Without pauses and requests, the handler reads no parameter.
    pub pauses: Vec<OperatorPause>,
    /// Retry requests that operators make.
    pub retries: Vec<OperatorRetry>,
    /// Operators' requests to cancel waiting events.
    pub cancels: Vec<OperatorCancel>,
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
            pauses: Vec::new(),
            retries: Vec::new(),
            cancels: Vec::new(),
        }
    }
}

/// A setting of a [`Scenario`] that was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{setting} is {value}; it must be {range}")]
pub struct ScenarioError {
    /// Its name, in the words of the command line.
    pub setting: &'static str,
    /// Its value.
    pub value: String,
    /// The accepted values.
    pub range: &'static str,
}

/// New policies during a run. The queue-wide settings must stay the same.
#[derive(Clone, Debug)]
pub struct PolicyChange {
    /// When they come into force, counted from the start.
    pub at: Duration,
    /// The policies from then on.
    pub policies: Policies,
}

impl Scenario {
    /// Draws the moments at which events arrive, latest first.
    pub(crate) fn arrivals(&self, seed: u64) -> Vec<Timestamp> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let spread = self.arrival_spread.as_millis() as u64;
        let mut moments: Vec<Timestamp> = (0..self.events)
            .map(|_| START.saturating_add(Duration::from_millis(rng.random_range(0..=spread))))
            .collect();
        moments.sort_unstable_by(|one, other| other.cmp(one));
        moments
    }

    /// Checks every setting. The error lists all that were refused.
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
        let fit = self.pauses.iter().all(OperatorPause::is_valid)
            && Parameter::of(&self.pauses, &[], &[], None).is_ok();
        let range = "whole seconds, with a spread of at most 14 days, and one at a time";
        check("pauses", range, fit, format!("{:?}", self.pauses));
        let fit = self.retries.iter().all(OperatorRetry::is_valid)
            && Parameter::of(&[], &self.retries, &[], None).is_ok();
        let range = "whole seconds, within at most 11 hours, and few at a time";
        check("retries", range, fit, format!("{:?}", self.retries));
        let fit = self.cancels.iter().all(OperatorCancel::is_valid)
            && Parameter::of(&[], &[], &self.cancels, None).is_ok();
        let range = "whole seconds, and few at a time";
        check("cancels", range, fit, format!("{:?}", self.cancels));
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
        let is_one_paused = self.pauses.iter().any(|pause| pause.target != PauseTarget::All);
        let are_default = self.targets.iter().all(|target| target.name == SimulatedTarget::DEFAULT_NAME);
        let fit = !self.targets.is_empty() && (are_default || !is_one_paused);
        check(fit, "at least one, and only orders if a function is paused", self.targets.len().to_string());
        refused
    }

    /// Returns true if the handler reads the pauses' parameter.
    pub(crate) const fn reads_pauses(&self) -> bool {
        !self.pauses.is_empty() || !self.retries.is_empty() || !self.cancels.is_empty()
    }

    pub(crate) fn end(&self) -> Timestamp {
        START.saturating_add(self.duration)
    }

    /// When the outage of a target ends, by its position.
    pub(crate) fn outage_end(&self, target: usize) -> Timestamp {
        self.targets[target].outage_end(self.outage)
    }

    /// Mean number of invocations a minute that a target handles, by its position.
    pub(crate) fn capacity_of(&self, target: usize) -> Option<f64> {
        let all: f64 = self.targets.iter().map(|target| target.share).sum();
        let minutes = self.arrival_spread.as_secs_f64().max(60.0) / 60.0;
        let traffic = self.events as f64 / minutes * self.targets[target].share / all;
        self.capacity.map(|times| times * traffic)
    }

    /// The longest outage of any target.
    pub fn longest_outage(&self) -> Duration {
        self.targets.iter().map(|target| target.outage.unwrap_or(self.outage)).max().unwrap_or_default()
    }

    /// The functions, as `TARGET_FUNCTIONS` lists them.
    pub fn target_functions(&self) -> String {
        self.targets.iter().map(SimulatedTarget::arn).collect::<Vec<_>>().join(",")
    }
}
