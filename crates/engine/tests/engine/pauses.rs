//! Tests how pauses affect decisions.

use comeback_engine::{Action, HOLD, Jitter, Pauses, Policies, Policy, Record, Timestamp, decide};
use proptest::prelude::*;

use crate::support::{ORDERS, Seen, T0, after, body, enveloped, policy, received_again, replaced, seen};

const DAY: u64 = 86_400;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(T0.as_secs() + seconds)
}

/// Pauses for [`ORDERS`]: start and end in seconds from the first failure, and the spread in seconds.
fn pauses(all: &[(i64, Option<i64>, u64)]) -> Pauses {
    of_targets(&all.iter().map(|&(from, until, spread)| (ORDERS, from, until, spread)).collect::<Vec<_>>())
}

fn of_targets(all: &[(&str, i64, Option<i64>, u64)]) -> Pauses {
    let seconds = |seconds: i64| T0.as_secs().checked_add_signed(seconds).expect("a time");
    let pause = |&(target, from, until, spread): &(&str, i64, Option<i64>, u64)| {
        let (from, until) = (seconds(from), until.map_or("null".into(), |until| seconds(until).to_string()));
        format!(r#"{{"target":"{target}","from":{from},"until":{until},"spread":{spread}}}"#)
    };
    let all: Vec<String> = all.iter().map(pause).collect();
    Pauses::read(&format!(r#"{{"v":1,"pauses":[{}]}}"#, all.join(","))).expect("pauses")
}

fn received_at(first_receive: u64) -> Record {
    Record { sent: at(0), first_receive: at(first_receive), ..received_again(body("7")) }
}

/// Maximum time from the end of a pause until every paused event has been checked again, in seconds. This is [`HOLD`],
/// counted from the next time that the handler reads the pauses.
const SEEN_AGAIN: u64 = LATEST_READ + 1_344;
const LATEST_READ: u64 = 60;

fn waits(backoff: u64, max_age: u64) -> Policy {
    policy(|settings| {
        settings.maximum_concurrency = 160;
        (settings.base_backoff, settings.max_backoff) = (backoff, backoff);
        settings.max_age = max_age;
    })
}

fn decided(record: &Record, policy: &Policy, pauses: &Pauses, now: Timestamp) -> Seen {
    seen(&decide(record, &policy.clone().into(), pauses, now))
}

fn due(record: &Record, policy: &Policy, pauses: &Pauses, now: Timestamp) -> u64 {
    let due = decide(record, &policy.clone().into(), pauses, now).due().expect("it is retried");
    due.since(T0).as_millis() as u64
}

#[test]
fn a_due_event_is_held_in_a_pause() {
    let (record, policy) = (received_at(1), waits(10, DAY));
    let open = pauses(&[(5, None, 0)]);
    assert_eq!(decided(&record, &policy, &open, at(10)), Seen::Defer(1), "its backoff goes on");
    assert_eq!(decided(&record, &policy, &open, at(11)), Seen::Hold(1_344));
    assert_eq!(decided(&record, &policy, &open, at(13 * DAY)), Seen::Hold(1_344));
    let first = Record { receive_count: 1, ..record };
    assert_eq!(decided(&first, &policy, &open, at(11)), Seen::Defer(10), "no backoff was served yet");
}

#[test]
fn a_hold_ends_with_the_pause_if_its_end_is_planned() {
    let (record, policy) = (received_at(1), waits(1, DAY));
    let held = |until: &[(i64, Option<i64>, u64)], millis| {
        decided(&record, &policy, &pauses(until), after(at(0), millis))
    };
    assert_eq!(held(&[(0, Some(2_000), 0)], 100_000), Seen::Hold(1_344));
    assert_eq!(held(&[(0, Some(1_000), 0)], 100_000), Seen::Hold(900));
    assert_eq!(held(&[(0, Some(1_000), 0)], 999_001), Seen::Hold(1), "rounded up");
    assert_eq!(held(&[(0, Some(1_000), 0)], 1_000_000), Seen::Reinvoke(1));
    assert_eq!(
        held(&[(0, Some(1_000), 0), (500, Some(1_100), 0)], 900_000),
        Seen::Hold(200),
        "the later end"
    );
    assert_eq!(held(&[(0, Some(1_000), 0), (500, None, 0)], 900_000), Seen::Hold(1_344));
    assert_eq!(held(&[(200, None, 0)], 199_999), Seen::Reinvoke(1), "it has not begun");
}

#[test]
fn only_the_pauses_of_its_function_count() {
    let (record, policy) = (received_at(1), waits(1, DAY));
    for (target, expected) in [
        ("*", Seen::Hold(1_344)),
        (ORDERS, Seen::Hold(1_344)),
        ("arn:aws:lambda:eu-west-1:123456789012:function:payments", Seen::Reinvoke(1)),
    ] {
        let open = of_targets(&[(target, 0, None, 0)]);
        assert_eq!(decided(&record, &policy, &open, at(100)), expected, "{target}");
    }
}

#[test]
fn a_pause_does_not_stop_dead_lettering() {
    let policy = policy(|settings| {
        settings.max_retries = 3;
        settings.non_retryable_errors = vec!["Fatal".into()];
    });
    let open = of_targets(&[("*", 0, None, 0)]);
    for (text, reason) in [
        ("garbage".into(), "malformed_record"),
        (replaced(&body("7"), "orders", "payments"), "target_not_allowed"),
        (replaced(&body("7"), r#""statusCode":200"#, r#""statusCode":404"#), "target_not_found"),
        (replaced(&body("7"), "Timeout", "Fatal"), "non_retryable_error"),
        (body(&enveloped(3, "7")), "max_retries"),
    ] {
        let record = Record { body: text, ..received_at(1) };
        assert_eq!(decided(&record, &policy, &open, at(100)), Seen::DeadLetter(reason));
    }
}

#[test]
fn a_pause_does_not_extend_the_retention() {
    let open = pauses(&[(0, None, 0)]);
    let limit = 13 * DAY + DAY / 2;
    assert_eq!(decided(&received_at(1), &waits(1, 60), &open, at(limit)), Seen::Hold(1_344));
    let late = after(at(limit), 1);
    assert_eq!(decided(&received_at(1), &waits(1, 60), &open, late), Seen::DeadLetter("max_age"));
}

/// Returns the last second, counted from the event's first failure, in which the handler still retries the event under
/// these pauses.
fn last_retry(pauses: &Pauses) -> u64 {
    let (record, policy) = (received_at(1), waits(1, 3_600));
    let reinvoked = |second: &u64| decided(&record, &policy, pauses, at(*second)) == Seen::Reinvoke(1);
    let last = (2..30_000).rfind(reinvoked).expect("it is retried at all");
    let late = decided(&record, &policy, pauses, after(at(last), 1));
    assert_eq!(late, Seen::DeadLetter("max_age"));
    last
}

#[test]
fn no_pause_counts_towards_max_age() {
    for (all, excluded) in [
        (&[][..], 0),
        (&[(600, Some(5_000), 0)], 4_400 + SEEN_AGAIN),
        (&[(-900, Some(5_000), 0)], 5_000 + SEEN_AGAIN),
        (&[(3_600, Some(5_000), 0)], 1_400 + SEEN_AGAIN),
        (&[(600, Some(600), 0)], SEEN_AGAIN),
        // A pause changes nothing if it was over before the first failure, or began after the event had reached
        // `MAX_AGE`.
        (&[(-900, Some(-60), 0)], 0),
        (&[(3_601, Some(5_000), 0)], 0),
        (&[(3_601, None, 0)], 0),
        // An environment may not have noticed the end by the time the event failed.
        (&[(-900, Some(-59), 0)], SEEN_AGAIN - 59),
        (&[(-900, Some(0), 0)], SEEN_AGAIN),
        // Each paused second counts once. The first pause extends `MAX_AGE` until after the start of the second
        // pause.
        (&[(600, Some(5_000), 0), (700, Some(4_000), 0)], 4_400 + SEEN_AGAIN),
        (&[(600, Some(5_000), 0), (4_000, Some(6_000), 0)], 5_400 + SEEN_AGAIN),
        (&[(600, Some(5_000), 0), (5_500, Some(6_000), 0)], 5_400 + SEEN_AGAIN),
        (&[(600, Some(5_000), 0), (8_000, Some(9_000), 0)], 5_400 + 2 * SEEN_AGAIN),
    ] {
        assert_eq!(last_retry(&pauses(all)), 3_600 + excluded, "{all:?}");
    }
}

#[test]
fn events_return_evenly_after_a_pause() {
    let policy = waits(10, DAY);
    let closed = pauses(&[(5, Some(1_000), 1_800)]);
    let draw = |message: usize| {
        let record = Record { message_id: format!("m-{message}"), ..received_at(1) };
        let drawn = due(&record, &policy, &closed, at(1_000));
        assert_eq!(drawn, due(&record, &policy, &closed, at(2_000)), "at any time");
        drawn
    };
    let draws: Vec<u64> = (0..10_000).map(draw).collect();
    assert!(draws.iter().all(|due| (1_000_000..=2_800_000).contains(due)));
    let mean = draws.iter().sum::<u64>() as f64 / 10_000.0;
    // Four standard errors of 1,800 s / √12 / √10,000 = 5.2 s each.
    assert!((mean - 1_900_000.0).abs() < 20_800.0, "{mean}");
    let busiest =
        (0..30).map(|minute| draws.iter().filter(|due| (*due - 1_000_000) / 60_000 == minute).count());
    assert!(busiest.clone().all(|in_a_minute| (250..=420).contains(&in_a_minute)), "{:?}", busiest.max());
}

#[test]
fn message_retry_and_pause_seed_the_draw() {
    let policy = waits(10, DAY);
    let drawn = |message: &str, attempt: u64, until: i64| {
        let payload = enveloped(attempt, "7");
        let record = Record { message_id: message.into(), body: body(&payload), ..received_at(1) };
        due(&record, &policy, &pauses(&[(5, Some(until), 1_800)]), at(20_000)) - until as u64 * 1_000
    };
    let one = drawn("m-1", 1, 1_000);
    assert_eq!(one, drawn("m-1", 1, 1_000));
    assert!(one != drawn("m-2", 1, 1_000) && one != drawn("m-1", 2, 1_000) && one != drawn("m-1", 1, 1_001));
}

#[test]
fn a_retry_due_after_the_pause_stays() {
    let (record, policy) = (received_at(1), waits(10, DAY));
    for all in [&[(5, Some(11), 1_800)][..], &[(-100, Some(-50), 1_800)], &[(0, Some(1), 1_800)]] {
        assert_eq!(due(&record, &policy, &pauses(all), at(100)), 11_000, "{all:?}");
    }
    assert_eq!(
        due(&record, &policy, &pauses(&[(5, Some(12), 0)]), at(100)),
        12_000,
        "it was due in this one"
    );
    assert_eq!(due(&record, &policy, &pauses(&[(5, Some(50), 0)]), at(20)), 11_000, "it is not over");
}

#[test]
fn a_second_pause_moves_the_retry_again() {
    let (record, policy) = (received_at(1), waits(10, DAY));
    let first = (5, Some(1_000), 600);
    let once = due(&record, &policy, &pauses(&[first]), at(9_000));
    assert!((1_000_000..=1_600_000).contains(&once));
    let before = (once / 1_000) as i64;
    let second = |until: i64| pauses(&[first, (1_000, Some(until), 600)]);
    assert_eq!(due(&record, &policy, &second(before), at(9_000)), once, "over before it was due");
    let twice = due(&record, &policy, &second(before + 1), at(9_000));
    assert!(twice > once && twice <= (before as u64 + 601) * 1_000, "{twice}");
}

/// An open pause must not postpone retries that an earlier pause spread out. Otherwise, each check of a message would
/// postpone its retry again.
#[test]
fn an_open_pause_does_not_move_returning_events() {
    let policy = waits(10, 3_600);
    let both = pauses(&[(5, Some(9_000), 14 * DAY), (12_000, None, 0)]);
    for id in 0..100 {
        let record = Record { message_id: format!("m-{id}"), ..received_at(1) };
        let drawn = due(&record, &policy, &both, at(9_060));
        assert_eq!(drawn, due(&record, &policy, &both, at(13_000)));
        assert_eq!(drawn, due(&record, &policy, &both, at(12 * DAY)));
    }
}

/// The last retry is due a minute before the event reaches `MAX_AGE`, which does not count paused time.
#[test]
fn a_spread_ends_in_time_for_the_last_retry() {
    let policy = waits(10, 3_600);
    let closed = pauses(&[(5, Some(9_000), 14 * DAY)]);
    let last = 9_000 + SEEN_AGAIN + (3_600 - 5) - 60;
    let draws: Vec<u64> = (0..1_000)
        .map(|id| {
            let record = Record { message_id: format!("m-{id}"), ..received_at(1) };
            due(&record, &policy, &closed, at(9_000 + LATEST_READ)) / 1_000
        })
        .collect();
    assert!(draws.iter().all(|due| (9_000..=last).contains(due)), "{:?} of {last}", draws.iter().max());
    assert!(
        draws.iter().any(|due| *due > last - 60) && draws.iter().any(|due| *due < 9_060),
        "all of it is used"
    );
    let mean = draws.iter().sum::<u64>() / 1_000;
    assert!(mean.abs_diff((9_000 + last) / 2) < 200, "evenly, not at its end: {mean}");
}

struct Life {
    end: Seen,
    ended: Timestamp,
    receives: u32,
}

/// Start, actual end and planned end of a pause, in seconds after the first failure.
type Span = (i64, i64, Option<i64>);

struct Paused<'a> {
    spans: &'a [Span],
    spread: u64,
}

impl Paused<'_> {
    /// The pauses document at `now`, with the pauses that have begun.
    fn known(&self, now: Timestamp) -> Pauses {
        let second = now.as_secs().cast_signed() - T0.as_secs().cast_signed();
        let begun = self.spans.iter().filter(|(from, ..)| *from <= second);
        let end = |until, planned| if until <= second { Some(until) } else { planned };
        let pause = |&(from, until, planned): &Span| (from, end(until, planned), self.spread);
        pauses(&begun.map(pause).collect::<Vec<_>>())
    }
}

/// Simulates a message until it is no longer deferred or held.
///
/// The handler notices changes to the pauses `lag` seconds late, and receives the message `latency` milliseconds
/// late.
fn live(policy: &Policy, paused: &Paused<'_>, lag: u64, latency: u64) -> Life {
    let policies = Policies::from(policy.clone());
    let mut record = Record { receive_count: 1, ..received_at(1) };
    let mut now = at(1);
    loop {
        let document = paused.known(Timestamp::from_millis(now.as_millis() - lag * 1_000));
        let action = decide(&record, &policies, &document, now);
        match action {
            Action::Defer { visibility_timeout: hidden, .. }
            | Action::Hold { visibility_timeout: hidden, .. } => {
                now = after(now.saturating_add(hidden), latency);
                record.receive_count += 1;
            }
            _ => return Life { end: seen(&action), ended: now, receives: record.receive_count },
        }
    }
}

fn at_signed(seconds: i64) -> Timestamp {
    Timestamp::from_secs(T0.as_secs().checked_add_signed(seconds).expect("a time"))
}

/// Generates the number of seconds between a pause's actual end and its planned end, or `None` for a pause without a
/// planned end. About half of the numbers are below [`LATEST_READ`].
fn planned_too_long() -> impl Strategy<Value = Option<i64>> {
    prop::option::of(prop_oneof![0..LATEST_READ.cast_signed(), 0..50_000i64])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// An event that would be retried without pauses is also retried with pauses.
    #[test]
    fn no_pause_costs_an_event_its_retry(
        max_age in prop_oneof![60..120u64, 60..7_200u64, 7_200..DAY],
        backoff in prop_oneof![1..60u64, 1..43_170u64],
        jitter in proptest::sample::select(Jitter::ALL.to_vec()),
        begin in prop_oneof![Just(0i64), -3_000..0i64],
        gaps in prop::collection::vec((0..4_000i64, 1..20_000i64, planned_too_long()), 0..5),
        spread in prop_oneof![Just(0), 0..4_000u64, 0..14 * DAY],
        lag in 0..=LATEST_READ,
        latency in 0..500u64,
    ) {
        let policy = policy(|settings| {
            (settings.base_backoff, settings.max_backoff, settings.jitter) = (backoff, backoff, jitter);
            (settings.max_age, settings.maximum_concurrency) = (max_age, 160);
        });
        let mut spans: Vec<Span> = Vec::new();
        for (gap, length, too_long) in gaps {
            let from = spans.last().map_or(begin, |(_, until, _)| *until) + gap;
            spans.push((from, from + length, too_long.map(|too_long| from + length + too_long)));
        }
        let Life { end, ended, receives } = live(&policy, &Paused { spans: &spans, spread }, lag, latency);
        prop_assert_eq!(end, Seen::Reinvoke(1), "after {}", ended);
        let paused = spans.iter().any(|&(from, until, _)| at_signed(from + lag.cast_signed()) <= ended && ended < at_signed(until));
        prop_assert!(!paused, "re-invoked at {}, in one of {:?}", ended, spans);
        prop_assert!(receives <= 20 + 5 * 20_000 / 1_344, "{} receives", receives);
        if let Some(&(_, until, _)) = spans.last() {
            let latest = until + (spread.max(HOLD.as_secs()) + backoff + lag + 60).cast_signed();
            prop_assert!(ended <= at_signed(latest).max(at(backoff + 60)), "{} is late", ended);
        }
    }
}

/// A handler environment that has not noticed the early end hides the message until after the planned end.
#[test]
fn ending_a_pause_early_costs_no_retry() {
    let spans = [(-603, 13_539, None), (13_782, 14_868, Some(14_911)), (16_286, 16_287, None)];
    let policy = policy(|settings| {
        (settings.base_backoff, settings.max_backoff, settings.jitter) = (1, 1, Jitter::Full);
        (settings.max_age, settings.maximum_concurrency) = (60, 160);
    });
    let Life { end, ended, .. } = live(&policy, &Paused { spans: &spans, spread: 1_447 }, 47, 334);
    assert_eq!(end, Seen::Reinvoke(1), "after {ended}");
}

#[test]
fn a_13_day_pause_stays_below_sqs_receive_limit() {
    for (max_age, backoff) in [(60, 1), (DAY, 1), (14 * DAY, 43_170), (60, 43_170)] {
        let paused = Paused { spans: &[(0, 13 * 86_400, None)], spread: 1_800 };
        let Life { end, receives, .. } = live(&waits(backoff, max_age), &paused, LATEST_READ, 500);
        assert_eq!(end, Seen::Reinvoke(1), "{max_age}");
        assert!(receives < 900, "{receives} receives");
    }
}
