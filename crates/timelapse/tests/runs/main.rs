//! Tests of whole simulated runs, each of which checks every invariant.

mod chaos;
mod figures;
mod moves;
mod pauses;
mod plan;
mod policies;
mod policy_table;
mod queue;
mod retries;
mod schedule;
mod script;
mod writing;

use std::time::Duration;

use comeback_engine::{HideUpTo, Jitter, Outcome, Policies, Policy, Settings, Style, What};
use comeback_timelapse::{
    ApiCall, EventNumber, Fault, Faults, Percentiles, RunError, Scenario, Strikes, Summary, TARGET_ARN,
    Watcher, run,
};
use proptest::prelude::*;

use script::Script;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = hours(1);

const fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3_600)
}

/// Settings under which waits range from one second to the longest time that SQS can hide a message.
fn long_waits() -> Settings {
    Settings { max_retries: 185, base_backoff: 1, max_backoff: 43_170, ..Settings::default() }
}

fn policies(settings: Settings) -> Policies {
    let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..settings };
    Policy::new(settings).expect("a valid policy").into()
}

/// Simulates a scenario with these settings, and returns the summary.
fn watched(scenario: &Scenario, settings: Settings, watcher: &mut impl Watcher) -> Summary {
    run(scenario, &policies(settings), watcher).unwrap_or_else(|error| panic!("{error}"))
}

fn summary(scenario: &Scenario, settings: Settings) -> Summary {
    watched(scenario, settings, &mut ())
}

fn dead_lettered(summary: &Summary) -> usize {
    summary.dead_lettered.values().sum()
}

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
fn every_event_is_back_within_an_hour_of_any_outage() {
    for outage in [HOUR / 4, hours(3), hours(20)] {
        let scenario = Scenario {
            events: 200,
            outage,
            arrival_spread: outage,
            duration: hours(48),
            ..Scenario::default()
        };
        let summary = summary(&scenario, Settings { max_age: 2 * 86_400, ..Settings::default() });
        assert_eq!((summary.delivered, dead_lettered(&summary)), (200, 0), "{outage:?}");
        let recovery = summary.recovery_delay_ms.unwrap();
        assert!(recovery.max < 3_602_000, "{outage:?}: {recovery:?}");
    }
}

/// The default `MAX_RETRIES` is high enough for the longest `MAX_AGE`.
#[test]
fn outage_of_five_days_loses_only_what_always_fails() {
    let fortnight = Settings { max_age: 14 * 86_400, ..Settings::default() };
    let scenario = Scenario {
        events: 100,
        outage: hours(5 * 24),
        arrival_spread: hours(5 * 24),
        duration: hours(15 * 24),
        ..Scenario::default()
    };
    let recovered = summary(&scenario, fortnight.clone());
    assert_eq!((recovered.delivered, dead_lettered(&recovered)), (100, 0));
    let failing = Scenario { events: 20, arrival_spread: HOUR, poison: 1.0, ..scenario };
    let failed = summary(&failing, fortnight);
    assert_eq!((failed.delivered, failed.dead_lettered), (0, [("max_age", 20)].into()));
    let attempts = failed.attempts.unwrap();
    assert!((600..760).contains(&attempts.p50), "{attempts:?}: 14 days of half hours are 672");
}

#[test]
fn an_outage_of_three_hours_loses_nothing() {
    let summary = summary(&Scenario { events: 200, ..Scenario::default() }, long_waits());
    assert_eq!((summary.delivered, dead_lettered(&summary), summary.waiting), (200, 0, 0));
    assert_eq!(summary.peak_in_flight, 200, "at the outage's end every event is hidden");
    let attempts = summary.attempts.unwrap();
    assert!((12..=16).contains(&attempts.p50), "{attempts:?}: ceilings double, so 3 h are about 14 retries");
    let recovery = summary.recovery_delay_ms.unwrap();
    assert!(recovery.max < 43_170_000, "no wait is over its cap: {recovery:?}");
}

#[test]
fn nothing_fails_without_an_outage() {
    let scenario = Scenario { outage: Duration::ZERO, ..Scenario::default() };
    let summary = summary(&scenario, long_waits());
    assert_eq!((summary.delivered, summary.retries), (1_000, 0));
    assert_eq!(summary.attempts, Some(Percentiles { p50: 0, p99: 0, max: 0 }));
    assert_eq!(summary.recovery_delay_ms, None);
    assert_eq!(summary.api_calls.of(ApiCall::ReceiveMessage), 24 * 60 * 15, "an idle queue is still polled");
    assert_eq!(summary.api_calls.of(ApiCall::InvokeHandler), 0);
}

#[test]
fn every_limit_gives_its_reason() {
    let only = |settings| summary(&busy(), settings).dead_lettered.into_keys().collect::<Vec<_>>();
    assert_eq!(only(Settings { max_retries: 3, ..long_waits() }), ["max_retries"]);
    assert_eq!(only(Settings { max_age: 600, ..long_waits() }), ["max_age"]);
    let globs = vec!["*Down".into()];
    assert_eq!(only(Settings { non_retryable_errors: globs, ..long_waits() }), ["non_retryable_error"]);
    // The first payload is small enough to be retried. With a larger payload, the invocation record of a failed retry
    // would not fit into a message.
    for payload_size in [981_000, 983_000, 1_046_528] {
        let large = Scenario { payload_size, events: 2, ..Scenario::default() };
        let reasons = summary(&large, long_waits()).dead_lettered.into_keys().collect::<Vec<_>>();
        let too_large = if payload_size > 982_000 { vec!["payload_too_large"] } else { vec![] };
        assert_eq!(reasons, too_large, "{payload_size}");
    }
}

#[test]
fn target_is_left_alone_until_its_requested_time() {
    let outage = Scenario { events: 200, arrival_spread: hours(1), ..Scenario::default() };
    let asking = Scenario { retry_after: Some(hours(3)), ..outage.clone() };
    let asked = summary(&asking, long_waits());
    assert_eq!((asked.delivered, dead_lettered(&asked), asked.retries), (200, 0, 200), "one retry each");
    let drawn = summary(&outage, long_waits());
    let off = summary(&asking, Settings { directives: false, ..long_waits() });
    assert_eq!((off.retries, drawn.delivered), (drawn.retries, 200), "as if it had said nothing");
    let (asked, drawn) = (asked.recovery_delay_ms.unwrap(), drawn.recovery_delay_ms.unwrap());
    // The last events fail an hour after the start, which is two hours before the outage ends. Their retries come three
    // hours after the failures, plus at most 18 minutes.
    assert!(asked.max < 78 * 60_000 && asked.max < drawn.max, "{asked:?} {drawn:?}");
}

#[test]
fn retries_without_jitter_follow_the_formula() {
    let scenario = Scenario { events: 1, arrival_spread: Duration::ZERO, ..Scenario::default() };
    let summary = summary(&scenario, Settings { jitter: Jitter::None, ..long_waits() });
    // 1 + 2 + … + 8192 s (2¹⁴ - 1 s) is the first of these sums that exceeds 3 h, so the 14th retry is the last.
    assert_eq!((summary.delivered, summary.retries), (1, 14));
    let overhead = summary.recovery_delay_ms.unwrap().max - (16_383 - 10_800) * 1_000;
    // Each of the 15 invocations takes 200 ms, and each of the 28 batches takes 20 ms + 100 ms. At the end of a batch,
    // the handler re-invokes the target or hides the message.
    assert_eq!(overhead, 15 * 200 + 28 * 120);
}

#[test]
fn refused_scenario_lists_every_error() {
    let scenario = Scenario {
        events: 0,
        failure_rate: f64::NAN,
        handler_run_time: Duration::from_secs(61),
        batch_size: 11,
        faults: Faults::default().with(Fault::ClockSkew, Strikes::always(2.0)),
        ..Scenario::default()
    };
    let error = run(&scenario, &policies(long_waits()), &mut ()).unwrap_err();
    let RunError::Refused(errors) = error else { panic!("{error}") };
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "events is 0; it must be 1 to 10000000",
            "batch-size is 11; it must be 1 to 10",
            "handler-run-time is 61s; it must be at most 60 s, the handler's timeout",
            "failure-rate is NaN; it must be 0 to 1",
            "fault is clock_skew=2; it must be a rate of 0 to 1, within a window that is not empty",
        ]
    );
}

/// Counts the actions that the handler reports, to compare them with what the simulated AWS saw.
#[derive(Default)]
struct Tally {
    reinvoked: u64,
    dead_lettered: usize,
}

impl Watcher for Tally {
    fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
        match outcome.what {
            What::Reinvoke { .. } => self.reinvoked += 1,
            What::DeadLetter { .. } => self.dead_lettered += 1,
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
                run_time: Duration::from_millis(run_time),
                duration: Duration::from_secs(duration),
                batch_size,
                handler_run_time: Duration::from_millis(handler_run_time),
                poll_delay: Duration::from_millis(poll_delay),
                in_flight_limit,
                operators: Script::chaos(seed, Duration::from_secs(duration)).operators(),
                ..Scenario::default()
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
            ..long_waits()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_event_is_delivered_dead_lettered_or_waiting(scenario in any_scenario(), settings in any_settings()) {
        let mut tally = Tally::default();
        let max_retries = settings.max_retries;
        let summary = run(&scenario, &policies(settings), &mut tally).unwrap();
        prop_assert_eq!(summary.delivered + dead_lettered(&summary) + summary.waiting + summary.not_arrived, summary.events);
        prop_assert_eq!(summary.retries, tally.reinvoked);
        prop_assert_eq!(dead_lettered(&summary), tally.dead_lettered);
        prop_assert!(summary.peak_in_flight <= scenario.in_flight_limit);
        prop_assert!(summary.attempts.is_none_or(|attempts| attempts.max <= max_retries));
    }
}
