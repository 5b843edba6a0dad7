/// The longest wait before retry `n`: min(`cap`, `base` · 2ⁿ⁻¹), in the unit of `base` and `cap`.
///
/// Total: no `n` overflows. The first retry is `n` = 1; 0 counts as 1.
///
/// Source: "Exponential Backoff And Jitter", AWS Architecture Blog, whose attempts count from 0.
///
/// ```
/// use comeback_backoff::ceiling;
///
/// assert_eq!(ceiling(1, 43_170, 1), 1);
/// assert_eq!(ceiling(1, 43_170, 16), 32_768);
/// assert_eq!(ceiling(1, 43_170, 17), 43_170);
/// assert_eq!(ceiling(1, 43_170, u64::MAX), 43_170);
/// ```
pub fn ceiling(base: u64, cap: u64, n: u64) -> u64 {
    let doublings = u32::try_from(n.saturating_sub(1)).unwrap_or(u32::MAX);
    // A saturated product is over every cap, so the cap is still right.
    cap.min(base.saturating_mul(1u64.checked_shl(doublings).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::ceiling;

    #[test]
    fn doubles_until_the_cap() {
        let ceilings: Vec<u64> = (1..=6).map(|n| ceiling(3, 40, n)).collect();
        assert_eq!(ceilings, [3, 6, 12, 24, 40, 40]);
    }

    #[test]
    fn is_the_formula_for_every_n_up_to_100_000() {
        let mut exact = 1u128;
        for n in 1..=100_000 {
            assert_eq!(u128::from(ceiling(1, 43_170, n)), exact.min(43_170), "n = {n}");
            exact = exact.saturating_mul(2);
        }
    }

    #[test]
    fn a_cap_below_the_base_still_caps() {
        assert_eq!(ceiling(10, 4, 1), 4);
    }

    #[test]
    fn bases_that_fill_64_bits_are_not_taken_for_overflows() {
        assert_eq!(ceiling(1 << 63, u64::MAX, 1), 1 << 63);
        assert_eq!(ceiling(1 << 60, u64::MAX, 4), 1 << 63);
        assert_eq!(ceiling(1 << 60, u64::MAX, 5), u64::MAX);
        assert_eq!(ceiling(0, u64::MAX, 65), 0);
    }

    proptest! {
        #[test]
        fn agrees_with_wide_arithmetic(base: u64, cap: u64, n in 1..=200u64) {
            let exact = u32::try_from(n - 1).ok().filter(|&n| n < 64).map_or(
                if base == 0 { 0 } else { u128::MAX },
                |n| u128::from(base) << n,
            );
            prop_assert_eq!(u128::from(ceiling(base, cap, n)), exact.min(u128::from(cap)));
        }

        #[test]
        fn is_total(base: u64, cap: u64, n: u64) {
            prop_assert!(ceiling(base, cap, n) <= cap);
        }
    }
}
