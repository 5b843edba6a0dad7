//! Two uses of comeback-backoff, with a feature and without.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use comeback_backoff::{Backoff, Hint, is_transient_status, retry};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn an_async_operation() {
    let backoff = Backoff::exponential(Duration::from_millis(50), Duration::from_secs(2));
    let backoff = backoff.expect("valid settings").with_retries(5);
    let calls = Cell::new(0);
    let call = async || {
        calls.set(calls.get() + 1);
        if calls.get() < 4 { Err("busy") } else { Ok("done") }
    };
    let done = retry(call, &backoff).sleep(tokio::time::sleep).await;
    let done = done.expect("it works in the end");
    assert_eq!((done.value, done.attempts), ("done", 4));
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
