//! Growth of the ceilings: by a factor, by a power of the retry number, or from a list.

use alloc::sync::Arc;

/// Growth of the ceilings from wait to wait, in ticks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Growth {
    /// The ceiling of the nth wait is base · 2ⁿ⁻¹.
    Doubling { base: u64 },
    /// The ceiling of the nth wait is base · factorⁿ⁻¹, rounded to the nearest tick; the factor is at least 1.
    Powers { base: u64, factor: f64 },
    /// The ceiling of the nth wait is step · nᵖ: constant for p = 0, linear for p = 1, quadratic for p = 2.
    Polynomial { step: u64, power: u32 },
    /// The ceiling of the nth wait is the nth duration in the list. Once the list is exhausted, its last duration
    /// repeats.
    List(Arc<[u64]>),
}

impl Growth {
    /// The ceiling of the wait before retry `n`, at most `cap`.
    pub(crate) fn ceiling(&self, cap: u64, n: u64) -> u64 {
        let n = n.max(1);
        // A saturated product is not less than `cap`, so the minimum is still right.
        cap.min(match self {
            Self::Doubling { base } => {
                let doublings = u32::try_from(n - 1).unwrap_or(u32::MAX);
                base.saturating_mul(1u64.checked_shl(doublings).unwrap_or(u64::MAX))
            }
            Self::Powers { base, factor } => powers(*base, *factor, n - 1),
            Self::Polynomial { step, power } => step.saturating_mul(n.saturating_pow(*power)),
            Self::List(ceilings) => {
                let nth = usize::try_from(n - 1).ok().and_then(|index| ceilings.get(index));
                nth.or(ceilings.last()).copied().unwrap_or(cap)
            }
        })
    }

    /// The number of waits in the list, or `None` if the growth is not a list.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Self::List(ceilings) => Some(ceilings.len() as u64),
            Self::Doubling { .. } | Self::Powers { .. } | Self::Polynomial { .. } => None,
        }
    }

    /// Returns this growth with `length` applied to each of its durations, or the first error that `length` returns.
    pub(crate) fn map<E>(&self, length: impl Fn(u64) -> Result<u64, E>) -> Result<Self, E> {
        Ok(match self {
            Self::Doubling { base } => Self::Doubling { base: length(*base)? },
            Self::Powers { base, factor } => Self::Powers { base: length(*base)?, factor: *factor },
            Self::Polynomial { step, power } => Self::Polynomial { step: length(*step)?, power: *power },
            Self::List(ceilings) => {
                Self::List(ceilings.iter().copied().map(length).collect::<Result<_, E>>()?)
            }
        })
    }
}

/// base · factorᵉ, rounded to the nearest tick, at most 2⁶⁴ − 1. `core` has no `powi`. Multiplication gives the same
/// result on every machine.
fn powers(base: u64, factor: f64, mut exponent: u64) -> u64 {
    let (mut power, mut square) = (1.0, factor);
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
    let whole = exact as u64; // saturates at 2⁶⁴ − 1, for infinity too
    let nearest = whole.saturating_add(u64::from(exact - whole as f64 >= 0.5));
    base.max(nearest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Growth;

    #[test]
    fn a_factor_is_total() {
        for factor in [1.0, 1.0 + f64::EPSILON, 1.5, 2.0, 1e300, f64::MAX] {
            for n in [0, 1, 2, 1_000, u64::MAX] {
                for (base, cap) in [(1, 1), (1, u64::MAX), (u64::MAX, u64::MAX), (1 << 53, u64::MAX)] {
                    let ceiling = Growth::Powers { base, factor }.ceiling(cap, n);
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
        fn doubling_agrees_with_wide_arithmetic(base in 1..=u64::MAX, cap: u64, n in 1..=200u64) {
            let exact = if n <= 64 { u128::from(base) << (n - 1) } else { u128::MAX };
            let ceiling = Growth::Doubling { base }.ceiling(cap, n);
            prop_assert_eq!(u128::from(ceiling), exact.min(u128::from(cap)));
        }

        #[test]
        fn whole_factors_agree_with_wide_arithmetic(base in 1..1_000_000u64, factor in 1..=1_000u32, n in 1..=10u64) {
            let exact = u128::from(factor).checked_pow(n as u32 - 1).and_then(|power| power.checked_mul(base.into()));
            let cap = 1 << 53; // up to here, every whole number is exact as a 64-bit float
            let ceiling = Growth::Powers { base, factor: factor.into() }.ceiling(cap, n);
            prop_assert_eq!(u128::from(ceiling), exact.unwrap_or(u128::MAX).min(cap.into()));
        }

        #[test]
        fn ceilings_of_a_factor_never_fall(base in 1..1_000_000u64, factor in 1.0..4.0f64, n in 1..=200u64) {
            let growth = Growth::Powers { base, factor };
            prop_assert!(growth.ceiling(u64::MAX, n) <= growth.ceiling(u64::MAX, n + 1));
        }

        #[test]
        fn polynomials_agree_with_wide_arithmetic(step: u64, cap: u64, n in 1..=u64::MAX, power in 0..=2u32) {
            let exact = u128::from(n).checked_pow(power).and_then(|n| n.checked_mul(u128::from(step)));
            let ceiling = Growth::Polynomial { step, power }.ceiling(cap, n);
            prop_assert_eq!(u128::from(ceiling), exact.unwrap_or(u128::MAX).min(u128::from(cap)));
        }
    }
}
