//! Pace and concurrency of a sender's calls.
//!
//! Every call passes the [`Gate`], which limits concurrency. While the service throttles, the gate also spaces the
//! calls according to the [`Pacer`].
//!
//! While the service accepts only part of each call, the next call is about as large as the accepted part. The entry
//! rate falls in much the same way as DCTCP's window ([RFC 8257], section 3.3). Calls that run at the same time lower
//! it only once. The rate rises as TCP's window does ([RFC 5681], section 3.1): it doubles up to the rate at which the
//! service last accepted part of a call, and rises in equal steps from there.
//!
//! Once the service accepts whole calls again, the calls become larger and the gaps longer, up to half a second. This
//! saves calls.
//!
//! [RFC 8257]: https://www.rfc-editor.org/rfc/rfc8257#section-3.3
//! [RFC 5681]: https://www.rfc-editor.org/rfc/rfc5681#section-3.1

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_lock::{Semaphore, SemaphoreGuardArc};

/// Gap between calls, in seconds, after the first throttled call. If only part of the call was throttled, the gap is
/// shorter in proportion.
const FIRST: f64 = 0.1;
/// The longest gap between calls, in seconds.
const LONGEST: f64 = 5.0;
/// The longest single sleep of a waiting delivery, after which it checks its deadline.
const LONGEST_STEP: Duration = Duration::from_millis(100);
/// The shortest gap between calls, in seconds. Timers are not accurate enough for shorter gaps.
const SHORTEST: f64 = 0.001;
/// The fraction of the known rate (see `Pacer::known`) by which each successful call raises the rate.
const STEP: f64 = 1.0 / 16.0;
/// Each successful call raises the maximum size of the next call by this factor, while the gap between calls is below
/// `COMFORTABLE`.
const GROWTH: f64 = 1.5;
const COMFORTABLE: f64 = 0.5;
/// Maximum time that a pause requested by the service may add to the sender's own next wait. Without this limit, a
/// service could stop a sender for a day.
const PATIENCE: Duration = Duration::from_secs(5);

/// Limits the rate of calls and the number of concurrent calls, for a sender and its clones together.
#[derive(Debug)]
pub(crate) struct Gate {
    calls: Arc<Semaphore>,
    /// Lock that a delivery holds from its turn at the gate until its call begins.
    turn: async_lock::Mutex<()>,
    pace: Mutex<Pacer>,
}

/// The gate's permission to make one call.
pub(crate) struct Pass {
    _permit: SemaphoreGuardArc,
    /// The round of the [`Pacer`] in which the call began.
    pub(crate) round: u64,
}

impl Gate {
    /// Creates a gate for at most `concurrency` calls at a time, each of at most `most` entries.
    pub(crate) fn new(concurrency: usize, most: usize) -> Self {
        Self {
            calls: Arc::new(Semaphore::new(concurrency)),
            turn: async_lock::Mutex::new(()),
            pace: Mutex::new(Pacer::new(most)),
        }
    }

    /// Waits until a call may begin, and returns the [`Pass`] for it.
    pub(crate) async fn enter<F: Future<Output = ()>>(&self, sleep: impl Fn(Duration) -> F) -> Pass {
        // A turn goes to the delivery that has waited longest; a permit goes to the first delivery that requests it.
        let _turn = self.turn.lock().await;
        let permit = self.calls.acquire_arc().await;
        let mut gone = Duration::ZERO;
        loop {
            // The remaining wait is computed again after each step, because responses may have arrived in
            // the meantime.
            let step = self.pace().step(gone);
            if step.is_zero() {
                return Pass { _permit: permit, round: self.pace().begin() };
            }
            sleep(step).await;
            self.pace().waited(step);
            gone = gone.saturating_add(step);
        }
    }

    pub(crate) fn pace(&self) -> MutexGuard<'_, Pacer> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pace of one sender: the size of its next call, and the gap before it.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    /// The service's limit on the number of entries in a call.
    most: usize,
    /// Number of entries in the next call; fractional, because it grows by a factor.
    size: f64,
    /// Seconds between the starts of two successive calls; 0 if the calls are not spaced.
    gap: f64,
    /// The shortest time per entry that the service allows, in seconds. Estimated after a throttled call. `None` while
    /// no estimate exists.
    known: Option<f64>,
    /// Seconds per entry in the last call that the service accepted in full; `None` if an entry has been throttled
    /// since then.
    good: Option<f64>,
    /// Number of consecutive calls in which every entry was throttled.
    nothing: u32,
    /// True if the next call begins after half of `gap`.
    is_hasty: bool,
    /// Number of times that the rate was reduced. Responses to calls that began before the last reduction are ignored.
    round: u64,
    /// Remaining part of the pause that the service requested.
    pause: Duration,
    /// The longest pause that the service has requested since the time to wait was last computed.
    asked: Duration,
}

impl Pacer {
    fn new(most: usize) -> Self {
        Self { most, size: most as f64, ..Self::default() }
    }

    pub(crate) fn size(&self) -> usize {
        (self.size as usize).clamp(1, self.most)
    }

    fn begin(&mut self) -> u64 {
        self.is_hasty = false;
        self.round
    }

    /// Returns the time between the starts of two calls: the [gap](Self::gap), or half of it if `is_hasty` is true.
    fn next_gap(&self) -> Duration {
        Duration::from_secs_f64(if self.is_hasty { self.gap / 2.0 } else { self.gap })
    }

    /// Returns how long to sleep next; zero if the next call may begin now. `gone` is the time already waited.
    fn step(&mut self, gone: Duration) -> Duration {
        self.pause = self.pause.max(std::mem::take(&mut self.asked));
        self.next_gap().saturating_sub(gone).max(self.pause).min(LONGEST_STEP)
    }

    fn waited(&mut self, step: Duration) {
        self.pause = self.pause.saturating_sub(step);
    }

    pub(crate) fn gap(&self) -> Duration {
        Duration::from_secs_f64(self.gap)
    }

    /// Records a pause that the service requested, and returns how long the sender will pause. Without the request, the
    /// entries would wait for `own`.
    pub(crate) fn pause(&mut self, asked: Duration, own: Duration) -> Duration {
        let pause = asked.min(own.max(self.gap()).saturating_add(PATIENCE));
        self.asked = self.asked.max(pause);
        pause
    }

    /// Adjusts the pace after a call that began in `round`: the service accepted `taken` of its `entries`.
    pub(crate) fn answered(&mut self, round: u64, entries: usize, taken: usize) {
        if round < self.round {
            // The call began before the rate fell, so its response says nothing about the new rate.
        } else if taken < entries {
            self.fall(entries, taken);
        } else if self.gap > 0.0 {
            self.rise();
        }
    }

    fn fall(&mut self, entries: usize, taken: usize) {
        let share = 1.0 - taken as f64 / entries as f64;
        let an_entry = self.gap / self.size().min(entries) as f64;
        self.round += 1;
        if taken > 0 {
            self.size = taken as f64;
        }
        if self.gap == 0.0 {
            self.gap = (FIRST * share).clamp(SHORTEST, LONGEST);
        } else if taken > 0 {
            let slower = an_entry / (1.0 - share * (1.0 + share) / 2.0);
            (self.known, self.good, self.nothing) = (Some(slower), None, 0);
            self.space(slower);
        } else if let Some(good) = self.good.take() {
            // The rate was a little too high; the next call begins sooner, with the entries that this call could not
            // deliver.
            let slower = good * (1.0 + STEP);
            (self.known, self.is_hasty) = (Some(slower), true);
            self.space(slower);
        } else {
            self.nothing += 1;
            self.gap = (self.gap * if self.nothing == 1 { 2.0 } else { 4.0 }).min(LONGEST);
        }
    }

    fn rise(&mut self) {
        let an_entry = self.gap / self.size() as f64;
        (self.good, self.nothing) = (Some(an_entry), 0);
        let faster = match self.known {
            // The service last accepted part of a call at about this rate; the factor allows for rounding errors.
            Some(known) if an_entry <= known * 1.001 => 1.0 / (1.0 / an_entry + STEP / known),
            Some(known) => (an_entry / 2.0).max(known),
            None => an_entry / 2.0,
        };
        if faster * (self.size() as f64) < COMFORTABLE {
            self.size = (self.size * GROWTH).min(self.most as f64);
        }
        if faster * (self.size() as f64) < SHORTEST && self.size() == self.most {
            (self.gap, self.known, self.good) = (0.0, None, None);
        } else {
            self.space(faster);
        }
    }

    /// Sets the time between the starts of consecutive calls so that, on average, one entry is sent every `an_entry`
    /// seconds.
    fn space(&mut self, an_entry: f64) {
        self.gap = (an_entry * self.size() as f64).clamp(SHORTEST, LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: usize = 40;

    impl Pacer {
        /// Adjusts the pace after a call. `part`, from 0 to 1, is the share of the call's entries that the service
        /// accepted.
        fn take(&mut self, part: f64) {
            let entries = self.size();
            self.answered(self.round, entries, (entries as f64 * part) as usize);
        }
    }

    #[test]
    fn without_throttles_nothing_waits() {
        let mut pace = Pacer::new(MOST);
        (0..10).for_each(|_| pace.take(1.0));
        assert_eq!((pace.gap(), pace.size()), (Duration::ZERO, MOST));
    }

    #[test]
    fn concurrent_throttles_slow_it_once() {
        let mut pace = Pacer::new(MOST);
        let together = [pace.round; 4];
        together.into_iter().for_each(|round| pace.answered(round, MOST, 0));
        assert_eq!(pace.gap(), Duration::from_millis(100));
        pace.take(0.0);
        assert_eq!((pace.gap(), pace.size()), (Duration::from_millis(200), MOST), "half as fast");
    }

    #[test]
    fn next_call_is_as_large_as_was_taken() {
        let mut pace = Pacer::new(MOST);
        pace.take(0.5);
        assert_eq!((pace.gap(), pace.size()), (Duration::from_millis(50), 20));
        pace.take(0.1);
        // The service accepted only 2 of the 20 entries in this call.
        assert_eq!(pace.size(), 2);
        let an_entry = pace.gap / 2.0;
        assert!((0.015..0.025).contains(&an_entry), "{an_entry}");
        pace.take(1.0);
        assert!(pace.gap > 2.0 * an_entry * 0.9, "{}: larger, and hardly faster", pace.gap);
    }

    #[test]
    fn a_small_share_slows_it_little() {
        let mut pace = Pacer::new(500);
        pace.answered(0, 500, 499);
        assert_eq!((pace.gap(), pace.size()), (Duration::from_millis(1), 499));
        pace.gap = 0.4;
        pace.answered(pace.round, 499, 449);
        let an_entry = 0.4 / 499.0;
        assert!((pace.gap / 449.0 / an_entry - 1.058).abs() < 0.01, "{}", pace.gap);
    }

    #[test]
    fn it_recovers_soon_after_an_outage() {
        let mut pace = Pacer::new(1);
        pace.take(0.0);
        pace.take(1.0);
        pace.take(0.0);
        let known = pace.known.expect("one was taken");
        assert!((pace.gap - known).abs() < 1e-9 && pace.next_gap() < pace.gap(), "once sooner");
        (0..20).for_each(|_| pace.take(0.0));
        assert_eq!(pace.gap(), Duration::from_secs_f64(LONGEST));
        (0..6).for_each(|_| pace.take(1.0));
        assert!((pace.gap - known).abs() < 1e-9, "{} {known}", pace.gap);
        pace.take(1.0);
        assert!((pace.gap * (1.0 + STEP) - known).abs() < 1e-9, "from there by steps");
    }

    #[test]
    fn requested_pause_is_waited_once_in_steps() {
        let mut pace = Pacer::new(MOST);
        pace.pause(Duration::from_millis(250), Duration::ZERO);
        pace.pause(Duration::from_millis(200), Duration::ZERO);
        let mut steps = Vec::new();
        while let step = pace.step(Duration::ZERO)
            && !step.is_zero()
        {
            steps.push(step.as_millis());
            pace.waited(step);
        }
        assert_eq!(steps, [100, 100, 50]);
        let step = pace.step(Duration::ZERO);
        pace.pause(Duration::from_millis(80), Duration::ZERO);
        pace.waited(step);
        assert_eq!(
            pace.step(Duration::ZERO),
            Duration::from_millis(80),
            "asked for during a step: all of it"
        );
    }

    #[test]
    fn requested_pause_is_bounded_by_own_wait() {
        let paused = |gap, asked, own| {
            let mut pace = Pacer { gap, ..Pacer::new(MOST) };
            pace.pause(Duration::from_secs(asked), Duration::from_secs(own));
            pace.asked.as_secs()
        };
        assert_eq!(paused(0.0, 3, 0), 3);
        assert_eq!(paused(0.0, 86_400, 0), 5);
        assert_eq!(paused(0.0, 86_400, 7), 12);
        assert_eq!(paused(4.0, 86_400, 1), 9, "the gap is our own wait too");
    }

    proptest! {
        /// The simulated service is a token bucket, with one token per entry.
        #[test]
        fn it_settles_near_what_the_service_takes(per_second in 0.5..2_000.0f64, most in 1..500usize) {
            let burst = per_second.max(1.0);
            let mut pace = Pacer::new(most);
            let (mut room, mut taken, mut sent, mut seconds) = (burst, 0, 0, 0.0);
            for call in 0..2_000 {
                let wait = pace.next_gap().as_secs_f64().max(0.001);
                pace.begin();
                room = (room + wait * per_second).min(burst);
                let entries = pace.size();
                let part = entries.min(room as usize);
                room -= part as f64;
                pace.answered(pace.round, entries, part);
                if call >= 1_000 {
                    (taken, sent, seconds) = (taken + part, sent + entries, seconds + wait);
                }
            }
            // A sender makes at most a thousand calls a second.
            let ideal = per_second.min(most as f64 * 1_000.0) * seconds;
            prop_assert!(taken as f64 > 0.75 * ideal, "{taken} of {ideal}");
            prop_assert!(sent as f64 <= 1.6 * taken as f64, "{sent} sent for {taken}");
        }

        #[test]
        fn gap_and_size_stay_in_bounds(parts in prop::collection::vec(0.0..=1.0f64, 0..200)) {
            let mut pace = Pacer::new(MOST);
            for part in parts {
                pace.take(part);
                prop_assert!(pace.gap == 0.0 || (SHORTEST..=LONGEST).contains(&pace.gap), "{}", pace.gap);
                prop_assert!((1..=MOST).contains(&pace.size()), "{}", pace.size);
            }
        }
    }
}
