use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;

use rand_core::{Rng, SeedableRng};

use super::plan::Plan;
use crate::{Delays, Strategy, StrategyError, Xoshiro256PlusPlus};

/// A checked and seeded [`Strategy`]: makes iterators that each have a random stream of their own.
///
/// Make it once and share it: clones number their iterators together, and so never repeat a stream.
/// The seed and the order in which iterators are made determine every wait.
///
/// Both it and a reference to it are an `IntoIterator` and, with feature `backon`, a
/// `backon::BackoffBuilder`.
///
/// ```
/// use comeback_backoff::Strategy;
/// use std::time::Duration;
///
/// let strategy = Strategy::exponential(Duration::from_millis(10), Duration::from_secs(1)).retries(8);
/// let streams = strategy.seeded(7)?;
/// let (first, second) = (streams.delays(), streams.delays());
/// assert!(first.clone().ne(second));
/// assert!(first.eq(strategy.seeded(7)?.delays())); // the same seed, from the start again
/// # Ok::<(), comeback_backoff::StrategyError>(())
/// ```
#[derive(Debug)]
pub struct Streams<R = Xoshiro256PlusPlus> {
    plan: Plan,
    /// The generator of stream k is seeded with this plus k.
    first_seed: u64,
    /// No wider than a pointer, because small processors have nothing wider that is atomic.
    made: Arc<AtomicUsize>,
    generator: PhantomData<fn() -> R>,
}

impl Strategy {
    /// A maker of iterators. Each has a random stream of its own, and no two makers or processes wait in
    /// step: the seed comes from the operating system, once for each call (feature `entropy`).
    ///
    /// ```
    /// use comeback_backoff::Strategy;
    /// use std::time::Duration;
    ///
    /// let strategy = Strategy::exponential(Duration::from_secs(1), Duration::from_secs(60)).retries(9);
    /// assert!(strategy.streams()?.delays().ne(strategy.streams()?.delays()));
    /// # Ok::<(), comeback_backoff::StrategyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What [`StrategyError`] lists.
    #[cfg(feature = "entropy")]
    pub fn streams(&self) -> Result<Streams<Xoshiro256PlusPlus>, StrategyError> {
        self.seeded(getrandom::u64().map_err(|_| StrategyError::NoEntropy)?)
    }

    /// As `streams`, but `seed` alone determines every wait: for tests and simulations. Processes that share a
    /// seed wait in step.
    ///
    /// # Errors
    ///
    /// What [`StrategyError`] lists.
    pub fn seeded(&self, seed: u64) -> Result<Streams<Xoshiro256PlusPlus>, StrategyError> {
        Streams::new(self, seed)
    }
}

impl<R: Rng + SeedableRng> Streams<R> {
    /// As [`Strategy::seeded`], for any generator.
    ///
    /// ```
    /// use comeback_backoff::{Strategy, Streams};
    /// use rand::rngs::Xoshiro128PlusPlus;
    /// use std::time::Duration;
    ///
    /// let streams = Streams::<Xoshiro128PlusPlus>::new(&Strategy::constant(Duration::from_secs(1)), 7)?;
    /// assert!(streams.delays().next() <= Some(Duration::from_secs(1)));
    /// # Ok::<(), comeback_backoff::StrategyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What [`StrategyError`] lists.
    pub fn new(strategy: &Strategy, seed: u64) -> Result<Self, StrategyError> {
        // The seed is scattered first: neighbouring seeds, such as host numbers, would otherwise share
        // all streams but one.
        let first_seed = Xoshiro256PlusPlus::seed_from_u64(seed).next_u64();
        Ok(Self { plan: Plan::new(strategy)?, first_seed, made: Arc::default(), generator: PhantomData })
    }

    /// A new iterator, on the next stream.
    pub fn delays(&self) -> Delays<R> {
        let stream = self.made.fetch_add(1, Ordering::Relaxed);
        Delays::new(self.plan.clone(), R::seed_from_u64(self.first_seed.wrapping_add(stream as u64)))
    }
}

impl<R> Clone for Streams<R> {
    fn clone(&self) -> Self {
        let Self { plan, first_seed, made, generator } = self;
        Self { plan: plan.clone(), first_seed: *first_seed, made: Arc::clone(made), generator: *generator }
    }
}

impl<R: Rng + SeedableRng> IntoIterator for &Streams<R> {
    type Item = Duration;
    type IntoIter = Delays<R>;

    fn into_iter(self) -> Delays<R> {
        self.delays()
    }
}

impl<R: Rng + SeedableRng> IntoIterator for Streams<R> {
    type Item = Duration;
    type IntoIter = Delays<R>;

    fn into_iter(self) -> Delays<R> {
        self.delays()
    }
}

#[cfg(feature = "backon")]
impl<R: Rng + SeedableRng + Send + Sync + Unpin> backon::BackoffBuilder for &Streams<R> {
    type Backoff = Delays<R>;

    fn build(self) -> Delays<R> {
        self.delays()
    }
}

#[cfg(feature = "backon")]
impl<R: Rng + SeedableRng + Send + Sync + Unpin> backon::BackoffBuilder for Streams<R> {
    type Backoff = Delays<R>;

    fn build(self) -> Delays<R> {
        self.delays()
    }
}
