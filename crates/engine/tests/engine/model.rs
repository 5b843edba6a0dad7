//! One event's protocol, model-checked: the queue, the handler, the target and the dead-letter queue,
//! in every order of steps, faults and outages that a bound on the faults allows.
//!
//! The handler is not modelled: each of its steps is a call of `Environment::handle`, and so of `decide`,
//! on a real record at a virtual time. The checker stops when it has seen every state, so that an end
//! to each path is part of what it proves.

mod handler;
mod protocol;

use comeback_engine::{Jitter, Settings};
use stateright::{Checker, HasDiscoveries, Model, Path};

use self::handler::{Handler, PAYMENTS, Rule};
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
    Protocol { handler: Handler::new(settings), failed: vec![TARGET], faults: 2, outage: 600_000 }
}

/// Two retries at most, one and two minutes after their failures.
fn two_retries() -> Protocol {
    protocol(|_| {})
}

/// As many retries as fit into seven minutes.
fn seven_minutes() -> Protocol {
    let protocol = protocol(|settings| (settings.max_retries, settings.max_age) = (185, 420));
    Protocol { outage: 200_000, ..protocol }
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
        panic!("{name}: not so: {property}\n  {}", steps(path).join("\n  "));
    }
    assert!(checker.unique_state_count() > 1_000, "too few states to prove anything");
}

/// The shortest way to break the property without the rule, of those with the fewest faults.
#[track_caller]
fn counterexample(protocol: &Protocol, rule: Rule, property: &'static str) -> Vec<String> {
    let handler = protocol.handler.without(rule);
    for (faults, depth) in (0..=protocol.faults).flat_map(|faults| (2..30).map(move |depth| (faults, depth)))
    {
        let protocol = Protocol { handler: handler.clone(), faults, ..protocol.clone() };
        let checker = protocol.checker().target_max_depth(depth).spawn_bfs().join();
        if let Some(path) = checker.discovery(property) {
            let steps = steps(path);
            println!("without {rule:?}, not so: {property}\n  {}", steps.join("\n  "));
            return steps;
        }
    }
    panic!("without {rule:?} still so: {property}");
}

fn steps(path: Path<State, Action>) -> Vec<String> {
    path.into_actions().iter().map(ToString::to_string).collect()
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
fn holds_for_three_events_of_which_one_is_forbidden() {
    assert_holds("three events", three_events());
}

#[test]
fn the_allow_list_is_needed() {
    counterexample(&three_events(), Rule::AllowList, ALLOWED_ONLY);
}

#[test]
fn non_retryable_errors_are_needed() {
    counterexample(&two_retries(), Rule::NonRetryable, FATAL_IS_FINAL);
}

#[test]
fn max_retries_is_needed() {
    counterexample(&two_retries(), Rule::MaxRetries, RETRIES_ARE_BOUNDED);
}

#[test]
fn max_age_is_needed() {
    counterexample(&seven_minutes(), Rule::MaxAge, AGE_IS_BOUNDED);
}

#[test]
fn one_draw_a_message_is_needed() {
    counterexample(&full_jitter(), Rule::OneDraw, RECEIVES_ARE_BOUNDED);
}

#[test]
fn deferring_on_the_first_receive_is_needed() {
    let steps = counterexample(&two_retries(), Rule::FirstReceive, BACKOFF_IS_SERVED);
    assert_eq!(steps, ["the message is received", "the handler handles it"]);
}

#[test]
fn serving_the_backoff_on_later_receives_is_needed() {
    counterexample(&two_retries(), Rule::LaterReceive, BACKOFF_IS_SERVED);
}

#[test]
fn keeping_what_is_deferred_is_needed() {
    let steps = counterexample(&two_retries(), Rule::DeferredIsKept, NOTHING_IS_LOST);
    assert_eq!(steps, ["the message is received", "the handler handles it"]);
}

#[test]
fn keeping_what_could_not_be_invoked_is_needed() {
    counterexample(&two_retries(), Rule::UninvokedIsKept, NOTHING_IS_LOST);
}

#[test]
fn keeping_what_could_not_be_dead_lettered_is_needed() {
    counterexample(&two_retries(), Rule::UnsentIsKept, NOTHING_IS_LOST);
}
