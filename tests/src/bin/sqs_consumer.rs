//! The Rust consumer from docs/consumer.md. A message says how many attempts fail; a file records each attempt.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::{Duration, SystemTime};

use comeback_sqs::{Context, Diagnostic, Options, SqsMessage, consumer};
use lambda_runtime::Error;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Order {
    order: u64,
    fails: u64,
    error: String,
    message: String,
}

async fn handler(record: SqsMessage, _: Context) -> Result<(), Diagnostic> {
    let order: Order = serde_json::from_str(&record.body.unwrap_or_default()).expect("an order");
    let receives: u64 = record.attributes["ApproximateReceiveCount"].parse().expect("a number");
    let taken = receives > order.fails;
    #[expect(clippy::disallowed_methods, reason = "the trial compares it with the times in the log")]
    let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let seen = json!({"order": order.order, "receives": receives, "at": at, "taken": taken});
    let ledger = std::env::var("LEDGER").expect("the trial sets it");
    let mut ledger = OpenOptions::new().create(true).append(true).open(ledger).expect("a file");
    // The line is written in one call, because several processes append to the file.
    ledger.write_all(format!("{seen}\n").as_bytes()).expect("it can be written");
    if taken {
        return Ok(());
    }
    Err(Diagnostic { error_type: order.error, error_message: order.message })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let given: Value = serde_json::from_str(&std::env::var("OPTIONS")?)?;
    let seconds = |name: &str| given[name].as_u64().map(Duration::from_secs);
    let default = Options::default();
    let options = Options {
        base_backoff: seconds("base_backoff").unwrap_or(default.base_backoff),
        max_backoff: seconds("max_backoff"),
        max_receives: given["max_receives"].as_u64().and_then(|it| it.try_into().ok()),
        dead_letter_queue_url: given["dead_letter_queue_url"].as_str().map(Into::into),
        ..default
    };
    lambda_runtime::run(consumer(options, handler)?).await
}
