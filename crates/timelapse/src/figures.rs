//! The figures for a run: [`Tallies`] counts them during the run, and a [`Summary`] presents them at its end.

pub mod prices;

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::Timestamp;
use serde::Serialize;

use crate::aws::agenda::START;
use crate::aws::queue::Depth;
use crate::check::ledger::{EventOutcome, FaultCounts, Ledger};
use crate::event::EventNumber;
use crate::scenario::Scenario;
use prices::{ApiCall, CallCounts};

#[derive(Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) calls: CallCounts,
    /// Number of log lines about the handler's decisions.
    pub(crate) decisions: u64,
    pub(crate) retries: u64,
    pub(crate) moves: u64,
    /// Number of moves made while the number of messages in flight was below half of `HIDE_UP_TO`.
    pub(crate) moves_with_room: u64,
    pub(crate) minutes: Vec<Minute>,
    /// Number of retries in each minute, for each target.
    retries_by_target: Vec<Vec<u32>>,
}

/// Figures for one minute of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Minute {
    /// Number of re-invocations.
    pub retries: u32,
    /// Number of invocations of the target that succeeded.
    pub delivered: u32,
    /// Number of dead-lettered events.
    pub dead_lettered: u32,
    /// Peak number of messages in flight: hidden or being handled.
    pub in_flight: u32,
    /// Peak number of visible messages.
    pub visible: u32,
    /// Peak number of delayed messages.
    pub delayed: u32,
}

impl Tallies {
    pub(crate) fn until(end: Timestamp, targets: usize) -> Self {
        let minutes = index(end) + 1;
        Self {
            minutes: vec![Minute::default(); minutes],
            retries_by_target: vec![vec![0; minutes]; targets],
            ..Self::default()
        }
    }

    pub(crate) fn retry_of(&mut self, target: usize, now: Timestamp) {
        self.retries += 1;
        self.minute(now).retries += 1;
        self.retries_by_target[target][index(now)] += 1;
    }

    pub(crate) fn minute(&mut self, now: Timestamp) -> &mut Minute {
        &mut self.minutes[index(now)]
    }

    pub(crate) fn note_depth(&mut self, from: Timestamp, until: Timestamp, depth: Depth) {
        let [visible, in_flight, delayed] = [depth.visible, depth.in_flight, depth.delayed]
            .map(|messages| u32::try_from(messages).unwrap_or(u32::MAX));
        for minute in &mut self.minutes[index(from)..=index(until)] {
            minute.in_flight = minute.in_flight.max(in_flight);
            minute.visible = minute.visible.max(visible);
            minute.delayed = minute.delayed.max(delayed);
        }
    }
}

fn index(moment: Timestamp) -> usize {
    moment.since(START).as_secs() as usize / 60
}

/// Figures for a run: `delivered` + `dead_lettered` + `waiting` + `not_arrived` = `events`.
///
/// An event arrives when its target is first invoked.
///
/// No figure depends on the machine. Later versions may add members to the JSON, but will not rename any. The last four
/// fields are not part of the JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario's seed for random numbers.
    pub seed: u64,
    /// Number of events in the scenario.
    pub events: usize,
    /// Virtual duration of the run, in seconds.
    pub virtual_seconds: u64,
    /// Number of events that an invocation of the target handled successfully.
    pub delivered: usize,
    /// Number of dead-lettered events, by reason; SQS itself causes `max_receive_count` and `expired`.
    pub dead_lettered: BTreeMap<&'static str, usize>,
    /// Number of events that are still waiting for a retry at the end of the run.
    pub waiting: usize,
    /// Number of events that had not arrived by the end of the run.
    pub not_arrived: usize,
    /// Number of re-invocations that Lambda accepted.
    pub retries: u64,
    /// Percentiles of the number of retries per event, for the events that arrived. `None` if none arrived. If faults
    /// split an event into several chains of retries, only the longest chain counts.
    pub attempts: Option<Percentiles>,
    /// Milliseconds from the outage's end to the delivery of each event that arrived during it; `None` if none was
    /// delivered.
    pub recovery_delay_ms: Option<Percentiles>,
    /// Peak number of messages in flight.
    pub peak_in_flight: usize,
    /// In-flight limit of the scenario's queue.
    pub in_flight_limit: usize,
    /// Peak number of visible messages.
    pub peak_visible: usize,
    /// Peak number of delayed messages.
    pub peak_delayed: usize,
    /// Number of moves: messages sent again with a delay instead of being hidden.
    pub moves: u64,
    /// Number of moves made while the number of messages in flight was below half of `HIDE_UP_TO`. Such moves happen
    /// because a handler environment cannot use another environment's share of `HIDE_UP_TO`.
    pub moves_with_room: u64,
    /// Number of calls to each AWS API.
    pub api_calls: CallCounts,
    /// Compute used by the retry handler, in GB-seconds.
    pub handler_gb_seconds: f64,
    /// Compute used by the target's retries, in GB-seconds.
    pub target_gb_seconds: f64,
    /// Bytes that CloudWatch Logs ingests from the handler and from the target's retries.
    pub log_bytes: u64,
    /// List price of the calls, the compute and the logs, in US dollars.
    pub cost_usd: f64,
    /// Figures for each target; empty, and omitted from the JSON, if there is only one target.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetFigures>,
    /// Counts of the faults that struck; `None`, and omitted from the JSON, if no fault could strike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultCounts>,
    /// The run, minute by minute.
    #[serde(skip)]
    pub minutes: Vec<Minute>,
    /// Numbers of events that arrived and got 0 retries, 1 retry, 2 retries and so on.
    #[serde(skip)]
    pub events_by_attempts: Vec<usize>,
    /// Number of events that arrived during the outage, delivered or not.
    #[serde(skip)]
    pub events_hit: usize,
    /// The values behind `recovery_delay_ms`, in ascending order.
    #[serde(skip)]
    pub recovery_delays_ms: Vec<u64>,
}

impl Summary {
    /// Computes the figures for a finished run.
    pub(crate) fn of(
        scenario: &Scenario,
        tallies: Tallies,
        ledger: Ledger,
        struck: Option<BTreeMap<&'static str, u64>>,
    ) -> Self {
        let Tallies { calls, decisions, retries, moves, moves_with_room, minutes, retries_by_target } =
            tallies;
        let (all, events_by_attempts) = TargetFigures::of(scenario, &ledger, |_| true);
        let with_names = scenario.targets.iter().zip(retries_by_target).enumerate();
        let targets = with_names.filter(|_| scenario.targets.len() > 1).map(|(index, (target, retries))| {
            let (figures, _) = TargetFigures::of(scenario, &ledger, |target| target == index);
            TargetFigures { target: target.name.clone(), retries_by_minute: retries, ..figures }
        });
        let targets = targets.collect();
        let handler_runs = calls.of(ApiCall::InvokeHandler);
        let handler = prices::gb_seconds(handler_runs, scenario.handler_run_time, prices::HANDLER_MEMORY_GB);
        let target = prices::gb_seconds(retries, scenario.run_time, prices::TARGET_MEMORY_GB);
        let log_bytes = prices::log_bytes(decisions, handler_runs + retries);
        let peak = |depth: fn(&Minute) -> u32| minutes.iter().map(depth).max().unwrap_or_default() as usize;
        Self {
            seed: scenario.seed,
            events: scenario.events,
            virtual_seconds: scenario.duration.as_secs(),
            delivered: all.delivered,
            dead_lettered: all.dead_lettered,
            waiting: all.waiting,
            not_arrived: all.not_arrived,
            retries,
            events_by_attempts,
            attempts: all.attempts,
            recovery_delay_ms: all.recovery_delay_ms,
            peak_in_flight: peak(|minute| minute.in_flight),
            in_flight_limit: scenario.in_flight_limit,
            peak_visible: peak(|minute| minute.visible),
            peak_delayed: peak(|minute| minute.delayed),
            moves,
            moves_with_room,
            api_calls: calls,
            handler_gb_seconds: rounded(handler),
            target_gb_seconds: rounded(target),
            log_bytes,
            cost_usd: rounded(prices::usd(
                &ApiCall::ALL.map(|call| (call, calls.requests(call))),
                handler + target,
                log_bytes,
            )),
            targets,
            faults: struck.map(|struck| FaultCounts { struck, ..ledger.faults }),
            minutes,
            events_hit: all.events_hit,
            recovery_delays_ms: all.recovery_delays_ms,
        }
    }

    /// Virtual duration of the run.
    pub fn virtual_time(&self) -> Duration {
        Duration::from_secs(self.virtual_seconds)
    }
}

/// Figures for one target: `delivered` + `dead_lettered` + `waiting` + `not_arrived` = `events`.
///
/// The last three fields are not part of the JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TargetFigures {
    /// Name of the target.
    pub target: String,
    /// Number of events for this target.
    pub events: usize,
    /// Number of events that this target handled successfully.
    pub delivered: usize,
    /// Number of dead-lettered events, by reason.
    pub dead_lettered: BTreeMap<&'static str, usize>,
    /// Number of events that are still waiting for a retry at the end of the run.
    pub waiting: usize,
    /// Number of events that had not arrived by the end of the run.
    pub not_arrived: usize,
    /// Percentiles of the number of retries per event, for the events that arrived. `None` if none arrived. If faults
    /// split an event into several chains of retries, only the longest chain counts.
    pub attempts: Option<Percentiles>,
    /// Milliseconds from the end of this target's outage to the delivery of an event that arrived during the outage.
    /// `None` if no such event was delivered.
    pub recovery_delay_ms: Option<Percentiles>,
    /// Number of this target's retries in each minute.
    #[serde(skip)]
    pub retries_by_minute: Vec<u32>,
    /// Number of events that arrived during this target's outage, delivered or not.
    #[serde(skip)]
    pub events_hit: usize,
    /// The values behind `recovery_delay_ms`, in ascending order.
    #[serde(skip)]
    pub recovery_delays_ms: Vec<u64>,
}

impl TargetFigures {
    /// Returns the figures for the targets that `is_counted` selects by index. Also returns a vector, whose item `n`
    /// is the number of events that arrived and were retried `n` times.
    pub(crate) fn of(
        scenario: &Scenario,
        ledger: &Ledger,
        is_counted: impl Fn(usize) -> bool,
    ) -> (Self, Vec<usize>) {
        let (mut figures, mut attempts, mut events_by_attempts) = (Self::default(), Vec::new(), Vec::new());
        for (event, life) in ledger.lives.iter().enumerate() {
            let target = scenario.target_of(EventNumber(event));
            if !is_counted(target) {
                continue;
            }
            figures.events += 1;
            match life.end().expect("BUG: the run went on after an event had vanished") {
                EventOutcome::Delivered => figures.delivered += 1,
                EventOutcome::Waiting => figures.waiting += 1,
                EventOutcome::NotArrived => figures.not_arrived += 1,
                EventOutcome::DeadLettered(reason) => *figures.dead_lettered.entry(reason).or_default() += 1,
            }
            let Some(arrived) = life.arrived else { continue };
            attempts.push(life.attempts);
            let made = life.attempts as usize;
            events_by_attempts.resize(events_by_attempts.len().max(made + 1), 0);
            events_by_attempts[made] += 1;
            let outage_end = scenario.outage_end(target);
            if arrived < outage_end {
                figures.events_hit += 1;
                let delay = |delivered: Timestamp| delivered.since(outage_end).as_millis() as u64;
                figures.recovery_delays_ms.extend(life.delivered.map(delay));
            }
        }
        figures.recovery_delays_ms.sort_unstable();
        figures.attempts = Percentiles::of(attempts);
        figures.recovery_delay_ms = Percentiles::of(figures.recovery_delays_ms.clone());
        (figures, events_by_attempts)
    }
}

/// Rounds to the nearest millionth, which removes floating-point errors from the last digits.
fn rounded(figure: f64) -> f64 {
    (figure * 1e6).round() / 1e6
}

/// Median, 99th percentile and maximum of a set of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Median of the values.
    pub p50: u64,
    /// 99th percentile of the values.
    pub p99: u64,
    /// Maximum of the values.
    pub max: u64,
}

impl Percentiles {
    /// Computes the percentiles by the nearest-rank method. Returns `None` if there are no values.
    ///
    /// ```
    /// use comeback_timelapse::Percentiles;
    ///
    /// let percentiles = Percentiles::of((1..=200).collect());
    /// assert_eq!(percentiles, Some(Percentiles { p50: 100, p99: 198, max: 200 }));
    /// ```
    pub fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let rank = |percent| nearest_rank(&values, percent);
        Some(Self { p50: rank(50)?, p99: rank(99)?, max: rank(100)? })
    }
}

/// Returns a percentile of the sorted values by the nearest-rank method; `None` if there are no values.
pub(crate) fn nearest_rank<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    sorted.get((sorted.len() * percent).div_ceil(100).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minute_has_the_maximum_of_each_depth() {
        let at = |secs| START.saturating_add(Duration::from_secs(secs));
        let mut tallies = Tallies::until(at(180), 1);
        tallies.note_depth(at(0), at(10), Depth { visible: 1, in_flight: 20, delayed: 300 });
        tallies.note_depth(at(10), at(70), Depth { visible: 3, in_flight: 30, delayed: 100 });
        let depths: Vec<[u32; 3]> =
            tallies.minutes.iter().map(|it| [it.visible, it.in_flight, it.delayed]).collect();
        assert_eq!(depths, [[3, 30, 300], [3, 30, 100], [0, 0, 0], [0, 0, 0]]);
    }
}
