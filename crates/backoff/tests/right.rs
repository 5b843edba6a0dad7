//! The checker finds no mistake in any strategy, whatever its jitter and tick: bounds, mean,
//! variance, spread and independence, under fixed seeds.

mod checker;

use std::time::Duration;

use checker::{Claim, mistakes};
use comeback_backoff::{Jitter, Strategy, Tick};

const TICKS: [Tick; 3] = [Tick::Microsecond, Tick::Millisecond, Tick::Second];

/// `ceiling` is the formula, before the cap.
fn assert_right(strategy: &dyn Fn(Tick) -> Strategy, cap: u64, ceiling: &dyn Fn(u64) -> u64) {
    for tick in TICKS {
        for jitter in [Jitter::Full, Jitter::Equal, Jitter::None] {
            let range = |n, _| {
                let ceiling = ceiling(n).min(cap);
                match jitter {
                    Jitter::Full => (1, ceiling),
                    Jitter::Equal => (ceiling.div_ceil(2), ceiling),
                    Jitter::None | Jitter::Decorrelated => (ceiling, ceiling),
                }
            };
            let streams = strategy(tick).tick(tick).jitter(jitter).seeded(7).expect("a valid strategy");
            let found = mistakes(&Claim { tick: tick.duration(), range: &range }, || streams.delays());
            assert!(found.is_empty(), "{found:?} with {jitter} jitter in {}s", tick.name());
        }
    }
}

#[test]
fn exponential() {
    let strategy = |tick: Tick| Strategy::exponential(tick.times(30), tick.times(10_000));
    assert_right(&strategy, 10_000, &|n| 30 << (n - 1));
}

#[test]
fn constant() {
    assert_right(&|tick| Strategy::constant(tick.times(999)), 999, &|_| 999);
}

#[test]
fn linear() {
    let strategy = |tick: Tick| Strategy::linear(tick.times(30), tick.times(250));
    assert_right(&strategy, 250, &|n| 30 * n);
}

#[test]
fn squared() {
    let strategy = |tick: Tick| Strategy::squared(tick.times(30), tick.times(2_500));
    assert_right(&strategy, 2_500, &|n| 30 * n * n);
}

#[test]
fn list() {
    let list = [50, 50, 100, 20, 5_000];
    let strategy = |tick: Tick| Strategy::list(list.map(|ceiling| tick.times(ceiling)));
    assert_right(&strategy, 5_000, &|n| list[n as usize - 1]);
}

#[test]
fn decorrelated() {
    for tick in TICKS {
        let range = |_, previous: Option<u64>| (30, 2_000.min(3 * previous.unwrap_or(30)));
        let streams = Strategy::exponential(tick.times(30), tick.times(2_000))
            .jitter(Jitter::Decorrelated)
            .tick(tick)
            .seeded(7)
            .unwrap();
        let found = mistakes(&Claim { tick: tick.duration(), range: &range }, || streams.delays());
        assert!(found.is_empty(), "{found:?} in {}s", tick.name());
    }
}

#[test]
fn whole_seconds_up_to_twelve_hours() {
    let cap = 43_170;
    let strategy = Strategy::exponential(Duration::from_secs(1), Duration::from_secs(cap)).tick(Tick::Second);
    let streams = strategy.seeded(1).unwrap();
    let claim = Claim { tick: Duration::from_secs(1), range: &|n, _| (1, cap.min(1 << (n + 3))) };
    let found = mistakes(&claim, || {
        let mut delays = streams.delays();
        delays.by_ref().take(4).for_each(drop); // ceilings of 1 to 8 s are too narrow to judge
        delays
    });
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn neighbouring_seeds() {
    let strategy = Strategy::exponential(Duration::from_millis(30), Duration::from_secs(10));
    let mut seed = 0;
    let found = mistakes(
        &Claim { tick: Tick::Millisecond.duration(), range: &|n, _| (1, 10_000.min(30 << (n - 1))) },
        || {
            seed += 1;
            strategy.seeded(seed).unwrap().delays()
        },
    );
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn jittered_ladder() {
    use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
    comeback_backoff::ladder! { Rungs: 100ms, 300ms, 1s, 2s }
    let rungs = [100, 300, 1_000, 2_000];
    let claim = Claim { tick: Duration::from_millis(1), range: &|n, _| (1, rungs[n as usize - 1]) };
    let mut seed = 0;
    let found = mistakes(&claim, || {
        seed += 1;
        Rungs::jittered(Xoshiro256PlusPlus::seed_from_u64(seed))
    });
    assert!(found.is_empty(), "{found:?}");
}
