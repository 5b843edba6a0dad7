//! The steps: what may happen in a state, and what comes of it.
//!
//! Time only jumps to the next moment at which anything happens. No path of steps comes back to
//! where it was: each raises a receive count, ends a delivery or an invocation, or moves the clock.

use std::fmt;

use comeback_engine::Timestamp;
use stateright::{Model, Property};

use super::handler::{Fault, Handler};
use super::properties::properties;
use super::state::{End, State};

/// Not on the allow-list.
pub(super) const PAYMENTS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:payments:$LATEST";

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
        properties()
    }
}
