use std::fmt;
use std::time::Duration;

use crate::{Delivered, Delivery, Operation, Progress, Retries, Undelivered};

/// Delivers entries through a batch API. Build one per queue, table, stream or bus, and use it for any
/// number of deliveries, also at the same time.
pub struct Sender<O, S> {
    pub(crate) operation: O,
    pub(crate) sleep: S,
    pub(crate) retries: Retries,
    pub(crate) concurrency: usize,
    pub(crate) on_progress: Option<Box<dyn Fn(Progress) + Send + Sync>>,
}

/// How many calls of one delivery are under way at once by default.
pub const CONCURRENCY: usize = 4;

impl<O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Sender<O, S> {
    /// A sender over an operation, waiting by `sleep`, such as `tokio::time::sleep`. The adapters'
    /// `new` is this with their operation.
    pub fn over(operation: O, sleep: S) -> Self {
        Self { operation, sleep, retries: Retries::default(), concurrency: CONCURRENCY, on_progress: None }
    }

    /// How often entries are sent again, and when; by default [`Retries::linear`].
    #[must_use]
    pub fn retries(self, retries: Retries) -> Self {
        Self { retries, ..self }
    }

    /// At most this many calls of one delivery are under way at once; by default [`CONCURRENCY`].
    ///
    /// # Panics
    ///
    /// If it is 0.
    #[must_use]
    pub fn concurrency(self, calls: usize) -> Self {
        assert!(calls > 0, "concurrency is 0; it must be at least 1");
        Self { concurrency: calls, ..self }
    }

    /// Calls `tell` after each call, with the progress of its delivery.
    #[must_use]
    pub fn on_progress(self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self { on_progress: Some(Box::new(tell)), ..self }
    }

    /// Delivers every entry, or hands it back with its cause.
    ///
    /// Dropping this future drops the entries that are not delivered yet; where that may happen, use
    /// [`start`](Self::start).
    ///
    /// # Errors
    ///
    /// [`Undelivered`], with every entry that was not delivered.
    pub async fn send(
        &self,
        entries: impl IntoIterator<Item = O::Entry>,
    ) -> Result<Delivered, Undelivered<O::Entry>> {
        self.send_until(entries, || false).await
    }

    /// As [`send`](Self::send), but no call is started once `past_deadline` answers true; those under
    /// way are let finish.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn send_until(
        &self,
        entries: impl IntoIterator<Item = O::Entry>,
        past_deadline: impl Fn() -> bool,
    ) -> Result<Delivered, Undelivered<O::Entry>> {
        let mut delivery = self.start(entries);
        delivery.run_until(past_deadline).await;
        delivery.finish()
    }

    /// A delivery that can be interrupted without losing an entry. Nothing is sent until it is
    /// [run](Delivery::run).
    pub fn start(&self, entries: impl IntoIterator<Item = O::Entry>) -> Delivery<'_, O, S> {
        Delivery::new(self, entries.into_iter().collect())
    }

    pub(crate) fn tell(&self, progress: Progress) {
        if let Some(tell) = &self.on_progress {
            tell(progress);
        }
    }
}

impl<O, S> fmt::Debug for Sender<O, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}
