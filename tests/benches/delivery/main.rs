//! How many calls, and how many entries a second, on a local service: this crate, one entry a call, and
//! what one writes with boto3. `cargo bench -p comeback-tests --all-features --bench delivery`
//!
//! The figures are the local service's as much as the sender's: read the ratios, and the calls.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::Instant;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use comeback_delivery::dynamodb::{Table, Write};
use comeback_delivery::sqs::Message;
use comeback_delivery::{Delivered, dynamodb, sqs};
use comeback_tests::MiniStack;

const ENTRIES: u32 = 2_000;
/// One at a time takes long.
const ALONE: u32 = 200;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = MiniStack::start("delivery-bench").await?;
    println!("{:<36}{:>10}{:>8}{:>12}{:>8}", "", "entries", "calls", "entries/s", "ratio");
    of_sqs(&server).await?;
    of_dynamodb(&server).await
}

async fn of_sqs(server: &MiniStack) -> Result<(), Box<dyn std::error::Error>> {
    let body = |number: u32| format!("order {number}");
    let queue_url = server.sqs.create_queue().queue_name("bench").send().await?.queue_url.expect("its URL");

    let alone = timed(async || {
        for number in 0..ALONE {
            let call = server.sqs.send_message().queue_url(&queue_url).message_body(body(number));
            call.send().await?;
        }
        Ok(ALONE.into())
    });
    let alone = alone.await?.row("SQS, one at a time", ALONE, None);
    let loops = boto3(server, "sqs", &queue_url)?;
    loops.row("SQS, boto3, send_message_batch", ENTRIES, Some(alone));
    for calls in [1, comeback_delivery::CONCURRENCY, 16] {
        let deliver = sqs::Sender::new(server.sqs.clone(), &queue_url).concurrency(calls);
        let messages: Vec<Message> = (0..ENTRIES).map(|number| Message::new(body(number))).collect();
        let ours = timed(async || Ok(checked(deliver.send(messages).await?)));
        ours.await?.row(format_args!("SQS, {calls} calls at once"), ENTRIES, Some(alone));
    }
    Ok(())
}

async fn of_dynamodb(server: &MiniStack) -> Result<(), Box<dyn std::error::Error>> {
    let client = aws_sdk_dynamodb::Client::new(server.config());
    let key = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build()?;
    let id = AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::S);
    let call = client.create_table().table_name("bench").billing_mode(BillingMode::PayPerRequest);
    call.key_schema(key).attribute_definitions(id.build()?).send().await?;
    let item = |number: u32| HashMap::from([("id".to_owned(), AttributeValue::S(format!("order {number}")))]);

    let alone = timed(async || {
        for number in 0..ALONE {
            client.put_item().table_name("bench").set_item(Some(item(number))).send().await?;
        }
        Ok(ALONE.into())
    });
    let alone = alone.await?.row("DynamoDB, one at a time", ALONE, None);
    boto3(server, "dynamodb", "bench")?.row("DynamoDB, boto3, batch_writer", ENTRIES, Some(alone));
    for calls in [1, comeback_delivery::CONCURRENCY, 16] {
        let deliver = dynamodb::Sender::new(client.clone(), [Table::new("bench", "id")]).concurrency(calls);
        let writes: Vec<Write> = (0..ENTRIES).map(|number| Write::put("bench", item(number))).collect();
        let ours = timed(async || Ok(checked(deliver.send(writes).await?)));
        ours.await?.row(format_args!("DynamoDB, {calls} calls at once"), ENTRIES, Some(alone));
    }
    Ok(())
}

fn checked<R>(delivered: Delivered<R>) -> u64 {
    assert_eq!(delivered.count(), ENTRIES as usize);
    delivered.calls
}

struct Run {
    calls: u64,
    seconds: f64,
}

impl Run {
    /// Prints a line, and gives back the entries a second, which the ratios are to.
    fn row(&self, how: impl Display, entries: u32, alone: Option<f64>) -> f64 {
        let rate = f64::from(entries) / self.seconds;
        let ratio = alone.map_or(String::new(), |alone| format!("{:.1}", rate / alone));
        let how = how.to_string();
        println!("{how:<36}{entries:>10}{:>8}{rate:>12.0}{ratio:>8}", self.calls);
        rate
    }
}

// What this program is for.
#[expect(clippy::disallowed_methods)]
async fn timed(
    work: impl AsyncFnOnce() -> Result<u64, Box<dyn std::error::Error>>,
) -> Result<Run, Box<dyn std::error::Error>> {
    let start = Instant::now();
    let calls = work().await?;
    Ok(Run { calls, seconds: start.elapsed().as_secs_f64() })
}

fn boto3(server: &MiniStack, service: &str, name: &str) -> Result<Run, Box<dyn std::error::Error>> {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/delivery/boto3_loops.py");
    let command = format!(".tools/ministack/bin/python '{program}' {service} '{name}' {ENTRIES}");
    let printed: serde_json::Value = serde_json::from_str(&server.shell().run(&command)?)?;
    let calls = printed["calls"].as_u64().ok_or("no calls")?;
    Ok(Run { calls, seconds: printed["seconds"].as_f64().ok_or("no seconds")? })
}
