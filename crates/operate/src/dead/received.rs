//! A message received from the dead-letter queue, and its conversion to a dead-letter.

use std::collections::BTreeMap;

use comeback_engine::{MOVED_ATTRIBUTE, ReceivedDeadLetter, Record, Timestamp};

use crate::aws::{AttributeValue, MessageAttribute, ReceivedMessage};
use crate::failure::Failure;

/// A message received from the dead-letter queue.
#[derive(Clone, Debug)]
pub struct Received {
    /// The message, in the form that the handler's code uses.
    pub record: Record,
    /// The message attributes, by name.
    pub attributes: BTreeMap<String, MessageAttribute>,
}

impl Received {
    /// Creates a dead-letter from a received message; fails if SQS left out part of the message.
    pub(super) fn of(message: ReceivedMessage) -> Result<Self, Failure> {
        let ReceivedMessage { id, receipt_handle, body, system, attributes } = message;
        let lacks = |what: &str| Failure::could_not(format!("SQS returned no {what} for message {id:?}"));
        let number = |name: &str| {
            let text = system.get(name).and_then(|text| text.parse::<u64>().ok());
            text.ok_or_else(|| lacks(name))
        };
        let mut record = Record {
            receipt_handle: receipt_handle.ok_or_else(|| lacks("receipt handle"))?,
            body: body.ok_or_else(|| lacks("body"))?,
            receive_count: number("ApproximateReceiveCount")?.try_into().unwrap_or(u32::MAX),
            sent: Timestamp::from_millis(number("SentTimestamp")?),
            first_receive: Timestamp::from_millis(number("ApproximateFirstReceiveTimestamp")?),
            moved: None,
            trace_header: system.get("AWSTraceHeader").cloned(),
            attributes: Vec::new(),
            message_id: id.clone(),
        };
        if let Some(moved) = text(&attributes, MOVED_ATTRIBUTE) {
            // As in the handler, a copy with a garbled attribute counts as a new message.
            let _ = record.restore(moved);
        }
        Ok(Self { record, attributes })
    }

    /// The message id that SQS assigned.
    pub fn id(&self) -> &str {
        &self.record.message_id
    }

    /// Parses the message as a dead-letter.
    pub fn dead_letter(&self) -> ReceivedDeadLetter<'_> {
        ReceivedDeadLetter::read(&self.record, |name| text(&self.attributes, name))
    }
}

fn text<'a>(attributes: &'a BTreeMap<String, MessageAttribute>, name: &str) -> Option<&'a str> {
    match &attributes.get(name)?.value {
        AttributeValue::Text(text) => Some(text),
        AttributeValue::Bytes(_) => None,
    }
}
