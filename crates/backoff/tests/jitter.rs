//! Tests that each kind of jitter draws uniformly over its range, and that the waits are independent of each other.

#![expect(clippy::unwrap_used, reason = "test code only")]

use std::time::Duration;

use comeback_backoff::{Backoff, Jitter};

const JITTERS: [Jitter; 3] = [Jitter::Full, Jitter::Equal, Jitter::Decorrelated];
const BASE: u64 = 16;
const CAP: u64 = 1_000;
const SEEDS: u64 = 10_000;
const WAITS: usize = 8;
/// The tolerance for a measured mean, variance or sum, in standard errors from the expected value.
const TOLERANCE: f64 = 5.0;

/// The shortest and the longest possible wait before retry `n`, in seconds.
fn range(jitter: Jitter, n: usize, previous: u64) -> (u64, u64) {
    let ceiling = CAP.min(BASE << (n - 1));
    match jitter {
        Jitter::Full => (1, ceiling),
        Jitter::Equal => (ceiling.div_ceil(2), ceiling),
        Jitter::Decorrelated => (BASE, CAP.min(3 * previous)),
        Jitter::None => (ceiling, ceiling),
    }
}

/// The waits for each seed, standardised by their ranges to mean 0 and variance 1.
fn standardised(jitter: Jitter) -> Vec<Vec<f64>> {
    let backoff = Backoff::exponential(Duration::from_secs(BASE), Duration::from_secs(CAP)).unwrap();
    let backoff = backoff.with_tick(Duration::from_secs(1)).unwrap().with_jitter(jitter).unwrap();
    let of_seed = |seed| {
        let mut previous = BASE;
        let waits = (1..).zip(backoff.seeded(seed).take(WAITS));
        let standardised = waits.map(|(n, wait)| {
            let (low, high) = range(jitter, n, previous);
            previous = wait.as_secs();
            assert!((low..=high).contains(&previous), "{previous} of {low}..={high} for {jitter}, n = {n}");
            let (mean, width) = ((low + high) as f64 / 2.0, (high - low + 1) as f64);
            (previous as f64 - mean) / ((width * width - 1.0) / 12.0).sqrt()
        });
        standardised.collect()
    };
    (0..SEEDS).map(of_seed).collect()
}

#[test]
fn bounds_mean_and_spread() {
    for jitter in JITTERS {
        let waits = standardised(jitter);
        for n in 0..WAITS {
            let average = |of: fn(f64) -> f64| waits.iter().map(|z| of(z[n])).sum::<f64>() / SEEDS as f64;
            let (mean, variance) = (average(|z| z), average(|z| z * z));
            // The square of a standardised uniform variable has a variance of 4/5.
            let [of_mean, of_variance] = [1.0, 0.8].map(|variance: f64| (variance / SEEDS as f64).sqrt());
            assert!(mean.abs() < TOLERANCE * of_mean, "{jitter}, n = {n}: mean {mean}");
            assert!((variance - 1.0).abs() < TOLERANCE * of_variance, "{jitter}, n = {n}: {variance}");
        }
    }
}

#[test]
fn waits_of_neighbouring_seeds_are_independent() {
    for jitter in JITTERS {
        let waits = standardised(jitter);
        let next_wait = waits.iter().flat_map(|z| z.iter().zip(&z[1..])).map(|(one, next)| one * next);
        // Multiplies each wait by the next seed's wait before the same or an adjacent retry, and sums the products.
        let neighbours = |mine: usize, its: usize| {
            let pairs = waits.windows(2).flat_map(move |pair| pair[0][mine..].iter().zip(&pair[1][its..]));
            pairs.map(|(one, other)| one * other).sum::<f64>()
        };
        let sums = [next_wait.sum(), neighbours(0, 0), neighbours(0, 1), neighbours(1, 0)];
        let bound = TOLERANCE * (SEEDS as f64 * WAITS as f64).sqrt();
        assert!(sums.iter().all(|sum| sum.abs() < bound), "{jitter}: {sums:?} over {bound}");
    }
}
