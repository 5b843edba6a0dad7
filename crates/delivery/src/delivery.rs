//! Delivers entries from an iterator.

use std::future::{Future, pending};
use std::time::Duration;

use futures_util::stream;
use tracing::Instrument;

use crate::board::{Board, Counts};
use crate::lanes::Lanes;
use crate::operation::Operation;
use crate::outcome::{Delivered, DeliveryResult, Undelivered};
use crate::run::{Intake, run};
use crate::sender::Sender;

impl<O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Sender<O, S> {
    /// Delivers every entry, or hands it back with the cause of its failure.
    ///
    /// Dropping this future loses the entries that have not been delivered yet. To end a delivery early and keep its
    /// entries, use [`send_until`](Self::send_until).
    ///
    /// # Errors
    ///
    /// Fails with [`Undelivered`](crate::Undelivered), which holds every entry that was not delivered.
    pub async fn send(&self, entries: impl IntoIterator<Item = O::Entry>) -> DeliveryResult<O> {
        self.deliver(entries, || true, pending()).await
    }

    /// Like [`send`](Self::send), but ends when `deadline` completes, even if calls are under way. `deadline` is a
    /// future such as `tokio::time::sleep` or a shutdown signal. The entries of calls that received no response are
    /// handed back as [`Unanswered`](crate::EntryError::Unanswered).
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`send`](Self::send).
    ///
    /// ```
    /// # use comeback_delivery::{EntryAnswer, ServiceError, Operation, Sender, limits::{Limits, SQS_RECEIPTS}};
    /// # struct Never;
    /// # impl Operation for Never {
    /// #     type Entry = &'static str;
    /// #     type Receipt = ();
    /// #     fn limits(&self) -> Limits { SQS_RECEIPTS }
    /// #     fn size(&self, entry: &&'static str) -> usize { entry.len() }
    /// #     async fn call(&self, _: &[&&'static str]) -> Result<Vec<EntryAnswer>, ServiceError> {
    /// #         std::future::pending().await
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// # let sender = Sender::over(Never, tokio::time::sleep);
    /// # let shutdown = tokio::time::sleep(std::time::Duration::from_secs(1));
    /// if let Err(undelivered) = sender.send_until(["one", "two"], shutdown).await {
    ///     for left in undelivered.entries { // nothing is lost: keep these
    ///         println!("number {}: {}", left.index, left.cause);
    ///     }
    /// }
    /// # }
    /// ```
    pub async fn send_until(
        &self,
        entries: impl IntoIterator<Item = O::Entry>,
        deadline: impl Future<Output = ()>,
    ) -> DeliveryResult<O> {
        self.deliver(entries, || true, deadline).await
    }

    /// Like [`send`](Self::send), but starts no more calls once `may_start` has returned false. Calls in flight still
    /// finish, which can take as long as the client's own timeouts allow.
    ///
    /// `may_start` is called before each call and after each wait. To end a wait early, use
    /// [`send_until`](Self::send_until).
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`send`](Self::send).
    pub async fn send_while(
        &self,
        entries: impl IntoIterator<Item = O::Entry>,
        may_start: impl Fn() -> bool,
    ) -> DeliveryResult<O> {
        self.deliver(entries, may_start, pending()).await
    }

    async fn deliver(
        &self,
        entries: impl IntoIterator<Item = O::Entry>,
        may_start: impl Fn() -> bool,
        deadline: impl Future<Output = ()>,
    ) -> DeliveryResult<O> {
        let mut board = Board::new(self.operation.limits(), Lanes::remembering());
        entries.into_iter().for_each(|entry| board.push(&*self.operation, entry));
        let span = tracing::debug_span!("deliver", entries = board.counts.entries);
        let (source, window) = (stream::empty(), usize::MAX);
        let intake = Intake { source, window, is_wanted: || true, may_start, deadline };
        let (mut delivered, mut entries) = (Vec::new(), Vec::new());
        let settle = |outcome| match outcome {
            Ok(sent) => delivered.push(sent),
            Err(left) => entries.push(left),
        };
        run(self, &mut board, intake, settle).instrument(span).await;
        delivered.sort_by_key(|sent| sent.index);
        entries.sort_by_key(|left| left.index);
        let Counts { calls, retries, .. } = board.counts;
        if entries.is_empty() {
            let receipts = delivered.into_iter().map(|sent| sent.receipt).collect();
            return Ok(Delivered { receipts, calls, retries });
        }
        Err(Undelivered { entries, delivered, calls, retries })
    }
}
