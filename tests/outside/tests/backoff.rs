//! Four uses of comeback-backoff.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use comeback_backoff::{Backoff, Hint, is_transient_status, retry, retry_blocking};
use tokio::time::Instant;

/// Fails so often, then works.
struct Flaky(Cell<u32>);

impl Flaky {
    fn call(&self) -> Result<&'static str, &'static str> {
        match self.0.get() {
            0 => Ok("done"),
            left => {
                self.0.set(left - 1);
                Err("busy")
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_async_operation() {
    let backoff = Backoff::exponential(Duration::from_millis(50), Duration::from_secs(2));
    let backoff = backoff.expect("valid settings").with_retries(5);
    let service = Flaky(Cell::new(3));
    let done = retry(async || service.call(), &backoff).sleep(tokio::time::sleep).await;
    let done = done.expect("it works in the end");
    assert_eq!((done.value, done.attempts), ("done", 4));
}

#[test]
fn a_blocking_operation() {
    let service = Flaky(Cell::new(9));
    let delays = [1, 2].map(Duration::from_millis);
    let error = retry_blocking(|| service.call(), delays).sleep_blocking(std::thread::sleep).unwrap_err();
    assert_eq!((error.error, error.attempts), ("busy", 3));
}

#[tokio::test(start_paused = true)]
async fn the_retry_after_of_a_response() {
    struct Refused(u16, &'static str);
    let hint = |refused: &Refused| {
        let hint = Hint::retry_after(refused.1, SystemTime::now()).ok()?;
        Some(hint.up_to(Duration::from_secs(60)).spread(&mut rand::rng()))
    };
    let (calls, start) = (Cell::new(0), Instant::now());
    let get = async || {
        calls.set(calls.get() + 1);
        if calls.get() == 1 { Err(Refused(503, "7")) } else { Ok("done") }
    };
    let delays = [Duration::from_millis(1); 3];
    let got = retry(get, delays).when(|refused| is_transient_status(refused.0));
    assert!(got.hint(hint).sleep(tokio::time::sleep).await.is_ok());
    assert!((7.0..=7.8).contains(&start.elapsed().as_secs_f64()), "{:?}", start.elapsed());
}

#[test]
fn an_iterator_for_a_loop_of_ones_own() {
    let backoff = Backoff::exponential(Duration::from_millis(100), Duration::from_secs(1));
    let service = Flaky(Cell::new(2));
    let mut waits = backoff.expect("valid settings").with_retries(4).seeded(7);
    let mut waited = 0;
    let done = loop {
        match service.call() {
            Ok(done) => break done,
            Err(error) => {
                let wait = waits.next().expect(error);
                assert!(!wait.is_zero() && wait <= Duration::from_secs(1));
                waited += 1;
            }
        }
    };
    assert_eq!((done, waited), ("done", 2));
}
