//! The number of an entry's retries, and the waits before them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use comeback_backoff::Backoff;

/// The waits before an entry's retries. The nth wait comes before the nth retry. The number of waits is the maximum
/// number of retries.
///
/// An entry uses up no retries in two cases: its call is refused as a whole and sent again in halves, or the service
/// throttles the entry but accepts other entries of the same call. A throttled entry that has been in n calls is sent
/// again after the nth wait, or after the last wait if there are fewer than n waits.
///
/// The default is 5 retries. The nth wait is drawn uniformly from 1 ms to 100 ms · 2ⁿ⁻¹ ([full
/// jitter](comeback_backoff::Jitter::Full)), on average about 0.05, 0.1, 0.2, 0.4 and 0.8 s. Each failed batch draws
/// its own waits, and the operating system seeds the draws, so senders that fail at the same time do not retry at the
/// same time.
#[derive(Clone)]
pub struct Retries {
    /// Called for each failed batch. Returns the waits before its retries.
    waits: Arc<dyn Fn() -> Box<dyn Iterator<Item = Duration>> + Send + Sync>,
}

const RETRIES: u64 = 5;
const STEP: Duration = Duration::from_millis(100);

impl Retries {
    /// No retries: every entry is sent once, even if it is throttled. However, a call that is refused as a whole is
    /// sent again in halves.
    pub fn none() -> Self {
        Self::of([])
    }

    /// Uses these waits for every entry. `waits` can be an array, the `ceilings()` of a comeback-backoff ladder, or any
    /// other iterator. If the waits are endless, an entry that keeps failing is retried until the deadline.
    pub fn of<D>(waits: D) -> Self
    where
        D: IntoIterator<Item = Duration>,
        D::IntoIter: Clone + Send + Sync + 'static,
    {
        let waits = waits.into_iter();
        Self { waits: Arc::new(move || Box::new(waits.clone())) }
    }

    /// Returns the wait before retry `n`, counted from 1.
    pub(crate) fn wait(&self, n: u64) -> Option<Duration> {
        (self.waits)().nth(usize::try_from(n).ok()?.checked_sub(1)?)
    }

    /// Returns the wait before retry `n`, or the last wait if there are fewer than `n`.
    pub(crate) fn wait_or_last(&self, n: u64) -> Option<Duration> {
        (self.waits)().take(usize::try_from(n).ok()?).last()
    }
}

impl Default for Retries {
    fn default() -> Self {
        let backoff = Backoff::exponential(STEP, STEP * 16).expect("BUG: constants in order");
        let backoff = backoff.with_retries(RETRIES);
        // Entropy keeps senders from retrying at the same time. Only this function uses it.
        #[allow(clippy::disallowed_methods)]
        Self { waits: Arc::new(move || Box::new(backoff.delays())) }
    }
}

impl fmt::Debug for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retries").finish_non_exhaustive()
    }
}
