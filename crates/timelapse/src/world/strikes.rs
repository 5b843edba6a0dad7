//! Faults that strike records, messages and batches on their way to the handler.

use std::time::Duration;

use comeback_engine::{BatchEvent, HANDLER_TIMEOUT, MOVED_ATTRIBUTE, Record, Timestamp};
use rand::RngExt;
use serde_json::{Value, json};

use super::batch::{Batch, Death, Polled};
use super::{Occurrence, World};
use crate::aws::queue::ReceiptHandle;
use crate::check::history::Carried;
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::faults::records::{
    Flaw, RESPONSE_PAYLOAD, name_unlisted_function, without_a_member, write_hostile_message,
};

/// Largest difference between SQS's clock and the handler's, in ms.
const SKEW_MS: u64 = 5_000;
/// Fields that every SQS message has, each with the path to the object that contains it.
const FIELDS: [(&str, &str); 6] = [
    ("", "messageId"),
    ("", "receiptHandle"),
    ("", "body"),
    ("/attributes", "ApproximateReceiveCount"),
    ("/attributes", "SentTimestamp"),
    ("/attributes", "ApproximateFirstReceiveTimestamp"),
];

impl World {
    /// Applies faults to an invocation record before it is sent.
    pub(super) fn strike_record(
        &mut self,
        event: EventNumber,
        body: &mut String,
        asked: &mut Option<Duration>,
    ) -> Option<Flaw> {
        if let Some(rng) = self.dice.roll(Fault::IncompleteRecord, self.now) {
            let flaw = without_a_member(body, rng);
            asked.take_if(|_| !body.contains(RESPONSE_PAYLOAD));
            self.dice.note(Fault::IncompleteRecord, [event]);
            return flaw;
        }
        if self.dice.strikes(Fault::UnlistedFunction, self.now, [event]) {
            return Some(name_unlisted_function(body));
        }
        if let Some(rng) = self.dice.roll(Fault::HostileMessage, self.now) {
            *asked = write_hostile_message(body, rng);
            self.dice.note(Fault::HostileMessage, [event]);
        }
        None
    }

    pub(super) fn strike_retention(&mut self, sent: ReceiptHandle) {
        let Some(rng) = self.dice.roll(Fault::RetentionEnded, self.now) else { return };
        let left = Duration::from_millis(rng.random_range(0..12 * 3_600_000));
        self.plan(left, Occurrence::ExpiresEarly(sent));
    }

    pub(super) fn expire_early(&mut self, sent: ReceiptHandle) {
        if let Some(carried) = self.queue.expire_early(sent) {
            carried.cut_retention();
            self.dice.note(Fault::RetentionEnded, [carried.event()]);
        }
    }

    pub(super) fn strike_messages(&mut self, messages: &mut Vec<Polled>, records: &mut Vec<Record>) {
        for index in 0..messages.len() {
            let (receipt, carried) = (messages[index].receipt, messages[index].carried.clone());
            let event = carried.event();
            if self.dice.strikes(Fault::ReceiveCountHigh, self.now, [event]) {
                records[index].receive_count += 1;
            }
            if self.dice.strikes(Fault::ReceiveCountLow, self.now, [event]) {
                records[index].receive_count -= 1;
            }
            if let Some(rng) = self.dice.roll(Fault::DuplicateDelivery, self.now) {
                // If the batch has room, half of the copies come in the same batch. The other copies come within an
                // hour, most of them soon.
                if messages.len() < self.scenario.batch_size && rng.random_bool(0.5) {
                    let (slot, index, agenda) = (receipt.slot, records.len(), &mut self.agenda);
                    let copy = self.queue.hand_out(self.now, slot, agenda);
                    self.queue.show(copy, records, index);
                    self.duplicate(&carried);
                    messages.push(self.polled(copy));
                } else {
                    let after = Duration::from_secs_f64(10f64.powf(rng.random_range(-2.0..3.5)));
                    self.plan(after, Occurrence::AppearsEarly(receipt));
                }
            } else if self.dice.strikes(Fault::StaleReceiptHandle, self.now, [event]) {
                self.queue.make_stale(receipt, &mut self.agenda);
                carried.excuse();
            }
        }
    }

    /// Makes a hidden message visible early, unless the message's state has changed since the fault struck.
    pub(super) fn appear_early(&mut self, receipt: ReceiptHandle) {
        if let Some(carried) = self.queue.appear_early(receipt) {
            self.duplicate(&carried);
        }
    }

    fn duplicate(&mut self, carried: &Carried) {
        self.dice.note(Fault::DuplicateDelivery, [carried.event()]);
        carried.duplicate();
    }

    /// Returns the time on the handler's clock, which is up to 5 s off if [`ClockSkew`](Fault::ClockSkew) strikes.
    pub(super) fn handlers_clock(&mut self, batch: &Batch) -> Timestamp {
        let Some(rng) = self.dice.roll(Fault::ClockSkew, self.now) else { return self.now };
        let ahead = rng.random_range(0..=2 * SKEW_MS);
        self.dice.note(Fault::ClockSkew, batch.events());
        Timestamp::from_millis(self.now.as_millis() + ahead - SKEW_MS)
    }

    /// Decides at random whether and how the handler crashes.
    pub(super) fn draw_death(&mut self, messages: u64) -> Option<Death> {
        for fault in [
            Fault::HandlerOutage,
            Fault::HandlerDiedBefore,
            Fault::HandlerDiedBetween,
            Fault::HandlerDiedAfter,
            Fault::HandlerDiedAfterMove,
            Fault::HandlerTimedOut,
        ] {
            let Some(rng) = self.dice.roll(fault, self.now) else { continue };
            let (calls, calls_at) = match fault {
                Fault::HandlerDiedBetween => (rng.random_range(1..messages.max(2)), None),
                Fault::HandlerDiedAfter | Fault::HandlerDiedAfterMove => (u64::MAX, None),
                Fault::HandlerTimedOut => {
                    let calls = rng.random_range(0..=messages);
                    let at = rng.random_range(0..HANDLER_TIMEOUT.as_millis() as u64);
                    (calls, Some(Duration::from_millis(at)))
                }
                _ => (0, None),
            };
            return Some(Death { fault, calls, calls_at });
        }
        None
    }

    /// Removes a field from randomly chosen messages. Returns the Lambda event that the handler then gets.
    pub(super) fn strike_fields(&mut self, batch: &Batch, records: &[Record]) -> Option<BatchEvent> {
        let mut struck = None;
        for (index, event) in batch.events().enumerate() {
            let Some(rng) = self.dice.roll(Fault::IncompleteMessage, self.now) else { continue };
            let messages = struck.get_or_insert_with(|| sqs_messages(batch, records));
            let (parent, name) = FIELDS[rng.random_range(0..FIELDS.len() as u32) as usize];
            let parent = messages[index].pointer_mut(parent).and_then(Value::as_object_mut);
            parent.expect("BUG: a message and its attributes are objects").remove(name);
            self.dice.note(Fault::IncompleteMessage, [event]);
        }
        struck.map(|messages| {
            let event = json!({ "Records": messages }).to_string();
            BatchEvent::read(&event).expect("BUG: it was just written")
        })
    }
}

/// Returns a batch's messages as Lambda passes them to the handler.
fn sqs_messages(batch: &Batch, records: &[Record]) -> Vec<Value> {
    let messages = records.iter().zip(&batch.messages).map(|(record, Polled { attributes, .. })| {
        let mut message = json!({
            "messageId": record.message_id,
            "receiptHandle": record.receipt_handle,
            "body": record.body,
            "attributes": {
                "ApproximateReceiveCount": record.receive_count.to_string(),
                "SentTimestamp": record.sent.as_millis().to_string(),
                "ApproximateFirstReceiveTimestamp": record.first_receive.as_millis().to_string(),
            },
        });
        let attribute = attributes.as_ref().and_then(|attributes| attributes.comeback.as_ref());
        if let Some(text) = attribute {
            let attribute = json!({"stringValue": text, "dataType": "String"});
            message["messageAttributes"] = json!({ MOVED_ATTRIBUTE: attribute });
        }
        message
    });
    messages.collect()
}
