//! Properties that hold for any input. Each entry point takes bytes, and panics if a property does not hold for them.
//!
//! The bytes come from libFuzzer in `fuzz_targets` or, on stable Rust, from `tests/bounded.rs`.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use comeback_backoff::{UnreadableWait, requested_wait};
use comeback_engine::{
    Action, BACKOFF_RANGE, BatchEvent, BatchReport, Directive, FailedEvent, HOLD, InvocationRecord, Jitter,
    LONGEST_SPREAD, MAX_AGE_RANGE, MAX_RETRIES_RANGE, Pause, PauseTarget, Pauses, Policies, Policy,
    RETENTION, ReasonCode, Record, Settings, Timestamp, longest_between_reads,
};
use comeback_envelope::{Envelope, Metadata, Style, open};
use serde_json::Value;
use serde_json::value::RawValue;

/// Parses the bytes as the handler's event, and compares the result with that of another JSON parser.
///
/// # Panics
///
/// Panics if a message is lost, or if the two parsers read a message differently.
pub fn batch_event(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let batch = match BatchEvent::read(text) {
        Ok(batch) => batch,
        Err(problem) => return assert!(!problem.to_string().is_empty()),
    };
    let nameless = batch.message_ids().filter(|id| id.is_empty()).count();
    assert_eq!(BatchReport::new(&batch).kept_whole, nameless > 0);
    assert!(batch.records.iter().all(|record| !record.message_id.is_empty()));
    // serde_json also refuses lone surrogates, numbers beyond a double's range, and deep nesting. Comeback accepts
    // them.
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

/// Parses the bytes as the body of a message, and compares the invocation record with another JSON parser's result.
///
/// # Panics
///
/// Panics if the two parsers read the record differently, or if a part of the record is not taken verbatim from the
/// body.
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
            // A redriven dead-letter is not an invocation record, but it may contain a malformed envelope.
            let is_of_the_record =
                matches!(reason.code, ReasonCode::MalformedRecord | ReasonCode::PayloadLost);
            let malformed = reason.code == ReasonCode::MalformedEnvelope;
            assert!(malformed || (is_of_the_record && read.is_err()), "{reason}");
        }
    }
}

/// Parses eight bytes as the time of a failure, in seconds, and the rest as the message of a `RetryAfter`.
///
/// # Panics
///
/// Panics if text after the requested wait changes the wait, or if the engine parses the wait differently. For a
/// failure one second later, the wait must be the same or one second shorter.
pub fn retry_after(data: &[u8]) {
    let Some((seconds, text)) = data.split_first_chunk() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let failed_at = Timestamp::from_secs(u64::from_le_bytes(*seconds) % 253_402_300_800);
    let read = |text: &str, second: u64| {
        requested_wait(text, UNIX_EPOCH + Duration::from_secs(failed_at.as_secs() + second))
    };
    let wait = read(text, 0);
    let wanted = text.split(';').next().unwrap_or_default();
    assert_eq!(read(&format!("\t{wanted} ; because; {text}"), 0), wait);
    match (wait, read(text, 1)) {
        (Ok(wait), Ok(later)) => {
            let second = Duration::from_secs(1);
            assert!(
                later == wait || later == wait.saturating_sub(second),
                "{wait:?}, and a second later {later:?}"
            );
        }
        (Err(UnreadableWait::DistantNumber), Ok(later)) => assert!(later.as_secs() >= 1_209_599, "{later:?}"),
        (wait, later) => assert_eq!(wait, later),
    }
    let record = serde_json::json!({
        "requestContext": {"functionArn": "arn:aws:lambda:eu-west-1:123456789012:function:orders"},
        "requestPayload": null,
        "responsePayload": {"errorType": "RetryAfter$1", "errorMessage": text},
    });
    let record = Record { sent: failed_at, first_receive: failed_at, ..message(record.to_string()) };
    match FailedEvent::read(&record).expect("a record").directive {
        Some(Directive::RetryAfter(moment)) => {
            let rounded = moment.since(failed_at).saturating_sub(wait.expect("backoff reads it"));
            assert!(rounded < Duration::from_millis(1) && moment > failed_at, "{rounded:?} late");
        }
        Some(Directive::Unreadable { text, .. }) => {
            assert!(wait.is_err() || wait == Ok(Duration::ZERO), "the engine ignores {wait:?}");
            assert!(text.chars().count() <= 64 && !text.contains(char::is_control), "{text:?}");
        }
        other => panic!("{other:?} of a RetryAfter"),
    }
}

/// Returns a message with this body and a numeric id, received for the first time.
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
        attributes: Vec::new(),
    }
}

/// Parses the bytes as a target's event, puts its payload into an envelope of each style, and opens each envelope.
///
/// # Panics
///
/// Panics if a payload or metadata changes, or if an envelope contains an envelope.
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
    check_seals(&Envelope { metadata, original_payload: payload });
}

fn check_seals(envelope: &Envelope<'_>) {
    for style in Style::ALL {
        let sealed = RawValue::from_string(envelope.seal(style)).expect("what is sealed is JSON");
        let opened = open(&sealed).expect("what is sealed can be opened");
        assert_eq!(opened.payload.get(), envelope.original_payload.get(), "{style}");
        assert_eq!(opened.metadata.as_ref(), Some(&envelope.metadata), "{style}");
    }
}

/// Number of numeric fields in a [`Question`], each of eight little-endian bytes.
const NUMBERS: usize = 14;

/// The input to [`decide`], decoded from arbitrary bytes: first the numeric fields, then the message's body.
#[derive(Clone, Debug)]
pub struct Question {
    /// The policy's settings. Only the limits on age and retries, the backoff, `JITTER` and `ENVELOPE` vary.
    pub settings: Settings,
    /// A pause of every function: its start, its end (0 if it has no end) and its spread, in seconds. `None` if nothing
    /// is paused.
    pub pause: Option<(u64, u64, u64)>,
    /// The message, with a numeric id.
    pub record: Record,
    /// The current time on the handler's clock.
    pub now: Timestamp,
}

/// Calls [`comeback_engine::decide()`] with a [`Question`] made from the bytes, and checks the decision.
///
/// # Panics
///
/// Panics if `decide` panics, or if its decision violates a bound that holds for every message.
pub fn decide(data: &[u8]) {
    Question::from_bytes(data).check();
}

impl Question {
    /// Creates an input for [`decide`] from any bytes, with zeros for missing bytes and each number forced into its
    /// range.
    #[must_use]
    pub fn from_bytes(data: &[u8]) -> Self {
        let (head, body) = data.split_at(data.len().min(8 * NUMBERS));
        let mut numbers = [0; NUMBERS];
        for (number, bytes) in numbers.iter_mut().zip(head.chunks(8)) {
            *number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
        }
        let within =
            |number: u64, range: RangeInclusive<u64>| (number % (range.end() + 1)).max(*range.start());
        let [age, retries, base, cap, jitter, style, id, receives, sent, first, now, from, length, spread] =
            numbers;
        let max_backoff = within(cap, BACKOFF_RANGE);
        let settings = Settings {
            max_age: within(age, MAX_AGE_RANGE),
            max_retries: within(retries, MAX_RETRIES_RANGE),
            base_backoff: within(base, BACKOFF_RANGE).min(max_backoff),
            max_backoff,
            jitter: Jitter::ALL[jitter as usize % Jitter::ALL.len()],
            envelope: Style::ALL[style as usize % Style::ALL.len()],
            non_retryable_errors: vec!["*Fatal*".into(), "Order*".into()],
            target_functions: vec!["arn:aws:lambda:eu-west-1:123456789012:function:flaky-*".into()],
            ..Settings::default()
        };
        // The start is limited so that the pause ends before the year 10000.
        let (from, length) = (from % 249_000_000_000, within(length, 0..=RETENTION.as_secs()));
        let until = if length == 0 { 0 } else { from + length };
        let record = Record {
            message_id: id.to_string(),
            receive_count: receives as u32,
            sent: Timestamp::from_millis(sent),
            first_receive: Timestamp::from_millis(first),
            ..message(String::from_utf8_lossy(body))
        };
        let pause = (from > 0).then_some((from, until, spread % LONGEST_SPREAD.as_secs()));
        Self { settings, pause, record, now: Timestamp::from_millis(now) }
    }

    /// Reverses [`from_bytes`](Self::from_bytes).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { settings, pause, record, now } = self;
        let (from, until, spread) = pause.unwrap_or_default();
        let numbers: [u64; NUMBERS] = [
            settings.max_age,
            settings.max_retries,
            settings.base_backoff,
            settings.max_backoff,
            settings.jitter as u64,
            settings.envelope as u64,
            record.message_id.parse().unwrap_or_default(),
            record.receive_count.into(),
            record.sent.as_millis(),
            record.first_receive.as_millis(),
            now.as_millis(),
            from,
            until.saturating_sub(from),
            spread,
        ];
        numbers.iter().flat_map(|number| number.to_le_bytes()).chain(record.body.bytes()).collect()
    }

    /// Returns the pauses as the handler would read them from the SSM parameter.
    #[must_use]
    pub fn pauses(&self) -> Pauses {
        let Some((from, until, spread)) = self.pause else { return Pauses::default() };
        let from = Timestamp::from_secs(from);
        let pause = Pause {
            target: PauseTarget::All,
            from,
            until: (until > 0).then(|| Timestamp::from_secs(until)),
            spread: Duration::from_secs(spread),
            by: None,
            why: None,
        };
        Pauses::default().with([pause])
    }

    fn check(&self) {
        let Self { settings, record, now, .. } = self;
        let pauses = self.pauses();
        let policy = Policy::new(settings.clone()).expect("BUG: settings are brought into range");
        let policies = Policies::from(policy);
        let action = comeback_engine::decide(record, &policies, &pauses, *now);
        let again = comeback_engine::decide(record, &policies, &pauses, *now);
        assert_eq!(format!("{action:?}"), format!("{again:?}"), "the same question has the same answer");
        match &action {
            Action::Defer { due, visibility_timeout, .. } => {
                assert_eq!(visibility_timeout.subsec_nanos(), 0, "SQS counts whole seconds");
                assert!((1..=43_170).contains(&visibility_timeout.as_secs()), "{visibility_timeout:?}");
                self.check_later_look(&policies, *due, *visibility_timeout);
            }
            Action::Hold { visibility_timeout, .. } => {
                assert!(pauses.iter().any(|pause| pause.is_active(*now)), "nothing is paused");
                assert!(
                    (1..=HOLD.as_secs()).contains(&visibility_timeout.as_secs()),
                    "{visibility_timeout:?}"
                );
            }
            Action::Reinvoke { envelope, .. } => {
                let event = FailedEvent::read(record).expect("a retry has an event");
                self.check_retry(policies.stack(), &event, envelope);
            }
            Action::DeadLetter { reason, .. } => {
                assert_eq!(action.due(), None);
                assert!(!reason.detail.is_empty());
            }
        }
    }

    /// Checks the decision at a later receive. The due time must not change unless a pause has ended.
    fn check_later_look(&self, policies: &Policies, due: Timestamp, hidden: Duration) {
        assert!(hidden <= due.since(self.now) + Duration::from_secs(1), "{hidden:?} until {due}");
        let later = self.now.saturating_add(hidden);
        let pauses = self.pauses();
        let latest_notice = longest_between_reads(policies.stack().settings().maximum_concurrency);
        let is_noticed = |until: Timestamp| until.saturating_add(latest_notice) <= self.now;
        let is_settled = pauses.iter().all(|pause| pause.until.is_some_and(is_noticed) || later < pause.from);
        if self.record.receive_count > 1 && later >= due && is_settled {
            let look = comeback_engine::decide(&self.record, policies, &pauses, later);
            assert!(!matches!(look, Action::Defer { .. }), "deferred again: {look:?}");
            assert!(look.due().is_none_or(|moved| moved == due), "{due} has moved: {look:?}");
        }
    }

    fn check_retry(&self, policy: &Policy, event: &FailedEvent<'_>, envelope: &Envelope<'_>) {
        let first_failure = Timestamp::from_secs(envelope.metadata.initial_timestamp);
        assert!(self.record.receive_count > 1, "no backoff was served yet");
        assert!(policy.allows(&event.function_arn));
        assert!((1..=policy.settings().max_retries).contains(&envelope.metadata.attempt));
        assert!(first_failure <= self.record.sent, "a forged time would void MAX_AGE");
        let until = |pause: &Pause| pause.until.map_or(self.now, |until| until.min(self.now));
        let seen_by = HOLD + longest_between_reads(policy.settings().maximum_concurrency);
        let paused: Duration =
            self.pauses().iter().map(|pause| until(pause).since(pause.from) + seen_by).sum();
        assert!(self.now <= first_failure.saturating_add(policy.max_age() + paused));
        assert!(!self.pauses().iter().any(|pause| pause.is_active(self.now)), "it is paused");
        check_seals(envelope);
    }
}

/// A sample from the repository, as input for one entry point.
#[derive(Debug)]
pub struct Seed {
    /// Name of the entry point, such as `batch_event`.
    pub target: &'static str,
    /// Name of the sample's file, followed by the position in the batch if the sample is one message of a batch.
    pub name: String,
    /// The bytes to pass to the entry point.
    pub data: Vec<u8>,
}

/// Returns inputs made from the samples in `events/` and from the requested waits in `tests/golden`.
///
/// # Panics
///
/// Panics if a sample cannot be read.
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("BUG: fuzz/ has a parent");
    let entries_of =
        |folder: &Path| fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let events = root.join("events");
    let mut files: Vec<_> = entries_of(&events)
        .chain(entries_of(&events.join("payloads")))
        .map(|entry| entry.expect("a directory can be read to its end").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let waits = root.join("tests/golden/directives/retry-after.json");
    files.iter().flat_map(|file| seeds_of(file)).chain(waits_of(&waits)).collect()
}

/// Reads a requested wait from each line of a file, except lines with a lone surrogate, which Rust cannot hold.
fn waits_of(file: &Path) -> Vec<Seed> {
    let lines = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let cases = lines.lines().filter_map(|line| serde_json::from_str(line.trim_end_matches(',')).ok());
    let seed = |(place, case): (usize, Value)| {
        let failed_at = case["failed_at"].as_str().and_then(Timestamp::from_rfc3339).expect("a time");
        let text = case["text"].as_str().expect("a string");
        let data = [&failed_at.as_secs().to_le_bytes(), text.as_bytes()].concat();
        Seed { target: "retry_after", name: format!("wait-{place}"), data }
    };
    cases.filter(Value::is_object).enumerate().map(seed).collect()
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

/// Creates an input for [`decide`] from a sample message, with zeros for the fields that it lacks.
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
