//! The model of everything around the handler: the retry queue and Lambda.
//!
//! No path returns to an earlier state: each step raises a receive count, ends something, or moves the clock.

use std::fmt;
use std::time::Duration;

use comeback_engine::{Policy, Settings, Timestamp};
use serde_json::value::RawValue;
use stateright::{Model, Property};

use crate::account::queue::{Message, Queue};
use crate::account::{Batch, Call, Invoke, World};
use crate::support::*;

/// An error type that the policy lists as not retryable.
pub(super) const FATAL: &str = "Fatal";
/// A function that `TARGET_FUNCTIONS` does not allow.
pub(super) const PAYMENTS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:payments:$LATEST";
const QUEUE_VISIBILITY: Duration = Duration::from_secs(1_230);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    now: Timestamp,
    queue: Queue<Failed>,
    /// Received messages that the handler has not handled yet.
    deliveries: Vec<Message<Failed>>,
    invocations: Vec<Invocation>,
    /// For each event, how often it has succeeded and how often it has been dead-lettered.
    ends: Vec<(u8, u8)>,
    faults: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Failed {
    event: usize,
    /// True if the event's error is not retryable under the policy.
    for_good: bool,
}

/// A retry that Lambda has accepted but not run yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Invocation {
    after: Failed,
    function: String,
    payload: String,
    accepted: Timestamp,
    /// The time of the first receive of the message that led to this retry.
    first_receive: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum InvocationEnd {
    Succeeds,
    Fails,
    FailsForGood,
}

/// A fault in the handling of one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    /// The pollers are throttled, or the process crashes before its first call.
    NeverHandled,
    /// The process crashes after its calls, so the message stays in the queue.
    DiesAfterwards,
    HideFails,
    InvokeFails,
    InvokeAnswerLost,
    SendFails,
    SendAnswerLost,
}

impl Fault {
    const ALL: [Self; 7] = [
        Self::NeverHandled,
        Self::DiesAfterwards,
        Self::HideFails,
        Self::InvokeFails,
        Self::InvokeAnswerLost,
        Self::SendFails,
        Self::SendAnswerLost,
    ];

    fn struck(self, calls: &[Call]) -> bool {
        calls.iter().any(|call| match self {
            Self::NeverHandled => false,
            Self::DiesAfterwards => true,
            Self::HideFails => matches!(call, Call::Hide(_)),
            Self::InvokeFails | Self::InvokeAnswerLost => matches!(call, Call::Invoke(..)),
            Self::SendFails | Self::SendAnswerLost => matches!(call, Call::Send(_)),
        })
    }

    fn account(fault: Option<Self>) -> World<'static> {
        let is = move |it| fault == Some(it);
        World {
            hide: Box::new(move || if is(Self::HideFails) { Batch::Fails } else { Batch::Works }),
            invoke: Box::new(move || match fault {
                Some(Self::InvokeFails) => Invoke::Later,
                Some(Self::InvokeAnswerLost) => Invoke::AnswerLost,
                _ => Invoke::Works,
            }),
            send: Box::new(move || match fault {
                Some(Self::SendFails) => Batch::Fails,
                Some(Self::SendAnswerLost) => Batch::AnswerLost,
                _ => Batch::Works,
            }),
            ..World::default()
        }
    }
}

impl State {
    fn is_settled(&self) -> bool {
        self.queue.messages().is_empty() && self.deliveries.is_empty() && self.invocations.is_empty()
    }

    /// Returns a state with one failed event for each function.
    fn after_failures_of(functions: &[&str], faults: u8) -> Self {
        let mut state = Self {
            now: SENT,
            queue: Queue::new(QUEUE_VISIBILITY),
            deliveries: vec![],
            invocations: vec![],
            ends: vec![(0, 0); functions.len()],
            faults,
        };
        for (event, function) in functions.iter().enumerate() {
            state
                .fail(Failed { event, for_good: false }, &body(&payload_of(event)).replace(TARGET, function));
        }
        state
    }

    /// Lambda sends the record of a failure to the retry queue.
    fn fail(&mut self, failed: Failed, body: &str) {
        let body = replaced(body, "2026-09-14T15:46:54.145Z", &self.now.to_string());
        self.queue.send(self.now, body, failed);
    }

    /// Handles a batch that contains only this message. Returns false if the fault did not occur.
    fn handle(&mut self, policy: &Policy, message: &Message<Failed>, fault: Option<Fault>) -> bool {
        let (account, record) = (Fault::account(fault), message.record());
        let report = account.handle(std::slice::from_ref(&record), policy, self.now);
        let calls = account.calls.borrow();
        if fault.is_some_and(|fault| !fault.struck(&calls)) {
            return false;
        }
        for call in calls.iter() {
            match call {
                Call::Hide(entries) if fault != Some(Fault::HideFails) => {
                    for (handle, secs) in entries {
                        self.queue.hide(self.now, handle, Duration::from_secs(*secs));
                    }
                }
                Call::Invoke(function, payload) if fault != Some(Fault::InvokeFails) => {
                    self.invocations.push(Invocation {
                        after: message.carried.clone(),
                        function: function.clone(),
                        payload: payload.clone(),
                        accepted: self.now,
                        first_receive: record.first_receive,
                    });
                }
                _ => {}
            }
        }
        self.ends[message.carried.event].1 += u8::from(!account.sent.borrow().is_empty());
        let is_kept = report.batch_item_failures().next().is_some();
        if !is_kept && fault != Some(Fault::DiesAfterwards) {
            self.queue.delete(&record.receipt_handle);
        }
        true
    }

    fn run(&mut self, invocation: Invocation, end: InvocationEnd) {
        let Invocation { after: Failed { event, .. }, function, payload, .. } = invocation;
        let record = body(&payload).replace(TARGET, &function);
        match end {
            InvocationEnd::Succeeds => self.ends[event].0 += 1,
            InvocationEnd::Fails => self.fail(Failed { event, for_good: false }, &record),
            InvocationEnd::FailsForGood => {
                self.fail(Failed { event, for_good: true }, &replaced(&record, "Timeout", FATAL));
            }
        }
    }
}

/// A payload that JSON parsers tend to change.
fn payload_of(event: usize) -> String {
    format!(r#"{{ "event": {event}, "n": 1E400 }}"#)
}

/// Events that failed once, and the faults that may follow.
#[derive(Clone, Debug)]
pub(super) struct Protocol {
    pub(super) policy: Policy,
    /// The functions whose events failed.
    pub(super) failed: Vec<&'static str>,
    pub(super) faults: u8,
    /// The length of an outage, during which pollers and Lambda do nothing.
    pub(super) outage: Duration,
}

/// One step of the model. Numbers are indices into the state's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Receive(usize),
    /// The queue delivers a hidden message, as standard queues do now and then.
    ReceiveDuplicate(usize),
    Handle(usize, Option<Fault>),
    Run(usize, InvocationEnd),
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
        for (place, message) in state.queue.messages().iter().enumerate() {
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
            actions.extend(
                [InvocationEnd::Succeeds, InvocationEnd::Fails, InvocationEnd::FailsForGood]
                    .map(|end| Action::Run(place, end)),
            );
        }
        let busy = actions.iter().any(|action| !matches!(action, Action::ReceiveDuplicate(_)));
        if busy && faulty {
            actions.push(Action::Outage);
        }
        if !busy && !state.queue.messages().is_empty() {
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
            Action::Receive(place) | Action::ReceiveDuplicate(place) => {
                state.deliveries.push(state.queue.receive(state.now, place));
            }
            Action::Handle(place, fault) => {
                let message = state.deliveries.remove(place);
                if fault != Some(Fault::NeverHandled) && !state.handle(&self.policy, &message, fault) {
                    return None;
                }
            }
            Action::Run(place, end) => {
                let invocation = state.invocations.remove(place);
                state.run(invocation, end);
            }
            Action::WaitForVisible => state.now = state.queue.next_visible()?,
            Action::Outage => state.now = state.now.saturating_add(self.outage),
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
        state.queue.messages().iter().all(|message| message.receive_count as usize <= most)
    }),
    ("no retry over MAX_RETRIES", |model, state| {
        retries(state).all(|(retry, _)| retry <= model.policy.settings().max_retries)
    }),
    ("no retry after MAX_AGE", |model, state| {
        let last = after(T0, model.policy.settings().max_age * 1_000);
        state.invocations.iter().all(|invocation| invocation.accepted <= last)
    }),
    (
        "no retry before BASE_BACKOFF has passed since the first receive, or MAX_AGE is nearly over",
        |model, state| {
            let &Settings { base_backoff, max_age, .. } = model.policy.settings();
            let last_retry = after(T0, max_age * 1_000 - (max_age * 100).min(60_000));
            let earliest = |it: &Invocation| after(it.first_receive, base_backoff * 1_000).min(last_retry);
            state.invocations.iter().all(|it| it.accepted >= earliest(it))
        },
    ),
    ("only an allowed function is invoked", |_, state| {
        state.invocations.iter().all(|invocation| invocation.function == TARGET)
    }),
    ("no retry after an error that is never retried", |_, state| {
        state.invocations.iter().all(|invocation| !invocation.after.for_good)
    }),
    ("the payload's bytes do not change", |_, state| {
        let mut events = state.invocations.iter().map(|invocation| invocation.after.event);
        retries(state).all(|(_, payload)| Some(payload) == events.next().map(payload_of))
    }),
];

/// Returns the number of copies of an event: messages in the queue, accepted retries, successes and dead-letters.
fn copies(state: &State, event: usize) -> usize {
    let (successes, dead_letters) = state.ends[event];
    let waiting = state.queue.messages().iter().filter(|message| message.carried.event == event).count();
    let running = state.invocations.iter().filter(|invocation| invocation.after.event == event).count();
    waiting + running + usize::from(successes) + usize::from(dead_letters)
}

fn faults_struck(model: &Protocol, state: &State) -> usize {
    usize::from(model.faults - state.faults)
}

/// Attempt number and payload of each retry in progress.
fn retries(state: &State) -> impl Iterator<Item = (u64, String)> {
    state.invocations.iter().map(|Invocation { payload, .. }| {
        let event: &RawValue = serde_json::from_str(payload).expect("a retry's payload is JSON");
        let opened = comeback_envelope::open(event).expect("a retry can be opened by its target");
        (opened.attempt(), opened.payload.get().to_owned())
    })
}
