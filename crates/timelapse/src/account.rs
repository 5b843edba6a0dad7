//! One [`Account`] for the simulation and the rehearsal: it delivers as the handler does on AWS, over a [`Service`] that
//! performs the calls.

use std::future::{Future, Pending, Ready, pending, ready};
use std::time::Duration;

use comeback_delivery::limits::{Limits, SQS_RECEIPTS, SQS_SEND};
use comeback_delivery::{Answer, Cause, Operation, Retries, Sender, ServiceError, by_entry};
use comeback_engine::{
    Account, CallFailure, GivenUp, InvokeFailure, Look, Move, MoveFailure, PAUSES_TIMEOUT, Record,
    SqsBatchCalls, VisibilityChange,
};
use futures_util::future::Either;

/// An answer for each entry, or one for the whole call.
pub(crate) type Answers = Result<Vec<Answer>, ServiceError>;

/// AWS's side of the handler's calls. `None` is never answered: the handler has died.
pub(crate) trait Service {
    fn change_visibility(&self, changes: &[&&VisibilityChange<'_>]) -> Option<Answers>;

    fn invoke(
        &self,
        record: &Record,
        function_arn: &str,
        payload: String,
    ) -> Option<Result<Option<String>, InvokeFailure>>;

    /// The handler is about to send these dead-letters.
    fn gives_up(&self, _: &[GivenUp<'_>]) {}

    fn send_dead_letters(&self, given_up: &[&&GivenUp<'_>]) -> Option<Answers>;

    fn send_again(&self, moves: &[&&Move<'_>]) -> Option<Answers>;

    fn look(&self) -> Option<Result<Look, CallFailure>>;

    fn read_pauses(&self) -> Option<Result<Option<String>, CallFailure>>;

    /// The handler waits.
    fn wait(&self, _: Duration) {}
}

/// The account as the handler sees it. Each API call is answered at once.
pub(crate) struct SimulatedAccount<S> {
    pub(crate) service: S,
    retries: Retries,
}

impl<S: Service> SimulatedAccount<S> {
    pub(crate) fn new(service: S) -> Self {
        Self { service, retries: Retries::of(SqsBatchCalls::ceilings()) }
    }

    // A delivery is kilobytes, and the handler's future would hold one for each of its calls: copying them would take
    // longer than a box does.
    async fn deliver<O: Operation<Receipt = ()>>(
        &self,
        operation: O,
        entries: impl IntoIterator<Item = O::Entry>,
        retries: Retries,
        past_deadline: impl Fn() -> bool,
    ) -> impl Iterator<Item = Result<(), Cause>> {
        let wait = |wait| {
            self.service.wait(wait);
            ready(())
        };
        let sender = Sender::over(operation, wait).retries(retries);
        by_entry(Box::pin(sender.send_while(entries, || !past_deadline())).await).into_iter()
    }
}

impl<S: Service> Account for SimulatedAccount<S> {
    async fn change_visibility(
        &self,
        changes: &[VisibilityChange<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        let operation = Calls {
            limits: SQS_RECEIPTS,
            size: |change: &&VisibilityChange<'_>| change.record.receipt_handle.len(),
            call: |changes: &[&&VisibilityChange<'_>]| self.service.change_visibility(changes),
        };
        let answers = self.deliver(operation, changes, self.retries.clone(), past_deadline).await;
        answers.map(|answer| answer.map_err(failure)).collect()
    }

    async fn invoke(
        &self,
        record: &Record,
        function_arn: &str,
        payload: String,
    ) -> Result<Option<String>, InvokeFailure> {
        answered(self.service.invoke(record, function_arn, payload)).await
    }

    async fn send_dead_letters(
        &self,
        given_up: &[GivenUp<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        self.service.gives_up(given_up);
        let operation = Calls {
            limits: SQS_SEND,
            size: |given_up: &&GivenUp<'_>| given_up.letter.size(),
            call: |given_up: &[&&GivenUp<'_>]| self.service.send_dead_letters(given_up),
        };
        let answers = self.deliver(operation, given_up, self.retries.clone(), past_deadline).await;
        answers.map(|answer| answer.map_err(failure)).collect()
    }

    /// Sends each copy once.
    async fn send_again(
        &self,
        moves: &[Move<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), MoveFailure>> {
        let operation = Calls {
            limits: SQS_SEND,
            size: |copy: &&Move<'_>| copy.size(),
            call: |moves: &[&&Move<'_>]| self.service.send_again(moves),
        };
        let failure = |cause: Cause| match cause.error() {
            Some(error) if error.code.is_empty() && !matches!(cause, Cause::Halted(_)) => {
                MoveFailure::Unanswered(cause.to_string())
            }
            _ => MoveFailure::NotSent(failure(cause)),
        };
        let answers = self.deliver(operation, moves, Retries::none(), past_deadline).await;
        answers.map(|answer| answer.map_err(failure)).collect()
    }

    async fn look(&self) -> Result<Look, CallFailure> {
        answered(self.service.look()).await
    }

    async fn read_pauses(&self) -> Result<Option<String>, CallFailure> {
        let answer = answered(self.service.read_pauses()).await;
        if answer.is_err() {
            // As long as the slowest answer takes.
            self.service.wait(PAUSES_TIMEOUT);
        }
        answer
    }
}

fn failure(cause: Cause) -> CallFailure {
    CallFailure { cause: cause.to_string(), remedy: None }
}

fn answered<T>(answer: Option<T>) -> Either<Ready<T>, Pending<T>> {
    answer.map_or_else(|| Either::Right(pending()), |answer| Either::Left(ready(answer)))
}

/// The calls of one batch API of a service.
struct Calls<E, C> {
    limits: Limits,
    size: fn(&E) -> usize,
    call: C,
}

impl<E, C: Fn(&[&E]) -> Option<Answers>> Operation for Calls<E, C> {
    type Entry = E;
    type Receipt = ();

    fn limits(&self) -> Limits {
        self.limits
    }

    fn size(&self, entry: &E) -> usize {
        (self.size)(entry)
    }

    fn call(&self, entries: &[&E]) -> impl Future<Output = Answers> + Send {
        answered((self.call)(entries))
    }
}
