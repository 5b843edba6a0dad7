//! The handler's ports on the simulated world. Each call is counted and answered at once, at the
//! moment the world is at: the end of the handler's run time. Faults will strike here.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::task::Poll;

use comeback_engine::{
    CallFailure, DeadLetter, DeadLetterQueue, InvokeFailure, ReasonCode, RetryQueue, Target, Timestamp,
    VisibilityChange,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::calls::Operation;
use crate::payload;
use crate::scenario::TARGET_ARN;
use crate::world::World;

pub(crate) struct SimulatedAws(pub(crate) RefCell<World>);

impl SimulatedAws {
    /// Resolves once the virtual clock is there.
    pub(crate) fn until(&self, moment: Timestamp) -> impl Future<Output = ()> {
        poll_fn(move |_| if self.0.borrow().now >= moment { Poll::Ready(()) } else { Poll::Pending })
    }
}

impl RetryQueue for SimulatedAws {
    async fn change_visibility(&self, entries: &[VisibilityChange<'_>]) -> Vec<Result<(), CallFailure>> {
        let world = &mut *self.0.borrow_mut();
        world.calls.add(Operation::ChangeMessageVisibilityBatch, 1);
        let (now, agenda) = (world.now, &mut world.agenda);
        entries
            .iter()
            .map(|entry| {
                world
                    .queue
                    .change_visibility(now, agenda, entry.receipt_handle, entry.visibility_timeout)
                    .map_err(|error| CallFailure { cause: error.to_string(), remedy: None })
            })
            .collect()
    }
}

impl Target for SimulatedAws {
    async fn invoke(&self, function_arn: &str, payload: String) -> Result<(), InvokeFailure> {
        let function = function_arn.strip_suffix(":$LATEST").unwrap_or(function_arn);
        assert_eq!(function, TARGET_ARN, "BUG: another function than the record's was invoked");
        let mut world = self.0.borrow_mut();
        world.calls.add(Operation::InvokeTarget, 1);
        world.retry(payload);
        Ok(())
    }
}

impl DeadLetterQueue for SimulatedAws {
    async fn send(&self, messages: &[DeadLetter]) -> Vec<Result<(), CallFailure>> {
        let mut world = self.0.borrow_mut();
        world.calls.add(Operation::SendMessageBatch, 1);
        for message in messages {
            world.dead_letter(event_of(message), reason_of(message));
        }
        vec![Ok(()); messages.len()]
    }
}

/// What an operator filters by.
fn reason_of(message: &DeadLetter) -> &'static str {
    let reason = message.attributes.iter().find(|attribute| attribute.name == "Reason");
    ReasonCode::ALL
        .map(ReasonCode::name)
        .into_iter()
        .find(|name| reason.is_some_and(|reason| reason.value == *name))
        .expect("BUG: a dead-letter without its reason")
}

fn event_of(message: &DeadLetter) -> usize {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        payload: &'a RawValue,
    }
    let body: Body<'_> = serde_json::from_str(&message.body).expect("BUG: a dead-letter without its payload");
    let event = payload::event_of(body.payload.get()).expect("BUG: a dead-letter of another payload");
    let mut expected = String::new();
    payload::write(event, &mut expected);
    assert_eq!(body.payload.get(), expected, "BUG: the dead-letter of event {event} has another payload");
    event
}
