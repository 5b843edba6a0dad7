use std::time::Duration;

use comeback_engine::{Directive, FailedEvent, Policy, Record, Timestamp};

use crate::support::*;

const DAY: u64 = 86_400;
/// The `timestamp` in the record from [`body`].
const FAILED_AT: Timestamp = Timestamp::from_millis(T0.as_millis() + 145);

fn failed_with(error_type: &str, message: &str) -> Record {
    let message = serde_json::to_string(message).expect("text is JSON");
    record(replaced(&replaced(&body("7"), "Timeout", error_type), r#""too slow""#, &message))
}

fn retry_after(message: &str) -> Record {
    failed_with("RetryAfter", message)
}

fn again(record: Record) -> Record {
    Record { receive_count: 2, ..record }
}

fn days(days: u64) -> Policy {
    policy(|settings| (settings.base_backoff, settings.max_backoff, settings.max_age) = (8, 8, days * DAY))
}

fn due(record: &Record, policy: &Policy, now: Timestamp) -> Timestamp {
    decide(record, policy, now).due().expect("it is retried")
}

fn said(record: &Record, policy: &Policy) -> Option<Directive> {
    FailedEvent::read(record).expect("it is an event").under(&policy.clone().into()).directive
}

#[test]
fn a_requested_wait_gets_up_to_a_tenth_more() {
    let waits = (0..2_000).map(|n| {
        let record = Record { message_id: format!("m-{n}"), ..retry_after("15m; overloaded") };
        due(&record, &days(1), FIRST_RECEIVE).since(FAILED_AT).as_secs_f64()
    });
    let waits: Vec<f64> = waits.collect();
    assert!(waits.iter().all(|wait| (900.0..=990.0).contains(wait)));
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    assert!((943.0..947.0).contains(&mean), "{mean}");
    assert!(waits.iter().any(|wait| *wait < 902.0) && waits.iter().any(|wait| *wait > 988.0));
}

#[test]
fn every_receive_and_copy_has_the_same_due_time() {
    let first = retry_after("2h");
    let due = due(&first, &days(1), FIRST_RECEIVE);
    let mut moved = Record { message_id: "m-2".into(), sent: after(SENT, 900_000), ..first.clone() };
    let attribute = format!(
        r#"{{"message_id":"m-1","sent":{},"first_receive":{},"receives":1,"moves":1}}"#,
        SENT.as_millis(),
        FIRST_RECEIVE.as_millis()
    );
    moved.restore(&attribute).expect("it is well-formed");
    for late in [0, 700, 901_000, 7_000_000] {
        for message in [&first, &again(first.clone()), &moved] {
            let now = after(FIRST_RECEIVE, late);
            assert_eq!(decide(message, &days(1), now).due(), Some(due), "{late} ms after the first receive");
        }
    }
}

#[test]
fn a_wait_may_be_over_max_backoff_and_twelve_hours() {
    let policy = policy(|settings| (settings.max_backoff, settings.max_age) = (60, 14 * DAY));
    let first = retry_after("30h");
    let due = due(&first, &policy, FIRST_RECEIVE);
    assert!((108_000..=118_800).contains(&due.since(FAILED_AT).as_secs()));
    assert_eq!(decided(&first, &policy, FIRST_RECEIVE), Seen::Defer(43_170));
    let (again, mut now) = (again(first), after(FIRST_RECEIVE, 43_170_000));
    while let Seen::Defer(seconds) = decided(&again, &policy, now) {
        assert!(seconds == 41_940 || now.saturating_add(Duration::from_secs(seconds)) >= due);
        now = after(now, seconds * 1_000);
    }
    assert!(now.since(due) < Duration::from_secs(1));
    assert_eq!(decided(&again, &policy, now), Seen::Reinvoke(1));
}

#[test]
fn a_wait_past_max_age_leaves_a_last_retry() {
    let last = after(T0, (DAY - 60) * 1_000);
    for message in
        ["24h", "2d", "400d", "P52W", "1789578055", "9999-12-31T23:59:59Z", "Fri, 31 Dec 9999 23:59:59 GMT"]
    {
        assert_eq!(due(&retry_after(message), &days(1), FIRST_RECEIVE), last, "{message}");
    }
    let again = again(retry_after("2d"));
    assert_eq!(decided(&again, &days(1), after(last, 0)), Seen::Reinvoke(1));
    let payload = enveloped(1, "7");
    let failed_again = Record {
        sent: after(last, 1_000),
        first_receive: after(last, 1_000),
        body: replaced(&replaced(&body(&payload), "Timeout", "RetryAfter"), "too slow", "2d"),
        ..record("")
    };
    assert_eq!(decided(&failed_again, &days(1), after(last, 1_000)), Seen::DeadLetter("max_age"));
}

#[test]
fn no_wait_goes_on_until_sqs_deletes_the_message() {
    let dead_lettered = after(SENT, (13 * DAY + DAY / 2) * 1_000);
    let last = Timestamp::from_millis(dead_lettered.as_millis() - 60_000);
    assert_eq!(due(&retry_after("14d"), &days(14), FIRST_RECEIVE), last);
    let late = |millis| Record {
        first_receive: Timestamp::from_millis(dead_lettered.as_millis() - millis),
        ..retry_after("14d")
    };
    assert_eq!(due(&late(120_000), &days(14), late(120_000).first_receive), last);
    assert_eq!(
        detail(&late(119_999), &days(14), late(119_999).first_receive),
        "sent to the retry queue at 2026-09-14T15:46:54.200Z; SQS keeps a message for 14 days; receive 1 of \
         its message"
    );
}

#[test]
fn a_past_moment_means_no_wait() {
    let first = Record { first_receive: after(SENT, 1_000_000), ..retry_after("60") };
    assert_eq!(decided(&first, &days(1), after(first.first_receive, 50)), Seen::Defer(1));
    let again = again(first);
    assert_eq!(decided(&again, &days(1), after(again.first_receive, 1_050)), Seen::Reinvoke(1));
}

#[test]
fn an_unreadable_wait_leaves_the_backoff() {
    let megabyte = "9".repeat(1_000_000);
    for message in ["", "soon", "-900", "0", "1970-01-01T00:00:00Z", "1e400", "4102444800", "15M", &megabyte]
    {
        let record = retry_after(message);
        assert_eq!(decided(&record, &days(1), FIRST_RECEIVE), Seen::Defer(8), "{message:.40}");
        assert!(matches!(said(&record, &days(1)), Some(Directive::Unreadable { .. })), "{message:.40}");
    }
    for json in ["900", "null", "{}"] {
        let body = replaced(&retry_after("15m").body, r#""15m""#, json);
        let ignored = Directive::Unreadable { text: json.into(), why: "its message is not text" };
        assert_eq!(said(&record(body), &days(1)), Some(ignored));
    }
    let without = replaced(&retry_after("15m").body, r#","errorMessage":"15m""#, "");
    let ignored = Directive::Unreadable { text: String::new(), why: "the error has no message" };
    assert_eq!(said(&record(without), &days(1)), Some(ignored));
}

/// The messages are raw JSON, so that they can contain a lone surrogate.
#[test]
fn shared_cases_are_read_as_expected() {
    #[derive(serde::Deserialize)]
    struct Case {
        text: Box<serde_json::value::RawValue>,
        failed_at: String,
        wait: Option<f64>,
        ignored: Option<String>,
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/directives/retry-after.json");
    let cases: Vec<Case> =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the cases")).expect("JSON");
    for Case { text, failed_at, wait, ignored } in cases {
        let time = Timestamp::from_rfc3339(&failed_at).expect("a time");
        let body = replaced(&retry_after("15m").body, r#""15m""#, text.get());
        let body = replaced(&body, "2026-09-14T15:46:54.145Z", &failed_at);
        let record = Record { sent: time, first_receive: time, ..record(body) };
        match (said(&record, &days(14)), wait) {
            (Some(Directive::RetryAfter(moment)), Some(wait)) => {
                let late = moment.since(time).as_millis() as f64 - wait * 1_000.0;
                // Waits are rounded up to a millisecond. For a wait until the year 9999, a float may be off by a
                // fraction of a millisecond.
                assert!((-0.1..1.0).contains(&late), "{text}: {late} ms late");
            }
            (Some(Directive::Unreadable { why, .. }), wait) => {
                let expected = wait.map_or(ignored, |_| Some("its time is not after the failure".into()));
                assert_eq!(Some(why.into()), expected, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn messages_of_other_types_are_never_read() {
    for error_type in ["Timeout", "retryafter", "RetryAfterAll", "TooManyRequests"] {
        let record = failed_with(error_type, "15m");
        assert_eq!(decided(&record, &days(1), FIRST_RECEIVE), Seen::Defer(8), "{error_type}");
        assert_eq!(said(&record, &days(1)), None, "{error_type}");
    }
}

#[test]
fn a_forged_timestamp_does_not_delay_the_wait() {
    let with_time = |time: &str| record(replaced(&retry_after("15m").body, "2026-09-14T15:46:54.145Z", time));
    let wait = |record: &Record| due(record, &days(14), FIRST_RECEIVE).since(SENT);
    let from_sending = Duration::from_secs(900)..=Duration::from_secs(990);
    for time in ["2027-09-14T15:46:54.145Z", "9999-12-31T23:59:59Z", "soon"] {
        assert!(from_sending.contains(&wait(&with_time(time))), "{time}");
    }
    // The record was written an hour before it was sent, so the wait is over.
    assert_eq!(decided(&with_time("2026-09-14T14:46:54.145Z"), &days(14), FIRST_RECEIVE), Seen::Defer(1));
    // The record was written over a day before it was sent: an operator moved the event back, so the event starts over.
    assert_eq!(said(&with_time("1970-01-01T00:00:00Z"), &days(14)), None);
}

#[test]
fn an_event_that_asks_for_no_retry_is_dead_lettered() {
    for error_type in
        ["NonRetryable", "NonRetriableError", "com.acme.NeverRetryException", "Function<Acme::NonRetryable>"]
    {
        let record = failed_with(error_type, "the order was cancelled");
        assert_eq!(decided(&record, &days(1), FIRST_RECEIVE), Seen::DeadLetter("non_retryable_error"));
        assert_eq!(
            detail(&record, &days(1), FIRST_RECEIVE),
            format!("{error_type} forbids retries; DIRECTIVES is on")
        );
    }
}

#[test]
fn directives_can_be_off() {
    let off = policy(|settings| (settings.base_backoff, settings.directives) = (8, false));
    for record in [retry_after("15m"), retry_after("soon"), failed_with("NonRetryable", "")] {
        assert_eq!(decided(&record, &off, FIRST_RECEIVE), Seen::Defer(8));
        assert_eq!(said(&record, &off), None);
    }
}
