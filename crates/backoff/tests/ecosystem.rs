//! Tests that the APIs of other libraries accept backoffs and delays.

#![expect(clippy::disallowed_methods, reason = "other libraries seed from the operating system")]

use std::time::Duration;

use backon::{BackoffBuilder, Retryable};
use comeback_backoff::{Backoff, Delays, Tally, ladder, retry};
use tokio::time::{Instant, sleep};

ladder! { Short: 10ms, 20ms, 30ms }

#[test]
fn bounds_are_met() {
    fn delays<T: backon::Backoff + Iterator<Item = Duration> + Clone + Send + Sync + Unpin + 'static>(_: T) {}
    fn shared<T: Clone + Send + Sync + Unpin + 'static>() {}
    fn builder<T: BackoffBuilder>(_: T) {}
    delays::<Delays>(Short::backoff().delays());
    delays(Short::ceilings());
    shared::<Backoff>();
    builder(Short::backoff());
    builder(Short::backoff().delays());
}

async fn busy() -> Result<(), &'static str> {
    Err("busy")
}

async fn assert_waits_60_ms(retry: impl Future<Output = Result<(), &'static str>>) {
    let start = Instant::now();
    assert_eq!(retry.await, Err("busy"));
    assert_eq!(Instant::now().duration_since(start), Duration::from_millis(60));
}

#[tokio::test(start_paused = true)]
async fn backon_retries_with_all_of_them() {
    assert_waits_60_ms(busy.retry(Short::backoff().delays()).sleep(sleep)).await;
    assert_waits_60_ms(busy.retry(Short::backoff()).sleep(sleep)).await;
    assert_waits_60_ms(busy.retry(&Short::backoff()).sleep(sleep)).await;
    assert_waits_60_ms(busy.retry(Short::ceilings()).sleep(sleep)).await;
}

/// A retry loop like tokio-retry's.
async fn retry_busy(delays: impl IntoIterator<Item = Duration>) -> Result<(), &'static str> {
    for delay in delays {
        if busy().await.is_ok() {
            return Ok(());
        }
        sleep(delay).await;
    }
    busy().await
}

#[tokio::test(start_paused = true)]
async fn any_loop_retries_with_all_of_them() {
    assert_waits_60_ms(retry_busy(Short::backoff().delays())).await;
    assert_waits_60_ms(retry_busy(Short::backoff())).await;
    assert_waits_60_ms(retry_busy(&Short::backoff())).await;
    assert_waits_60_ms(retry_busy(Short::ceilings())).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_takes_the_threads_generator() {
    let delays = Backoff::default().with_rng(rand::rng());
    let mut tally = Tally::default();
    assert_eq!(retry(busy, delays).tally(&mut tally).sleep(sleep).await, Err("busy"));
    assert!(tally.attempts == 4 && tally.waited <= Duration::from_secs(1 + 2 + 4));
}
