//! Messages that lack a field which SQS always writes.

use comeback_engine::{BatchEvent, Record};
use rand::RngExt;
use serde_json::{Value, json};

use super::World;
use super::batch::Batch;
use super::handling::Position;
use crate::faults::fault::Fault;

impl World {
    /// Strikes messages of a batch. If a field is missing from any, gives the handler's event.
    pub(crate) fn strike_fields(&mut self, batch: &Batch) -> Option<BatchEvent> {
        let mut messages = None;
        for (index, message) in batch.messages.iter().enumerate() {
            let Some(rng) = self.dice.roll(Fault::IncompleteMessage, self.now) else { continue };
            let messages =
                messages.get_or_insert_with(|| batch.records.iter().map(sqs_message).collect::<Vec<_>>());
            remove_field(&mut messages[index], rng.random_range(0..FIELDS));
            self.dice.note(Fault::IncompleteMessage, [message.origin.event]);
            self.handling_mut().overlook(Position(index));
        }
        let event = json!({ "Records": messages? }).to_string();
        Some(BatchEvent::read(&event).expect("BUG: it was just written"))
    }
}

const FIELDS: u32 = 6;

/// The message behind a record, as Lambda passes it to the handler.
fn sqs_message(record: &Record) -> Value {
    json!({
        "messageId": record.message_id,
        "receiptHandle": record.receipt_handle,
        "body": record.body,
        "attributes": {
            "ApproximateReceiveCount": record.receive_count.to_string(),
            "SentTimestamp": record.sent.as_millis().to_string(),
            "ApproximateFirstReceiveTimestamp": record.first_receive.as_millis().to_string(),
        },
    })
}

fn remove_field(message: &mut Value, field: u32) {
    let (parent, name) = match field {
        0 => ("", "messageId"),
        1 => ("", "receiptHandle"),
        2 => ("", "body"),
        3 => ("/attributes", "ApproximateReceiveCount"),
        4 => ("/attributes", "SentTimestamp"),
        _ => ("/attributes", "ApproximateFirstReceiveTimestamp"),
    };
    let parent = message.pointer_mut(parent).and_then(Value::as_object_mut);
    parent.expect("BUG: a message and its attributes are objects").remove(name);
}
