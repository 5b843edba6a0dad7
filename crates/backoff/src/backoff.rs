//! [`Backoff`] describes the waits before retries, and [`Delays`] iterates over the waits for one operation.

use core::fmt;
use core::iter::FusedIterator;
use core::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};

use crate::error::BackoffError;
use crate::growth::Growth;
use crate::jitter::Jitter;

/// Describes the waits before retries: the growth of their ceilings, the cap, the jitter, the tick and the number of
/// retries.
///
/// Every `Backoff` is valid: settings that would give a wait of zero, or a wait over the cap, are refused.
///
/// By default, a backoff from a [list](Self::list) of waits has no jitter, and allows one retry for each wait. Any
/// other backoff has [full jitter](Jitter::Full) and unlimited retries.
///
/// `&Backoff` implements `IntoIterator`, and each iterator draws its own waits. With the `backon` feature, `&Backoff`
/// also implements `backon::BackoffBuilder`.
///
/// ```
/// use comeback_backoff::{Backoff, Jitter};
/// use std::time::Duration;
///
/// let (step, cap) = (Duration::from_millis(100), Duration::from_secs(1));
/// let ceilings = |backoff: &Backoff| [1, 2, 3, 4, 5].map(|n| backoff.ceiling(n).as_millis());
/// assert_eq!(ceilings(&Backoff::exponential(step, cap)?), [100, 200, 400, 800, 1_000]);
/// assert_eq!(ceilings(&Backoff::exponential_by(1.5, step, cap)?), [100, 150, 225, 338, 506]);
/// assert_eq!(ceilings(&Backoff::linear(step, cap)?), [100, 200, 300, 400, 500]);
/// assert_eq!(ceilings(&Backoff::squared(step, cap)?), [100, 400, 900, 1_000, 1_000]);
/// assert_eq!(ceilings(&Backoff::constant(step)?), [100; 5]);
/// # #[cfg(feature = "entropy")] {
/// let exact = Backoff::linear(step, cap)?.with_jitter(Jitter::None)?.with_retries(3);
/// assert!(exact.delays().eq([step, 2 * step, 3 * step]));
/// # }
/// # Ok::<(), comeback_backoff::BackoffError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    growth: Growth,
    cap: u64,
    jitter: Jitter,
    /// The length of a tick, in nanoseconds. `growth` and `cap` are in ticks. Converting them to nanoseconds cannot
    /// overflow 64 bits.
    tick: u64,
    retries: Option<u64>,
}

/// Maximum length of a chain of decorrelated waits. It limits the work of each call to [`Backoff::delay`], which draws
/// the chain from its start.
const LONGEST_CHAIN: u64 = 1 << 16;

impl Backoff {
    /// Creates an exponential backoff with ceilings min(cap, base · 2ⁿ⁻¹) for n = 1, 2, 3, …
    ///
    /// Only a backoff created by this function accepts [decorrelated jitter](Jitter::Decorrelated).
    ///
    /// Source: "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
    ///
    /// # Errors
    ///
    /// Fails for a `base` of zero, a `cap` below `base`, or a duration of 2⁶⁴ nanoseconds (584 years) or more.
    pub fn exponential(base: Duration, cap: Duration) -> Result<Self, BackoffError> {
        Self::growing("base", base, cap, |base| Growth::Doubling { base })
    }

    /// Creates an exponential backoff with any growth factor. The ceiling of the nth wait is min(cap, base ·
    /// factorⁿ⁻¹), rounded to a whole number of the backoff's [ticks](Self::with_tick).
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`exponential`](Self::exponential), and if `factor` is not finite or is below 1.
    pub fn exponential_by(factor: f64, base: Duration, cap: Duration) -> Result<Self, BackoffError> {
        if !(factor.is_finite() && factor >= 1.0) {
            return refused(format_args!("factor is {factor}; it must be a number of at least 1"));
        }
        Self::growing("base", base, cap, |base| Growth::Powers { base, factor })
    }

    /// Creates a backoff in which every ceiling is `delay`. For waits of exactly `delay`, set [`Jitter::None`].
    ///
    /// # Errors
    ///
    /// Fails for a `delay` of zero, or of 2⁶⁴ nanoseconds (584 years) or more.
    pub fn constant(delay: Duration) -> Result<Self, BackoffError> {
        Self::growing("delay", delay, delay, |step| Growth::Polynomial { step, power: 0 })
    }

    /// Creates a linear backoff with ceilings min(cap, step · n): step, 2·step, 3·step, …
    ///
    /// # Errors
    ///
    /// Fails for a `step` of zero, a `cap` below `step`, or a duration of 2⁶⁴ nanoseconds (584 years) or more.
    pub fn linear(step: Duration, cap: Duration) -> Result<Self, BackoffError> {
        Self::growing("step", step, cap, |step| Growth::Polynomial { step, power: 1 })
    }

    /// Creates a quadratic backoff with ceilings min(cap, step · n²): step, 4·step, 9·step, …
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`linear`](Self::linear).
    pub fn squared(step: Duration, cap: Duration) -> Result<Self, BackoffError> {
        Self::growing("step", step, cap, |step| Growth::Polynomial { step, power: 2 })
    }

    /// Creates a backoff from a list of waits, one for each retry. An empty list allows no retries. With jitter, the
    /// list holds the ceilings of the waits.
    ///
    /// # Errors
    ///
    /// Fails for a wait of zero, or of 2⁶⁴ nanoseconds (584 years) or more.
    pub fn list(delays: impl IntoIterator<Item = Duration>) -> Result<Self, BackoffError> {
        let nth = |(n, delay)| nanos(format_args!("delay {n}"), delay);
        let delays = (1..).zip(delays).map(nth).collect::<Result<alloc::vec::Vec<u64>, _>>()?;
        let cap = delays.iter().copied().max().unwrap_or(1);
        Ok(Self::in_coarsest_ticks(Growth::List(delays.into()), cap, Jitter::None))
    }

    /// Sets the random distribution of each wait.
    ///
    /// # Errors
    ///
    /// Fails for [`Jitter::Decorrelated`], unless the backoff was created by [`Backoff::exponential`].
    pub fn with_jitter(self, jitter: Jitter) -> Result<Self, BackoffError> {
        if jitter == Jitter::Decorrelated && !matches!(self.growth, Growth::Doubling { .. }) {
            return refused(
                "decorrelated jitter has a growth of its own; it must be used with `Backoff::exponential`",
            );
        }
        Ok(Self { jitter, ..self })
    }

    /// Makes each wait a whole number of ticks, such as whole seconds for SQS.
    ///
    /// The default tick is a millisecond, a microsecond or a nanosecond: the longest that divides every duration.
    ///
    /// ```
    /// use comeback_backoff::Backoff;
    /// use std::time::Duration;
    ///
    /// # #[cfg(feature = "entropy")] {
    /// let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(43_170))?;
    /// let delays = backoff.with_tick(Duration::from_secs(1))?.with_retries(20).delays();
    /// assert!(delays.into_iter().all(|delay| delay.as_secs() >= 1 && delay.subsec_nanos() == 0));
    /// # }
    /// # Ok::<(), comeback_backoff::BackoffError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails for a tick of zero, or a tick that does not divide every duration in the backoff.
    pub fn with_tick(self, tick: Duration) -> Result<Self, BackoffError> {
        self.in_ticks(nanos("tick", tick)?).map_err(|remainder| {
            let value = Duration::from_nanos(remainder);
            BackoffError::new(format_args!("{value:?} is not a whole number of ticks of {tick:?}"))
        })
    }

    /// Limits the number of retries, not counting the first call. A [list](Self::list) of waits still allows at most
    /// one retry for each wait.
    #[must_use]
    pub fn with_retries(self, retries: u64) -> Self {
        Self { retries: Some(retries), ..self }
    }

    /// Returns the ceiling of the first wait.
    pub fn base(&self) -> Duration {
        self.ceiling(1)
    }

    /// Returns the longest possible wait.
    pub fn cap(&self) -> Duration {
        self.time(self.cap)
    }

    /// Returns the jitter: the random distribution of each wait.
    pub const fn jitter(&self) -> Jitter {
        self.jitter
    }

    /// Returns the ceiling of the wait before retry `n` (1 for the first; 0 counts as 1), even if `n` exceeds the
    /// number of retries. Past the end of a list, its last wait is the ceiling. Decorrelated jitter obeys only the
    /// cap, not this ceiling.
    pub fn ceiling(&self, n: u64) -> Duration {
        self.time(self.growth.ceiling(self.cap, n))
    }

    /// Returns the maximum number of retries, or `None` if retries are unlimited.
    pub fn retries(&self) -> Option<u64> {
        self.retries.into_iter().chain(self.growth.len()).min()
    }

    /// Returns the wait before retry `n`, where 1 is the first and 0 counts as 1. Returns `None` if `n` exceeds the
    /// [number of retries](Self::retries). Use this function if a queue counts the retries.
    ///
    /// For decorrelated jitter, use the same seed for all retries of an operation. Each call then draws all earlier
    /// waits again: `n` draws, at most 65,536.
    ///
    /// ```
    /// use comeback_backoff::Backoff;
    /// use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
    /// use std::time::Duration;
    ///
    /// let second = Duration::from_secs(1);
    /// let backoff = Backoff::exponential(second, 43_170 * second)?.with_tick(second)?.with_retries(5);
    /// let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    /// assert!(backoff.delay(5, &mut rng).is_some_and(|delay| (1..=16).contains(&delay.as_secs())));
    /// assert_eq!(backoff.delay(6, &mut rng), None);
    /// # Ok::<(), comeback_backoff::BackoffError>(())
    /// ```
    pub fn delay(&self, n: u64, rng: &mut (impl Rng + ?Sized)) -> Option<Duration> {
        self.retries().is_none_or(|last| n.max(1) <= last).then(|| self.delay_of(n, rng))
    }

    fn delay_of(&self, n: u64, rng: &mut (impl Rng + ?Sized)) -> Duration {
        if self.jitter != Jitter::Decorrelated {
            return self.time(self.draw(n, 0, rng));
        }
        let (chain, retry) = ((n.max(1) - 1) / LONGEST_CHAIN, (n.max(1) - 1) % LONGEST_CHAIN);
        if chain == 0 {
            return self.chained(retry + 1, rng);
        }
        let seed = rng.next_u64().wrapping_add(chain);
        self.chained(retry + 1, &mut Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns the waits for one operation, with a seed from the operating system, so that no two operations retry in
    /// step. If the operating system provides no randomness, the seed is 0.
    #[cfg(feature = "entropy")]
    pub fn delays(&self) -> Delays {
        self.seeded(getrandom::u64().unwrap_or(0))
    }

    /// Returns the waits for one operation, for tests and simulations: the same `seed` always gives the same waits.
    pub fn seeded(&self, seed: u64) -> Delays {
        self.with_rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns the waits for one operation, drawn with the caller's random number generator, such as `rand::rng()`.
    pub fn with_rng<R: Rng>(&self, rng: R) -> Delays<R> {
        Delays { backoff: self.clone(), made: 0, previous: self.growth.ceiling(self.cap, 1), rng }
    }

    fn growing(
        name: &str,
        first: Duration,
        cap: Duration,
        growth: impl FnOnce(u64) -> Growth,
    ) -> Result<Self, BackoffError> {
        if cap < first {
            return refused(format_args!("cap is {cap:?}; it must be at least the {name}, {first:?}"));
        }
        let growth = growth(nanos(name, first)?);
        Ok(Self::in_coarsest_ticks(growth, nanos("cap", cap)?, Jitter::Full))
    }

    /// Creates a backoff from durations in nanoseconds, with the longest tick that divides all of them.
    fn in_coarsest_ticks(growth: Growth, cap: u64, jitter: Jitter) -> Self {
        let fine = Self { growth, cap, jitter, tick: 1, retries: None };
        let coarse = fine.in_ticks(1_000_000).or_else(|_| fine.in_ticks(1_000));
        coarse.unwrap_or(fine)
    }

    /// Returns the same backoff with a tick of `tick` nanoseconds. The error is a duration that is not a whole number
    /// of ticks.
    fn in_ticks(&self, tick: u64) -> Result<Self, u64> {
        let ticks = |length: u64| {
            let nanos = length * self.tick;
            if nanos.is_multiple_of(tick) { Ok(nanos / tick) } else { Err(nanos) }
        };
        Ok(Self { growth: self.growth.map(ticks)?, cap: ticks(self.cap)?, tick, ..*self })
    }

    const fn time(&self, ticks: u64) -> Duration {
        Duration::from_nanos(ticks * self.tick)
    }

    /// Draws a chain of decorrelated waits, and returns the last.
    fn chained(&self, draws: u64, rng: &mut (impl Rng + ?Sized)) -> Duration {
        let base = self.growth.ceiling(self.cap, 1);
        self.time((0..draws).fold(base, |previous, _| self.draw(1, previous, rng)))
    }

    /// Draws one wait and returns its length in ticks, the backoff's unit of time.
    fn draw(&self, n: u64, previous: u64, rng: &mut (impl Rng + ?Sized)) -> u64 {
        let ceiling = self.growth.ceiling(self.cap, n);
        match self.jitter {
            Jitter::Full => rng.random_range(1..=ceiling),
            Jitter::Equal => rng.random_range(ceiling.div_ceil(2)..=ceiling),
            Jitter::Decorrelated => {
                let base = self.growth.ceiling(self.cap, 1);
                rng.random_range(base..=self.cap.min(previous.saturating_mul(3)))
            }
            Jitter::None => ceiling,
        }
    }
}

/// Three retries with full jitter. The ceilings double from 1 s, up to 60 s.
impl Default for Backoff {
    fn default() -> Self {
        let backoff = Self::exponential(Duration::from_secs(1), Duration::from_secs(60));
        backoff.expect("BUG: constants in order").with_retries(3)
    }
}

#[cfg(feature = "entropy")]
impl IntoIterator for &Backoff {
    type Item = Duration;
    type IntoIter = Delays;

    #[expect(clippy::disallowed_methods, reason = "each iteration needs its own waits")]
    fn into_iter(self) -> Delays {
        self.delays()
    }
}

#[cfg(feature = "entropy")]
impl IntoIterator for Backoff {
    type Item = Duration;
    type IntoIter = Delays;

    fn into_iter(self) -> Delays {
        (&self).into_iter()
    }
}

#[cfg(feature = "backon")]
impl backon::BackoffBuilder for &Backoff {
    type Backoff = Delays;

    fn build(self) -> Delays {
        self.into_iter()
    }
}

#[cfg(feature = "backon")]
impl backon::BackoffBuilder for Backoff {
    type Backoff = Delays;

    fn build(self) -> Delays {
        self.into_iter()
    }
}

/// Iterator over the waits for one operation. Each wait is at least a tick and at most the cap.
///
/// **A clone repeats the waits of its original.** For different waits, call [`Backoff::delays`] again.
///
/// `Delays` is also a `backon::Backoff`, even without the `backon` feature.
#[derive(Clone, Debug)]
pub struct Delays<R = Xoshiro256PlusPlus> {
    backoff: Backoff,
    made: u64,
    previous: u64,
    rng: R,
}

impl<R> Delays<R> {
    /// The number of waits left, or `None` if it is unlimited.
    fn left(&self) -> Option<u64> {
        self.backoff.retries().map(|retries| retries.saturating_sub(self.made))
    }
}

impl<R: Rng> Iterator for Delays<R> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.left() == Some(0) {
            return None;
        }
        self.made = self.made.saturating_add(1);
        self.previous = self.backoff.draw(self.made, self.previous, &mut self.rng);
        Some(self.backoff.time(self.previous))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self.left().map(usize::try_from) {
            Some(Ok(left)) => (left, Some(left)),
            Some(Err(_)) | None => (usize::MAX, None),
        }
    }
}

impl<R: Rng> FusedIterator for Delays<R> {}

fn nanos(name: impl fmt::Display, value: Duration) -> Result<u64, BackoffError> {
    match u64::try_from(value.as_nanos()) {
        Ok(0) => refused(format_args!("{name} is zero; it must be longer")),
        Ok(nanos) => Ok(nanos),
        Err(_) => {
            refused(format_args!("{name} is {value:?}; it must be shorter than 2^64 nanoseconds (584 years)"))
        }
    }
}

fn refused<T>(message: impl fmt::Display) -> Result<T, BackoffError> {
    Err(BackoffError::new(message))
}
