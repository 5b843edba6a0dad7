//! Ten million entries by comeback-delivery, through a batch API of one's own.

use std::sync::atomic::{AtomicU64, Ordering};

use comeback_delivery::futures_util::stream::{self, StreamExt};
use comeback_delivery::limits::Limits;
use comeback_delivery::{Answer, ErrorKind, Operation, Sender, ServiceError};

/// Fails for the first entry of each thousandth call.
#[derive(Default)]
struct Api(AtomicU64);

impl Operation for &Api {
    type Entry = u64;
    type Receipt = ();

    fn limits(&self) -> Limits {
        Limits { entries: 10, bytes: 1_000, entry_bytes: 100 }
    }

    fn size(&self, _: &u64) -> usize {
        8
    }

    async fn call(&self, entries: &[&u64]) -> Result<Vec<Answer>, ServiceError> {
        let mut answers = vec![Ok(()); entries.len()];
        if self.0.fetch_add(1, Ordering::Relaxed) % 1_000 == 0 {
            answers[0] = Err(ServiceError::new(ErrorKind::Transient, "Code", ""));
        }
        Ok(answers)
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_ten_million() {
    let api = Api::default();
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
