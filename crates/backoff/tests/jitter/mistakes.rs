//! The checker catches each known mistake, in waits that make it on purpose.

use std::collections::BTreeSet;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::checker::{Claim, Mistake, mistakes};

const BASE: u64 = 1_000;
const CAP: u64 = 30_000;

/// The range that the waits should have: full jitter, in milliseconds.
fn full(n: u64, _: Option<u64>) -> (u64, u64) {
    (1, ceiling(n))
}

fn ceiling(n: u64) -> u64 {
    CAP.min(BASE << (n - 1))
}

/// What is found in iterators of `wait(n, generator)` milliseconds, each with a seed of its own.
fn found(
    range: &dyn Fn(u64, Option<u64>) -> (u64, u64),
    wait: impl Fn(u64, &mut Xoshiro256PlusPlus) -> Duration + Copy,
) -> BTreeSet<Mistake> {
    let mut seed = 0;
    mistakes(&Claim { tick: Duration::from_millis(1), range }, || {
        seed += 1;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        (1..).map(move |n| wait(n, &mut rng))
    })
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn none_in_the_right_one() {
    assert!(found(&full, |n, rng| ms(rng.random_range(1..=ceiling(n)))).is_empty());
}

#[test]
fn additive_jitter_over_the_cap() {
    let found =
        found(&|n, _| (ceiling(n) / 2, ceiling(n)), |n, rng| ms(ceiling(n) + rng.random_range(0..=BASE)));
    assert!(found.contains(&Mistake::OverCeiling), "{found:?}");
}

#[test]
fn additive_jitter_over_the_cap_as_backon_1_6_has_it() {
    // Its documentation says so: jitter adds up to the delay itself, after `max_delay`.
    let mut seed = 0;
    let found = mistakes(
        &Claim { tick: Duration::from_nanos(1), range: &|n, _| (1, ceiling(n) * 1_000_000) },
        || {
            seed += 1;
            let builder =
                ExponentialBuilder::default().without_max_times().with_jitter().with_jitter_seed(seed);
            builder.with_min_delay(ms(BASE)).with_max_delay(ms(CAP)).build()
        },
    );
    assert!(found.contains(&Mistake::OverCeiling), "{found:?}");
}

#[test]
fn cap_after_jitter() {
    let found = found(&full, |n, rng| ms(CAP.min(rng.random_range(1..=BASE << (n - 1)))));
    assert_eq!(found, [Mistake::PiledUp, Mistake::Mean, Mistake::Variance].into());
}

#[test]
fn cap_after_jitter_in_the_published_decorrelated_form() {
    let mut seed = 0;
    let range = |_, previous: Option<u64>| (BASE, CAP.min(3 * previous.unwrap_or(BASE)));
    let found = mistakes(&Claim { tick: ms(1), range: &range }, || {
        seed += 1;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        std::iter::successors(Some(BASE), move |last| Some(CAP.min(rng.random_range(BASE..=3 * last))))
            .skip(1)
            .map(ms)
    });
    assert!(found.contains(&Mistake::PiledUp), "{found:?}");
}

#[test]
fn truncated_seconds() {
    let found = found(&full, |n, rng| {
        Duration::from_secs(Duration::from_millis(rng.random_range(1..=ceiling(n))).as_secs())
    });
    assert!(found.is_superset(&[Mistake::UnderRange, Mistake::Truncated].into()), "{found:?}");
}

#[test]
fn truncated_to_tens_of_milliseconds() {
    let found = found(&full, |n, rng| ms(rng.random_range(1..=ceiling(n)).next_multiple_of(10)));
    assert!(found.contains(&Mistake::Truncated), "{found:?}");
}

#[test]
fn builders_that_all_start_the_same_stream() {
    let found = mistakes(&Claim { tick: ms(1), range: &full }, || {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        (1..).map(move |n| ms(rng.random_range(1..=ceiling(n))))
    });
    assert!(found.is_superset(&[Mistake::Correlated, Mistake::Inert].into()), "{found:?}");
}

#[test]
fn builders_that_share_a_stream_one_draw_apart() {
    let mut shared = Xoshiro256PlusPlus::seed_from_u64(7);
    let found = mistakes(&Claim { tick: ms(1), range: &full }, || {
        let _: u64 = shared.random();
        let mut rng = shared.clone();
        (1..).map(move |n| ms(rng.random_range(1..=ceiling(n))))
    });
    assert_eq!(found, [Mistake::Correlated].into());
}

#[test]
fn every_second_builder_a_clone() {
    let mut seed = 0;
    let found = mistakes(&Claim { tick: ms(1), range: &full }, || {
        seed += 1;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed / 2);
        (1..).map(move |n| ms(rng.random_range(1..=ceiling(n))))
    });
    assert_eq!(found, [Mistake::Correlated].into());
}

#[test]
fn one_draw_for_all_waits_of_an_iterator() {
    let mut seed = 0;
    let found = mistakes(&Claim { tick: ms(1), range: &full }, || {
        seed += 1;
        let draw: f64 = Xoshiro256PlusPlus::seed_from_u64(seed).random();
        (1..).map(move |n| ms((draw * ceiling(n) as f64).ceil() as u64))
    });
    assert_eq!(found, [Mistake::Correlated].into());
}

#[test]
fn inert_jitter() {
    // The fraction is computed in integers, and so is always 0.
    let found = found(&full, |n, rng| ms(ceiling(n) - ceiling(n) * (rng.random_range(0..100) / 100)));
    assert_eq!(found, [Mistake::Inert, Mistake::Mean, Mistake::Variance, Mistake::Correlated].into());
}

#[test]
fn no_backoff_at_all_now_and_then() {
    let found = found(&|_, _| (1, 20), |_, rng| ms(rng.random_range(0..=19)));
    assert!(found.contains(&Mistake::UnderRange), "{found:?}");
}

#[test]
fn a_ceiling_that_overflows_its_type() {
    let found = found(&full, |n, rng| {
        let ceiling = CAP.min(u64::from((BASE as u16).wrapping_shl(n as u32 - 1).max(1)));
        ms(rng.random_range(1..=ceiling))
    });
    assert_eq!(found, [Mistake::Mean].into());
}

#[test]
fn exponents_counted_from_one_too_many() {
    let found = found(&full, |n, rng| ms(rng.random_range(1..=ceiling(n + 1))));
    assert!(found.contains(&Mistake::OverCeiling), "{found:?}");
}
