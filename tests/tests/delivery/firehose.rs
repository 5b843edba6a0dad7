use std::collections::BTreeSet;

use aws_sdk_firehose::Client;
use aws_sdk_firehose::primitives::Blob;
use aws_sdk_firehose::types::{ExtendedS3DestinationConfiguration, Record};
use comeback_delivery::firehose::Sender;
use comeback_tests::MiniStack;

use crate::{example, in_calls, on_ministack};

/// Creates a Firehose stream that writes to a bucket of the same name.
async fn stream(server: &MiniStack, client: &Client, name: &str) {
    server.shell().run(&format!("aws s3 mb s3://{name}")).expect("a bucket");
    let destination = ExtendedS3DestinationConfiguration::builder()
        .role_arn("arn:aws:iam::000000000000:role/firehose")
        .bucket_arn(format!("arn:aws:s3:::{name}"));
    let call = client.create_delivery_stream().delivery_stream_name(name);
    let call = call.extended_s3_destination_configuration(destination.build().unwrap());
    call.send().await.expect("a Firehose stream");
}

fn lines(server: &MiniStack, bucket: &str) -> Vec<String> {
    let read = format!(
        "directory=$(mktemp -d) && aws s3 sync --quiet s3://{bucket} $directory \
         && find $directory -type f -exec cat {{}} + && rm -r $directory"
    );
    server.shell().run(&read).expect("objects").lines().map(str::to_owned).collect()
}

#[test]
fn all_records_are_in_the_bucket() {
    on_ministack(async |server| {
        let client = Client::new(server.config());
        stream(server, &client, "orders-bucket").await;
        let text = |number: u32| format!("order {number:04}");
        let record = |number| Record::builder().data(Blob::new(text(number) + "\n")).build().unwrap();
        let deliver = Sender::new(client, "orders-bucket");
        let delivered = deliver.send((0..600).map(record)).await.unwrap();
        assert_eq!(delivered.count(), 600);
        in_calls(2, delivered.calls, delivered.retries);
        let lines: BTreeSet<String> = lines(server, "orders-bucket").into_iter().collect();
        assert_eq!(lines, (0..600).map(text).collect());
    });
}

#[test]
fn the_example() {
    on_ministack(async |server| {
        stream(server, &Client::new(server.config()), "example-bucket").await;
        let printed = example(server, "firehose", "example-bucket");
        assert!(printed.starts_with("1000 records in "), "{printed}");
        assert!(lines(server, "example-bucket").len() >= 1_000);
    });
}
