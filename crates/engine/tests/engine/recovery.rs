//! What follows from a function's minutes: when an environment reads them, and what it does with them.

use std::time::Duration;

use comeback_engine::{
    CallFailure, Early, EarlyBecause, Environment, Health, Jitter, MetricMinute, MinutesRead, Policies,
    Policy, Record, RecoveryMode, Step, Timestamp,
};

use crate::fakes::{Call, Invoke, World, failure};
use crate::support::{ORDERS, T0, after, body, enveloped, policy, received_again, replaced};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 3_600;

fn at(seconds: u64) -> Timestamp {
    after(T0, 1_000 * seconds)
}

/// Down from [`T0`] on for 3 hours, with 100 attempts a minute; then with 20, of which `failing` fail.
fn minutes(until: Timestamp, failing: u32) -> Vec<MetricMinute> {
    let first = T0.as_millis().div_ceil(MINUTE);
    let minute = |number: u64| {
        let (invocations, errors) = if number < first + 180 { (100, 100) } else { (20, failing) };
        MetricMinute { number, invocations, errors }
    };
    (first..until.as_millis() / MINUTE).map(minute).collect()
}

fn knowing<'w>(until: Timestamp) -> World<'w> {
    World { read_minutes: Box::new(move || Ok(minutes(until, 0))), ..World::default() }
}

/// Every backoff takes 2 hours.
fn two_hours() -> Policy {
    policy(|settings| (settings.base_backoff, settings.max_backoff) = (2 * HOUR, 2 * HOUR))
}

/// The next retry has this number; it was received first two hours after [`T0`].
fn record(retry: u64) -> Record {
    let body = if retry == 1 { body("7") } else { body(&enveloped(retry - 1, "7")) };
    Record { sent: at(2 * HOUR), first_receive: at(2 * HOUR), ..received_again(body) }
}

fn environment(policy: &Policy, mode: RecoveryMode) -> Environment {
    Environment::new(Policies::from(policy.clone())).recovering(mode)
}

/// The step at this second, and what moved the retry forward.
fn step(record: &Record, policy: &Policy, mode: RecoveryMode, seconds: u64) -> (Step, Option<Early>) {
    let world = knowing(at(seconds));
    let report =
        world.handle_in(&mut environment(policy, mode), std::slice::from_ref(record), at(seconds), 99);
    let outcome = &report.outcomes[0];
    (outcome.step.clone().expect("it was decided"), outcome.early.clone())
}

/// The due time in seconds.
fn due(step: &Step) -> u64 {
    match step {
        Step::Defer { due, .. } | Step::Reinvoke { due } => due.since(T0).as_secs(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wait_is_over_sooner_once_its_function_has_recovered() {
    let (policy, record) = (two_hours(), record(3));
    let (down, early) = step(&record, &policy, RecoveryMode::On, 3 * HOUR);
    assert_eq!((due(&down), early), (4 * HOUR, None), "in real time while it is down");
    let Step::Defer { visibility_timeout, .. } = down else { panic!("{down:?}") };
    assert_eq!(visibility_timeout.as_secs(), 300, "it is looked at every five minutes");
    let (later, early) = step(&record, &policy, RecoveryMode::On, 3 * HOUR + 900);
    assert!(matches!(later, Step::Reinvoke { .. }) && due(&later) < 3 * HOUR + 900, "{later:?}");
    let speed = 100 * 2 * HOUR / (due(&later) - 2 * HOUR);
    let Some(Early { because: EarlyBecause::Recovered { speed: said }, otherwise_due }) = early else {
        panic!("{early:?}")
    };
    assert_eq!((otherwise_due, said), (at(4 * HOUR), speed), "its whole wait");
}

#[test]
fn a_function_is_not_well_before_its_minutes_have_settled_or_while_it_fails() {
    let (policy, record) = (two_hours(), record(3));
    for seconds in [3 * HOUR + 60, 3 * HOUR + 180] {
        assert_eq!(step(&record, &policy, RecoveryMode::On, seconds).1, None, "after {seconds} s");
    }
    let now = at(3 * HOUR + 900);
    for (failing, early) in [(2, true), (3, false), (10, false)] {
        let world = World { read_minutes: Box::new(move || Ok(minutes(now, failing))), ..World::default() };
        let mut environment = environment(&policy, RecoveryMode::On);
        let report = world.handle_in(&mut environment, std::slice::from_ref(&record), now, 99);
        assert_eq!(report.outcomes[0].early.is_some(), early, "{failing} of 20 fail");
    }
}

#[test]
fn watching_and_off_change_nothing() {
    let (policy, record) = (two_hours(), record(3));
    for seconds in [3 * HOUR, 3 * HOUR + 900, 5 * HOUR] {
        let off = step(&record, &policy, RecoveryMode::Off, seconds);
        assert_eq!(step(&record, &policy, RecoveryMode::Watch, seconds), off);
        let whole = 4 * HOUR - seconds.min(4 * HOUR);
        let hidden =
            if let Step::Defer { visibility_timeout, .. } = off.0 { visibility_timeout.as_secs() } else { 0 };
        assert_eq!((hidden, off.1), (whole, None));
    }
}

#[test]
fn waits_that_nobody_drew_and_the_second_half_of_the_retries_are_left_alone() {
    let late = 3 * HOUR + 900;
    let asked = Record {
        body: replaced(
            &replaced(&record(3).body, "Timeout", "RetryAfter"),
            "too slow",
            &(4 * HOUR).to_string(),
        ),
        ..record(3)
    };
    let ten = policy(|settings| {
        (settings.base_backoff, settings.max_backoff, settings.max_retries) = (2 * HOUR, 2 * HOUR, 10);
    });
    for (record, policy) in [(&asked, &two_hours()), (&record(6), &ten)] {
        let (on, off) =
            (step(record, policy, RecoveryMode::On, late), step(record, policy, RecoveryMode::Off, late));
        assert_eq!(on, off);
    }
    assert!(matches!(step(&record(5), &ten, RecoveryMode::On, late).0, Step::Reinvoke { .. }));
}

fn reads(world: &World<'_>) -> usize {
    world.calls.borrow().iter().filter(|call| matches!(call, Call::ReadMinutes(_))).count()
}

#[test]
fn minutes_are_read_for_what_failed_more_than_twice_and_once_a_minute() {
    let (policy, now) = (two_hours(), at(3 * HOUR));
    let world = knowing(now);
    let mut environment = environment(&policy, RecoveryMode::Watch);
    for (retry, seconds, expected) in [(2, 0, 0), (3, 0, 1), (3, 59, 1), (3, 75, 2)] {
        let records = [record(retry), Record { message_id: "m-2".into(), ..record(retry) }];
        world.handle_in(&mut environment, &records, after(now, 1_000 * seconds), 99);
        assert_eq!(reads(&world), expected, "retry {retry} after {seconds} s");
    }
    let others = policy.clone();
    let mut elsewhere = self::environment(&others, RecoveryMode::On);
    let foreign = Record { body: record(3).body.replace(":function:orders", ":function:other"), ..record(3) };
    world.handle_in(&mut elsewhere, &[foreign], now, 99);
    assert_eq!(reads(&world), 2, "a function off the list is not read");
}

#[test]
fn a_failed_read_is_reported_once_and_leaves_what_was_known() {
    let (policy, record) = (two_hours(), record(3));
    let until = at(3 * HOUR + 900);
    let fails = std::cell::Cell::new(false);
    let read = || if fails.get() { Err(failure()) } else { Ok(minutes(until, 0)) };
    let world = World { read_minutes: Box::new(read), ..World::default() };
    let mut environment = environment(&policy, RecoveryMode::On);
    let mut reported = |now: Timestamp| {
        let report = world.handle_in(&mut environment, std::slice::from_ref(&record), now, 99);
        assert!(matches!(report.outcomes[0].step, Some(Step::Reinvoke { .. })));
        report.minutes
    };
    let first = reported(until);
    let [MinutesRead::Changed { health: Health::Recovering { since, .. }, .. }] = first[..] else {
        panic!("{first:?}")
    };
    assert_eq!(since.as_secs(), at(3 * HOUR).as_secs().div_ceil(60) * 60, "the end of the last down minute");
    fails.set(true);
    assert!(matches!(reported(after(until, 80_000))[..], [MinutesRead::Failed { .. }]));
    assert_eq!(reported(after(until, 160_000)), [], "once");
}

#[test]
fn late_minutes_are_reported_once_and_an_event_that_never_ran_shows_none() {
    let failed = Record { body: record(3).body.replace("2026-09-14", "2027-09-14"), ..record(3) };
    let throttled = Record { body: replaced(&failed.body, "errorType", "none"), ..failed.clone() };
    let reported = |record: &Record, known: Vec<MetricMinute>| {
        let world = World { read_minutes: Box::new(move || Ok(known.clone())), ..World::default() };
        let mut environment = environment(&two_hours(), RecoveryMode::Watch);
        [0, 80].map(|seconds| {
            let now = at(3 * HOUR + seconds);
            world.handle_in(&mut environment, std::slice::from_ref(record), now, 99).minutes
        })
    };
    let late = minutes(at(2 * HOUR - 960), 0);
    let [first, second] = reported(&failed, late.clone());
    let [MinutesRead::Failed { problem, .. }, MinutesRead::Changed { health: Health::Unknown { .. }, .. }] =
        &first[..]
    else {
        panic!("{first:?}")
    };
    assert!(problem.cause.contains(" has no data after ") && second.is_empty(), "{problem:?}, {second:?}");
    let none = reported(&failed, Vec::new());
    assert!(matches!(none[0][..], [MinutesRead::Failed { .. }]), "there are none: {none:?}");
    let in_time = minutes(at(2 * HOUR - 840), 0);
    for known in [reported(&failed, in_time), reported(&throttled, late)] {
        let failed = known.iter().flatten().any(|read| matches!(read, MinutesRead::Failed { .. }));
        assert!(!failed, "{known:?}");
    }
}

#[test]
fn a_contradiction_and_a_failure_are_as_if_nothing_were_known() {
    let (policy, record, now) = (two_hours(), record(3), at(3 * HOUR + 900));
    let contradiction = vec![MetricMinute { number: 1, invocations: 1, errors: 2 }];
    let late = CallFailure { cause: "late".into(), remedy: None };
    for answer in [Ok(contradiction), Err(late), Ok(Vec::new())] {
        let world = World { read_minutes: Box::new(move || answer.clone()), ..World::default() };
        let mut environment = environment(&policy, RecoveryMode::On);
        let report = world.handle_in(&mut environment, std::slice::from_ref(&record), now, 99);
        let Some(Step::Defer { visibility_timeout, .. }) = report.outcomes[0].step else {
            panic!("{report:?}")
        };
        assert_eq!(visibility_timeout, Duration::from_secs(HOUR - 900));
    }
}

#[test]
fn no_look_is_past_the_end_of_the_wait() {
    let now = at(4 * HOUR - 90);
    let first = T0.as_millis().div_ceil(MINUTE);
    let down = (first..now.as_millis() / MINUTE)
        .map(|number| MetricMinute { number, invocations: 100, errors: 100 })
        .collect::<Vec<_>>();
    let world = World { read_minutes: Box::new(move || Ok(down.clone())), ..World::default() };
    let mut environment = environment(&two_hours(), RecoveryMode::On);
    let report = world.handle_in(&mut environment, &[record(3)], now, 99);
    let Some(Step::Defer { visibility_timeout, .. }) = report.outcomes[0].step else { panic!("{report:?}") };
    assert_eq!(visibility_timeout, Duration::from_secs(90));
}

/// The function stays down. From any moment on every hiding is refused, until the event is given up.
#[test]
fn no_refusals_make_a_thousand_receives_of_looks() {
    let policy = policy(|settings| {
        (settings.base_backoff, settings.max_backoff, settings.jitter) = (43_170, 43_170, Jitter::None);
        (settings.max_age, settings.longest_hide) = (14 * 24 * HOUR, 1_344);
    });
    let down = |now: Timestamp| {
        let newest = now.as_millis() / MINUTE;
        let minute = |number| MetricMinute { number, invocations: 100, errors: 100 };
        World {
            read_minutes: Box::new(move || Ok((newest - 1_440..newest).map(minute).collect())),
            ..World::default()
        }
    };
    for refused_from in [0, 600, 2 * HOUR, 3 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR] {
        let (mut waited, mut receives) = (0, 1);
        let mut looks = environment(&policy, RecoveryMode::On);
        while waited < 12 * HOUR {
            let message = Record { receive_count: receives, sent: at(0), first_receive: at(0), ..record(3) };
            let (world, messages) = (down(at(waited)), [message]);
            let report = world.handle_in(&mut looks, &messages, at(waited), 99);
            let Some(Step::Defer { visibility_timeout, .. }) = report.outcomes[0].step else { break };
            waited += if waited < refused_from { visibility_timeout.as_secs() } else { 1_230 };
            receives += 1;
        }
        let given_up = (13 * 24 + 12) * HOUR;
        let most = u64::from(receives) + (given_up - waited) / 1_230;
        assert!(most < 1_000, "{most} receives, if no hiding works after {refused_from} s");
    }
}

const PAUSE: &str = r#"{"v":1,"pauses":[{"target":"ORDERS","from":FROM,"until":UNTIL,"spread":36000}]}"#;

/// Paused from 2 h 50 min to 3 h 20 min after [`T0`], and then spread over 10 hours.
fn paused() -> String {
    let [from, until] = [2 * HOUR + 3_000, 3 * HOUR + 1_200].map(|second| at(second).as_secs().to_string());
    PAUSE.replace("ORDERS", ORDERS).replace("FROM", &from).replace("UNTIL", &until)
}

#[test]
fn a_recovery_moves_no_retry_into_a_pause_that_it_would_have_missed() {
    let (policy, now) = (two_hours(), at(3 * HOUR + 1_500));
    let stepped = |mode| {
        let world = World { read_pauses: Box::new(|| Ok(Some(paused()))), ..knowing(now) };
        let mut environment = environment(&policy, mode).reading_pauses();
        let report = world.handle_in(&mut environment, &[record(3)], now, 99);
        (due(report.outcomes[0].step.as_ref().unwrap()), report.outcomes[0].early.clone())
    };
    assert_eq!(stepped(RecoveryMode::Off), (4 * HOUR, None), "after the pause");
    assert_eq!(stepped(RecoveryMode::On), (4 * HOUR, None));
}

#[test]
fn a_look_that_finds_another_due_time_has_its_line() {
    let (policy, asked) = (two_hours(), 3 * HOUR - 200);
    let order = format!(
        r#"{{"v":1,"pauses":[],"retries":[{{"target":"*","at":{},"within":600}}]}}"#,
        at(asked).as_secs()
    );
    let looked = |ordered: bool, seconds: u64| {
        let text = if ordered { order.clone() } else { r#"{"v":1,"pauses":[]}"#.into() };
        let world = World { read_pauses: Box::new(move || Ok(Some(text.clone()))), ..knowing(at(seconds)) };
        let mut environment = environment(&policy, RecoveryMode::On).reading_pauses();
        let report = world.handle_in(&mut environment, &[record(3)], at(seconds), 99);
        report.outcomes[0].goes_on
    };
    assert!(looked(false, asked + 60), "nothing is new");
    assert!(!looked(true, asked + 60), "an order moved it");
}

#[test]
fn looks_are_no_failures_of_the_step_that_follows_them() {
    let policy = two_hours();
    let hidden = |mode, receive_count| {
        let record = Record { receive_count, ..record(3) };
        let world = World { invoke: Box::new(|| Invoke::Later), ..knowing(at(4 * HOUR)) };
        let report = world.handle_in(&mut environment(&policy, mode), &[record], at(4 * HOUR), 99);
        report.outcomes[0].hidden_for.expect("it was refused").as_secs()
    };
    let longest = |mode, receives: u32| (0..20_u32).map(|more| hidden(mode, receives + more)).max().unwrap();
    assert!(longest(RecoveryMode::Off, 20) > 1_000);
    assert!(hidden(RecoveryMode::On, 20) <= 4, "as on its second receive");
    assert!(longest(RecoveryMode::On, 60) > 1_000, "the others failed");
}

#[test]
fn a_watched_retry_says_when_it_would_have_come() {
    let (policy, now) = (two_hours(), at(4 * HOUR + 60));
    let sooner = |mode| {
        let records = [record(3)];
        let world = knowing(now);
        let report = world.handle_in(&mut environment(&policy, mode), &records, now, 99);
        assert_eq!(report.outcomes[0].early.is_some(), mode == RecoveryMode::On);
        report.outcomes[0].sooner
    };
    assert_eq!((sooner(RecoveryMode::Off), sooner(RecoveryMode::On)), (None, None));
    let would = sooner(RecoveryMode::Watch).expect("it had recovered");
    assert!((at(3 * HOUR)..at(3 * HOUR + 900)).contains(&would), "{would}");
}

#[test]
fn a_minute_that_is_still_being_counted_contradicts_nothing() {
    let (policy, now) = (two_hours(), at(3 * HOUR + 900));
    let counting = |ago: u64| {
        let number = now.as_millis() / MINUTE - ago;
        let mut known = minutes(now, 0);
        known.retain(|minute| minute.number < number);
        known.push(MetricMinute { number, invocations: 5, errors: 7 });
        let world = World { read_minutes: Box::new(move || Ok(known.clone())), ..World::default() };
        let report = world.handle_in(&mut environment(&policy, RecoveryMode::On), &[record(3)], now, 99);
        matches!(report.outcomes[0].step, Some(Step::Reinvoke { .. }))
    };
    assert_eq!([1, 2, 3].map(counting), [true, true, false]);
}
