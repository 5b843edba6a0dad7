//! The checker finds no mistake in any backoff, whatever its growth, jitter and tick: bounds, mean, variance, spread
//! and independence, under fixed seeds. `mistakes.rs` checks the checker.

mod checker;
mod mistakes;

use std::time::Duration;

use checker::{Claim, mistakes};
use comeback_backoff::{Backoff, BackoffError, Jitter};

const MS: Duration = Duration::from_millis(1);
const TICKS: [Duration; 3] = [Duration::from_micros(1), MS, Duration::from_secs(1)];

/// Iterators of neighbouring seeds.
fn assert_right(backoff: &Backoff, tick: Duration, range: &dyn Fn(u64, Option<u64>) -> (u64, u64)) {
    let mut seed = 0;
    let found = mistakes(&Claim { tick, range }, || {
        seed += 1;
        backoff.seeded(seed)
    });
    assert!(found.is_empty(), "{found:?} in {backoff:?}");
}

/// `ceiling` is the formula, after the cap.
fn assert_right_in_all_jitters(
    backoff: impl Fn(Duration) -> Result<Backoff, BackoffError>,
    ceiling: impl Fn(u64) -> u64,
) {
    for tick in TICKS {
        for jitter in [Jitter::Full, Jitter::Equal, Jitter::None] {
            let backoff = backoff(tick).unwrap().with_tick(tick).unwrap().with_jitter(jitter).unwrap();
            assert_right(&backoff, tick, &|n, _| match jitter {
                Jitter::Full => (1, ceiling(n)),
                Jitter::Equal => (ceiling(n).div_ceil(2), ceiling(n)),
                Jitter::None | Jitter::Decorrelated => (ceiling(n), ceiling(n)),
            });
        }
    }
}

#[test]
fn exponential() {
    assert_right_in_all_jitters(
        |tick| Backoff::exponential(tick * 30, tick * 10_000),
        |n| 10_000.min(30 << (n - 1)),
    );
}

#[test]
fn constant() {
    assert_right_in_all_jitters(|tick| Backoff::constant(tick * 999), |_| 999);
}

#[test]
fn linear() {
    assert_right_in_all_jitters(|tick| Backoff::linear(tick * 30, tick * 250), |n| 250.min(30 * n));
}

#[test]
fn squared() {
    assert_right_in_all_jitters(|tick| Backoff::squared(tick * 30, tick * 2_500), |n| 2_500.min(30 * n * n));
}

#[test]
fn list() {
    let list = [50, 50, 100, 20, 5_000];
    assert_right_in_all_jitters(
        |tick| Backoff::list(list.map(|ceiling| tick * ceiling)),
        |n| list[n as usize - 1].into(),
    );
}

#[test]
fn decorrelated() {
    for tick in TICKS {
        let backoff = Backoff::exponential(tick * 30, tick * 2_000).unwrap().with_tick(tick).unwrap();
        let backoff = backoff.with_jitter(Jitter::Decorrelated).unwrap();
        assert_right(&backoff, tick, &|_, previous| (30, 2_000.min(3 * previous.unwrap_or(30))));
    }
}

#[test]
fn whole_seconds_up_to_twelve_hours() {
    // From 16 s on, as lower ceilings are too narrow to judge.
    let (tick, cap) = (Duration::from_secs(1), 43_170);
    let backoff = Backoff::exponential(tick * 16, tick * cap).unwrap().with_tick(tick).unwrap();
    assert_right(&backoff, tick, &|n, _| (1, u64::from(cap).min(1 << (n + 3))));
}
