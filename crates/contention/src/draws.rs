use std::hash::Hasher;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use siphasher::sip::SipHasher13;

use crate::model::{HOP_DEVIATION_MS, HOP_MEAN_MS};
use crate::strategy::Strategy;

/// Where a run's randomness comes from. Each draw names its client, so that a test can give each a
/// stream of its own.
pub(crate) trait Draws {
    /// How long a message is on its way, in ms.
    fn hop(&mut self, client: u32) -> f64;

    /// Uniform from `low` to `high`.
    fn uniform(&mut self, client: u32, low: f64, high: f64) -> f64;
}

/// A stream for each run, whatever thread makes it.
#[derive(Debug)]
pub(crate) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    pub(crate) fn new(seed: u64, clients: u32, strategy: Strategy, run: u32) -> Self {
        let mut hasher = SipHasher13::new();
        hasher.write(strategy.name().as_bytes());
        hasher.write(&seed.to_le_bytes());
        hasher.write(&clients.to_le_bytes());
        hasher.write(&run.to_le_bytes());
        Self(Xoshiro256PlusPlus::seed_from_u64(hasher.finish()))
    }
}

impl Draws for Stream {
    #[inline]
    fn hop(&mut self, _client: u32) -> f64 {
        let z: f64 = StandardNormal.sample(&mut self.0);
        (HOP_MEAN_MS + HOP_DEVIATION_MS * z).abs()
    }

    #[inline]
    fn uniform(&mut self, _client: u32, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.random::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 100_000;

    /// Mean and variance within four standard errors of what they should be.
    fn assert_moments(draws: &[f64], mean: f64, variance: f64, kurtosis: f64) {
        let n = draws.len() as f64;
        let sample_mean = draws.iter().sum::<f64>() / n;
        assert!((sample_mean - mean).abs() < 4.0 * (variance / n).sqrt(), "mean {sample_mean}");
        let sample_variance = draws.iter().map(|x| (x - sample_mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = variance * ((kurtosis - 1.0) / n).sqrt();
        assert!((sample_variance - variance).abs() < 4.0 * error, "variance {sample_variance}");
    }

    #[test]
    fn hops_are_normal_and_never_negative() {
        let mut stream = Stream::new(1, 10, Strategy::Full, 0);
        let hops: Vec<f64> = (0..DRAWS).map(|_| stream.hop(0)).collect();
        assert_moments(&hops, 10.0, 4.0, 3.0);
        assert!(hops.iter().all(|&hop| hop >= 0.0));
    }

    #[test]
    fn uniforms_are_uniform() {
        let mut stream = Stream::new(1, 10, Strategy::Full, 0);
        let draws: Vec<f64> = (0..DRAWS).map(|_| stream.uniform(0, 5.0, 17.0)).collect();
        assert_moments(&draws, 11.0, 12.0, 1.8);
        assert!(draws.iter().all(|draw| (5.0..17.0).contains(draw)));
    }

    #[test]
    fn every_run_has_a_stream_of_its_own() {
        let first = |seed, clients, strategy, run| Stream::new(seed, clients, strategy, run).hop(0).to_bits();
        let one = first(1, 10, Strategy::Full, 0);
        assert_eq!(one, first(1, 10, Strategy::Full, 0));
        for other in [
            first(2, 10, Strategy::Full, 0),
            first(1, 11, Strategy::Full, 0),
            first(1, 10, Strategy::Equal, 0),
            first(1, 10, Strategy::Full, 1),
        ] {
            assert_ne!(one, other);
        }
    }
}
