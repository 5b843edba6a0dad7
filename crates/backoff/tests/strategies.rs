//! Every strategy against its formula, computed in wide arithmetic; and the iterators against
//! `Backoff`, which the engine uses.

use std::time::Duration;

use comeback_backoff::{Backoff, Delays, Jitter, Strategy, Tick};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

const WAITS: u64 = 200;

fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

fn tick() -> impl proptest::strategy::Strategy<Value = Tick> {
    proptest::sample::select(vec![Tick::Microsecond, Tick::Millisecond, Tick::Second])
}

fn jitter() -> impl proptest::strategy::Strategy<Value = Jitter> {
    proptest::sample::select(vec![Jitter::Full, Jitter::Equal, Jitter::None])
}

/// A first wait and a cap of any size, most of them small.
fn first_and_cap() -> impl proptest::strategy::Strategy<Value = (u64, u64)> {
    let any = (1..=u64::MAX, 0..=u64::MAX);
    let small = (1..=5_000u64, 0..=1_000_000u64);
    proptest::strategy::Strategy::prop_map(prop_oneof![any, small], |(first, more)| {
        (first, first.saturating_add(more))
    })
}

/// Each wait lies in its jitter's range under min(cap, formula).
fn check(
    strategy: Strategy,
    (jitter, tick, cap): (Jitter, Tick, u64),
    formula: impl Fn(u128) -> u128,
) -> Result<(), TestCaseError> {
    let mut delays = strategy.jitter(jitter).tick(tick).with_rng(rng(7)).expect("a valid strategy");
    for n in 1..=WAITS {
        let ceiling = u64::try_from(formula(n.into()).min(cap.into())).expect("at most the cap");
        let low = match jitter {
            Jitter::Full => 1,
            Jitter::Equal => ceiling / 2 + ceiling % 2,
            Jitter::None | Jitter::Decorrelated => ceiling,
        };
        let wait = delays.next().and_then(|delay| tick.count(delay)).expect("a whole number of ticks");
        prop_assert!((low..=ceiling).contains(&wait), "{} of {}..={} for n = {}", wait, low, ceiling, n);
    }
    Ok(())
}

proptest! {
    #[test]
    fn exponential((base, cap) in first_and_cap(), jitter in jitter(), tick in tick()) {
        let strategy = Strategy::exponential(tick.times(base), tick.times(cap));
        let power = |n: u128| 2u128.checked_pow(n as u32 - 1);
        let formula = |n| power(n).and_then(|power| power.checked_mul(base.into())).unwrap_or(u128::MAX);
        check(strategy, (jitter, tick, cap), formula)?;
    }

    #[test]
    fn constant((delay, _) in first_and_cap(), jitter in jitter(), tick in tick()) {
        check(Strategy::constant(tick.times(delay)), (jitter, tick, delay), |_| delay.into())?;
    }

    #[test]
    fn linear((step, cap) in first_and_cap(), jitter in jitter(), tick in tick()) {
        let strategy = Strategy::linear(tick.times(step), tick.times(cap));
        check(strategy, (jitter, tick, cap), |n| u128::from(step) * n)?;
    }

    #[test]
    fn squared((step, cap) in first_and_cap(), jitter in jitter(), tick in tick()) {
        let strategy = Strategy::squared(tick.times(step), tick.times(cap));
        check(strategy, (jitter, tick, cap), |n| u128::from(step) * n * n)?;
    }

    #[test]
    fn list(list in proptest::collection::vec(1..=u64::MAX, 0..50), jitter in jitter(), tick in tick()) {
        let strategy = Strategy::list(list.iter().map(|&ticks| tick.times(ticks))).jitter(jitter).tick(tick);
        let waits: Vec<Duration> = strategy.seeded(7).unwrap().delays().collect();
        prop_assert_eq!(waits.len(), list.len());
        for (wait, &ceiling) in waits.iter().zip(&list) {
            let wait = tick.count(*wait).unwrap();
            prop_assert!(1 <= wait && wait <= ceiling);
            prop_assert!(jitter != Jitter::None || wait == ceiling);
            prop_assert!(jitter != Jitter::Equal || wait >= ceiling / 2 + ceiling % 2);
        }
    }

    #[test]
    fn decorrelated((base, cap) in first_and_cap(), tick in tick()) {
        let strategy = Strategy::exponential(tick.times(base), tick.times(cap)).jitter(Jitter::Decorrelated);
        let mut previous = base;
        for wait in strategy.tick(tick).with_rng(rng(7)).unwrap().take(WAITS as usize) {
            let wait = tick.count(wait).unwrap();
            let highest = (3 * u128::from(previous)).min(cap.into());
            prop_assert!(base <= wait && u128::from(wait) <= highest);
            previous = wait;
        }
    }

    /// The wait before retry n is the iterator's nth, from a generator in the same state: the state
    /// before the nth wait, or at the start for decorrelated jitter.
    #[test]
    fn backoff_is_the_iterator_without_state(
        (base, cap) in first_and_cap(), seed: u64, tick in tick(),
        jitter in proptest::sample::select(Jitter::ALL.to_vec()),
    ) {
        let strategy = Strategy::exponential(tick.times(base), tick.times(cap)).jitter(jitter).tick(tick);
        let backoff = Backoff::new(base, cap, jitter);
        let mut state = rng(seed);
        for (n, wait) in (1..=WAITS).zip(strategy.with_rng(rng(seed)).unwrap()) {
            let alone = if jitter == Jitter::Decorrelated {
                backoff.delay(n, &mut rng(seed))
            } else {
                backoff.delay(n, &mut state)
            };
            prop_assert_eq!(wait, tick.times(alone), "n = {}", n);
        }
    }

    #[test]
    fn retries_are_counted(retries in 0..100u64, list in 0..100usize) {
        let length = |strategy: Strategy| {
            let delays = strategy.seeded(7).unwrap().delays();
            (delays.size_hint(), delays.count())
        };
        let second = Duration::from_secs(1);
        let expected = |count: u64| ((count as usize, Some(count as usize)), count as usize);
        prop_assert_eq!(length(Strategy::constant(second).retries(retries)), expected(retries));
        prop_assert_eq!(length(Strategy::list(vec![second; list])), expected(list as u64));
        let both = Strategy::list(vec![second; list]).retries(retries);
        prop_assert_eq!(length(both), expected(retries.min(list as u64)));
    }
}

#[test]
fn retries_are_endless_unless_limited() {
    let mut delays = Strategy::constant(Duration::from_secs(1)).seeded(7).unwrap().delays();
    assert_eq!(delays.size_hint(), (usize::MAX, None));
    assert!(delays.nth(100_000).is_some());
}

#[test]
fn after_the_end_there_is_nothing() {
    let mut delays = Strategy::list([Duration::from_secs(1)]).seeded(7).unwrap().delays();
    assert_eq!([delays.next(), delays.next(), delays.next()], [Some(Duration::from_secs(1)), None, None]);
}

#[test]
fn a_clone_repeats_its_original() {
    let strategy = Strategy::exponential(Duration::from_millis(10), Duration::from_secs(60)).retries(50);
    for jitter in Jitter::ALL {
        let mut original = strategy.clone().jitter(jitter).seeded(7).unwrap().delays();
        original.by_ref().take(5).for_each(drop);
        let clone: Delays = original.clone();
        assert!(clone.eq(original), "{jitter}");
    }
}

#[test]
fn jitter_is_full_by_default_but_lists_stand() {
    let second = Duration::from_secs(1);
    let first = |strategy: Strategy| strategy.seeded(7).unwrap().delays().next();
    for strategy in [
        Strategy::exponential(second, second),
        Strategy::constant(second),
        Strategy::linear(second, second),
        Strategy::squared(second, second),
    ] {
        assert_eq!(first(strategy.clone()), first(strategy.jitter(Jitter::Full)));
    }
    assert_eq!(first(Strategy::list([second])), Some(second));
}
