use comeback_engine::{Action, Record, SQS_MESSAGE_BYTES, Style, Timestamp};

use crate::support::*;

const DAY: u64 = 86_400_000;

#[test]
fn malformed_record() {
    assert_eq!(decided(&record("hello"), &policy(|_| ()), SENT), Seen::DeadLetter("malformed_record"));
    assert_eq!(detail(&record("[]"), &policy(|_| ()), SENT), "not a JSON object");
}

#[test]
fn malformed_envelope() {
    let nested = enveloped(2, &enveloped(1, "7"));
    for payload in [r#"{"_retry_metadata":{}}"#, r#"{"_retry_metadata":null,"a":1}"#, &nested] {
        let record = record(body(payload));
        assert_eq!(decided(&record, &policy(|_| ()), SENT), Seen::DeadLetter("malformed_envelope"));
    }
    let record = record(body(&nested));
    assert_eq!(detail(&record, &policy(|_| ()), SENT), "`_original_payload` is itself an envelope");
}

#[test]
fn target_not_allowed() {
    let record = record(replaced(&body("7"), "orders", "payments"));
    assert_eq!(decided(&record, &policy(|_| ()), SENT), Seen::DeadLetter("target_not_allowed"));
    assert_eq!(detail(&record, &policy(|_| ()), SENT), "the function is not on TARGET_FUNCTIONS");
}

#[test]
fn non_retryable_error() {
    let policy = policy(|settings| settings.non_retryable_errors = vec!["Time*".into()]);
    let record = record(body("7"));
    assert_eq!(decided(&record, &policy, SENT), Seen::DeadLetter("non_retryable_error"));
    assert_eq!(detail(&record, &policy, SENT), "Timeout matches NON_RETRYABLE_ERRORS");
    let long = self::record(replaced(&body("7"), "Timeout", &format!("Time{}", "é".repeat(300))));
    let shown = format!("Time{} matches NON_RETRYABLE_ERRORS", "é".repeat(252));
    assert_eq!(detail(&long, &policy, SENT), shown);
}

#[test]
fn target_not_found() {
    let record = record(replaced(&body("7"), r#""statusCode":200"#, r#""statusCode":404"#));
    assert_eq!(decided(&record, &policy(|_| ()), SENT), Seen::DeadLetter("target_not_found"));
    assert_eq!(detail(&record, &policy(|_| ()), SENT), "the invocation record says 404");
}

#[test]
fn max_retries_are_made_and_not_one_more() {
    let policy = policy(|settings| settings.max_retries = 3);
    let second_failed = received_again(body(&enveloped(2, "7")));
    let third_failed = received_again(body(&enveloped(3, "7")));
    assert_eq!(decided(&second_failed, &policy, after(SENT, 10_000)), Seen::Reinvoke(3));
    assert_eq!(decided(&third_failed, &policy, after(SENT, 10_000)), Seen::DeadLetter("max_retries"));
    assert_eq!(detail(&third_failed, &policy, after(SENT, 10_000)), "3 retries made; MAX_RETRIES is 3");
}

#[test]
fn no_retries_at_all() {
    let policy = policy(|settings| settings.max_retries = 0);
    assert_eq!(decided(&record(body("7")), &policy, SENT), Seen::DeadLetter("max_retries"));
    assert_eq!(detail(&record(body("7")), &policy, SENT), "0 retries made; MAX_RETRIES is 0");
}

#[test]
fn a_forged_attempt_does_not_overflow() {
    let record = record(body(&enveloped(u64::MAX, "7")));
    assert_eq!(decided(&record, &policy(|_| ()), SENT), Seen::DeadLetter("max_retries"));
}

#[test]
fn max_age_to_the_millisecond() {
    let record = received_again(body("7"));
    let end = after(T0, DAY);
    assert_eq!(decided(&record, &policy(|_| ()), end), Seen::Reinvoke(1));
    assert_eq!(decided(&record, &policy(|_| ()), after(end, 1)), Seen::DeadLetter("max_age"));
    assert_eq!(
        detail(&record, &policy(|_| ()), after(end, 1)),
        "first failed at 2026-09-14T15:46:54.000Z; MAX_AGE is 86400 s; this is receive 2 of its message"
    );
    let third = Record { receive_count: 3, ..record };
    let said = detail(&third, &policy(|_| ()), after(end, 1));
    assert!(
        said.ends_with("; this is receive 3 of its message; an earlier re-invocation, if it was not answered, may have been accepted")
    );
}

#[test]
fn max_age_before_the_message_is_too_old_for_the_queue() {
    let policy = policy(|settings| settings.max_age = 14 * 86_400);
    let record = received_again(body("7"));
    let limit = after(SENT, 13 * DAY + DAY / 2);
    assert_eq!(decided(&record, &policy, limit), Seen::Reinvoke(1));
    assert_eq!(decided(&record, &policy, after(limit, 1)), Seen::DeadLetter("max_age"));
    assert_eq!(
        detail(&record, &policy, after(limit, 1)),
        "sent to the retry queue at 2026-09-14T15:46:54.200Z; SQS keeps a message for 14 days; \
         this is receive 2 of its message"
    );
}

/// What the next failure's record holds beside the payload: this record, the envelope around the
/// payload, and 64 KiB.
fn bytes_beside(envelope: &str) -> usize {
    body("").len() + envelope.len() + 64 * 1_024
}

fn string_of(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

#[test]
fn payload_too_large_by_one_byte() {
    let envelope = r#"{"_retry_metadata":{"attempt":1,"initial_timestamp":1789400814,"origin_request_id":"r-1"},"_original_payload":}"#;
    let fits = SQS_MESSAGE_BYTES - bytes_beside(envelope);
    assert_eq!(SQS_MESSAGE_BYTES, 1_048_576);
    let due = long_after(SENT);
    let largest = received_again(body(&string_of(fits)));
    assert_eq!(decided(&largest, &policy(|_| ()), due), Seen::Reinvoke(1));
    let larger = received_again(body(&string_of(fits + 1)));
    assert_eq!(decided(&larger, &policy(|_| ()), due), Seen::DeadLetter("payload_too_large"));
    assert_eq!(
        detail(&larger, &policy(|_| ()), due),
        "the record of its next failure could have 1048577 bytes; SQS takes 1048576"
    );
    // Only what is due is judged: until then the message waits like any other.
    let waiting = Record { receive_count: 1, ..larger };
    assert_eq!(decided(&waiting, &policy(|_| ()), SENT), Seen::Defer(1));
}

#[test]
fn payload_too_large_counts_only_what_an_envelope_grows() {
    let last = enveloped(9, "");
    // Attempt 10 has one digit more than the 9 it came with.
    let fits = SQS_MESSAGE_BYTES - bytes_beside(&last) - 1;
    for (bytes, expected) in [(fits, Seen::Reinvoke(10)), (fits + 1, Seen::DeadLetter("payload_too_large"))] {
        let record = received_again(body(&enveloped(9, &string_of(bytes))));
        assert_eq!(decided(&record, &policy(|_| ()), long_after(SENT)), expected);
    }
}

#[test]
fn payload_too_large_follows_the_style() {
    let inline = r#""_retry_metadata":{"attempt":1,"initial_timestamp":1789400814,"origin_request_id":"r-1","style":"inline"},"#;
    let policy = policy(|settings| settings.envelope = Style::Inline);
    let fits = SQS_MESSAGE_BYTES - bytes_beside(inline) - r#"{"a":}"#.len();
    for (bytes, expected) in [(fits, Seen::Reinvoke(1)), (fits + 1, Seen::DeadLetter("payload_too_large"))] {
        let record = received_again(body(&format!(r#"{{"a":{}}}"#, string_of(bytes))));
        assert_eq!(decided(&record, &policy, long_after(SENT)), expected);
    }
}

/// Breaks one rule more in each line, the last rule first; the earliest broken one is the reason.
#[test]
fn the_first_rule_that_applies_decides() {
    let policy = policy(|settings| {
        settings.max_retries = 3;
        settings.non_retryable_errors = vec!["Timeout".into()];
        settings.max_age = 600;
    });
    let last_moment = after(T0, 600_000);
    let too_late = after(last_moment, 1);
    let retryable = |body: String| replaced(&body, "Timeout", "Throttled");
    let fourth = enveloped(3, "7");
    let elsewhere = |body: String| replaced(&body, "orders", "payments");
    let cases: [(String, Timestamp, &str); 5] = [
        (retryable(body("7")), too_late, "max_age"),
        (retryable(body(&fourth)), too_late, "max_retries"),
        (body(&fourth), too_late, "non_retryable_error"),
        (elsewhere(body(&fourth)), too_late, "target_not_allowed"),
        (elsewhere(body(r#"{"_retry_metadata":1}"#)), too_late, "malformed_envelope"),
    ];
    for (body, now, reason) in cases {
        assert_eq!(decided(&received_again(body), &policy, now), Seen::DeadLetter(reason), "{reason}");
    }
}

#[test]
fn a_reason_leaves_no_due_time() {
    let refused = record(replaced(&body("7"), "orders", "payments"));
    let large = received_again(body(&string_of(SQS_MESSAGE_BYTES - 1_000)));
    for record in [record("hello"), refused, large] {
        let action = decide(&record, &policy(|_| ()), long_after(SENT));
        assert!(matches!(action, Action::DeadLetter { .. }));
        assert_eq!(action.due(), None);
    }
}
