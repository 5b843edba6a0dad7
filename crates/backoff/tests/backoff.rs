//! Tests for `Backoff`.

#![expect(clippy::unwrap_used, reason = "test code only")]

use std::collections::HashSet;
use std::time::Duration;

use comeback_backoff::{Backoff, BackoffError, Jitter};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const TICKS: [Duration; 3] = [Duration::from_micros(1), MS, SECOND];
const WAITS: u64 = 200;
const UNCHAINED: [Jitter; 3] = [Jitter::Full, Jitter::Equal, Jitter::None];

fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Generates a first wait and a cap, in ticks.
fn first_and_cap() -> impl Strategy<Value = (u64, u64)> {
    let any = (1..=1u64 << 33, 0..=1u64 << 33);
    let small = (1..=5_000u64, 0..=1_000_000u64);
    prop_oneof![any, small].prop_map(|(first, more)| (first, first + more))
}

fn ticks(wait: Duration, tick: Duration) -> u64 {
    assert!(wait.as_nanos().is_multiple_of(tick.as_nanos()), "{wait:?} in ticks of {tick:?}");
    (wait.as_nanos() / tick.as_nanos()) as u64
}

/// Multiplies a `Duration` by a `u64`. Its own operator accepts only a `u32`.
fn times(tick: Duration, ticks: u64) -> Duration {
    Duration::from_nanos(tick.as_nanos() as u64 * ticks)
}

/// Checks that each wait is within the bounds that the jitter sets. Tries several tick lengths, and every jitter
/// except decorrelated.
fn check(
    backoff: impl Fn(&dyn Fn(u64) -> Duration) -> Result<Backoff, BackoffError>,
) -> Result<(), TestCaseError> {
    for tick in TICKS {
        for jitter in UNCHAINED {
            let backoff = backoff(&|ticks| times(tick, ticks)).unwrap().with_tick(tick).unwrap();
            let backoff = backoff.with_jitter(jitter).unwrap();
            for (n, wait) in (1..=WAITS).zip(backoff.seeded(7)) {
                let (wait, ceiling) = (ticks(wait, tick), ticks(backoff.ceiling(n), tick));
                let low = match jitter {
                    Jitter::Full => 1,
                    Jitter::Equal => ceiling / 2 + ceiling % 2,
                    Jitter::None | Jitter::Decorrelated => ceiling,
                };
                prop_assert!((low..=ceiling).contains(&wait), "{wait} of {low}..={ceiling} for n = {n}");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_wait_lies_under_its_ceiling(
        (base, cap) in first_and_cap(), list in proptest::collection::vec(1..=1u64 << 34, 1..50),
    ) {
        check(|time| Backoff::exponential(time(base), time(cap)))?;
        check(|time| Backoff::constant(time(base)))?;
        check(|time| Backoff::linear(time(base), time(cap)))?;
        check(|time| Backoff::squared(time(base), time(cap)))?;
        check(|time| Backoff::list(list.iter().map(|&ticks| time(ticks))))?;
    }

    #[test]
    fn decorrelated((base, cap) in first_and_cap(), tick in prop::sample::select(TICKS.to_vec())) {
        let backoff = Backoff::exponential(times(tick, base), times(tick, cap)).unwrap();
        let backoff = backoff.with_tick(tick).unwrap().with_jitter(Jitter::Decorrelated).unwrap();
        let mut previous = base;
        for wait in backoff.seeded(7).take(WAITS as usize).map(|wait| ticks(wait, tick)) {
            prop_assert!((base..=cap.min(3 * previous)).contains(&wait));
            previous = wait;
        }
    }

    /// For retry n, `delay` must return the iterator's nth wait.
    #[test]
    fn single_wait_equals_the_iterators(
        (base, cap) in first_and_cap(), seed: u64, jitter in prop::sample::select(Jitter::ALL.to_vec()),
    ) {
        let backoff = Backoff::exponential(MS * base as u32, times(MS, cap.max(base % (1 << 32))));
        let Ok(backoff) = backoff else { return Ok(()) }; // a base of 2³² is 0 as a `u32`
        let backoff = backoff.with_jitter(jitter).unwrap();
        let mut state = rng(seed);
        for (n, wait) in (1..=WAITS).zip(backoff.with_rng(rng(seed))) {
            let alone = match jitter {
                Jitter::Decorrelated => backoff.delay(n, &mut rng(seed)).unwrap(),
                Jitter::Full | Jitter::Equal | Jitter::None => backoff.delay(n, &mut state).unwrap(),
            };
            prop_assert_eq!(wait, alone, "n = {}", n);
        }
    }

    #[test]
    fn retries_are_counted(retries in 0..100u64, list in 0..100usize) {
        let length = |backoff: Backoff| (backoff.seeded(7).size_hint(), backoff.seeded(7).count());
        let expected = |count: u64| ((count as usize, Some(count as usize)), count as usize);
        prop_assert_eq!(length(Backoff::constant(SECOND).unwrap().with_retries(retries)), expected(retries));
        let listed = Backoff::list(vec![SECOND; list]).unwrap();
        prop_assert_eq!(length(listed.clone()), expected(list as u64));
        prop_assert_eq!(length(listed.with_retries(retries)), expected(retries.min(list as u64)));
    }
}

fn seconds(base: u64, cap: u64, jitter: Jitter) -> Backoff {
    let backoff = Backoff::exponential(SECOND * base as u32, SECOND * cap as u32).unwrap();
    backoff.with_tick(SECOND).unwrap().with_jitter(jitter).unwrap()
}

#[test]
fn backoffs_grow_as_named() {
    for (backoff, expected) in [
        (Backoff::exponential(MS * 3, MS * 40), [3, 6, 12, 24, 40]),
        (Backoff::exponential_by(1.5, MS * 10, MS * 99), [10, 15, 23, 34, 51]),
        (Backoff::constant(MS * 3), [3; 5]),
        (Backoff::linear(MS * 3, MS * 13), [3, 6, 9, 12, 13]),
        (Backoff::squared(MS * 3, MS * 40), [3, 12, 27, 40, 40]),
        (Backoff::list([5, 50, 7].map(|ticks| MS * ticks)), [5, 50, 7, 7, 7]),
    ] {
        let backoff = backoff.unwrap();
        assert_eq!(
            [1, 2, 3, 4, 5].map(|n| backoff.ceiling(n)),
            expected.map(|ticks| MS * ticks),
            "{backoff:?}"
        );
    }
}

#[test]
fn every_value_in_range_is_drawn() {
    for (backoff, n, low, high) in [
        (seconds(1, 43_170, Jitter::Full), 8, 1, 128),
        (seconds(1, 43_170, Jitter::Equal), 8, 64, 128),
        (seconds(7, 7, Jitter::Equal), 3, 4, 7),
        (seconds(10, 1_000, Jitter::Decorrelated), 1, 10, 30),
        // Each of these two retries starts a new chain.
        (seconds(10, 1_000, Jitter::Decorrelated), (1 << 16) + 1, 10, 30),
        (seconds(10, 1_000, Jitter::Decorrelated), u64::MAX - 65_534, 10, 30),
    ] {
        let drawn: HashSet<u64> =
            (0..20_000).map(|seed| backoff.delay(n, &mut rng(seed)).unwrap().as_secs()).collect();
        assert_eq!(drawn, (low..=high).collect(), "{backoff:?}, n = {n}");
    }
}

#[test]
fn decorrelated_chains_differ() {
    let backoff = seconds(10, 1_000_000, Jitter::Decorrelated);
    let waits = |chain: u64| [30, 31, 32].map(|n| backoff.delay((chain << 16) + n, &mut rng(7)));
    assert!(waits(0) != waits(1) && waits(1) != waits(2));
}

/// Counts random draws instead of measuring time, because measured times vary.
#[test]
fn decorrelated_wait_draws_at_most_one_chain() {
    struct Counting(u64);
    impl rand::TryRng for Counting {
        type Error = std::convert::Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            unreachable!("draws are of 64 bits")
        }
        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            self.0 += 1;
            Ok(self.0 << 40)
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Self::Error> {
            unreachable!("draws are of 64 bits")
        }
    }
    for (n, draws) in [(1, 1), (1 << 16, 1 << 16), (5_000_000, 1), (u64::MAX, 1)] {
        let mut rng = Counting(0);
        seconds(1, 1_000, Jitter::Decorrelated).delay(n, &mut rng);
        assert_eq!(rng.0, draws, "n = {n}"); // the chain's own generator makes the other draws
    }
}

#[test]
fn retries_are_endless_unless_limited() {
    let mut delays = Backoff::constant(SECOND).unwrap().seeded(7);
    assert_eq!(delays.size_hint(), (usize::MAX, None));
    assert!(delays.nth(100_000).is_some());
    let mut delays = Backoff::list([SECOND]).unwrap().seeded(7);
    assert_eq!([delays.next(), delays.next(), delays.next()], [Some(SECOND), None, None]);
}

#[test]
fn a_clone_repeats_its_original() {
    for jitter in Jitter::ALL {
        let mut original = Backoff::default().with_retries(50).with_jitter(jitter).unwrap().seeded(7);
        original.by_ref().take(5).for_each(drop);
        assert!(original.clone().eq(original), "{jitter}");
    }
}

#[test]
fn the_default_is_three_retries_with_full_jitter() {
    let expected = Backoff::exponential(SECOND, SECOND * 60).unwrap().with_retries(3);
    assert_eq!(Backoff::default(), expected);
    assert_eq!((expected.jitter(), expected.base(), expected.cap()), (Jitter::Full, SECOND, SECOND * 60));
    assert_eq!(Backoff::list([SECOND]).unwrap().jitter(), Jitter::None);
}

/// Users who set a seed rely on getting the same waits from every release.
#[test]
fn waits_of_a_seed_never_change() {
    let backoff = Backoff::exponential(MS * 50, SECOND * 2).unwrap().with_retries(8);
    let first_seed = rand::Rng::next_u64(&mut rng(7));
    let millis = |n| backoff.seeded(first_seed + n).map(|delay| delay.as_millis()).collect::<Vec<_>>();
    assert_eq!(millis(0), [44, 79, 128, 346, 576, 74, 1569, 48]);
    assert_eq!(millis(1), [36, 50, 72, 396, 560, 583, 1637, 998]);
}

#[cfg(feature = "entropy")]
#[expect(clippy::disallowed_methods, reason = "the test needs seeds from the operating system")]
#[test]
fn no_two_operations_wait_in_step() {
    let backoff = Backoff::constant(SECOND * 1_000_000).unwrap().with_retries(4);
    let waits: HashSet<Vec<Duration>> = (0..2_000).map(|_| backoff.delays().collect()).collect();
    assert_eq!(waits.len(), 2_000);
}

#[test]
fn ticks_are_as_coarse_as_the_durations_allow() {
    let whole = |unit: Duration, backoff: Result<Backoff, BackoffError>| {
        backoff.unwrap().seeded(7).take(100).all(|wait| wait.as_nanos().is_multiple_of(unit.as_nanos()))
    };
    let micros = Duration::from_micros(1);
    assert!(whole(MS, Backoff::exponential(SECOND, SECOND * 60)));
    assert!(!whole(SECOND, Backoff::exponential(SECOND, SECOND * 60)));
    assert!(whole(micros, Backoff::linear(micros * 1_500, SECOND)));
    assert!(!whole(MS, Backoff::linear(micros * 1_500, SECOND)));
    assert!(!whole(micros, Backoff::constant(Duration::from_nanos(1_001))));
}

#[test]
fn invalid_settings_are_refused_by_name() {
    let refused = |backoff: Result<Backoff, BackoffError>| backoff.unwrap_err().to_string();
    let zero = Duration::ZERO;
    assert_eq!(refused(Backoff::exponential(zero, MS)), "base is zero; it must be longer");
    assert_eq!(refused(Backoff::constant(zero)), "delay is zero; it must be longer");
    assert_eq!(refused(Backoff::linear(zero, MS)), "step is zero; it must be longer");
    assert_eq!(refused(Backoff::squared(zero, MS)), "step is zero; it must be longer");
    assert_eq!(refused(Backoff::list([MS, zero])), "delay 2 is zero; it must be longer");
    assert_eq!(
        refused(Backoff::constant(Duration::from_secs(u64::MAX))),
        "delay is 18446744073709551615s; it must be shorter than 2^64 nanoseconds (584 years)"
    );
    assert_eq!(
        refused(Backoff::exponential(MS * 50, MS * 49)),
        "cap is 49ms; it must be at least the base, 50ms"
    );
    assert_eq!(refused(Backoff::squared(MS * 50, MS)), "cap is 1ms; it must be at least the step, 50ms");
    for (factor, text) in [(0.99, "0.99"), (-2.0, "-2"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        let expected = format!("factor is {text}; it must be a number of at least 1");
        assert_eq!(refused(Backoff::exponential_by(factor, MS, MS * 10)), expected);
    }
    assert!(Backoff::exponential_by(1.0, MS * 50, MS * 50).is_ok());
}

#[test]
fn a_tick_that_would_round_is_refused() {
    let refused = |backoff: Result<Backoff, BackoffError>, tick| {
        backoff.unwrap().with_tick(tick).unwrap_err().to_string()
    };
    assert_eq!(
        refused(Backoff::exponential(MS * 1_500, SECOND * 3), SECOND),
        "1.5s is not a whole number of ticks of 1s"
    );
    assert_eq!(refused(Backoff::linear(MS, MS * 3 / 2), MS), "1.5ms is not a whole number of ticks of 1ms");
    assert_eq!(refused(Backoff::constant(MS), Duration::ZERO), "tick is zero; it must be longer");
}

#[test]
fn decorrelated_jitter_is_refused_without_doubling() {
    for backoff in [
        Backoff::exponential_by(2.0, MS, MS),
        Backoff::constant(MS),
        Backoff::linear(MS, MS),
        Backoff::squared(MS, MS),
        Backoff::list([MS]),
    ] {
        assert_eq!(
            backoff.unwrap().with_jitter(Jitter::Decorrelated).unwrap_err().to_string(),
            "decorrelated jitter has a growth of its own; it must be used with `Backoff::exponential`"
        );
    }
}

#[test]
fn single_wait_ends_with_the_waits() {
    let backoff = seconds(1, 60, Jitter::Full).with_retries(3);
    let list = Backoff::list([1, 2].map(Duration::from_secs)).unwrap();
    for (backoff, last) in
        [(&backoff, 3), (&backoff.clone().with_retries(0), 0), (&list, 2), (&list.clone().with_retries(1), 1)]
    {
        assert_eq!(backoff.retries(), Some(last));
        assert_eq!((1..=9).filter(|n| backoff.delay(*n, &mut rng(7)).is_some()).count() as u64, last);
        assert_eq!(backoff.delay(0, &mut rng(7)).is_some(), last > 0, "0 counts as 1");
    }
    assert_eq!(seconds(1, 60, Jitter::Full).retries(), None);
}
