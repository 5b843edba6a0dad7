//! What must hold of any bytes at all. Each entry point takes bytes and panics if something does not hold.
//!
//! `fuzz_targets` feeds them libFuzzer's bytes, `tests/bounded.rs` random ones on stable Rust; [`seeds`] are the
//! repository's `events/` as inputs.

mod decide;

use std::fs;
use std::path::Path;

use comeback_engine::{
    BatchEvent, BatchReport, FailedEvent, InvocationRecord, ReasonCode, Record, Settings, Timestamp,
};
use comeback_envelope::{Envelope, Metadata, Style, open};
use serde_json::Value;
use serde_json::value::RawValue;

pub use decide::{Question, decide};

/// The bytes as the handler's event.
///
/// # Panics
///
/// If a message is lost, or read differently than by another JSON parser.
pub fn batch_event(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let batch = match BatchEvent::read(text) {
        Ok(batch) => batch,
        Err(problem) => return assert!(!problem.to_string().is_empty()),
    };
    let nameless = batch.message_ids().filter(|id| id.is_empty()).count();
    assert_eq!(BatchReport::new(&batch).kept_whole.is_some(), nameless > 0);
    assert!(batch.records.iter().all(|record| !record.message_id.is_empty()));
    // It refuses more than we do: lone surrogates, numbers over a double's range, deep nesting.
    let Ok(event) = serde_json::from_str::<Value>(text) else { return };
    let messages = event["Records"].as_array().expect("a batch has its messages");
    assert_eq!(batch.message_ids().count(), messages.len(), "each message is handled or kept");
    for record in &batch.records {
        let is_it = |message: &&Value| message["messageId"] == *record.message_id;
        assert!(
            messages.iter().filter(is_it).any(|message| {
                message["body"] == *record.body && message["receiptHandle"] == *record.receipt_handle
            }),
            "read otherwise: {record:?}"
        );
    }
}

/// The bytes as the body of a message.
///
/// # Panics
///
/// If a record is read differently than by another JSON parser, or a part of it was changed.
pub fn invocation_record(data: &[u8]) {
    let Ok(body) = std::str::from_utf8(data) else { return };
    let read = InvocationRecord::read(body);
    if let Ok(record) = &read {
        let raw = [Some(record.request_payload)]
            .into_iter()
            .chain(record.error.iter().flat_map(|error| [error.error_type, error.message]));
        for part in raw.flatten() {
            assert!(body.as_bytes().as_ptr_range().contains(&part.get().as_ptr()), "a copy: {part}");
        }
        // It refuses more than we do: lone surrogates, numbers over a double's range, deep nesting.
        if let Ok(value) = serde_json::from_str::<Value>(body) {
            assert_eq!(value["requestContext"]["functionArn"], *record.function_arn);
            let payload: Value =
                serde_json::from_str(record.request_payload.get()).expect("a part of it parses as well");
            assert_eq!(value["requestPayload"], payload);
        }
    }
    let message = message(body);
    match (FailedEvent::read(&message), read) {
        (Ok(event), read) => {
            assert!(event.retry >= 1 && event.first_failure <= message.sent);
            assert!(!event.origin_request_id.is_empty());
            let opened = open(&event.payload).expect("a payload is not a malformed envelope");
            assert!(opened.metadata.is_none(), "still in an envelope: {}", event.payload);
            if let Ok(record) = read {
                assert_eq!(event.function_arn, record.function_arn);
            }
        }
        (Err(reason), read) => {
            // A redriven dead-letter is not a record either, and may hold a malformed envelope.
            let malformed = reason.code == ReasonCode::MalformedEnvelope;
            assert!(malformed || (reason.code == ReasonCode::MalformedRecord && read.is_err()), "{reason}");
        }
    }
}

/// A message received once, with this body. Its id is a number.
#[must_use]
pub fn message(body: impl Into<String>) -> Record {
    Record {
        message_id: "7".into(),
        receipt_handle: "h-1".into(),
        body: body.into(),
        receive_count: 1,
        sent: Timestamp::from_secs(1),
        first_receive: Timestamp::from_secs(1),
        moved: None,
        trace_header: None,
    }
}

/// The bytes as an event: a payload, an envelope, or not JSON. Whatever opens is sealed again, with an id made of the
/// event's own characters.
///
/// # Panics
///
/// If a payload is not what it was before, or an envelope holds an envelope.
pub fn envelope(data: &[u8]) {
    let Ok(event) = serde_json::from_slice::<&RawValue>(data) else { return };
    let opened = match open(event) {
        Ok(opened) => opened,
        Err(malformed) => return assert!(!malformed.to_string().is_empty()),
    };
    if opened.metadata.is_none() {
        assert_eq!(opened.payload.get(), event.get(), "without an envelope, an event is its payload");
    }
    let payload = opened.payload;
    assert!(open(&payload).is_ok_and(|inner| inner.metadata.is_none()), "nested: {payload}");

    let id: String = event.get().chars().take(40).collect();
    let metadata = opened.metadata.unwrap_or(Metadata {
        attempt: event.get().len() as u64,
        initial_timestamp: data.iter().map(|byte| u64::from(*byte)).sum(),
        origin_request_id: Some(id),
    });
    let envelope = Envelope { metadata, original_payload: payload };
    for style in Style::ALL {
        let sealed = RawValue::from_string(envelope.seal(style)).expect("what is sealed is JSON");
        let opened = open(&sealed).expect("what is sealed can be opened");
        assert_eq!(opened.payload.get(), envelope.original_payload.get(), "{style}");
        assert_eq!(opened.metadata.as_ref(), Some(&envelope.metadata), "{style}");
    }
}

/// A sample event as the input of one entry point.
#[derive(Debug)]
pub struct Seed {
    /// `batch_event`, `invocation_record`, `envelope` or `decide`.
    pub target: &'static str,
    /// The file it is from, and which of its messages.
    pub name: String,
    /// The input.
    pub data: Vec<u8>,
}

/// Every sample of `events/`: batches, bodies, payloads, and questions about them twelve hours later.
///
/// # Panics
///
/// If a sample cannot be read.
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let events =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("BUG: fuzz/ has a parent").join("events");
    let mut files: Vec<_> = fs::read_dir(&events)
        .unwrap_or_else(|error| panic!("{}: {error}", events.display()))
        .map(|entry| entry.expect("a directory can be read to its end").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| seeds_of(file)).collect()
}

fn seeds_of(file: &Path) -> Vec<Seed> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let event: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let name = file.file_stem().expect("BUG: it has an extension").to_string_lossy().into_owned();
    let Some(messages) = event["Records"].as_array() else {
        return vec![Seed { target: "envelope", name, data: text.into_bytes() }];
    };
    let batch = Seed { target: "batch_event", name: name.clone(), data: text.clone().into_bytes() };
    let bodies = messages.iter().map(|message| (message, message["body"].as_str().unwrap_or_default()));
    let seeds = bodies.enumerate().flat_map(|(place, (message, body))| {
        let name = format!("{name}-{place}");
        let payload = InvocationRecord::read(body).ok().map(|record| record.request_payload.get().to_owned());
        let inputs = [
            ("invocation_record", Some(body.as_bytes().to_vec())),
            ("envelope", payload.map(String::into_bytes)),
            ("decide", Some(question(message, body).to_bytes())),
        ];
        inputs
            .into_iter()
            .filter_map(move |(target, data)| Some(Seed { target, name: name.clone(), data: data? }))
    });
    std::iter::once(batch).chain(seeds).collect()
}

/// Whatever a sample lacks is zero.
fn question(message: &Value, body: &str) -> Question {
    let number = |attribute: &str| {
        message["attributes"][attribute].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
    };
    let sent = number("SentTimestamp");
    let record = Record {
        receive_count: u32::try_from(number("ApproximateReceiveCount")).unwrap_or(u32::MAX),
        sent: Timestamp::from_millis(sent),
        first_receive: Timestamp::from_millis(number("ApproximateFirstReceiveTimestamp")),
        ..crate::message(body)
    };
    let now = Timestamp::from_millis(sent + 12 * 3_600_000);
    Question { settings: Settings::default(), pause: None, record, now }
}
