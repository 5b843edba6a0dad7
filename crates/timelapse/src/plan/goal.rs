use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::scenario::ScenarioError;

/// From a second, the least that SQS counts, to its longest retention.
const TIMES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(14 * 86_400);

/// What is to be recovered from, and how soon.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// Everything random is drawn from it.
    pub seed: u64,
    /// For how long every invocation of the target fails; 1 s to 14 days.
    #[serde(rename = "outage_seconds", serialize_with = "seconds")]
    pub outage: Duration,
    /// Events that reach the target in a second, more than 0. All that do so in the outage fail.
    pub events_per_second: f64,
    /// From the end of the outage until 99 in 100 of these are delivered; 1 s to 14 days.
    #[serde(rename = "recover_within_seconds", serialize_with = "seconds")]
    pub recover_within: Duration,
    /// Share of the events that fail every time, whether or not there is an outage; from 0 to less than 1.
    pub never_succeed: f64,
}

/// The example of the documentation.
impl Default for Goal {
    fn default() -> Self {
        Self {
            seed: 1,
            outage: Duration::from_secs(3 * 3_600),
            events_per_second: 10.0,
            recover_within: Duration::from_secs(30 * 60),
            never_succeed: 0.0,
        }
    }
}

impl Goal {
    /// The events that the outage hits and that can succeed.
    pub fn events_to_recover(&self) -> f64 {
        self.events_per_second * (1.0 - self.never_succeed) * self.outage.as_secs_f64()
    }

    /// Checks it.
    ///
    /// # Errors
    ///
    /// All that was refused, not only the first.
    pub fn check(&self) -> Result<(), Vec<ScenarioError>> {
        let Self { outage, events_per_second: rate, recover_within, never_succeed, .. } = self;
        let time = "1 s to 14 days";
        let checks = [
            ("outage", time, TIMES.contains(outage), format!("{outage:?}")),
            ("rate", "more than 0", rate.is_finite() && *rate > 0.0, rate.to_string()),
            ("recover-within", time, TIMES.contains(recover_within), format!("{recover_within:?}")),
            (
                "never-succeed",
                "at least 0 and less than 1",
                (0.0..1.0).contains(never_succeed),
                never_succeed.to_string(),
            ),
        ];
        let refused = checks.into_iter().filter(|(.., valid, _)| !valid);
        let refused: Vec<_> =
            refused.map(|(setting, range, _, value)| ScenarioError { setting, value, range }).collect();
        if refused.is_empty() { Ok(()) } else { Err(refused) }
    }
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
