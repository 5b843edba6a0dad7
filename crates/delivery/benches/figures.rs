//! Measures how many calls a delivery makes under throttling, and how much memory it uses.
//!
//! Run with `cargo bench -p comeback-delivery --bench figures`. Times are on tokio's paused clock; memory is the peak
//! (`VmHWM`) of a separate process.

use std::process::Command;

use comeback_delivery::futures_util::stream::{self, StreamExt};
use comeback_delivery::limits::{DYNAMODB, KINESIS, SQS_SEND};
use comeback_delivery::{Sender, by_entry};
use tokio::time::Instant;

use self::metered::{Metered, shard_takes};

#[path = "../tests/sending/metered.rs"]
mod metered;

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
        "{:<44}{:>10}{:>8}{:>8}{:>7}{:>9}{:>9}",
        "throttled service", "delivered", "calls", "fewest", "ratio", "seconds", "at once"
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
        let (calls, fewest) = (service.calls(), entries.div_ceil(limits.entries));
        let (ratio, seconds) = (calls as f64 / fewest as f64, start.elapsed().as_secs_f64());
        let (delivered, at_once) = (delivered * 100.0, service.most_under_way());
        println!("{name:<44}{delivered:>9.1}%{calls:>8}{fewest:>8}{ratio:>7.2}{seconds:>9.1}{at_once:>9}");
    }
    partly_throttled().await;
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

/// Measures deliveries through services that accept only part of each call. In the printed table, `least` is the
/// shortest possible time for the entries beyond the burst capacity.
async fn partly_throttled() {
    println!(
        "\n{:<44}{:>10}{:>8}{:>8}{:>9}{:>9}{:>7}",
        "taken in part", "entries", "left", "calls", "seconds", "least", "ratio"
    );
    let shards = [1, 2, 5, 10, 25, 50, 100].map(|kilobytes| {
        let per_second = shard_takes(kilobytes * 1_000);
        let name = format!("Kinesis shard, records of {kilobytes} kB");
        (name, Metered::shard(kilobytes * 1_000), per_second, per_second)
    });
    let tables = [0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 100.0].map(|per_second: f64| {
        let burst = per_second.max(1.0);
        let name = format!("DynamoDB, {per_second} writes/s");
        (name, Metered::new(DYNAMODB, per_second, burst), per_second, burst)
    });
    for (name, service, per_second, burst) in shards.into_iter().chain(tables) {
        let entries = (burst + 60.0 * per_second) as usize;
        let start = Instant::now();
        let outcomes = by_entry(Sender::over(&service, tokio::time::sleep).send(0..entries).await);
        let left = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        let (took, least) = (start.elapsed().as_secs_f64(), (entries as f64 - burst) / per_second);
        let (calls, ratio) = (service.calls(), took / least);
        println!("{name:<44}{entries:>10}{left:>8}{calls:>8}{took:>9.1}{least:>9.1}{ratio:>7.2}");
    }
}

async fn memory(how: &str, entries: usize) {
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
