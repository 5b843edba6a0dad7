//! Tests of the rules of `decide`.

use std::collections::HashSet;
use std::time::Duration;

use comeback_engine::{Jitter, Policy, Record, SQS_MESSAGE_BYTES, Settings, Style, Timestamp};
use proptest::prelude::*;

use crate::support::*;

const DAY: u64 = 86_400_000;

#[test]
fn reasons_and_their_details() {
    let never = policy(|settings| settings.max_retries = 0);
    let usual = policy(|_| ());
    for (body, policy, reason, said) in [
        ("[]".into(), &usual, "malformed_record", "not a JSON object"),
        (
            replaced(&body("7"), "orders", "payments"),
            &usual,
            "target_not_allowed",
            "the function is not on TARGET_FUNCTIONS",
        ),
        (
            replaced(&body("7"), r#""statusCode":200"#, r#""statusCode":404"#),
            &usual,
            "target_not_found",
            "the invocation record has status 404",
        ),
        (body("7"), &never, "max_retries", "0 retries made; MAX_RETRIES is 0"),
        // A forged attempt number does not cause an overflow.
        (
            body(&enveloped(u64::MAX, "7")),
            &usual,
            "max_retries",
            "18446744073709551614 retries made; MAX_RETRIES is 185",
        ),
    ] {
        let record = record(body);
        assert_eq!(decided(&record, policy, SENT), Seen::DeadLetter(reason));
        assert_eq!(detail(&record, policy, SENT), said);
    }
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
fn non_retryable_errors_match_any_name_of_the_type() {
    for (glob, written, matches) in [
        ("ValidationError", "com.acme.ValidationError", true),
        ("OrderRefusedException", "com.acme.OrderRefusedException", true),
        ("Validation", "com.acme.ValidationError", true),
        ("com.acme.*", "com.acme.ValidationError", true),
        ("ValidationError", "Function<Acme::ValidationError>", true),
        ("Acme::Refused", "Function<Acme::Refused>", true),
        ("Outer$Inner", "com.acme.Outer$Inner", true),
        ("MyError", "a::MyError<alloc::string::String>", true),
        ("a::MyError", "a::MyError<alloc::string::String>", true),
        ("acme.ValidationError", "com.acme.ValidationError", false),
        ("ValidationException", "com.acme.ValidationError", false),
    ] {
        let policy = policy(|settings| settings.non_retryable_errors = vec![glob.into()]);
        let record = record(replaced(&body("7"), "Timeout", written));
        let is_dead_lettered = decided(&record, &policy, SENT) == Seen::DeadLetter("non_retryable_error");
        assert_eq!(is_dead_lettered, matches, "{glob} and {written}");
    }
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
fn max_retries_are_made_and_not_one_more() {
    let policy = policy(|settings| settings.max_retries = 3);
    let second_failed = received_again(body(&enveloped(2, "7")));
    let third_failed = received_again(body(&enveloped(3, "7")));
    assert_eq!(decided(&second_failed, &policy, after(SENT, 10_000)), Seen::Reinvoke(3));
    assert_eq!(decided(&third_failed, &policy, after(SENT, 10_000)), Seen::DeadLetter("max_retries"));
    assert_eq!(detail(&third_failed, &policy, after(SENT, 10_000)), "3 retries made; MAX_RETRIES is 3");
}

#[test]
fn max_age_to_the_millisecond() {
    let record = received_again(body("7"));
    let end = after(T0, DAY);
    assert_eq!(decided(&record, &policy(|_| ()), end), Seen::Reinvoke(1));
    assert_eq!(decided(&record, &policy(|_| ()), after(end, 1)), Seen::DeadLetter("max_age"));
    assert_eq!(
        detail(&record, &policy(|_| ()), after(end, 1)),
        "first failed at 2026-09-14T15:46:54.000Z; MAX_AGE is 86400 s; receive 2 of its message"
    );
    let third = Record { receive_count: 3, ..record };
    let said = detail(&third, &policy(|_| ()), after(end, 1));
    assert!(
        said.ends_with(
            "; receive 3 of its message; an earlier call that was not answered may have succeeded"
        )
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
        "sent to the retry queue at 2026-09-14T15:46:54.200Z; SQS keeps a message for 14 days; receive 2 of \
         its message"
    );
}

/// Estimated size in bytes of the next failure's record, without the payload.
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
        "the record of its next failure could have 1048577 bytes; SQS accepts 1048576"
    );
    // A message is measured only once its retry is due.
    let waiting = Record { receive_count: 1, ..larger };
    assert_eq!(decided(&waiting, &policy(|_| ()), SENT), Seen::Defer(1));
}

#[test]
fn payload_too_large_counts_the_new_envelope() {
    let inline = r#""_retry_metadata":{"attempt":1,"initial_timestamp":1789400814,"origin_request_id":"r-1","style":"inline"},"#;
    type Payload = fn(String) -> String;
    let wrapped: Payload = |text| enveloped(9, &text);
    let inlined: Payload = |text| format!(r#"{{"a":{text}}}"#);
    // The attempt number in the new envelope, 10, has one digit more.
    for (style, beside, payload, retry) in [
        (Style::Wrap, bytes_beside(&enveloped(9, "")) + 1, wrapped, 10),
        (Style::Inline, bytes_beside(inline) + inlined(String::new()).len(), inlined, 1),
    ] {
        let policy = policy(|settings| settings.envelope = style);
        let fits = SQS_MESSAGE_BYTES - beside;
        for (bytes, expected) in
            [(fits, Seen::Reinvoke(retry)), (fits + 1, Seen::DeadLetter("payload_too_large"))]
        {
            let record = received_again(body(&payload(string_of(bytes))));
            assert_eq!(decided(&record, &policy, long_after(SENT)), expected, "{style}");
        }
    }
}

/// Each message breaks one more rule than the message before it, and that rule is checked first.
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

fn waits(max_age: u64, seconds: u64) -> Policy {
    policy(|settings| (settings.base_backoff, settings.max_age) = (seconds, max_age))
}

#[test]
fn a_first_receive_serves_the_whole_delay_from_now() {
    for record in [record(body("7")), Record { receive_count: 0, ..record(body("7")) }] {
        let (policy, now) = (waits(14 * 86_400, 8), after(FIRST_RECEIVE, 3_600_000));
        assert_eq!(decided(&record, &policy, now), Seen::Defer(8));
        assert_eq!(decide(&record, &policy, now).due(), Some(after(now, 8_000)));
    }
}

#[test]
fn a_later_receive_serves_what_is_left_since_the_first() {
    let record = received_again(body("7"));
    let due = Some(after(FIRST_RECEIVE, 8_000));
    // A deferral is in whole seconds, rounded up. A retry with under half a second left counts as due.
    for (millis, expected) in [
        (0, Seen::Defer(8)),
        (1, Seen::Defer(8)),
        (999, Seen::Defer(8)),
        (1_000, Seen::Defer(7)),
        (7_000, Seen::Defer(1)),
        (7_001, Seen::Defer(1)),
        (7_500, Seen::Defer(1)),
        (7_501, Seen::Reinvoke(1)),
        (8_000, Seen::Reinvoke(1)),
        (80_000, Seen::Reinvoke(1)),
    ] {
        let now = after(FIRST_RECEIVE, millis);
        assert_eq!(
            decided(&record, &waits(14 * 86_400, 8), now),
            expected,
            "{millis} ms after the first receive"
        );
        assert_eq!(decide(&record, &waits(14 * 86_400, 8), now).due(), due);
    }
}

#[test]
fn a_wait_is_cut_to_end_before_the_last_minute() {
    // The event reaches `MAX_AGE` 599 s after the first receive.
    let record = record(body("7"));
    for (wait, expected) in [(538, 538), (539, 539), (540, 539), (599, 539), (600, 539)] {
        let decided = decided(&record, &waits(600, wait), FIRST_RECEIVE);
        assert_eq!(decided, Seen::Defer(expected), "{wait} s");
    }
    let (policy, last) = (waits(600, 3_600), after(T0, 540_000));
    assert_eq!(decide(&record, &policy, FIRST_RECEIVE).due(), Some(last));
    let again = received_again(body("7"));
    assert_eq!(decided(&again, &policy, after(FIRST_RECEIVE, 60_000)), Seen::Defer(479));
    assert_eq!(decided(&again, &policy, last), Seen::Reinvoke(1));
    // The deferral is rounded up, so one is enough.
    let now = after(FIRST_RECEIVE, 1);
    assert_eq!(decided(&record, &waits(600, 3_600), now), Seen::Defer(539));
}

#[test]
fn a_short_max_age_keeps_a_tenth_for_the_last_retry() {
    let policy = policy(|settings| (settings.base_backoff, settings.max_age) = (90, 90));
    let record = record(body("7"));
    assert_eq!(decided(&record, &policy, after(T0, 1_000)), Seen::Defer(80), "to end 9 s before 90 s");
    assert_eq!(decided(&record, &policy, after(T0, 72_000)), Seen::Defer(9));
    assert_eq!(decided(&record, &policy, after(T0, 72_001)), Seen::DeadLetter("max_age"));
}

#[test]
fn no_retry_if_under_a_minute_is_left_for_its_backoff() {
    let policy = waits(600, 3_600);
    let record = record(body("7"));
    let latest = after(T0, 480_000);
    assert_eq!(decided(&record, &policy, latest), Seen::Defer(60));
    assert_eq!(decided(&record, &policy, after(latest, 1)), Seen::DeadLetter("max_age"));
    assert_eq!(
        detail(&record, &policy, after(latest, 1)),
        "first failed at 2026-09-14T15:46:54.000Z; MAX_AGE is 600 s; receive 1 of its message"
    );
    let again = Record { receive_count: 2, first_receive: after(latest, 1), ..record };
    assert_eq!(decided(&again, &policy, after(latest, 1)), Seen::DeadLetter("max_age"));
}

#[test]
fn a_first_receive_is_hidden_within_twelve_hours_of_it() {
    for (since_receive, expected) in [
        (0, 43_170),
        (1, 43_169),
        (10_000, 43_160),
        (10_500, 43_159),
        (43_168_000, 2),
        (43_169_000, 1),
        (43_170_000, 1),
        (500_000_000, 1),
    ] {
        let now = after(FIRST_RECEIVE, since_receive);
        let decided = decided(&record(body("7")), &waits(14 * 86_400, 43_170), now);
        assert_eq!(decided, Seen::Defer(expected), "{since_receive} ms after the receive");
    }
    let clock_behind = Record { first_receive: after(FIRST_RECEIVE, 60_000), ..record(body("7")) };
    assert_eq!(decided(&clock_behind, &waits(14 * 86_400, 43_170), FIRST_RECEIVE), Seen::Defer(43_170));
}

#[test]
fn a_later_receive_allows_for_the_queues_own_timeout() {
    let record = received_again(body("7"));
    for (since_first, expected) in [(0, 41_940), (1_230_000, 41_940), (1_231_000, 41_939)] {
        let now = after(FIRST_RECEIVE, since_first);
        assert_eq!(
            decided(&record, &waits(14 * 86_400, 43_170), now),
            Seen::Defer(expected),
            "{since_first} ms"
        );
    }
}

proptest! {
    #[test]
    fn the_same_message_always_has_the_same_due_time(
        id in "[a-z0-9-]{1,12}",
        attempt in 0..30u64,
        jitter in proptest::sample::select(Jitter::ALL.to_vec()),
        checks in proptest::collection::vec((2..=u32::MAX, 0..86_000_000u64), 1..5),
    ) {
        let policy = policy(|settings| {
            settings.jitter = jitter;
            settings.max_age = 14 * 86_400;
        });
        let payload = if attempt == 0 { "7".into() } else { enveloped(attempt, "7") };
        let first = Record { message_id: id, ..record(body(&payload)) };
        let deferred_at = after(FIRST_RECEIVE, 400);
        let promised = decide(&first, &policy, deferred_at).due().unwrap().since(deferred_at);
        for (receive_count, millis) in checks {
            let record = Record { receive_count, ..first.clone() };
            let due = decide(&record, &policy, after(FIRST_RECEIVE, millis)).due();
            prop_assert_eq!(due, Some(FIRST_RECEIVE.saturating_add(promised)));
        }
    }

    #[test]
    fn a_backoff_is_served_in_one_deferral(
        id in "[a-z0-9-]{1,12}",
        base in 1..43_170u64,
        max_age in 60..1_209_600u64,
        to_receive in 0..1_000_000u64,
        to_handler in 0..5_000u64,
    ) {
        let policy = policy(|settings: &mut Settings| {
            (settings.base_backoff, settings.max_age, settings.jitter) = (base, max_age, Jitter::Full);
        });
        let first_receive = after(SENT, to_receive);
        let now = after(first_receive, to_handler);
        let first = Record { message_id: id, first_receive, ..record(body("7")) };
        match decided(&first, &policy, now) {
            Seen::Defer(seconds) => {
                let back: Timestamp = now.saturating_add(Duration::from_secs(seconds));
                let again = Record { receive_count: 2, ..first };
                // SQS hides a message for at most 12 hours from its receive, so it may become visible a few seconds
                // early.
                match decided(&again, &policy, back) {
                    Seen::Reinvoke(1) => {}
                    Seen::Defer(left) => prop_assert!(seconds > 43_160 && left <= 5),
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            other => prop_assert_eq!(other, Seen::DeadLetter("max_age")),
        }
    }
}

/// The delay in seconds before retry `n`.
fn drawn(policy: &Policy, message_id: &str, origin: &str, n: u64) -> u64 {
    let body = match n {
        1 => replaced(&body("7"), "r-1", origin),
        n => replaced(&body(&enveloped(n - 1, "7")), "r-0", origin),
    };
    let record = Record { message_id: message_id.into(), ..record(body) };
    match decided(&record, policy, SENT) {
        Seen::Defer(seconds) => seconds,
        other => panic!("{other:?}"),
    }
}

fn jittered(jitter: Jitter) -> Policy {
    policy(|settings| {
        settings.jitter = jitter;
        settings.max_age = 14 * 86_400;
    })
}

fn assert_uniform(draws: &[u64], low: u64, high: u64) {
    let distinct: HashSet<u64> = draws.iter().copied().collect();
    assert_eq!(distinct, (low..=high).collect());
    let width = (high - low + 1) as f64;
    let standard_error = ((width * width - 1.0) / 12.0 / draws.len() as f64).sqrt();
    let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
    let expected = (low + high) as f64 / 2.0;
    assert!((mean - expected).abs() <= 4.0 * standard_error, "mean {mean}, not {expected}");
}

#[test]
fn jitter_spreads_messages_evenly() {
    for (jitter, cap, n, low, high) in [
        (Jitter::Full, 43_170, 1, 1, 1),
        (Jitter::Full, 43_170, 2, 1, 2),
        (Jitter::Full, 43_170, 5, 1, 16),
        (Jitter::Full, 43_170, 8, 1, 128),
        (Jitter::Full, 100, 12, 1, 100),
        (Jitter::Equal, 43_170, 8, 64, 128),
    ] {
        let policy = policy(|settings| (settings.jitter, settings.max_backoff) = (jitter, cap));
        let draws: Vec<u64> = (0..10_000).map(|id| drawn(&policy, &format!("m-{id}"), "r-1", n)).collect();
        assert_uniform(&draws, low, high);
    }
}

#[test]
fn decorrelated_jitter_is_drawn_by_the_event() {
    let policy = jittered(Jitter::Decorrelated);
    let chain = |message, event| [1, 8, 17].map(|n| drawn(&policy, message, event, n));
    assert_eq!(chain("m-1", "e-1"), chain("m-2", "e-1"));
    assert_ne!(chain("m-1", "e-1"), chain("m-1", "e-2"));
}

/// If the draws changed, the due times of waiting events would change too.
#[test]
fn draws_are_pinned() {
    let draws = |jitter| [1, 8, 17, 30].map(|n| drawn(&jittered(jitter), "m-1", "r-1", n));
    assert_eq!(draws(Jitter::Full), [1, 6, 13451, 21320]);
    assert_eq!(draws(Jitter::Equal), [1, 66, 28310, 32245]);
    assert_eq!(draws(Jitter::Decorrelated), [1, 127, 209, 184]);
}
