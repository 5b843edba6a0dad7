//! One call each, with what it does to the queues.

use std::time::Duration;

use comeback_delivery::limits::{Limits, SQS_RECEIPTS, SQS_SEND};
use comeback_delivery::sqs::Message;
use comeback_delivery::{Answer, Operation, ServiceError};
use send_wrapper::SendWrapper;

use super::{Simulated, World};
use crate::dead::queue::Destination;

/// `SendMessageBatch`.
pub(super) struct Send<'s>(pub(super) &'s Simulated, pub(super) Destination);

/// `DeleteMessageBatch`.
pub(super) struct Delete<'s>(pub(super) &'s Simulated);

/// `ChangeMessageVisibilityBatch`, to nothing.
pub(super) struct GiveBack<'s>(pub(super) &'s Simulated);

impl Operation for Send<'_> {
    type Entry = Message;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_SEND
    }

    fn size(&self, message: &Message) -> usize {
        message.body.len()
    }

    fn call(
        &self,
        messages: &[&Message],
    ) -> impl Future<Output = Result<Vec<Answer>, ServiceError>> + std::marker::Send {
        let Self(simulated, to) = self;
        let effect = move |world: &mut World, message: &Message| {
            match to {
                Destination::RetryQueue => world.retry.send(&message.body),
                Destination::DeadLetterQueue => {
                    let id = world.dead.send(&message.body);
                    world.attributes.insert(id.clone(), message.attributes.clone());
                    id
                }
            };
            message.body.clone()
        };
        SendWrapper::new(simulated.call("send", messages, effect))
    }
}

impl Operation for Delete<'_> {
    type Entry = String;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_RECEIPTS
    }

    fn size(&self, _: &String) -> usize {
        0
    }

    fn call(
        &self,
        handles: &[&String],
    ) -> impl Future<Output = Result<Vec<Answer>, ServiceError>> + std::marker::Send {
        let effect = |world: &mut World, handle: &String| {
            world.dead.delete(handle);
            String::new()
        };
        SendWrapper::new(self.0.call("delete", handles, effect))
    }
}

impl Operation for GiveBack<'_> {
    type Entry = String;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_RECEIPTS
    }

    fn size(&self, _: &String) -> usize {
        0
    }

    fn call(
        &self,
        handles: &[&String],
    ) -> impl Future<Output = Result<Vec<Answer>, ServiceError>> + std::marker::Send {
        // A handle that a later receive made stale is refused; so is that of a visible letter.
        let effect = |world: &mut World, handle: &String| {
            let _ = world.dead.change_visibility(handle, Duration::ZERO);
            String::new()
        };
        SendWrapper::new(self.0.call("give_back", handles, effect))
    }
}
