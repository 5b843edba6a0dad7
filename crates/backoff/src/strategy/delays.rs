use core::iter::FusedIterator;
use core::time::Duration;

use rand_core::Rng;

use super::plan::Plan;
use crate::jitter::Step;
use crate::{Strategy, StrategyError, Xoshiro256PlusPlus};

/// The waits of a [`Strategy`](crate::Strategy), one per retry. Each is at least a tick and at most
/// the cap, however many there are.
///
/// **A clone repeats its original's stream**: from the moment of cloning, both give the same waits.
/// For two operations that must not wait in step, take two iterators of the same
/// [`Streams`](crate::Streams).
///
/// It fits wherever an `IntoIterator<Item = Duration>` is asked for, as by tokio-retry, and is a
/// `backon::Backoff`.
///
/// ```
/// use comeback_backoff::Strategy;
/// use std::time::Duration;
///
/// # #[cfg(feature = "entropy")] {
/// let strategy = Strategy::exponential(Duration::from_millis(10), Duration::from_secs(1)).retries(8);
/// let original = strategy.streams()?.delays();
/// assert!(original.clone().eq(original));
/// # }
/// # Ok::<(), comeback_backoff::StrategyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Delays<R = Xoshiro256PlusPlus> {
    plan: Plan,
    made: u64,
    previous: u64,
    rng: R,
}

impl Strategy {
    /// One iterator, on the caller's generator, such as `rand::rng()`.
    ///
    /// ```
    /// use comeback_backoff::Strategy;
    /// use std::time::Duration;
    ///
    /// let strategy = Strategy::exponential(Duration::from_millis(10), Duration::from_secs(1));
    /// let first = strategy.with_rng(rand::rng())?.next();
    /// assert!(first <= Some(Duration::from_millis(10)));
    /// # Ok::<(), comeback_backoff::StrategyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What [`StrategyError`] lists.
    pub fn with_rng<R: Rng>(&self, rng: R) -> Result<Delays<R>, StrategyError> {
        Ok(Delays::new(Plan::new(self)?, rng))
    }
}

impl<R> Delays<R> {
    pub(crate) fn new(plan: Plan, rng: R) -> Self {
        let previous = plan.growth.first();
        Self { plan, made: 0, previous, rng }
    }

    /// How many are left, if their number is limited.
    fn left(&self) -> Option<u64> {
        let limits = self.plan.retries.into_iter().chain(self.plan.growth.len());
        limits.min().map(|retries| retries.saturating_sub(self.made))
    }
}

impl<R: Rng> Iterator for Delays<R> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.left() == Some(0) {
            return None;
        }
        let Plan { growth, cap, jitter, tick, .. } = &self.plan;
        self.made = self.made.saturating_add(1);
        let step = Step {
            base: growth.first(),
            cap: *cap,
            ceiling: growth.ceiling(*cap, self.made)?,
            previous: self.previous,
        };
        self.previous = jitter.draw(step, &mut self.rng);
        Some(tick.times(self.previous))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self.left().map(usize::try_from) {
            Some(Ok(left)) => (left, Some(left)),
            Some(Err(_)) | None => (usize::MAX, None),
        }
    }
}

impl<R: Rng> FusedIterator for Delays<R> {}
