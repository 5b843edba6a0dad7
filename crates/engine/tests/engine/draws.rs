use std::collections::HashSet;

use comeback_engine::{Jitter, Policy, Record};

use crate::support::*;

/// The delay drawn for a message of the event `origin` whose retry `n` comes next.
fn drawn(policy: &Policy, message_id: &str, origin: &str, n: u64) -> u64 {
    let body = match n {
        1 => replaced(&body("7"), "r-1", origin),
        n => replaced(&body(&enveloped(n - 1, "7")), "r-0", origin),
    };
    let record = Record { message_id: message_id.into(), ..record(body) };
    match decided(&record, policy, SENT) {
        Seen::Defer(seconds) => seconds,
        other => panic!("{other:?}"),
    }
}

fn jittered(jitter: Jitter) -> Policy {
    policy(|settings| {
        settings.jitter = jitter;
        settings.max_age = 14 * 86_400;
    })
}

/// Uniform over {low … high}: every value comes, none outside, the mean within 4 standard errors.
fn assert_uniform(draws: &[u64], low: u64, high: u64) {
    let distinct: HashSet<u64> = draws.iter().copied().collect();
    assert_eq!(distinct, (low..=high).collect());
    let width = (high - low + 1) as f64;
    let standard_error = ((width * width - 1.0) / 12.0 / draws.len() as f64).sqrt();
    let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
    let expected = (low + high) as f64 / 2.0;
    assert!((mean - expected).abs() <= 4.0 * standard_error, "mean {mean}, not {expected}");
}

#[test]
fn full_jitter_spreads_messages_over_one_to_the_ceiling() {
    let policy = jittered(Jitter::Full);
    for (n, ceiling) in [(1, 1), (2, 2), (5, 16), (8, 128)] {
        let draws: Vec<u64> = (0..10_000).map(|id| drawn(&policy, &format!("m-{id}"), "r-1", n)).collect();
        assert_uniform(&draws, 1, ceiling);
    }
}

#[test]
fn the_cap_comes_before_the_jitter() {
    let policy = policy(|settings| {
        settings.jitter = Jitter::Full;
        settings.max_backoff = 100;
    });
    let draws: Vec<u64> = (0..10_000).map(|id| drawn(&policy, &format!("m-{id}"), "r-1", 12)).collect();
    assert_uniform(&draws, 1, 100);
}

#[test]
fn equal_jitter_spreads_messages_over_the_upper_half() {
    let policy = jittered(Jitter::Equal);
    let draws: Vec<u64> = (0..10_000).map(|id| drawn(&policy, &format!("m-{id}"), "r-1", 8)).collect();
    assert_uniform(&draws, 64, 128);
}

#[test]
fn each_retry_of_one_message_id_is_drawn_apart() {
    let policy = jittered(Jitter::Full);
    let draws: HashSet<u64> = (17..67).map(|n| drawn(&policy, "m-1", "r-1", n)).collect();
    assert!(draws.len() > 45, "50 draws of 43,170 values: {draws:?}");
}

#[test]
fn decorrelated_jitter_is_one_chain_an_event_whatever_its_messages() {
    let policy = jittered(Jitter::Decorrelated);
    for event in 0..200 {
        let origin = format!("e-{event}");
        let chain: Vec<u64> =
            (1..=12).map(|n| drawn(&policy, &format!("m-{event}-{n}"), &origin, n)).collect();
        let mut previous = 1;
        for &delay in &chain {
            assert!((1..=43_170.min(3 * previous)).contains(&delay), "{chain:?}");
            previous = delay;
        }
    }
    let starts: Vec<u64> = (0..5_000).map(|event| drawn(&policy, "m-1", &format!("e-{event}"), 1)).collect();
    assert_uniform(&starts, 1, 3);
}

/// Events in flight are drawn for by these seeds: another hash or generator would move their due
/// times under them at an update.
#[test]
fn draws_are_pinned() {
    let draws = |jitter| [1, 8, 17, 30].map(|n| drawn(&jittered(jitter), "m-1", "r-1", n));
    assert_eq!(draws(Jitter::Full), [1, 6, 13451, 21320]);
    assert_eq!(draws(Jitter::Equal), [1, 66, 28310, 32245]);
    assert_eq!(draws(Jitter::Decorrelated), [1, 127, 209, 184]);
}
