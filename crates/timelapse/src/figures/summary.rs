use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::calls::{ApiCall, CallCounts};
use super::percentiles::Percentiles;
use super::prices;
use crate::check::invariants::Broken;
use crate::scenario::Scenario;
use crate::world::World;
use crate::world::minutes::Minute;

/// The figures of a run. `delivered` + `dead_lettered` + `waiting` + `not_arrived` = `events`, always.
///
/// Its JSON has the members below in this order, and no figure of the machine it was made on: the
/// same scenario, policy and version give the same bytes. Members may be added, never renamed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario's.
    pub seed: u64,
    /// The scenario's.
    pub events: usize,
    /// Length of the run.
    pub virtual_seconds: u64,
    /// Events for which a run of the target succeeded.
    pub delivered: usize,
    /// Events that were given up, by the reason in their dead-letter. Two reasons are not the
    /// handler's: `max_receive_count`, where SQS itself moved the message to the dead-letter queue,
    /// and `expired`, where SQS deleted it after 14 days.
    pub dead_lettered: BTreeMap<&'static str, usize>,
    /// Events still on their way.
    pub waiting: usize,
    /// Events that the run ended before: they were to arrive later.
    pub not_arrived: usize,
    /// Re-invocations that Lambda accepted.
    pub retries: u64,
    /// Of each event that arrived, the number of its last attempt: 0 if it was never retried.
    pub attempts: Option<Percentiles>,
    /// Of each event that arrived during the outage and was delivered, the time from the outage's
    /// end to its delivery, in milliseconds.
    pub recovery_delay_ms: Option<Percentiles>,
    /// Most messages in flight at once.
    pub peak_in_flight: usize,
    /// The scenario's.
    pub in_flight_limit: usize,
    /// Most messages visible at once: ready, and not yet received. They pile up where there are too few
    /// pollers (`MaximumConcurrency`), or at the in-flight limit.
    pub peak_visible: usize,
    /// Most messages delayed at once: sent again, and neither visible nor in flight until their delay is over.
    pub peak_delayed: usize,
    /// Times that a message was sent again with a delay instead of being hidden.
    pub moves: u64,
    /// Of those, the ones made while messages in flight were under half of `HIDE_UP_TO`: each environment
    /// of the handler has a share of the room, and cannot use another's.
    pub moves_with_room: u64,
    /// How often each API call was made.
    pub api_calls: CallCounts,
    /// Compute of the retry handler, in GB-seconds.
    pub handler_gb_seconds: f64,
    /// Compute of the target's retries, in GB-seconds; its first invocations are not counted.
    pub target_gb_seconds: f64,
    /// What CloudWatch Logs takes in: the handler's lines, and Lambda's own of the handler and of the
    /// target's retries.
    pub log_bytes: u64,
    /// List price of the calls, the compute and the logs, in US dollars.
    pub cost_usd: f64,
    /// What went wrong besides the target; `None`, and not in the JSON, if no fault could strike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultCounts>,
    /// The run minute by minute. Not part of the JSON.
    #[serde(skip)]
    pub minutes: Vec<Minute>,
    /// How many of the events that arrived had 0 attempts (were never retried), 1 attempt, and so on.
    /// Not part of the JSON.
    #[serde(skip)]
    pub events_by_attempts: Vec<usize>,
    /// Events that arrived during the outage, delivered or not. Not part of the JSON.
    #[serde(skip)]
    pub events_hit: usize,
    /// The delays behind `recovery_delay_ms`, in ascending order. Not part of the JSON.
    #[serde(skip)]
    pub recovery_delays_ms: Vec<u64>,
}

/// How often faults struck in a run, and the duplicates they led to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaultCounts {
    /// Of each fault that could strike, by name: how often it did.
    pub struck: BTreeMap<&'static str, u64>,
    /// Re-invocations of a message that had been re-invoked or dead-lettered before.
    pub duplicate_retries: u64,
    /// Dead-letters of a message that had been.
    pub duplicate_dead_letters: u64,
    /// Copies of a message that had been, or that had a copy.
    pub duplicate_moves: u64,
}

impl Summary {
    /// The figures of a run that has ended. An error if an event has vanished.
    pub(crate) fn of(mut world: World) -> Result<Self, Broken> {
        let scenario: Scenario = world.scenario.clone();
        world.advance(scenario.end());
        world.calls.add(ApiCall::ReceiveMessage, world.mapping.empty_polls(scenario.end()));
        let balance = world.ledger.balance()?;
        let calls = world.calls;
        let handler = prices::gb_seconds(
            calls.of(ApiCall::InvokeHandler),
            scenario.handler_run_time,
            prices::HANDLER_MEMORY_GB,
        );
        let retries = world.retries;
        let target = prices::gb_seconds(retries, scenario.run_time, prices::TARGET_MEMORY_GB);
        let attempts = world.ledger.attempts();
        let (events_hit, recovery_delays_ms) = world.ledger.recovery(scenario.outage_end());
        let requests = ApiCall::ALL.map(|call| prices::requests(call, calls.requests(call)));
        let log_bytes = prices::log_bytes(world.decisions, calls.of(ApiCall::InvokeHandler) + retries);
        let faults = world.dice.struck().map(|struck| FaultCounts {
            struck: struck.into_iter().map(|(fault, count)| (fault.name(), count)).collect(),
            duplicate_retries: world.duplicate_retries,
            duplicate_dead_letters: world.duplicate_dead_letters,
            duplicate_moves: world.duplicate_moves,
        });
        let minutes = world.minutes.into_vec();
        let peak = |depth: fn(&Minute) -> u32| minutes.iter().map(depth).max().unwrap_or_default() as usize;
        Ok(Self {
            seed: scenario.seed,
            events: scenario.events,
            virtual_seconds: scenario.duration.as_secs(),
            delivered: balance.delivered,
            dead_lettered: balance.given_up,
            waiting: balance.waiting,
            not_arrived: balance.not_arrived,
            retries,
            events_by_attempts: counts(&attempts),
            attempts: Percentiles::of(attempts),
            recovery_delay_ms: Percentiles::of(recovery_delays_ms.clone()),
            peak_in_flight: peak(|minute| minute.in_flight),
            in_flight_limit: scenario.in_flight_limit,
            peak_visible: peak(|minute| minute.visible),
            peak_delayed: peak(|minute| minute.delayed),
            moves: world.moves,
            moves_with_room: world.moves_with_room,
            api_calls: calls,
            handler_gb_seconds: rounded(handler),
            target_gb_seconds: rounded(target),
            log_bytes,
            cost_usd: rounded(
                requests.iter().sum::<f64>()
                    + prices::compute(handler)
                    + prices::compute(target)
                    + prices::logs(log_bytes),
            ),
            faults,
            minutes,
            events_hit,
            recovery_delays_ms,
        })
    }

    /// Length of the run.
    pub fn virtual_time(&self) -> Duration {
        Duration::from_secs(self.virtual_seconds)
    }
}

/// How often each value occurs, from 0 to the largest.
fn counts(values: &[u64]) -> Vec<usize> {
    let mut counts = vec![0; values.iter().max().map_or(0, |&most| most as usize + 1)];
    for &value in values {
        counts[value as usize] += 1;
    }
    counts
}

/// To a millionth, which hides the last bits of floating-point arithmetic.
fn rounded(figure: f64) -> f64 {
    (figure * 1e6).round() / 1e6
}
