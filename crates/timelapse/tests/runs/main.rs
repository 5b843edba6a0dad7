//! Whole runs: what must hold of every one, and what some show.

mod any;
mod figures;
mod queue;
mod refused;

use std::time::Duration;

use comeback_engine::{Jitter, Policy, Settings};
use comeback_timelapse::{ApiCall, Percentiles, Scenario, Summary, TARGET_ARN, Trace, run};

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
fn the_seed_decides_everything() {
    let traced = |seed| {
        let mut trace = Trace::default();
        let summary = run(&Scenario { seed, ..busy() }, &policy(Settings::default()), &mut trace).unwrap();
        (serde_json::to_string(&summary).unwrap(), trace.text().to_owned())
    };
    assert_eq!(traced(1), traced(1));
    assert_ne!(traced(1).1, traced(2).1);
}
