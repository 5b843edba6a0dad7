//! A service that takes a number of entries a second, on tokio's paused clock. `benches/figures.rs` has it too.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use comeback_delivery::limits::Limits;
use comeback_delivery::{Answer, ErrorKind, Operation, ServiceError};
use tokio::time::Instant;

/// A bucket of tokens, one for an entry. A call's entries past what is in it are throttled.
pub(crate) struct Metered {
    limits: Limits,
    per_second: f64,
    burst: f64,
    level: Mutex<(f64, Instant)>,
    calls: AtomicUsize,
    /// Calls under way, and the most of them.
    under_way: Mutex<(usize, usize)>,
}

impl Metered {
    pub(crate) fn new(limits: Limits, per_second: f64, burst: f64) -> Self {
        let level = Mutex::new((burst, Instant::now()));
        Self { limits, per_second, burst, level, calls: AtomicUsize::default(), under_way: Mutex::default() }
    }

    /// The most calls that were under way at once.
    pub(crate) fn most_under_way(&self) -> usize {
        self.under_way.lock().expect("no panic").1
    }

    fn take(&self, entries: usize) -> usize {
        let (level, at) = &mut *self.level.lock().expect("no panic");
        *level = (*level + at.elapsed().as_secs_f64() * self.per_second).min(self.burst);
        *at = Instant::now();
        let taken = entries.min(*level as usize);
        *level -= taken as f64;
        taken
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

pub(crate) fn throttled() -> ServiceError {
    ServiceError::new(ErrorKind::Throttled, "Throttled", "")
}

impl Operation for &Metered {
    type Entry = usize;
    type Receipt = usize;

    fn limits(&self) -> Limits {
        self.limits
    }

    fn size(&self, _: &usize) -> usize {
        1
    }

    async fn call(&self, entries: &[&usize]) -> Result<Vec<Answer<usize>>, ServiceError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        {
            let (now, most) = &mut *self.under_way.lock().expect("no panic");
            *now += 1;
            *most = (*most).max(*now);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.under_way.lock().expect("no panic").0 -= 1;
        let taken = self.take(entries.len());
        if taken == 0 {
            return Err(throttled());
        }
        let answer =
            |(place, entry): (usize, &&usize)| if place < taken { Ok(**entry) } else { Err(throttled()) };
        Ok(entries.iter().enumerate().map(answer).collect())
    }
}
