use std::fs;

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use comeback_engine::{BatchEvent, Record, Timestamp};

fn record(message: &SqsMessage) -> Option<Record> {
    let number = |attribute: &str| message.attributes.get(attribute)?.parse::<u64>().ok();
    let mut record = Record {
        message_id: message.message_id.clone()?,
        receipt_handle: message.receipt_handle.clone()?,
        body: message.body.clone()?,
        receive_count: number("ApproximateReceiveCount")?.try_into().ok()?,
        sent: Timestamp::from_millis(number("SentTimestamp")?),
        first_receive: Timestamp::from_millis(number("ApproximateFirstReceiveTimestamp")?),
        moved: None,
        trace_header: message.attributes.get("AWSTraceHeader").cloned(),
    };
    let attribute = message.message_attributes.get("Comeback");
    if let Some(text) = attribute.and_then(|attribute| attribute.string_value.as_ref()) {
        // One that cannot be read changes nothing.
        let _ = record.restore(text);
    }
    Some(record)
}

/// AWS's own crate reads them strictly.
#[test]
fn the_samples_are_read_as_the_published_types_read_them() {
    let mut read = 0;
    for file in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../events")).unwrap() {
        let path = file.unwrap().path();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let Ok(event) = serde_json::from_str::<SqsEvent>(&text) else { continue };
        let batch = BatchEvent::read(&text).unwrap();
        assert_eq!(batch.records, event.records.iter().filter_map(record).collect::<Vec<_>>(), "{path:?}");
        assert_eq!(batch.queue_arn, event.records[0].event_source_arn, "{path:?}");
        assert_eq!(batch.message_ids().count(), event.records.len(), "{path:?}");
        read += 1;
    }
    assert!(read > 10, "only {read} samples");
}
