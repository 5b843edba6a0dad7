//! Model-checks the handling of one event: every order of steps and outages, with a bounded number of faults.
//!
//! Each step of the handler calls the real `Environment::handle` at a virtual time.

mod protocol;

use std::time::Duration;

use comeback_engine::{Jitter, Policy, Settings};
use stateright::{Checker, HasDiscoveries, Model};

use self::protocol::*;
use crate::support::*;

fn protocol(change: impl FnOnce(&mut Settings)) -> Protocol {
    let mut settings = Settings {
        max_retries: 2,
        base_backoff: 60,
        max_backoff: 120,
        non_retryable_errors: vec![FATAL.into()],
        ..settings()
    };
    change(&mut settings);
    let policy = Policy::new(settings).expect("the model's settings are valid");
    Protocol { policy, failed: vec![TARGET], faults: 2, outage: Duration::from_secs(600) }
}

/// Allows two retries: one minute after the first failure, and two minutes after the second.
fn two_retries() -> Protocol {
    protocol(|_| {})
}

fn seven_minutes() -> Protocol {
    let protocol = protocol(|settings| (settings.max_retries, settings.max_age) = (185, 420));
    Protocol { outage: Duration::from_secs(200), ..protocol }
}

fn full_jitter() -> Protocol {
    protocol(|settings| {
        (settings.jitter, settings.base_backoff, settings.max_backoff) = (Jitter::Full, 1, 3_600);
    })
}

fn three_events() -> Protocol {
    let protocol = protocol(|settings| settings.max_retries = 1);
    Protocol { failed: vec![TARGET, TARGET, PAYMENTS], faults: 1, ..protocol }
}

#[track_caller]
fn assert_holds(name: &str, protocol: Protocol) {
    let checker = protocol.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!("{name}: {} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    if let Some((property, path)) = checker.discoveries().into_iter().next() {
        let steps: Vec<String> = path.into_actions().iter().map(ToString::to_string).collect();
        panic!("{name}: violated: {property}\n  {}", steps.join("\n  "));
    }
    assert!(checker.unique_state_count() > 1_000, "too few states to prove anything");
}

#[test]
fn holds_until_max_retries() {
    assert_holds("two retries", two_retries());
}

#[test]
fn holds_until_max_age() {
    assert_holds("seven minutes", seven_minutes());
}

#[test]
fn holds_with_jitter() {
    assert_holds("full jitter", full_jitter());
}

#[test]
fn holds_for_three_events_one_forbidden() {
    assert_holds("three events", three_events());
}
