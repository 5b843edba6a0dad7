use std::time::Duration;

use crate::growth::Growth;
use crate::strategy::{Shape, Strategy};
use crate::{Jitter, Tick};

/// A strategy that was refused. Nothing is ever clamped or rounded instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// A base, step or delay of zero, which would be no backoff.
    #[error("{name} is zero; it must be at least 1 {}", .tick.name())]
    Zero {
        /// `base`, `step`, `delay`, or `delay 3` of a list.
        name: String,
        /// The strategy's tick.
        tick: Tick,
    },
    /// A duration with a fraction of a tick, or of more than 2⁶⁴ ticks.
    #[error("{name} is {value:?}; it must be a whole number of {}s, below 2^64", .tick.name())]
    NotWhole {
        /// `base`, `step`, `cap`, `delay`, or `delay 3` of a list.
        name: String,
        /// The duration.
        value: Duration,
        /// The strategy's tick.
        tick: Tick,
    },
    /// A cap that would shorten even the first wait.
    #[error("cap is {cap:?}; it must be at least the {name}, {first:?}")]
    CapBelowFirst {
        /// The cap.
        cap: Duration,
        /// `base` or `step`.
        name: &'static str,
        /// The first ceiling.
        first: Duration,
    },
    /// Decorrelated jitter with anything but exponential growth: each wait follows from the last, so any
    /// other growth would have no effect.
    #[error("decorrelated jitter has a growth of its own; it must be used with an exponential strategy")]
    Decorrelated,
}

/// A checked strategy, in ticks: 1 ≤ every ceiling ≤ cap.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) growth: Growth,
    pub(crate) cap: u64,
    pub(crate) jitter: Jitter,
    pub(crate) tick: Tick,
    pub(crate) retries: Option<u64>,
}

impl Plan {
    pub(crate) fn new(strategy: &Strategy) -> Result<Self, StrategyError> {
        let Strategy { shape, jitter, tick, retries } = strategy;
        if *jitter == Jitter::Decorrelated && !matches!(shape, Shape::Exponential { .. }) {
            return Err(StrategyError::Decorrelated);
        }
        let (growth, cap) = in_ticks(shape, *tick)?;
        Ok(Self { growth, cap, jitter: *jitter, tick: *tick, retries: *retries })
    }
}

fn in_ticks(shape: &Shape, tick: Tick) -> Result<(Growth, u64), StrategyError> {
    match shape {
        Shape::Exponential { base, cap } => {
            let (base, cap) = capped("base", *base, *cap, tick)?;
            Ok((Growth::Exponential { base }, cap))
        }
        Shape::Constant { delay } => {
            let delay = wait("delay", *delay, tick)?;
            Ok((Growth::Polynomial { step: delay, power: 0 }, delay))
        }
        Shape::Linear { step, cap } => {
            let (step, cap) = capped("step", *step, *cap, tick)?;
            Ok((Growth::Polynomial { step, power: 1 }, cap))
        }
        Shape::Squared { step, cap } => {
            let (step, cap) = capped("step", *step, *cap, tick)?;
            Ok((Growth::Polynomial { step, power: 2 }, cap))
        }
        Shape::List { delays } => {
            let waits: Result<Vec<u64>, _> =
                (1..).zip(delays).map(|(n, delay)| wait(&format!("delay {n}"), *delay, tick)).collect();
            let waits = waits?;
            let longest = waits.iter().copied().max().unwrap_or(1);
            Ok((Growth::List(waits.into()), longest))
        }
    }
}

fn capped(
    name: &'static str,
    first: Duration,
    cap: Duration,
    tick: Tick,
) -> Result<(u64, u64), StrategyError> {
    let ticks = (wait(name, first, tick)?, whole("cap", cap, tick)?);
    if ticks.1 < ticks.0 { Err(StrategyError::CapBelowFirst { cap, name, first }) } else { Ok(ticks) }
}

fn wait(name: &str, value: Duration, tick: Tick) -> Result<u64, StrategyError> {
    match whole(name, value, tick)? {
        0 => Err(StrategyError::Zero { name: name.to_owned(), tick }),
        ticks => Ok(ticks),
    }
}

fn whole(name: &str, value: Duration, tick: Tick) -> Result<u64, StrategyError> {
    tick.count(value).ok_or_else(|| StrategyError::NotWhole { name: name.to_owned(), value, tick })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Jitter, Strategy, Tick};

    const MS: Duration = Duration::from_millis(1);

    fn refusal(strategy: Strategy) -> String {
        strategy.seeded(7).unwrap_err().to_string()
    }

    #[test]
    fn zero_is_refused() {
        let zero = Duration::ZERO;
        assert_eq!(
            refusal(Strategy::exponential(zero, MS)),
            "base is zero; it must be at least 1 millisecond"
        );
        assert_eq!(
            refusal(Strategy::constant(zero).tick(Tick::Second)),
            "delay is zero; it must be at least 1 second"
        );
        assert_eq!(refusal(Strategy::linear(zero, MS)), "step is zero; it must be at least 1 millisecond");
        assert_eq!(refusal(Strategy::squared(zero, MS)), "step is zero; it must be at least 1 millisecond");
        assert_eq!(refusal(Strategy::list([MS, zero])), "delay 2 is zero; it must be at least 1 millisecond");
    }

    #[test]
    fn a_fraction_of_a_tick_is_refused() {
        assert_eq!(
            refusal(Strategy::exponential(MS * 1_500, MS * 3_000).tick(Tick::Second)),
            "base is 1.5s; it must be a whole number of seconds, below 2^64"
        );
        assert_eq!(
            refusal(Strategy::linear(MS, MS * 3 / 2)),
            "cap is 1.5ms; it must be a whole number of milliseconds, below 2^64"
        );
        assert_eq!(
            refusal(Strategy::list([Duration::from_nanos(1)]).tick(Tick::Microsecond)),
            "delay 1 is 1ns; it must be a whole number of microseconds, below 2^64"
        );
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert_eq!(
            refusal(Strategy::constant(Duration::from_secs(u64::MAX))),
            "delay is 18446744073709551615s; it must be a whole number of milliseconds, below 2^64"
        );
    }

    #[test]
    fn a_cap_below_the_first_ceiling_is_refused() {
        assert_eq!(
            refusal(Strategy::exponential(MS * 50, MS * 49)),
            "cap is 49ms; it must be at least the base, 50ms"
        );
        assert_eq!(refusal(Strategy::squared(MS * 50, MS)), "cap is 1ms; it must be at least the step, 50ms");
        assert!(Strategy::exponential(MS * 50, MS * 50).seeded(7).is_ok());
    }

    #[test]
    fn decorrelated_jitter_is_refused_without_exponential_growth() {
        for strategy in [
            Strategy::constant(MS),
            Strategy::linear(MS, MS),
            Strategy::squared(MS, MS),
            Strategy::list([MS]),
        ] {
            assert_eq!(
                refusal(strategy.jitter(Jitter::Decorrelated)),
                "decorrelated jitter has a growth of its own; it must be used with an exponential strategy"
            );
        }
        assert!(Strategy::exponential(MS, MS).jitter(Jitter::Decorrelated).seeded(7).is_ok());
    }

    #[test]
    fn an_empty_list_is_no_retries() {
        assert_eq!(Strategy::list([]).seeded(7).unwrap().delays().next(), None);
        assert_eq!(Strategy::list([]).jitter(Jitter::Full).seeded(7).unwrap().delays().next(), None);
    }
}
