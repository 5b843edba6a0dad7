use std::collections::BTreeSet;

use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::primitives::Blob;
use aws_sdk_kinesis::types::{PutRecordsRequestEntry, ShardIteratorType, StreamStatus};
use comeback_delivery::kinesis::Sender;
use comeback_tests::eventually;

use crate::{example, on_ministack};

async fn stream(client: &Client, name: &str) {
    client.create_stream().stream_name(name).shard_count(2).send().await.expect("a stream");
    let active = async || {
        let summary = client.describe_stream_summary().stream_name(name).send().await.ok()?;
        let status = summary.stream_description_summary?.stream_status;
        (status == StreamStatus::Active).then_some(())
    };
    eventually("the stream to be active", active).await;
}

async fn records(client: &Client, stream: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let shards = client.list_shards().stream_name(stream).send().await.expect("shards").shards;
    for shard in shards.unwrap_or_default() {
        let call = client.get_shard_iterator().stream_name(stream).shard_id(shard.shard_id);
        let call = call.shard_iterator_type(ShardIteratorType::TrimHorizon);
        let mut next = call.send().await.expect("an iterator").shard_iterator;
        while let Some(iterator) = next {
            let page = client.get_records().shard_iterator(iterator).send().await.expect("records");
            let text = |data: &Blob| String::from_utf8(data.as_ref().to_vec()).expect("text");
            texts.extend(page.records.iter().map(|record| text(&record.data)));
            next = page.next_shard_iterator.filter(|_| !page.records.is_empty());
        }
    }
    texts
}

#[test]
fn all_records_are_in_the_stream() {
    on_ministack(async |server| {
        let client = Client::new(server.config());
        stream(&client, "orders").await;
        let text = |number: u32| format!("order {number}");
        let record = |number| {
            let record = PutRecordsRequestEntry::builder().partition_key(text(number));
            record.data(Blob::new(text(number))).build().unwrap()
        };
        let summary = client.describe_stream_summary().stream_name("orders").send().await.unwrap();
        let arn = summary.stream_description_summary.unwrap().stream_arn;
        // Half of the records are sent by a sender that has the stream's name, and half by one that has its ARN.
        let by_name = Sender::new(client.clone(), "orders").send((0..600).map(record)).await.unwrap();
        let by_arn = Sender::new(client.clone(), arn).send((600..1_200).map(record)).await.unwrap();
        assert_eq!((by_name.count(), by_arn.count()), (600, 600));
        let texts = records(&client, "orders").await;
        assert_eq!(texts.into_iter().collect::<BTreeSet<_>>(), (0..1_200).map(text).collect());
    });
}

#[test]
fn the_example() {
    on_ministack(async |server| {
        let client = Client::new(server.config());
        stream(&client, "example").await;
        let printed = example(server, "kinesis", "example");
        assert!(printed.starts_with("1000 records in "), "{printed}");
        assert!(records(&client, "example").await.len() >= 1_000);
    });
}
