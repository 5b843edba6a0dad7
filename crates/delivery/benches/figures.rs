//! How many calls throttles cost, and how much memory a delivery takes: `cargo bench -p comeback-delivery --bench figures`
//!
//! The services are simulated, on tokio's paused clock, so the calls and seconds are the same on any machine. Memory is
//! the process's peak as Linux counts it (`VmHWM`), and each row is a process of its own.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use comeback_delivery::futures_util::stream::{self, StreamExt};
use comeback_delivery::limits::{DYNAMODB, KINESIS, Limits, SQS_SEND};
use comeback_delivery::{Answer, ErrorKind, Operation, Sender, ServiceError, by_entry};
use tokio::time::Instant;

/// Takes so many entries a second, after a burst; the rest of a call is throttled.
struct Metered {
    limits: Limits,
    per_second: f64,
    burst: f64,
    level: Mutex<(f64, Instant)>,
    calls: AtomicU64,
}

impl Metered {
    fn new(limits: Limits, per_second: f64, burst: f64) -> Self {
        Self {
            limits,
            per_second,
            burst,
            level: Mutex::new((burst, Instant::now())),
            calls: AtomicU64::new(0),
        }
    }
}

fn throttled() -> ServiceError {
    ServiceError::new(ErrorKind::Throttled, "Throttled", "")
}

impl Operation for &Metered {
    type Entry = u64;
    type Receipt = ();

    fn limits(&self) -> Limits {
        self.limits
    }

    fn size(&self, _: &u64) -> usize {
        1
    }

    async fn call(&self, entries: &[&u64]) -> Result<Vec<Answer>, ServiceError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(5)).await;
        let (level, at) = &mut *self.level.lock().expect("no panic");
        *level = (*level + at.elapsed().as_secs_f64() * self.per_second).min(self.burst);
        *at = Instant::now();
        let taken = entries.len().min(*level as usize);
        *level -= taken as f64;
        if taken == 0 {
            return Err(throttled());
        }
        Ok((0..entries.len()).map(|place| if place < taken { Ok(()) } else { Err(throttled()) }).collect())
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    match (arguments.next().as_deref(), arguments.next()) {
        (Some(how), Some(entries)) => memory(how, entries.parse().expect("a number")).await,
        _ => figures().await,
    }
}

async fn figures() {
    println!(
        "{:<44}{:>10}{:>8}{:>8}{:>7}{:>9}",
        "throttled service", "delivered", "calls", "fewest", "ratio", "seconds"
    );
    for (name, limits, per_second, burst, entries) in [
        ("DynamoDB, 100 writes/s, burst 500", DYNAMODB, 100.0, 500.0, 2_000),
        ("DynamoDB, 1,000 writes/s, burst 1,000", DYNAMODB, 1_000.0, 1_000.0, 20_000),
        ("Kinesis, 1,000 records/s, burst 1,000", KINESIS, 1_000.0, 1_000.0, 20_000),
        ("SQS FIFO, 300 messages/s, burst 300", SQS_SEND, 300.0, 300.0, 10_000),
        ("SQS, throttled throughout", SQS_SEND, 0.0, 0.0, 10_001),
    ] {
        let service = Metered::new(limits, per_second, burst);
        let start = Instant::now();
        let outcomes = by_entry(Sender::over(&service, tokio::time::sleep).send(0..entries).await);
        let delivered = outcomes.iter().filter(|outcome| outcome.is_ok()).count() as f64 / entries as f64;
        let (calls, fewest) =
            (service.calls.load(Ordering::Relaxed), entries.div_ceil(limits.entries as u64));
        let (ratio, seconds) = (calls as f64 / fewest as f64, start.elapsed().as_secs_f64());
        println!("{name:<44}{:>9.1}%{calls:>8}{fewest:>8}{ratio:>7.2}{seconds:>9.1}", delivered * 100.0);
    }
    println!("\n{:<44}{:>10}{:>12}", "peak memory", "entries", "MiB");
    let program = std::env::current_exe().expect("its own path");
    for (how, entries) in
        [("send", "100000"), ("send", "1000000"), ("stream", "1000000"), ("stream", "10000000")]
    {
        let ended = Command::new(&program).args([how, entries]).output().expect("it runs again");
        let peak = String::from_utf8_lossy(&ended.stdout);
        println!("{:<44}{entries:>10}{:>12}", format!("{how}, entries of 8 bytes"), peak.trim());
    }
}

/// Prints the peak of a delivery through a service that takes everything.
async fn memory(how: &str, entries: u64) {
    let service = Metered::new(SQS_SEND, 0.0, f64::INFINITY);
    let sender = Sender::over(&service, tokio::time::sleep);
    match how {
        "send" => drop(sender.send(0..entries).await),
        _ => drop(sender.send_stream(stream::iter(0..entries)).count().await),
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    println!("{}", peak.map_or("unknown".into(), |kib: u64| (kib / 1_024).to_string()));
}
