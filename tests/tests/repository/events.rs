//! Tests that every file in `events/` has the outcome that `events/README.md` gives for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use comeback::{FileReport, Recorded, SAMPLE_TARGET, last_due, shifted};
use comeback_engine::{InvocationRecord, Policies, Policy, Settings, Timestamp, simple_name};
use comeback_tests::{pages, root};
use comeback_timelapse::Call;
use serde_json::value::RawValue;

fn events() -> PathBuf {
    root().join("events")
}

fn text(file: &str) -> String {
    std::fs::read_to_string(events().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn policies(non_retryable_errors: &[&str]) -> Policies {
    let non_retryable_errors = non_retryable_errors.iter().map(ToString::to_string).collect();
    let target_functions = vec![SAMPLE_TARGET.into()];
    Policy::new(Settings { non_retryable_errors, target_functions, ..Settings::default() })
        .expect("a valid policy")
        .into()
}

fn report(file: &str) -> FileReport {
    let (policies, at) = match file {
        "non-retryable-error.json" => (policies(&["Order*"]), None),
        "early-return.json" => (policies(&[]), Timestamp::from_rfc3339("2026-09-14T16:00:00Z")),
        _ => (policies(&[]), None),
    };
    let text = text(file);
    FileReport::of(Path::new(file), &recorded(file, &text), &policies, at)
}

fn recorded<'t>(file: &str, text: &'t str) -> Recorded<'t> {
    Recorded::read(Path::new(file), text, None).unwrap_or_else(|error| panic!("{error}"))
}

fn calls(file: &str) -> Vec<Call> {
    report(file).handled.calls
}

fn rows() -> BTreeMap<String, String> {
    let readme = text("README.md");
    let cells = |line: &str| -> Vec<String> {
        line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    let rows = readme.lines().filter(|line| line.starts_with("| `")).map(cells);
    rows.map(|cells| (cells[1].clone(), cells[3].clone())).collect()
}

/// Each message's outcome, with its retry or reason, worded as in `events/README.md`.
fn outcome(report: &FileReport) -> String {
    let decisions = report.handled.decisions.iter().map(|decision| match (decision.step, decision.reason) {
        (Some(step), Some(reason)) => format!("{step} {reason}"),
        (Some(step), None) => format!("{step} retry {}", decision.retry.expect("a retry")),
        (None, _) => "keep".into(),
    });
    decisions.collect::<Vec<_>>().join("; ")
}

#[test]
fn every_file_has_a_row_and_every_row_a_file() {
    let mut files: Vec<String> = ["", "errors/", "payloads/"].into_iter().flat_map(files_in).collect();
    files.sort();
    assert!(files.len() > 25, "{files:?}");
    assert_eq!(files, rows().into_keys().collect::<Vec<_>>());
}

fn files_in(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(events().join(folder)).expect("a directory");
    let names = entries
        .map(|entry| entry.expect("a readable entry").file_name().into_string().expect("a plain name"));
    names
        .filter(|name| !["README.md", "errors", "payloads"].contains(&name.as_str()))
        .map(|name| format!("{folder}{name}"))
        .collect()
}

/// docs/envelope.md has a row for each Lambda runtime, with the `errorType` in that runtime's sample and the simple
/// name of that type.
#[test]
fn page_names_the_error_of_every_runtime() {
    let page = pages::read("docs/envelope.md");
    let (_, section) = page.split_once("| runtime | `errorType` as written |").expect("the table");
    let (table, _) = section.split_once("\n\n").expect("the table's end");
    let rows = table.lines().skip(2);
    let cell =
        |row: &str, index| row.split('|').nth(index).expect("a cell").trim().trim_matches('`').to_owned();
    let mut named: Vec<[String; 2]> = rows.map(|row| [2, 3].map(|index| cell(row, index))).collect();
    named.sort();
    let types = files_in("errors/").into_iter().map(|file| error_type(&file));
    let mut written: Vec<[String; 2]> = types.map(|it| [it.clone(), simple_name(&it).to_owned()]).collect();
    written.sort();
    assert_eq!(named, written);
}

#[test]
fn wait_of_each_runtime_is_served() {
    for file in files_in("errors/") {
        let [Call::ChangeMessageVisibilityBatch { entries }] = &calls(&file)[..] else { panic!("{file}") };
        let is_served = (880..=990).contains(&entries[0].visibility_timeout);
        assert_eq!(is_served, simple_name(&error_type(&file)) == "RetryAfter", "{file}: {entries:?}");
    }
}

fn error_type(file: &str) -> String {
    let text = text(file);
    let batch = recorded(file, &text).batch;
    let record = InvocationRecord::read(&batch.records[0].body).expect("an invocation record");
    let error_type = record.error.and_then(|error| error.error_type).expect("a type");
    serde_json::from_str(error_type.get()).expect("a string")
}

#[test]
fn every_sqs_event_has_the_outcome_of_its_row() {
    let mut sqs_events = 0;
    for (file, expected) in rows() {
        if file.starts_with("payloads/") {
            continue;
        }
        sqs_events += 1;
        let report = report(&file);
        assert_eq!(outcome(&report), expected, "{file}");
        let handled = report.handled;
        let kept = handled.decisions.iter().filter(|decision| matches!(decision.step, Some("defer") | None));
        let kept: Vec<&str> = kept.map(|decision| decision.message_id.as_str()).collect();
        assert_eq!(handled.batch_item_failures, kept, "{file}");
    }
    assert_eq!(sqs_events, 38);
}

#[test]
fn payloads_succeed_or_fail_as_their_rows_say() {
    for (file, outcome) in rows() {
        if file.starts_with("payloads/") {
            let text = text(&file);
            let payload: &RawValue = serde_json::from_str(&text).expect("JSON");
            assert_eq!(succeeds(payload), outcome == "succeeds", "{file}");
        }
    }
}

fn succeeds(payload: &RawValue) -> bool {
    let Ok(event) = comeback_envelope::open(payload) else { return false };
    let wish: serde_json::Value = serde_json::from_str(event.payload.get()).expect("JSON");
    wish["fail"] != true && event.attempt() >= wish["fail_times"].as_u64().unwrap_or(0)
}

#[test]
fn shifted_sample_has_the_same_outcome() {
    let now = Timestamp::from_rfc3339("2031-05-06T07:08:09.999Z").expect("a time");
    for (file, expected) in rows() {
        if file == "early-return.json" || file == "non-retryable-error.json" {
            continue; // these rows depend on more than the clock
        }
        if file.starts_with("payloads/") {
            continue;
        }
        let text = text(&file);
        let moment = last_due(&recorded(&file, &text).batch, &policies(&[])).expect("a message");
        let copy = shifted(&text, moment, now);
        let report = FileReport::of(Path::new(&file), &recorded(&file, &copy), &policies(&[]), Some(now));
        assert_eq!(outcome(&report), expected, "{file}");
    }
}
