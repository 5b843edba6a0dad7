use core::convert::Infallible;

use rand_core::{SeedableRng, TryRng, utils};

/// The generator of [`Streams`](crate::Streams) and [`Delays`](crate::Delays): small, fast, and not for
/// secrets. A seed gives the numbers that rand's generator of this name gives, in every release.
///
/// Source: David Blackman and Sebastiano Vigna, "Scrambled Linear Pseudorandom Number Generators" (2021),
/// xoshiro256++, seeded by their SplitMix64.
///
/// ```
/// use comeback_backoff::Xoshiro256PlusPlus;
/// use comeback_backoff::rand_core::{Rng, SeedableRng};
///
/// let [mut rng, mut twin] = [7, 7].map(Xoshiro256PlusPlus::seed_from_u64);
/// assert_eq!(rng.next_u64(), twin.next_u64());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xoshiro256PlusPlus {
    /// Never all zero, from where there would be no way out.
    state: [u64; 4],
}

impl SeedableRng for Xoshiro256PlusPlus {
    type Seed = [u8; 32];

    fn from_seed(seed: [u8; 32]) -> Self {
        let state = utils::read_words(&seed);
        if state == [0; 4] { Self::seed_from_u64(0) } else { Self { state } }
    }

    fn seed_from_u64(seed: u64) -> Self {
        let state = [1, 2, 3, 4].map(|n: u64| split_mix(seed.wrapping_add(n.wrapping_mul(GOLDEN))));
        Self { state }
    }
}

/// 2⁶⁴ divided by the golden ratio, made odd: the step of SplitMix64's counter.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's output for a value of its counter. It is a bijection, so at most one of four is zero.
const fn split_mix(counter: u64) -> u64 {
    let mixed = (counter ^ (counter >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl TryRng for Xoshiro256PlusPlus {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        // The upper half: the lowest bits are the weakest.
        self.try_next_u64().map(|number| (number >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let [a, b, c, d] = self.state;
        let (third, fourth) = (c ^ a, d ^ b);
        self.state = [a ^ fourth, b ^ third, third ^ (b << 17), fourth.rotate_left(45)];
        Ok(a.wrapping_add(d).rotate_left(23).wrapping_add(a))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        utils::fill_bytes_via_next_word(bytes, || self.try_next_u64())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_core::{Rng, SeedableRng};

    use super::Xoshiro256PlusPlus;

    fn assert_alike(mut ours: Xoshiro256PlusPlus, mut rands: rand::rngs::Xoshiro256PlusPlus) {
        for _ in 0..20 {
            assert_eq!(ours.next_u64(), rands.next_u64());
            assert_eq!(ours.next_u32(), rands.next_u32());
            let mut bytes = [[0; 13]; 2];
            ours.fill_bytes(&mut bytes[0]);
            rands.fill_bytes(&mut bytes[1]);
            assert_eq!(bytes[0], bytes[1]);
        }
    }

    proptest! {
        #[test]
        fn gives_the_numbers_of_rands(seed: u64, bytes: [u8; 32]) {
            assert_alike(SeedableRng::seed_from_u64(seed), SeedableRng::seed_from_u64(seed));
            assert_alike(SeedableRng::from_seed(bytes), SeedableRng::from_seed(bytes));
        }
    }

    #[test]
    fn a_seed_of_zeros_is_no_dead_end() {
        assert_alike(SeedableRng::from_seed([0; 32]), SeedableRng::from_seed([0; 32]));
        assert_alike(SeedableRng::seed_from_u64(0), SeedableRng::seed_from_u64(0));
    }
}
