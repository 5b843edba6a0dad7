//! Simulated runs with several functions, each under its own policy. The policies change while events wait.

use std::time::Duration;

use comeback_engine::Policies;
use comeback_timelapse::{
    EventNumber, Faults, PolicyChange, Scenario, SimulatedTarget, Summary, TargetError, Watcher, run,
    run_changing,
};
use rayon::prelude::*;

use super::script::Script;
use super::{HOUR, MINUTE};

fn target(name: &str, outage: Option<Duration>) -> SimulatedTarget {
    SimulatedTarget { name: name.into(), share: 1.0, outage }
}

fn two_functions() -> Scenario {
    let targets = vec![target("orders", None), target("export-eu", Some(6 * HOUR))];
    Scenario { events: 60, targets, ..Scenario::default() }
}

/// Parses policies for the two functions from these variables.
fn read(variables: &[(&str, &str)]) -> Policies {
    let arns = ["orders", "export-eu"].map(|name| target(name, None).arn()).join(",");
    let value = |name: &str| variables.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
    Policies::from_variables(|name| match name {
        "TARGET_FUNCTIONS" => Some(arns.clone()),
        _ => value(name).map(Into::into),
    })
    .expect("valid policies")
}

fn reasons(summary: &Summary) -> [Vec<&'static str>; 2] {
    [0, 1].map(|target| summary.targets[target].dead_lettered.keys().copied().collect())
}

#[test]
fn each_function_is_retried_under_its_own_policy() {
    let policies = read(&[("POLICIES", "orders MAX_RETRIES=3; export-* MAX_AGE=1h")]);
    let summary = run(&two_functions(), &policies, &mut ()).unwrap();
    assert_eq!(reasons(&summary), [["max_retries"], ["max_age"]]);
    assert!(summary.targets.iter().all(|target| target.events > 20), "{:?}", summary.targets);
    let attempts = [0, 1].map(|target: usize| summary.targets[target].attempts.unwrap().max);
    assert!(attempts[0] == 3 && attempts[1] > 3, "{attempts:?}");
    assert_eq!(summary.targets.iter().map(|target| target.events).sum::<usize>(), 60);
}

#[test]
fn single_functions_entry_equals_the_stacks_policy() {
    let scenario = Scenario { events: 60, ..Scenario::default() };
    let stack = read(&[("MAX_AGE", "2h"), ("BACKOFFS", "20s,5m,30m")]);
    let entry = read(&[("POLICIES", "orders MAX_AGE=2h BACKOFFS=20s,5m,30m")]);
    assert_eq!(run(&scenario, &stack, &mut ()), run(&scenario, &entry, &mut ()));
}

#[test]
fn shorter_age_dead_letters_waiting_events() {
    let long = read(&[]);
    let short = read(&[("POLICIES", "export-eu MAX_AGE=2h")]);
    let changes = [PolicyChange { at: 4 * HOUR, policies: short }];
    let summary = run_changing(&two_functions(), &long, &changes, &mut ()).unwrap();
    assert_eq!(reasons(&summary), [vec![], vec!["max_age"]]);
    let unchanged = run(&two_functions(), &long, &mut ()).unwrap();
    assert_eq!(reasons(&unchanged), [vec![], vec![]] as [Vec<&str>; 2]);
}

/// Records when each retry ended, counted from the run's start.
#[derive(Default)]
struct Retries(Vec<Duration>);

impl Watcher for Retries {
    fn invoked(&mut self, at: Duration, _: EventNumber, attempt: u64, _: Option<TargetError>) {
        self.0.extend((attempt > 0).then_some(at));
    }
}

#[test]
fn shorter_age_leaves_a_last_retry() {
    let policies = |max_age| {
        let backoff = [("BACKOFFS", "11h"), ("JITTER", "none"), ("HIDE_UP_TO", "0")];
        read(&[&[("MAX_AGE", max_age)], &backoff[..]].concat())
    };
    let scenario = Scenario { events: 20, arrival_spread: Duration::ZERO, ..two_functions() };
    let changes = [PolicyChange { at: HOUR, policies: policies("2h") }];
    let mut retries = Retries::default();
    let summary = run_changing(&scenario, &policies("14d"), &changes, &mut retries).unwrap();
    assert_eq!(reasons(&summary), [["max_age"], ["max_age"]]);
    let last = 119 * MINUTE;
    let in_time = |at: &Duration| (last - MINUTE / 10..last + MINUTE / 10).contains(at);
    assert!(retries.0.len() == 20 && retries.0.iter().all(in_time), "{:?}", retries.0);
}

/// Very different values of `POLICIES` for the two functions. In some, `orders` matches its own name, in others a
/// pattern.
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
    (0..500u64).into_par_iter().for_each(|seed| {
        let entry = |salt: u64| ENTRIES[(seed / salt) as usize % ENTRIES.len()];
        let hide_up_to = ["0", "20", "always"][(seed / 3) as usize % 3];
        // Without jitter a policy gives one due time, so that no retry may come before it.
        let jitter = ["none", "full"][(seed / 11) as usize % 2];
        let policies = |entry| {
            let long = [("MAX_RETRIES", "185"), ("BASE_BACKOFF", "1"), ("MAX_BACKOFF", "43170")];
            read(
                &[&[("POLICIES", entry), ("JITTER", jitter), ("HIDE_UP_TO", hide_up_to)], &long[..]].concat(),
            )
        };
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
            operators: Script::chaos(seed, duration).operators(),
            ..two_functions()
        };
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let change = |at, salt| PolicyChange { at, policies: policies(entry(salt)) };
        let changes = [change(minutes(20 + seed % 60), 8), change(minutes(100 + seed % 200), 64)];
        if let Err(error) = run_changing(&scenario, &policies(entry(1)), &changes, &mut ()) {
            panic!("seed {seed}: {error}");
        }
    });
}
