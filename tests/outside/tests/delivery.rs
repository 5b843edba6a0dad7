//! Two deliveries by comeback-delivery, through a batch API of one's own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use comeback_delivery::futures_util::stream::{self, StreamExt};
use comeback_delivery::limits::Limits;
use comeback_delivery::{Answer, Cause, ErrorKind, Operation, Sender, ServiceError};

/// A batch API that answers by this function of a call's number and entries.
struct Api<A> {
    answer: A,
    calls: AtomicU64,
}

impl<A> Api<A> {
    fn answering(answer: A) -> Self {
        Self { answer, calls: AtomicU64::new(0) }
    }
}

type Answers = Result<Vec<Answer>, ServiceError>;

impl<A: Fn(u64, &[&u64]) -> Answers + Sync> Operation for &Api<A> {
    type Entry = u64;
    type Receipt = ();

    fn limits(&self) -> Limits {
        Limits { entries: 10, bytes: 1_000, entry_bytes: 100 }
    }

    fn size(&self, _: &u64) -> usize {
        8
    }

    async fn call(&self, entries: &[&u64]) -> Answers {
        (self.answer)(self.calls.fetch_add(1, Ordering::Relaxed), entries)
    }
}

fn error(kind: ErrorKind) -> ServiceError {
    ServiceError::new(kind, "Code", "")
}

#[tokio::test(start_paused = true)]
async fn a_partial_failure() {
    let seen = Mutex::new(std::collections::HashSet::new());
    // Each entry fails the first time; 13 is refused for good.
    let answer = |entry: &&u64| match **entry {
        13 => Err(error(ErrorKind::Refused)),
        entry if seen.lock().unwrap().insert(entry) => Err(error(ErrorKind::Transient)),
        _ => Ok(()),
    };
    let api = Api::answering(|_, entries: &[&u64]| Ok(entries.iter().map(answer).collect()));
    let undelivered = Sender::over(&api, tokio::time::sleep).send(0..100).await.unwrap_err();
    let [left] = &undelivered.entries[..] else { panic!("{undelivered}") };
    assert_eq!((left.entry, &left.cause), (13, &Cause::Refused(error(ErrorKind::Refused))));
    assert_eq!(undelivered.delivered.len(), 99);
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_ten_million() {
    let api = Api::answering(|call, entries: &[&u64]| {
        let fails = |place: usize| call % 1_000 == 0 && place == 0;
        let answer = |place| if fails(place) { Err(error(ErrorKind::Transient)) } else { Ok(()) };
        Ok((0..entries.len()).map(answer).collect())
    });
    let sender = Sender::over(&api, tokio::time::sleep);
    let before = peak_memory();
    let mut outcomes = std::pin::pin!(sender.send_stream(stream::iter(0..10_000_000)));
    let mut delivered = 0;
    while let Some(outcome) = outcomes.next().await {
        assert!(outcome.is_ok());
        delivered += 1;
    }
    assert_eq!(delivered, 10_000_000);
    let grown = peak_memory().saturating_sub(before);
    assert!(grown < 16 * 1_024, "{grown} KiB for entries of 76 MiB");
}

/// In KiB, as Linux counts it; 0 elsewhere.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
