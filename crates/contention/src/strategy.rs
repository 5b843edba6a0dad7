use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::model::{BASE_MS, CAP_MS};

/// How long a client waits after its n-th refused write. With v = min(2000, 5·2ⁿ) ms:
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// 0: again at once.
    None,
    /// v: clients that were refused together come back together.
    Exponential,
    /// v/2 + uniform(0, v/2).
    Equal,
    /// uniform(0, v).
    Full,
    /// last = min(2000, uniform(5, 3·last)), from last = 5. The published form, capped after the
    /// draw; `comeback_backoff` caps before it.
    Decorrelated,
}

impl Strategy {
    /// Every strategy, in the order of the published figures.
    pub const ALL: [Self; 5] = [Self::None, Self::Exponential, Self::Equal, Self::Full, Self::Decorrelated];

    /// `none`, `exponential`, `equal`, `full` or `decorrelated`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Exponential => "exponential",
            Self::Equal => "equal",
            Self::Full => "full",
            Self::Decorrelated => "decorrelated",
        }
    }

    /// What a client remembers between refusals, before its first: v, or `last`.
    pub(crate) const START_MS: f64 = BASE_MS;

    /// The wait after one more refusal. `uniform(low, high)` is drawn from at most once.
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

/// The name is no strategy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownStrategy;

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or(UnknownStrategy)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for UnknownStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be none, exponential, equal, full or decorrelated")
    }
}

impl std::error::Error for UnknownStrategy {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first ten waits, each draw falling at `share` of its range.
    fn waits(strategy: Strategy, share: f64) -> Vec<f64> {
        let mut memory = Strategy::START_MS;
        (0..10).map(|_| strategy.wait(&mut memory, |low, high| low + (high - low) * share)).collect()
    }

    #[test]
    fn none_never_waits_nor_draws() {
        let mut memory = Strategy::START_MS;
        let wait = Strategy::None.wait(&mut memory, |_, _| panic!("BUG: nothing to draw"));
        assert_eq!(wait.to_bits(), 0);
    }

    #[test]
    fn exponential_doubles_from_10_ms_to_the_cap() {
        let expected = [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1_280.0, 2_000.0, 2_000.0];
        assert_eq!(waits(Strategy::Exponential, 0.5), expected);
    }

    #[test]
    fn full_reaches_from_0_to_the_ceiling() {
        assert_eq!(waits(Strategy::Full, 0.0), [0.0; 10]);
        assert_eq!(waits(Strategy::Full, 1.0), waits(Strategy::Exponential, 0.5));
        assert_eq!(waits(Strategy::Full, 0.25)[..3], [2.5, 5.0, 10.0]);
    }

    #[test]
    fn equal_reaches_from_half_the_ceiling_to_all_of_it() {
        let halves: Vec<f64> = waits(Strategy::Exponential, 0.5).iter().map(|v| v / 2.0).collect();
        assert_eq!(waits(Strategy::Equal, 0.0), halves);
        assert_eq!(waits(Strategy::Equal, 1.0), waits(Strategy::Exponential, 0.5));
        assert_eq!(waits(Strategy::Equal, 0.5)[..3], [7.5, 15.0, 30.0]);
    }

    #[test]
    fn decorrelated_reaches_from_5_ms_to_three_times_the_last_wait() {
        assert_eq!(waits(Strategy::Decorrelated, 0.0), [5.0; 10]);
        let longest = [15.0, 45.0, 135.0, 405.0, 1_215.0, 2_000.0, 2_000.0, 2_000.0, 2_000.0, 2_000.0];
        assert_eq!(waits(Strategy::Decorrelated, 1.0), longest);
        // Capped after the draw: from 2,000 the middle of 5 to 6,000 is cut, and a third is not.
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
        assert_eq!(
            "Full".parse::<Strategy>().unwrap_err().to_string(),
            "must be none, exponential, equal, full or decorrelated"
        );
    }
}
