//! Simulated runs in which operators run the shipped commands, while `timelapse`'s oracle checks every invariant.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use comeback_engine::{
    Early, HideUpTo, Jitter, Outcome, Policies, Policy, RequestKind, Settings, Timestamp, What,
};
use comeback_operate::aws::simulated::{
    Circumstances, EventSelection, SimulatedChange, SimulatedCommand, SimulatedOperators,
};
use comeback_timelapse::{
    EventNumber, Fault, Faults, Invariant, MakeOperators, PolicyChange, RunError, START, Scenario,
    SimulatedTarget, Strikes, Summary, TARGET_ARN, TargetError, Trace, Watcher, run,
};
use rayon::prelude::*;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

fn watched(scenario: &Scenario, settings: Settings, watcher: &mut impl Watcher) -> Summary {
    let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..settings };
    let policies = Policies::from(Policy::new(settings).expect("a valid policy"));
    run(scenario, &policies, watcher).unwrap_or_else(|error| panic!("{error}"))
}

fn command(at: Duration, change: SimulatedChange) -> SimulatedCommand {
    SimulatedCommand { at, change, killed_after: None }
}

/// A request for all events.
fn request(kind: RequestKind, within: Duration) -> SimulatedChange {
    SimulatedChange::Request(kind, within, EventSelection::All)
}

/// Records when each event was delivered, and counts the retries that a request brought forward.
#[derive(Default)]
struct Seen {
    delivered: BTreeMap<usize, Duration>,
    early: usize,
    asked_at: Option<Timestamp>,
}

impl Watcher for Seen {
    fn invoked(&mut self, at: Duration, event: EventNumber, _: u64, error: Option<TargetError>) {
        if error.is_none() {
            self.delivered.insert(event.0, at);
        }
    }

    fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
        if let What::Reinvoke { early: Some(Early { asked_at, .. }), .. } = &outcome.what {
            self.early += 1;
            self.asked_at = Some(*asked_at);
        }
    }
}

/// The kind of a change that a command made, and the number of messages that it recalled.
type Made = (String, u64);

/// Derives settings and a scenario from the seed, with every kind of fault and random operator commands.
fn chaos(seed: u64, made: &Sender<Made>) -> (Scenario, Settings) {
    let pick = |of: &[u64], every: u64| of[(seed / every) as usize % of.len()];
    let settings = Settings {
        jitter: Jitter::ALL[seed as usize % 4],
        max_age: pick(&[86_400, 3_600, 10_800], 8),
        max_retries: pick(&[185, 6], 24),
        base_backoff: pick(&[1, 20, 300, 20_000], 4),
        max_backoff: pick(&[43_170, 20_000], 5),
        hide_up_to: [HideUpTo::Always, HideUpTo::UpTo(20), HideUpTo::UpTo(0)][(seed / 11) as usize % 3],
        maximum_concurrency: pick(&[10, 2], 7),
        ..Settings::default()
    };
    let duration = 6 * HOUR;
    let scenario = Scenario {
        seed,
        events: 12,
        outage: Duration::from_secs(pick(&[3_600, 7_200, 600], 3)),
        arrival_spread: HOUR,
        failure_rate: [0.0, 0.5][(seed / 5) as usize % 2],
        duration,
        faults: if seed.is_multiple_of(4) {
            Faults::storm(seed, duration)
        } else {
            Faults::chaos(seed, duration)
        },
        operators: Some(operators(seed, duration, made)),
        ..Scenario::default()
    };
    (scenario, settings)
}

fn operators(seed: u64, duration: Duration, made: &Sender<Made>) -> MakeOperators {
    SimulatedOperators { made: Some(made.clone()), ..SimulatedOperators::chaos(seed, duration) }.make()
}

fn assert_all_were_made(made: Receiver<Made>) {
    let made: Vec<Made> = made.try_iter().collect();
    for what in ["pause", "resume", "retry", "retry --withdraw", "cancel", "cancel --withdraw"] {
        let count = made.iter().filter(|(it, _)| it == what).count();
        assert!(count > 10, "{what}: {count}");
    }
    let recalled: u64 = made.iter().map(|(_, recalled)| recalled).sum();
    assert!(recalled > 200, "{recalled}");
}

#[test]
fn hundreds_of_seeds_break_no_invariant() {
    let (sender, made) = mpsc::channel();
    let runs = (0..600u64).into_par_iter().map(|seed| {
        let (scenario, settings) = chaos(seed, &sender);
        let mut seen = Seen::default();
        let summary = watched(&scenario, settings, &mut seen);
        (seen.early, summary.dead_lettered.get("cancelled").copied().unwrap_or_default())
    });
    let (early, cancelled) = runs.reduce(|| (0, 0), |one, other| (one.0 + other.0, one.1 + other.1));
    assert!(early > 200 && cancelled > 100, "{early} came early, {cancelled} were cancelled");
    assert_all_were_made(made);
}

#[test]
fn the_same_seed_twice_is_byte_identical() {
    let traced = |seed| {
        let (scenario, settings) = chaos(seed, &mpsc::channel().0);
        let mut trace = Trace::default();
        let summary = watched(&scenario, settings, &mut trace);
        (serde_json::to_string(&summary).expect("plain JSON"), trace.text().to_owned())
    };
    for seed in 0..24 {
        assert_eq!(traced(seed), traced(seed), "seed {seed}");
    }
}

/// Two minutes after an outage of three hours, an operator runs `comeback retry --within 1m`.
#[test]
fn recalled_events_are_delivered_within_four_minutes_of_the_outage() {
    let last = |killed_after| {
        let retry = request(RequestKind::Retry, MINUTE);
        let command = SimulatedCommand { killed_after, ..command(3 * HOUR + 2 * MINUTE, retry) };
        let operators = SimulatedOperators { commands: vec![command], ..SimulatedOperators::default() };
        let mut seen = Seen::default();
        let scenario = Scenario { operators: Some(operators.make()), ..Scenario::default() };
        assert_eq!(watched(&scenario, Settings::default(), &mut seen).delivered, 1_000);
        *seen.delivered.values().max().expect("all were") - scenario.outage
    };
    let (ended, killed) = (last(None), last(Some(0)));
    assert!(ended <= 4 * MINUTE && killed > 50 * MINUTE, "{ended:?}, {killed:?} if it is killed");
    let killed = last(Some(35));
    assert!(killed > 50 * MINUTE, "{killed:?} if it is killed between two recalls");
}

#[test]
fn a_cancel_recalls_what_it_dead_letters() {
    let operators = SimulatedOperators {
        commands: vec![command(2 * HOUR, request(RequestKind::Cancel, Duration::ZERO))],
        ..SimulatedOperators::default()
    };
    let scenario = Scenario {
        outage: 8 * HOUR,
        arrival_spread: 8 * HOUR,
        operators: Some(operators.make()),
        ..Scenario::default()
    };
    let settings = Settings { base_backoff: 1, max_backoff: 43_170, ..Settings::default() };
    let summary = watched(&scenario, settings, &mut ());
    let cancelled = summary.dead_lettered.get("cancelled").copied().unwrap_or_default();
    assert!((200..300).contains(&cancelled), "about a quarter has failed: {cancelled}");
    assert_eq!(summary.delivered + cancelled, 1_000);
    let minutes = summary.minutes.iter().enumerate().filter(|(_, minute)| minute.dead_lettered > 0);
    let last = minutes.map(|(minute, _)| minute).max();
    assert!(last <= Some(123), "the last one in minute {last:?}");
}

/// Some calls get no response, some handlers crash, and operators request retries every five minutes.
#[test]
fn no_recall_repeats_a_call_that_may_have_been_accepted() {
    (0..8u64).into_par_iter().for_each(|seed| {
        let retry = |turn: u32| command(turn * 5 * MINUTE, request(RequestKind::Retry, MINUTE / 6));
        let operators = SimulatedOperators {
            circumstances: Circumstances { seed, log_delay: MINUTE / 2, ..Circumstances::default() },
            commands: (1..15).map(retry).collect(),
            ..SimulatedOperators::default()
        };
        let faults = Faults::default()
            .with(Fault::InvokeAnswerLost, Strikes::always(0.2))
            .with(Fault::HandlerDiedAfter, Strikes::always(0.2));
        let scenario = Scenario {
            seed,
            events: 50,
            outage: 3 * HOUR,
            arrival_spread: 5 * MINUTE,
            duration: 5 * HOUR,
            faults,
            operators: Some(operators.make()),
            ..Scenario::default()
        };
        let settings = Settings {
            base_backoff: 20_000,
            max_backoff: 43_170,
            jitter: Jitter::Equal,
            ..Settings::default()
        };
        let mut seen = Seen::default();
        watched(&scenario, settings, &mut seen);
        assert!(seen.early > 50, "seed {seed}: {} came early", seen.early);
    });
}

/// Virtual time advances between the AWS calls of a command.
#[test]
fn calls_take_time() {
    let at = 2 * HOUR;
    let retry = command(at, request(RequestKind::Retry, Duration::ZERO));
    let operators = SimulatedOperators { commands: vec![retry], ..SimulatedOperators::default() };
    let scenario = Scenario { operators: Some(operators.make()), ..Scenario::default() };
    let mut seen = Seen::default();
    watched(&scenario, Settings::default(), &mut seen);
    let asked = seen.asked_at.expect("some came early").since(START);
    assert!((at + MINUTE / 60..at + MINUTE).contains(&asked), "{asked:?}");
}

#[test]
fn a_command_that_fails_without_a_reason_ends_the_run() {
    let result = |change, fault_rate| {
        let operators = SimulatedOperators {
            circumstances: Circumstances { fault_rate, ..Circumstances::default() },
            commands: vec![command(HOUR, change)],
            ..SimulatedOperators::default()
        };
        let scenario = Scenario { events: 3, operators: Some(operators.make()), ..Scenario::default() };
        let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() };
        run(&scenario, &Policy::new(settings).expect("a valid policy").into(), &mut ()).map(drop)
    };
    let refused = SimulatedChange::Resume(500 * HOUR);
    let Err(RunError::Violated(violation)) = result(refused, 0.0) else { panic!("it did not fail") };
    assert_eq!(violation.invariant, Invariant::WorkingCommands);
    assert!(violation.to_string().contains("it must be at most 1209600 s"), "{violation}");
    assert_eq!(result(request(RequestKind::Retry, MINUTE), 1.0), Ok(()), "each call fails");
}

/// Values of `POLICIES` that differ widely, for the functions `orders` and `export-eu`.
const ENTRIES: [&str; 8] = [
    "orders MAX_AGE=30m; export-* MAX_AGE=14d BACKOFFS=20s,5m,30m,2h",
    "*s MAX_RETRIES=2 JITTER=none; export-eu:$LATEST BASE_BACKOFF=10m",
    "",
    "orders JITTER=decorrelated BASE_BACKOFF=1m; export-eu ENVELOPE=inline DIRECTIVES=off",
    "* BACKOFFS=1,1,1,3600 JITTER=equal; orders MAX_AGE=60",
    "orders MAX_AGE=2h MAX_BACKOFF=2; export-eu MAX_AGE=4h MAX_BACKOFF=6h BASE_BACKOFF=1h",
    "orders NON_RETRYABLE_ERRORS=TargetFlaky; export-* MAX_RETRIES=0",
    "export-* MAX_AGE=90m ENVELOPE=inline; orders MAX_RETRIES=40 BACKOFFS=7",
];

#[test]
fn policy_changes_break_no_invariant() {
    let target = |name: &str, outage| SimulatedTarget { name: name.into(), share: 1.0, outage };
    let targets = [target("orders", None), target("export-eu", Some(6 * HOUR))];
    let (sender, made) = mpsc::channel();
    (0..500u64).into_par_iter().for_each(|seed| {
        let entry = |salt: u64| ENTRIES[(seed / salt) as usize % ENTRIES.len()];
        let hide_up_to = ["0", "20", "always"][(seed / 3) as usize % 3];
        // Without jitter, the policy gives each retry one exact due time, and no retry may come earlier.
        let jitter = ["none", "full"][(seed / 11) as usize % 2];
        let policies = |entry: &str| {
            let value = |name: &str| match name {
                "TARGET_FUNCTIONS" => Some(targets.each_ref().map(SimulatedTarget::arn).join(",")),
                "POLICIES" => Some(entry.to_owned()),
                "JITTER" => Some(jitter.to_owned()),
                "HIDE_UP_TO" => Some(hide_up_to.to_owned()),
                "MAX_RETRIES" => Some("185".to_owned()),
                "BASE_BACKOFF" => Some("1".to_owned()),
                "MAX_BACKOFF" => Some("43170".to_owned()),
                _ => None,
            };
            Policies::from_variables(value).expect("valid policies")
        };
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let change = |at, salt| PolicyChange { at, policies: policies(entry(salt)) };
        let duration = 8 * HOUR;
        let scenario = Scenario {
            seed,
            events: 12,
            arrival_spread: HOUR,
            outage: 2 * HOUR,
            failure_rate: [0.0, 0.5][(seed / 5) as usize % 2],
            retry_after: [None, None, Some(2_700)][(seed / 7) as usize % 3].map(Duration::from_secs),
            duration,
            faults: if seed % 4 == 0 { Faults::storm(seed, duration) } else { Faults::chaos(seed, duration) },
            operators: Some(operators(seed, duration, &sender)),
            targets: targets.to_vec(),
            changes: vec![change(minutes(20 + seed % 60), 8), change(minutes(100 + seed % 200), 64)],
            ..Scenario::default()
        };
        if let Err(error) = run(&scenario, &policies(entry(1)), &mut ()) {
            panic!("seed {seed}: {error}");
        }
    });
    assert_all_were_made(made);
}
