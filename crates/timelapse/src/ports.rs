//! The handler's ports on the simulated world, its deliveries made as on AWS. Each API call is counted
//! and answered at once, at the moment the world is at: the end of the handler's run time. Faults
//! will strike here.

use std::cell::RefCell;
use std::future::{Future, Ready, poll_fn, ready};
use std::task::Poll;
use std::time::Duration;

use comeback_delivery::limits::{Limits, SQS_RECEIPTS, SQS_SEND};
use comeback_delivery::{Answer, Cause, Fault, FaultKind, Retries, Sender, by_entry};
use comeback_engine::{
    CallFailure, DeadLetter, DeadLetterQueue, InvokeFailure, ReasonCode, RetryQueue, SqsBatchCalls, Target,
    Timestamp, VisibilityChange,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::calls::Operation;
use crate::payload;
use crate::scenario::TARGET_ARN;
use crate::world::World;

pub(crate) struct SimulatedAws(pub(crate) RefCell<World>, Retries);

impl SimulatedAws {
    pub(crate) fn new(world: World) -> Self {
        Self(RefCell::new(world), Retries::of(SqsBatchCalls::ceilings()))
    }

    /// Resolves once the virtual clock is there, with what the handler has waited from now on.
    pub(crate) fn until(&self, moment: Timestamp) -> impl Future<Output = ()> {
        self.0.borrow_mut().waited = Duration::ZERO;
        poll_fn(move |_| {
            let world = self.0.borrow();
            if world.now.saturating_add(world.waited) >= moment { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// The world stands still while the handler waits; only its deadline comes nearer.
    fn wait(&self, wait: Duration) -> Ready<()> {
        let waited = &mut self.0.borrow_mut().waited;
        *waited = waited.saturating_add(wait);
        ready(())
    }

    fn sender<O>(&self, operation: O) -> Sender<O, impl Fn(Duration) -> Ready<()>>
    where
        O: comeback_delivery::Operation,
    {
        Sender::over(operation, |wait| self.wait(wait)).retries(self.1.clone())
    }
}

/// As the handler delivers.
pub(crate) async fn deliver<O, F, S>(
    sender: Sender<O, S>,
    entries: impl Iterator<Item = O::Entry>,
    deadline: impl Future<Output = ()>,
) -> Vec<Result<(), CallFailure>>
where
    O: comeback_delivery::Operation,
    F: Future<Output = ()>,
    S: Fn(Duration) -> F,
{
    let outcomes = by_entry(sender.send_until(entries, deadline).await).into_iter();
    let failure = |cause: Cause| CallFailure { cause: cause.to_string(), remedy: None };
    outcomes.map(|outcome| outcome.map_err(failure)).collect()
}

impl RetryQueue for SimulatedAws {
    async fn change_visibility(
        &self,
        entries: &[VisibilityChange<'_>],
        deadline: impl Future<Output = ()>,
    ) -> Vec<Result<(), CallFailure>> {
        deliver(self.sender(ChangeVisibility(self)), entries.iter(), deadline).await
    }
}

/// `ChangeMessageVisibilityBatch` on the retry queue.
struct ChangeVisibility<'a>(&'a SimulatedAws);

impl<'a> comeback_delivery::Operation for ChangeVisibility<'a> {
    type Entry = &'a VisibilityChange<'a>;

    fn limits(&self) -> Limits {
        SQS_RECEIPTS
    }

    fn size(&self, change: &Self::Entry) -> usize {
        change.receipt_handle.len()
    }

    async fn call(&self, changes: &[&Self::Entry]) -> Result<Vec<Answer>, Fault> {
        let world = &mut *self.0.0.borrow_mut();
        world.calls.add(Operation::ChangeMessageVisibilityBatch, 1);
        let (now, agenda) = (world.now, &mut world.agenda);
        let queue = &mut world.queue;
        let answers = changes.iter().map(|change| {
            queue
                .change_visibility(now, agenda, change.receipt_handle, change.visibility_timeout)
                .map_err(|error| Fault::new(FaultKind::Refused, "", error.to_string()))
        });
        Ok(answers.collect())
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
    async fn send(
        &self,
        messages: &[DeadLetter],
        deadline: impl Future<Output = ()>,
    ) -> Vec<Result<(), CallFailure>> {
        deliver(self.sender(SendMessages(self)), messages.iter(), deadline).await
    }
}

/// `SendMessageBatch` to the dead-letter queue.
struct SendMessages<'a>(&'a SimulatedAws);

impl<'a> comeback_delivery::Operation for SendMessages<'a> {
    type Entry = &'a DeadLetter;

    fn limits(&self) -> Limits {
        SQS_SEND
    }

    fn size(&self, message: &Self::Entry) -> usize {
        message.size()
    }

    async fn call(&self, messages: &[&Self::Entry]) -> Result<Vec<Answer>, Fault> {
        let world = &mut *self.0.0.borrow_mut();
        world.calls.add(Operation::SendMessageBatch, 1);
        for message in messages {
            world.dead_letter(event_of(message), reason_of(message));
        }
        Ok(vec![Ok(()); messages.len()])
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::scenario::{START, Scenario};

    /// Each call is throttled.
    struct Throttled(RefCell<u32>);

    impl comeback_delivery::Operation for &Throttled {
        type Entry = ();

        fn limits(&self) -> Limits {
            SQS_RECEIPTS
        }

        fn size(&self, (): &()) -> usize {
            0
        }

        async fn call(&self, _: &[&()]) -> Result<Vec<Answer>, Fault> {
            *self.0.borrow_mut() += 1;
            Err(Fault::new(FaultKind::Throttled, "RequestThrottled", ""))
        }
    }

    #[test]
    fn a_refusal_of_the_queue_is_final_and_one_call() {
        let aws = SimulatedAws::new(World::new(Scenario::default()));
        let stale = VisibilityChange { receipt_handle: "0.0", visibility_timeout: Duration::from_secs(1) };
        let answers = aws.change_visibility(&[stale; 12], std::future::pending()).now_or_never().unwrap();
        assert!(answers.iter().all(|it| {
            it.as_ref().is_err_and(|failure| failure.cause.starts_with("refused: ReceiptHandleIsInvalid"))
        }));
        let calls = aws.0.borrow().calls.of(Operation::ChangeMessageVisibilityBatch);
        assert_eq!((answers.len(), calls), (12, 2));
    }

    #[test]
    fn deliveries_climb_the_handlers_ladder_until_the_deadline() {
        let aws = SimulatedAws::new(World::new(Scenario::default()));
        for (millis, calls) in [(0, 0), (100, 1), (101, 2), (400, 2), (401, 3), (9_999, 4)] {
            let operation = Throttled(RefCell::new(0));
            let deadline = aws.until(START.saturating_add(Duration::from_millis(millis)));
            let answers = deliver(aws.sender(&operation), [()].into_iter(), deadline).now_or_never();
            assert!(answers.unwrap()[0].is_err());
            assert_eq!(*operation.0.borrow(), calls, "within {millis} ms");
        }
    }
}
