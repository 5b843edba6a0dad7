//! The world around the handler (SQS with its deliveries, Lambda with its invocations), the steps that may happen in it,
//! and what must hold in each of its states.
//!
//! Time only jumps to the next moment at which anything happens. No path of steps comes back to where it was: each raises
//! a receive count, ends a delivery or an invocation, or moves the clock.

use std::fmt;

use comeback_engine::{Record, Settings, Timestamp};
use serde_json::value::RawValue;
use stateright::{Model, Property};

use super::handler::{Fault, Handler, Performed};
use crate::support::*;

/// The type of an error that is never retried.
pub(super) const FATAL: &str = "Fatal";
/// The retry queue's own visibility timeout, in milliseconds.
const QUEUE_VISIBILITY: u64 = 1_230_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Milliseconds since the epoch, as all times here.
    pub(super) now: u64,
    pub(super) queue: Vec<Message>,
    /// Messages as the handler was given them.
    pub(super) deliveries: Vec<Message>,
    pub(super) invocations: Vec<Invocation>,
    /// How often each event ended: as a success, as a dead-letter.
    pub(super) ends: Vec<(u8, u8)>,
    /// Messages so far, for their ids.
    sent: u8,
    pub(super) faults: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Message {
    id: u8,
    pub(super) event: usize,
    fatal: bool,
    body: String,
    sent: u64,
    first_receive: Option<u64>,
    pub(super) receive_count: u32,
    pub(super) visible: u64,
}

/// A retry that Lambda has accepted and not run yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Invocation {
    pub(super) event: usize,
    pub(super) function: String,
    pub(super) payload: String,
    /// When it was accepted, and the message it comes from was first received.
    pub(super) accepted: u64,
    pub(super) first_receive: u64,
    /// The failure it follows was of the kind that is never retried.
    pub(super) after_fatal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    Succeeds,
    Fails,
    FailsForGood,
}

impl State {
    pub(super) fn is_settled(&self) -> bool {
        self.queue.is_empty() && self.deliveries.is_empty() && self.invocations.is_empty()
    }

    /// Each event has failed once, at the same moment.
    pub(super) fn after_failures_of(functions: &[&str], faults: u8) -> Self {
        let nothing = Self {
            now: SENT.as_millis(),
            queue: vec![],
            deliveries: vec![],
            invocations: vec![],
            ends: vec![(0, 0); functions.len()],
            sent: 0,
            faults,
        };
        functions.iter().enumerate().fold(nothing, |state, (event, function)| {
            state.send(event, &body(&payload_of(event)).replace(TARGET, function), false)
        })
    }

    fn send(mut self, event: usize, body: &str, fatal: bool) -> Self {
        let (id, sent) = (self.sent, self.now);
        let body = replaced(body, "2026-09-14T15:46:54.145Z", &Timestamp::from_millis(sent).to_string());
        let message =
            Message { id, event, fatal, body, sent, first_receive: None, receive_count: 0, visible: sent };
        self.queue.push(message);
        self.sent += 1;
        self
    }

    pub(super) fn receive(&mut self, place: usize) {
        let message = &mut self.queue[place];
        message.receive_count += 1;
        message.first_receive.get_or_insert(self.now);
        message.visible = self.now + QUEUE_VISIBILITY;
        self.deliveries.push(message.clone());
    }

    /// What a later receive made stale neither hides nor deletes the message.
    pub(super) fn perform(&mut self, delivered: &Message, performed: Performed) {
        let is_current = |message: &Message| {
            (message.id, message.receive_count) == (delivered.id, delivered.receive_count)
        };
        if let Some(secs) = performed.hidden {
            let hidden = self.queue.iter_mut().filter(|message| is_current(message));
            hidden.for_each(|message| message.visible = self.now + secs * 1_000);
        }
        if let Some((function, payload)) = performed.invoked {
            self.invocations.push(Invocation {
                event: delivered.event,
                function,
                payload,
                accepted: self.now,
                first_receive: delivered.first_receive.expect("BUG: it was received"),
                after_fatal: delivered.fatal,
            });
        }
        self.ends[delivered.event].1 += u8::from(performed.dead_lettered);
        if performed.settled {
            self.queue.retain(|message| !is_current(message));
        }
    }

    pub(super) fn run(mut self, invocation: &Invocation, end: End) -> Self {
        let record = body(&invocation.payload).replace(TARGET, &invocation.function);
        match end {
            End::Succeeds => {
                self.ends[invocation.event].0 += 1;
                self
            }
            End::Fails => self.send(invocation.event, &record, false),
            End::FailsForGood => self.send(invocation.event, &replaced(&record, "Timeout", FATAL), true),
        }
    }
}

impl Message {
    pub(super) fn record(&self) -> Record {
        Record {
            message_id: format!("m-{}", self.id),
            receipt_handle: format!("h-{}-{}", self.id, self.receive_count),
            body: self.body.clone(),
            receive_count: self.receive_count,
            sent: Timestamp::from_millis(self.sent),
            first_receive: Timestamp::from_millis(self.first_receive.expect("BUG: it was received")),
            moved: None,
            trace_header: None,
            attributes: Vec::new(),
        }
    }
}

/// A payload that JSON parsers like to change.
pub(super) fn payload_of(event: usize) -> String {
    format!(r#"{{ "event": {event}, "n": 1E400 }}"#)
}

/// What is checked: events that failed once, and so many faults at most.
#[derive(Clone, Debug)]
pub(super) struct Protocol {
    pub(super) handler: Handler,
    /// The functions whose events failed.
    pub(super) failed: Vec<&'static str>,
    pub(super) faults: u8,
    /// How long pollers and Lambda stand still in an outage, in milliseconds.
    pub(super) outage: u64,
}

/// One step. Numbers are places in the state's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Receive(usize),
    /// Standard queues deliver a hidden message now and then.
    ReceiveDuplicate(usize),
    Handle(usize, Option<Fault>),
    Run(usize, End),
    WaitForVisible,
    Outage,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Receive(_) => f.write_str("the message is received"),
            Self::ReceiveDuplicate(_) => f.write_str("the hidden message is delivered all the same"),
            Self::Handle(_, None) => f.write_str("the handler handles it"),
            Self::Handle(_, Some(fault)) => write!(f, "the handler handles it, but {fault:?}"),
            Self::Run(_, end) => write!(f, "the target {end:?}"),
            Self::WaitForVisible => f.write_str("time passes until the next message is visible"),
            Self::Outage => f.write_str("everything stands still"),
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::after_failures_of(&self.failed, self.faults)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let faulty = state.faults > 0;
        for (place, message) in state.queue.iter().enumerate() {
            if message.visible <= state.now {
                actions.push(Action::Receive(place));
            } else if faulty && message.receive_count > 0 {
                actions.push(Action::ReceiveDuplicate(place));
            }
        }
        for place in 0..state.deliveries.len() {
            actions.push(Action::Handle(place, None));
            let faults = Fault::ALL.into_iter().filter(|_| faulty);
            actions.extend(faults.map(|fault| Action::Handle(place, Some(fault))));
        }
        for place in 0..state.invocations.len() {
            actions.extend([End::Succeeds, End::Fails, End::FailsForGood].map(|end| Action::Run(place, end)));
        }
        let busy = actions.iter().any(|action| !matches!(action, Action::ReceiveDuplicate(_)));
        if busy && faulty {
            actions.push(Action::Outage);
        }
        if !busy && !state.queue.is_empty() {
            actions.push(Action::WaitForVisible);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        state.faults -= u8::from(matches!(
            action,
            Action::ReceiveDuplicate(_) | Action::Handle(_, Some(_)) | Action::Outage
        ));
        match action {
            Action::Receive(place) | Action::ReceiveDuplicate(place) => state.receive(place),
            Action::Handle(place, fault) => {
                let message = state.deliveries.remove(place);
                if fault != Some(Fault::NeverHandled) {
                    let now = Timestamp::from_millis(state.now);
                    let performed = self.handler.handle(message.record(), now, fault)?;
                    state.perform(&message, performed);
                }
            }
            Action::Run(place, end) => {
                let invocation = state.invocations.remove(place);
                state = state.run(&invocation, end);
            }
            Action::WaitForVisible => {
                state.now = state.queue.iter().map(|message| message.visible).min()?;
            }
            Action::Outage => state.now += self.outage,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = ALWAYS.map(|(name, condition)| Property::always(name, condition));
        let ends =
            Property::eventually("every event is settled in the end", |_, state: &State| state.is_settled());
        always.into_iter().chain([ends]).collect()
    }
}

type Condition = fn(&Protocol, &State) -> bool;

const ALWAYS: [(&str, Condition); 9] = [
    ("every event is waiting, running, done or dead-lettered", |_, state| {
        (0..state.ends.len()).all(|event| copies(state, event) > 0)
    }),
    ("an event has one copy, and at most twice as many after each fault", |model, state| {
        (0..state.ends.len()).all(|event| copies(state, event) <= 1 << faults_struck(model, state))
    }),
    ("a message is received twice, and once more for each fault", |model, state| {
        let most = 2 + faults_struck(model, state);
        state.queue.iter().all(|message| message.receive_count as usize <= most)
    }),
    ("no retry over MAX_RETRIES", |model, state| {
        retries(state).all(|(retry, _)| retry <= model.handler.settings.max_retries)
    }),
    ("no retry after MAX_AGE", |model, state| {
        let last = after(T0, model.handler.settings.max_age * 1_000).as_millis();
        state.invocations.iter().all(|invocation| invocation.accepted <= last)
    }),
    (
        "no retry before BASE_BACKOFF has passed since the first receive, or MAX_AGE is nearly over",
        |model, state| {
            let Settings { base_backoff, max_age, .. } = model.handler.settings;
            let last_retry = T0.as_millis() + max_age * 1_000 - (max_age * 100).min(60_000);
            let earliest = |it: &Invocation| (it.first_receive + base_backoff * 1_000).min(last_retry);
            state.invocations.iter().all(|it| it.accepted >= earliest(it))
        },
    ),
    ("only an allowed function is invoked", |_, state| {
        state.invocations.iter().all(|invocation| invocation.function == TARGET)
    }),
    ("no retry after an error that is never retried", |_, state| {
        state.invocations.iter().all(|invocation| !invocation.after_fatal)
    }),
    ("the payload's bytes do not change", |_, state| {
        let mut events = state.invocations.iter().map(|invocation| invocation.event);
        retries(state).all(|(_, payload)| Some(payload) == events.next().map(payload_of))
    }),
];

/// Where the event is or has ended; a delivery shows a message, not a copy of it.
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
