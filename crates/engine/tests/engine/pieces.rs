//! `LONGEST_HIDE`: a long wait is several hidings, and otherwise the same.

use std::time::Duration;

use comeback_engine::{Action, Jitter, LONGEST_HIDE_RANGE, Pauses, Policies, Policy, Record, Timestamp};
use proptest::prelude::*;

use crate::support::{Seen, T0, after, body, decide, decided, enveloped, policy, record, replaced, seen};

const HOUR: u64 = 3_600;

fn at(seconds: u64) -> Timestamp {
    after(T0, 1_000 * seconds)
}

/// Every backoff takes 12 hours less 30 seconds, in pieces of this many seconds.
fn in_pieces_of(seconds: u64) -> Policy {
    policy(|settings| {
        settings.base_backoff = settings.max_backoff;
        (settings.longest_hide, settings.max_age) = (seconds, 14 * 24 * HOUR);
    })
}

fn received(times: u32) -> Record {
    Record { receive_count: times, sent: at(0), first_receive: at(0), ..record(body("7")) }
}

#[test]
fn a_wait_is_hidden_in_pieces_until_the_same_due_time() {
    let policy = in_pieces_of(HOUR);
    let mut now = at(0);
    for receive in 1..=12 {
        let record = received(receive);
        let action = decide(&record, &policy, now);
        assert_eq!(action.due(), Some(at(43_170)), "receive {receive}");
        let expected = if receive < 12 { HOUR } else { 43_170 - 11 * HOUR };
        assert_eq!(seen(&action), Seen::Defer(expected), "receive {receive}");
        now = now.saturating_add(Duration::from_secs(expected));
    }
    assert_eq!(decided(&received(13), &policy, now), Seen::Reinvoke(1));
}

#[test]
fn from_its_500th_receive_on_a_message_is_hidden_for_as_long_as_its_wait_allows() {
    let policy = in_pieces_of(1_344);
    assert_eq!(decided(&received(499), &policy, at(100)), Seen::Defer(1_344));
    assert_eq!(decided(&received(500), &policy, at(100)), Seen::Defer(41_940));
    assert_eq!(decided(&received(500), &policy, at(40_000)), Seen::Defer(3_170));
}

/// Whether a look only goes on with a wait, and so has no line in the log.
fn goes_on(policy: &Policy, record: &Record, pauses: &str, now: Timestamp) -> bool {
    let pauses = Pauses::read(pauses).expect("pauses");
    match comeback_engine::decide(record, &Policies::from(policy.clone()), &pauses, now) {
        Action::Defer { goes_on, .. } => goes_on,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_look_that_changes_nothing_has_no_line() {
    let policy = in_pieces_of(HOUR);
    let silent =
        |receive, seconds| goes_on(&policy, &received(receive), r#"{"v":1,"pauses":[]}"#, at(seconds));
    assert!(!silent(1, 0), "the first look says when the retry is due");
    assert!(silent(2, HOUR) && silent(2, HOUR - 5) && silent(5, 4 * HOUR));
    assert!(!silent(2, 1_230), "the first look may have been lost with its handler");
    assert!(!silent(5, 3 * HOUR + 1_230), "a look was lost");
    assert!(!silent(12, 11 * HOUR), "commands read 12 hours of the log");
}

#[test]
fn a_look_that_finds_its_due_time_moved_has_a_line() {
    let (policy, record) = (in_pieces_of(HOUR), received(2));
    let t0 = T0.as_secs();
    let moved_by = |member: &str| !goes_on(&policy, &record, &format!(r#"{{"v":1,{member}}}"#), at(HOUR));
    assert!(!moved_by(&format!(r#""pauses":[{{"target":"*","from":{t0},"until":{},"spread":0}}]"#, t0 + 60)));
    assert!(moved_by(&format!(
        r#""pauses":[],"retries":[{{"target":"*","at":{},"within":30000}}]"#,
        t0 + HOUR
    )));
}

proptest! {
    /// With pieces of any length, each look finds the same due time, and makes the same retry, as without.
    #[test]
    fn pieces_change_no_due_time(
        longest_hide in LONGEST_HIDE_RANGE,
        jitter in proptest::sample::select(Jitter::ALL.to_vec()),
        n in 1..60u64,
        id in "[a-z0-9]{1,8}",
        asked in proptest::option::of(1..900_000u64),
        times in 0..1_200u32,
        waited in 0..600_000u64,
    ) {
        let of = |pieces| policy(|settings| {
            (settings.jitter, settings.longest_hide, settings.max_age) = (jitter, pieces, 14 * 24 * HOUR);
        });
        let text = body(&enveloped(n, "7"));
        let text = match asked {
            Some(asked) => replaced(&replaced(&text, "Timeout", "RetryAfter"), "too slow", &asked.to_string()),
            None => text,
        };
        let record = Record { message_id: id, body: text, ..received(times) };
        let (whole, pieces) = (of(*LONGEST_HIDE_RANGE.end()), of(longest_hide));
        let now = at(waited);
        let (whole, pieces) = (decide(&record, &whole, now), decide(&record, &pieces, now));
        prop_assert_eq!(whole.due(), pieces.due());
        match (seen(&whole), seen(&pieces)) {
            (Seen::Defer(whole), Seen::Defer(piece)) => {
                let longest = if times < 500 { longest_hide } else { 43_170 };
                prop_assert_eq!(piece, whole.min(longest));
            }
            (whole, pieces) => prop_assert_eq!(whole, pieces),
        }
    }
}
