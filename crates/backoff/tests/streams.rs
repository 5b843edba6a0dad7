//! Each iterator has a stream of its own, set by the seed and the order of building.

use std::collections::HashSet;
use std::time::Duration;

use backon::BackoffBuilder;
use comeback_backoff::{Delays, Strategy, Streams};

fn strategy() -> Strategy {
    Strategy::constant(Duration::from_secs(1_000_000)).retries(4)
}

fn waits(delays: Delays) -> Vec<Duration> {
    delays.collect()
}

#[test]
fn no_two_of_many_seeds_and_streams_are_alike() {
    let mut seen = HashSet::new();
    for seed in 0..100 {
        let streams = strategy().seeded(seed).unwrap();
        for stream in 0..100 {
            assert!(seen.insert(waits(streams.delays())), "stream {stream} of seed {seed}");
        }
    }
    // Nor is one a shifted copy of another.
    let first_waits: HashSet<Duration> = seen.iter().flatten().copied().collect();
    assert_eq!(first_waits.len(), 100 * 100 * 4 - repeats(&seen));
}

/// Waits that repeat by chance: of 40,000 draws among 10⁹, fewer than ten.
fn repeats(seen: &HashSet<Vec<Duration>>) -> usize {
    let mut all: Vec<Duration> = seen.iter().flatten().copied().collect();
    all.sort();
    let repeats = all.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(repeats < 10, "{repeats} waits repeat");
    repeats
}

#[test]
fn the_same_seed_and_order_give_the_same_waits() {
    let of = |streams: Streams| [waits(streams.delays()), waits(streams.delays()), waits(streams.delays())];
    assert_eq!(of(strategy().seeded(42).unwrap()), of(strategy().seeded(42).unwrap()));
}

#[test]
fn clones_and_every_way_of_building_number_their_iterators_together() {
    let streams = strategy().seeded(7).unwrap();
    let clone = streams.clone();
    let built = [
        waits(clone.delays()),
        waits(streams.delays()),
        waits((&streams).build()),
        waits((&clone).into_iter()),
        waits(streams.clone().build()),
        waits(clone.into_iter()),
    ];
    let again = strategy().seeded(7).unwrap();
    assert_eq!(built.to_vec(), (0..6).map(|_| waits(again.delays())).collect::<Vec<_>>());
    assert_eq!(built.iter().collect::<HashSet<_>>().len(), 6);
}

/// Figures to keep: a release that changed them would change every seeded user's waits.
#[test]
fn the_waits_of_a_seed_stay() {
    let streams = Strategy::exponential(Duration::from_millis(50), Duration::from_secs(2))
        .retries(8)
        .seeded(7)
        .unwrap();
    let millis = |delays: Delays| delays.map(|delay| delay.as_millis()).collect::<Vec<_>>();
    assert_eq!(millis(streams.delays()), [44, 79, 128, 346, 576, 74, 1569, 48]);
    assert_eq!(millis(streams.delays()), [36, 50, 72, 396, 560, 583, 1637, 998]);
}
