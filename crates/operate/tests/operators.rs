//! Simulated runs in which operators run the commands that ship, while `timelapse`'s oracle checks every invariant.

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::{HideUpTo, Jitter, Outcome, Policies, Policy, Settings, What};
use comeback_operate::aws::simulated::{SimulatedChange, SimulatedCommand, SimulatedOperators};
use comeback_timelapse::{
    EventNumber, Fault, Faults, Scenario, Strikes, Summary, TARGET_ARN, TargetError, Trace, Watcher, run,
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

/// Records when each event was delivered, and counts the retries that a request brought forward.
#[derive(Default)]
struct Seen {
    delivered: BTreeMap<usize, Duration>,
    early: usize,
}

impl Watcher for Seen {
    fn invoked(&mut self, at: Duration, event: EventNumber, _: u64, error: Option<TargetError>) {
        if error.is_none() {
            self.delivered.insert(event.0, at);
        }
    }

    fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
        self.early += usize::from(matches!(outcome.what, What::Reinvoke { early: Some(_), .. }));
    }
}

/// Varies the scenario by the seed, with every fault and with operators at random.
fn chaos(seed: u64) -> (Scenario, Settings) {
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
        operators: Some(SimulatedOperators::chaos(seed, duration).make()),
        ..Scenario::default()
    };
    (scenario, settings)
}

#[test]
fn hundreds_of_seeds_break_no_invariant() {
    let runs = (0..600u64).into_par_iter().map(|seed| {
        let (scenario, settings) = chaos(seed);
        let mut seen = Seen::default();
        let summary = watched(&scenario, settings, &mut seen);
        (seen.early, summary.dead_lettered.get("cancelled").copied().unwrap_or_default())
    });
    let (early, cancelled) = runs.reduce(|| (0, 0), |one, other| (one.0 + other.0, one.1 + other.1));
    assert!(early > 200 && cancelled > 100, "{early} came early, {cancelled} were cancelled");
}

#[test]
fn the_same_seed_twice_is_byte_identical() {
    let traced = |seed| {
        let (scenario, settings) = chaos(seed);
        let mut trace = Trace::default();
        let summary = watched(&scenario, settings, &mut trace);
        (serde_json::to_string(&summary).expect("plain JSON"), trace.text().to_owned())
    };
    for seed in 0..24 {
        assert_eq!(traced(seed), traced(seed), "seed {seed}");
    }
}

/// The target is down for three hours. Two minutes later, an operator runs `comeback retry --within 1m`.
#[test]
fn recalled_events_are_delivered_within_four_minutes_of_the_outage() {
    let last = |killed_after| {
        let retry = SimulatedChange::Retry(MINUTE);
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
        commands: vec![command(2 * HOUR, SimulatedChange::Cancel(None))],
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

/// Calls are accepted and not answered, handlers crash after their calls and write no log line, and operators request
/// retries again and again, two at a time.
#[test]
fn no_recall_repeats_a_call_that_may_have_been_accepted() {
    (0..8u64).into_par_iter().for_each(|seed| {
        let retry = |turn: u32| command(turn * 5 * MINUTE, SimulatedChange::Retry(MINUTE / 6));
        let operators =
            SimulatedOperators { seed, log_delay: MINUTE / 2, commands: (1..15).map(retry).collect() };
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
