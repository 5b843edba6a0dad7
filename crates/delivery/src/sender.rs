//! The sender: options and limits shared by all deliveries through one API.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::gate::Gate;
use crate::operation::{Operation, ServiceError};
use crate::retries::Retries;

/// Delivers entries through a batch API. Build one sender per queue, table, stream or bus, and use it for any number of
/// deliveries, including concurrent ones. Deliveries and clones of the sender share one [limit](Self::concurrency) on
/// concurrent calls, and slow down together when the service throttles.
pub struct Sender<O, S> {
    pub(crate) operation: Arc<O>,
    pub(crate) sleep: Arc<S>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) retries: Retries,
    pub(crate) concurrency: usize,
    pub(crate) linger: Duration,
    on_pause: Option<Arc<OnPause>>,
}

type OnPause = dyn Fn(Duration, &ServiceError) + Send + Sync;

/// Default number of concurrent calls per sender.
const CONCURRENCY: usize = 4;

impl<O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F> Sender<O, S> {
    /// Creates a sender for an operation. To wait, the sender calls `sleep`, for example `tokio::time::sleep`. The
    /// `new` function of each adapter, such as the one for SQS, calls `over`.
    pub fn over(operation: O, sleep: S) -> Self {
        Self {
            gate: Arc::new(Gate::new(CONCURRENCY, operation.limits().entries)),
            operation: Arc::new(operation),
            sleep: Arc::new(sleep),
            retries: Retries::default(),
            concurrency: CONCURRENCY,
            linger: Duration::ZERO,
            on_pause: None,
        }
    }

    /// Replaces the sleep function. Tests that must not wait can use `|_| tokio::time::sleep(Duration::ZERO)`.
    #[must_use]
    pub fn sleep(self, sleep: S) -> Self {
        Self { sleep: Arc::new(sleep), ..self }
    }

    /// Sets the number of retries and the waits before them. The default is [`Retries::default`].
    #[must_use]
    pub fn retries(self, retries: Retries) -> Self {
        Self { retries, ..self }
    }

    /// Sets the maximum number of concurrent calls, across all deliveries by this sender and by clones made from it
    /// afterwards. The default is 4.
    ///
    /// # Panics
    ///
    /// Panics if `calls` is 0.
    #[must_use]
    pub fn concurrency(self, calls: usize) -> Self {
        assert!(calls > 0, "concurrency is 0; it must be at least 1");
        Self { concurrency: calls, gate: Arc::new(Gate::new(calls, self.operation.limits().entries)), ..self }
    }

    /// Sets the time that [`send_stream`](Self::send_stream) or [`batcher`](Self::batcher) waits for more entries
    /// before it sends a batch that is not full. The default is zero: the batch is sent as soon as no further entry is
    /// available.
    #[must_use]
    pub fn linger(self, linger: Duration) -> Self {
        Self { linger, ..self }
    }

    /// Calls `tell` when the service requests a pause (`Retry-After`). `tell` receives the length of the sender's pause
    /// and the service's error. The sender pauses for as long as the service requested, but at most 5 s longer than it
    /// would have waited anyway. A panic in `tell` is caught.
    #[must_use]
    pub fn on_pause(self, tell: impl Fn(Duration, &ServiceError) + Send + Sync + 'static) -> Self {
        Self { on_pause: Some(Arc::new(tell)), ..self }
    }
}

impl<O, S> Sender<O, S> {
    pub(crate) fn tell_pause(&self, pause: Duration, error: &ServiceError) {
        if let Some(tell) = &self.on_pause {
            // A panic must not lose an entry. The panic hook has already reported the panic.
            let _: Result<(), _> = catch_unwind(AssertUnwindSafe(|| tell(pause, error)));
        }
    }
}

/// A clone shares this sender's pace and its limit on concurrent calls.
impl<O, S> Clone for Sender<O, S> {
    fn clone(&self) -> Self {
        Self {
            operation: self.operation.clone(),
            sleep: self.sleep.clone(),
            gate: self.gate.clone(),
            retries: self.retries.clone(),
            concurrency: self.concurrency,
            linger: self.linger,
            on_pause: self.on_pause.clone(),
        }
    }
}

impl<O, S> fmt::Debug for Sender<O, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}
