//! Any scenario under any policy.

use std::time::Duration;

use comeback_engine::{HideUpTo, Jitter, Outcome, Settings, Step, Style};
use comeback_timelapse::{EventNumber, Faults, OperatorPause, Scenario, Watcher, run};
use proptest::prelude::*;

use super::{given_up, policy};

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
