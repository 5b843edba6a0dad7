use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tracing::Instrument;

use crate::board::{Board, Wait};
use crate::{Answer, Delivered, Left, Operation, Sender, ServiceError, Undelivered};

/// Entries on their way: what [`Sender::start`] gives.
///
/// The futures of [`run`](Self::run) and [`run_until`](Self::run_until) may be dropped at any moment.
/// [`finish`](Self::finish) then hands back every entry that is not known to be delivered
/// ([`Cause::Interrupted`](crate::Cause::Interrupted)); a call that was under way may have delivered
/// it. Or run it again: what was under way counts as sent without an answer, and is retried.
///
/// ```
/// # use comeback_delivery::{Answer, ServiceError, Operation, Sender, limits::{Limits, SQS_RECEIPTS}};
/// # struct Never;
/// # impl Operation for Never {
/// #     type Entry = &'static str;
/// #     fn limits(&self) -> Limits { SQS_RECEIPTS }
/// #     fn size(&self, entry: &&'static str) -> usize { entry.len() }
/// #     async fn call(&self, _: &[&&'static str]) -> Result<Vec<Answer>, ServiceError> { std::future::pending().await }
/// # }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// # let sender = Sender::over(Never, tokio::time::sleep);
/// # let shutdown = tokio::time::sleep(std::time::Duration::from_secs(1));
/// let mut delivery = sender.start(["one", "two"]);
/// tokio::select! {
///     () = delivery.run() => {}
///     () = shutdown => {}
/// }
/// if let Err(undelivered) = delivery.finish() {
///     for left in undelivered.entries { // nothing is lost: keep these
///         println!("number {}: {}", left.index, left.cause);
///     }
/// }
/// # }
/// ```
#[must_use = "nothing is sent until it is run, and what is left is in `finish`"]
pub struct Delivery<'s, O: Operation, S> {
    sender: &'s Sender<O, S>,
    entries: Vec<O::Entry>,
    board: Board,
}

impl<'s, O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Delivery<'s, O, S> {
    pub(crate) fn new(sender: &'s Sender<O, S>, entries: Vec<O::Entry>) -> Self {
        let board = Board::new(&sender.operation, &entries);
        Self { sender, entries, board }
    }

    /// Sends until every entry is delivered or given up.
    pub async fn run(&mut self) {
        self.run_until(|| false).await;
    }

    /// As [`run`](Self::run), but starts no call once `past_deadline` answers true.
    ///
    /// It is asked before each call and after each wait. A wait under way is not cut short; to end one
    /// early, drop the future of [`run`](Self::run).
    pub async fn run_until(&mut self, past_deadline: impl Fn() -> bool) {
        let span = tracing::debug_span!("deliver", entries = self.entries.len());
        self.calls_and_waits(past_deadline).instrument(span).await;
    }

    async fn calls_and_waits(&mut self, past_deadline: impl Fn() -> bool) {
        let Self { sender, entries, board } = self;
        let Sender { operation, sleep, retries, concurrency, .. } = sender;
        let sleeping = |wait: Wait| sleep(wait.delay).map(|()| wait.entries);
        let mut calls = FuturesUnordered::new();
        let mut waits: FuturesUnordered<_> = board.resume(retries).into_iter().map(sleeping).collect();
        loop {
            let (batch, result) = if calls.len() < *concurrency && board.is_ready() && !past_deadline() {
                // Begun here, and not when it is first awaited: just after a look at the deadline.
                let mut call = Box::pin(call(operation, entries, board.take()));
                match poll_once(call.as_mut()).await {
                    Poll::Ready(answered) => answered,
                    Poll::Pending => {
                        calls.push(call);
                        continue;
                    }
                }
            } else {
                match next(&past_deadline, &mut calls, &mut waits).await {
                    Next::Answered(answered) => answered,
                    Next::Waited(entries) => {
                        board.waited(entries);
                        continue;
                    }
                    Next::Nothing => break,
                }
            };
            let again = board.answered(&batch, result, retries);
            sender.tell(board.progress);
            waits.extend(again.into_iter().map(sleeping));
        }
        // All is settled, unless the deadline came first.
        board.stop();
    }

    /// What became of the entries.
    ///
    /// # Errors
    ///
    /// [`Undelivered`], with every entry that was not delivered.
    pub fn finish(self) -> Result<Delivered, Undelivered<O::Entry>> {
        let progress = self.board.progress;
        let (calls, retries) = (progress.calls, progress.retries);
        if progress.delivered == progress.entries {
            return Ok(Delivered { count: progress.delivered, calls, retries });
        }
        let entries = self.entries.into_iter().zip(self.board.into_causes()).enumerate();
        let left = entries.filter_map(|(index, (entry, cause))| {
            let (cause, calls) = cause?;
            Some(Left { index, entry, cause, calls })
        });
        Err(Undelivered { entries: left.collect(), delivered: progress.delivered, calls, retries })
    }
}

/// How far it is, and no entry.
impl<O: Operation, S> fmt::Debug for Delivery<'_, O, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").field("progress", &self.board.progress).finish_non_exhaustive()
    }
}

/// The batch, with what the service answered.
type Answered = (Vec<usize>, Result<Vec<Answer>, ServiceError>);

/// One call. A panic in it harms no entry but its own.
async fn call<O: Operation>(operation: &O, entries: &[O::Entry], batch: Vec<usize>) -> Answered {
    let carried: Vec<&O::Entry> = batch.iter().map(|&index| &entries[index]).collect();
    let span = tracing::debug_span!("call", entries = batch.len());
    let calling = AssertUnwindSafe(async { operation.call(&carried).await }).catch_unwind();
    let result = calling.instrument(span.clone()).await.unwrap_or_else(|_| Err(ServiceError::panicked()));
    span.in_scope(|| match &result {
        Ok(answers) => {
            let done = answers.iter().filter(|answer| answer.is_ok()).count();
            tracing::debug!(done, "answered");
        }
        // Not the message: it may quote an entry.
        Err(ServiceError { kind, code, .. }) => tracing::debug!(?kind, code, "failed whole"),
    });
    (batch, result)
}

enum Next {
    Answered(Answered),
    /// These entries have waited.
    Waited(Vec<usize>),
    /// Nothing is under way.
    Nothing,
}

/// What comes first. Past the deadline nobody waits; calls are let finish.
async fn next<C, W>(
    past_deadline: impl Fn() -> bool,
    calls: &mut FuturesUnordered<Pin<Box<C>>>,
    waits: &mut FuturesUnordered<W>,
) -> Next
where
    C: Future<Output = Answered>,
    W: Future<Output = Vec<usize>>,
{
    poll_fn(|context| {
        if past_deadline() {
            waits.clear();
        }
        if let Poll::Ready(Some(answered)) = calls.poll_next_unpin(context) {
            return Poll::Ready(Next::Answered(answered));
        }
        if let Poll::Ready(Some(entries)) = waits.poll_next_unpin(context) {
            return Poll::Ready(Next::Waited(entries));
        }
        if calls.is_empty() && waits.is_empty() { Poll::Ready(Next::Nothing) } else { Poll::Pending }
    })
    .await
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}
