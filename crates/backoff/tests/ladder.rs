//! Tests of the macro `ladder!`.

use std::time::Duration;

use comeback_backoff::ladder;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

const MS: Duration = Duration::from_millis(1);

ladder! {
    /// A ladder may have a doc comment and a trailing comma.
    pub(crate) Sends: 100ms, 300ms, 1s, 2m,
}

ladder! { Single: 1h }

#[test]
fn figures_are_constants() {
    const { assert!(Sends::RUNGS == 4) };
    const { assert!(Sends::LONGEST_TOTAL_WAIT.as_millis() == 121_400) };
    assert_eq!((Single::RUNGS, Single::LONGEST_TOTAL_WAIT), (1, Duration::from_secs(3_600)));
}

#[test]
fn rungs_rise_and_the_top_reports_the_total() {
    let (first, rung) = Sends::start().climb();
    let (second, rung) = rung.climb();
    let (third, rung) = rung.climb();
    let (fourth, top) = rung.climb();
    let climbed = [first, second, third, fourth];
    assert_eq!(climbed, [MS * 100, MS * 300, MS * 1_000, MS * 120_000]);
    assert!(Sends::ceilings().eq(climbed) && Sends::backoff().seeded(7).eq(climbed));
    let given_up = top.give_up("busy");
    assert_eq!((given_up.error, given_up.attempts, given_up.waited), ("busy", 5, Sends::LONGEST_TOTAL_WAIT));
}

#[test]
fn giving_up_early_reports_time_waited() {
    assert_eq!(Sends::start().give_up("gone").to_string(), "gave up after 1 call and 0ns of waiting");
    let (_, rung) = Sends::start().climb();
    let (_, rung) = rung.climb();
    assert_eq!(rung.give_up("gone").to_string(), "gave up after 3 calls and 400ms of waiting");
}

#[test]
fn jittered_climb_equals_jittered_backoff() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let jittered = Sends::backoff().with_jitter(comeback_backoff::Jitter::Full).unwrap();
    let drawn: Vec<Duration> = jittered.with_rng(rng.clone()).collect();
    let (first, rung) = Sends::start().climb_jittered(&mut rng);
    let (second, rung) = rung.climb_jittered(&mut rng);
    let (third, rung) = rung.climb_jittered(&mut rng);
    let (fourth, top) = rung.climb_jittered(&mut rng);
    assert_eq!([first, second, third, fourth], *drawn);
    assert!(drawn.iter().zip(Sends::ceilings()).all(|(wait, ceiling)| MS <= *wait && *wait < ceiling));
    assert_eq!(top.give_up(()).waited, drawn.iter().sum());
}
