//! Tests of an operator's cancel requests.

use comeback_engine::{Action, Pauses, Policies, Policy, Record, RequestKind, Timestamp, decide};

use crate::support::{
    ORDERS, Seen, T0, after, body, enveloped, policy, received_again, record, replaced, seen,
};

const HOUR: u64 = 3_600;

fn at(seconds: u64) -> Timestamp {
    after(T0, 1_000 * seconds)
}

/// A policy in which every backoff lasts 12 hours less 30 seconds.
fn waits() -> Policy {
    policy(|settings| {
        settings.base_backoff = settings.max_backoff;
        settings.target_functions.push(ORDERS.replace("orders", "payments"));
    })
}

/// The JSON of a cancel request made an hour after [`T0`].
fn cancel(more: &str) -> String {
    format!(r#"{{"target":"{ORDERS}","at":{}{more}}}"#, T0.as_secs() + HOUR)
}

fn with(cancels: &[String], more: &str) -> Pauses {
    let cancels = cancels.join(",");
    Pauses::read(&format!(r#"{{"v":1,"pauses":[],"cancels":[{cancels}]{more}}}"#)).expect("a document")
}

fn act<'a>(record: &'a Record, policy: &Policy, pauses: &Pauses, now: Timestamp) -> Action<'a> {
    decide(record, &Policies::from(policy.clone()), pauses, now)
}

/// Returns true if the handler dead-letters the record half a minute after a cancel request. `more` is the request's
/// other JSON members.
fn is_cancelled(record: &Record, more: &str) -> bool {
    match seen(&act(record, &waits(), &with(&[cancel(more)], ""), at(HOUR + 30))) {
        Seen::DeadLetter(reason) => {
            assert_eq!(reason, "cancelled");
            true
        }
        Seen::Defer(_) => false,
        other => panic!("{other:?}"),
    }
}

/// A message on its second receive.
fn failed(second: u64) -> Record {
    Record { sent: at(second), first_receive: at(second + 1), ..received_again(body("7")) }
}

#[test]
fn a_cancel_reaches_earlier_failures() {
    assert!(is_cancelled(&failed(HOUR - 1), "") && !is_cancelled(&failed(HOUR), ""));
    let moved = |sent: u64| {
        let mut copy = Record { message_id: "m-9".into(), ..failed(HOUR + 10) };
        let [sent, first_receive] = [sent, sent + 1].map(|second| at(second).as_millis());
        let attribute = format!(
            r#"{{"message_id":"m-1","sent":{sent},"first_receive":{first_receive},"receives":1,"moves":1}}"#
        );
        copy.restore(&attribute).expect("it is well-formed");
        copy
    };
    assert!(is_cancelled(&moved(0), "") && !is_cancelled(&moved(HOUR), ""));
    let others = Record { body: replaced(&body("7"), "function:orders", "function:payments"), ..failed(0) };
    assert!(!is_cancelled(&others, ""));
}

#[test]
fn a_cancel_may_name_errors_and_events() {
    let record = failed(0);
    for (more, is_named) in [
        (r#","errors":["Time*"]"#, true),
        (r#","errors":["Other"]"#, false),
        (r#","keys":["r-1"]"#, true),
        (r#","keys":["r-0","r-1"]"#, true),
        (r#","keys":["r-*"]"#, false),
        (r#","errors":["Time*"],"keys":["r-0"]"#, false),
        (r#","errors":["Other"],"keys":["r-1"]"#, false),
        (r#","errors":["Time*"],"keys":["r-1"]"#, true),
    ] {
        assert_eq!(is_cancelled(&record, more), is_named, "{more}");
    }
    // An operator may copy a long key from the log, which cuts keys after 512 characters.
    let long = Record { body: replaced(&body("7"), "r-1", &"k".repeat(600)), ..failed(0) };
    for (length, is_named) in [(511, false), (512, true), (600, true)] {
        assert_eq!(is_cancelled(&long, &format!(r#","keys":["{}"]"#, "k".repeat(length))), is_named);
    }
    // The event's key is the same on every retry.
    let third = Record { body: body(&enveloped(2, "7")), ..record };
    assert!(is_cancelled(&third, r#","keys":["r-0"]"#) && !is_cancelled(&third, r#","keys":["r-1"]"#));
}

#[test]
fn a_cancel_by_key_reaches_later_failures() {
    let later = failed(HOUR + 10);
    assert!(!is_cancelled(&later, ""));
    assert!(is_cancelled(&later, r#","keys":["r-1"]"#) && !is_cancelled(&later, r#","keys":["r-0"]"#));
}

#[test]
fn a_cancel_counts_from_its_moment_to_its_end() {
    let until = format!(r#","until":{}"#, T0.as_secs() + 2 * HOUR);
    let seen_at = |more: &str, millis| {
        seen(&act(&failed(0), &waits(), &with(&[cancel(more)], ""), after(at(HOUR), millis)))
    };
    let cancelled = |more: &str, millis| seen_at(more, millis) == Seen::DeadLetter("cancelled");
    assert!(cancelled(&until, 0) && cancelled(&until, 3_600_000));
    assert!(!cancelled(&until, 3_600_001));
    let early = with(&[cancel(r#","keys":["r-1"]"#)], "");
    assert!(matches!(act(&failed(0), &waits(), &early, at(HOUR - 1)), Action::Defer { .. }));
    // A cancel request without an end lasts 25 hours, like the longest request. The retry is due before that.
    assert!(cancelled("", 12 * 3_600_000));
}

#[test]
fn a_cancelled_event_neither_waits_nor_is_called() {
    let none = r#""pauses":[]"#;
    let held = r#""pauses":[{"target":"*","from":1,"until":null,"spread":0}]"#;
    let retried = r#""pauses":[],"retries":[{"target":"*","at":1,"within":0}]"#;
    let large = Record { body: body(&format!(r#""{}""#, "x".repeat(1_000_000))), ..failed(0) };
    let asked = replaced(&replaced(&body("7"), "Timeout", "RetryAfter"), "too slow", "12h");
    let day = waits();
    let short = policy(|settings| settings.max_age = 13 * HOUR);
    let soon = policy(|_| {});
    let document = |beside: &str| {
        Pauses::read(&format!(r#"{{"v":1,{beside},"cancels":[{}]}}"#, cancel(""))).expect("a document")
    };
    for (name, record, policy, beside, now) in [
        ("first receive", record(body("7")), &day, none, HOUR),
        ("not due", failed(0), &day, none, HOUR),
        ("due", failed(0), &soon, none, HOUR),
        ("held", failed(0), &soon, held, HOUR),
        ("not due, and paused", failed(0), &day, held, HOUR),
        ("too large to come back", large, &soon, none, HOUR),
        ("asked to wait", Record { body: asked, ..failed(0) }, &day, none, HOUR),
        ("requested to be retried", failed(0), &day, retried, HOUR),
        ("no time for a backoff", record(body("7")), &short, none, 13 * HOUR - 1),
    ] {
        let without = act(&record, policy, &Pauses::default(), at(now));
        assert!(!matches!(seen(&without), Seen::DeadLetter("cancelled")));
        let action = act(&record, policy, &document(beside), at(now));
        assert_eq!(seen(&action), Seen::DeadLetter("cancelled"), "{name}");
    }
}

#[test]
fn other_reasons_come_first() {
    let old = at(24 * HOUR + 2);
    let status = replaced(&body("7"), r#""statusCode":200"#, r#""statusCode":404"#);
    let unlisted = replaced(&body("7"), "function:orders", "function:other");
    let never = replaced(&body("7"), "Timeout", "NonRetryable");
    let refused = policy(|settings| settings.non_retryable_errors = vec!["Timeout".into()]);
    let once = policy(|settings| settings.max_retries = 1);
    let all = Pauses::read(&format!(
        r#"{{"v":1,"pauses":[],"cancels":[{{"target":"*","at":{}}}]}}"#,
        T0.as_secs() + HOUR
    ))
    .expect("a document");
    let sent_long_ago = policy(|settings| settings.max_age = 14 * 24 * HOUR);
    let late = Pauses::read(&format!(
        r#"{{"v":1,"pauses":[],"cancels":[{{"target":"*","at":{}}}]}}"#,
        T0.as_secs() + 324 * HOUR
    ))
    .expect("a document");
    for (body, policy, pauses, now, reason) in [
        ("{}".to_owned(), waits(), &all, at(HOUR), "malformed_record"),
        (body(r#"{"_retry_metadata":7}"#), waits(), &all, at(HOUR), "malformed_envelope"),
        (unlisted, waits(), &all, at(HOUR), "target_not_allowed"),
        (status, waits(), &all, at(HOUR), "target_not_found"),
        (body("7"), refused, &all, at(HOUR), "non_retryable_error"),
        (never, waits(), &all, at(HOUR), "non_retryable_error"),
        (body(&enveloped(1, "7")), once, &all, at(HOUR), "max_retries"),
        (body("7"), waits(), &all, old, "max_age"),
        (body("7"), sent_long_ago, &late, at(324 * HOUR + 2), "max_age"),
    ] {
        let record = Record { body, ..failed(0) };
        assert_eq!(seen(&act(&record, &policy, pauses, now)), Seen::DeadLetter(reason));
    }
}

#[test]
fn the_detail_says_who_and_why() {
    let long = format!(r#","by":"{}","why":"{}""#, "b".repeat(4_000), "é".repeat(4_000));
    let detail = |more: &str, receive_count| {
        let record = Record { receive_count, ..failed(0) };
        match act(&record, &waits(), &with(&[cancel(more)], ""), at(HOUR)) {
            Action::DeadLetter { reason } => reason.detail,
            other => panic!("{other:?}"),
        }
    };
    for (more, expected) in [
        (r#","by":"alice","why":"the order was refunded""#, "cancelled by alice: the order was refunded"),
        (r#","by":"alice""#, "cancelled by alice"),
        (r#","why":"refunded""#, "cancelled by an operator: refunded"),
        (r#","by":"","why":"""#, "cancelled by an operator"),
        ("", "cancelled by an operator"),
    ] {
        assert_eq!(detail(more, 2), expected);
    }
    assert_eq!(detail(&long, 2), format!("cancelled by {}: {}", "b".repeat(256), "é".repeat(256)));
    let maybe = "cancelled by an operator; an earlier call that was not answered may have succeeded";
    assert_eq!(detail("", 3), maybe);
}

#[test]
fn an_event_held_since_it_was_due_was_not_called() {
    // The event's message was received at second 1, and the retry was due at second 2.
    let record = Record { receive_count: 9, ..failed(0) };
    let detail = |pause: &str| {
        let pauses = Pauses::read(&format!(r#"{{"v":1,"pauses":[{pause}],"cancels":[{}]}}"#, cancel("")));
        match act(&record, &policy(|_| {}), &pauses.expect("a document"), at(HOUR)) {
            Action::DeadLetter { reason } => reason.detail,
            other => panic!("{other:?}"),
        }
    };
    let pause = |from: u64, until: &str| {
        let from = at(0).as_secs() - 100 + from;
        format!(r#"{{"target":"*","from":{from},"until":{until},"spread":0}}"#)
    };
    let maybe = "cancelled by an operator; an earlier call that was not answered may have succeeded";
    // A handler may take up to 37.5 s to notice the pause.
    assert_eq!(detail(&pause(64, "null")), "cancelled by an operator");
    for pause in [pause(65, "null"), pause(0, &at(60).as_secs().to_string()), String::new()] {
        assert_eq!(detail(&pause), maybe, "{pause}");
    }
}

#[test]
fn an_unreadable_cancel_is_ignored() {
    let keys = |count: usize| format!(r#","keys":[{}]"#, vec![r#""r-1""#; count].join(","));
    for more in [keys(21), r#","keys":"r-1""#.into(), r#","keys":[""]"#.into(), r#","errors":7"#.into()] {
        assert!(!is_cancelled(&failed(0), &more), "{more}");
        let pauses = with(&[cancel(&more), cancel("")], "");
        let unreadable = |hours| pauses.unreadable_requests(at(hours * HOUR)).count();
        assert_eq!(
            (pauses.requests_to(RequestKind::Cancel).count(), unreadable(1), unreadable(27)),
            (1, 1, 0),
            "{more}"
        );
    }
    assert!(is_cancelled(&failed(0), &keys(20)));
    let odd =
        Pauses::read(r#"{"v":1,"pauses":[],"cancels":{"target":"*"}}"#).expect("the pauses are readable");
    assert_eq!(
        (odd.requests_to(RequestKind::Cancel).count(), odd.unreadable_requests(at(0)).count()),
        (0, 1)
    );
}
