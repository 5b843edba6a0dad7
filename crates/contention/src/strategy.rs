//! The backoff strategies that the study compares.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Base of the backoff, in ms. Refused writes are counted from 1, so the ceiling of the first wait is 5·2¹ = 10 ms.
pub(crate) const BASE_MS: f64 = 5.0;
/// Cap on every wait, in ms.
const CAP_MS: f64 = 2_000.0;

/// A backoff strategy: the wait after a client's n-th refused write, with the ceiling v = min(2000, 5·2ⁿ) ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// No wait: the client tries again immediately.
    None,
    /// Always waits for the whole ceiling.
    Exponential,
    /// Waits for half the ceiling v plus a random part of the other half: v/2 + uniform(0, v/2).
    Equal,
    /// Waits for a random time up to the ceiling v: uniform(0, v).
    Full,
    /// Waits for min(2000, uniform(5, 3·`last`)) ms, where `last` is the previous wait, or 5 before the first wait.
    /// Unlike in `comeback_backoff`, the cap applies after the draw.
    Decorrelated,
}

impl Strategy {
    /// Every strategy, in the order of the figures in AWS's article "Exponential Backoff And Jitter".
    pub const ALL: [Self; 5] = [Self::None, Self::Exponential, Self::Equal, Self::Full, Self::Decorrelated];

    /// The strategy's name: `none`, `exponential`, `equal`, `full` or `decorrelated`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Exponential => "exponential",
            Self::Equal => "equal",
            Self::Full => "full",
            Self::Decorrelated => "decorrelated",
        }
    }

    /// Returns the wait, in ms, after a client's next refused write. `memory` must start as [`BASE_MS`]; it keeps the
    /// last ceiling or, for [`Strategy::Decorrelated`], the last wait.
    pub(crate) fn wait(self, memory: &mut f64, mut uniform: impl FnMut(f64, f64) -> f64) -> f64 {
        match self {
            Self::None => return 0.0,
            Self::Decorrelated => *memory = uniform(BASE_MS, 3.0 * *memory).min(CAP_MS),
            Self::Exponential | Self::Equal | Self::Full => *memory = (2.0 * *memory).min(CAP_MS),
        }
        match self {
            Self::Equal => *memory / 2.0 + uniform(0.0, *memory / 2.0),
            Self::Full => uniform(0.0, *memory),
            Self::None | Self::Exponential | Self::Decorrelated => *memory,
        }
    }
}

impl FromStr for Strategy {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|strategy| strategy.name() == name);
        known.ok_or("must be none, exponential, equal, full or decorrelated")
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first ten waits, with each draw at `share` of the way through its range.
    fn waits(strategy: Strategy, share: f64) -> Vec<f64> {
        let mut memory = BASE_MS;
        (0..10).map(|_| strategy.wait(&mut memory, |low, high| low + (high - low) * share)).collect()
    }

    #[test]
    fn none_neither_waits_nor_draws() {
        let wait = Strategy::None.wait(&mut { BASE_MS }, |_, _| panic!("BUG: nothing to draw"));
        assert_eq!(wait.to_bits(), 0);
    }

    #[test]
    fn waits_lie_between_the_bounds_of_their_strategy() {
        let ceilings = [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1_280.0, 2_000.0, 2_000.0];
        let longest = [15.0, 45.0, 135.0, 405.0, 1_215.0, 2_000.0, 2_000.0, 2_000.0, 2_000.0, 2_000.0];
        for (strategy, least, most) in [
            (Strategy::Exponential, ceilings, ceilings),
            (Strategy::Equal, ceilings.map(|ceiling| ceiling / 2.0), ceilings),
            (Strategy::Full, [0.0; 10], ceilings),
            (Strategy::Decorrelated, [BASE_MS; 10], longest),
        ] {
            assert_eq!(
                (waits(strategy, 0.0), waits(strategy, 1.0)),
                (least.into(), most.into()),
                "{strategy}"
            );
        }
        assert_eq!(waits(Strategy::Full, 0.25)[..3], [2.5, 5.0, 10.0]);
    }

    #[test]
    fn decorrelated_is_capped_after_the_draw() {
        // After a wait of 2,000, the middle of the next wait's range exceeds the cap, and a quarter of the range does
        // not.
        let mut memory = 2_000.0;
        assert_eq!(Strategy::Decorrelated.wait(&mut memory, |low, high| (low + high) / 2.0), 2_000.0);
        assert_eq!(Strategy::Decorrelated.wait(&mut memory, |_, high| high / 4.0), 1_500.0);
        assert_eq!(memory, 1_500.0);
    }

    #[test]
    fn names_read_back() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.name().parse(), Ok(strategy));
            assert_eq!(serde_json::to_string(&strategy).unwrap(), format!("\"{strategy}\""));
        }
        let refused = "Full".parse::<Strategy>();
        assert_eq!(refused, Err("must be none, exponential, equal, full or decorrelated"));
    }
}
