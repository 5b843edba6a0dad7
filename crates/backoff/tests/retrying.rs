//! `retry` under tokio's paused clock, and `retry_blocking`.

use std::cell::Cell;
use std::io::{Error, ErrorKind};
use std::time::Duration;

use comeback_backoff::{RetryError, Strategy, is_transient_io, ladder, retry, retry_blocking, retry_mut};
use tokio::time::{Instant, sleep};

const MS: Duration = Duration::from_millis(1);

/// Fails so often with this kind, then succeeds; counts its calls.
async fn flaky(calls: &Cell<u64>, failures: u64, kind: ErrorKind) -> Result<u64, Error> {
    calls.set(calls.get() + 1);
    if calls.get() > failures { Ok(calls.get()) } else { Err(Error::from(kind)) }
}

async fn busy() -> Result<(), &'static str> {
    Err("busy")
}

async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let result = work.await;
    (result, Instant::now().duration_since(start))
}

#[tokio::test(start_paused = true)]
async fn success_at_once_waits_for_nothing() {
    let calls = Cell::new(0);
    let work = retry([MS * 50], is_transient_io, || flaky(&calls, 0, ErrorKind::TimedOut)).sleeping(sleep);
    let (result, took) = timed(work).await;
    let done = result.unwrap();
    assert_eq!((done.value, done.attempts, done.waited), (1, 1, Duration::ZERO));
    assert_eq!((calls.get(), took), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn waits_once_per_failure() {
    let calls = Cell::new(0);
    let delays = [MS * 50, MS * 70, MS * 1_000];
    let work = retry(delays, is_transient_io, || flaky(&calls, 2, ErrorKind::TimedOut)).sleeping(sleep);
    let (result, took) = timed(work).await;
    let done = result.unwrap();
    assert_eq!((done.value, done.attempts, done.waited, took), (3, 3, MS * 120, MS * 120));
}

#[tokio::test(start_paused = true)]
async fn one_call_more_than_delays_then_the_last_error() {
    let calls = Cell::new(0);
    let operation = || {
        let kind = if calls.get() == 3 { ErrorKind::ConnectionReset } else { ErrorKind::TimedOut };
        flaky(&calls, u64::MAX, kind)
    };
    let work = retry([MS * 50, MS * 50, MS * 100], is_transient_io, operation).sleeping(sleep);
    let (result, took) = timed(work).await;
    let RetryError { error, attempts, waited, .. } = result.unwrap_err();
    assert_eq!((error.kind(), attempts, waited), (ErrorKind::ConnectionReset, 4, MS * 200));
    assert_eq!((calls.get(), took), (4, waited));
}

#[tokio::test(start_paused = true)]
async fn no_delays_is_one_call() {
    let calls = Cell::new(0);
    let work = retry([], is_transient_io, || flaky(&calls, u64::MAX, ErrorKind::TimedOut)).sleeping(sleep);
    let RetryError { attempts, waited, .. } = work.await.unwrap_err();
    assert_eq!((attempts, waited, calls.get()), (1, Duration::ZERO, 1));
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_not_retriable_ends_it_whenever_it_comes() {
    let calls = Cell::new(0);
    let operation = || {
        let kind = if calls.get() == 1 { ErrorKind::PermissionDenied } else { ErrorKind::TimedOut };
        flaky(&calls, u64::MAX, kind)
    };
    let work = retry([MS * 50; 9], is_transient_io, operation).sleeping(sleep);
    let RetryError { error, attempts, waited, .. } = work.await.unwrap_err();
    assert_eq!((error.kind(), attempts, waited), (ErrorKind::PermissionDenied, 2, MS * 50));
}

#[tokio::test(start_paused = true)]
async fn strategies_and_ladders_feed_it() {
    ladder! { Rungs: 50ms, 100ms }
    let climbed = retry(Rungs::ceilings(), |_| true, busy).sleeping(sleep).await.unwrap_err();
    assert_eq!((climbed.attempts, climbed.waited), (3, Rungs::LONGEST_TOTAL_WAIT));

    let streams = Strategy::exponential(MS * 50, MS * 200).retries(6).seeded(7).unwrap();
    let expected = streams.clone().delays().sum::<Duration>();
    let twin = Strategy::exponential(MS * 50, MS * 200).retries(6).seeded(7).unwrap();
    let (result, took) = timed(retry(&twin, |_| true, busy).sleeping(sleep)).await;
    assert_eq!((result.unwrap_err().waited, took), (expected, expected));
}

#[tokio::test(start_paused = true)]
async fn it_can_be_spawned() {
    let work = retry([MS], |_: &&str| true, async || Ok::<_, &str>(5)).sleeping(sleep);
    assert_eq!(tokio::spawn(work).await.unwrap().unwrap().value, 5);

    let kept = String::from("text");
    let work = tokio::spawn(async move {
        let borrowing = async || if kept.is_empty() { Err("empty") } else { Ok(kept.len()) };
        retry([MS], |_| true, borrowing).sleeping(sleep).await
    });
    assert_eq!(work.await.unwrap().unwrap().value, 4);

    let mut log = Vec::new();
    let lending = async move || {
        log.push("called");
        tokio::task::yield_now().await;
        if log.len() < 3 { Err("busy") } else { Ok(log.len()) }
    };
    let work =
        retry_mut([MS; 9], |_| true, lending).notify(|_, _| {}).max_elapsed(MS * 9, || MS).sleeping(sleep);
    assert_eq!(tokio::spawn(work).await.unwrap().unwrap().value, 3);
}

/// As in a library that takes its caller's operation.
#[tokio::test(start_paused = true)]
async fn it_can_be_spawned_where_the_operation_is_generic() {
    fn spawn<Op, Fut>(operation: Op) -> tokio::task::JoinHandle<Result<u64, &'static str>>
    where
        Op: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<u64, &'static str>> + Send,
    {
        tokio::spawn(async move {
            let done = retry([MS; 3], |_| true, operation).sleeping(sleep).await;
            done.map(|done| done.attempts).map_err(|given_up| given_up.error)
        })
    }
    assert_eq!(spawn(|| std::future::ready(Ok(1))).await.unwrap(), Ok(1));
    assert_eq!(spawn(async || Err("busy")).await.unwrap(), Err("busy"));
}

#[tokio::test(start_paused = true)]
async fn operations_may_change_what_they_borrow() {
    let mut connection = String::new();
    let operation = async || {
        connection.push('.');
        tokio::task::yield_now().await;
        if connection.len() < 3 { Err("busy") } else { Ok(connection.len()) }
    };
    let done = retry_mut([MS; 5], |_| true, operation).sleeping(sleep).await.unwrap();
    assert_eq!((done.value, done.attempts, connection.as_str()), (3, 3, "..."));
}

#[tokio::test(start_paused = true)]
async fn delays_may_stay_on_one_thread() {
    let local = std::rc::Rc::new(MS);
    let delays = (0..2).map(|_| *local);
    assert_eq!(retry(delays, |_| true, busy).sleeping(sleep).await.unwrap_err().attempts, 3);
}

#[test]
fn blocking_is_the_same_on_this_thread() {
    let (mut calls, mut slept) = (0, Vec::new());
    let read = || {
        calls += 1;
        if calls < 3 { Err(Error::from(ErrorKind::UnexpectedEof)) } else { Ok(calls) }
    };
    let done =
        retry_blocking([MS * 5, MS * 7, MS * 9], is_transient_io, read).blocking(|wait| slept.push(wait));
    let done = done.unwrap();
    assert_eq!((done.value, done.attempts, done.waited), (3, 3, MS * 12));
    assert_eq!(slept, [MS * 5, MS * 7]);

    let denied = || Err::<(), _>(Error::from(ErrorKind::PermissionDenied));
    let error = retry_blocking([MS; 9], is_transient_io, denied).blocking(|_| unreachable!("no retry"));
    assert_eq!(error.unwrap_err().attempts, 1);
}
