//! Tests properties that every policy's schedule has, and the numbers in the default policy's schedule.

use std::time::Duration;

use comeback_engine::{HideUpTo, Jitter, Policy, Settings};
use comeback_timelapse::{IN_FLIGHT_LIMIT, Scenario, Schedule, ScheduledRetry, TARGET_ARN, run};
use proptest::prelude::*;

use super::long_waits;

fn policy(settings: Settings) -> Policy {
    let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..settings };
    Policy::new(settings).expect("a valid policy")
}

fn schedule(settings: Settings, seed: u64, events: usize) -> Schedule {
    Schedule::of(&policy(settings), seed, events, &|| {})
}

/// According to a separate Python script, 18.2 backoffs fit into `MAX_AGE` on average. If at least 2 minutes are
/// left, a shortened backoff follows.
#[test]
fn twelve_hour_backoffs_make_about_19_retries() {
    let schedule = schedule(long_waits(), 1, 2_000);
    assert!((19.1..19.25).contains(&schedule.retries_made.mean), "{:?}", schedule.retries_made);
    assert_eq!(schedule.dead_lettered.into_iter().collect::<Vec<_>>(), [("max_age", 2_000)]);
}

/// Within about 43 minutes, the ceiling grows to an hour. From then on, retries are half an hour apart on average.
#[test]
fn the_default_policy_makes_about_56_retries() {
    let schedule = schedule(Settings::default(), 1, 2_000);
    assert!((55.0..57.5).contains(&schedule.retries_made.mean), "{:?}", schedule.retries_made);
    assert_eq!(schedule.dead_lettered.into_iter().collect::<Vec<_>>(), [("max_age", 2_000)]);
}

#[test]
fn without_jitter_waits_do_not_vary() {
    let schedule = schedule(Settings { jitter: Jitter::None, ..long_waits() }, 1, 20);
    for retry in &schedule.retries {
        assert_eq!(retry.events, 20);
        assert_eq!(retry.wait_seconds.p5, retry.wait_seconds.p95);
        assert_eq!(retry.wait_seconds.mean, f64::from(retry.wait_seconds.p5));
    }
    // The waits are 1, 2, 4 … 32,768 s. The next wait would be as long as the cap and end after MAX_AGE, so it is cut.
    let waits: Vec<u32> = schedule.retries.iter().map(|retry| retry.wait_seconds.p5).collect();
    assert_eq!(waits[..16], std::array::from_fn::<u32, 16, _>(|n| 1 << n));
    assert_eq!(waits[16..], [86_400 - 60 - 65_535]);
}

#[test]
fn long_chains_are_followed_for_fewer_events() {
    let of = |settings: Settings| Schedule::default_events(&policy(settings), 1);
    assert_eq!(of(long_waits()), 10_000);
    assert_eq!(of(Settings { max_retries: 0, ..long_waits() }), 10_000);
    let constant = Settings { base_backoff: 1, max_backoff: 1, ..long_waits() };
    assert_eq!(of(Settings { max_retries: 1_000, ..constant.clone() }), 1_000);
    assert_eq!(of(Settings { max_retries: 10_000, ..constant }), 100);
}

#[test]
fn each_wait_is_cut_into_moves() {
    let settings =
        Settings { jitter: Jitter::None, max_retries: 12, hide_up_to: HideUpTo::UpTo(0), ..long_waits() };
    let in_flight = schedule(settings, 1, 3).in_flight(2.0, IN_FLIGHT_LIMIT);
    // Each wait of 1, 2, 4 … 512 s takes one move, the wait of 1,024 s takes two moves, and the wait of 2,048 s takes
    // three moves.
    assert_eq!((in_flight.moves.per_second, in_flight.moves.delayed), (2.0 * 15.0, 2.0 * 4_095.0));
}

/// Mean number of moves a second in a simulation, once events are dead-lettered as fast as they arrive.
fn simulated_moves_per_second(settings: &Settings, events: usize) -> f64 {
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    let moves_until = |end| {
        let scenario = Scenario {
            events,
            arrival_spread: hours(12),
            outage: hours(12),
            duration: hours(end),
            ..Scenario::default()
        };
        run(&scenario, &policy(settings.clone()).into(), &mut ()).expect("a valid scenario").moves
    };
    (moves_until(11) - moves_until(4)) as f64 / hours(7).as_secs_f64()
}

#[test]
fn a_simulation_makes_almost_as_many_moves() {
    for hide_up_to in [0, 100] {
        let settings = Settings {
            max_age: 3 * 3_600,
            hide_up_to: HideUpTo::UpTo(hide_up_to),
            maximum_concurrency: 2,
            ..long_waits()
        };
        let events = 1_000;
        let simulated = simulated_moves_per_second(&settings, events);
        let rate = events as f64 / (12.0 * 3_600.0);
        let most = schedule(settings, 1, 1_000).in_flight(rate, IN_FLIGHT_LIMIT).moves.per_second;
        assert!(
            (0.9..1.03).contains(&(simulated / most)),
            "HIDE_UP_TO {hide_up_to}: {simulated}, not {most}"
        );
    }
}

prop_compose! {
    fn any_settings()(
        max_age in 60..=1_209_600u64,
        max_retries in 0..=60u64,
        base_backoff in 1..=2_000u64,
        above_base in 0..=41_170u64,
        jitter in proptest::sample::select(Jitter::ALL.to_vec()),
    ) -> Settings {
        let max_backoff = base_backoff + above_base;
        Settings { max_age, max_retries, base_backoff, max_backoff, jitter, ..long_waits() }
    }
}

fn check(retry: &ScheduledRetry, settings: &Settings) {
    let (wait, at) = (retry.wait_seconds, retry.since_first_failure_seconds);
    let longest = retry.ceiling_seconds.unwrap_or(settings.max_backoff);
    assert!(wait.p5 >= 1 && u64::from(wait.p95) <= longest.min(settings.max_age), "{retry:?}");
    assert!((1.0..=longest as f64).contains(&wait.mean), "{retry:?}");
    assert!(at.p5 <= at.p95 && u64::from(at.p95) <= settings.max_age, "{retry:?}");
    assert!(at.mean >= wait.mean && at.mean <= settings.max_age as f64, "{retry:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_schedule_keeps_to_its_policy(settings in any_settings(), seed: u64) {
        let events = 12;
        let schedule = schedule(settings.clone(), seed, events);
        let made = schedule.retries_made;
        prop_assert!(made.min <= made.p5 && made.p5 <= made.p95 && made.p95 <= made.max);
        prop_assert!(made.max as u64 <= settings.max_retries);
        prop_assert_eq!(schedule.retries.len(), made.max);
        prop_assert_eq!(schedule.dead_lettered.values().sum::<usize>(), events);
        for (i, retry) in schedule.retries.iter().enumerate() {
            prop_assert_eq!(retry.retry, i as u64 + 1);
            check(retry, &settings);
        }
        // No retry has more events than the previous one, and each of its events has waited once more.
        for pair in schedule.retries.windows(2) {
            prop_assert!(pair[1].events <= pair[0].events);
            if pair[1].events == pair[0].events {
                prop_assert!(
                    pair[1].since_first_failure_seconds.p5 > pair[0].since_first_failure_seconds.p5
                );
            }
        }
        let all: usize = schedule.retries.iter().map(|retry| retry.events).sum();
        prop_assert!((all as f64 / events as f64 - made.mean).abs() < 1e-9);
        prop_assert_eq!(&schedule, &self::schedule(settings, seed, events));
    }
}
