//! Whole runs: what must hold of every one, and what some show.

use std::time::Duration;

use comeback_engine::{HideUpTo, Jitter, Outcome, Policy, Settings, Step, Style};
use comeback_timelapse::{
    ApiCall, EventNumber, Fault, Faults, OperatorPause, Percentiles, RunError, Scenario, Strikes, Summary,
    TARGET_ARN, Trace, Watcher, run,
};
use proptest::prelude::*;

const fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3_600)
}

fn policy(settings: Settings) -> Policy {
    Policy::new(Settings { target_functions: vec![TARGET_ARN.into()], ..settings }).expect("a valid policy")
}

fn summary(scenario: &Scenario, settings: Settings) -> Summary {
    run(scenario, &policy(settings), &mut ()).expect("a valid scenario")
}

fn given_up(summary: &Summary) -> usize {
    summary.dead_lettered.values().sum()
}

/// A small scenario with a bit of everything.
fn busy() -> Scenario {
    Scenario {
        events: 40,
        failure_rate: 0.3,
        outage: hours(1),
        arrival_spread: hours(2),
        ..Scenario::default()
    }
}

#[test]
fn an_outage_of_three_hours_loses_nothing() {
    let summary = summary(&Scenario { events: 200, ..Scenario::default() }, Settings::default());
    assert_eq!((summary.delivered, given_up(&summary), summary.waiting), (200, 0, 0));
    assert_eq!(summary.peak_in_flight, 200, "at the outage's end every event is hidden");
    let attempts = summary.attempts.unwrap();
    assert!((12..=16).contains(&attempts.p50), "{attempts:?}: ceilings double, so 3 h are about 14 retries");
    let recovery = summary.recovery_delay_ms.unwrap();
    assert!(recovery.max < 43_170_000, "no wait is over its cap: {recovery:?}");
}

#[test]
fn nothing_fails_without_an_outage() {
    let scenario = Scenario { outage: Duration::ZERO, ..Scenario::default() };
    let summary = summary(&scenario, Settings::default());
    assert_eq!((summary.delivered, summary.retries), (1_000, 0));
    assert_eq!(summary.attempts, Some(Percentiles { p50: 0, p99: 0, max: 0 }));
    assert_eq!(summary.recovery_delay_ms, None);
    assert_eq!(summary.api_calls.of(ApiCall::ReceiveMessage), 24 * 60 * 15, "an idle queue is still polled");
    assert_eq!(summary.api_calls.of(ApiCall::InvokeHandler), 0);
}

#[test]
fn every_limit_gives_its_reason() {
    let only = |settings| summary(&busy(), settings).dead_lettered.into_keys().collect::<Vec<_>>();
    assert_eq!(only(Settings { max_retries: 3, ..Settings::default() }), ["max_retries"]);
    assert_eq!(only(Settings { max_age: 600, ..Settings::default() }), ["max_age"]);
    let globs = vec!["*Down".into()];
    assert_eq!(
        only(Settings { non_retryable_errors: globs, ..Settings::default() }),
        ["non_retryable_error"]
    );
}

#[test]
fn a_target_that_says_when_is_left_alone_until_then() {
    let outage = Scenario { events: 200, arrival_spread: hours(1), ..Scenario::default() };
    let asking = Scenario { retry_after: Some(hours(3)), ..outage.clone() };
    let asked = summary(&asking, Settings::default());
    assert_eq!((asked.delivered, given_up(&asked), asked.retries), (200, 0, 200), "one retry each");
    let drawn = summary(&outage, Settings::default());
    let off = summary(&asking, Settings { directives: false, ..Settings::default() });
    assert_eq!((off.retries, drawn.delivered), (drawn.retries, 200), "as if it had said nothing");
    let (asked, drawn) = (asked.recovery_delay_ms.unwrap(), drawn.recovery_delay_ms.unwrap());
    // The last of them fail an hour after the start, and come back three hours and 18 minutes later.
    assert!(asked.max < 78 * 60_000 && asked.max < drawn.max, "{asked:?} {drawn:?}");
}

#[test]
fn no_jitter_makes_retries_as_regular_as_the_formula() {
    let scenario = Scenario { events: 1, arrival_spread: Duration::ZERO, ..Scenario::default() };
    let summary = summary(&scenario, Settings { jitter: Jitter::None, ..Settings::default() });
    // 1 + 2 + … + 8192 s is the first sum over 3 h (2¹⁴ - 1 s), so the 14th retry is the last.
    assert_eq!((summary.delivered, summary.retries), (1, 14));
    let overhead = summary.recovery_delay_ms.unwrap().max - (16_383 - 10_800) * 1_000;
    // Each of the 15 runs takes 200 ms and each of the 28 batches 20 ms + 100 ms; a re-invocation
    // comes at the end of its batch, a deferral's timeout starts at the end of its own.
    assert_eq!(overhead, 15 * 200 + 28 * 120);
}

#[test]
fn sqs_accepts_every_call_of_the_handler() {
    struct NoProblem;
    impl Watcher for NoProblem {
        fn decided(&mut self, _: Duration, event: EventNumber, outcome: &Outcome<'_>) {
            assert!(outcome.problem.is_none(), "event {event}: {outcome:?}");
            assert!(outcome.step.is_some());
        }
    }
    run(&busy(), &policy(Settings::default()), &mut NoProblem).unwrap();
}

#[test]
fn the_longest_deferral_is_one_sqs_accepts() {
    struct Longest(u64);
    impl Watcher for Longest {
        fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
            assert!(outcome.problem.is_none(), "{outcome:?}");
            self.0 = self.0.max(outcome.visibility_timeout().unwrap_or_default().as_secs());
        }
    }
    let settings =
        Settings { base_backoff: 43_170, jitter: Jitter::None, max_age: 14 * 86_400, ..Settings::default() };
    let slow = Duration::from_secs(20);
    let scenario = Scenario {
        events: 5,
        duration: hours(96),
        outage: hours(48),
        handler_run_time: slow,
        ..Scenario::default()
    };
    let mut longest = Longest(0);
    let summary = run(&scenario, &policy(settings), &mut longest).unwrap();
    assert_eq!((summary.delivered, longest.0), (5, 43_170));
}

/// A handler this slow makes no call: its deadline comes 7 s before its timeout.
const LATE: Duration = Duration::from_secs(58);

#[test]
fn a_handler_past_its_deadline_does_nothing_and_loses_nothing() {
    let late = Scenario { handler_run_time: LATE, events: 5, ..Scenario::default() };
    let summary = summary(&late, Settings::default());
    assert_eq!((summary.waiting, summary.retries), (5, 0));
    assert_eq!(summary.api_calls.of(ApiCall::ChangeMessageVisibilityBatch), 0);
    assert!(summary.api_calls.of(ApiCall::InvokeHandler) > 5, "messages come back after the queue's timeout");
}

/// 1,000 receives, one every 1,230 s, take 14 days and 5 hours.
#[test]
fn sqs_moves_no_message_before_its_retention_ends() {
    let late =
        Scenario { handler_run_time: LATE, events: 3, duration: hours(15 * 24), ..Scenario::default() };
    let summary = summary(&late, Settings::default());
    assert_eq!(summary.dead_lettered, [("expired", 3)].into());
}

#[test]
fn a_stalled_queue_gives_events_up_before_sqs_deletes_them() {
    // One message in flight at a time, each for 12 hours.
    let settings =
        Settings { base_backoff: 43_170, jitter: Jitter::None, max_age: 14 * 86_400, ..Settings::default() };
    let summary = summary(&Scenario { in_flight_limit: 1, ..two_weeks() }, settings);
    assert_eq!(summary.peak_in_flight, 1);
    // The wait of one is cut, so that it has a last retry before its message is given up.
    assert_eq!((summary.dead_lettered, summary.delivered), ([("max_age", 39)].into(), 1));
}

#[test]
fn events_that_sqs_deletes_are_said_to_have_expired() {
    // With one message in flight at a time, none has its 1,000 receives before its 14 days end.
    let scenario = Scenario { in_flight_limit: 1, handler_run_time: LATE, ..two_weeks() };
    let summary = summary(&scenario, Settings::default());
    assert_eq!(summary.dead_lettered, [("expired", 40)].into());
}

fn two_weeks() -> Scenario {
    Scenario { events: 40, arrival_spread: hours(1), duration: hours(15 * 24), ..Scenario::default() }
}

#[test]
fn the_in_flight_limit_stalls_retries_and_loses_nothing() {
    let scenario = Scenario { events: 200, ..Scenario::default() };
    let free = summary(&scenario, Settings::default());
    let limited = summary(&Scenario { in_flight_limit: 20, ..scenario }, Settings::default());
    assert_eq!(limited.peak_in_flight, 20);
    assert_eq!(limited.delivered + limited.waiting, 200);
    assert!(limited.retries < free.retries / 2, "{} of {}", limited.retries, free.retries);
}

#[test]
fn too_few_pollers_show_as_visible_messages_not_as_messages_in_flight() {
    let scenario = Scenario { events: 500, ..Scenario::default() };
    let slow = Duration::from_secs(28);
    let slow = Scenario { handler_run_time: slow, ..scenario.clone() };
    let free = summary(&scenario, Settings::default());
    let few = summary(&slow, Settings { maximum_concurrency: 2, ..Settings::default() });
    assert!(few.peak_in_flight < free.peak_in_flight, "{} in flight", few.peak_in_flight);
    assert!(few.peak_visible > 10 * free.peak_visible, "{} and {}", few.peak_visible, free.peak_visible);
}

#[test]
fn every_minute_says_how_deep_the_queue_was() {
    let spread = hours(1);
    let scenario = Scenario { events: 200, arrival_spread: spread, ..Scenario::default() };
    let free = summary(&scenario, Settings::default());
    let depths = |summary: &Summary| -> Vec<u32> { summary.minutes.iter().map(|m| m.in_flight).collect() };
    assert_eq!(depths(&free).iter().copied().max(), Some(free.peak_in_flight as u32));
    // Everything that has arrived is hidden until the outage ends.
    assert!(depths(&free)[60..180].iter().all(|&depth| depth == 200), "{:?}", depths(&free));
    assert!((90..110).contains(&depths(&free)[30]), "half of them have arrived");
    assert_eq!(depths(&free).last(), Some(&0));
    // One event without jitter: nothing happens from its retry at 8,191 s to that at 16,383 s.
    let one = Scenario { events: 1, arrival_spread: Duration::ZERO, ..Scenario::default() };
    let quiet = summary(&one, Settings { jitter: Jitter::None, ..Settings::default() });
    assert!(depths(&quiet)[140..270].iter().all(|&depth| depth == 1), "{:?}", depths(&quiet));
    let limited = summary(&Scenario { in_flight_limit: 20, ..scenario }, Settings::default());
    let waiting = limited.minutes[60];
    assert_eq!(waiting.in_flight, 20);
    assert!((180..=185).contains(&waiting.visible), "the others are not received: {waiting:?}");
}

#[test]
fn delays_are_those_of_the_events_that_the_outage_hit() {
    let summary = summary(&Scenario { duration: hours(4), ..busy() }, Settings::default());
    let delays = &summary.recovery_delays_ms;
    assert!((15..25).contains(&summary.events_hit), "half arrive during the outage: {}", summary.events_hit);
    assert!(delays.len() < summary.events_hit && delays.is_sorted(), "some are still waiting: {delays:?}");
    assert_eq!(Percentiles::of(delays.clone()), summary.recovery_delay_ms);
}

#[test]
fn fewer_batches_at_once_and_smaller_ones_cost_time_and_calls() {
    let burst = Scenario {
        events: 100,
        arrival_spread: Duration::ZERO,
        handler_run_time: Duration::from_secs(5),
        ..Scenario::default()
    };
    let settings =
        |maximum_concurrency| Settings { jitter: Jitter::None, maximum_concurrency, ..Settings::default() };
    let wide = summary(&burst, settings(50));
    let narrow = summary(&burst, settings(2));
    let single = summary(&Scenario { batch_size: 1, ..burst }, settings(50));
    let last = |summary: &Summary| summary.recovery_delay_ms.unwrap().max;
    assert!(last(&narrow) > last(&wide) + 20_000, "{} and {}", last(&narrow), last(&wide));
    let calls = |summary: &Summary| summary.api_calls.of(ApiCall::ChangeMessageVisibilityBatch);
    assert_eq!(calls(&wide) * 10, calls(&single), "ten first receives cost one call");
}

#[test]
fn calls_are_those_that_the_events_need() {
    let summary = summary(&busy(), Settings { max_retries: 5, ..Settings::default() });
    let calls = |operation| summary.api_calls.of(operation);
    let given_up = given_up(&summary) as u64;
    assert!(given_up > 0 && summary.delivered > 0);
    assert_eq!(calls(ApiCall::InvokeTarget), summary.retries);
    // Each invocation, first ones and retries, ends in a delivery or in a record.
    assert_eq!(calls(ApiCall::SendMessage) + summary.delivered as u64, summary.retries + 40);
    assert!(calls(ApiCall::SendMessageBatch) <= given_up);
    assert!(calls(ApiCall::DeleteMessageBatch) <= summary.retries + given_up);
    let minutes = |count: fn(&comeback_timelapse::Minute) -> u32| {
        summary.minutes.iter().map(|minute| u64::from(count(minute))).sum::<u64>()
    };
    assert_eq!(minutes(|minute| minute.retries), summary.retries);
    assert_eq!(minutes(|minute| minute.delivered), summary.delivered as u64);
    assert_eq!(minutes(|minute| minute.dead_lettered), given_up);
    let events_of: Vec<usize> = summary.events_by_attempts.clone();
    assert_eq!(
        (events_of.iter().sum::<usize>(), events_of.len() as u64 - 1),
        (40, summary.attempts.unwrap().max)
    );
    let attempts: usize = events_of.iter().enumerate().map(|(attempts, events)| attempts * events).sum();
    assert_eq!(attempts as u64, summary.retries);
}

#[test]
fn the_seed_decides_everything() {
    let traced = |seed| {
        let mut trace = Trace::default();
        let summary = run(&Scenario { seed, ..busy() }, &policy(Settings::default()), &mut trace).unwrap();
        (serde_json::to_string(&summary).unwrap(), trace.text().to_owned())
    };
    assert_eq!(traced(1), traced(1));
    assert_ne!(traced(1).1, traced(2).1);
}

#[test]
fn refused_scenarios_say_all_that_is_wrong() {
    let scenario = Scenario {
        events: 0,
        failure_rate: f64::NAN,
        handler_run_time: Duration::from_secs(61),
        batch_size: 11,
        faults: Faults::default().with(Fault::ClockSkew, Strikes::always(2.0)),
        ..Scenario::default()
    };
    let error = run(&scenario, &policy(Settings::default()), &mut ()).unwrap_err();
    let RunError::Refused(errors) = error else { panic!("{error}") };
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "events is 0; it must be 1 to 10000000",
            "failure-rate is NaN; it must be 0 to 1",
            "batch-size is 11; it must be 1 to 10",
            "handler-run-time is 61s; it must be at most 60 s, the handler's timeout",
            "fault is clock_skew=2; it must be a rate of 0 to 1, within a window that is not empty",
        ]
    );
}

#[test]
fn pauses_that_make_no_sense_are_refused() {
    let pause = OperatorPause::of_all(hours(1), hours(1), hours(1));
    let later = OperatorPause { at: hours(2), ..pause.clone() };
    let check = |pauses| Scenario { pauses, ..Scenario::default() }.check();
    assert_eq!(check(vec![later.clone(), pause.clone()]), Ok(()), "one after the other");
    for refused in [
        vec![OperatorPause { at: hours(1) + Duration::from_millis(1), ..pause.clone() }],
        vec![OperatorPause { length: Some(Duration::ZERO), ..pause.clone() }],
        vec![OperatorPause { spread: hours(14 * 24 + 1), ..pause.clone() }],
        vec![OperatorPause { length: None, ..pause.clone() }, later],
        vec![pause.clone(), pause],
    ] {
        let errors = check(refused.clone()).unwrap_err();
        assert_eq!(errors.iter().map(|error| error.setting).collect::<Vec<_>>(), ["pauses"], "{refused:?}");
    }
}

/// Counts what the handler says it did, to hold it against what the world saw.
#[derive(Default)]
struct Tally {
    reinvoked: u64,
    dead_lettered: usize,
}

impl Watcher for Tally {
    fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
        match outcome.step {
            Some(Step::Reinvoke { .. }) if outcome.settled() => self.reinvoked += 1,
            Some(Step::DeadLetter { .. }) if outcome.settled() => self.dead_lettered += 1,
            _ => {}
        }
    }
}

fn any_scenario() -> impl Strategy<Value = Scenario> {
    let times = (0..7_200_u64, 0..14_400_u64, 1..100_000_u64, 0..20_000_u64, 0..3_000_u64, 0..27_000_u64);
    let counts = (1..30_usize, 1..=10_usize, 1..80_usize);
    let asked = proptest::option::of((1..20_000_u64).prop_map(Duration::from_secs));
    (any::<u64>(), counts, 0.0..1.0_f64, times, asked).prop_map(
        |(seed, counts, failure_rate, times, asked)| {
            let (events, batch_size, in_flight_limit) = counts;
            let (spread, outage, duration, poll_delay, run_time, handler_run_time) = times;
            Scenario {
                seed,
                events,
                arrival_spread: Duration::from_secs(spread),
                outage: Duration::from_secs(outage),
                failure_rate,
                retry_after: asked,
                payload_size: 0,
                run_time: Duration::from_millis(run_time),
                duration: Duration::from_secs(duration),
                batch_size,
                handler_run_time: Duration::from_millis(handler_run_time),
                poll_delay: Duration::from_millis(poll_delay),
                in_flight_limit,
                faults: Faults::default(),
                pauses: OperatorPause::chaos(seed, Duration::from_secs(duration)),
            }
        },
    )
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let jitter = proptest::sample::select(Jitter::ALL.to_vec());
    let envelope = proptest::sample::select(Style::ALL.to_vec());
    let hide_up_to = prop_oneof![Just(HideUpTo::Always), (0..60_u64).prop_map(HideUpTo::UpTo)];
    let numbers = (60..90_000_u64, 0..12_u64, 1..100_u64, 100..43_171_u64, 2..20_u64);
    (jitter, envelope, hide_up_to, numbers).prop_map(|(jitter, envelope, hide_up_to, numbers)| {
        let (max_age, max_retries, base, max, maximum_concurrency) = numbers;
        Settings {
            hide_up_to,
            maximum_concurrency,
            max_age,
            max_retries,
            base_backoff: base,
            max_backoff: max,
            jitter,
            envelope,
            ..Settings::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_event_is_delivered_given_up_or_waiting(scenario in any_scenario(), settings in any_settings()) {
        let mut tally = Tally::default();
        let max_retries = settings.max_retries;
        let summary = run(&scenario, &policy(settings), &mut tally).unwrap();
        prop_assert_eq!(summary.delivered + given_up(&summary) + summary.waiting + summary.not_arrived, summary.events);
        prop_assert_eq!(summary.retries, tally.reinvoked);
        prop_assert_eq!(given_up(&summary), tally.dead_lettered);
        prop_assert!(summary.peak_in_flight <= scenario.in_flight_limit);
        prop_assert!(summary.attempts.is_none_or(|attempts| attempts.max <= max_retries));
    }
}
