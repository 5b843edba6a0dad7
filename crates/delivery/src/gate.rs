//! How fast the calls of a sender may begin.
//!
//! Every call passes the [`Gate`]. It bounds how many are under way, and while the service throttles it spaces them by
//! the [`Pace`], which is pure: it takes the answers and says how long to wait.
//!
//! The rate falls as the window of DCTCP does ([RFC 8257], section 3.3): by half of the throttled share, here of the
//! entries, at most once for the calls that were under way together. It rises as TCP's does ([RFC 5681], section 3.1):
//! doubled up to where the service last took a part, from there by equal steps. So it swings by a few per cent around
//! what the service takes, and is near it again soon after an outage.
//!
//! [RFC 8257]: https://www.rfc-editor.org/rfc/rfc8257#section-3.3
//! [RFC 5681]: https://www.rfc-editor.org/rfc/rfc5681#section-3.1

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_lock::{Semaphore, SemaphoreGuardArc};

/// Gap after the first throttled call: 10 calls a second.
const FIRST: f64 = 0.1;
/// The longest gap. A service that takes less than a call in 5 s is down.
const LONGEST: f64 = 5.0;
/// A waiting delivery checks its deadline after each step.
const LONGEST_STEP: Duration = Duration::from_secs(1);
/// Timers are no finer.
const SHORTEST: f64 = 0.001;
/// The rate rises by this part of the known one a call.
const STEP: f64 = 1.0 / 16.0;

/// What every call of a sender passes, whichever delivery or clone makes it.
#[derive(Debug)]
pub(crate) struct Gate {
    calls: Arc<Semaphore>,
    /// Held while the next call waits for its turn.
    turn: async_lock::Mutex<()>,
    pace: Mutex<Pace>,
}

/// Permission to make one call.
pub(crate) struct Pass {
    _permit: SemaphoreGuardArc,
    /// The round of the pace in which it began.
    pub(crate) round: u64,
}

impl Gate {
    pub(crate) fn new(concurrency: usize) -> Self {
        Self {
            calls: Arc::new(Semaphore::new(concurrency)),
            turn: async_lock::Mutex::new(()),
            pace: Mutex::default(),
        }
    }

    /// Waits until a call may begin.
    pub(crate) async fn enter<F: Future<Output = ()>>(&self, sleep: impl Fn(Duration) -> F) -> Pass {
        // In this order: who waits longest for a turn is next, whereas a permit goes to whoever asks first.
        let _turn = self.turn.lock().await;
        let permit = self.calls.acquire_arc().await;
        let mut gap_left = self.pace().gap();
        loop {
            let step = self.pace().step(gap_left);
            if step.is_zero() {
                return Pass { _permit: permit, round: self.pace().round };
            }
            sleep(step).await;
            self.pace().waited(step);
            gap_left = gap_left.saturating_sub(step);
        }
    }

    pub(crate) fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pace of one sender.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Seconds between the beginnings of two calls; 0 if nothing is known to be throttled.
    gap: f64,
    /// The gap at which the service last took a part of a call.
    known: Option<f64>,
    /// Counts the times that the rate fell.
    round: u64,
    /// What is left of what the service itself asked for.
    pause: Duration,
    /// What it has asked for since the last step began.
    asked: Duration,
}

impl Pace {
    /// The next part of what a call has to wait for, with what is left to it of the gap; zero if it may begin.
    fn step(&mut self, gap_left: Duration) -> Duration {
        self.pause = self.pause.max(std::mem::take(&mut self.asked));
        gap_left.max(self.pause).min(LONGEST_STEP)
    }

    /// So much of the pause is over.
    fn waited(&mut self, step: Duration) {
        self.pause = self.pause.saturating_sub(step);
    }

    /// The time between the beginnings of two calls.
    pub(crate) fn gap(&self) -> Duration {
        Duration::from_secs_f64(self.gap)
    }

    /// The service asked to be left alone for this long.
    pub(crate) fn pause(&mut self, pause: Duration) {
        self.asked = self.asked.max(pause);
    }

    /// This share of the entries of a call of this round was throttled, 0 to 1, and the others were taken.
    pub(crate) fn answered(&mut self, round: u64, throttled: f64) {
        if round < self.round {
            // It began before the rate fell, and says nothing of the new one.
        } else if throttled > 0.0 {
            self.fall(throttled);
        } else if self.gap > 0.0 {
            self.rise();
        }
    }

    fn fall(&mut self, throttled: f64) {
        let gap = if self.gap > 0.0 { self.gap / (1.0 - throttled / 2.0) } else { FIRST * throttled };
        self.gap = gap.clamp(SHORTEST, LONGEST);
        if throttled < 1.0 {
            self.known = Some(self.gap);
        }
        self.round += 1;
    }

    fn rise(&mut self) {
        self.gap = match self.known {
            Some(known) if self.gap <= known => 1.0 / (1.0 / self.gap + STEP / known),
            Some(known) => (self.gap / 2.0).max(known),
            None => self.gap / 2.0,
        };
        if self.gap < SHORTEST {
            (self.gap, self.known) = (0.0, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Pace {
        fn take(&mut self, throttled: f64) {
            self.answered(self.round, throttled);
        }
    }

    #[test]
    fn without_throttles_nothing_waits() {
        let mut pace = Pace::default();
        (0..10).for_each(|_| pace.take(0.0));
        assert_eq!(pace.gap(), Duration::ZERO);
    }

    #[test]
    fn calls_that_are_throttled_together_slow_it_once() {
        let mut pace = Pace::default();
        let together = [pace.round; 4];
        together.into_iter().for_each(|round| pace.answered(round, 1.0));
        assert_eq!(pace.gap(), Duration::from_millis(100));
        pace.take(1.0);
        assert_eq!(pace.gap(), Duration::from_millis(200), "half as fast");
    }

    #[test]
    fn a_small_share_slows_it_little() {
        let mut pace = Pace::default();
        pace.take(1.0 / 500.0);
        assert_eq!(pace.gap(), Duration::from_millis(1));
        pace.take(0.0);
        pace.take(1.0);
        pace.take(0.1);
        assert!((pace.gap - 0.1 / 0.95).abs() < 1e-9, "{}", pace.gap);
    }

    #[test]
    fn after_an_outage_it_is_soon_as_fast_as_before() {
        let mut pace = Pace::default();
        pace.take(1.0);
        pace.take(0.5);
        let known = pace.gap;
        (0..20).for_each(|_| pace.take(1.0));
        assert_eq!(pace.gap(), Duration::from_secs_f64(LONGEST));
        (0..6).for_each(|_| pace.take(0.0));
        assert!((pace.gap - known).abs() < 1e-9, "{} {known}", pace.gap);
        pace.take(0.0);
        assert!((pace.gap * (1.0 + STEP) - known).abs() < 1e-9, "from there by steps");
    }

    #[test]
    fn what_the_service_asks_for_is_waited_once_in_steps() {
        let mut pace = Pace::default();
        pace.pause(Duration::from_millis(2_500));
        pace.pause(Duration::from_secs(2));
        let mut steps = Vec::new();
        while let step = pace.step(Duration::ZERO)
            && !step.is_zero()
        {
            steps.push(step.as_millis());
            pace.waited(step);
        }
        assert_eq!(steps, [1_000, 1_000, 500]);
        let step = pace.step(Duration::from_secs(1));
        pace.pause(Duration::from_secs(1));
        pace.waited(step);
        assert_eq!(pace.step(Duration::ZERO), Duration::from_secs(1), "asked for during a step: all of it");
    }

    proptest! {
        /// A service that takes so many calls a second, whatever their number of entries.
        #[test]
        fn it_settles_near_what_the_service_takes(per_second in 0.5..500.0f64) {
            let mut pace = Pace::default();
            let (mut room, mut taken, mut calls, mut seconds) = (1.0f64, 0.0, 0.0, 0.0);
            for call in 0..2_000 {
                let wait = pace.gap().as_secs_f64().max(0.0001);
                room = (room + wait * per_second).min(1.0);
                let part = room.min(1.0);
                room -= part;
                pace.take(1.0 - part);
                if call >= 1_000 {
                    (taken, calls, seconds) = (taken + part, calls + 1.0, seconds + wait);
                }
            }
            prop_assert!(taken > 0.9 * per_second * seconds, "{taken} of {}", per_second * seconds);
            prop_assert!(calls < 1.15 * taken, "{calls} calls for {taken}");
        }

        #[test]
        fn the_gap_stays_in_its_bounds(shares in prop::collection::vec(0.0..=1.0f64, 0..200)) {
            let mut pace = Pace::default();
            for share in shares {
                pace.take(share);
                prop_assert!(pace.gap == 0.0 || (SHORTEST..=LONGEST).contains(&pace.gap), "{}", pace.gap);
            }
        }
    }
}
