use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::dead_letter::{Reason, ReasonCode};
use crate::outcome::{Cause, DueBy, Early, Location};

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);
const DUE: Timestamp = Timestamp::from_secs(1_700_000_004);

/// A logged event with a value in every field.
pub(crate) fn event() -> LoggedEvent<'static> {
    LoggedEvent {
        key: "r-0".into(),
        target: "arn:f".into(),
        retry: 3,
        first_failure: Timestamp::from_secs(1_699_999_000),
        request_id: Some("r-2".into()),
        error_type: Some("Timeout".into()),
        policy: Some("orders*".into()),
        retry_after: Some(DUE),
        retry_after_ignored: Some("its message is not text".into()),
    }
}

/// Every kind of outcome, with a value in every field.
pub(crate) fn happenings() -> [What; 5] {
    let early = || {
        let asked_by = Some("ops".into());
        Some(Early { otherwise_due: DUE, asked_at: NOW, asked_by })
    };
    let failure = || Some(failure(Some("allow it")));
    let (due, delay, not_before) = (DUE, 4, Some(NOW));
    [
        What::Defer { due, due_by: DueBy::Policy, delay, early: early(), failure: failure() },
        What::Hold { due, delay, not_before, failure: failure() },
        What::Reinvoke { due, invoke_request_id: Some("r-3".into()), early: early() },
        What::DeadLetter { reason: Reason::new(ReasonCode::MaxAge, "too old"), due: Some(due) },
        What::Keep {
            cause: Cause::DeadLetterNotSent,
            delay: Some(delay),
            not_before,
            reason: Some(Reason::new(ReasonCode::MaxAge, "")),
            due: None,
            failure: failure(),
        },
    ]
}

pub(crate) fn line(what: What) -> LogLine<'static> {
    LogLine {
        timestamp: NOW,
        level: LogLevel::Info,
        v: LOG_VERSION,
        message_id: "m-1".into(),
        event: Some(event()),
        what: Cow::Owned(what),
        trace: Some("1-5759e988-bd862e3fe1be46a994272793".into()),
        receipt_handle: Some("AQEB+/h-1==".into()),
    }
}

fn outcome(what: What, location: Location) -> Outcome<'static> {
    outcome_with("h-1", what, location)
}

fn outcome_with(receipt_handle: &str, what: What, location: Location) -> Outcome<'static> {
    let body = concat!(
        r#"{"timestamp":"2023-11-14T21:56:40.000Z","requestContext":{"requestId":"r-2","functionArn":"arn:f"},"#,
        r#""requestPayload":{"_retry_metadata":{"attempt":2,"initial_timestamp":1699999000,"#,
        r#""origin_request_id":"r-0"},"_original_payload":7},"responsePayload":{"errorType":"Timeout"}}"#,
    );
    let record = Box::leak(Box::new(crate::record::Record {
        message_id: "m-1".into(),
        receipt_handle: receipt_handle.into(),
        body: body.into(),
        receive_count: 2,
        sent: NOW,
        first_receive: NOW,
        moved: None,
        trace_header: None,
        attributes: Vec::new(),
    }));
    let event = FailedEvent::read(record).unwrap();
    Outcome { record, event: Some(event), policy: None, what, location }
}

fn waiting() -> What {
    What::Defer { due: DUE, due_by: DueBy::Policy, delay: 0, early: None, failure: None }
}

fn held() -> What {
    What::Hold { due: DUE, delay: 0, not_before: None, failure: None }
}

fn waits(what: What, seconds: u64, location: Location) -> Outcome<'static> {
    outcome(what.with_wait(Duration::from_secs(seconds), None, None), location)
}

fn hidden(what: What, seconds: u64) -> Outcome<'static> {
    waits(what, seconds, Location::Hidden)
}

fn not_hidden(what: What, failure: CallFailure) -> Outcome<'static> {
    outcome(what.with_wait(Duration::from_secs(600), None, Some(failure)), Location::NotHidden)
}

fn dead_lettered() -> Outcome<'static> {
    outcome(What::DeadLetter { reason: reason(), due: None }, Location::Settled)
}

fn deferred() -> Outcome<'static> {
    hidden(waiting(), 4)
}

fn retried() -> Outcome<'static> {
    outcome(What::Reinvoke { due: DUE, invoke_request_id: None, early: None }, Location::Settled)
}

fn written(outcome: &Outcome<'_>) -> Value {
    serde_json::to_value(LogLine::of(outcome, NOW)).unwrap()
}

fn failure(remedy: Option<&'static str>) -> CallFailure {
    CallFailure { cause: "denied".into(), remedy: remedy.map(Into::into) }
}

fn reason() -> Reason {
    Reason { code: ReasonCode::MaxRetries, detail: "185 made".into() }
}

#[test]
fn a_deferral_is_one_line() {
    let text = serde_json::to_string(&LogLine::of(&deferred(), NOW)).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"timestamp":"2023-11-14T22:13:20.123Z","level":"INFO","v":1,"message_id":"m-1","key":"r-0","#,
            r#""target":"arn:f","retry":3,"first_failure":"2023-11-14T21:56:40Z","request_id":"r-2","#,
            r#""error_type":"Timeout","action":"defer","due":"2023-11-14T22:13:24.000Z","due_by":"policy","delay":4}"#
        )
    );
}

#[test]
fn every_line_is_read_as_it_was_written() {
    for what in happenings() {
        let whole = line(what.clone());
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(LogLine::read(&text), Ok(whole.clone()), "{text}");
        let unparsed = LogLine { event: None, trace: None, ..whole };
        let text = serde_json::to_string(&unparsed).unwrap();
        assert_eq!(LogLine::read(&text), Ok(unparsed), "{text}");
    }
    for outcome in [deferred(), retried()] {
        let line = LogLine::of(&outcome, NOW);
        assert_eq!(LogLine::read(&serde_json::to_string(&line).unwrap()), Ok(line));
    }
}

#[test]
fn a_line_borrows_its_outcome() {
    let outcome = dead_lettered();
    assert!(matches!(LogLine::of(&outcome, NOW).what, Cow::Borrowed(_)));
}

#[test]
fn other_lines_and_versions_are_refused() {
    let text = serde_json::to_string(&LogLine::of(&deferred(), NOW)).unwrap();
    assert_eq!(LogLine::read(&text.replace(r#""v":1"#, r#""v":2"#)), Err(NotALine::Newer));
    assert!(LogLine::read(&text.replacen('{', r#"{"new":{"member":1},"#, 1)).is_ok());
    for other in [
        "START RequestId: r-1",
        "{}",
        r#"["r-0"]"#,
        r#"{"timestamp":"2026-09-14T15:46:54.145Z","level":"INFO","action":"move","moved":3}"#,
        &text.replace(r#""v":1,"#, ""),
        &text.replace("2023-11-14T22:13:20.123Z", "yesterday"),
    ] {
        assert_eq!(LogLine::read(other), Err(NotALine::Other), "{other}");
    }
    let kept = serde_json::to_string(&line(happenings()[4].clone())).unwrap();
    let read = LogLine::read(&kept.replace("dead_letter_not_sent", "new")).unwrap();
    assert!(matches!(*read.what, What::Keep { cause: Cause::Other, .. }), "{read:?}");
}

#[test]
fn names_on_the_wire_are_those_of_dead_letters() {
    for code in ReasonCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.name());
    }
}

#[test]
fn level_follows_the_outcome() {
    let level = |outcome: &Outcome<'_>| written(outcome)["level"].clone();
    assert_eq!(level(&deferred()), "INFO");
    assert_eq!(level(&not_hidden(waiting(), failure(None))), "WARN");
    assert_eq!(level(&not_hidden(waiting(), failure(Some("allow it")))), "ERROR");
    assert_eq!(level(&dead_lettered()), "WARN");
}

#[test]
fn a_directive_is_on_the_line() {
    let said = |directive| {
        let mut outcome = deferred();
        outcome.event.as_mut().unwrap().directive = Some(directive);
        let line = written(&outcome);
        ["level", "retry_after", "retry_after_ignored"].map(|field| line[field].clone())
    };
    let moment = said(Directive::RetryAfter(DUE));
    assert_eq!(moment, [json!("INFO"), json!("2023-11-14T22:13:24.000Z"), Value::Null]);
    let unreadable = said(Directive::Unreadable { text: "soon".into(), why: "it is not a date" });
    assert_eq!(unreadable, [json!("WARN"), Value::Null, json!("\"soon\": it is not a date")]);
    assert_eq!(said(Directive::NonRetryable), [json!("INFO"), Value::Null, Value::Null]);
}

#[test]
fn a_failed_call_names_its_cause() {
    let refused = What::kept(Cause::Refused, Some(DUE), None, Some(failure(Some("allow it"))));
    let refused = hidden(refused, 7);
    assert!(!refused.settled() && refused.step() == Some("reinvoke") && refused.due() == Some(DUE));
    let line = written(&refused);
    let fields = ["action", "cause", "delay", "due", "problem"].map(|field| line[field].clone());
    assert_eq!(fields, [json!("keep"), json!("refused"), json!(7), Value::Null, json!("denied")]);
    let unsent = What::kept(Cause::DeadLetterNotSent, None, Some(reason()), Some(failure(None)));
    let line = written(&not_hidden(unsent, failure(Some("wait"))));
    let fields = ["action", "cause", "reason", "delay", "remedy"].map(|field| line[field].clone());
    let expected = [json!("keep"), json!("dead_letter_not_sent"), json!("max_retries")];
    assert_eq!(fields[..3], expected);
    assert_eq!(fields[3..], [Value::Null, Value::Null], "it could not be hidden; the first failure counts");
    let undecided = hidden(What::kept(Cause::Undecided, None, None, Some(failure(None))), 7);
    assert_eq!((&written(&undecided)["cause"], undecided.step()), (&json!("undecided"), None));
}

#[test]
fn handle_is_logged_if_hiding_may_end_early() {
    let handle = |outcome: Outcome<'_>| written(&outcome)["receipt_handle"].clone();
    let kept = |cause| What::kept(cause, None, None, None);
    let failed = |cause| What::kept(cause, Some(DUE), None, Some(failure(None)));
    let unsent = What::kept(Cause::DeadLetterNotSent, None, Some(reason()), Some(failure(None)));
    let returning = [kept(Cause::PausesUnknown), kept(Cause::Unattached), failed(Cause::Refused)];
    for what in [waiting(), held(), unsent, failed(Cause::NotSent)].into_iter().chain(returning) {
        assert_eq!(handle(hidden(what.clone(), 121)), "h-1", "{what:?}");
        assert_eq!(handle(hidden(what.clone(), 120)), Value::Null, "it returns soon");
        assert_eq!(handle(not_hidden(what.clone(), failure(None))), Value::Null, "its guard may stand");
        let copied = waits(what.clone(), 3_600, Location::Guarded);
        assert_eq!(handle(copied), Value::Null, "its copy may have been accepted");
        assert_eq!(handle(waits(what, 700, Location::Moved)), Value::Null, "it was deleted");
    }
    for what in [failed(Cause::Unanswered), kept(Cause::WaitGoesOn), failed(Cause::Undecided)] {
        assert_eq!(handle(hidden(what.clone(), 3_600)), Value::Null, "{what:?}");
    }
    assert_eq!(handle(retried()), Value::Null);
    assert_eq!(handle(dead_lettered()), Value::Null);
}

#[test]
fn long_or_unprintable_handles_are_left_out() {
    let line = |handle: &str| {
        let what = waiting().with_wait(Duration::from_secs(600), None, None);
        let outcome = outcome_with(handle, what, Location::Hidden);
        let line = LogLine::of(&outcome, NOW);
        let text = serde_json::to_string(&line).unwrap();
        let read = LogLine::read(&text).unwrap();
        assert_eq!(read, line, "{text}");
        read.receipt_handle.map(Cow::into_owned)
    };
    let longest = "h".repeat(1_024);
    for plain in [longest.as_str(), "AQEB\"\\ ~+/=="] {
        assert_eq!(line(plain).as_deref(), Some(plain));
    }
    for refused in [&(longest.clone() + "h"), "h\n", "h\u{e9}", "\u{7f}"] {
        assert_eq!(line(refused), None, "{refused:?}");
    }
}

#[test]
fn a_moved_message_has_the_delay_of_its_copy() {
    let moved = |what: What, not_before| {
        outcome(what.with_wait(Duration::from_secs(700), not_before, None), Location::Moved)
    };
    assert_eq!(written(&moved(waiting(), None))["delay"], 700);
    let line = written(&moved(held(), Some(NOW)));
    assert_eq!((&line["delay"], &line["not_before"]), (&json!(700), &json!("2023-11-14T22:13:20.123Z")));
}

#[test]
fn a_retry_that_comes_early_names_the_request() {
    let early = Some(Early { otherwise_due: DUE, asked_at: NOW, asked_by: Some("ops".into()) });
    let invoked = What::Reinvoke { due: NOW, invoke_request_id: None, early };
    let line = written(&outcome(invoked, Location::Settled));
    let fields = ["asked_at", "asked_by", "otherwise_due"].map(|field| line[field].clone());
    assert_eq!(fields, ["2023-11-14T22:13:20.123Z", "ops", "2023-11-14T22:13:24.000Z"].map(Value::from));
}

#[test]
fn a_forged_text_cannot_make_a_line_long() {
    let long = || "é".repeat(700_000);
    let early = Some(Early { otherwise_due: DUE, asked_at: NOW, asked_by: Some(long()) });
    let what = What::Reinvoke { due: DUE, invoke_request_id: Some(long()), early };
    let mut outcome = outcome(what, Location::Settled);
    let event = outcome.event.take().unwrap();
    outcome.event = Some(FailedEvent {
        function_arn: long().into(),
        origin_request_id: long(),
        request_id: Some(long()),
        error_type: Some(long().into()),
        ..event
    });
    outcome.policy = Some(long());
    let line = written(&outcome);
    for name in ["target", "key", "request_id", "error_type", "policy", "invoke_request_id", "asked_by"] {
        assert_eq!(line[name], "é".repeat(512), "{name}");
    }
    let refused = not_hidden(waiting(), CallFailure { cause: long(), remedy: None });
    assert_eq!(written(&refused)["problem"], "é".repeat(512));
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/what-happens-to.md");

/// Returns the names in the first column of the table with the header row `head`.
fn documented(head: &str) -> BTreeSet<String> {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (_, log) = page.split_once("\n## The log\n").unwrap();
    let (_, table) = log.split_once(head).unwrap_or_else(|| panic!("no table {head:?}"));
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(ToOwned::to_owned)).collect()
}

#[test]
fn the_page_has_each_field_and_no_other() {
    let lines = happenings().map(|what| serde_json::to_value(line(what)).unwrap());
    let fields = lines.iter().flat_map(|line| line.as_object().unwrap().keys().cloned());
    assert_eq!(fields.collect::<BTreeSet<_>>(), documented("| field | meaning |"));
}

#[test]
fn the_page_has_each_cause() {
    let causes = [
        Cause::Refused,
        Cause::NotSent,
        Cause::Unanswered,
        Cause::DeadLetterNotSent,
        Cause::PausesUnknown,
        Cause::Unattached,
        Cause::WaitGoesOn,
        Cause::Undecided,
    ];
    let names = causes.map(|cause| serde_json::to_value(cause).unwrap().as_str().unwrap().to_owned());
    assert_eq!(BTreeSet::from(names), documented("| cause | meaning |"));
    // A new cause makes this `match` fail to compile. Add it to `causes` too.
    match causes[0] {
        Cause::Refused | Cause::NotSent | Cause::Unanswered | Cause::DeadLetterNotSent => {}
        Cause::PausesUnknown | Cause::Unattached | Cause::WaitGoesOn | Cause::Undecided | Cause::Other => {}
    }
}
