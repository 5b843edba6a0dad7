use alloc::vec::Vec;
use core::time::Duration;

use super::Shape;
use super::growth::Growth;
use crate::{Jitter, Part, Strategy, StrategyError, Tick};

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
            let (base, cap) = capped(Part::Base, *base, *cap, tick)?;
            Ok((Growth::Exponential { base }, cap))
        }
        Shape::Powers { base, factor, cap } => {
            // Not a number is refused, too.
            if !(factor.is_finite() && *factor >= 1.0) {
                return Err(StrategyError::Factor(*factor));
            }
            let (base, cap) = capped(Part::Base, *base, *cap, tick)?;
            Ok((Growth::Powers { base, factor: *factor }, cap))
        }
        Shape::Constant { delay } => {
            let delay = wait(Part::Delay, *delay, tick)?;
            Ok((Growth::Polynomial { step: delay, power: 0 }, delay))
        }
        Shape::Linear { step, cap } => {
            let (step, cap) = capped(Part::Step, *step, *cap, tick)?;
            Ok((Growth::Polynomial { step, power: 1 }, cap))
        }
        Shape::Squared { step, cap } => {
            let (step, cap) = capped(Part::Step, *step, *cap, tick)?;
            Ok((Growth::Polynomial { step, power: 2 }, cap))
        }
        Shape::List { delays } => {
            let waits: Result<Vec<u64>, _> =
                (1..).zip(delays).map(|(n, delay)| wait(Part::Listed(n), *delay, tick)).collect();
            let waits = waits?;
            let longest = waits.iter().copied().max().unwrap_or(1);
            Ok((Growth::List(waits.into()), longest))
        }
    }
}

fn capped(part: Part, first: Duration, cap: Duration, tick: Tick) -> Result<(u64, u64), StrategyError> {
    let ticks = (wait(part, first, tick)?, whole(Part::Cap, cap, tick)?);
    if ticks.1 < ticks.0 { Err(StrategyError::CapBelowFirst { cap, part, first }) } else { Ok(ticks) }
}

fn wait(part: Part, value: Duration, tick: Tick) -> Result<u64, StrategyError> {
    match whole(part, value, tick)? {
        0 => Err(StrategyError::Zero { part, tick }),
        ticks => Ok(ticks),
    }
}

fn whole(part: Part, value: Duration, tick: Tick) -> Result<u64, StrategyError> {
    tick.count(value).ok_or(StrategyError::NotWhole { part, value, tick })
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
            Strategy::exponential_by(2.0, MS, MS),
            Strategy::constant(MS),
            Strategy::linear(MS, MS),
            Strategy::squared(MS, MS),
            Strategy::list([MS]),
        ] {
            assert_eq!(
                refusal(strategy.jitter(Jitter::Decorrelated)),
                "decorrelated jitter has a growth of its own; it must be used with `Strategy::exponential`"
            );
        }
        assert!(Strategy::exponential(MS, MS).jitter(Jitter::Decorrelated).seeded(7).is_ok());
    }

    #[test]
    fn a_factor_that_does_not_grow_is_refused() {
        let refused = |factor| refusal(Strategy::exponential_by(factor, MS, MS * 10));
        assert_eq!(refused(0.99), "factor is 0.99; it must be a number of at least 1");
        assert_eq!(refused(-2.0), "factor is -2; it must be a number of at least 1");
        assert_eq!(refused(f64::NAN), "factor is NaN; it must be a number of at least 1");
        assert_eq!(refused(f64::INFINITY), "factor is inf; it must be a number of at least 1");
        assert_eq!(
            refusal(Strategy::exponential_by(3.0, MS * 50, MS * 49)),
            "cap is 49ms; it must be at least the base, 50ms"
        );
        assert!(Strategy::exponential_by(1.0, MS, MS).seeded(7).is_ok());
    }

    #[test]
    fn an_empty_list_is_no_retries() {
        assert_eq!(Strategy::list([]).seeded(7).unwrap().delays().next(), None);
        assert_eq!(Strategy::list([]).jitter(Jitter::Full).seeded(7).unwrap().delays().next(), None);
    }
}
