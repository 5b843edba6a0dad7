use std::path::Path;

use comeback_engine::{BatchEvent, Pauses, Policy, Record, Timestamp, decide};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::BadFile;

/// Content of a JSON file.
#[derive(Debug)]
pub enum EventFile {
    /// An SQS event, for the retry handler.
    Sqs(BatchEvent),
    /// Any other JSON: a payload for a target function.
    Payload,
}

impl EventFile {
    /// Reads a file's text, as the Lambda reads its event.
    ///
    /// # Errors
    ///
    /// The text is not JSON.
    pub fn read(path: &Path, text: &str) -> Result<Self, BadFile> {
        let json: &RawValue =
            serde_json::from_str(text).map_err(|error| BadFile::new(path, format!("not JSON: {error}")))?;
        if !is_sqs_event(json) {
            return Ok(Self::Payload);
        }
        BatchEvent::read(text).map(Self::Sqs).map_err(|error| BadFile::new(path, error))
    }
}

/// S3 and SNS events have `Records` too, and a target may be invoked with one.
fn is_sqs_event(json: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow, rename = "Records")]
        records: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Message<'a> {
        #[serde(borrow)]
        event_source: Option<&'a RawValue>,
        #[serde(borrow)]
        receipt_handle: Option<&'a RawValue>,
    }
    let is_message = |record: &&RawValue| {
        serde_json::from_str::<Message<'_>>(record.get()).is_ok_and(|message| {
            message.receipt_handle.is_some()
                || message.event_source.is_some_and(|source| source.get() == "\"aws:sqs\"")
        })
    };
    json.get().starts_with('{')
        && serde_json::from_str::<Event<'_>>(json.get())
            .is_ok_and(|event| event.records.iter().any(is_message))
}

/// A file's text.
pub(crate) fn text_of(path: &Path) -> Result<String, BadFile> {
    std::fs::read_to_string(path).map_err(|error| BadFile::new(path, error))
}

/// The moment at which the last of the messages is due: a first receive when it was sent, a
/// later one when its backoff ends, or at its first receive if there will be no retry.
/// `None` without messages.
pub fn last_due(batch: &BatchEvent, policy: &Policy) -> Option<Timestamp> {
    let due = |record: &Record| match record.receive_count {
        0 | 1 => record.sent,
        _ => decide(record, policy, &Pauses::default(), record.first_receive)
            .due()
            .unwrap_or(record.first_receive),
    };
    batch.records.iter().map(due).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<EventFile, String> {
        EventFile::read(Path::new("event.json"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn anything_but_sqs_messages_is_a_payload() {
        for payload in [
            "null",
            "[]",
            r#"{"order": 7}"#,
            r#"{"Records": []}"#,
            r#"{"Records": [{"eventSource": "aws:s3"}]}"#,
        ] {
            assert!(matches!(read(payload), Ok(EventFile::Payload)), "{payload}");
        }
    }

    #[test]
    fn an_incomplete_message_is_set_apart_as_it_is_for_the_handler() {
        for (message, what) in [
            (r#"{"eventSource": "aws:sqs", "messageId": "m"}"#, "receiptHandle"),
            (r#"{"receiptHandle": 7}"#, "messageId"),
            (r#"{"messageId": "m", "receiptHandle": 7}"#, "receiptHandle"),
        ] {
            let Ok(EventFile::Sqs(messages)) = read(&format!(r#"{{"Records": [{message}]}}"#)) else {
                panic!("an SQS event")
            };
            assert!(messages.records.is_empty());
            assert_eq!(messages.incomplete[0].what, what);
            assert_eq!(messages.incomplete[0].message_id, if message.contains(r#""m""#) { "m" } else { "" });
        }
    }

    #[test]
    fn errors_name_the_file_and_the_position() {
        assert_eq!(
            read("{\n  \"Records\": }").unwrap_err(),
            "event.json: not JSON: expected value at line 2 column 14"
        );
    }
}
