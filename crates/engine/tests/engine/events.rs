use comeback_engine::{Action, Envelope, FailedEvent, Record, Timestamp};

use crate::support::*;

fn read(record: &Record) -> FailedEvent<'_> {
    FailedEvent::read(record).expect("the test's message is an event")
}

/// What the target is called with once the message is due.
fn reinvoked(record: &Record) -> Envelope<'_> {
    match decide(record, &policy(|_| ()), after(SENT, 60_000)) {
        Action::Reinvoke { envelope, .. } => envelope,
        other => panic!("not re-invoked: {other:?}"),
    }
}

#[test]
fn a_first_failure_is_followed_by_retry_one() {
    let record = received_again(body(r#"{"order": 7}"#));
    let event = read(&record);
    assert_eq!(event.function_arn, TARGET);
    assert_eq!((event.retry, event.retries_made()), (1, 0));
    assert_eq!(event.first_failure, T0);
    assert_eq!(event.origin_request_id, "r-1");
    assert_eq!(event.error_type(), Some("Timeout"));

    let Envelope { metadata, original_payload } = reinvoked(&record);
    assert_eq!(metadata.attempt, 1);
    assert_eq!(metadata.initial_timestamp, T0.as_secs());
    assert_eq!(metadata.origin_request_id.as_deref(), Some("r-1"));
    assert_eq!(original_payload.get(), r#"{"order": 7}"#);
}

#[test]
fn a_failure_of_attempt_k_is_followed_by_retry_k_plus_one() {
    for payload in [
        enveloped(4, r#"{"order": 7}"#),
        format!(
            r#"{{"order": 7,"_retry_metadata":{{"attempt":4,"initial_timestamp":{},"origin_request_id":"r-0","style":"inline"}}}}"#,
            T0.as_secs()
        ),
    ] {
        let record = received_again(body(&payload));
        assert_eq!((read(&record).retry, read(&record).retries_made()), (5, 4));
        assert_eq!(
            read(&record).request_id.as_deref(),
            Some("r-1"),
            "the attempt that failed, not the first"
        );
        let Envelope { metadata, original_payload } = reinvoked(&record);
        assert_eq!(metadata.attempt, 5);
        assert_eq!(metadata.initial_timestamp, T0.as_secs());
        assert_eq!(metadata.origin_request_id.as_deref(), Some("r-0"));
        assert_eq!(original_payload.get(), r#"{"order": 7}"#);
    }
}

#[test]
fn an_envelope_without_an_id_gets_this_records() {
    let payload = replaced(&enveloped(1, "7"), r#","origin_request_id":"r-0""#, "");
    let record = received_again(body(&payload));
    assert_eq!(reinvoked(&record).metadata.origin_request_id.as_deref(), Some("r-1"));
}

#[test]
fn a_record_without_an_id_gives_the_messages() {
    for id in ["", r#""requestId":null,"#, r#""requestId":"","#, r#""requestId":7,"#] {
        let record = received_again(replaced(&body("7"), r#""requestId":"r-1","#, id));
        assert_eq!(reinvoked(&record).metadata.origin_request_id.as_deref(), Some("m-1"), "{id}");
    }
}

fn first_failure(body: String) -> Timestamp {
    read(&record(body)).first_failure
}

#[test]
fn a_first_failure_is_when_the_record_says_but_never_after_it_was_sent() {
    let timestamp = "2026-09-14T15:46:54.145Z";
    let at = |text| first_failure(replaced(&body("7"), timestamp, text));
    assert_eq!(at("2026-09-14T15:46:50.999Z"), Timestamp::from_secs(T0.as_secs() - 4));
    assert_eq!(at("2026-09-14T15:46:55.000Z"), T0);
    assert_eq!(at("2999-01-01T00:00:00Z"), T0);
    assert_eq!(at("some day"), T0);
    assert_eq!(first_failure(replaced(&body("7"), &format!(r#""timestamp":"{timestamp}","#), "")), T0);
}

#[test]
fn an_envelope_says_when_the_event_first_failed_but_never_after_this_message_was_sent() {
    let at = |secs: &str| first_failure(body(&replaced(&enveloped(1, "7"), "1789400814", secs)));
    assert_eq!(at("1789400000"), Timestamp::from_secs(1_789_400_000));
    assert_eq!(at("0"), Timestamp::from_secs(0));
    assert_eq!(at("1789400815"), T0);
    assert_eq!(at("18446744073709551615"), T0);
}

#[test]
fn every_retry_counts_from_the_same_moment() {
    let first = received_again(body("7"));
    let sealed = reinvoked(&first).seal(comeback_engine::Style::Wrap);
    let sent = after(SENT, 3_600_000);
    let next = Record { sent, ..record(replaced(&body(&sealed), "15:46:54.145Z", "16:46:54.145Z")) };
    assert_eq!(read(&next).first_failure, read(&first).first_failure);
    assert_eq!(read(&next).origin_request_id, read(&first).origin_request_id);
}

fn letter(payload: &str) -> String {
    format!(
        r#"{{"reason":"non_retryable_error","detail":"","function_arn":"{TARGET}","retries_made":9,"initial_timestamp":1,"dead_lettered_at":2,"origin_request_id":"r-0","error":{{"type":"Fatal","message":null}},"payload":{payload}}}"#
    )
}

#[test]
fn a_redriven_dead_letter_starts_anew() {
    let policy = policy(|settings| settings.non_retryable_errors = vec!["Fatal".into()]);
    let first = record(letter(r#"{"n": 1E400}"#));
    assert_eq!(decided(&first, &policy, SENT), Seen::Defer(1));
    let again = Record { receive_count: 2, ..first };
    let Envelope { metadata, original_payload } = reinvoked(&again);
    assert_eq!(metadata.attempt, 1);
    assert_eq!(metadata.initial_timestamp, SENT.as_secs());
    assert_eq!(metadata.origin_request_id.as_deref(), Some("r-0"));
    assert_eq!(original_payload.get(), r#"{"n": 1E400}"#);
}

#[test]
fn a_redriven_dead_letter_without_a_readable_id_gets_the_messages() {
    for id in ["null", "7", r#""""#, r#""\ud800""#] {
        let record = record(replaced(&letter("7"), r#""r-0""#, id));
        assert_eq!(read(&record).origin_request_id, "m-1", "{id}");
    }
}

#[test]
fn the_allow_list_holds_for_a_redriven_dead_letter() {
    let record = record(replaced(&letter("7"), "orders", "payments"));
    assert_eq!(decided(&record, &policy(|_| ()), SENT), Seen::DeadLetter("target_not_allowed"));
}

#[test]
fn a_redriven_payload_is_never_enveloped_twice() {
    let written_by_hand = received_again(letter(&enveloped(3, "7")));
    assert_eq!(reinvoked(&written_by_hand).metadata.attempt, 1);
    assert_eq!(reinvoked(&written_by_hand).original_payload.get(), "7");
    assert_eq!(read(&written_by_hand).request_id, None, "no attempt of its new life has failed");
    let malformed = record(letter(r#"{"_retry_metadata":{}}"#));
    assert_eq!(decided(&malformed, &policy(|_| ()), SENT), Seen::DeadLetter("malformed_envelope"));
}

/// SQS's own redrive took the record to the dead-letter queue, and an operator moved it back.
#[test]
fn a_record_that_was_redriven_starts_anew() {
    let policy = policy(|settings| settings.non_retryable_errors = vec!["Timeout".into()]);
    let written = Timestamp::from_millis(T0.as_millis() + 145);
    let redriven = |payload: &str, millis| {
        let sent = after(written, millis);
        Record { sent, first_receive: sent, ..record(body(payload)) }
    };
    let payload = enveloped(9, r#"{"n": 1E400}"#);
    let in_time = redriven(&payload, 86_400_000);
    assert_eq!(decided(&in_time, &policy, in_time.sent), Seen::DeadLetter("non_retryable_error"));
    let late = redriven(&payload, 86_400_001);
    assert_eq!(decided(&late, &policy, late.sent), Seen::Defer(1));
    let event = read(&late);
    assert_eq!((event.retry, event.first_failure.as_secs()), (1, late.sent.as_secs()));
    assert_eq!((event.origin_request_id.as_str(), event.payload.get()), ("r-0", r#"{"n": 1E400}"#));
    assert_eq!(read(&redriven("7", 86_400_001)).origin_request_id, "r-1");
    let deleted = replaced(&late.body, r#""statusCode":200"#, r#""statusCode":404"#);
    let deleted = Record { body: deleted, ..late.clone() };
    assert_eq!(decided(&deleted, &policy, late.sent), Seen::Defer(1), "the function may be back");
    let malformed = redriven(r#"{"_retry_metadata":1}"#, 86_400_001);
    assert_eq!(decided(&malformed, &policy, malformed.sent), Seen::DeadLetter("malformed_envelope"));
    let elsewhere = Record { body: replaced(&late.body, "orders", "payments"), ..late };
    assert_eq!(decided(&elsewhere, &policy, elsewhere.sent), Seen::DeadLetter("target_not_allowed"));
}

#[test]
fn only_our_own_dead_letters_are_redriven() {
    let letter = letter("7");
    for other in [
        replaced(&letter, "non_retryable_error", "because"),
        replaced(&letter, r#""dead_lettered_at":2,"#, ""),
        replaced(&letter, r#""origin_request_id":"r-0","#, ""),
        replaced(&letter, r#""function_arn""#, r#""function""#),
        replaced(&letter, r#","payload":7"#, ""),
        format!("[{letter}]"),
    ] {
        assert_eq!(decided(&record(&*other), &policy(|_| ()), SENT), Seen::DeadLetter("malformed_record"));
    }
}
