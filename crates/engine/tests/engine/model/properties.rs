//! What must hold in each state of the model.

use comeback_engine::Settings;
use serde_json::value::RawValue;
use stateright::Property;

use super::protocol::Protocol;
use super::state::{Invocation, State, payload_of};
use crate::support::*;

pub(super) const NOTHING_IS_LOST: &str = "every event is waiting, running, done or dead-lettered";
pub(super) const COPIES_HAVE_A_FAULT: &str =
    "an event has one copy, and at most twice as many after each fault";
pub(super) const RECEIVES_ARE_BOUNDED: &str = "a message is received twice, and once more for each fault";
pub(super) const RETRIES_ARE_BOUNDED: &str = "no retry over MAX_RETRIES";
pub(super) const AGE_IS_BOUNDED: &str = "no retry after MAX_AGE";
pub(super) const BACKOFF_IS_SERVED: &str =
    "no retry before BASE_BACKOFF has passed since the first receive, or MAX_AGE is nearly over";
pub(super) const ALLOWED_ONLY: &str = "only an allowed function is invoked";
pub(super) const FATAL_IS_FINAL: &str = "no retry after an error that is never retried";
pub(super) const PAYLOAD_IS_VERBATIM: &str = "the payload's bytes do not change";
pub(super) const IT_ENDS: &str = "every event is settled in the end";

type Condition = fn(&Protocol, &State) -> bool;

const ALWAYS: [(&str, Condition); 9] = [
    (NOTHING_IS_LOST, |_, state| (0..state.ends.len()).all(|event| copies(state, event) > 0)),
    (COPIES_HAVE_A_FAULT, |model, state| {
        (0..state.ends.len()).all(|event| copies(state, event) <= 1 << faults_struck(model, state))
    }),
    (RECEIVES_ARE_BOUNDED, |model, state| {
        let most = 2 + faults_struck(model, state);
        state.queue.iter().all(|message| message.receive_count as usize <= most)
    }),
    (RETRIES_ARE_BOUNDED, |model, state| {
        retries(state).all(|(retry, _)| retry <= model.handler.settings.max_retries)
    }),
    (AGE_IS_BOUNDED, |model, state| {
        let last = after(T0, model.handler.settings.max_age * 1_000).as_millis();
        state.invocations.iter().all(|invocation| invocation.accepted <= last)
    }),
    (BACKOFF_IS_SERVED, |model, state| {
        let Settings { base_backoff, max_age, .. } = model.handler.settings;
        let last_retry = T0.as_millis() + max_age * 1_000 - (max_age * 100).min(60_000);
        let earliest = |it: &Invocation| (it.first_receive + base_backoff * 1_000).min(last_retry);
        state.invocations.iter().all(|it| it.accepted >= earliest(it))
    }),
    (ALLOWED_ONLY, |_, state| state.invocations.iter().all(|invocation| invocation.function == TARGET)),
    (FATAL_IS_FINAL, |_, state| state.invocations.iter().all(|invocation| !invocation.after_fatal)),
    (PAYLOAD_IS_VERBATIM, |_, state| {
        let mut events = state.invocations.iter().map(|invocation| invocation.event);
        retries(state).all(|(_, payload)| Some(payload) == events.next().map(payload_of))
    }),
];

pub(super) fn properties() -> Vec<Property<Protocol>> {
    let always = ALWAYS.map(|(name, condition)| Property::always(name, condition));
    let ends = Property::eventually(IT_ENDS, |_, state: &State| state.is_settled());
    always.into_iter().chain([ends]).collect()
}

/// Where the event is or has ended; a delivery is a look at a message, not a copy of it.
fn copies(state: &State, event: usize) -> usize {
    let (successes, dead_letters) = state.ends[event];
    let waiting = state.queue.iter().filter(|message| message.event == event).count();
    let running = state.invocations.iter().filter(|invocation| invocation.event == event).count();
    waiting + running + usize::from(successes) + usize::from(dead_letters)
}

fn faults_struck(model: &Protocol, state: &State) -> usize {
    usize::from(model.faults - state.faults)
}

/// The number of each retry under way, and the payload in its envelope.
fn retries(state: &State) -> impl Iterator<Item = (u64, String)> {
    state.invocations.iter().map(|Invocation { payload, .. }| {
        let event: &RawValue = serde_json::from_str(payload).expect("a retry's payload is JSON");
        let opened = comeback_envelope::open(event).expect("a retry can be opened by its target");
        (opened.attempt(), opened.payload.get().to_owned())
    })
}
