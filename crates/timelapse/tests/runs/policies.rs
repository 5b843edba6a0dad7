//! Simulated runs in which each function has its own policy, or in which the policies change.

use std::time::Duration;

use comeback_engine::Policies;
use comeback_timelapse::{
    EventNumber, PolicyChange, Scenario, SimulatedTarget, Summary, TargetError, Watcher, run,
};

use super::{HOUR, MINUTE};

fn target(name: &str, outage: Option<Duration>) -> SimulatedTarget {
    SimulatedTarget { name: name.into(), share: 1.0, outage }
}

fn two_functions() -> Scenario {
    let targets = vec![target("orders", None), target("export-eu", Some(6 * HOUR))];
    Scenario { events: 60, targets, ..Scenario::default() }
}

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
    let changes = vec![PolicyChange { at: 4 * HOUR, policies: short }];
    let summary = run(&Scenario { changes, ..two_functions() }, &long, &mut ()).unwrap();
    assert_eq!(reasons(&summary), [vec![], vec!["max_age"]]);
    let unchanged = run(&two_functions(), &long, &mut ()).unwrap();
    assert_eq!(reasons(&unchanged), [vec![], vec![]] as [Vec<&str>; 2]);
}

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
    let changes = vec![PolicyChange { at: HOUR, policies: policies("2h") }];
    let scenario = Scenario { events: 20, arrival_spread: Duration::ZERO, changes, ..two_functions() };
    let mut retries = Retries::default();
    let summary = run(&scenario, &policies("14d"), &mut retries).unwrap();
    assert_eq!(reasons(&summary), [["max_age"], ["max_age"]]);
    let last = 119 * MINUTE;
    let in_time = |at: &Duration| (last - MINUTE / 10..last + MINUTE / 10).contains(at);
    assert!(retries.0.len() == 20 && retries.0.iter().all(in_time), "{:?}", retries.0);
}
