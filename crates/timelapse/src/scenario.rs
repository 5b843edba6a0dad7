use std::ops::RangeInclusive;
use std::time::Duration;

use comeback_engine::{HANDLER_TIMEOUT, Timestamp};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::aws::agenda::START;
use crate::aws::queue::IN_FLIGHT_LIMIT;
use crate::faults::mix::Faults;
use crate::operators::{OperatorPause, parameter};

/// What a target may ask for: SQS keeps no message longer.
const ASKED: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(14 * 86_400);

/// What happens in a run, apart from the policy under test. The default is the rehearsal that
/// `comeback simulate` makes: 1,000 events, their target down for the first 3 of 24 hours.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Everything random is drawn from it.
    pub seed: u64,
    /// Events that reach the target, each once; 1 to 10,000,000.
    pub events: usize,
    /// They arrive at random moments, evenly spread from the start over this time.
    pub arrival_spread: Duration,
    /// Every invocation that begins within this time from the start fails.
    pub outage: Duration,
    /// Of the invocations that begin after the outage, the share that fails; 0 to 1.
    pub failure_rate: f64,
    /// What the target asks for with `RetryAfter` whenever it fails; whole seconds, at most 14 days.
    pub retry_after: Option<Duration>,
    /// Bytes that each payload has at least, at most 1,048,576; the simulated ones have about 100.
    pub payload_size: usize,
    /// How long an invocation of the target takes, failed or not; at most 15 minutes.
    pub run_time: Duration,
    /// Virtual time of the whole run; at most 365 days.
    pub duration: Duration,
    /// Messages in a batch at most; 1 to 10.
    pub batch_size: usize,
    /// How long the retry handler takes for a batch; at most its timeout of 60 s. Its calls reach
    /// AWS at the end of it.
    pub handler_run_time: Duration,
    /// How long a visible message waits for a poller; at most 20 s, a long poll.
    pub poll_delay: Duration,
    /// Most messages in flight at once, [`IN_FLIGHT_LIMIT`] in SQS.
    pub in_flight_limit: usize,
    /// What goes wrong besides the target.
    pub faults: Faults,
    /// What operators do. Without any pause, the handler has no parameter to read.
    pub pauses: Vec<OperatorPause>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            seed: 1,
            events: 1_000,
            arrival_spread: Duration::from_secs(3 * 3_600),
            outage: Duration::from_secs(3 * 3_600),
            failure_rate: 0.0,
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
    /// What is accepted.
    pub range: &'static str,
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

    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// All that was refused, not only the first.
    pub fn check(&self) -> Result<(), Vec<ScenarioError>> {
        let time = |duration: Duration, most: Duration| (duration <= most, format!("{duration:?}"));
        let count = |n: usize, range: std::ops::RangeInclusive<usize>| (range.contains(&n), n.to_string());
        let year = Duration::from_secs(365 * 86_400);
        let rate = (0.0..=1.0).contains(&self.failure_rate);
        let checks = [
            ("events", "1 to 10000000", count(self.events, 1..=10_000_000)),
            ("arrival-spread", "at most 365 days", time(self.arrival_spread, year)),
            ("outage", "at most 365 days", time(self.outage, year)),
            ("failure-rate", "0 to 1", (rate, self.failure_rate.to_string())),
            (
                "retry-after",
                "whole seconds, 1 s to 14 days",
                (
                    self.retry_after.is_none_or(|wait| wait.subsec_nanos() == 0 && ASKED.contains(&wait)),
                    format!("{:?}", self.retry_after.unwrap_or_default()),
                ),
            ),
            ("payload-size", "at most 1048576, Lambda's own limit", count(self.payload_size, 0..=1_048_576)),
            (
                "run-time",
                "at most 15 minutes, Lambda's own limit",
                time(self.run_time, Duration::from_secs(900)),
            ),
            ("for", "at most 365 days", time(self.duration, year)),
            ("batch-size", "1 to 10", count(self.batch_size, 1..=10)),
            (
                "handler-run-time",
                "at most 60 s, the handler's timeout",
                time(self.handler_run_time, HANDLER_TIMEOUT),
            ),
            ("poll-delay", "at most 20 s, a long poll", time(self.poll_delay, Duration::from_secs(20))),
            ("in-flight-limit", "at least 1", count(self.in_flight_limit, 1..=usize::MAX)),
        ];
        let faults = self.faults.iter().map(|(fault, strikes)| {
            let value = format!("{fault}={}", strikes.rate);
            ("fault", "a rate of 0 to 1, within a window that is not empty", (strikes.is_valid(), value))
        });
        let fit = self.pauses.iter().all(OperatorPause::is_valid)
            && parameter(&self.pauses, Timestamp::from_secs(u64::MAX)).is_ok();
        let pauses = (
            "pauses",
            "whole seconds, with a spread of at most 14 days, and one at a time",
            (fit, format!("{:?}", self.pauses)),
        );
        let errors: Vec<_> = checks
            .into_iter()
            .chain(faults)
            .chain([pauses])
            .filter(|(_, _, (valid, _))| !valid)
            .map(|(setting, range, (_, value))| ScenarioError { setting, value, range })
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The last moment of the run.
    pub(crate) fn end(&self) -> Timestamp {
        START.saturating_add(self.duration)
    }

    /// From here on the target works again.
    pub(crate) fn outage_end(&self) -> Timestamp {
        START.saturating_add(self.outage)
    }
}
