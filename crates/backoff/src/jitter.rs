use std::fmt;
use std::str::FromStr;

use rand::{Rng, RngExt};

use crate::ceiling;

/// How a wait is drawn under its ceiling. Sources: "Exponential Backoff And Jitter" (AWS
/// Architecture Blog); here every draw is a whole number and never 0, which would be no backoff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Uniform over {1 … c}; mean (c + 1) / 2. The default: it spreads retries the most.
    #[default]
    Full,
    /// Uniform over {⌈c/2⌉ … c}; mean about 3c/4. Never shorter than half the ceiling.
    Equal,
    /// s₁ uniform over {base … min(cap, 3·base)}, sₙ over {base … min(cap, 3·sₙ₋₁)}. Knows no
    /// ceiling, only the cap; its chain is drawn anew each time from the start of the generator.
    Decorrelated,
    /// Always c. Events that failed together come back together.
    None,
}

impl Jitter {
    /// Every jitter, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Full, Self::Equal, Self::Decorrelated, Self::None];

    /// `full`, `equal`, `decorrelated` or `none`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Equal => "equal",
            Self::Decorrelated => "decorrelated",
            Self::None => "none",
        }
    }
}

/// The name is no jitter's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownJitter;

impl FromStr for Jitter {
    type Err = UnknownJitter;

    fn from_str(name: &str) -> Result<Self, UnknownJitter> {
        Self::ALL.into_iter().find(|jitter| jitter.name() == name).ok_or(UnknownJitter)
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for UnknownJitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be full, equal, decorrelated or none")
    }
}

impl std::error::Error for UnknownJitter {}

/// Capped exponential backoff, in whole units (seconds, for SQS).
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
    pub fn delay(&self, n: u64, rng: &mut (impl Rng + ?Sized)) -> u64 {
        let ceiling = ceiling(self.base, self.cap, n).max(1);
        match self.jitter {
            Jitter::None => ceiling,
            Jitter::Full => rng.random_range(1..=ceiling),
            Jitter::Equal => rng.random_range(ceiling.div_ceil(2)..=ceiling),
            Jitter::Decorrelated => self.decorrelated(n, rng),
        }
    }

    fn decorrelated(&self, n: u64, rng: &mut (impl Rng + ?Sized)) -> u64 {
        let base = self.base.max(1);
        let cap = self.cap.max(base);
        (0..n.max(1)).fold(base, |previous, _| rng.random_range(base..=cap.min(previous.saturating_mul(3))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::{Backoff, Jitter};

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

    #[test]
    fn names_read_back() {
        for jitter in Jitter::ALL {
            assert_eq!(jitter.name().parse(), Ok(jitter));
        }
        assert_eq!(
            "Full".parse::<Jitter>().unwrap_err().to_string(),
            "must be full, equal, decorrelated or none"
        );
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
