//! Simulated runs in which operators request immediate retries.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use comeback_engine::{HideUpTo, Jitter, Outcome, Settings, What};
use comeback_timelapse::{
    EventNumber, Fault, Faults, MakeOperators, START, Scenario, Strikes, TargetError, Watcher,
};
use rayon::prelude::*;

use super::script::Script;
use super::{HOUR, MINUTE, hours, long_waits, watched};

fn outage() -> Scenario {
    Scenario { events: 1_000, outage: hours(8), arrival_spread: hours(8), ..Scenario::default() }
}

/// Records when each event's first retry after `moment` was made, and counts the retries that came early because of a
/// request.
struct After {
    moment: Duration,
    first: BTreeMap<usize, Duration>,
    early: usize,
}

impl After {
    const fn new(moment: Duration) -> Self {
        Self { moment, first: BTreeMap::new(), early: 0 }
    }
}

impl Watcher for After {
    fn invoked(&mut self, at: Duration, event: EventNumber, attempt: u64, _: Option<TargetError>) {
        if attempt > 0 && at >= self.moment {
            self.first.entry(event.0).or_insert(at);
        }
    }

    fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
        self.early += usize::from(matches!(outcome.what, What::Reinvoke { early: Some(_), .. }));
    }
}

#[derive(Default)]
struct Receives(BTreeMap<String, u32>);

impl Watcher for Receives {
    fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
        *self.0.entry(outcome.message_id().into()).or_default() += 1;
    }
}

/// After `comeback retry --within 5m`, every delayed event is retried within 20 minutes: 15 until its next check, and 5
/// for the spread.
#[test]
fn delayed_events_are_retried_within_20_minutes_of_a_fix() {
    (1..=3u64).into_par_iter().for_each(|seed| {
        let settings = Settings { hide_up_to: HideUpTo::UpTo(0), ..long_waits() };
        let fixed = hours(8) + MINUTE;
        let operators = Script::default().retried(fixed, 5 * MINUTE).operators();
        let mut seen = After::new(fixed);
        let with = watched(&Scenario { seed, operators, ..outage() }, settings.clone(), &mut seen);
        assert_eq!(with.delivered, 1_000, "seed {seed}");
        let last = *seen.first.values().max().expect("some waited") - fixed;
        assert!(last <= 20 * MINUTE, "seed {seed}: the last came after {last:?}");
        assert!(seen.early > 500, "seed {seed}: {} came early", seen.early);
        let mut without = After::new(fixed);
        let alone = watched(&Scenario { seed, ..outage() }, settings, &mut without);
        assert_eq!((alone.delivered, without.early), (1_000, 0));
        assert!(*without.first.values().max().expect("some") > fixed + 4 * HOUR, "seed {seed}");
    });
}

/// A retry request reaches every event, even though each of 1,000 environments reads the pauses parameter only
/// every 375 s.
#[test]
fn request_reaches_messages_hidden_before_it_was_read() {
    let settings =
        Settings { base_backoff: 43_170, jitter: Jitter::Equal, maximum_concurrency: 1_000, ..long_waits() };
    let given = hours(2);
    let scenario = Scenario {
        events: 1_000,
        outage: MINUTE,
        arrival_spread: MINUTE,
        operators: Script::default().retried(given, MINUTE / 60).operators(),
        ..Scenario::default()
    };
    let mut seen = After::new(given);
    assert_eq!(watched(&scenario, settings, &mut seen).delivered, 1_000);
    assert_eq!(seen.early, 1_000, "the last came at {:?}", seen.first.values().max());
}

/// Messages that stay in the queue for almost 14 days are received fewer than 1,000 times, even if SQS always refuses
/// to hide them.
#[test]
fn no_message_reaches_a_thousand_receives() {
    [0.0, 0.5, 1.0].into_par_iter().for_each(|rate| {
        let duration = 16 * hours(24);
        let scenario = Scenario {
            events: 30,
            outage: 40 * hours(24),
            arrival_spread: 10 * MINUTE,
            duration,
            faults: Faults::default()
                .with(Fault::VisibilityRefused, Strikes { rate, window: HOUR..duration }),
            operators: Script::default()
                .paused(HOUR, 13 * hours(24) - HOUR, HOUR)
                .retried(hours(2), HOUR)
                .operators(),
            ..Scenario::default()
        };
        let settings = Settings {
            backoffs: [vec![30; 20], vec![43_170]].concat(),
            jitter: Jitter::None,
            max_age: 14 * 86_400,
            ..long_waits()
        };
        let mut receives = Receives::default();
        let summary = watched(&scenario, settings, &mut receives);
        let lost = summary.dead_lettered.get("max_receive_count");
        let most = receives.0.values().max();
        assert!(lost.is_none() && most > Some(&800), "{rate}: {lost:?} {most:?}");
    });
}

#[test]
fn a_cancel_dead_letters_what_waits() {
    let operators = Script::default().cancelled(hours(2), None).operators();
    let summary = watched(&Scenario { operators, ..outage() }, long_waits(), &mut Receives::default());
    let cancelled = summary.dead_lettered.get("cancelled").copied().unwrap_or_default();
    assert!((200..300).contains(&cancelled), "about a quarter has failed: {cancelled}");
    assert_eq!(summary.delivered + cancelled, 1_000);
}

#[test]
fn a_cancel_of_another_error_or_withdrawn_cancels_nothing() {
    let at = hours(2);
    let cancelled = |error, is_withdrawn| {
        let script = Script::default().cancelled(at, error);
        let operators = if is_withdrawn { script.withdrawn(at, at) } else { script }.operators();
        let summary = watched(&Scenario { operators, ..outage() }, long_waits(), &mut Receives::default());
        summary.dead_lettered.get("cancelled").copied().unwrap_or_default()
    };
    assert!((200..300).contains(&cancelled(Some("TargetDown"), false)));
    assert_eq!(cancelled(Some("TargetFlaky"), false), 0);
    assert_eq!(cancelled(None, true), 0);
}

#[test]
fn a_withdrawn_request_brings_nothing_back() {
    let early = |script: Script| {
        let mut seen = After::new(hours(8));
        watched(&Scenario { operators: script.operators(), ..outage() }, long_waits(), &mut seen);
        seen.early
    };
    let request = Script::default().retried(hours(8), MINUTE);
    assert!(early(request.clone()) > 100 && early(request.withdrawn(hours(8), hours(8))) == 0);
}

#[test]
fn garbled_requests_and_requests_in_a_pause_lose_nothing() {
    let early = |script: Script| {
        let mut seen = After::new(hours(8));
        let scenario = Scenario { operators: script.operators(), ..outage() };
        assert_eq!(watched(&scenario, long_waits(), &mut seen).delivered, 1_000);
        seen.early
    };
    let garbled = Script::default().garbled(hours(8));
    assert_eq!(early(garbled.clone()), 0);
    let paused = garbled.paused(hours(8), hours(2), HOUR).retried(hours(9), 30 * MINUTE);
    assert!(early(paused) < 1_000);
}

#[test]
fn a_run_keeps_no_log_lines_that_nobody_reads() {
    let read = Arc::new(Mutex::new(Vec::new()));
    let counts = Arc::clone(&read);
    let operators = MakeOperators::new(move |run| {
        let counts = Arc::clone(&counts);
        Box::new(move || {
            let now = run.now().since(START);
            if now >= hours(4) {
                counts.lock().expect("no panic").push(run.take_log().len());
            }
            [hours(4), hours(6)].into_iter().find(|next| *next > now).map(|next| START.saturating_add(next))
        })
    });
    let scenario = Scenario { operators: Some(operators), failure_rate: 0.5, ..outage() };
    watched(&scenario, long_waits(), &mut Receives::default());
    let read = read.lock().expect("no panic");
    assert!(matches!(read[..], [0, after] if after > 0), "{read:?}");
}
