//! The retry handler of the model: `Environment::handle` itself, with an account that does what a fault says.

use comeback_engine::{Policy, Record, Settings, Timestamp};

use crate::fakes::{Batch, Call, Invoke, World};

/// Not on the allow-list.
pub(super) const PAYMENTS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:payments:$LATEST";

/// What goes wrong while a message is in the handler's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    /// Pollers are throttled, or the process dies first: only the receive count has risen.
    NeverHandled,
    /// It dies once its calls are made: the queue never hears that the message is settled.
    DiesAfterwards,
    HideFails,
    InvokeFails,
    InvokeAnswerLost,
    SendFails,
    SendAnswerLost,
}

impl Fault {
    pub(super) const ALL: [Self; 7] = [
        Self::NeverHandled,
        Self::DiesAfterwards,
        Self::HideFails,
        Self::InvokeFails,
        Self::InvokeAnswerLost,
        Self::SendFails,
        Self::SendAnswerLost,
    ];

    /// Whether there was anything for it to strike.
    fn struck(self, calls: &[Call]) -> bool {
        calls.iter().any(|call| match self {
            Self::NeverHandled => false,
            Self::DiesAfterwards => true,
            Self::HideFails => matches!(call, Call::Hide(_)),
            Self::InvokeFails | Self::InvokeAnswerLost => matches!(call, Call::Invoke(..)),
            Self::SendFails | Self::SendAnswerLost => matches!(call, Call::Send(_)),
        })
    }
}

/// What came of a message.
#[derive(Debug)]
pub(super) struct Performed {
    /// Seconds of the visibility call that worked.
    pub(super) hidden: Option<u64>,
    /// Function and payload of the invoke that was accepted.
    pub(super) invoked: Option<(String, String)>,
    pub(super) dead_lettered: bool,
    /// The response lets SQS delete the message.
    pub(super) settled: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Handler {
    pub(super) settings: Settings,
    policy: Policy,
}

impl Handler {
    pub(super) fn new(settings: Settings) -> Self {
        Self { policy: Policy::new(settings.clone()).expect("the model's settings are valid"), settings }
    }

    /// Handles a batch of one; `None` if the fault had nothing to strike.
    pub(super) fn handle(&self, record: Record, now: Timestamp, fault: Option<Fault>) -> Option<Performed> {
        let is = |it| fault == Some(it);
        let world = World {
            hide: Box::new(|| if is(Fault::HideFails) { Batch::Fails } else { Batch::Works }),
            invoke: Box::new(|| match fault {
                Some(Fault::InvokeFails) => Invoke::Later,
                Some(Fault::InvokeAnswerLost) => Invoke::AnswerLost,
                _ => Invoke::Works,
            }),
            send: Box::new(|| match fault {
                Some(Fault::SendFails) => Batch::Fails,
                Some(Fault::SendAnswerLost) => Batch::AnswerLost,
                _ => Batch::Works,
            }),
            ..World::default()
        };
        let records = [record];
        let report = world.handle(&records, &self.policy, now);
        let calls = world.calls.borrow();
        if fault.is_some_and(|fault| !fault.struck(&calls)) {
            return None;
        }
        let kept = report.batch_item_failures().next().is_some();
        let hidden = calls.iter().find_map(|call| match call {
            Call::Hide(entries) if !is(Fault::HideFails) => Some(entries[0].1),
            _ => None,
        });
        let invoked = calls.iter().find_map(|call| match call {
            Call::Invoke(function, payload) if !world.invoked.borrow().is_empty() => {
                Some((function.clone(), payload.clone()))
            }
            _ => None,
        });
        let dead_lettered = !world.sent.borrow().is_empty();
        Some(Performed { hidden, invoked, dead_lettered, settled: !kept && !is(Fault::DiesAfterwards) })
    }
}
