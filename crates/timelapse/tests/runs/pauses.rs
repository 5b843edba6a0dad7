//! Simulated runs in which operators pause functions.

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::{HOLD, HideUpTo, Outcome, PauseTarget, Settings};
use comeback_timelapse::{
    ApiCall, EventNumber, Fault, Faults, Scenario, Strikes, TARGET_ARN, TargetError, Watcher,
};
use rayon::prelude::*;

use super::script::Script;
use super::{HOUR, MINUTE, hours, long_waits, summary, watched};

const DAY: Duration = hours(24);

/// Returns a scenario in which, after 30 minutes, an operator pauses every function for `length`.
fn paused(length: Duration, spread: Duration) -> Scenario {
    Scenario {
        outage: HOUR,
        arrival_spread: HOUR,
        operators: Script::default().paused(30 * MINUTE, length, spread).operators(),
        ..Scenario::default()
    }
}

/// Records the first re-invocation of each event after a pause, and counts the re-invocations during the pause.
struct ComesBack {
    from: Duration,
    until: Duration,
    first: BTreeMap<usize, Duration>,
    invoked_in_pause: usize,
}

impl ComesBack {
    fn from(from: Duration, until: Duration) -> Self {
        Self { from, until, first: BTreeMap::new(), invoked_in_pause: 0 }
    }
}

impl Watcher for ComesBack {
    fn invoked(&mut self, at: Duration, event: EventNumber, attempt: u64, _: Option<TargetError>) {
        // The invocation began 200 ms ago.
        let begun = at - Duration::from_millis(200);
        if attempt > 0 && begun >= self.until {
            self.first.entry(event.0).or_insert(begun);
        }
        self.invoked_in_pause += usize::from(attempt > 0 && (self.from..self.until).contains(&begun));
    }
}

/// Returns a scenario with 200 pauses, which is far more than the parameter can hold. The pauses begin at intervals of
/// `apart`. Also returns the time when the last edits begin.
fn with_a_full_history(apart: Duration) -> (Scenario, Duration) {
    let target = || TARGET_ARN.parse().expect("a target");
    let ended = (0..200).fold(Script::default(), |script, n| {
        let (from, spread) = (apart * n, Duration::ZERO);
        script.opened(target(), from, None, spread).resumed(target(), from + apart / 2, spread)
    });
    let from = apart * 200;
    let script =
        (1..=7).fold(ended.paused(from, HOUR, MINUTE), |script, n| script.retried(from + n * MINUTE, MINUTE));
    let operators = script.operators();
    (Scenario { operators, events: 100, arrival_spread: HOUR, ..Scenario::default() }, from)
}

#[test]
fn full_history_leaves_room_for_new_pauses() {
    let (scenario, from) = with_a_full_history(Duration::from_secs(20));
    let mut seen = ComesBack::from(from + Duration::from_secs(40), from + HOUR);
    let summary = watched(&Scenario { outage: 2 * HOUR, ..scenario }, Settings::default(), &mut seen);
    assert_eq!((summary.delivered, seen.invoked_in_pause), (100, 0));
}

/// The oracle subtracts paused time from an event's age only if the pauses parameter still contains the pause.
#[test]
fn forgotten_pause_counts_toward_an_events_age() {
    let (scenario, _) = with_a_full_history(Duration::from_secs(4_000));
    let scenario = Scenario { outage: 9 * DAY, duration: 10 * DAY, ..scenario };
    let settings = Settings { max_age: 3 * 86_400, maximum_concurrency: 2, ..Settings::default() };
    let summary = summary(&scenario, settings);
    assert_eq!((summary.delivered, summary.dead_lettered.values().sum::<usize>()), (0, 100));
}

/// After a pause, no minute has more than three times the average number of retries.
#[test]
fn held_events_come_back_spread_after_the_pause() {
    (1..=4u64).into_par_iter().for_each(|seed| {
        let spread = 60 * MINUTE;
        let scenario = Scenario { seed, events: 3_000, ..paused(3 * HOUR, spread) };
        let (from, until) = (30 * MINUTE + Duration::from_secs(40), 30 * MINUTE + 3 * HOUR);
        let mut seen = ComesBack::from(from, until);
        let summary = watched(&scenario, long_waits(), &mut seen);
        assert_eq!((summary.delivered, summary.dead_lettered.len()), (3_000, 0), "seed {seed}");
        assert_eq!(seen.invoked_in_pause, 0, "seed {seed}");
        let after: Vec<f64> = seen.first.values().map(|at| (*at - until).as_secs_f64()).collect();
        assert!(after.len() > 2_900, "seed {seed}: {} were held", after.len());
        let latest = spread.max(HOLD) + MINUTE;
        assert!(after.iter().all(|seconds| *seconds <= latest.as_secs_f64()), "seed {seed}");
        // An event is retried at a random time in the spread S, or at the end of its last hold, whichever comes later.
        // If both times are uniformly distributed, the mean of the later one is S/2 + H²/6S, where H is the length of a
        // hold.
        let mean = after.iter().sum::<f64>() / after.len() as f64;
        let expected = 1_800.0 + HOLD.as_secs_f64().powi(2) / (6.0 * 3_600.0);
        assert!((mean - expected).abs() < 80.0, "seed {seed}: {mean} s, not {expected}");
        let mut minutes = BTreeMap::<u64, usize>::new();
        for seconds in &after {
            *minutes.entry(*seconds as u64 / 60).or_default() += 1;
        }
        let busiest = minutes.values().max().expect("some came back");
        // If the holds began at a steady rate, no minute would have more than twice the average number of retries.
        assert!(*busiest <= after.len() / 60 * 3, "seed {seed}: {busiest} of {} in a minute", after.len());
    });
}

#[test]
fn a_pause_of_13_days_loses_nothing() {
    let of = |max_age, hide_up_to| Settings { max_age, hide_up_to, ..long_waits() };
    let hidden = HideUpTo::Always;
    [of(86_400, hidden), of(60, hidden), of(14 * 86_400, hidden), of(3_600, HideUpTo::UpTo(0))]
        .into_par_iter()
        .for_each(|settings| {
            let shown = format!("{settings:?}");
            // All events arrive during the pause and fail once.
            let scenario = Scenario {
                events: 60,
                outage: HOUR,
                arrival_spread: HOUR,
                duration: 15 * DAY,
                operators: Script::default().paused(Duration::ZERO, 13 * DAY, 30 * MINUTE).operators(),
                ..Scenario::default()
            };
            let summary = summary(&scenario, settings);
            assert_eq!((summary.delivered, summary.dead_lettered), (60, BTreeMap::new()), "{shown}");
            assert_eq!(summary.retries, 60, "no retry is consumed: {shown}");
        });
}

#[test]
fn endless_pause_dead_letters_events_before_sqs_deletes_them() {
    let operators = Script::default().opened(PauseTarget::All, HOUR, None, HOUR).operators();
    let scenario = Scenario { events: 40, duration: 15 * DAY, operators, ..paused(HOUR, HOUR) };
    let summary = summary(&Scenario { outage: 2 * HOUR, ..scenario }, long_waits());
    let dead_lettered = summary.dead_lettered.get("max_age").copied().unwrap_or_default();
    assert_eq!(
        (summary.delivered, dead_lettered, summary.waiting),
        (0, 40, 0),
        "{:?}",
        summary.dead_lettered
    );
}

/// If paused time counted towards `MAX_AGE`, most events would be too old by the end of the pause.
#[test]
fn a_short_max_age_outlasts_a_pause() {
    for (max_age, planned) in [(60, false), (600, false), (600, true)] {
        let (at, length, spread) = (Duration::ZERO, 6 * HOUR, 30 * MINUTE);
        let script = if planned {
            Script::default().opened(PauseTarget::All, at, Some(length), spread)
        } else {
            Script::default().paused(at, length, spread)
        };
        let scenario = Scenario { events: 400, operators: script.operators(), ..paused(length, spread) };
        let summary = summary(&scenario, Settings { max_age, ..long_waits() });
        assert_eq!((summary.delivered, summary.dead_lettered.len()), (400, 0), "{max_age}");
    }
}

#[test]
fn pause_affects_only_its_functions() {
    let other = "arn:aws:lambda:eu-west-1:123456789012:function:payments".parse().expect("a target");
    let scenario = Scenario { events: 50, ..paused(6 * HOUR, HOUR) };
    let here = summary(&Scenario { operators: None, ..scenario.clone() }, long_waits());
    let script = Script::default().opened(other, 30 * MINUTE, Some(6 * HOUR + 30 * MINUTE), HOUR);
    let elsewhere = summary(&Scenario { operators: script.operators(), ..scenario }, long_waits());
    assert_eq!((elsewhere.retries, elsewhere.minutes.clone()), (here.retries, here.minutes.clone()));
    assert!(elsewhere.api_calls.of(ApiCall::ReadPauses) > 0);
    assert_eq!(here.api_calls.of(ApiCall::ReadPauses), 0, "without a pause there is no parameter");
}

#[derive(Default)]
struct Steps(BTreeMap<&'static str, usize>);

impl Watcher for Steps {
    fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
        *self.0.entry(outcome.step().unwrap_or("undecided")).or_default() += 1;
    }
}

#[test]
fn failed_reads_keep_events_until_one_succeeds() {
    for fault in [Fault::PausesDenied, Fault::PausesThrottled, Fault::PausesLate, Fault::PausesGarbled] {
        // Without a pause, the pauses parameter would have no text to garble.
        let operators = Script::default().paused(Duration::ZERO, MINUTE, Duration::ZERO).operators();
        let strikes = Strikes { rate: 1.0, window: Duration::ZERO..6 * HOUR };
        let faults = Faults::default().with(fault, strikes);
        let scenario = Scenario { events: 60, faults, operators, ..paused(MINUTE, MINUTE) };
        let mut steps = Steps::default();
        let settings = Settings { max_age: 3_600, ..long_waits() };
        let summary = watched(&scenario, settings, &mut steps);
        let minutes = &summary.minutes;
        assert_eq!(minutes[..6 * 60].iter().map(|minute| minute.retries).sum::<u32>(), 0, "{fault}");
        assert!(
            steps.0["keep"] > 60 && summary.retries == 0 || summary.delivered > 0,
            "{fault}: {:?}",
            steps.0
        );
        assert_eq!(summary.waiting, 0, "{fault}");
        assert_eq!(summary.delivered + summary.dead_lettered.values().sum::<usize>(), 60, "{fault}");
    }
}
