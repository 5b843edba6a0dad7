use serde::Serialize;

use super::Schedule;

/// How many messages events that keep failing have in flight: arrival rate × time an event waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InFlight {
    /// Events a second that fail, and fail every time.
    pub events_per_second: f64,
    /// How long an event is in flight, from its first failure to its last retry: the mean.
    pub mean_wait_seconds: f64,
    /// Messages in flight once as many events are given up as arrive, if there were no limit.
    pub in_flight: f64,
    /// The queue's limit.
    pub in_flight_limit: usize,
    /// From the first of these failures until the limit is reached; none if it never is.
    pub full_after_seconds: Option<f64>,
    /// Above this rate the limit is reached in the end; none where nothing is ever in flight.
    pub highest_events_per_second: Option<f64>,
}

impl Schedule {
    /// What becomes of the in-flight limit when this many events a second fail every time. By
    /// Little's law, L = λ · W; while the target has been down for a time `t` only, an event has
    /// waited for `t` at most.
    ///
    /// ```
    /// use comeback_engine::{Policy, Settings};
    /// use comeback_timelapse::{IN_FLIGHT_LIMIT, Schedule, TARGET_ARN};
    ///
    /// let policy = Policy::new(Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() }).unwrap();
    /// let in_flight = Schedule::of(&policy, 1, 500, &|| {}).in_flight(10.0, IN_FLIGHT_LIMIT);
    /// assert_eq!(in_flight.full_after_seconds, Some(12_000.0)); // 3 h 20 min of 10 a second are 120,000.
    /// ```
    pub fn in_flight(&self, events_per_second: f64, limit: usize) -> InFlight {
        let events = self.waits.len().max(1) as f64;
        let mean = self.waits.iter().copied().map(f64::from).sum::<f64>() / events;
        InFlight {
            events_per_second,
            mean_wait_seconds: mean,
            in_flight: events_per_second * mean,
            in_flight_limit: limit,
            full_after_seconds: self.mean_wait_reaches(limit as f64 / events_per_second),
            highest_events_per_second: (mean > 0.0).then(|| limit as f64 / mean),
        }
    }

    /// When the mean of min(`t`, wait) is this many seconds: `t`, or none if it never is. Between two
    /// waits next to each other the mean rises in a straight line.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::RetriesMade;

    fn schedule(waits: &[u32]) -> Schedule {
        let retries_made = RetriesMade { mean: 0.0, min: 0, p5: 0, p95: 0, max: 0 };
        let (given_up, retries, waits) = (Default::default(), Vec::new(), waits.to_vec());
        Schedule { seed: 1, events: waits.len(), retries_made, given_up, retries, waits }
    }

    #[test]
    fn rate_times_wait_is_in_flight() {
        let in_flight = schedule(&[100, 300]).in_flight(2.0, 1_000);
        assert_eq!((in_flight.mean_wait_seconds, in_flight.in_flight), (200.0, 400.0));
        assert_eq!((in_flight.full_after_seconds, in_flight.highest_events_per_second), (None, Some(5.0)));
    }

    #[test]
    fn the_limit_is_reached_while_some_have_already_been_given_up() {
        let full_after = |rate, limit| schedule(&[100, 300]).in_flight(rate, limit).full_after_seconds;
        assert_eq!(full_after(10.0, 1_000), Some(100.0), "nobody has been given up yet");
        assert_eq!(full_after(10.0, 500), Some(50.0));
        // After 100 s half of the events are given up in time: 10 a second, then 5.
        assert_eq!(full_after(10.0, 1_500), Some(200.0));
        assert_eq!(full_after(10.0, 2_000), Some(300.0), "the limit is reached exactly");
        assert_eq!(full_after(10.0, 2_001), None);
    }

    #[test]
    fn nothing_is_in_flight_without_a_retry() {
        let in_flight = schedule(&[0, 0]).in_flight(1e6, 120_000);
        assert_eq!((in_flight.in_flight, in_flight.full_after_seconds), (0.0, None));
        assert_eq!(in_flight.highest_events_per_second, None);
    }
}
