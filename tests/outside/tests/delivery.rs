//! Common uses of comeback-delivery with a custom batch API.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use comeback_delivery::futures_util::stream::{self, StreamExt};
use comeback_delivery::limits::Limits;
use comeback_delivery::{EntryAnswer, EntryError, ErrorKind, Operation, Sender, ServiceError};

/// A batch API that always refuses entry 13. In every thousandth call, the first entry fails with a transient error.
#[derive(Default)]
struct Api(AtomicU64);

impl Operation for Api {
    type Entry = u64;
    type Receipt = ();

    fn limits(&self) -> Limits {
        Limits { entries: 10, bytes: 1_000, entry_bytes: 100 }
    }

    fn size(&self, _: &u64) -> usize {
        8
    }

    fn check(&self, entry: &u64) -> Result<(), ServiceError> {
        if *entry == 13 { Err(ServiceError::new(ErrorKind::Refused, "Unlucky", "")) } else { Ok(()) }
    }

    async fn call(&self, entries: &[&u64]) -> Result<Vec<EntryAnswer>, ServiceError> {
        let mut answers = vec![Ok(()); entries.len()];
        if self.0.fetch_add(1, Ordering::Relaxed) % 1_000 == 0 {
            answers[0] = Err(ServiceError::new(ErrorKind::Transient, "Code", ""));
        }
        Ok(answers)
    }
}

#[tokio::test(start_paused = true)]
async fn everything_or_an_error() {
    async fn send(entries: Vec<u64>) -> anyhow::Result<usize> {
        let delivered = Sender::over(Api::default(), tokio::time::sleep).send(entries).await?;
        Ok(delivered.count())
    }
    assert_eq!(send(vec![1, 2, 3]).await.expect("delivered"), 3);
    let text = send(vec![1, 13]).await.expect_err("one is refused").to_string();
    assert_eq!(text, "1 of 2 entries were not delivered; the first, number 1: refused: Unlucky: no message");
}

#[tokio::test(start_paused = true)]
async fn keeping_what_is_left() {
    let sender = Sender::over(Api::default(), tokio::time::sleep);
    let undelivered = sender.send(0..20).await.expect_err("13 is refused");
    let kept: Vec<u64> = undelivered.entries.into_iter().map(|left| left.entry).collect();
    assert_eq!(kept, [13]);
}

#[tokio::test(start_paused = true)]
async fn until_a_deadline() {
    let sender = Sender::over(Api::default(), |_| std::future::pending());
    let deadline = tokio::time::sleep(Duration::from_secs(3));
    let undelivered = sender.send_until([1], deadline).await.expect_err("its retry never comes");
    assert!(matches!(undelivered.entries[0].cause, EntryError::Stopped(_)));
}

#[tokio::test(start_paused = true)]
async fn single_entries_of_many_tasks() {
    let sender = Sender::over(Api::default(), tokio::time::sleep).linger(Duration::from_millis(20));
    let (batcher, run) = sender.batcher();
    tokio::spawn(run);
    let tasks = (100..200).map(|entry| {
        let batcher = batcher.clone();
        tokio::spawn(async move { batcher.send(entry).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no panic").expect("delivered");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_ten_million() {
    let sender = Sender::over(Api::default(), tokio::time::sleep);
    let before = peak_memory();
    let mut outcomes = std::pin::pin!(sender.send_stream(stream::iter(100..10_000_100)));
    let mut delivered = 0;
    while let Some(outcome) = outcomes.next().await {
        assert!(outcome.is_ok());
        delivered += 1;
    }
    assert_eq!(delivered, 10_000_000);
    let grown = peak_memory().saturating_sub(before);
    assert!(grown < 16 * 1_024, "{grown} KiB for entries of 76 MiB");
}

/// Returns this process's peak memory use in KiB, as Linux reports it, or 0 on other systems.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
