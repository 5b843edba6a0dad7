use alloc::sync::Arc;

use crate::ceiling;

/// How ceilings grow from one retry to the next, in ticks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Growth {
    /// base · 2ⁿ⁻¹.
    Exponential { base: u64 },
    /// base · factorⁿ⁻¹, to the nearest tick; the factor is at least 1.
    Powers { base: u64, factor: f64 },
    /// step · nᵖ: constant for p = 0, linear for 1, squared for 2.
    Polynomial { step: u64, power: u32 },
    /// The nth of a list, after which there is none.
    List(Arc<[u64]>),
}

impl Growth {
    /// The ceiling before retry `n` (1 for the first; 0 counts as 1), at most `cap`; total for
    /// every `n`. `None` after the end of a list.
    pub(crate) fn ceiling(&self, cap: u64, n: u64) -> Option<u64> {
        match self {
            Self::Exponential { base } => Some(ceiling(*base, cap, n)),
            Self::Powers { base, factor } => Some(cap.min(powers(*base, *factor, n))),
            // A saturated product is over every cap, so the cap is still right.
            Self::Polynomial { step, power } => {
                Some(cap.min(step.saturating_mul(n.max(1).saturating_pow(*power))))
            }
            Self::List(ceilings) => {
                let index = usize::try_from(n.max(1) - 1).ok()?;
                ceilings.get(index).map(|&ceiling| cap.min(ceiling))
            }
        }
    }

    /// The ceiling of the first wait before any cap; 0 for an empty list.
    pub(crate) fn first(&self) -> u64 {
        self.ceiling(u64::MAX, 1).unwrap_or(0)
    }

    /// How many retries there are, if their number is limited.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Self::List(ceilings) => Some(ceilings.len() as u64),
            Self::Exponential { .. } | Self::Powers { .. } | Self::Polynomial { .. } => None,
        }
    }
}

/// base · factorⁿ⁻¹ to the nearest tick, or 2⁶⁴ − 1 if it is larger. Exact for whole factors below 2⁵³.
///
/// By squaring, with nothing but multiplication: the same on every machine, and `core` has no `powi`.
fn powers(base: u64, factor: f64, n: u64) -> u64 {
    let (mut power, mut square, mut exponent) = (1.0, factor, n.saturating_sub(1));
    while exponent > 0 {
        if exponent % 2 == 1 {
            power *= square;
        }
        square *= square;
        exponent /= 2;
    }
    if power == 1.0 {
        return base;
    }
    let exact = base as f64 * power;
    let whole = exact as u64; // which ends at 2⁶⁴ − 1, for infinity too
    let nearest = whole.saturating_add(u64::from(exact - whole as f64 >= 0.5));
    base.max(nearest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Growth;

    fn ceilings(growth: &Growth, cap: u64) -> Vec<Option<u64>> {
        (1..=5).map(|n| growth.ceiling(cap, n)).collect()
    }

    #[test]
    fn grows_as_named() {
        let some = |ceilings: [u64; 5]| ceilings.map(Some).to_vec();
        assert_eq!(ceilings(&Growth::Exponential { base: 3 }, 40), some([3, 6, 12, 24, 40]));
        assert_eq!(ceilings(&Growth::Powers { base: 3, factor: 3.0 }, 99), some([3, 9, 27, 81, 99]));
        assert_eq!(ceilings(&Growth::Powers { base: 10, factor: 1.5 }, 99), some([10, 15, 23, 34, 51]));
        assert_eq!(ceilings(&Growth::Powers { base: 3, factor: 1.0 }, 99), some([3, 3, 3, 3, 3]));
        assert_eq!(ceilings(&Growth::Polynomial { step: 3, power: 0 }, 40), some([3, 3, 3, 3, 3]));
        assert_eq!(ceilings(&Growth::Polynomial { step: 3, power: 1 }, 13), some([3, 6, 9, 12, 13]));
        assert_eq!(ceilings(&Growth::Polynomial { step: 3, power: 2 }, 40), some([3, 12, 27, 40, 40]));
        assert_eq!(ceilings(&Growth::List([5, 50, 7].into()), 40), [Some(5), Some(40), Some(7), None, None]);
    }

    #[test]
    fn an_overflow_is_over_the_cap() {
        let squared = Growth::Polynomial { step: 1, power: 2 };
        assert_eq!(
            [1 << 31, 1 << 32, u64::MAX].map(|n| squared.ceiling(1 << 63, n)),
            [1 << 62, 1 << 63, 1 << 63].map(Some)
        );
    }

    #[test]
    fn a_factor_is_total() {
        for factor in [1.0, 1.0 + f64::EPSILON, 1.5, 2.0, 1e300, f64::MAX] {
            for n in [0, 1, 2, 1_000, u64::MAX] {
                for (base, cap) in [(1, 1), (1, u64::MAX), (u64::MAX, u64::MAX), (1 << 53, u64::MAX)] {
                    let ceiling = Growth::Powers { base, factor }.ceiling(cap, n).unwrap();
                    assert!(
                        (base..=cap).contains(&ceiling),
                        "{base}·{factor}^({n}-1) under {cap}: {ceiling}"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn whole_factors_agree_with_wide_arithmetic(base in 1..1_000_000u64, factor in 1..=1_000u32, n in 1..=10u64) {
            let exact = u128::from(factor).checked_pow(n as u32 - 1).and_then(|power| power.checked_mul(base.into()));
            let exact = exact.unwrap_or(u128::MAX);
            let growth = Growth::Powers { base, factor: factor.into() };
            let cap = 1 << 53; // as far as 64-bit floats are whole
            prop_assert_eq!(growth.ceiling(cap, n).map(u128::from), Some(exact.min(cap.into())));
        }

        #[test]
        fn ceilings_of_a_factor_never_fall(base in 1..1_000_000u64, factor in 1.0..4.0f64, n in 1..=200u64) {
            let growth = Growth::Powers { base, factor };
            prop_assert!(growth.ceiling(u64::MAX, n) <= growth.ceiling(u64::MAX, n + 1));
        }

        #[test]
        fn polynomials_agree_with_wide_arithmetic(step: u64, cap: u64, n in 1..=u64::MAX, power in 0..=2u32) {
            let exact = u128::from(n).checked_pow(power).and_then(|n| n.checked_mul(u128::from(step)));
            let expected = exact.unwrap_or(u128::MAX).min(u128::from(cap));
            let ceiling = Growth::Polynomial { step, power }.ceiling(cap, n);
            prop_assert_eq!(ceiling.map(u128::from), Some(expected));
        }

        #[test]
        fn lists_are_total(list: Vec<u64>, cap: u64, n: u64) {
            let ceiling = Growth::List(list.clone().into()).ceiling(cap, n);
            prop_assert_eq!(ceiling.is_some(), n.max(1) <= list.len() as u64);
            prop_assert!(ceiling.is_none_or(|ceiling| ceiling <= cap));
        }
    }
}
