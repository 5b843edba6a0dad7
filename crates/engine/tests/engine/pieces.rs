//! `LONGEST_HIDE`: a long wait is several hidings, and otherwise the same.

use comeback_engine::{
    Action, DueBy, Jitter, LONGEST_HIDE_RANGE, Pauses, Policies, Policy, Record, Timestamp,
};
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

/// How long a message is hidden at a look, in seconds.
fn hidden(policy: &Policy, record: &Record, now: Timestamp) -> u64 {
    match seen(&decide(record, policy, now)) {
        Seen::Defer(seconds) => seconds,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wait_is_hidden_in_pieces_until_the_same_due_time() {
    let policy = in_pieces_of(HOUR);
    let first = hidden(&policy, &received(1), at(0));
    let (mut now, mut receive) = (first, 2);
    while now < 43_170 {
        let record = received(receive);
        let action = decide(&record, &policy, at(now));
        assert_eq!(action.due(), Some(at(43_170)), "receive {receive}");
        let piece = HOUR.min(43_170 - now);
        assert_eq!(seen(&action), Seen::Defer(piece), "receive {receive}");
        (now, receive) = (now + piece, receive + 1);
    }
    assert!(receive <= 14, "one look more than without a first piece of its own");
    assert_eq!(decided(&received(receive), &policy, at(now)), Seen::Reinvoke(1));
}

#[test]
fn what_failed_together_is_looked_at_over_the_whole_piece() {
    let policy = in_pieces_of(HOUR);
    let of = |n: u32, receive| Record { message_id: format!("m-{n}"), ..received(receive) };
    let mut first: Vec<u64> = (0..1_000).map(|n| hidden(&policy, &of(n, 1), at(0))).collect();
    // The handlers were throttled, and the message is back after the queue's own timeout.
    let again: Vec<u64> = (0..1_000).map(|n| 1_230 + hidden(&policy, &of(n, 2), at(1_230))).collect();
    for (first, again) in first.iter().zip(again) {
        assert!(again == *first || again == first + HOUR || again == 1_230 + HOUR, "{first} {again}");
    }
    first.sort_unstable();
    assert!(first[0] >= 60 && first[999] <= HOUR);
    for (share, first) in [(0.25, first[250]), (0.5, first[500]), (0.75, first[750])] {
        assert!((first as f64 - 60.0 - 3_540.0 * share).abs() < 200.0, "{first} s");
    }
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
    let pauses = Pauses::read(&format!(r#"{{"v":1,{pauses}}}"#)).expect("pauses");
    match comeback_engine::decide(record, &Policies::from(policy.clone()), &pauses, now) {
        Action::Defer { goes_on, .. } => goes_on,
        other => panic!("{other:?}"),
    }
}

const NO_PAUSES: &str = r#""pauses":[]"#;

#[test]
fn a_look_that_changes_nothing_has_no_line() {
    let policy = in_pieces_of(HOUR);
    let first = hidden(&policy, &received(1), at(0));
    let silent = |receive, seconds| goes_on(&policy, &received(receive), NO_PAUSES, at(seconds));
    assert!(!silent(1, 0), "the first look says when the retry is due");
    assert!(silent(2, first) && silent(2, first - 5) && silent(2, first + 20));
    assert!(silent(5, first + 3 * HOUR) && silent(7, first + 3 * HOUR), "whatever was throttled before");
    assert!(!silent(2, first - 30) && !silent(2, first + 100), "a look was lost, or the policy has changed");
    let lines: Vec<u64> = (0..12).filter(|hour| !silent(2, first + hour * HOUR)).collect();
    assert_eq!(lines.len(), 1, "commands read 12 hours of the log: {lines:?}");
}

#[test]
fn a_look_under_another_policy_has_a_line() {
    let policy = |max_backoff, hours| {
        policy(|settings| {
            (settings.base_backoff, settings.max_backoff) = (max_backoff, max_backoff);
            (settings.longest_hide, settings.max_age) = (HOUR, hours * HOUR);
        })
    };
    let (before, longer, older) = (policy(30_000, 24), policy(40_000, 24), policy(30_000, 48));
    for changed in [longer, older] {
        let silent = (0..1_000).filter(|n| {
            let of = |receive| Record { message_id: format!("m-{n}"), ..received(receive) };
            let first = hidden(&before, &of(1), at(0));
            assert!(goes_on(&before, &of(2), NO_PAUSES, at(first)));
            let look = first + hidden(&changed, &of(2), at(first));
            assert!(goes_on(&changed, &of(3), NO_PAUSES, at(look)), "it has changed once");
            goes_on(&changed, &of(2), NO_PAUSES, at(first))
        });
        assert!(silent.count() < 20, "one in a hundred, by chance");
    }
}

#[test]
fn a_look_that_finds_its_due_time_moved_has_a_line_and_the_next_has_none() {
    let policy = in_pieces_of(HOUR);
    let first = hidden(&policy, &received(1), at(0));
    let t0 = T0.as_secs();
    let silent = |member: &str, look: u64| {
        let record = received(2 + look as u32);
        goes_on(&policy, &record, member, at(first + look * HOUR))
    };
    let over = format!(r#""pauses":[{{"target":"*","from":{t0},"until":{},"spread":0}}]"#, t0 + 60);
    assert!(silent(&over, 1), "it moves nothing");
    let order = |given: u64, within: u64| {
        let at = t0 + first + given;
        format!(r#""pauses":[],"retries":[{{"target":"*","at":{at},"within":{within}}}]"#)
    };
    let given = order(HOUR - 60, 39_600);
    assert_eq!([0, 1, 2, 3].map(|look| silent(&given, look)), [true, false, true, true]);
    let just_before = order(HOUR - 20, 39_600);
    assert!(!silent(&just_before, 1) && !silent(&just_before, 2), "the first may not have read of it");
    let received = Record { first_receive: at(0), ..received(9) };
    let long = format!(r#""pauses":[{{"target":"*","from":{t0},"until":{},"spread":400000}}]"#, t0 + 50_000);
    let spread = |seconds| goes_on(&policy, &received, &long, at(seconds));
    let look = first + 14 * HOUR;
    assert!(!spread(look) && spread(look + 2 * HOUR), "moved by a pause");
}

#[test]
fn a_deferral_says_what_gave_its_due_time() {
    let (policy, t0) = (in_pieces_of(HOUR), T0.as_secs());
    let asked = replaced(&replaced(&body("7"), "Timeout", "RetryAfter"), "too slow", "72000");
    let asked = Record { body: asked, ..received(2) };
    let by = |record: &Record, pauses: &str| {
        let pauses = Pauses::read(&format!(r#"{{"v":1,{pauses}}}"#)).expect("pauses");
        match comeback_engine::decide(record, &Policies::from(policy.clone()), &pauses, at(51_000)) {
            Action::Defer { due_by, .. } => due_by,
            other => panic!("{other:?}"),
        }
    };
    let late = Record { first_receive: at(10_000), ..received(2) };
    let over = format!(r#""pauses":[{{"target":"*","from":{t0},"until":{},"spread":90000}}]"#, t0 + 50_000);
    let over_later = over.replace(&(t0 + 50_000).to_string(), &(t0 + 51_000).to_string());
    let given = format!(r#""pauses":[],"retries":[{{"target":"*","at":{},"within":2000}}]"#, t0 + 50_900);
    assert_eq!((by(&late, NO_PAUSES), by(&asked, NO_PAUSES)), (DueBy::Policy, DueBy::RetryAfter));
    assert_eq!((by(&received(2), &over), by(&late, &over)), (DueBy::Pause, DueBy::Policy));
    assert_eq!((by(&late, &given), by(&asked, &given)), (DueBy::RetryNow, DueBy::RetryAfter));
    assert_eq!(by(&asked, &over_later), DueBy::RetryAfter, "it ended before the moment that was asked for");
}

/// Every second hiding of the shortest pieces is refused, and later every one, until the event is given up.
#[test]
fn no_refusals_make_a_thousand_receives_of_the_shortest_pieces() {
    let policy = in_pieces_of(1_344);
    let asked = replaced(&replaced(&body("7"), "Timeout", "RetryAfter"), "too slow", "1200000");
    let (mut now, mut receive) = (0, 1);
    loop {
        let record = Record { body: asked.clone(), ..received(receive) };
        let Seen::Defer(hidden) = seen(&decide(&record, &policy, at(now))) else { break };
        now += if receive % 2 == 0 || receive >= 500 { 1_230 } else { hidden };
        receive += 1;
    }
    assert!(now > 1_100_000 && receive < 1_000, "{receive} receives in {now} s");
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
                prop_assert!(piece <= whole.min(longest));
                prop_assert!(piece > 10 || piece == whole, "{} of {}", piece, whole);
            }
            (whole, pieces) => prop_assert_eq!(whole, pieces),
        }
    }
}
