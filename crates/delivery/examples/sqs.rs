//! Sends a thousand messages to a queue.
//!
//! `cargo run -p comeback-delivery --features sqs --example sqs -- QUEUE_URL`

use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::timeout::TimeoutConfig;
use comeback_delivery::sqs::{Message, Sender};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue_url = std::env::args().nth(1).ok_or("usage: sqs QUEUE_URL")?;
    // By default, the SDK waits for an answer indefinitely.
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(5)).build();
    let config = aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts).load().await;
    let deliver = Sender::new(aws_sdk_sqs::Client::new(&config), queue_url);

    let messages = (0..1_000).map(|number| Message::new(format!("order {number}")));
    match deliver.send(messages).await {
        Ok(delivered) => println!("{} messages in {} calls", delivered.count(), delivered.calls),
        Err(undelivered) => {
            // `entries` holds every undelivered message, with the reason. Store these messages, or send them again
            // later.
            for left in &undelivered.entries {
                eprintln!("{}: {}", left.entry.body, left.cause);
            }
            return Err(undelivered.into());
        }
    }
    Ok(())
}
