//! Simulated runs with every kind of fault.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use comeback_engine::{CallFailure, HideUpTo, Jitter, Outcome, Policies, Policy, Settings, Style};
use comeback_timelapse::{
    ApiCall, EventNumber, Fault, Faults, Invariant, RunError, Scenario, Strikes, Summary, Trace, Watcher, run,
};
use rayon::prelude::*;

use super::script::Script;
use super::{HOUR, long_waits, policies, summary, watched};

fn chaos(seed: u64, scenario: Scenario) -> Scenario {
    let faults = Faults::chaos(seed, scenario.duration);
    let operators = Script::chaos(seed, scenario.duration).operators();
    Scenario { seed, faults, operators, ..scenario }
}

fn with(fault: Fault, strikes: Strikes) -> Scenario {
    Scenario { events: 60, faults: Faults::default().with(fault, strikes), ..Scenario::default() }
}

fn struck(summary: &Summary) -> BTreeMap<&'static str, u64> {
    summary.faults.clone().expect("faults were on").struck
}

/// The number of handler steps of one kind, and the number of those that failed even after retries.
struct Deliveries {
    of: &'static str,
    made: u64,
    failed: u64,
}

impl Deliveries {
    fn of(step: &'static str) -> Self {
        Self { of: step, made: 0, failed: 0 }
    }
}

impl Watcher for Deliveries {
    fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
        if outcome.step() == Some(self.of) {
            let failed = |problem: &CallFailure| problem.cause.starts_with("no retries left: ");
            self.made += 1;
            self.failed += u64::from(outcome.problem().is_some_and(failed));
        }
    }
}

#[test]
fn every_fault_strikes_at_least_20_times_in_2_000_events() {
    let all = Fault::ALL.into_iter().filter(|&fault| fault != Fault::RetentionEnded);
    let names: Vec<&str> = all.map(Fault::name).collect();
    (1..=2u64).into_par_iter().for_each(|seed| {
        let scenario = chaos(seed, Scenario { events: 2_000, ..Scenario::default() });
        // Faults that affect pauses can strike only if there is a pause.
        let operators = Script::default().paused(HOUR, HOUR, HOUR).operators();
        let scenario = Scenario { operators, ..scenario };
        let mut deferrals = Deliveries::of("defer");
        let settings = Settings { hide_up_to: HideUpTo::UpTo(400), ..long_waits() };
        let summary = watched(&scenario, settings, &mut deferrals);
        assert!(deferrals.failed > 0, "seed {seed}: all {} deferrals worked in the end", deferrals.made);
        let struck = struck(&summary);
        let mut counted: Vec<&str> = struck.keys().copied().collect();
        counted.sort_by_key(|name| names.iter().position(|other| other == name));
        assert_eq!(counted, names);
        for (fault, count) in struck {
            assert!(count >= 20, "seed {seed}: {fault} struck {count} times");
        }
        let dead: usize = summary.dead_lettered.values().sum();
        assert_eq!(summary.delivered + dead + summary.waiting, 2_000);
        assert!(summary.delivered > 1_600, "seed {seed}: only {} were delivered", summary.delivered);
        assert!(!summary.dead_lettered.contains_key("expired"));
    });
}

/// Returns a scenario and settings that vary with the seed.
fn varied(seed: u64) -> (Scenario, Settings) {
    let pick = |of: &[u64], every: u64| of[(seed / every) as usize % of.len()];
    let settings = Settings {
        jitter: Jitter::ALL[seed as usize % 4],
        envelope: Style::ALL[(seed / 4) as usize % 2],
        max_age: pick(&[86_400, 3_600, 10_800], 8),
        max_retries: pick(&[185, 6], 24),
        base_backoff: pick(&[1, 20, 300], 48),
        max_backoff: pick(&[43_170, 900, 3_600], 144),
        hide_up_to: [HideUpTo::UpTo(0), HideUpTo::UpTo(20), HideUpTo::Always][(seed / 11) as usize % 3],
        maximum_concurrency: pick(&[10, 2], 7),
        directives: !(seed / 13).is_multiple_of(4),
        ..long_waits()
    };
    let scenario = Scenario {
        events: 12,
        outage: Duration::from_secs(pick(&[3_600, 7_200, 600], 3)),
        arrival_spread: HOUR,
        failure_rate: [0.0, 0.5][(seed / 5) as usize % 2],
        retry_after: [None, None, Some(60), Some(2_700)][(seed / 9) as usize % 4].map(Duration::from_secs),
        duration: 6 * HOUR,
        ..Scenario::default()
    };
    (chaos(seed, scenario), settings)
}

#[test]
fn thousands_of_seeds_break_no_invariant() {
    (0..3_000u64).into_par_iter().for_each(|seed| {
        let (scenario, settings) = varied(seed);
        summary(&scenario, settings);
    });
}

#[test]
fn hundreds_of_storms_break_no_invariant() {
    (0..300u64).into_par_iter().for_each(|seed| {
        let (scenario, settings) = varied(seed);
        summary(&Scenario { faults: Faults::storm(seed, scenario.duration), ..scenario }, settings);
    });
}

/// A message whose retention period ends during its batch may still be settled, as `Oracle::removed` allows.
#[test]
fn message_that_expires_during_its_batch_may_be_settled() {
    (0..6u64).into_par_iter().for_each(|seed| {
        let scenario = Scenario {
            seed,
            failure_rate: 1.0,
            retry_after: Some(Duration::from_secs(60)),
            handler_run_time: Duration::from_secs(50),
            duration: 4 * HOUR,
            ..with(Fault::RetentionEnded, Strikes::always(1.0))
        };
        let summary = summary(&scenario, long_waits());
        assert!(summary.dead_lettered.contains_key("expired"), "seed {seed}");
    });
}

#[test]
fn endless_multiplication_ends_the_run() {
    let often = Settings { max_retries: 10_000, max_backoff: 1, ..long_waits() };
    let at_once = Scenario { arrival_spread: Duration::ZERO, ..Scenario::default() };
    for (events, fault, rate, settings, given) in [
        (1, Fault::DeleteLost, 0.5, long_waits(), "event 0 more than 10000"),
        (300, Fault::DeleteLost, 0.5, long_waits(), "all events more than 15000"),
        // Ten pollers keep up with the copies, so only a few copies exist at the same time.
        (1, Fault::DuplicateDelivery, 1.0, often, "event 0 more than 100000"),
    ] {
        let faults = Faults::default().with(fault, Strikes::always(rate));
        let scenario = Scenario { events, failure_rate: 1.0, faults, ..at_once.clone() };
        let error = run(&scenario, &policies(settings), &mut ()).unwrap_err().to_string();
        let remedy = format!(
            ", the faults had given {given} copies or retries; lower a fault's rate, or shorten its window \
             or the run"
        );
        assert!(error.ends_with(&remedy), "{error}");
    }
}

/// If one batch contains two messages of the same event, each call must name the right message.
#[test]
fn two_copies_of_an_event_are_told_apart() {
    let seed = 317_546_270;
    let scenario = Scenario { events: 3, arrival_spread: 3 * HOUR, failure_rate: 1.0, ..Scenario::default() };
    let half = Strikes { rate: 0.5, window: Duration::ZERO..14 * 24 * HOUR };
    let Scenario { faults, .. } = chaos(seed, scenario.clone());
    let faults = faults.with(Fault::VisibilityRefused, half.clone()).with(Fault::DeleteLost, half);
    let settings = Settings {
        jitter: Jitter::Decorrelated,
        hide_up_to: HideUpTo::Always,
        maximum_concurrency: 3,
        ..long_waits()
    };
    // The bug that this test guards against appeared at +05:38:41. The events multiply, so a 24-hour run would take
    // minutes.
    summary(&Scenario { faults, duration: 6 * HOUR, ..chaos(seed, scenario) }, settings);
}

/// Returns the factor by which a fault increases the number of retries of ten events.
fn amplified(fault: Fault, hide_up_to: HideUpTo, minutes: u64) -> f64 {
    let scenario = Scenario { events: 10, arrival_spread: Duration::from_secs(1), ..Scenario::default() };
    let window = Duration::ZERO..Duration::from_secs(60 * minutes);
    let faults = Faults::default().with(fault, Strikes { rate: 1.0, window });
    let settings = Settings { hide_up_to, ..long_waits() };
    let without = summary(&scenario, settings.clone());
    let with = summary(&Scenario { faults, ..scenario }, settings);
    assert_eq!((with.delivered, without.delivered), (10, 10), "{fault} for {minutes} minutes");
    with.retries as f64 / without.retries as f64
}

/// After a lost response or a crash, the handler waits for at least an hour before it repeats the call. A fault that
/// lasts an hour therefore causes few duplicates.
#[test]
fn lost_answers_and_crashes_hardly_multiply_events() {
    let (hidden, moved) = (long_waits().hide_up_to, HideUpTo::UpTo(0));
    for (fault, hide_up_to, most) in [
        (Fault::InvokeAnswerLost, hidden, 12.0),
        (Fault::HandlerDiedAfter, hidden, 12.0),
        (Fault::MoveLost, moved, 12.0),
        (Fault::HandlerDiedAfter, moved, 18.0),
    ] {
        let [short, half, whole] = [5, 30, 60].map(|minutes| amplified(fault, hide_up_to, minutes));
        let all = [short, half, whole];
        assert!(all.iter().all(|times| (1.0..=most).contains(times)), "{fault}: {all:.1?}");
        assert!(whole <= 1.5 * half, "{fault}: {all:.1?}");
    }
}

#[test]
fn handler_outage_of_days_loses_nothing() {
    for (hours, spread) in [(60, 3), (13 * 24, 3)] {
        let window = 2 * HOUR..(2 + hours) * HOUR;
        let faults = Faults::default().with(Fault::HandlerOutage, Strikes { rate: 1.0, window });
        let duration = 15 * 24 * HOUR;
        let scenario =
            Scenario { events: 100, arrival_spread: spread * HOUR, duration, faults, ..Scenario::default() };
        let summary = summary(&scenario, Settings { max_age: 14 * 86_400, ..long_waits() });
        assert_eq!((summary.delivered, summary.dead_lettered.len()), (100, 0), "{hours} hours");
    }
}

#[test]
fn the_same_seed_twice_is_byte_identical() {
    let traced = |seed| {
        let (scenario, settings) = varied(seed);
        let mut trace = Trace::default();
        let summary = watched(&scenario, settings, &mut trace);
        (serde_json::to_string(&summary).expect("plain JSON"), trace.text().to_owned())
    };
    for seed in 0..24 {
        assert_eq!(traced(seed), traced(seed));
    }
    assert_ne!(traced(0).1, traced(288).1);
}

#[test]
fn each_fault_alone_strikes_and_harms_no_event() {
    for fault in Fault::ALL.into_iter().filter(|&fault| fault != Fault::RetentionEnded) {
        let scenario = with(fault, Strikes { rate: 0.1, window: Duration::ZERO..5 * HOUR });
        // Faults that affect reads of the pauses can strike only if the run has a pause.
        let pause = Script::default().paused(HOUR, HOUR, HOUR);
        let operators = fault.name().starts_with("pauses_").then(|| pause.operators()).flatten();
        // Batches are full, so that a handler can crash after it has processed part of one.
        let scenario = Scenario { poll_delay: Duration::from_secs(20), operators, ..scenario };
        // With a short `MAX_AGE`, events are dead-lettered, so that faults that affect dead-letters can strike.
        let hide_up_to = HideUpTo::UpTo(40);
        let summary = summary(&scenario, Settings { max_age: 7_200, hide_up_to, ..long_waits() });
        assert_eq!(struck(&summary).into_keys().collect::<Vec<_>>(), [fault.name()]);
        assert!(struck(&summary)[fault.name()] > 0, "{fault}");
        assert_eq!(summary.waiting, 0, "{fault}: {:?}", summary.dead_lettered);
    }
}

#[test]
fn duplicates_after_lost_answers_are_counted() {
    let scenario = with(Fault::InvokeAnswerLost, Strikes::always(0.05));
    let summary = summary(&scenario, long_waits());
    let faults = summary.faults.expect("faults were on");
    assert!(faults.duplicate_retries > 0);
    assert!(faults.duplicate_retries <= faults.struck["invoke_answer_lost"]);
    assert_eq!(summary.delivered, 60, "and each event counts once");
}

#[test]
fn deliveries_repeat_failed_calls_and_count_each() {
    let refused = |fault| (fault, "defer", ApiCall::ChangeMessageVisibilityBatch);
    let sent = |fault| (fault, "dead_letter", ApiCall::SendMessageBatch);
    for (fault, step, operation) in [
        refused(Fault::VisibilityRefused),
        refused(Fault::VisibilityLost),
        sent(Fault::DeadLetterRefused),
        sent(Fault::DeadLetterLost),
    ] {
        // Each call has one entry, so that the number of calls can be compared with the number of deliveries.
        let scenario = Scenario {
            batch_size: 1,
            outage: 24 * HOUR,
            arrival_spread: HOUR,
            ..with(fault, Strikes::always(0.5))
        };
        let mut deliveries = Deliveries::of(step);
        // A re-invocation also hides its message, so the first re-invocation is due after the end of the run.
        let is_sent = step == "dead_letter";
        let (base_backoff, jitter) = if is_sent { (1, Jitter::Full) } else { (43_170, Jitter::None) };
        let scenario = Scenario { duration: if is_sent { scenario.duration } else { 11 * HOUR }, ..scenario };
        let settings = Settings { max_retries: 3, base_backoff, jitter, ..long_waits() };
        let summary = watched(&scenario, settings, &mut deliveries);
        let Deliveries { made, failed, .. } = deliveries;
        let (calls, strikes) = (summary.api_calls.of(operation), struck(&summary)[fault.name()]);
        assert!(failed > 0 && made > 5 * failed, "{fault}: {failed} of {made} failed");
        assert_eq!(calls, made + strikes - failed, "{fault}: each strike but a delivery's last is one more");
        if !is_sent {
            continue;
        }
        assert_eq!(summary.dead_lettered, [("max_retries", 60)].into(), "{fault}");
        let duplicates = summary.faults.expect("faults were on").duplicate_dead_letters;
        let accepted = if fault == Fault::DeadLetterLost { calls } else { 60 };
        assert_eq!(duplicates, accepted - 60, "{fault}: those that SQS accepted over one an event");
    }
}

#[test]
fn events_whose_retention_ends_are_counted_as_expired() {
    let summary = summary(&with(Fault::RetentionEnded, Strikes::always(0.05)), long_waits());
    let expired = summary.dead_lettered["expired"];
    assert!(expired > 0 && summary.dead_lettered.len() == 1);
    assert!(struck(&summary)["retention_ended"] >= expired as u64);
    assert_eq!(summary.delivered + expired, 60);
}

/// The policy allows a function that the scenario treats as unlisted. A handler without bugs then breaks an invariant.
#[test]
fn violation_has_seed_history_and_trace() {
    let target_functions = vec!["arn:aws:lambda:eu-west-1:123456789012:function:*".into()];
    let policies: Policies =
        Policy::new(Settings { target_functions, ..long_waits() }).expect("a valid policy").into();
    let scenario = Scenario { seed: 5, ..with(Fault::UnlistedFunction, Strikes::always(0.01)) };
    let error = run(&scenario, &policies, &mut ()).unwrap_err();
    let RunError::Violated(violation) = &error else { panic!("{error}") };
    assert_eq!((violation.invariant, violation.seed), (Invariant::AllowList, 5));
    let event = violation.event.expect("it is of an event");
    let lines: Vec<&str> = violation.history.lines().collect();
    assert!(lines[0].ends_with(&format!("event {event} attempt 0 failed: TargetDown")), "{lines:?}");
    assert!(lines.iter().any(|line| line.ends_with("FAULT unlisted_function")), "{lines:?}");
    assert!(lines.last().is_some_and(|line| line.contains("reinvoke retry")), "{lines:?}");
    assert_eq!(violation.trace.lines().count(), 40);
    assert!(violation.trace.contains(lines[lines.len() - 1]), "{}", violation.trace);
    let text = error.to_string();
    assert!(text.starts_with("broken with seed 5 at +"), "{text}");
    assert!(text.contains("function:payroll:$LATEST was invoked\nits history:\n"), "{text}");
    assert_eq!(run(&scenario, &policies, &mut ()).unwrap_err(), error, "and does it again");
}

#[test]
fn the_architecture_lists_every_invariant() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).expect("ARCHITECTURE.md can be read");
    for invariant in Invariant::ALL {
        let row = format!("| {} |", invariant.statement());
        assert!(text.lines().any(|line| line.starts_with(&row)), "{row}");
    }
}
