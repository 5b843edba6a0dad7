#[cfg(test)]
mod tests;

use rand_core::{Rng, SeedableRng};

use crate::jitter::Step;
use crate::{Jitter, Xoshiro256PlusPlus, ceiling};

/// Capped exponential backoff in whole units (seconds, for SQS), without state: the wait before
/// retry n alone. [`Strategy::exponential`](crate::Strategy::exponential) gives the same waits as an
/// iterator.
///
/// Every setting has a meaning, and no wait is 0 or over the cap: a `cap` of 0 counts as 1, a `base` of 0 as
/// 1, and a `base` over the cap as the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backoff {
    /// Ceiling of the first wait; 1 to `cap`.
    pub base: u64,
    /// No wait is longer; at least 1.
    pub cap: u64,
    /// How a wait is drawn under its ceiling.
    pub jitter: Jitter,
}

/// After so many draws a decorrelated chain starts anew, so that no wait takes more.
const LONGEST_CHAIN: u64 = 1 << 16;

impl Backoff {
    /// Under min(`cap`, `base` · 2ⁿ⁻¹), by `jitter`.
    pub const fn new(base: u64, cap: u64, jitter: Jitter) -> Self {
        Self { base, cap, jitter }
    }

    /// The wait before retry `n` (1 for the first; 0 counts as 1): 1 to `cap`, the cap applied before the
    /// jitter.
    ///
    /// A generator in the same state gives the same wait. Decorrelated jitter takes `n` draws, the
    /// first `n - 1` to come by its state; give it a generator seeded by the event, not by the retry.
    /// It starts a new chain after every 65,536 retries, so that no wait takes more draws than that.
    ///
    /// ```
    /// use comeback_backoff::{Backoff, Jitter};
    /// use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
    ///
    /// let backoff = Backoff::new(1, 43_170, Jitter::Full);
    /// let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    /// let delay = backoff.delay(5, &mut rng); // before the fifth retry: 1 to 16 seconds
    /// assert!((1..=16).contains(&delay));
    /// ```
    pub fn delay(&self, n: u64, rng: &mut (impl Rng + ?Sized)) -> u64 {
        let cap = self.cap.max(1);
        let base = self.base.clamp(1, cap);
        let n = n.max(1);
        let first = Step { base, cap, ceiling: ceiling(base, cap, n), previous: base };
        if self.jitter != Jitter::Decorrelated {
            return self.jitter.draw(first, rng);
        }
        let (chain, retry) = ((n - 1) / LONGEST_CHAIN, (n - 1) % LONGEST_CHAIN);
        if chain == 0 {
            return decorrelated(first, retry + 1, rng);
        }
        let seed = rng.next_u64().wrapping_add(chain);
        decorrelated(first, retry + 1, &mut Xoshiro256PlusPlus::seed_from_u64(seed))
    }
}

/// The last wait of a chain of so many draws.
fn decorrelated(first: Step, draws: u64, rng: &mut (impl Rng + ?Sized)) -> u64 {
    (0..draws).fold(first.base, |previous, _| Jitter::Decorrelated.draw(Step { previous, ..first }, rng))
}
