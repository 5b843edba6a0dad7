//! Reads a file of recorded messages as an SQS event. Several JSON values in a file become one event.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use comeback_engine::{BatchEvent, FailedEvent, InvocationRecord, ReasonCode, Record, Timestamp};
use comeback_operate::Failure;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::failure::bad_content;

/// The recorded messages in a file, as text and in parsed form.
#[derive(Debug)]
pub struct Recorded<'t> {
    /// The text of the SQS event.
    pub event: Cow<'t, str>,
    /// The event's messages, parsed as the handler parses them.
    pub batch: BatchEvent,
    /// True if the file lacks attributes that SQS always sets. The replay then assumes that a message was sent
    /// when its event failed, and has been received once.
    pub times_assumed: bool,
}

impl<'t> Recorded<'t> {
    /// Parses a file's text: an SQS event, the output of `aws sqs receive-message`, a message or a failure record, or
    /// several of these. `at` is the assumed send time of a message that contains no time.
    ///
    /// # Errors
    ///
    /// Fails if the file contains no messages in any of the known formats.
    pub fn read(path: &Path, text: &'t str, at: Option<Timestamp>) -> Result<Self, Failure> {
        let (event, times_assumed) = sqs_event(text, at).map_err(|problem| bad_content(path, problem))?;
        let batch = BatchEvent::read(&event).map_err(|error| bad_content(path, error))?;
        Ok(Self { event, batch, times_assumed })
    }
}

type Members<'t> = BTreeMap<Cow<'t, str>, &'t RawValue>;

/// Returns the SQS event's text. The flag is true if the event's times are assumed.
fn sqs_event(text: &str, at: Option<Timestamp>) -> Result<(Cow<'_, str>, bool), String> {
    let values =
        serde_json::Deserializer::from_str(text).into_iter::<&RawValue>().collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|error| format!("not JSON: {error}"))?;
    let [first, ..] = *values else {
        return Err("it is empty, which `aws sqs receive-message` prints for an empty queue".into());
    };
    if values.len() == 1 && records_of(first).is_some() {
        return Ok((text.into(), false));
    }
    let mut event = EventOf { messages: Vec::new(), assumed: false, at };
    for (number, value) in values.iter().enumerate() {
        let place = if values.len() > 1 { format!("value {}: ", number + 1) } else { String::new() };
        event.add(value, LEVELS).map_err(|why| {
            format!(
                "{place}it is not an SQS event, the output of `aws sqs receive-message`, a message or a failure \
                 record: {why}"
            )
        })?;
    }
    Ok((event.text().into(), event.assumed))
}

/// Returns the records of an SQS event as raw JSON, or `None` for any other value.
fn records_of(value: &RawValue) -> Option<Vec<&RawValue>> {
    let members: Members<'_> = serde_json::from_str(value.get()).ok()?;
    let records = members.get("Records").filter(|records| has_messages(records))?;
    serde_json::from_str(records.get()).ok()
}

/// Returns true if the list contains SQS messages, not the `Records` of an S3 or SNS event.
fn has_messages(records: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct AnyRecord<'a> {
        #[serde(borrow)]
        event_source: Option<&'a RawValue>,
        #[serde(borrow)]
        receipt_handle: Option<&'a RawValue>,
    }
    let is_message = |record: &&RawValue| {
        serde_json::from_str::<AnyRecord<'_>>(record.get()).is_ok_and(|message| {
            message.receipt_handle.is_some()
                || message.event_source.is_some_and(|source| source.get() == "\"aws:sqs\"")
        })
    };
    serde_json::from_str::<Vec<&RawValue>>(records.get()).is_ok_and(|records| records.iter().any(is_message))
}

/// Returns the reason why the handler cannot parse an event from this body. Returns `None` if it can, or if only the
/// envelope is malformed.
fn why_no_body(body: &str) -> Option<String> {
    let time = Timestamp::from_secs(0);
    let record = Record {
        message_id: String::new(),
        receipt_handle: String::new(),
        body: body.into(),
        receive_count: 1,
        sent: time,
        first_receive: time,
        moved: None,
        trace_header: None,
        attributes: Vec::new(),
    };
    let reason = FailedEvent::read(&record).err()?;
    matches!(reason.code, ReasonCode::MalformedRecord | ReasonCode::PayloadLost).then_some(reason.detail)
}

/// A recorded message: deserialized from SQS's API format, and serialized as a record of a Lambda event.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all(deserialize = "PascalCase", serialize = "camelCase"))]
struct RecordedMessage {
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_handle: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    message_attributes: BTreeMap<String, RecordedAttribute>,
    #[serde(skip_deserializing)]
    event_source: &'static str,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all(deserialize = "PascalCase", serialize = "camelCase"))]
struct RecordedAttribute {
    #[serde(skip_serializing_if = "Option::is_none")]
    string_value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    binary_value: Option<String>,
    data_type: String,
}

fn messages_of(messages: &RawValue) -> Option<Vec<RecordedMessage>> {
    serde_json::from_str(messages.get()).ok().filter(|messages: &Vec<_>| !messages.is_empty())
}

impl RecordedMessage {
    /// Creates a message with this body. Its id is the body's request id. Without one, the id depends on `number`.
    fn with_body(body: &RawValue, number: usize) -> Self {
        let json = |text: &str| to_raw_value(text).expect("BUG: a string is JSON");
        let request_id = InvocationRecord::read(body.get()).ok().and_then(|record| record.request_id);
        Self {
            // The id seeds the jitter of the backoff, so the id must be the same in every run.
            message_id: Some(json(&request_id.unwrap_or_else(|| match number {
                0 => "recorded".into(),
                number => format!("recorded-{}", number + 1),
            }))),
            receipt_handle: Some(json("recorded")),
            body: Some(json(body.get())),
            ..Self::default()
        }
    }

    /// The time when the message's event failed or was dead-lettered. `None` if the body has no such time.
    fn time(&self) -> Option<Timestamp> {
        #[derive(Deserialize)]
        struct DeadLetter {
            dead_lettered_at: u64,
        }
        let body: String = serde_json::from_str(self.body.as_ref()?.get()).ok()?;
        match InvocationRecord::read(&body) {
            Ok(record) => record.timestamp,
            Err(_) => {
                let dead_letter: DeadLetter = serde_json::from_str(&body).ok()?;
                Some(Timestamp::from_secs(dead_letter.dead_lettered_at))
            }
        }
    }
}

/// Maximum number of lists in each other, such as the answers that `jq --slurp` collects. Each level is parsed again,
/// and takes a frame of the stack.
const LEVELS: usize = 8;

/// An SQS event built from the JSON values in a file. A message in the file may lack attributes, because
/// `aws sqs receive-message` prints only those that its caller requests.
struct EventOf {
    messages: Vec<Box<RawValue>>,
    /// True if a message lacked an attribute that SQS always sets, so a value was assumed.
    assumed: bool,
    at: Option<Timestamp>,
}

impl EventOf {
    /// Adds every message in a JSON value, which may be a list of messages, or up to `levels` lists in each other.
    fn add(&mut self, value: &RawValue, levels: usize) -> Result<(), String> {
        let list: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
        if !list.is_empty()
            && let Some(levels) = levels.checked_sub(1)
        {
            return list.into_iter().try_for_each(|element| self.add(element, levels));
        }
        if let Some(records) = records_of(value) {
            self.messages.extend(records.into_iter().map(ToOwned::to_owned));
            return Ok(());
        }
        let members: Members<'_> = serde_json::from_str(value.get()).unwrap_or_default();
        if let Some(messages) = members.get("Messages").and_then(|messages| messages_of(messages)) {
            messages.into_iter().for_each(|message| self.receive(message));
        } else if members.contains_key("messageId") && members.contains_key("body") {
            self.messages.push(value.to_owned());
        } else if members.contains_key("MessageId") && members.contains_key("Body") {
            self.receive(serde_json::from_str(value.get()).map_err(|error| error.to_string())?);
        } else {
            why_no_body(value.get()).map_or(Ok(()), Err)?;
            self.receive(RecordedMessage::with_body(value, self.messages.len()));
        }
        Ok(())
    }

    fn receive(&mut self, mut message: RecordedMessage) {
        const SENT: &str = "SentTimestamp";
        let time = message.time().or(self.at).unwrap_or(Timestamp::from_secs(0));
        let attributes = &mut message.attributes;
        let sent = attributes.get(SENT).cloned().unwrap_or_else(|| time.as_millis().to_string());
        for (name, value) in
            [(SENT, &*sent), ("ApproximateFirstReceiveTimestamp", &*sent), ("ApproximateReceiveCount", "1")]
        {
            if !attributes.contains_key(name) {
                self.assumed = true;
                attributes.insert(name.into(), value.into());
            }
        }
        message.event_source = "aws:sqs";
        self.messages.push(to_raw_value(&message).expect("BUG: strings and raw JSON are JSON"));
    }

    fn text(&self) -> String {
        #[derive(Serialize)]
        struct WrittenEvent<'m> {
            #[serde(rename = "Records")]
            records: &'m [Box<RawValue>],
        }
        serde_json::to_string(&WrittenEvent { records: &self.messages }).expect("BUG: raw JSON is JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"timestamp":"2026-09-14T15:46:54.145Z","requestContext":{"requestId":"r-1","functionArn":"f"},"requestPayload":{"n": 1E400}}"#;
    const DEAD_LETTER: &str = r#"{"reason":"max_age","function_arn":"f","dead_lettered_at":1789400814,"origin_request_id":"r-0","payload":7}"#;

    fn read(text: &str) -> Result<Recorded<'_>, String> {
        Recorded::read(Path::new("event.json"), text, Some(Timestamp::from_secs(7)))
            .map_err(|error| error.to_string())
    }

    /// Parses a file with exactly one message. Returns the message, and true if its times are assumed.
    fn message(text: &str) -> (Record, bool) {
        let Recorded { batch, times_assumed, .. } = read(text).unwrap();
        let [record] = batch.records.as_slice() else { panic!("{batch:?}") };
        (record.clone(), times_assumed)
    }

    fn received(body: &str, more: &str) -> String {
        let body = serde_json::to_string(body).unwrap();
        format!(r#"{{"MessageId":"m-1","ReceiptHandle":"h-1","MD5OfBody":"0","Body":{body}{more}}}"#)
    }

    #[test]
    fn output_of_receive_message_is_read() {
        let attributes = r#","Attributes":{"SenderId":"AIDA","ApproximateReceiveCount":"3","SentTimestamp":"1000","ApproximateFirstReceiveTimestamp":"2000","AWSTraceHeader":"Root=1"},"MessageAttributes":{"Comeback":{"StringValue":"{\"message_id\":\"m-0\",\"sent\":900,\"first_receive\":950,\"receives\":2,\"moves\":1}","DataType":"String"},"Blob":{"BinaryValue":"AAEC","DataType":"Binary"}}"#;
        let whole = received(RECORD, attributes);
        for text in [format!("{{\"Messages\": [\n{whole}]}}"), whole] {
            let (record, times_assumed) = message(&text);
            assert_eq!((record.message_id.as_str(), record.receipt_handle.as_str()), ("m-1", "h-1"));
            assert_eq!((&*record.body, record.trace_header.as_deref()), (RECORD, Some("Root=1")));
            assert_eq!((record.receive_count, record.sent), (5, Timestamp::from_millis(1_000)));
            assert_eq!(record.moved.unwrap().message_id, "m-0");
            assert_eq!((record.attributes.len(), &*record.attributes[0].name), (1, "Blob"));
            assert!(!times_assumed);
        }
        let two = format!(r#"{{"Messages":[{0},{0}]}}"#, received("x", ""));
        assert_eq!(read(&two).unwrap().batch.records.len(), 2);
    }

    #[test]
    fn attributes_that_were_not_asked_for_are_assumed() {
        for (body, sent) in [
            (RECORD, Timestamp::from_rfc3339("2026-09-14T15:46:54.145Z").unwrap()),
            (DEAD_LETTER, Timestamp::from_secs(1_789_400_814)),
            ("hello", Timestamp::from_secs(7)),
        ] {
            let (record, times_assumed) = message(&received(body, ""));
            assert_eq!((record.receive_count, record.sent, record.first_receive), (1, sent, sent), "{body}");
            assert!(times_assumed);
        }
        let (record, times_assumed) = message(&received(RECORD, r#","Attributes":{"SentTimestamp":"1000"}"#));
        assert_eq!((record.sent, record.first_receive), (Timestamp::from_secs(1), Timestamp::from_secs(1)));
        assert!(times_assumed);
    }

    #[test]
    fn a_message_of_an_event_stands_for_an_event_of_one() {
        let attributes = r#"{"ApproximateReceiveCount":"2","SentTimestamp":"1000","ApproximateFirstReceiveTimestamp":"2000"}"#;
        let bare =
            format!(r#"{{"messageId":"m-1","receiptHandle":"h-1","body":"x","attributes":{attributes}}}"#);
        let (record, times_assumed) = message(&bare);
        assert_eq!((record.receive_count, &*record.body, times_assumed), (2, "x", false));
    }

    #[test]
    fn a_failure_record_alone_is_a_message_received_for_the_first_time() {
        let (record, times_assumed) = message(&format!("\n{RECORD}\n"));
        assert_eq!((record.message_id.as_str(), &*record.body, times_assumed), ("r-1", RECORD, true));
        assert_eq!((record.receive_count, record.sent.to_string().as_str()), (1, "2026-09-14T15:46:54.145Z"));
        for body in
            [DEAD_LETTER, r#"{"requestContext":{"functionArn":"f"},"requestPayload":{"_retry_metadata":7}}"#]
        {
            assert_eq!((message(body).0.message_id.as_str(), &*message(body).0.body), ("recorded", body));
        }
    }

    #[test]
    fn lists_and_lines_are_one_event() {
        let message = |id: &str| received(RECORD, "").replace("m-1", id);
        let ids = |text: &str| {
            let records = read(text).unwrap().batch.records;
            records.into_iter().map(|record| record.message_id).collect::<Vec<_>>()
        };
        let (one, two) = (message("m-1"), message("m-2"));
        assert_eq!(ids(&format!("[{one},\n{two}]")), ["m-1", "m-2"], "--query Messages");
        assert_eq!(ids(&format!("{one}\n{two}\n")), ["m-1", "m-2"], "JSON Lines");
        assert_eq!(ids(&format!("{{\"Messages\":[{one}]}}\n[{two}]")), ["m-1", "m-2"], "several answers");
        assert_eq!(
            ids(&format!("{RECORD}\n{DEAD_LETTER}\n{DEAD_LETTER}")),
            ["r-1", "recorded-2", "recorded-3"]
        );
        let events = r#"{"Records":[{"eventSource":"aws:sqs","messageId":"m-3","receiptHandle":"h","body":"x","attributes":{"ApproximateReceiveCount":"2","SentTimestamp":"1","ApproximateFirstReceiveTimestamp":"2"}}]}"#;
        assert_eq!(ids(&format!("{events}\n{one}")), ["m-3", "m-1"]);
        assert_eq!(ids(&format!("[[{one}],[{two}]]")), ["m-1", "m-2"], "jq --slurp");
        let refused = read(&format!("{one}\n{{\"order\":7}}")).unwrap_err();
        assert!(refused.starts_with("event.json: value 2: it is not an SQS event"), "{refused}");
    }

    #[test]
    fn anything_else_is_refused_with_what_it_is() {
        let none = "event.json: it is not an SQS event, the output of `aws sqs receive-message`, a message or \
                    a failure record: ";
        for (text, why) in [
            ("null", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("[7]", "not a JSON object"),
            (&format!("{}{}", "[".repeat(20_000), "]".repeat(20_000)), "not a JSON object"),
            (r#"{"order": 7}"#, "missing field `requestContext` at line 1 column 12"),
            (r#"{"Messages": []}"#, "missing field `requestContext` at line 1 column 16"),
            (r#"{"Records": []}"#, "missing field `requestContext` at line 1 column 15"),
            (r#"{"Records": [{"eventSource": "aws:s3"}]}"#, "an event of aws:s3, without a failure record"),
            (
                r#"{"requestContext":{},"KafkaBatchInfo":{}}"#,
                "the failure record of a Kafka mapping, which has no payload by design; its records are in \
                 their source until they expire (KafkaBatchInfo says which). Give that mapping another \
                 failure destination",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), format!("{none}{why}"), "{text}");
        }
        let empty = "event.json: it is empty, which `aws sqs receive-message` prints for an empty queue";
        assert_eq!(read(" \n").unwrap_err(), empty);
        let broken = "event.json: not JSON: expected value at line 2 column 14";
        assert_eq!(read("{\n  \"Records\": }").unwrap_err(), broken);
    }

    #[test]
    fn an_incomplete_message_is_set_apart() {
        for (message, what) in [
            (r#"{"eventSource": "aws:sqs", "messageId": "m"}"#, "receiptHandle"),
            (r#"{"receiptHandle": 7}"#, "messageId"),
            (r#"{"messageId": "m", "receiptHandle": 7}"#, "receiptHandle"),
        ] {
            let event = format!(r#"{{"Records": [{message}]}}"#);
            let BatchEvent { records, incomplete, .. } = read(&event).unwrap().batch;
            assert!(records.is_empty());
            assert_eq!(incomplete[0].what, what);
            assert_eq!(incomplete[0].message_id, if message.contains(r#""m""#) { "m" } else { "" });
        }
    }
}
