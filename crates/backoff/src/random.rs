mod xoshiro;

use core::ops::RangeInclusive;

use rand_core::Rng;

pub use xoshiro::Xoshiro256PlusPlus;

/// A draw from `range`, each value equally likely but for one draw in 2⁶⁴. The range must not be empty.
///
/// It is what rand 0.10's `random_range` draws from a generator in the same state, and stays so: waits that
/// were announced with one release hold with the next.
///
/// Source: Stephen Canon, "Efficient generation of uniformly distributed bounded integers" (2021): the high
/// half of draw · width, plus the carry of one more draw if the low half may have one.
pub(crate) fn uniform(range: RangeInclusive<u64>, rng: &mut (impl Rng + ?Sized)) -> u64 {
    let (low, high) = range.into_inner();
    let width = high.wrapping_sub(low).wrapping_add(1);
    if width == 0 {
        return rng.next_u64(); // all 2⁶⁴ values
    }
    let (drawn, rest) = halves(rng.next_u64(), width);
    if rest <= width.wrapping_neg() {
        return low.wrapping_add(drawn);
    }
    let (more, _) = halves(rng.next_u64(), width);
    low.wrapping_add(drawn).wrapping_add(u64::from(rest.checked_add(more).is_none()))
}

/// The high and the low half of a product.
fn halves(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64, product as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::RngExt;
    use rand_core::SeedableRng;

    use super::{Xoshiro256PlusPlus, uniform};

    proptest! {
        #[test]
        fn draws_what_rand_draws(low: u64, high: u64, narrow in 0..100_000u64, seed: u64) {
            let mut ours = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut rands = rand::rngs::Xoshiro256PlusPlus::seed_from_u64(seed);
            let (low, high) = (low.min(high), low.max(high));
            // Wide ranges need a second draw about every second time, narrow ones hardly ever.
            for range in [low..=high, low..=low.saturating_add(narrow), low..=low, 0..=u64::MAX, 1..=u64::MAX] {
                prop_assert_eq!(uniform(range.clone(), &mut ours), rands.random_range(range));
            }
        }
    }
}
