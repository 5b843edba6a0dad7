//! The target functions of a run, and the choice of a function for each event.

use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::event::EventNumber;
use crate::scenario::Scenario;

/// A target function of a run. All functions are in one account and region.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedTarget {
    /// Name of the function.
    pub name: String,
    /// Share of the events that this function receives, relative to the shares of the other functions; more than 0.
    pub share: f64,
    /// Duration of this function's outage, counted from the start of the run. Every invocation that begins during the
    /// outage fails. `None` means the scenario's outage.
    pub outage: Option<Duration>,
}

impl SimulatedTarget {
    /// Name of the only target of a default scenario.
    pub const DEFAULT_NAME: &str = "orders";

    /// Returns the ARN of this function.
    pub fn arn(&self) -> String {
        format!("arn:aws:lambda:eu-west-1:123456789012:function:{}", self.name)
    }
}

impl Default for SimulatedTarget {
    fn default() -> Self {
        Self { name: Self::DEFAULT_NAME.into(), share: 1.0, outage: None }
    }
}

impl Scenario {
    /// Returns the index of the function that receives an event, chosen at random. The choice depends only on the seed
    /// and the event's number.
    pub(crate) fn target_of(&self, event: EventNumber) -> usize {
        if self.targets.len() == 1 {
            return 0;
        }
        let seed = self.seed.wrapping_add((event.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let all: f64 = self.targets.iter().map(|target| target.share).sum();
        let mut left = Xoshiro256PlusPlus::seed_from_u64(seed).random_range(0.0..all);
        let drawn = self.targets.iter().position(|target| {
            left -= target.share;
            left < 0.0
        });
        drawn.unwrap_or(self.targets.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_whose_sum_is_not_finite_are_refused() {
        let target = |name: &str| SimulatedTarget { name: name.into(), share: 1e308, outage: None };
        let scenario = Scenario { targets: vec![target("orders"), target("a")], ..Scenario::default() };
        let refused = scenario.check().unwrap_err();
        assert_eq!(refused.iter().map(|it| it.range).collect::<Vec<_>>(), ["shares with a finite sum"]);
    }

    #[test]
    fn events_follow_the_targets_shares() {
        let target = |share| SimulatedTarget { share, ..SimulatedTarget::default() };
        let targets = vec![target(7.0), target(1.0), target(2.0)];
        let scenario = Scenario { targets, ..Scenario::default() };
        let mut counts = [0; 3];
        (0..10_000).for_each(|event| counts[scenario.target_of(EventNumber(event))] += 1);
        for (count, expected) in counts.into_iter().zip([7_000i32, 1_000, 2_000]) {
            assert!((count - expected).abs() < 200, "{counts:?}");
        }
    }
}
