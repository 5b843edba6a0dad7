use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use comeback_backoff::{Jitter, Strategy};

/// How often an entry is sent again, and after which waits: the nth wait comes before its nth retry, and
/// without an nth wait there is no nth retry. (The halves of a call that was refused whole are no retries.)
#[derive(Clone)]
pub struct Retries {
    wait: Arc<dyn Fn(usize) -> Option<Duration> + Send + Sync>,
}

const RETRIES: u64 = 5;
const STEP: Duration = Duration::from_millis(100);
const VALID: &str = "BUG: these steps and caps are whole and in order";

impl Retries {
    /// The default: 5 retries, each wait uniform over {1 ms … 100 ms · 2ⁿ⁻¹} ([full jitter](Jitter::Full)): on
    /// average about 0.05, 0.1, 0.2, 0.4 and 0.8 s. Each failed batch draws its own.
    ///
    /// The draws begin with entropy of the operating system, so that senders which fail at once do not retry at
    /// once; without any to be had, with a fixed seed. It is asked for before the first retry. For the same draws
    /// again: [`seeded`](Self::seeded).
    pub fn exponential() -> Self {
        let streams = LazyLock::new(|| {
            let strategy = Strategy::exponential(STEP, STEP * 16).retries(RETRIES);
            // The one place that asks for entropy: a default that retries in step is no default.
            #[allow(clippy::disallowed_methods)]
            let streams = strategy.streams().or_else(|_| strategy.seeded(0));
            streams.expect(VALID)
        });
        Self::each(move || streams.delays())
    }

    /// As [`exponential`](Self::exponential), with draws that this seed sets.
    pub fn seeded(seed: u64) -> Self {
        Self::of_strategy(&Strategy::exponential(STEP, STEP * 16), seed)
    }

    /// 5 retries, 100 ms · n, so 0.1, 0.2, 0.3, 0.4 and 0.5 s, without jitter.
    pub fn linear() -> Self {
        Self::of_strategy(&Strategy::linear(STEP, STEP * 5).jitter(Jitter::None), 0)
    }

    /// 5 retries, 100 ms · n²: 0.1, 0.4, 0.9, 1.6 and 2.5 s, without jitter.
    pub fn squared() -> Self {
        Self::of_strategy(&Strategy::squared(STEP, STEP * 25).jitter(Jitter::None), 0)
    }

    /// Every entry is sent once; only calls that are refused whole are sent again, in halves.
    pub fn none() -> Self {
        Self::of([])
    }

    /// These waits, the same for every entry: an array, a ladder's `ceilings()`, an iterator. If they are
    /// endless, only a deadline ends the retries of an entry that keeps failing.
    pub fn of<D>(waits: D) -> Self
    where
        D: IntoIterator<Item = Duration>,
        D::IntoIter: Clone + Send + Sync + 'static,
    {
        let waits = waits.into_iter();
        Self::each(move || waits.clone())
    }

    /// The waits that `make` makes anew for each failed batch, so that they can have jitter:
    /// `Retries::each(move || streams.delays())`, with comeback-backoff's `Streams`.
    pub fn each<D: IntoIterator<Item = Duration>>(make: impl Fn() -> D + Send + Sync + 'static) -> Self {
        Self { wait: Arc::new(move |retry| make().into_iter().nth(retry.checked_sub(1)?)) }
    }

    /// The wait before retry `n` (1 for the first), if there is one.
    pub(crate) fn wait(&self, n: u64) -> Option<Duration> {
        (self.wait)(usize::try_from(n).ok()?)
    }

    fn of_strategy(strategy: &Strategy, seed: u64) -> Self {
        let streams = strategy.clone().retries(RETRIES).seeded(seed);
        let streams = streams.expect(VALID);
        Self::each(move || streams.delays())
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self::exponential()
    }
}

impl fmt::Debug for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retries").finish_non_exhaustive()
    }
}
