//! Services that accept a limited number of entries per second, on tokio's paused clock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use comeback_delivery::limits::{KINESIS, Limits};
use comeback_delivery::{EntryAnswer, ErrorKind, Operation, ServiceError};
use tokio::time::Instant;

/// A service with two token buckets, for entries and for bytes. It throttles an entry if either has too few tokens.
pub(crate) struct Metered {
    limits: Limits,
    entry_bytes: usize,
    /// True if the service returns a result for each entry even when it accepts none, as Kinesis does.
    answers_each: bool,
    buckets: Mutex<[Bucket; 2]>,
    calls: AtomicUsize,
    /// Number of concurrent calls now, and the maximum so far.
    under_way: Mutex<(usize, usize)>,
}

struct Bucket {
    per_second: f64,
    burst: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    fn full(per_second: f64, burst: f64) -> Self {
        Self { per_second, burst, level: burst, at: Instant::now() }
    }

    fn fill(&mut self) {
        self.level = (self.level + self.at.elapsed().as_secs_f64() * self.per_second).min(self.burst);
        self.at = Instant::now();
    }
}

impl Metered {
    pub(crate) fn new(limits: Limits, per_second: f64, burst: f64) -> Self {
        let buckets = [Bucket::full(per_second, burst), Bucket::full(0.0, f64::INFINITY)];
        Self {
            limits,
            entry_bytes: 1,
            answers_each: false,
            buckets: Mutex::new(buckets),
            calls: AtomicUsize::default(),
            under_way: Mutex::default(),
        }
    }

    /// Simulates a Kinesis shard that receives records of this many bytes.
    pub(crate) fn shard(entry_bytes: usize) -> Self {
        let of_bytes = Bucket::full(SHARD_BYTES, SHARD_BYTES);
        let buckets = Mutex::new([Bucket::full(SHARD_RECORDS, SHARD_RECORDS), of_bytes]);
        Self { entry_bytes, answers_each: true, buckets, ..Self::new(KINESIS, 0.0, 0.0) }
    }

    pub(crate) fn most_under_way(&self) -> usize {
        self.under_way.lock().expect("no panic").1
    }

    fn take(&self, entries: usize) -> usize {
        let [count, bytes] = &mut *self.buckets.lock().expect("no panic");
        count.fill();
        bytes.fill();
        let taken = entries.min(count.level as usize).min((bytes.level / self.entry_bytes as f64) as usize);
        count.level -= taken as f64;
        bytes.level -= (taken * self.entry_bytes) as f64;
        taken
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

/// Number of records that a shard accepts per second. This is also its burst capacity.
const SHARD_RECORDS: f64 = 1_000.0;
const SHARD_BYTES: f64 = 1_048_576.0;

/// Returns the number of records of `entry_bytes` bytes each that a shard accepts per second.
pub(crate) fn shard_takes(entry_bytes: usize) -> f64 {
    SHARD_RECORDS.min(SHARD_BYTES / entry_bytes as f64)
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
        self.entry_bytes
    }

    async fn call(&self, entries: &[&usize]) -> Result<Vec<EntryAnswer<usize>>, ServiceError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        {
            let (now, most) = &mut *self.under_way.lock().expect("no panic");
            *now += 1;
            *most = (*most).max(*now);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.under_way.lock().expect("no panic").0 -= 1;
        let taken = self.take(entries.len());
        if taken == 0 && !self.answers_each {
            return Err(throttled());
        }
        let answer =
            |(place, entry): (usize, &&usize)| if place < taken { Ok(**entry) } else { Err(throttled()) };
        Ok(entries.iter().enumerate().map(answer).collect())
    }
}
