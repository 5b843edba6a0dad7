//! Compares how long this crate and backon take to compute a delay.
//!
//! `cargo bench -p comeback-backoff --bench delays --config 'profile.bench.package."*".opt-level = 3'` runs it with
//! optimized dependencies.
//!
//! The two crates draw from different ranges, with different generators.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use comeback_backoff::{Backoff, Jitter};
use criterion::Criterion;
use criterion::measurement::{Measurement, WallTime};

const BASE: Duration = Duration::from_millis(50);
const CAP: Duration = Duration::from_secs(60);
const DELAYS: u64 = 20;

/// The shortest time per delay that each benchmark has measured, in nanoseconds.
type Shortest = RefCell<BTreeMap<&'static str, f64>>;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let shortest = Shortest::default();
    let backon = ExponentialBuilder::new().with_min_delay(BASE).with_max_delay(CAP).without_max_times();
    let backon_jittered = backon.with_jitter().with_jitter_seed(7);
    measure(&mut criterion, &shortest, "backon, no jitter", || backon.build());
    measure(&mut criterion, &shortest, "backon, additive jitter", || backon_jittered.build());
    for (name, jitter) in [
        ("ours, no jitter", Jitter::None),
        ("ours, full jitter", Jitter::Full),
        ("ours, equal jitter", Jitter::Equal),
        ("ours, decorrelated jitter", Jitter::Decorrelated),
    ] {
        let backoff = Backoff::exponential(BASE, CAP).and_then(|backoff| backoff.with_jitter(jitter));
        let backoff = backoff.expect("BUG: constants in order");
        measure(&mut criterion, &shortest, name, || backoff.seeded(7));
    }
    criterion.final_summary();
    print_ratios(&shortest.borrow());
}

/// Measures how long an iterator takes per delay, including the time to build the iterator.
fn measure<I: Iterator<Item = Duration>>(
    criterion: &mut Criterion,
    shortest: &Shortest,
    name: &'static str,
    build: impl Fn() -> I,
) {
    criterion.bench_function(name, |bencher| {
        bencher.iter_custom(|rounds| {
            let start = WallTime.start();
            for _ in 0..rounds {
                build().take(DELAYS as usize).for_each(|delay| {
                    black_box(delay);
                });
            }
            let took = WallTime.end(start);
            let nanos = took.as_nanos() as f64 / (rounds * DELAYS) as f64;
            let mut shortest = shortest.borrow_mut();
            let known = shortest.entry(name).or_insert(nanos);
            *known = known.min(nanos);
            took
        });
    });
}

fn print_ratios(shortest: &BTreeMap<&str, f64>) {
    println!("shortest time per delay, building its iterator included, and ratio to backon's:");
    for (name, nanos) in shortest {
        let counterpart =
            if name.ends_with("no jitter") { "backon, no jitter" } else { "backon, additive jitter" };
        if let Some(backon) = shortest.get(counterpart) {
            println!("{name:26} {nanos:8.1} ns {:8.2}", nanos / backon);
        }
    }
}
