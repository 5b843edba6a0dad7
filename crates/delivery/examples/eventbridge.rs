//! Puts a hundred events onto an event bus, and gives up after ten seconds.
//!
//! `cargo run -p comeback-delivery --features eventbridge --example eventbridge -- BUS`

use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use comeback_delivery::eventbridge::Sender;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bus = std::env::args().nth(1).ok_or("usage: eventbridge BUS")?;
    // By default, the SDK waits for an answer indefinitely.
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(5)).build();
    let config = aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts).load().await;
    let deliver = Sender::new(aws_sdk_eventbridge::Client::new(&config));

    let event = |number: u32| {
        PutEventsRequestEntry::builder()
            .event_bus_name(&bus)
            .source("shop")
            .detail_type("OrderPlaced")
            .detail(format!(r#"{{"order": {number}}}"#))
            .build()
    };
    match deliver.send_until((0..100).map(event), tokio::time::sleep(Duration::from_secs(10))).await {
        Ok(delivered) => println!("{} events in {} calls", delivered.count(), delivered.calls),
        Err(undelivered) => {
            for left in &undelivered.entries {
                eprintln!("event number {}: {}", left.index, left.cause);
            }
            return Err(undelivered.into());
        }
    }
    Ok(())
}
