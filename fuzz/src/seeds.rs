use std::fs;
use std::path::Path;

use comeback_engine::{InvocationRecord, Record, Settings, Timestamp};
use serde_json::Value;

use crate::Question;

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

/// Zero stands for what a sample lacks.
fn question(message: &Value, body: &str) -> Question {
    let number = |attribute: &str| {
        message["attributes"][attribute].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
    };
    let sent = number("SentTimestamp");
    let record = Record {
        message_id: "7".into(),
        receipt_handle: "h-1".into(),
        body: body.into(),
        receive_count: u32::try_from(number("ApproximateReceiveCount")).unwrap_or(u32::MAX),
        sent: Timestamp::from_millis(sent),
        first_receive: Timestamp::from_millis(number("ApproximateFirstReceiveTimestamp")),
        moved: None,
        trace_header: None,
    };
    let now = Timestamp::from_millis(sent + 12 * 3_600_000);
    Question { settings: Settings::default(), pause: None, record, now }
}
