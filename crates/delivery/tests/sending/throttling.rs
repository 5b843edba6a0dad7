//! Tests for a sender's pace under throttling, on tokio's paused clock.

use std::future::{Future, ready};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use comeback_backoff::{Backoff, Delays};
use comeback_delivery::limits::{DYNAMODB, KINESIS, Limits, SQS_SEND};
use comeback_delivery::{EntryAnswer, EntryError, ErrorKind, Operation, Retries, Sender, ServiceError};
use tokio::time::Instant;

use crate::metered::{Metered, shard_takes, throttled};

/// An iterator over waits like those of `Retries::default()`, but from a known seed. Each clone gets the next seed.
struct Drawn {
    waits: Delays,
    next_seed: Arc<AtomicU64>,
}

impl Drawn {
    fn seeded(seed: u64) -> Self {
        // The seed goes into the upper 32 bits, so that neighbouring seeds do not share draws.
        Self::drawing(Arc::new(AtomicU64::new(seed.rotate_left(32))))
    }

    fn drawing(next_seed: Arc<AtomicU64>) -> Self {
        let backoff = Backoff::exponential(Duration::from_millis(100), Duration::from_millis(1_600));
        let backoff = backoff.expect("bounds in order").with_retries(5);
        Self { waits: backoff.seeded(next_seed.fetch_add(1, Ordering::Relaxed)), next_seed }
    }
}

impl Clone for Drawn {
    fn clone(&self) -> Self {
        Self::drawing(self.next_seed.clone())
    }
}

impl Iterator for Drawn {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.waits.next()
    }
}

/// Checks that all the entries arrive within 1.5 times the shortest time that `burst` and `per_second` allow.
async fn all_arrive_in_time(service: &Metered, entries: usize, per_second: f64, burst: f64, what: &str) {
    let sender = Sender::over(service, tokio::time::sleep).retries(Retries::of(Drawn::seeded(7)));
    let start = Instant::now();
    let outcomes = comeback_delivery::by_entry(sender.send(0..entries).await);
    let left = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    assert_eq!(left, 0, "{what}: left of {entries}");
    let (took, ideal) = (start.elapsed().as_secs_f64(), (entries as f64 - burst) / per_second);
    assert!(took <= 1.5 * ideal, "{what}: {took:.1} s, {ideal:.1} s would do");
}

#[tokio::test(start_paused = true)]
async fn shard_is_used_fully_at_any_size() {
    for kilobytes in [1, 2, 5, 10, 25, 50, 100] {
        let per_second = shard_takes(kilobytes * 1_000);
        // For example, 2,516 records of 25 kB.
        let (service, entries) = (Metered::shard(kilobytes * 1_000), (per_second * 60.0) as usize);
        let what = format!("records of {kilobytes} kB");
        all_arrive_in_time(&service, entries, per_second, per_second, &what).await;
    }
}

#[tokio::test(start_paused = true)]
async fn slow_table_is_used_fully() {
    for per_second in [0.5f64, 1.0, 2.5, 5.0, 10.0, 25.0, 100.0] {
        // The burst is a second's worth of writes, or five minutes' worth as in DynamoDB.
        for burst in [per_second.max(1.0), 300.0 * per_second] {
            for (name, limits) in [("DynamoDB", DYNAMODB), ("SQS", SQS_SEND), ("Kinesis", KINESIS)] {
                let entries = (burst + 30.0 * per_second.max(2.0)) as usize;
                let service = Metered::new(limits, per_second, burst);
                let what = format!("{name}, {per_second} writes/s, burst {burst}");
                all_arrive_in_time(&service, entries, per_second, burst, &what).await;
            }
        }
    }
}

/// The table accepts 100 writes a second, after a burst of 500.
#[tokio::test(start_paused = true)]
async fn slow_table_needs_few_calls() {
    let table = Metered::new(DYNAMODB, 100.0, 500.0);
    let outcome = Sender::over(&table, tokio::time::sleep).send(0..2_000).await;
    let delivered = comeback_delivery::by_entry(outcome).iter().filter(|it| it.is_ok()).count();
    assert!(delivered >= 1_900, "{delivered} of 2,000");
    assert!(table.calls() <= 120, "{} calls, 80 would be the fewest", table.calls());
}

#[tokio::test(start_paused = true)]
async fn endless_throttling_costs_few_calls() {
    let queue = Metered::new(SQS_SEND, 0.0, 0.0);
    let undelivered = Sender::over(&queue, tokio::time::sleep).send(0..10_001).await.unwrap_err();
    assert_eq!(undelivered.entries.len(), 10_001);
    assert!(queue.calls() <= 24, "{} calls", queue.calls());
    let sent = undelivered.entries.iter().filter(|left| left.calls > 0).count();
    assert!(sent <= 24 * 10, "{sent}");
    let last = undelivered.entries.last().unwrap();
    assert_eq!((&last.cause, last.calls), (&EntryError::Halted(throttled()), 0));
}

#[tokio::test(start_paused = true)]
async fn tasks_share_one_limit_and_pace() {
    let table = &*Box::leak(Box::new(Metered::new(DYNAMODB, 100.0, 100.0)));
    let sender = Sender::over(table, tokio::time::sleep).concurrency(3);
    let start = Instant::now();
    let tasks = (0..50).map(|task| {
        let sender = sender.clone();
        tokio::spawn(async move { comeback_delivery::by_entry(sender.send(task * 25..task * 25 + 25).await) })
    });
    let mut delivered = 0;
    for task in tasks.collect::<Vec<_>>() {
        delivered += task.await.unwrap().iter().filter(|it| it.is_ok()).count();
    }
    assert_eq!(table.most_under_way(), 3);
    assert!(delivered >= 1_187, "{delivered} of 1,250");
    // Entries of two deliveries never share a call, so each partly throttled call costs one more call.
    assert!(table.calls() <= 90, "{} calls, 50 would be the fewest", table.calls());
    assert!(start.elapsed() >= Duration::from_secs(10), "{:?}", start.elapsed());
}

/// A service that requests a pause once.
struct Asking(Duration, Mutex<Vec<Instant>>);

impl Operation for &Asking {
    type Entry = ();
    type Receipt = ();

    fn limits(&self) -> Limits {
        Limits { entries: 1, ..SQS_SEND }
    }

    fn size(&self, (): &()) -> usize {
        0
    }

    fn call(&self, _: &[&()]) -> impl Future<Output = Result<Vec<EntryAnswer>, ServiceError>> + Send {
        let calls = &mut *self.1.lock().expect("no panic");
        calls.push(Instant::now());
        let busy = ServiceError::new(ErrorKind::Transient, "Busy", "").with_retry_after(Some(self.0));
        ready(if calls.len() == 1 { Err(busy) } else { Ok(vec![Ok(())]) })
    }
}

#[tokio::test(start_paused = true)]
async fn no_call_begins_during_a_requested_pause() {
    let service = Asking(Duration::from_secs(4), Mutex::default());
    let sender =
        Sender::over(&service, tokio::time::sleep).retries(Retries::of([Duration::ZERO])).concurrency(1);
    let start = Instant::now();
    sender.send([(), (), ()]).await.unwrap();
    let calls: Vec<u64> =
        service.1.lock().expect("no panic").iter().map(|at| (*at - start).as_secs()).collect();
    assert_eq!(calls, [0, 4, 4, 4]);
}

#[tokio::test(start_paused = true)]
async fn day_long_pause_is_capped() {
    let pauses = Arc::new(Mutex::new(Vec::new()));
    let begun = pauses.clone();
    let service = Asking(Duration::from_secs(86_400), Mutex::default());
    let sender = Sender::over(&service, tokio::time::sleep)
        .retries(Retries::of([Duration::from_secs(2)]))
        .concurrency(1)
        .on_pause(move |pause, error| {
            begun.lock().unwrap().push((pause.as_secs(), error.code.clone()));
            panic!("planned: it loses nothing");
        });
    let start = Instant::now();
    sender.send([(), (), ()]).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(7));
    assert_eq!(*pauses.lock().unwrap(), [(7, "Busy".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn pause_past_the_deadline_is_not_waited() {
    let service = Asking(Duration::from_secs(3_600), Mutex::default());
    let sender = Sender::over(&service, tokio::time::sleep).retries(Retries::of([Duration::ZERO]));
    let start = Instant::now();
    let may_start = || start.elapsed() < Duration::from_secs(3);
    let undelivered = sender.concurrency(1).send_while([(), ()], may_start).await.unwrap_err();
    assert!(start.elapsed() <= Duration::from_millis(3_100), "{:?}", start.elapsed());
    let causes = undelivered.by_entry();
    assert!(causes.iter().all(|outcome| matches!(outcome, Err(EntryError::Stopped(_)))), "{causes:?}");
}
