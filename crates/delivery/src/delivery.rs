//! Functions that start a delivery, and the [`Delivery`] itself.

use std::fmt;
use std::future::{Future, pending};
use std::time::Duration;

use futures_util::stream;
use tracing::Instrument;

use crate::board::{Board, Counts, Settled};
use crate::lanes::Lanes;
use crate::operation::Operation;
use crate::outcome::{Delivered, Outcome, Undelivered};
use crate::run::{Intake, run};
use crate::sender::Sender;

impl<O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Sender<O, S> {
    /// Delivers every entry, or hands it back with the cause of its failure.
    ///
    /// Dropping this future loses the entries not delivered by then. If you may drop it, use [`start`](Self::start).
    ///
    /// # Errors
    ///
    /// Fails with [`Undelivered`](crate::Undelivered), which holds every entry that was not delivered.
    pub async fn send(&self, entries: impl IntoIterator<Item = O::Entry>) -> Outcome<O> {
        self.send_until(entries, pending()).await
    }

    /// Like [`send`](Self::send), but ends when `deadline` completes, even with calls under way. `deadline` is a future
    /// such as `tokio::time::sleep`. The entries of calls without an answer are handed back as
    /// [`Unanswered`](crate::EntryError::Unanswered).
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`send`](Self::send).
    pub async fn send_until(
        &self,
        entries: impl IntoIterator<Item = O::Entry>,
        deadline: impl Future<Output = ()>,
    ) -> Outcome<O> {
        let mut delivery = self.start(entries);
        delivery.run_until(deadline).await;
        delivery.finish()
    }

    /// Like [`send`](Self::send), but starts a call only while `may_start` returns true. Calls under way still finish.
    /// They may take as long as the client's own timeouts allow.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`send`](Self::send).
    pub async fn send_while(
        &self,
        entries: impl IntoIterator<Item = O::Entry>,
        may_start: impl Fn() -> bool,
    ) -> Outcome<O> {
        let mut delivery = self.start(entries);
        delivery.run_while(may_start).await;
        delivery.finish()
    }

    /// Prepares a delivery that can be interrupted without losing an entry. It sends nothing until you
    /// [run](Delivery::run) it.
    pub fn start(&self, entries: impl IntoIterator<Item = O::Entry>) -> Delivery<'_, O, S> {
        Delivery::new(self, entries)
    }
}

/// A delivery that can be interrupted without losing an entry; made by [`Sender::start`].
///
/// You may drop the future from [`run`](Self::run), [`run_until`](Self::run_until) or [`run_while`](Self::run_while) at
/// any moment. [`finish`](Self::finish) then hands back every entry that is not known to be delivered
/// ([`EntryError::Interrupted`](crate::EntryError::Interrupted)). A call that was under way may have delivered it.
///
/// To continue, run the delivery again. Entries that were under way count as sent without an answer, and are retried.
///
/// ```
/// # use comeback_delivery::{Answer, ServiceError, Operation, Sender, limits::{Limits, SQS_RECEIPTS}};
/// # struct Never;
/// # impl Operation for Never {
/// #     type Entry = &'static str;
/// #     type Receipt = ();
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
#[must_use = "nothing is sent until it is run; `finish` returns what is left"]
pub struct Delivery<'s, O: Operation, S> {
    sender: &'s Sender<O, S>,
    board: Board<O::Entry, O::Receipt>,
    settled: Vec<Settled<O::Entry, O::Receipt>>,
}

impl<'s, O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Delivery<'s, O, S> {
    pub(crate) fn new(sender: &'s Sender<O, S>, entries: impl IntoIterator<Item = O::Entry>) -> Self {
        let mut board = Board::new(sender.limits, Lanes::remembering());
        entries.into_iter().for_each(|entry| board.push(&*sender.operation, entry));
        Self { sender, board, settled: Vec::new() }
    }

    /// Sends until every entry is delivered or given up.
    pub async fn run(&mut self) {
        self.run_until(pending()).await;
    }

    /// Like [`run`](Self::run), but ends when the future `deadline` completes, even with calls under way.
    pub async fn run_until(&mut self, deadline: impl Future<Output = ()>) {
        self.run_to(|| true, deadline).await;
    }

    /// Like [`run`](Self::run), but starts a call only while `may_start` returns true.
    ///
    /// `may_start` is called before each call and after each wait. To end a wait early, use
    /// [`run_until`](Self::run_until).
    pub async fn run_while(&mut self, may_start: impl Fn() -> bool) {
        self.run_to(may_start, pending()).await;
    }

    async fn run_to(&mut self, may_start: impl Fn() -> bool, deadline: impl Future<Output = ()>) {
        let Self { sender, board, settled } = self;
        let span = tracing::debug_span!("deliver", entries = board.counts.entries);
        let (source, window) = (stream::empty(), usize::MAX);
        let intake = Intake { source, window, is_wanted: || true, may_start, deadline };
        run(sender, board, intake, |outcome| settled.push(outcome)).instrument(span).await;
    }

    /// Ends the delivery and returns the outcome of all entries.
    ///
    /// # Errors
    ///
    /// Fails with [`Undelivered`], which holds every entry that was not delivered.
    pub fn finish(mut self) -> Outcome<O> {
        self.board.interrupt();
        self.settled.extend(self.board.settled());
        self.settled
            .sort_by_key(|outcome| outcome.as_ref().map_or_else(|left| left.index, |sent| sent.index));
        let (mut delivered, mut entries) = (Vec::new(), Vec::new());
        for outcome in self.settled {
            match outcome {
                Ok(sent) => delivered.push(sent),
                Err(left) => entries.push(left),
            }
        }
        let Counts { calls, retries, .. } = self.board.counts;
        if entries.is_empty() {
            let receipts = delivered.into_iter().map(|sent| sent.receipt).collect();
            return Ok(Delivered { receipts, calls, retries });
        }
        Err(Undelivered { entries, delivered, calls, retries })
    }
}

/// Shows only the delivery's counts, never an entry.
impl<O: Operation, S> fmt::Debug for Delivery<'_, O, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").field("counts", &self.board.counts).finish_non_exhaustive()
    }
}
