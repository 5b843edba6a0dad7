//! Compares the retry loop with backon's, for an operation that fails three times.
//!
//! `cargo bench -p comeback-backoff --bench retrying --config 'profile.bench.package."*".opt-level = 3'` runs it with
//! optimized dependencies.

use std::cell::Cell;
use std::future::ready;
use std::hint::black_box;
use std::time::Duration;

use backon::{BlockingRetryable, Retryable};
use comeback_backoff::{retry, retry_blocking, retry_mut};
use criterion::Criterion;

const FAILURES: u64 = 3;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without drivers");
    criterion.bench_function("async, ours", |bencher| {
        bencher.iter(|| {
            let calls = Cell::new(0);
            let work = retry(|| ready(flaky(&calls)), delays()).sleep(|_| ready(()));
            runtime.block_on(work)
        });
    });
    criterion.bench_function("async, ours, lending", |bencher| {
        bencher.iter(|| {
            let mut calls = 0;
            let operation = async || {
                calls += 1;
                if calls > black_box(FAILURES) { Ok(calls) } else { Err("busy") }
            };
            let work = retry_mut(operation, delays()).sleep_mut(|_| ready(()));
            runtime.block_on(work)
        });
    });
    criterion.bench_function("async, backon", |bencher| {
        bencher.iter(|| {
            let calls = Cell::new(0);
            runtime.block_on((|| ready(flaky(&calls))).retry(delays()).sleep(|_| ready(())))
        });
    });
    criterion.bench_function("blocking, ours", |bencher| {
        bencher.iter(|| {
            let calls = Cell::new(0);
            retry_blocking(|| flaky(&calls), delays()).sleep_blocking(|_| ())
        });
    });
    criterion.bench_function("blocking, backon", |bencher| {
        bencher.iter(|| {
            let calls = Cell::new(0);
            (|| flaky(&calls)).retry(delays()).sleep(|_| ()).call()
        });
    });
    criterion.final_summary();
}

fn delays() -> std::array::IntoIter<Duration, 4> {
    black_box([1, 2, 3, 4].map(Duration::from_millis)).into_iter()
}

fn flaky(calls: &Cell<u64>) -> Result<u64, &'static str> {
    calls.set(calls.get() + 1);
    if calls.get() > black_box(FAILURES) { Ok(calls.get()) } else { Err("busy") }
}
