//! Delays and their makers where other libraries ask for delays. Most of it need only compile; each is
//! run too.

use std::time::Duration;

use backon::{Backoff, BackoffBuilder, Retryable};
use comeback_backoff::{Delays, Jitter, Ladder, Rung, Strategy, Streams, Top, ladder};
use tokio::time::Instant;

ladder! { Short: 10ms, 20ms, 30ms }

fn streams() -> Streams {
    Strategy::list([10, 20, 30].map(Duration::from_millis))
        .jitter(Jitter::None)
        .seeded(7)
        .expect("a valid list")
}

#[test]
fn bounds_are_met() {
    fn delays<T: Iterator<Item = Duration> + Clone + Send + Sync + Unpin + 'static>() {}
    fn shared<T: Clone + Send + Sync + Unpin + 'static>() {}
    fn backoff<T: Backoff>(_: T) {}
    fn builder<T: BackoffBuilder>(_: T) {}
    fn ladder_delays(_: impl Iterator<Item = Duration> + Clone + Send + Sync + Unpin + 'static) {}
    delays::<Delays>();
    shared::<Streams>();
    shared::<Strategy>();
    backoff(streams().delays());
    builder(streams().delays());
    builder(streams());
    let streams = streams();
    builder::<&Streams>(&streams);
    ladder_delays(Short::ceilings());
    let _: Rung<10, Rung<20, Rung<30, Top>>> = Ladder::start();
}

async fn busy() -> Result<(), &'static str> {
    Err("busy")
}

/// Runs a retry of `busy` until it gives up.
async fn assert_waits_60_ms(retry: impl Future<Output = Result<(), &'static str>>) {
    let start = Instant::now();
    assert_eq!(retry.await, Err("busy"));
    assert_eq!(Instant::now().duration_since(start), Duration::from_millis(60));
}

#[tokio::test(start_paused = true)]
async fn backon_retries_with_all_of_them() {
    assert_waits_60_ms(busy.retry(streams().delays()).sleep(tokio::time::sleep)).await;
    assert_waits_60_ms(busy.retry(streams()).sleep(tokio::time::sleep)).await;
    assert_waits_60_ms(busy.retry(&streams()).sleep(tokio::time::sleep)).await;
    assert_waits_60_ms(busy.retry(Short::ceilings()).sleep(tokio::time::sleep)).await;
}

/// A loop that asks only for durations, as tokio-retry's does.
async fn retry_busy(delays: impl IntoIterator<Item = Duration>) -> Result<(), &'static str> {
    for delay in delays {
        if busy().await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(delay).await;
    }
    busy().await
}

#[tokio::test(start_paused = true)]
async fn any_loop_retries_with_all_of_them() {
    assert_waits_60_ms(retry_busy(streams().delays())).await;
    assert_waits_60_ms(retry_busy(streams())).await;
    assert_waits_60_ms(retry_busy(&streams())).await;
    assert_waits_60_ms(retry_busy(Short::ceilings())).await;
}
