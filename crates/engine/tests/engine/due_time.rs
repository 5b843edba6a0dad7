use std::time::Duration;

use comeback_engine::{Jitter, Policy, Record, Settings, Timestamp};
use proptest::prelude::*;

use crate::support::*;

/// Every delay is `seconds`, and no age is in its way.
fn waits(seconds: u64) -> Policy {
    policy(|settings| {
        settings.base_backoff = seconds;
        settings.max_age = 14 * 86_400;
    })
}

/// Every delay is `seconds`, and `MAX_AGE` ten minutes.
fn waits_within_ten_minutes(seconds: u64) -> Policy {
    policy(|settings| {
        settings.base_backoff = seconds;
        settings.max_age = 600;
    })
}

#[test]
fn a_first_receive_serves_the_whole_delay_from_now() {
    let now = after(FIRST_RECEIVE, 700);
    let record = record(body("7"));
    assert_eq!(decided(&record, &waits(8), now), Seen::Defer(8));
    assert_eq!(decide(&record, &waits(8), now).due(), Some(after(now, 8_000)));
}

#[test]
fn a_first_receive_is_never_due() {
    let sent_long_ago = Record { first_receive: T0, ..record(body("7")) };
    assert_eq!(decided(&sent_long_ago, &waits(8), after(T0, 3_600_000)), Seen::Defer(8));
}

#[test]
fn a_receive_count_of_zero_is_a_first_receive() {
    let record = Record { receive_count: 0, ..record(body("7")) };
    assert_eq!(decided(&record, &waits(8), after(FIRST_RECEIVE, 60_000)), Seen::Defer(8));
}

#[test]
fn a_later_receive_serves_what_is_left_since_the_first() {
    let record = received_again(body("7"));
    let due = Some(after(FIRST_RECEIVE, 8_000));
    // Whole seconds, rounded up; under half a second left counts as due.
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
        assert_eq!(decided(&record, &waits(8), now), expected, "{millis} ms after the first receive");
        assert_eq!(decide(&record, &waits(8), now).due(), due);
    }
}

#[test]
fn a_retry_that_would_be_due_in_the_last_minute_is_cut_to_end_before_it() {
    // MAX_AGE ends 599 s after the first receive.
    let record = record(body("7"));
    for (wait, expected) in [(538, 538), (539, 539), (540, 539), (599, 539), (600, 539)] {
        let decided = decided(&record, &waits_within_ten_minutes(wait), FIRST_RECEIVE);
        assert_eq!(decided, Seen::Defer(expected), "{wait} s");
    }
}

#[test]
fn a_short_max_age_keeps_a_tenth_of_it_for_the_last_retry() {
    let policy = policy(|settings| (settings.base_backoff, settings.max_age) = (90, 90));
    let record = record(body("7"));
    assert_eq!(decided(&record, &policy, after(T0, 1_000)), Seen::Defer(80), "to end 9 s before 90 s");
    assert_eq!(decided(&record, &policy, after(T0, 72_000)), Seen::Defer(9));
    assert_eq!(decided(&record, &policy, after(T0, 72_001)), Seen::DeadLetter("max_age"));
}

#[test]
fn the_last_retry_is_made_a_minute_before_max_age() {
    let policy = waits_within_ten_minutes(3_600);
    let last = after(T0, 540_000);
    let first = record(body("7"));
    let again = received_again(body("7"));
    assert_eq!(decide(&first, &policy, FIRST_RECEIVE).due(), Some(last));
    assert_eq!(decide(&again, &policy, after(FIRST_RECEIVE, 60_000)).due(), Some(last));
    assert_eq!(decided(&again, &policy, after(FIRST_RECEIVE, 60_000)), Seen::Defer(479));
    assert_eq!(decided(&again, &policy, last), Seen::Reinvoke(1));
}

#[test]
fn a_cut_delay_is_rounded_up_so_that_it_is_served_in_one() {
    let record = record(body("7"));
    let now = after(FIRST_RECEIVE, 1);
    assert_eq!(decided(&record, &waits_within_ten_minutes(3_600), now), Seen::Defer(539));
}

#[test]
fn no_retry_if_under_a_minute_is_left_for_its_backoff() {
    let policy = waits_within_ten_minutes(3_600);
    let record = record(body("7"));
    let latest = after(T0, 480_000);
    assert_eq!(decided(&record, &policy, latest), Seen::Defer(60));
    assert_eq!(decided(&record, &policy, after(latest, 1)), Seen::DeadLetter("max_age"));
    assert_eq!(
        detail(&record, &policy, after(latest, 1)),
        "first failed at 2026-09-14T15:46:54.000Z; MAX_AGE is 600 s; this is receive 1 of its message"
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
        let decided = decided(&record(body("7")), &waits(43_170), now);
        assert_eq!(decided, Seen::Defer(expected), "{since_receive} ms after the receive");
    }
    let clock_behind = Record { first_receive: after(FIRST_RECEIVE, 60_000), ..record(body("7")) };
    assert_eq!(decided(&clock_behind, &waits(43_170), FIRST_RECEIVE), Seen::Defer(43_170));
}

#[test]
fn a_later_receive_may_have_been_held_for_the_queues_own_timeout() {
    let record = received_again(body("7"));
    for (since_first, expected) in [(0, 41_940), (1_230_000, 41_940), (1_231_000, 41_939)] {
        let now = after(FIRST_RECEIVE, since_first);
        assert_eq!(decided(&record, &waits(43_170), now), Seen::Defer(expected), "{since_first} ms");
    }
}

#[test]
fn ceilings_double_from_the_base_to_the_cap() {
    let policy = policy(|settings| {
        settings.base_backoff = 3;
        settings.max_backoff = 20;
    });
    let delays: Vec<Seen> = (0..5)
        .map(|attempt| match attempt {
            0 => body("7"),
            attempt => body(&enveloped(attempt, "7")),
        })
        .map(|body| decided(&record(body), &policy, SENT))
        .collect();
    assert_eq!(delays, [3, 6, 12, 20, 20].map(Seen::Defer));
}

proptest! {
    #[test]
    fn the_same_message_always_has_the_same_due_time(
        id in "[a-z0-9-]{1,12}",
        attempt in 0..30u64,
        jitter in proptest::sample::select(Jitter::ALL.to_vec()),
        looks in proptest::collection::vec((2..=u32::MAX, 0..86_000_000u64), 1..5),
    ) {
        let policy = policy(|settings| {
            settings.jitter = jitter;
            settings.max_age = 14 * 86_400;
        });
        let payload = if attempt == 0 { "7".into() } else { enveloped(attempt, "7") };
        let first = Record { message_id: id, ..record(body(&payload)) };
        let deferred_at = after(FIRST_RECEIVE, 400);
        let promised = decide(&first, &policy, deferred_at).due().unwrap().since(deferred_at);
        for (receive_count, millis) in looks {
            let record = Record { receive_count, ..first.clone() };
            let due = decide(&record, &policy, after(FIRST_RECEIVE, millis)).due();
            prop_assert_eq!(due, Some(FIRST_RECEIVE.saturating_add(promised)));
        }
    }

    /// Deferred once and back when SQS says, a message is due: a backoff costs one deferral.
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
                // Hidden for 12 hours from the receive at most, it may come early by the seconds it
                // took to the handler.
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
