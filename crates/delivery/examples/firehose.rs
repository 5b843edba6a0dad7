//! Puts a thousand lines into a Firehose stream.
//!
//! `cargo run -p comeback-delivery --features firehose --example firehose -- STREAM`

use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_firehose::primitives::Blob;
use aws_sdk_firehose::types::Record;
use comeback_delivery::firehose::Sender;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stream = std::env::args().nth(1).ok_or("usage: firehose STREAM")?;
    // By default, the SDK waits for an answer indefinitely.
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(5)).build();
    let config = aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts).load().await;
    let deliver = Sender::new(aws_sdk_firehose::Client::new(&config), stream);

    // Firehose joins records without a separator: the newline keeps them apart.
    let record = |number: u32| Record::builder().data(Blob::new(format!("order {number}\n"))).build();
    match deliver.send((0..1_000).map(record).collect::<Result<Vec<_>, _>>()?).await {
        Ok(delivered) => println!("{} records in {} calls", delivered.count(), delivered.calls),
        Err(undelivered) => {
            for left in &undelivered.entries {
                eprintln!("record number {}: {}", left.index, left.cause);
            }
            return Err(undelivered.into());
        }
    }
    Ok(())
}
