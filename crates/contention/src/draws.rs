use std::hash::Hasher;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use siphasher::sip::SipHasher13;

use crate::strategy::Strategy;

/// A hop takes |Normal(mean, deviation)|, in ms.
pub(crate) const HOP_MEAN_MS: f64 = 10.0;
pub(crate) const HOP_DEVIATION_MS: f64 = 2.0;

/// Randomness of a run. Each draw names its client, so that a test can give each client its own stream.
pub(crate) trait Draws {
    /// Travel time of a message, in ms.
    fn hop(&mut self, client: u32) -> f64;

    /// Uniform from `low` to `high`.
    fn uniform(&mut self, client: u32, low: f64, high: f64) -> f64;
}

/// Stream of one run, the same on any thread.
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
