//! Puts a thousand records into a Kinesis stream.
//!
//! `cargo run -p comeback-delivery --features kinesis --example kinesis -- STREAM`

use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_kinesis::primitives::Blob;
use aws_sdk_kinesis::types::PutRecordsRequestEntry;
use comeback_delivery::kinesis::Sender;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stream = std::env::args().nth(1).ok_or("usage: kinesis STREAM")?;
    // By default, the SDK waits for an answer indefinitely.
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(5)).build();
    let config = aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts).load().await;
    // A shard accepts a thousand records a second. The other records fail, and are sent again after a wait. The waits
    // are random, so that concurrent programs do not retry at the same times.
    let deliver = Sender::new(aws_sdk_kinesis::Client::new(&config), stream);

    let record = |number: u32| {
        let record = PutRecordsRequestEntry::builder().partition_key(format!("customer {}", number % 7));
        record.data(Blob::new(format!("order {number}"))).build()
    };
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
