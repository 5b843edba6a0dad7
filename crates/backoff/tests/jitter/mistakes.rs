//! The checker catches each known mistake, in waits that make it on purpose.

use std::collections::BTreeSet;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::checker::{Claim, Mistake, mistakes};

const BASE: u64 = 1_000;
const CAP: u64 = 30_000;

type Range = fn(u64, Option<u64>) -> (u64, u64);

/// The range that the waits should have: full jitter, in milliseconds.
const FULL: Range = |n, _| (1, ceiling(n));

fn ceiling(n: u64) -> u64 {
    CAP.min(BASE << (n - 1))
}

/// Mistakes found in iterators that `build` makes of 1, 2, 3, …
fn found<I: Iterator<Item = Duration>>(range: Range, build: impl Fn(u64) -> I) -> BTreeSet<Mistake> {
    let mut seed = 0;
    mistakes(&Claim { tick: ms(1), range: &range }, || {
        seed += 1;
        build(seed)
    })
}

fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An iterator with full jitter.
fn full(mut rng: Xoshiro256PlusPlus) -> impl Iterator<Item = Duration> {
    (1..).map(move |n| ms(rng.random_range(1..=ceiling(n))))
}

#[test]
fn the_right_waits_have_none() {
    assert_eq!(found(FULL, |seed| full(rng(seed))), [].into());
}

#[test]
fn a_wrong_wait_is_caught() {
    use Mistake::{Correlated, Inert, Mean, OverCeiling, PiledUp, Truncated, UnderRange, Variance};
    type Wait = fn(u64, &mut Xoshiro256PlusPlus) -> Duration;
    let cases: [(&str, Range, Wait, &[Mistake]); 8] = [
        (
            "additive jitter over the cap",
            |n, _| (ceiling(n) / 2, ceiling(n)),
            |n, rng| ms(ceiling(n) + rng.random_range(0..=BASE)),
            &[OverCeiling],
        ),
        (
            "cap after jitter",
            FULL,
            |n, rng| ms(CAP.min(rng.random_range(1..=BASE << (n - 1)))),
            &[PiledUp, Mean, Variance],
        ),
        (
            "truncated seconds",
            FULL,
            |n, rng| Duration::from_secs(ms(rng.random_range(1..=ceiling(n))).as_secs()),
            &[UnderRange, Truncated],
        ),
        (
            "truncated to tens of milliseconds",
            FULL,
            |n, rng| ms(rng.random_range(1..=ceiling(n)).next_multiple_of(10)),
            &[Truncated],
        ),
        (
            "inert jitter, because an integer fraction is always 0",
            FULL,
            |n, rng| ms(ceiling(n) - ceiling(n) * (rng.random_range(0..100) / 100)),
            &[Inert, Mean, Variance, Correlated],
        ),
        ("no wait at all now and then", |_, _| (1, 20), |_, rng| ms(rng.random_range(0..=19)), &[UnderRange]),
        (
            "a ceiling that overflows its type",
            FULL,
            |n, rng| {
                let overflown = u64::from((BASE as u16).wrapping_shl(n as u32 - 1).max(1));
                ms(rng.random_range(1..=CAP.min(overflown)))
            },
            &[Mean],
        ),
        (
            "exponents counted from one too many",
            FULL,
            |n, rng| ms(rng.random_range(1..=ceiling(n + 1))),
            &[OverCeiling],
        ),
    ];
    for (mistake, range, wait, expected) in cases {
        let found = found(range, |seed| {
            let mut rng = rng(seed);
            (1..).map(move |n| wait(n, &mut rng))
        });
        assert!(found.is_superset(&expected.iter().copied().collect()), "{mistake}: {found:?}");
    }
}

#[test]
fn additive_jitter_over_the_cap_as_backon_1_6_has_it() {
    // Its documentation says so: jitter adds up to the delay itself, after `max_delay`.
    let found = found(FULL, |seed| {
        let builder = ExponentialBuilder::default().without_max_times().with_jitter().with_jitter_seed(seed);
        builder.with_min_delay(ms(BASE)).with_max_delay(ms(CAP)).build()
    });
    assert!(found.contains(&Mistake::OverCeiling), "{found:?}");
}

#[test]
fn cap_after_jitter_in_the_published_decorrelated_form() {
    let found = found(
        |_, previous| (BASE, CAP.min(3 * previous.unwrap_or(BASE))),
        |seed| {
            let mut rng = rng(seed);
            let next = move |last: &u64| Some(CAP.min(rng.random_range(BASE..=3 * last)));
            std::iter::successors(Some(BASE), next).skip(1).map(ms)
        },
    );
    assert!(found.contains(&Mistake::PiledUp), "{found:?}");
}

#[test]
fn iterators_that_share_draws_are_caught() {
    let same = found(FULL, |_| full(rng(7)));
    assert!(same.is_superset(&[Mistake::Correlated, Mistake::Inert].into()), "{same:?}");
    let one_draw_apart = found(FULL, |seed| {
        let mut rng = rng(7);
        (&mut rng).random_iter::<u64>().take(seed as usize).for_each(drop);
        full(rng)
    });
    assert_eq!(one_draw_apart, [Mistake::Correlated].into());
    let every_second_a_clone = found(FULL, |seed| full(rng(seed / 2)));
    assert_eq!(every_second_a_clone, [Mistake::Correlated].into());
    let one_draw_for_all_waits = found(FULL, |seed| {
        let draw: f64 = rng(seed).random();
        (1..).map(move |n| ms((draw * ceiling(n) as f64).ceil() as u64))
    });
    assert_eq!(one_draw_for_all_waits, [Mistake::Correlated].into());
}
