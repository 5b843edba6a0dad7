use rand::Rng;

use crate::jitter::Step;
use crate::{Jitter, ceiling};

/// Capped exponential backoff in whole units (seconds, for SQS), without state: the wait before
/// retry n alone. [`Strategy::exponential`](crate::Strategy::exponential) gives the same waits as an
/// iterator.
///
/// The fields are not checked: a `base` of 0 counts as 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Ceiling of the first wait; at least 1.
    pub base: u64,
    /// No wait is longer; at least `base`.
    pub cap: u64,
    /// How a wait is drawn under its ceiling.
    pub jitter: Jitter,
}

impl Backoff {
    /// The wait before retry `n` (1 for the first): 1 to `cap`, the cap applied before the jitter.
    ///
    /// A generator in the same state gives the same wait. Decorrelated jitter takes `n` draws, the
    /// first `n - 1` to come by its state; give it a generator seeded by the event, not by the retry.
    ///
    /// ```
    /// use comeback_backoff::{Backoff, Jitter};
    /// use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
    ///
    /// let backoff = Backoff { base: 1, cap: 43_170, jitter: Jitter::Full };
    /// let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    /// let delay = backoff.delay(5, &mut rng); // before the fifth retry: 1 to 16 seconds
    /// assert!((1..=16).contains(&delay));
    /// ```
    pub fn delay(&self, n: u64, rng: &mut (impl Rng + ?Sized)) -> u64 {
        let base = self.base.max(1);
        let first = Step {
            base,
            cap: self.cap.max(base),
            ceiling: ceiling(self.base, self.cap, n).max(1),
            previous: base,
        };
        let draws = if self.jitter == Jitter::Decorrelated { n.max(1) } else { 1 };
        (0..draws).fold(base, |previous, _| self.jitter.draw(Step { previous, ..first }, rng))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::Backoff;
    use crate::Jitter;

    const DRAWS: usize = 20_000;

    fn draws(backoff: Backoff, n: u64) -> Vec<u64> {
        (0..DRAWS as u64).map(|seed| backoff.delay(n, &mut Xoshiro256PlusPlus::seed_from_u64(seed))).collect()
    }

    fn mean(draws: &[u64]) -> f64 {
        draws.iter().sum::<u64>() as f64 / draws.len() as f64
    }

    fn range(draws: &[u64]) -> (u64, u64) {
        (*draws.iter().min().unwrap(), *draws.iter().max().unwrap())
    }

    fn distinct(draws: &[u64]) -> usize {
        draws.iter().collect::<std::collections::HashSet<_>>().len()
    }

    fn backoff(jitter: Jitter) -> Backoff {
        Backoff { base: 1, cap: 43_170, jitter }
    }

    /// Bounds, spread and mean at once: every value of the range comes, none outside it, and the
    /// mean is within 4 standard errors of the uniform one.
    fn assert_uniform(draws: &[u64], low: u64, high: u64) {
        assert_eq!(range(draws), (low, high));
        assert_eq!(distinct(draws) as u64, high - low + 1);
        let width = (high - low + 1) as f64;
        let standard_error = ((width * width - 1.0) / 12.0 / draws.len() as f64).sqrt();
        let expected = (low + high) as f64 / 2.0;
        assert!((mean(draws) - expected).abs() < 4.0 * standard_error, "mean {} not {expected}", mean(draws));
    }

    #[test]
    fn full_is_uniform_from_1_to_the_ceiling() {
        assert_uniform(&draws(backoff(Jitter::Full), 8), 1, 128);
    }

    #[test]
    fn equal_is_uniform_from_half_the_ceiling_rounded_up() {
        assert_uniform(&draws(backoff(Jitter::Equal), 8), 64, 128);
        let odd = Backoff { base: 7, cap: 7, jitter: Jitter::Equal };
        assert_uniform(&draws(odd, 3), 4, 7);
    }

    #[test]
    fn decorrelated_starts_uniform_from_base_to_three_times_base() {
        let backoff = Backoff { base: 10, cap: 1_000, jitter: Jitter::Decorrelated };
        assert_uniform(&draws(backoff, 1), 10, 30);
    }

    #[test]
    fn decorrelated_grows_threefold_at_most_and_is_one_chain() {
        let backoff = Backoff { base: 1, cap: 1_000, jitter: Jitter::Decorrelated };
        for seed in 0..2_000 {
            let chain: Vec<u64> =
                (1..=12).map(|n| backoff.delay(n, &mut Xoshiro256PlusPlus::seed_from_u64(seed))).collect();
            for (previous, next) in chain.iter().zip(&chain[1..]) {
                assert!((1..=1_000.min(3 * previous)).contains(next), "{chain:?}");
            }
        }
        // E[sₙ] = (base + 3·E[sₙ₋₁]) / 2 while the cap is far: 2, 3.5, 5.75 from a base of 1.
        for (n, expected) in [(1, 2.0), (2, 3.5), (3, 5.75)] {
            let mean = mean(&draws(backoff, n));
            assert!((mean - expected).abs() < 0.03 * expected, "mean {mean} of s{n}, not {expected}");
        }
        assert!(range(&draws(backoff, 40)).1 <= 1_000);
        assert!(distinct(&draws(backoff, 40)) > 500);
    }

    #[test]
    fn none_is_the_ceiling() {
        assert!(draws(backoff(Jitter::None), 8).iter().all(|&delay| delay == 128));
    }

    #[test]
    fn the_cap_comes_before_the_jitter() {
        // Jitter first would pile the draws over the cap up at the cap.
        let capped = draws(Backoff { base: 1, cap: 100, jitter: Jitter::Full }, 20);
        assert_uniform(&capped, 1, 100);
    }

    #[test]
    fn stays_in_bounds_for_every_n_up_to_100_000() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for jitter in [Jitter::Full, Jitter::Equal, Jitter::None] {
            for n in 1..=100_000 {
                assert!((1..=43_170).contains(&backoff(jitter).delay(n, &mut rng)), "{jitter} {n}");
            }
        }
        assert!((1..=43_170).contains(&backoff(Jitter::Decorrelated).delay(100_000, &mut rng)));
    }

    proptest! {
        #[test]
        fn never_zero_never_over_the_cap(
            base in 1..=50_000u64, extra in 0..=50_000u64, n in 1..=10_000u64, seed: u64,
            jitter in proptest::sample::select(Jitter::ALL.to_vec()),
        ) {
            let backoff = Backoff { base, cap: base + extra, jitter };
            let delay = backoff.delay(n, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
            prop_assert!((1..=base + extra).contains(&delay));
        }
    }
}
