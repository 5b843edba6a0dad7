//! Messages that lack a field which SQS always writes.

use aws_lambda_events::sqs::SqsMessage;
use comeback_engine::Record;
use rand::RngExt;

use super::World;
use super::batch::Batch;
use super::handling::Position;
use crate::faults::fault::Fault;

impl World {
    /// Strikes messages of a batch. If a field is missing from any, gives the handler's event.
    pub(crate) fn strike_fields(&mut self, batch: &Batch) -> Option<Vec<SqsMessage>> {
        let mut messages = None;
        for (index, message) in batch.messages.iter().enumerate() {
            let Some(rng) = self.dice.roll(Fault::IncompleteMessage, self.now) else { continue };
            let messages =
                messages.get_or_insert_with(|| batch.records.iter().map(sqs_message).collect::<Vec<_>>());
            remove_field(&mut messages[index], rng.random_range(0..FIELDS));
            self.dice.note(Fault::IncompleteMessage, [message.origin.event]);
            self.handling_mut().overlook(Position(index));
        }
        messages
    }
}

const FIELDS: u32 = 6;

/// The message behind a record, as Lambda passes it to the handler.
fn sqs_message(record: &Record) -> SqsMessage {
    let mut message = SqsMessage::default();
    message.message_id = Some(record.message_id.clone());
    message.receipt_handle = Some(record.receipt_handle.clone());
    message.body = Some(record.body.clone());
    message.attributes = [
        ("ApproximateReceiveCount", u64::from(record.receive_count)),
        ("SentTimestamp", record.sent.as_millis()),
        ("ApproximateFirstReceiveTimestamp", record.first_receive.as_millis()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_string()))
    .into();
    message
}

fn remove_field(message: &mut SqsMessage, field: u32) {
    match field {
        0 => message.message_id = None,
        1 => message.receipt_handle = None,
        2 => message.body = None,
        3 => drop(message.attributes.remove("ApproximateReceiveCount")),
        4 => drop(message.attributes.remove("SentTimestamp")),
        _ => drop(message.attributes.remove("ApproximateFirstReceiveTimestamp")),
    }
}
