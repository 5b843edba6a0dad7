use std::fmt;
use std::time::Duration;

use crate::{Operation, Progress, Retries};

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
