//! Passes batches to the handler, and its calls to a simulated [`Service`], for simulations and rehearsals.

use std::cell::{Cell, RefCell};
use std::future::{Future, Pending, Ready, pending, ready};
use std::time::Duration;

use comeback_delivery::limits::{Limits, SQS_RECEIPTS, SQS_SEND};
use comeback_delivery::{EntryAnswer, EntryError, Operation, Retries, Sender, ServiceError, by_entry};
use comeback_engine::{
    Account, BatchEvent, BatchReport, CallFailure, DeadLettered, Environment, HANDLER_TIMEOUT, InFlightCount,
    InvokeFailure, Move, MoveFailure, PAUSES_TIMEOUT, RESERVE, Record, SqsBatchCalls, Timestamp,
    VisibilityChange,
};
use futures_util::FutureExt;
use futures_util::future::Either;

pub(crate) type Answers = Result<Vec<EntryAnswer>, ServiceError>;
pub(crate) type Invoked = Result<Option<String>, InvokeFailure>;

/// A simulated AWS that receives the handler's calls.
pub(crate) trait Service {
    /// Called before each of the handler's calls; returns false if the handler crashes first.
    fn lives_on(&mut self) -> bool {
        true
    }

    fn change_visibility(&mut self, changes: &[&&VisibilityChange<'_>]) -> Answers;

    fn invoke(&mut self, record: &Record, function_arn: &str, payload: String) -> Invoked;

    /// Called just before the handler sends these dead-letters.
    fn decides_to_dead_letter(&mut self, _: &[DeadLettered<'_>]) {}

    fn send_dead_letters(&mut self, dead_lettered: &[&&DeadLettered<'_>]) -> Answers;

    fn send_again(&mut self, moves: &[&&Move<'_>]) -> Answers;

    fn count_in_flight(&mut self) -> Result<InFlightCount, CallFailure>;

    fn read_pauses(&mut self) -> Result<Option<String>, CallFailure>;
}

/// The AWS account as the handler sees it. A call is never answered once the handler has crashed.
pub(crate) struct SimulatedAccount<S> {
    pub(crate) service: RefCell<S>,
    retries: Retries,
    /// Total time that the handler has waited between its calls, while the virtual clock stood still.
    waited: Cell<Duration>,
    /// True while one of the handler's calls is in progress; if it stays true, the simulation panicked during the call.
    at_work: Cell<bool>,
}

impl<S: Service> SimulatedAccount<S> {
    pub(crate) fn new(service: S) -> Self {
        Self {
            service: RefCell::new(service),
            retries: Retries::of(SqsBatchCalls::ceilings()),
            waited: Cell::default(),
            at_work: Cell::default(),
        }
    }

    /// Passes a batch to the handler, which makes its calls `now`. Its invocation began at `started`, or at `clock` by
    /// the handler's own clock. Returns `None` if the handler crashes.
    pub(crate) fn handle<'b>(
        &self,
        handler: &mut Environment,
        batch: &'b BatchEvent,
        [started, clock, now]: [Timestamp; 3],
    ) -> Option<BatchReport<'b>> {
        self.waited.set(Duration::ZERO);
        let budget = HANDLER_TIMEOUT - RESERVE;
        let past_deadline = || now.since(started).saturating_add(self.waited.get()) >= budget;
        let report = handler.handle(batch, clock, &past_deadline, self).now_or_never();
        assert!(!self.at_work.get(), "BUG: a simulated call panicked; see above");
        report
    }

    fn call<T>(&self, call: impl FnOnce(&mut S) -> T) -> Either<Ready<T>, Pending<T>> {
        let lives = self.service.borrow_mut().lives_on();
        if lives { Either::Left(ready(self.perform(call))) } else { Either::Right(pending()) }
    }

    fn perform<T>(&self, work: impl FnOnce(&mut S) -> T) -> T {
        assert!(!self.at_work.replace(true), "BUG: an earlier call panicked");
        let done = work(&mut self.service.borrow_mut());
        self.at_work.set(false);
        done
    }

    fn wait(&self, time: Duration) {
        self.waited.set(self.waited.get().saturating_add(time));
    }
}

impl<S: Service> Account for SimulatedAccount<S> {
    async fn change_visibility(
        &self,
        changes: &[VisibilityChange<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        let size = |change: &&VisibilityChange<'_>| change.record.receipt_handle.len();
        let calls = Calls { account: self, limits: SQS_RECEIPTS, size, call: S::change_visibility };
        calls.deliver(changes, self.retries.clone(), past_deadline, failure).await
    }

    async fn invoke(&self, record: &Record, function_arn: &str, payload: String) -> Invoked {
        self.call(|service| service.invoke(record, function_arn, payload)).await
    }

    async fn send_dead_letters(
        &self,
        dead_lettered: &[DeadLettered<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        self.perform(|service| service.decides_to_dead_letter(dead_lettered));
        let size = |dead_lettered: &&DeadLettered<'_>| dead_lettered.dead_letter.size();
        let calls = Calls { account: self, limits: SQS_SEND, size, call: S::send_dead_letters };
        calls.deliver(dead_lettered, self.retries.clone(), past_deadline, failure).await
    }

    /// Sends copies of messages to the retry queue. A failed call is not repeated, because SQS may have accepted the
    /// copies.
    async fn send_again(
        &self,
        moves: &[Move<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), MoveFailure>> {
        let failure = |cause: EntryError| match cause.error() {
            Some(error) if error.code.is_empty() && !matches!(cause, EntryError::Halted(_)) => {
                MoveFailure::Unanswered(cause.to_string())
            }
            _ => MoveFailure::NotSent(failure(cause)),
        };
        let size = |copy: &&Move<'_>| copy.size();
        let calls = Calls { account: self, limits: SQS_SEND, size, call: S::send_again };
        calls.deliver(moves, Retries::none(), past_deadline, failure).await
    }

    async fn count_in_flight(&self) -> Result<InFlightCount, CallFailure> {
        self.call(S::count_in_flight).await
    }

    async fn read_pauses(&self) -> Result<Option<String>, CallFailure> {
        let answer = self.call(S::read_pauses).await;
        if answer.is_err() {
            // A failed read of the pauses is assumed to take the longest possible time.
            self.wait(PAUSES_TIMEOUT);
        }
        answer
    }
}

fn failure(cause: EntryError) -> CallFailure {
    CallFailure { cause: cause.to_string(), remedy: None }
}

struct Calls<'a, S, E> {
    account: &'a SimulatedAccount<S>,
    limits: Limits,
    size: fn(&E) -> usize,
    call: fn(&mut S, &[&E]) -> Answers,
}

impl<S: Service, E> Calls<'_, S, E> {
    // Boxed because a delivery's future takes kilobytes, and the handler's own future would hold and copy one for each
    // call.
    async fn deliver<F>(
        self,
        entries: impl IntoIterator<Item = E>,
        retries: Retries,
        past_deadline: &dyn Fn() -> bool,
        failure: impl Fn(EntryError) -> F,
    ) -> Vec<Result<(), F>> {
        let account = self.account;
        let wait = |time| {
            account.wait(time);
            ready(())
        };
        let sender = Sender::over(self, wait).retries(retries);
        let sent = Box::pin(sender.send_while(entries, || !past_deadline())).await;
        by_entry(sent).into_iter().map(|answer| answer.map_err(&failure)).collect()
    }
}

impl<S: Service, E> Operation for Calls<'_, S, E> {
    type Entry = E;
    type Receipt = ();

    fn limits(&self) -> Limits {
        self.limits
    }

    fn size(&self, entry: &E) -> usize {
        (self.size)(entry)
    }

    fn call(&self, entries: &[&E]) -> impl Future<Output = Answers> + Send {
        self.account.call(|service| (self.call)(service, entries))
    }
}
