//! The target functions in a run.

use std::time::Duration;

/// A target function in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedTarget {
    /// Name of the function.
    pub name: String,
    /// This function's share of the events, relative to the shares of the other functions; more than 0.
    pub share: f64,
    /// Duration of this function's outage, which begins with the run; `None` if the scenario's outage applies.
    pub outage: Option<Duration>,
}

impl SimulatedTarget {
    /// Name of the only target in a default scenario.
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
