//! The simulated account as the handler sees it; its deliveries are made as on AWS. Each API call is
//! answered at once, at the world's present moment: the end of the handler's run time. A handler that
//! has died makes no more calls.

use std::cell::RefCell;
use std::future::{Future, Pending, Ready, pending, ready};
use std::pin::Pin;
use std::time::Duration;

use comeback_delivery::limits::{Limits, SQS_RECEIPTS, SQS_SEND};
use comeback_delivery::{Answer, Cause, Operation, Retries, Sender, ServiceError, by_entry};
use comeback_engine::{
    Account, CallFailure, DeadLetter, GivenUp, InvokeFailure, Look, Move, MoveFailure, PAUSES_TIMEOUT,
    Record, SqsBatchCalls, Timestamp, VisibilityChange,
};

use futures_util::future::Either;

use super::World;
use super::api::requests::CheckedDeadLetter;

/// What is answered to a batch.
pub(crate) type Answers = Result<Vec<Answer>, ServiceError>;

pub(crate) struct SimulatedAccount(pub(crate) RefCell<World>, Retries);

impl SimulatedAccount {
    pub(crate) fn new(world: World) -> Self {
        Self(RefCell::new(world), Retries::of(SqsBatchCalls::ceilings()))
    }

    /// A deadline: whether the virtual clock has reached this moment, with the time that the handler waits
    /// from now on.
    pub(crate) fn past_deadline(&self, moment: Timestamp) -> impl Fn() -> bool {
        self.0.borrow_mut().waited = Duration::ZERO;
        move || {
            let world = self.0.borrow();
            world.now.saturating_add(world.waited) >= moment
        }
    }

    /// The world stands still while the handler waits; only its deadline comes nearer.
    fn wait(&self, wait: Duration) -> Ready<()> {
        let waited = &mut self.0.borrow_mut().waited;
        *waited = waited.saturating_add(wait);
        ready(())
    }

    fn sender<O: Operation>(&self, operation: O) -> Sender<O, impl Fn(Duration) -> Ready<()>> {
        Sender::over(operation, |wait| self.wait(wait)).retries(self.1.clone())
    }

    /// Whether the handler lives for one more call.
    fn lives(&self) -> bool {
        let world = &mut *self.0.borrow_mut();
        let calls_left = &mut world.handling.as_mut().expect("BUG: calls come from the handler").calls_left;
        let left = calls_left.checked_sub(1);
        *calls_left = left.unwrap_or_default();
        left.is_some()
    }

    /// One API call to this world. It is never answered if the handler has died.
    fn call<T>(&self, call: impl FnOnce(&mut World) -> T) -> Either<Ready<T>, Pending<T>> {
        if self.lives() { Either::Left(ready(self.world(call))) } else { Either::Right(pending()) }
    }

    /// A panic in here is ours, but the handler takes it for the call's and goes on; `at_work` tells the
    /// two apart.
    fn world<T>(&self, work: impl FnOnce(&mut World) -> T) -> T {
        let world = &mut *self.0.borrow_mut();
        assert!(!world.at_work, "BUG: an earlier call panicked");
        world.at_work = true;
        let done = work(world);
        world.at_work = false;
        done
    }
}

/// As the handler delivers.
pub(crate) async fn deliver<O, F, S>(
    sender: Sender<O, S>,
    entries: impl IntoIterator<Item = O::Entry>,
    past_deadline: impl Fn() -> bool,
) -> Vec<Result<(), CallFailure>>
where
    O: Operation<Receipt = ()>,
    F: Future<Output = ()>,
    S: Fn(Duration) -> F,
{
    let outcomes = by_entry(sender.send_while(entries, || !past_deadline()).await).into_iter();
    let failure = |cause: Cause| CallFailure { cause: cause.to_string(), remedy: None };
    outcomes.map(|outcome| outcome.map_err(failure)).collect()
}

/// As the handler sends copies: each once.
pub(crate) async fn deliver_copies<O, F, S>(
    sender: Sender<O, S>,
    entries: impl IntoIterator<Item = O::Entry>,
    past_deadline: impl Fn() -> bool,
) -> Vec<Result<(), MoveFailure>>
where
    O: Operation<Receipt = ()>,
    F: Future<Output = ()>,
    S: Fn(Duration) -> F,
{
    let sender = sender.retries(Retries::none());
    let outcomes = by_entry(sender.send_while(entries, || !past_deadline()).await).into_iter();
    let failure = |cause: Cause| match cause.error() {
        Some(error) if error.code.is_empty() && !matches!(cause, Cause::Halted(_)) => {
            MoveFailure::Unanswered(cause.to_string())
        }
        _ => MoveFailure::NotSent(CallFailure { cause: cause.to_string(), remedy: None }),
    };
    outcomes.map(|outcome| outcome.map_err(failure)).collect()
}

/// A delivery is kilobytes, and the handler's future would hold one for each of its calls: to copy them would take
/// longer than a box does.
fn in_a_box<D: Future>(delivery: D) -> Pin<Box<D>> {
    Box::pin(delivery)
}

impl Account for SimulatedAccount {
    async fn change_visibility(
        &self,
        changes: &[VisibilityChange<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        in_a_box(deliver(self.sender(ChangeVisibility(self)), changes, past_deadline)).await
    }

    async fn invoke(
        &self,
        _: &Record,
        function_arn: &str,
        payload: String,
    ) -> Result<Option<String>, InvokeFailure> {
        self.call(|world| world.invoke(function_arn, payload)).await
    }

    async fn send_dead_letters(
        &self,
        given_up: &[GivenUp<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        let dead_letters: Vec<&DeadLetter> = given_up.iter().map(|given_up| given_up.letter).collect();
        // A dead-letter does not name its message, so it is matched once, and not again when it is resent.
        let checked = self.world(|world| world.check_dead_letters(&dead_letters));
        let Some(checked) = checked else { return Vec::new() };
        in_a_box(deliver(self.sender(SendMessages(self)), checked, past_deadline)).await
    }

    async fn send_again(
        &self,
        moves: &[Move<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), MoveFailure>> {
        in_a_box(deliver_copies(self.sender(SendAgain(self)), moves, past_deadline)).await
    }

    async fn look(&self) -> Result<Look, CallFailure> {
        self.call(World::look).await
    }

    async fn read_pauses(&self) -> Result<Option<String>, CallFailure> {
        let answer = self.call(World::read_pauses).await;
        if answer.is_err() {
            // As long as the slowest answer takes.
            self.wait(PAUSES_TIMEOUT).await;
        }
        answer
    }
}

/// `SendMessageBatch` to the retry queue.
struct SendAgain<'a>(&'a SimulatedAccount);

impl<'a> Operation for SendAgain<'a> {
    type Entry = &'a Move<'a>;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_SEND
    }

    fn size(&self, copy: &Self::Entry) -> usize {
        copy.size()
    }

    fn call(&self, moves: &[&Self::Entry]) -> impl Future<Output = Answers> + Send {
        self.0.call(|world| world.send_again_batch(moves))
    }
}

/// `ChangeMessageVisibilityBatch` on the retry queue.
struct ChangeVisibility<'a>(&'a SimulatedAccount);

impl<'a> Operation for ChangeVisibility<'a> {
    type Entry = &'a VisibilityChange<'a>;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_RECEIPTS
    }

    fn size(&self, change: &Self::Entry) -> usize {
        change.record.receipt_handle.len()
    }

    fn call(&self, changes: &[&Self::Entry]) -> impl Future<Output = Answers> + Send {
        self.0.call(|world| world.change_visibility_batch(changes))
    }
}

/// `SendMessageBatch` to the dead-letter queue.
struct SendMessages<'a>(&'a SimulatedAccount);

impl<'a> Operation for SendMessages<'a> {
    type Entry = CheckedDeadLetter<'a>;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_SEND
    }

    fn size(&self, checked: &Self::Entry) -> usize {
        checked.dead_letter.size()
    }

    fn call(&self, dead_letters: &[&Self::Entry]) -> impl Future<Output = Answers> + Send {
        self.0.call(|world| world.send_message_batch(dead_letters))
    }
}

#[cfg(test)]
mod tests {
    use comeback_delivery::ErrorKind;
    use comeback_engine::{Policy, Settings};
    use futures_util::FutureExt;

    use super::*;
    use crate::TARGET_ARN;
    use crate::scenario::{START, Scenario};

    /// Each call is throttled.
    struct Throttled(RefCell<u32>);

    impl Operation for &Throttled {
        type Entry = ();
        type Receipt = ();

        fn limits(&self) -> Limits {
            SQS_RECEIPTS
        }

        fn size(&self, (): &()) -> usize {
            0
        }

        fn call(&self, _: &[&()]) -> impl Future<Output = Answers> + Send {
            *self.0.borrow_mut() += 1;
            ready(Err(ServiceError::new(ErrorKind::Throttled, "RequestThrottled", "")))
        }
    }

    #[test]
    fn deliveries_climb_the_handlers_ladder_until_the_deadline() {
        let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() };
        let policy = Policy::new(settings).expect("a valid policy");
        let aws = SimulatedAccount::new(World::new(Scenario::default(), &policy));
        for (millis, calls) in [(0, 0), (100, 1), (101, 2), (400, 2), (401, 3), (9_999, 4)] {
            let operation = Throttled(RefCell::new(0));
            let past_deadline = aws.past_deadline(START.saturating_add(Duration::from_millis(millis)));
            let answers = deliver(aws.sender(&operation), [()], past_deadline).now_or_never();
            assert!(answers.unwrap()[0].is_err());
            assert_eq!(*operation.0.borrow(), calls, "within {millis} ms");
        }
    }
}
