//! Parses the batch of messages in Lambda's event.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Members, object, string};
use crate::record::{Attribute, GarbledAttribute, MOVED_ATTRIBUTE, Record, base_type};
use crate::time::Timestamp;

/// A batch of messages: the event that the event source mapping sends to the handler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchEvent {
    /// The messages that the handler can process, in the order of the batch.
    pub records: Vec<Record>,
    /// Messages that lack a required field. The handler only reports them as failed.
    pub incomplete: Vec<IncompleteMessage>,
    /// Errors for records whose message attribute `Comeback` is unreadable; these records count as new messages.
    pub garbled: Vec<GarbledMessage>,
    /// The ARN of the retry queue, from the first message that has an `eventSourceARN`; `None` if no message has one.
    pub queue_arn: Option<String>,
}

/// A message that lacks a field or an attribute that SQS always adds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {message_id:?}: {what} is missing or unreadable; SQS always adds it")]
pub struct IncompleteMessage {
    /// SQS's id for the message; empty if the id is missing.
    pub message_id: String,
    /// Name of the missing field or attribute.
    pub what: &'static str,
}

/// A message whose message attribute `Comeback` is unreadable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {message_id:?}: {problem}; it counts as a new message")]
pub struct GarbledMessage {
    /// SQS's id for the message.
    pub message_id: String,
    /// The reason why the attribute is unreadable.
    pub problem: GarbledAttribute,
}

/// The reason given for keeping a whole batch: it has a message that cannot be reported as failed.
pub const NO_MESSAGE_ID: &str = "a message has no messageId; the whole batch is kept";

/// Error for an event that is not a batch of SQS messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an SQS event: {0}")]
pub struct NotABatch(String);

#[derive(Deserialize)]
struct WireEvent<'a> {
    #[serde(borrow, rename = "Records")]
    records: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMessage<'a> {
    #[serde(borrow)]
    message_id: Option<&'a RawValue>,
    #[serde(borrow)]
    receipt_handle: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    attributes: Option<&'a RawValue>,
    #[serde(borrow)]
    message_attributes: Option<&'a RawValue>,
    #[serde(borrow, rename = "eventSourceARN")]
    event_source_arn: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attributes<'a> {
    #[serde(borrow)]
    approximate_receive_count: Option<&'a RawValue>,
    #[serde(borrow)]
    sent_timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    approximate_first_receive_timestamp: Option<&'a RawValue>,
    #[serde(borrow, rename = "AWSTraceHeader")]
    trace_header: Option<&'a RawValue>,
}

impl BatchEvent {
    /// Parses an event from JSON.
    ///
    /// # Errors
    ///
    /// Fails if the event is not an object that has an array `Records`.
    ///
    /// ```
    /// use comeback_engine::BatchEvent;
    ///
    /// let event = r#"{"Records": [{"messageId": "m-1", "receiptHandle": "h-1", "body": 7}]}"#;
    /// assert_eq!(
    ///     BatchEvent::read(event).unwrap().incomplete[0].to_string(),
    ///     r#"message "m-1": body is missing or unreadable; SQS always adds it"#,
    /// );
    /// ```
    pub fn read(event: &str) -> Result<Self, NotABatch> {
        let event: WireEvent<'_> = object(event).map_err(NotABatch)?;
        let mut batch = Self::default();
        for message in event.records {
            // A message that is not an object is treated as an empty object.
            let message: WireMessage<'_> = object(message.get()).unwrap_or_default();
            match message.record() {
                Ok((record, problem)) => {
                    if let Some(problem) = problem {
                        batch.garbled.push(GarbledMessage { message_id: record.message_id.clone(), problem });
                    }
                    batch.records.push(record);
                }
                Err(incomplete) => batch.incomplete.push(incomplete),
            }
            batch.queue_arn = batch.queue_arn.or_else(|| message.event_source_arn.and_then(string));
        }
        Ok(batch)
    }

    /// Returns true if a message has no id. The handler must not process such a batch at all.
    pub fn lacks_an_id(&self) -> bool {
        self.incomplete.iter().any(|message| message.message_id.is_empty())
    }

    /// The ids of all messages, including incomplete ones; an empty string for each message without an id.
    pub fn message_ids(&self) -> impl Iterator<Item = &str> {
        let records = self.records.iter().map(|record| record.message_id.as_str());
        records.chain(self.incomplete.iter().map(|message| message.message_id.as_str()))
    }
}

impl WireMessage<'_> {
    /// Converts the message to a [`Record`], without the sender's attributes that SQS would refuse in a dead-letter.
    fn record(&self) -> Result<(Record, Option<GarbledAttribute>), IncompleteMessage> {
        let message_id = self.message_id.and_then(string).unwrap_or_default();
        let lacks = |what| IncompleteMessage { message_id: message_id.clone(), what };
        let text = |member: Option<&RawValue>, what| member.and_then(string).ok_or_else(|| lacks(what));
        let number = |attribute, what| text(attribute, what)?.parse::<u64>().map_err(|_| lacks(what));
        if message_id.is_empty() {
            return Err(lacks("messageId"));
        }
        let (receipt_handle, body) = (text(self.receipt_handle, "receiptHandle")?, text(self.body, "body")?);
        let attributes: Attributes<'_> =
            self.attributes.and_then(|attributes| object(attributes.get()).ok()).unwrap_or_default();
        let receive_count = number(attributes.approximate_receive_count, "ApproximateReceiveCount")?;
        let sent = number(attributes.sent_timestamp, "SentTimestamp")?;
        let first_receive =
            number(attributes.approximate_first_receive_timestamp, "ApproximateFirstReceiveTimestamp")?;
        let senders = self.message_attributes.and_then(|attributes| object(attributes.get()).ok());
        let mut senders: BTreeMap<String, &RawValue> = senders.unwrap_or_default();
        let comeback = senders.remove(MOVED_ATTRIBUTE).filter(|raw| raw.get() != "null");
        let mut record = Record {
            receipt_handle,
            body,
            receive_count: receive_count.try_into().unwrap_or(u32::MAX),
            sent: Timestamp::from_millis(sent),
            first_receive: Timestamp::from_millis(first_receive),
            moved: None,
            trace_header: attributes.trace_header.and_then(string),
            attributes: senders.into_iter().filter_map(|(name, raw)| attribute(name, raw)).collect(),
            message_id,
        };
        let problem = comeback.and_then(|raw| restore(&mut record, raw).err());
        Ok((record, problem))
    }
}

fn restore(record: &mut Record, comeback: &RawValue) -> Result<(), GarbledAttribute> {
    let members: Members<'_> = object(comeback.get()).unwrap_or_default();
    match members.get("stringValue").and_then(|raw| string(raw)) {
        Some(text) => record.restore(&text),
        None => Err(GarbledAttribute("it has no stringValue".into())),
    }
}

fn attribute(name: String, raw: &RawValue) -> Option<Attribute> {
    let members: Members<'_> = object(raw.get()).ok()?;
    let text = |name| members.get(name).and_then(|raw| string(raw));
    let data_type = text("dataType")?;
    let value = match base_type(&data_type) {
        "String" | "Number" => text("stringValue"),
        "Binary" => text("binaryValue"),
        _ => None,
    };
    let value = value.filter(|value| !value.is_empty())?;
    Some(Attribute { name: name.into(), data_type: data_type.into(), value })
}

#[cfg(test)]
mod tests;
