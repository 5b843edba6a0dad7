//! Computes how many events wait, and how many moves they need, if events fail at a steady rate.

use comeback_engine::{HideUpTo, MAXIMUM_CONCURRENCY_RANGE};
use serde::Serialize;

use super::Schedule;
use crate::aws::queue::LONGEST_DELAY;
use crate::figures::prices::usd_a_move;
use crate::scenario::Scenario;

/// Counts of waiting events and their messages, if events keep failing at a steady rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InFlight {
    /// Number of events that arrive per second and fail every time.
    pub events_per_second: f64,
    /// Mean time from an event's first failure to its last retry, in seconds.
    pub mean_wait_seconds: f64,
    /// Number of waiting events in the steady state, when events are dead-lettered as fast as they arrive.
    pub waiting: f64,
    /// Number of messages that would be hidden, and so in flight, if the queue had no in-flight limit; at most about
    /// `HIDE_UP_TO`.
    pub in_flight: f64,
    /// Maximum number of hidden messages between two counts: twice `HIDE_UP_TO`, or `waiting` if that is lower. Does
    /// not include the batches that pollers hold.
    pub in_flight_at_most: f64,
    /// In-flight limit of the queue.
    pub in_flight_limit: usize,
    /// Seconds from the first failure until the in-flight limit is reached; `None` if the limit is never reached.
    pub full_after_seconds: Option<f64>,
    /// Highest rate at which the in-flight limit is never reached, in events per second; `None` if no rate reaches it.
    pub highest_events_per_second: Option<f64>,
    /// Rate and price of moves.
    pub moves: MoveCosts,
    /// Lowest `MAXIMUM_CONCURRENCY` that suffices if each batch is full and takes as long as in the default
    /// [`Scenario`]. It may exceed Lambda's maximum of 1,000.
    pub pollers: u64,
}

impl Schedule {
    /// Estimates the number of messages in flight or delayed if events arrive at this rate and fail every time. Uses
    /// Little's law.
    ///
    /// If `HIDE_UP_TO` is `always`, or at least `limit`, the messages may reach the in-flight limit.
    ///
    /// ```
    /// use comeback_engine::{HideUpTo, Policy, Settings};
    /// use comeback_timelapse::{IN_FLIGHT_LIMIT, Schedule, TARGET_ARN};
    ///
    /// let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() };
    /// let always = Settings { hide_up_to: HideUpTo::Always, ..settings.clone() };
    /// let [moves, always] = [settings, always].map(|settings| {
    ///     let policy = Policy::new(settings).unwrap();
    ///     Schedule::of(&policy, 1, 500, &|| {}).in_flight(10.0, IN_FLIGHT_LIMIT)
    /// });
    /// assert_eq!((moves.full_after_seconds, moves.in_flight), (None, 50_000.0));
    /// assert_eq!(always.full_after_seconds, Some(12_000.0)); // 3 h 20 min at 10 a second make 120,000.
    /// ```
    pub fn in_flight(&self, events_per_second: f64, limit: usize) -> InFlight {
        let mean = self.waits.iter().copied().map(f64::from).sum::<f64>() / self.waits.len().max(1) as f64;
        let waiting = events_per_second * mean;
        let hidden_at_most = match self.hide_up_to {
            HideUpTo::Always => f64::INFINITY,
            HideUpTo::UpTo(messages) => messages as f64,
        };
        let has_a_limit = hidden_at_most >= limit as f64;
        let in_flight = waiting.min(hidden_at_most);
        let moves = MoveCosts::of(events_per_second * self.moves_of_an_event, waiting, in_flight);
        let retries_per_second = events_per_second * self.retries_made.mean;
        InFlight {
            events_per_second,
            mean_wait_seconds: mean,
            waiting,
            in_flight,
            in_flight_at_most: waiting.min(2.0 * hidden_at_most),
            in_flight_limit: limit,
            full_after_seconds: self
                .mean_wait_reaches(limit as f64 / events_per_second)
                .filter(|_| has_a_limit),
            highest_events_per_second: (has_a_limit && mean > 0.0).then(|| limit as f64 / mean),
            moves,
            pollers: pollers(retries_per_second, moves.per_second),
        }
    }

    /// Returns the `t`, in seconds, at which the mean of min(`t`, wait) over all waits reaches `seconds`. Returns
    /// `None` if the mean stays below `seconds`.
    fn mean_wait_reaches(&self, seconds: f64) -> Option<f64> {
        let mut waited = 0.0;
        for (ended, wait) in self.waits.iter().copied().map(f64::from).enumerate() {
            let under_way = (self.waits.len() - ended) as f64;
            let moment = (seconds * self.waits.len() as f64 - waited) / under_way;
            if moment <= wait {
                return Some(moment);
            }
            waited += wait;
        }
        None
    }
}

/// Rate and cost of moves in the steady state.
///
/// The figures are an upper bound: they assume that each hidden message saves only one move every 900 s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MoveCosts {
    /// Number of events that wait as delayed messages.
    pub delayed: f64,
    /// Maximum number of moves a second.
    pub per_second: f64,
    /// Hourly cost of the moves, in US dollars, at list prices and with full batches of small messages.
    pub usd_per_hour: f64,
    /// Cost of the moves per million event-hours of delay, in US dollars, at list prices; `None` if no event is
    /// delayed.
    pub usd_per_million_event_hours: Option<f64>,
}

impl MoveCosts {
    /// Computes the rate and price of the moves if `hidden` of the `waiting` messages are hidden. `all` is the number
    /// of moves a second if no message is hidden.
    pub(super) fn of(all: f64, waiting: f64, hidden: f64) -> Self {
        let delayed = waiting - hidden;
        let saved = hidden / LONGEST_DELAY.as_secs_f64();
        let per_second = if delayed > 0.0 { all - saved } else { 0.0 };
        let usd_per_hour = per_second * 3_600.0 * usd_a_move();
        let usd_per_million_event_hours = (delayed > 0.0).then(|| usd_per_hour / delayed * 1e6);
        Self { delayed, per_second, usd_per_hour, usd_per_million_event_hours }
    }
}

/// Returns the number of concurrent batches that these retries and moves need, at least 2. Each retry's message is
/// received twice: on arrival and when due.
pub(crate) fn pollers(retries_per_second: f64, moves_per_second: f64) -> u64 {
    let Scenario { handler_run_time, batch_size, .. } = Scenario::default();
    let received = 2.0 * retries_per_second + moves_per_second;
    let busy = received * handler_run_time.as_millis() as f64 / (1_000 * batch_size) as f64;
    (busy.ceil() as u64).max(*MAXIMUM_CONCURRENCY_RANGE.start())
}

#[cfg(test)]
mod tests;
