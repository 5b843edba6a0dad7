//! The five most common uses of comeback-backoff. The last one needs the feature `retry-after`.

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use comeback_backoff::{Backoff, Hint, is_transient_io, is_transient_status, retry, retry_blocking, retry_mut};
use tokio::time::{Instant, sleep};

const MS: Duration = Duration::from_millis(1);

/// A service that fails twice.
struct Service(Cell<u64>);

impl Service {
    const fn new() -> Self {
        Self(Cell::new(0))
    }

    fn call<E>(&self, error: E) -> Result<u64, E> {
        self.0.set(self.0.get() + 1);
        if self.0.get() < 3 { Err(error) } else { Ok(self.0.get()) }
    }
}

/// Retries an async operation, and returns its error with `?` as an `anyhow::Error`.
#[tokio::test(start_paused = true)]
async fn an_async_operation() -> anyhow::Result<()> {
    let service = Service::new();
    let fetch = async || service.call("busy").map_err(anyhow::Error::msg);
    let calls = retry(fetch, Backoff::default()).sleep(sleep).await.context("fetches")?;
    assert_eq!(calls, 3);
    Ok(())
}

/// Retries only transient errors, in a function that returns `io::Result`.
#[tokio::test(start_paused = true)]
async fn only_transient_errors() -> io::Result<()> {
    let backoff = Backoff::exponential(50 * MS, 2_000 * MS).expect("valid settings").with_retries(5);
    let service = Service::new();
    let read = async || service.call(()).map_err(|()| io::ErrorKind::ConnectionReset.into());
    assert_eq!(retry(read, &backoff).when(is_transient_io).sleep(sleep).await?, 3);
    let missing = async || Err::<(), _>(io::Error::from(io::ErrorKind::NotFound));
    let mut calls = 0;
    let notified = retry(missing, &backoff).when(is_transient_io).notify(|_| calls += 1);
    assert!(notified.sleep(sleep).await.is_err() && calls == 1);
    Ok(())
}

/// Retries a blocking operation, in a function that returns `Box<dyn Error>`.
#[test]
fn a_blocking_operation() -> Result<(), Box<dyn Error>> {
    let service = Service::new();
    let calls = retry_blocking(|| service.call("busy"), [MS; 3]).sleep_blocking(std::thread::sleep)?;
    assert_eq!(calls, 3);
    Ok(())
}

/// In a spawned task, retries an operation that borrows its connection mutably.
#[tokio::test(start_paused = true)]
async fn an_operation_that_changes_what_it_borrows() -> Result<(), String> {
    let mut connection = Vec::new();
    let send = async move || {
        connection.push("data");
        tokio::task::yield_now().await;
        if connection.len() < 3 { Err("busy".to_owned()) } else { Ok(connection.len()) }
    };
    let sent = tokio::spawn(retry_mut(send, Backoff::default()).sleep_mut(sleep)).await.expect("no panic")?;
    assert_eq!(sent, 3);
    Ok(())
}

/// Waits for as long as the server requests with `Retry-After`.
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
    let got = retry(get, [MS; 3]).when(|refused| is_transient_status(refused.0));
    assert!(got.hint(hint).sleep(sleep).await.is_ok());
    assert!((7.0..=7.8).contains(&start.elapsed().as_secs_f64()), "{:?}", start.elapsed());
}
