use aws_lambda_events::sqs::SqsMessage;

use crate::Timestamp;

/// A message of the retry queue as the event source mapping hands it over: SQS's facts typed, the
/// body still JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// SQS's id; the same on every receive.
    pub message_id: String,
    /// This receive's handle; a later receive makes it stale.
    pub receipt_handle: String,
    /// The invocation record, as JSON text.
    pub body: String,
    /// `ApproximateReceiveCount`: 1 on the first receive, and not exact.
    pub receive_count: u32,
    /// `SentTimestamp`.
    pub sent: Timestamp,
    /// `ApproximateFirstReceiveTimestamp`.
    pub first_receive: Timestamp,
}

/// A message that lacks what SQS always writes. It can be neither judged nor hidden, only kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {message_id:?}: {what} is missing or unreadable; SQS always writes it")]
pub struct IncompleteMessage {
    /// The message's id; empty when that is what is missing.
    pub message_id: String,
    /// The field or attribute.
    pub what: &'static str,
}

/// A message without an id is among them. It cannot be reported failed, and what is not reported is
/// deleted: so nothing of the batch may be done, and all of it must be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message has no messageId; the whole batch is kept")]
pub struct MissingMessageId;

/// Reads the messages of a batch: those that can be handled, and those that can only be reported
/// failed.
///
/// # Errors
///
/// [`MissingMessageId`]: none of them may be handled.
pub fn read_batch(
    messages: Vec<SqsMessage>,
) -> Result<(Vec<Record>, Vec<IncompleteMessage>), MissingMessageId> {
    let mut records = Vec::with_capacity(messages.len());
    let mut incomplete = Vec::new();
    for message in messages {
        match Record::try_from(message) {
            Ok(record) => records.push(record),
            Err(error) if error.message_id.is_empty() => return Err(MissingMessageId),
            Err(error) => incomplete.push(error),
        }
    }
    Ok((records, incomplete))
}

impl TryFrom<SqsMessage> for Record {
    type Error = IncompleteMessage;

    /// # Errors
    ///
    /// [`IncompleteMessage`] names the first thing that is missing.
    fn try_from(message: SqsMessage) -> Result<Self, IncompleteMessage> {
        let message_id = message.message_id.unwrap_or_default();
        let attributes = message.attributes;
        let lacks = |what| IncompleteMessage { message_id: message_id.clone(), what };
        let number = |what| -> Result<u64, IncompleteMessage> {
            attributes.get(what).and_then(|value| value.parse().ok()).ok_or_else(|| lacks(what))
        };
        if message_id.is_empty() {
            return Err(lacks("messageId"));
        }
        Ok(Self {
            receipt_handle: message.receipt_handle.ok_or_else(|| lacks("receiptHandle"))?,
            body: message.body.ok_or_else(|| lacks("body"))?,
            receive_count: number("ApproximateReceiveCount")?.try_into().unwrap_or(u32::MAX),
            sent: Timestamp::from_millis(number("SentTimestamp")?),
            first_receive: Timestamp::from_millis(number("ApproximateFirstReceiveTimestamp")?),
            message_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use aws_lambda_events::sqs::SqsEvent;

    use super::*;

    const WHOLE: &str = r#"{"messageId": "m-1", "receiptHandle": "h-1", "body": "{}",
        "attributes": {"ApproximateReceiveCount": "2", "SentTimestamp": "1789400814145",
                       "ApproximateFirstReceiveTimestamp": "1789400814200", "SenderId": "AIDA"}}"#;

    fn record(message: &str) -> Result<Record, IncompleteMessage> {
        let event: SqsEvent = serde_json::from_str(&format!(r#"{{"Records": [{message}]}}"#)).unwrap();
        event.records.into_iter().next().unwrap().try_into()
    }

    #[test]
    fn reads_what_sqs_writes() {
        let expected = Record {
            message_id: "m-1".into(),
            receipt_handle: "h-1".into(),
            body: "{}".into(),
            receive_count: 2,
            sent: Timestamp::from_millis(1_789_400_814_145),
            first_receive: Timestamp::from_millis(1_789_400_814_200),
        };
        assert_eq!(record(WHOLE), Ok(expected));
    }

    #[test]
    fn a_receive_count_saturates() {
        let count = r#""ApproximateReceiveCount": "2""#;
        let huge = record(&WHOLE.replace(count, r#""ApproximateReceiveCount": "4294967296""#));
        assert_eq!(huge.unwrap().receive_count, u32::MAX);
    }

    #[test]
    fn names_what_is_missing() {
        for (gone, what) in [
            (r#""messageId": "m-1","#, "messageId"),
            (r#""receiptHandle": "h-1","#, "receiptHandle"),
            (r#""body": "{}","#, "body"),
            (r#""ApproximateReceiveCount": "2","#, "ApproximateReceiveCount"),
            (r#""SentTimestamp": "1789400814145","#, "SentTimestamp"),
            (r#""ApproximateFirstReceiveTimestamp": "1789400814200","#, "ApproximateFirstReceiveTimestamp"),
        ] {
            let error = record(&WHOLE.replace(gone, "")).unwrap_err();
            assert_eq!(error.what, what);
        }
        let error = record(&WHOLE.replace("1789400814145", "soon")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "message \"m-1\": SentTimestamp is missing or unreadable; SQS always writes it"
        );
    }

    #[test]
    fn a_batch_with_a_nameless_message_is_not_to_be_handled() {
        let read = |second: &str| {
            let event: SqsEvent =
                serde_json::from_str(&format!(r#"{{"Records": [{WHOLE}, {second}]}}"#)).unwrap();
            read_batch(event.records)
        };
        let (records, incomplete) = read(r#"{"messageId": "m-2"}"#).unwrap();
        assert_eq!((records.len(), incomplete.len()), (1, 1));
        assert_eq!((records[0].message_id.as_str(), incomplete[0].message_id.as_str()), ("m-1", "m-2"));
        for nameless in [r#"{"messageId": ""}"#, &WHOLE.replace(r#""messageId": "m-1","#, "")] {
            let error = read(nameless).unwrap_err().to_string();
            assert_eq!(error, "a message has no messageId; the whole batch is kept");
        }
    }
}
