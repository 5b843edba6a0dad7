//! The handler's ports on the simulated world. Each call is answered at once, at the moment the
//! world is at: the end of the handler's run time. A handler that has died makes no more.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::task::Poll;

use comeback_engine::{
    CallFailure, DeadLetter, DeadLetterQueue, InvokeFailure, RetryQueue, Target, Timestamp, VisibilityChange,
};

use crate::world::World;

pub(crate) struct SimulatedAws(pub(crate) RefCell<World>);

impl SimulatedAws {
    /// Resolves once the virtual clock is there.
    pub(crate) fn until(&self, moment: Timestamp) -> impl Future<Output = ()> {
        poll_fn(move |_| if self.0.borrow().now >= moment { Poll::Ready(()) } else { Poll::Pending })
    }

    /// Resolves for as many calls as the handler lives for, and never again.
    fn alive(&self) -> impl Future<Output = ()> {
        poll_fn(|_| {
            let world = &mut *self.0.borrow_mut();
            let calls_left =
                &mut world.handling.as_mut().expect("BUG: calls come from the handler").calls_left;
            match calls_left.checked_sub(1) {
                Some(left) => {
                    *calls_left = left;
                    Poll::Ready(())
                }
                None => Poll::Pending,
            }
        })
    }

    /// One call to this world. A panic in it is ours; the handler takes it for the call's, so that it
    /// must be told from here.
    async fn call<T>(&self, call: impl FnOnce(&mut World) -> T) -> T {
        self.alive().await;
        let world = &mut *self.0.borrow_mut();
        world.in_call = true;
        let answer = call(world);
        world.in_call = false;
        answer
    }
}

impl RetryQueue for SimulatedAws {
    async fn change_visibility(&self, entries: &[VisibilityChange<'_>]) -> Vec<Result<(), CallFailure>> {
        let answers = self.call(|world| world.change_visibility_batch(entries)).await;
        answers.unwrap_or_else(|failure| vec![Err(failure); entries.len()])
    }
}

impl Target for SimulatedAws {
    async fn invoke(&self, function_arn: &str, payload: String) -> Result<(), InvokeFailure> {
        self.call(|world| world.invoke(function_arn, payload)).await
    }
}

impl DeadLetterQueue for SimulatedAws {
    async fn send(&self, messages: &[DeadLetter]) -> Vec<Result<(), CallFailure>> {
        let answers = self.call(|world| world.send_message_batch(messages)).await;
        answers.unwrap_or_else(|failure| vec![Err(failure); messages.len()])
    }
}
