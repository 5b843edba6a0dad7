//! Orders to retry now, in whole runs.

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::{Jitter, Outcome, RecoveryMode, Settings, Step};
use comeback_timelapse::{
    EventNumber, Fault, Faults, OperatorPause, OperatorRetry, START, Scenario, Strikes, TargetError, Watcher,
};
use rayon::prelude::*;

use super::{HOUR, MINUTE, hours, summary, watched};

/// An hour, as the template ships.
fn settings() -> Settings {
    Settings { longest_hide: 3_600, ..Settings::default() }
}

/// Down for eight hours, and then fixed.
fn outage() -> Scenario {
    Scenario { events: 1_000, outage: hours(8), arrival_spread: hours(8), ..Scenario::default() }
}

/// The first retry of each event after a moment, and which of them came early.
struct After {
    moment: Duration,
    first: BTreeMap<usize, Duration>,
    early: usize,
    /// The first look at each event that found an order, and when the order had it due.
    ordered: BTreeMap<usize, (Duration, Duration)>,
}

impl After {
    const fn new(moment: Duration) -> Self {
        Self { moment, first: BTreeMap::new(), early: 0, ordered: BTreeMap::new() }
    }
}

impl Watcher for After {
    fn invoked(&mut self, at: Duration, event: EventNumber, attempt: u64, _: Option<TargetError>) {
        if attempt > 0 && at >= self.moment {
            self.first.entry(event.0).or_insert(at);
        }
    }

    fn decided(&mut self, at: Duration, event: EventNumber, outcome: &Outcome<'_>) {
        if let (Some(due), Some(_)) = (outcome.due(), &outcome.early) {
            self.ordered.entry(event.0).or_insert((at, due.since(START)));
            self.early += usize::from(matches!(outcome.step, Some(Step::Reinvoke { .. })));
        }
    }
}

/// How often each message was received.
#[derive(Default)]
struct Receives(BTreeMap<String, u32>);

impl Watcher for Receives {
    fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
        *self.0.entry(outcome.message_id.into()).or_default() += 1;
    }
}

/// Fix, then `comeback retry --within 5m`: the handler looks at everything within an hour, and nothing comes in a burst.
#[test]
fn after_a_fix_everything_is_retried_within_70_minutes() {
    (1..=3u64).into_par_iter().for_each(|seed| {
        let fixed = hours(8) + MINUTE;
        let retries = vec![OperatorRetry::new(fixed, 5 * MINUTE)];
        let mut seen = After::new(fixed);
        let summary_with = watched(&Scenario { seed, retries, ..outage() }, settings(), &mut seen);
        assert_eq!(summary_with.delivered, 1_000, "seed {seed}");
        let last = *seen.first.values().max().expect("some waited") - fixed;
        assert!(last <= 70 * MINUTE, "seed {seed}: the last came after {last:?}");
        assert!(seen.early > 500, "seed {seed}: {} came early", seen.early);
        let mut minutes = BTreeMap::<u64, usize>::new();
        for at in seen.first.values() {
            *minutes.entry((*at - fixed).as_secs() / 60).or_default() += 1;
        }
        let busiest = minutes.values().max().expect("some came back");
        assert!(
            *busiest < seen.first.len() / 8,
            "seed {seed}: {busiest} of {} in a minute",
            seen.first.len()
        );
        let mut without = After::new(fixed);
        let alone = watched(&Scenario { seed, ..outage() }, settings(), &mut without);
        assert_eq!((alone.delivered, without.early), (1_000, 0));
        assert!(*without.first.values().max().expect("some") > fixed + 4 * HOUR, "seed {seed}");
    });
}

/// A thousand events fail in the same minute and wait for hours. After an order they come back over an hour, not together:
/// each at its next look, or when its seed has it due if that is later.
#[test]
fn what_failed_together_does_not_come_back_together() {
    let settings = Settings { base_backoff: 43_170, jitter: Jitter::Equal, ..settings() };
    for given in [hours(1) / 2, hours(3) + 17 * MINUTE] {
        let scenario = Scenario {
            events: 1_000,
            outage: MINUTE,
            arrival_spread: MINUTE,
            retries: vec![OperatorRetry::new(given, 5 * MINUTE)],
            ..Scenario::default()
        };
        let mut seen = After::new(given);
        let summary = watched(&scenario, settings.clone(), &mut seen);
        assert_eq!((summary.delivered, seen.first.len(), seen.early), (1_000, 1_000, 1_000));
        let mut waited: Vec<u64> = seen.first.values().map(|at| (*at - given).as_secs()).collect();
        waited.sort_unstable();
        let mean = waited.iter().sum::<u64>() / 1_000;
        assert!((1_700..2_100).contains(&mean) && waited[999] <= 70 * 60, "{given:?}: {mean} {waited:?}");
        let busiest = (0..70).map(|minute| waited.iter().filter(|at| **at / 60 == minute).count()).max();
        assert!(busiest < Some(40), "{given:?}: {busiest:?} in a minute");
        let later = seen.ordered.values().filter(|(look, due)| look < due).count();
        assert!((20..100).contains(&later), "{given:?}: {later} were due after their look");
        for (event, (look, due)) in seen.ordered {
            let (came, expected) = (seen.first[&event], look.max(due));
            let on_time = expected..expected + Duration::from_secs(5);
            assert!(on_time.contains(&came), "event {event} came at {came:?}, not at {expected:?}");
        }
    }
}

/// At 1,000 environments each reads every 375 s. An order that is over in a minute reaches everything all the same.
#[test]
fn an_order_reaches_what_was_hidden_before_it_was_noticed() {
    let settings = Settings {
        base_backoff: 43_170,
        jitter: Jitter::Equal,
        longest_hide: 1_344,
        maximum_concurrency: 1_000,
        ..Settings::default()
    };
    let given = hours(2);
    let scenario = Scenario {
        events: 1_000,
        outage: MINUTE,
        arrival_spread: MINUTE,
        retries: vec![OperatorRetry::new(given, MINUTE / 60)],
        ..Scenario::default()
    };
    let mut seen = After::new(given);
    assert_eq!(watched(&scenario, settings, &mut seen).delivered, 1_000);
    let last = *seen.first.values().max().expect("all waited");
    assert!(
        seen.early == 1_000 && last <= given + 30 * MINUTE,
        "{} came early, the last at {last:?}",
        seen.early
    );
}

/// Pieces cost looks, and change nothing else. Without jitter, because message ids depend on the order of what happens.
#[test]
fn pieces_change_no_retry() {
    let of = |longest_hide| {
        let settings = Settings { longest_hide, jitter: Jitter::None, ..Settings::default() };
        summary(&outage(), settings)
    };
    let (whole, pieces) = (of(43_170), of(1_344));
    assert_eq!((whole.delivered, whole.retries), (pieces.delivered, pieces.retries));
    let [whole, pieces] = [whole, pieces].map(|of| of.recovery_delay_ms.expect("an outage"));
    assert!(whole.max.abs_diff(pieces.max) < 5_000, "{whole:?} {pieces:?}");
}

/// Events that wait for half a day are held for all but the last of SQS's days, in the shortest pieces, while refusals bring
/// them back after 1,230 s: SQS's 1,000 receives are never reached.
#[test]
fn no_message_reaches_a_thousand_receives() {
    let modes = [RecoveryMode::Off, RecoveryMode::On];
    let cases = [0.0, 0.5, 1.0].map(|refused| modes.map(|recovery| (refused, recovery)));
    cases.into_par_iter().flatten().for_each(|(rate, recovery)| {
        let duration = 16 * hours(24);
        let scenario = Scenario {
            events: 30,
            outage: 40 * hours(24),
            arrival_spread: 10 * MINUTE,
            duration,
            faults: Faults::default()
                .with(Fault::VisibilityRefused, Strikes { rate, window: HOUR..duration }),
            pauses: vec![OperatorPause::of_all(HOUR, 13 * hours(24) - HOUR, HOUR)],
            retries: vec![OperatorRetry::new(hours(2), HOUR)],
            recovery,
            ..Scenario::default()
        };
        let settings = Settings {
            // The 500 attempts that make the function down, and then the long wait.
            backoffs: [vec![30; 20], vec![43_170]].concat(),
            jitter: Jitter::None,
            longest_hide: 1_344,
            max_age: 14 * 86_400,
            ..Settings::default()
        };
        let mut receives = Receives::default();
        let summary = watched(&scenario, settings, &mut receives);
        let lost = summary.dead_lettered.get("max_receive_count");
        let most = receives.0.values().max();
        assert!(lost.is_none() && most > Some(&800), "{rate} {recovery:?}: {lost:?} {most:?}");
    });
}

#[test]
fn orders_that_are_garbled_or_meet_a_pause_lose_nothing() {
    let garbled = OperatorRetry { is_garbled: true, ..OperatorRetry::new(hours(8), MINUTE) };
    let pauses = vec![OperatorPause::of_all(hours(8), hours(2), HOUR)];
    let retries = vec![garbled.clone(), OperatorRetry::new(hours(9), 30 * MINUTE)];
    let summary_of = |retries, pauses| {
        let mut seen = After::new(hours(8));
        let summary = watched(&Scenario { retries, pauses, ..outage() }, settings(), &mut seen);
        assert_eq!(summary.delivered, 1_000);
        seen.early
    };
    assert_eq!(summary_of(vec![garbled], Vec::new()), 0);
    assert!(summary_of(retries, pauses) < 1_000);
}
