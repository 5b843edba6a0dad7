//! Puts two hundred items into a table with the string key `id`, and deletes every other item.
//!
//! `cargo run -p comeback-delivery --features dynamodb --example dynamodb -- TABLE`

use std::collections::HashMap;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use comeback_delivery::dynamodb::{Attributes, Sender, Table, Write};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table = std::env::args().nth(1).ok_or("usage: dynamodb TABLE")?;
    // By default, the SDK waits for an answer indefinitely.
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(5)).build();
    let config = aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts).load().await;
    let deliver = Sender::new(aws_sdk_dynamodb::Client::new(&config), [Table::new(&table, "id")]);

    // Two writes to one key never share a call, and the later write takes effect last.
    let puts = (0..200).map(|number| Write::put(&table, id(number)));
    let deletes = (0..200).step_by(2).map(|number| Write::delete(&table, id(number)));
    match deliver.send(puts.chain(deletes)).await {
        Ok(delivered) => println!("{} writes in {} calls", delivered.count(), delivered.calls),
        Err(undelivered) => {
            for left in &undelivered.entries {
                eprintln!("write number {} to {}: {}", left.index, left.entry.table, left.cause);
            }
            return Err(undelivered.into());
        }
    }
    Ok(())
}

fn id(number: u32) -> Attributes {
    HashMap::from([("id".to_owned(), AttributeValue::S(format!("order {number}")))])
}
