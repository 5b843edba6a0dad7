use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use rand_core::Rng;

use crate::random::uniform;

/// How a wait is drawn under its ceiling c, in whole ticks. The cap has already been applied to c. No
/// draw is 0, which would be no backoff.
///
/// | jitter | range, each uniform | mean | variance |
/// |---|---|---|---|
/// | full | {1 … c} | (c + 1) / 2 | (c² − 1) / 12 |
/// | equal | {⌈c/2⌉ … c} | (⌈c/2⌉ + c) / 2 | ((⌊c/2⌋ + 1)² − 1) / 12 |
/// | decorrelated | {base … min(cap, 3·previous)} | (base + 3·previous) / 2 below the cap | |
/// | none | {c} | c | 0 |
///
/// Source: "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015), there over real numbers
/// from 0. One difference: decorrelated jitter bounds its range by the cap. The article caps the draw,
/// so that a growing share of the waits piles up at the cap.
///
/// There will be no other, so that callers can match all four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Uniform over {1 … c}; mean (c + 1) / 2. The default: it spreads retries the most.
    #[default]
    Full,
    /// Uniform over {⌈c/2⌉ … c}; mean about 3c/4. Never shorter than half the ceiling.
    Equal,
    /// s₁ uniform over {base … min(cap, 3·base)}, sₙ over {base … min(cap, 3·sₙ₋₁)}. It replaces
    /// exponential growth: there is a cap, but no ceiling.
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

    /// Draws one wait. Every wait of this crate is drawn here.
    pub(crate) fn draw(self, step: Step, rng: &mut (impl Rng + ?Sized)) -> u64 {
        match self {
            Self::None => step.ceiling,
            Self::Full | Self::Equal | Self::Decorrelated => uniform(self.range(step), rng),
        }
    }

    fn range(self, Step { base, cap, ceiling, previous }: Step) -> RangeInclusive<u64> {
        match self {
            Self::Full => 1..=ceiling,
            Self::Equal => ceiling.div_ceil(2)..=ceiling,
            Self::Decorrelated => base..=cap.min(previous.saturating_mul(3)),
            Self::None => ceiling..=ceiling,
        }
    }
}

/// The parameters of one draw: 1 ≤ base ≤ cap, 1 ≤ ceiling ≤ cap, base ≤ previous.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The first ceiling.
    pub(crate) base: u64,
    /// No wait is longer.
    pub(crate) cap: u64,
    /// The ceiling of this wait.
    pub(crate) ceiling: u64,
    /// The wait before; `base` for the first.
    pub(crate) previous: u64,
}

/// There is no jitter of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

impl core::error::Error for UnknownJitter {}

#[cfg(test)]
mod tests {
    use super::Jitter;

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
}
