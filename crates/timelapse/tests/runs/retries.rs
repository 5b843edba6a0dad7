//! Simulated runs in which operators request retries now.

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::{End, HideUpTo, Jitter, Outcome, Settings};
use comeback_timelapse::{
    EventNumber, Fault, Faults, OperatorCancel, OperatorPause, OperatorRecall, OperatorRetry, Scenario,
    Strikes, Summary, TargetError, Watcher,
};
use rayon::prelude::*;

use super::{HOUR, MINUTE, hours, long_waits, watched};

/// Makes a scenario with an outage of eight hours.
fn outage() -> Scenario {
    Scenario { events: 1_000, outage: hours(8), arrival_spread: hours(8), ..Scenario::default() }
}

/// Records the first retry of each event after a moment, and the number of retries that came early.
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
        self.early += usize::from(matches!(outcome.end, End::Reinvoked { early: Some(_), .. }));
    }
}

/// Counts the receives of each message.
#[derive(Default)]
struct Receives(BTreeMap<String, u32>);

impl Watcher for Receives {
    fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
        *self.0.entry(outcome.message_id().into()).or_default() += 1;
    }
}

/// After a fix and `comeback retry --within 5m`, the handler checks every delayed message within a quarter of an hour.
#[test]
fn delayed_events_are_retried_within_20_minutes_of_a_fix() {
    (1..=3u64).into_par_iter().for_each(|seed| {
        let settings = Settings { hide_up_to: HideUpTo::UpTo(0), ..long_waits() };
        let fixed = hours(8) + MINUTE;
        let retries = vec![OperatorRetry::new(fixed, 5 * MINUTE)];
        let mut seen = After::new(fixed);
        let with = watched(&Scenario { seed, retries, ..outage() }, settings.clone(), &mut seen);
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

/// With 1,000 environments, each reads the parameter every 375 s. Even a request for a single second reaches
/// everything: each hidden message is checked when its hiding ends, up to 12 hours later.
#[test]
fn request_reaches_messages_hidden_before_it_was_read() {
    let settings =
        Settings { base_backoff: 43_170, jitter: Jitter::Equal, maximum_concurrency: 1_000, ..long_waits() };
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
    assert_eq!(seen.early, 1_000, "the last came at {:?}", seen.first.values().max());
}

/// Events that wait for half a day are held until SQS's last day, while refusals bring them back after 1,230 s. They
/// must never reach SQS's 1,000 receives.
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
            pauses: vec![OperatorPause::of_all(HOUR, 13 * hours(24) - HOUR, HOUR)],
            retries: vec![OperatorRetry::new(hours(2), HOUR)],
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

/// Records when each event was delivered.
#[derive(Default)]
struct Deliveries(BTreeMap<usize, Duration>);

impl Watcher for Deliveries {
    fn invoked(&mut self, at: Duration, event: EventNumber, _: u64, error: Option<TargetError>) {
        if error.is_none() {
            self.0.insert(event.0, at);
        }
    }
}

/// The target is down for three hours. Two minutes later, an operator runs `comeback retry --within 1m`.
#[test]
fn recalled_events_are_delivered_within_four_minutes_of_the_outage() {
    let last = |retries: Vec<OperatorRetry>| {
        let mut seen = Deliveries::default();
        let scenario = Scenario { retries, ..Scenario::default() };
        assert_eq!(watched(&scenario, Settings::default(), &mut seen).delivered, 1_000);
        *seen.0.values().max().expect("all were") - scenario.outage
    };
    let request = OperatorRetry::new(hours(3) + 2 * MINUTE, MINUTE);
    let (with, without) = (last(vec![request.clone().recalling()]), last(Vec::new()));
    assert!(with <= 4 * MINUTE && without > 50 * MINUTE, "{with:?}, {without:?} without");
    assert!(last(vec![request]) > 50 * MINUTE, "a request alone reaches hidden messages late");
}

#[test]
fn a_cancel_dead_letters_what_waits_and_recalls_it() {
    let at = hours(2);
    let of = |recall| {
        let cancels = vec![OperatorCancel { recall, ..OperatorCancel::new(at) }];
        watched(&Scenario { cancels, ..outage() }, long_waits(), &mut Receives::default())
    };
    let (with, without) = (of(Some(OperatorRecall::default())), of(None));
    let cancelled = |summary: &Summary| summary.dead_lettered.get("cancelled").copied().unwrap_or_default();
    assert!((200..300).contains(&cancelled(&with)), "about a quarter has failed: {with:?}");
    assert_eq!(cancelled(&with), cancelled(&without));
    assert_eq!(with.delivered + cancelled(&with), 1_000);
    let by = |summary: &Summary| {
        let minutes = summary.minutes.iter().enumerate().filter(|(_, minute)| minute.dead_lettered > 0);
        minutes.map(|(minute, _)| minute).max()
    };
    assert!(
        by(&with) <= Some(123) && by(&without) > Some(180),
        "{:?}, {:?} without",
        by(&with),
        by(&without)
    );
}

#[test]
fn a_cancel_of_another_error_or_withdrawn_cancels_nothing() {
    let at = hours(2);
    let cancelled = |error, withdrawn_after| {
        let cancels = vec![OperatorCancel { error, withdrawn_after, ..OperatorCancel::new(at) }];
        let summary = watched(&Scenario { cancels, ..outage() }, long_waits(), &mut Receives::default());
        summary.dead_lettered.get("cancelled").copied().unwrap_or_default()
    };
    assert!((200..300).contains(&cancelled(Some("TargetDown"), None)));
    assert_eq!(cancelled(Some("TargetFlaky"), None), 0);
    assert_eq!(cancelled(None, Some(Duration::ZERO)), 0);
}

/// After its withdrawal, a request reaches only events whose handlers still know it.
#[test]
fn a_withdrawn_request_brings_nothing_back() {
    let early = |withdrawn_after| {
        let request = OperatorRetry { withdrawn_after, ..OperatorRetry::new(hours(8), MINUTE) };
        let mut seen = After::new(hours(8));
        watched(&Scenario { retries: vec![request], ..outage() }, long_waits(), &mut seen);
        seen.early
    };
    assert!(early(None) > 100 && early(Some(Duration::ZERO)) == 0);
}

/// Calls are accepted and not answered, handlers crash after their calls and write no log line, and operators request
/// retries again and again.
#[test]
fn no_recall_repeats_a_call_that_may_have_been_accepted() {
    (0..8u64).into_par_iter().for_each(|seed| {
        let retries = (1..8).map(|turn| OperatorRetry::new(turn * 10 * MINUTE, MINUTE / 6).recalling());
        let faults = Faults::default()
            .with(Fault::InvokeAnswerLost, Strikes::always(0.2))
            .with(Fault::HandlerDiedAfter, Strikes::always(0.2));
        let scenario = Scenario {
            seed,
            events: 50,
            outage: hours(3),
            arrival_spread: 5 * MINUTE,
            duration: hours(5),
            faults,
            retries: retries.collect(),
            ..Scenario::default()
        };
        let settings = Settings { base_backoff: 20_000, jitter: Jitter::Equal, ..long_waits() };
        let mut seen = After::new(Duration::ZERO);
        watched(&scenario, settings, &mut seen);
        assert!(seen.early > 50, "seed {seed}: {} came early", seen.early);
    });
}

#[test]
fn garbled_requests_and_requests_in_a_pause_lose_nothing() {
    let garbled = OperatorRetry { is_garbled: true, ..OperatorRetry::new(hours(8), MINUTE) };
    let pauses = vec![OperatorPause::of_all(hours(8), hours(2), HOUR)];
    let retries = vec![garbled.clone(), OperatorRetry::new(hours(9), 30 * MINUTE)];
    let summary_of = |retries, pauses| {
        let mut seen = After::new(hours(8));
        let summary = watched(&Scenario { retries, pauses, ..outage() }, long_waits(), &mut seen);
        assert_eq!(summary.delivered, 1_000);
        seen.early
    };
    assert_eq!(summary_of(vec![garbled], Vec::new()), 0);
    assert!(summary_of(retries, pauses) < 1_000);
}
