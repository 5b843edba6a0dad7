//! Messages that lack a field which SQS always writes.

use comeback_engine::{BatchEvent, MOVED_ATTRIBUTE, Record};
use rand::RngExt;
use serde_json::{Value, json};

use super::World;
use super::batch::Batch;
use super::handling::Position;
use crate::faults::fault::Fault;

impl World {
    /// Strikes messages of a batch, as they came from the queue.
    pub(super) fn strike_fields(&mut self, batch: &Batch) -> Option<StruckEvent> {
        let mut messages = None;
        let mut overlooked = Vec::new();
        for (index, message) in batch.messages.iter().enumerate() {
            let Some(rng) = self.dice.roll(Fault::IncompleteMessage, self.now) else { continue };
            let messages = messages.get_or_insert_with(|| sqs_messages(batch));
            remove_field(&mut messages[index], rng.random_range(0..FIELDS));
            self.dice.note(Fault::IncompleteMessage, [message.origin.event]);
            overlooked.push(Position(index));
        }
        let event = json!({ "Records": messages? }).to_string();
        let event = BatchEvent::read(&event).expect("BUG: it was just written");
        Some(StruckEvent { event, overlooked })
    }
}

/// The handler's event, and the messages of it that lack a field.
pub(super) struct StruckEvent {
    pub(super) event: BatchEvent,
    pub(super) overlooked: Vec<Position>,
}

const FIELDS: u32 = 6;

/// A batch's messages, as Lambda passes them to the handler.
fn sqs_messages(batch: &Batch) -> Vec<Value> {
    let messages = batch.records.iter().zip(&batch.attributes).map(|(record, attributes)| {
        let mut message = sqs_message(record);
        let attribute = attributes.as_ref().and_then(|attributes| attributes.comeback.as_ref());
        if let Some(text) = attribute.filter(|_| !batch.old_handler) {
            let attribute = json!({"stringValue": text, "dataType": "String"});
            message["messageAttributes"] = json!({ MOVED_ATTRIBUTE: attribute });
        }
        message
    });
    messages.collect()
}

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
