use proptest::prelude::*;
use rand_core::SeedableRng;

use super::{Backoff, LONGEST_CHAIN};
use crate::{Jitter, Xoshiro256PlusPlus};

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
    Backoff::new(1, 43_170, jitter)
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
    let odd = Backoff::new(7, 7, Jitter::Equal);
    assert_uniform(&draws(odd, 3), 4, 7);
}

#[test]
fn decorrelated_starts_uniform_from_base_to_three_times_base() {
    let backoff = Backoff::new(10, 1_000, Jitter::Decorrelated);
    assert_uniform(&draws(backoff, 1), 10, 30);
}

#[test]
fn decorrelated_grows_threefold_at_most_and_is_one_chain() {
    let backoff = Backoff::new(1, 1_000, Jitter::Decorrelated);
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
    let capped = draws(Backoff::new(1, 100, Jitter::Full), 20);
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
fn a_zero_counts_as_1_and_a_base_over_the_cap_as_the_cap() {
    for jitter in Jitter::ALL {
        let same = |odd: Backoff, plain: Backoff| {
            for n in [0, 1, 2, 9, u64::MAX] {
                assert_eq!(draws_of(odd, n), draws_of(plain, n), "{odd:?}");
            }
        };
        same(Backoff::new(0, 60, jitter), Backoff::new(1, 60, jitter));
        same(Backoff::new(100, 60, jitter), Backoff::new(60, 60, jitter));
        same(Backoff::new(5, 0, jitter), Backoff::new(1, 1, jitter));
        same(Backoff::new(0, 0, jitter), Backoff::new(1, 1, jitter));
    }
}

/// A few of each.
fn draws_of(backoff: Backoff, n: u64) -> Vec<u64> {
    let delay = |seed| backoff.delay(n, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
    (0..3).map(delay).collect()
}

#[test]
fn a_decorrelated_chain_starts_anew_and_differs_from_the_one_before() {
    let backoff = Backoff::new(10, 1_000_000, Jitter::Decorrelated);
    for n in [LONGEST_CHAIN + 1, 2 * LONGEST_CHAIN + 1, u64::MAX / LONGEST_CHAIN * LONGEST_CHAIN + 1] {
        assert_uniform(&draws(backoff, n), 10, 30);
    }
    let at = |n| backoff.delay(n, &mut Xoshiro256PlusPlus::seed_from_u64(7));
    let waits = |chain: u64| (30..40).map(|n| at(chain * LONGEST_CHAIN + n)).collect::<Vec<_>>();
    assert!(waits(0) != waits(1) && waits(1) != waits(2));
}

/// Counted, not timed: the work for any n is that of one chain.
#[test]
fn five_million_decorrelated_retries_are_a_chain_of_draws_at_most() {
    struct Counting(u64);
    impl rand_core::TryRng for Counting {
        type Error = std::convert::Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            unreachable!("draws are of 64 bits")
        }
        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            self.0 += 1;
            Ok(self.0 << 40)
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Self::Error> {
            unreachable!("draws are of 64 bits")
        }
    }
    let backoff = Backoff::new(1, 1_000, Jitter::Decorrelated);
    for (n, draws) in [(1, 1), (LONGEST_CHAIN, LONGEST_CHAIN), (5_000_000, 1), (u64::MAX, 1)] {
        let mut rng = Counting(0);
        assert!((1..=1_000).contains(&backoff.delay(n, &mut rng)));
        assert_eq!(rng.0, draws, "n = {n}"); // the others are made by a generator of the chain's own
    }
}

proptest! {
    #[test]
    fn never_zero_never_over_the_cap(
        base in 1..=50_000u64, extra in 0..=50_000u64, n in 1..=10_000u64, seed: u64,
        jitter in proptest::sample::select(Jitter::ALL.to_vec()),
    ) {
        let backoff = Backoff::new(base, base + extra, jitter);
        let delay = backoff.delay(n, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        prop_assert!((1..=base + extra).contains(&delay));
    }
}
