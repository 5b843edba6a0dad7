use core::fmt;
use core::time::Duration;

use crate::Tick;

/// A strategy that was refused. Nothing is ever clamped or rounded instead.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum StrategyError {
    /// A base, step or delay of zero, which would be no backoff.
    Zero {
        /// Which one.
        part: Part,
        /// The strategy's tick.
        tick: Tick,
    },
    /// A duration with a fraction of a tick, or of more than 2⁶⁴ ticks.
    NotWhole {
        /// Which one.
        part: Part,
        /// The duration.
        value: Duration,
        /// The strategy's tick.
        tick: Tick,
    },
    /// A cap that would shorten even the first wait.
    CapBelowFirst {
        /// The cap.
        cap: Duration,
        /// [`Part::Base`] or [`Part::Step`].
        part: Part,
        /// The first ceiling.
        first: Duration,
    },
    /// A growth factor below 1, infinite, or not a number.
    Factor(f64),
    /// Decorrelated jitter with anything but [`Strategy::exponential`](crate::Strategy::exponential): each
    /// wait follows from the last, so any other growth would have no effect.
    Decorrelated,
    /// The operating system gave no seed.
    NoEntropy,
}

/// A duration of a [`Strategy`](crate::Strategy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The first ceiling of an exponential strategy.
    Base,
    /// The first ceiling of a linear or squared strategy.
    Step,
    /// The cap of any of them.
    Cap,
    /// The delay of a constant strategy.
    Delay,
    /// The nth delay of a list, from 1.
    Listed(usize),
}

impl fmt::Display for StrategyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { part, tick } => write!(f, "{part} is zero; it must be at least 1 {}", tick.name()),
            Self::NotWhole { part, value, tick } => {
                write!(f, "{part} is {value:?}; it must be a whole number of {}s, below 2^64", tick.name())
            }
            Self::CapBelowFirst { cap, part, first } => {
                write!(f, "cap is {cap:?}; it must be at least the {part}, {first:?}")
            }
            Self::Factor(factor) => write!(f, "factor is {factor}; it must be a number of at least 1"),
            Self::Decorrelated => f.write_str(
                "decorrelated jitter has a growth of its own; it must be used with `Strategy::exponential`",
            ),
            Self::NoEntropy => f.write_str(
                "the operating system gave no random seed; take one from elsewhere, with `seeded`",
            ),
        }
    }
}

impl core::error::Error for StrategyError {}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => f.write_str("base"),
            Self::Step => f.write_str("step"),
            Self::Cap => f.write_str("cap"),
            Self::Delay => f.write_str("delay"),
            Self::Listed(n) => write!(f, "delay {n}"),
        }
    }
}
