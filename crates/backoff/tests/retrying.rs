//! `retry` under tokio's paused clock.

use std::cell::Cell;
use std::error::Error as _;
use std::io::{Error, ErrorKind};
use std::time::{Duration, SystemTime};

use comeback_backoff::{
    RetryAfter, RetryError, Strategy, is_transient_io, is_transient_status, ladder, retry,
};
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
    assert_eq!((result.unwrap(), calls.get(), took), (1, 1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn waits_once_per_failure() {
    let calls = Cell::new(0);
    let delays = [MS * 50, MS * 70, MS * 1_000];
    let work = retry(delays, is_transient_io, || flaky(&calls, 2, ErrorKind::TimedOut)).sleeping(sleep);
    let (result, took) = timed(work).await;
    assert_eq!((result.unwrap(), took), (3, MS * 120));
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
    let RetryError { error, attempts, waited } = result.unwrap_err();
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
        let kind = if calls.get() == 1 { ErrorKind::ConnectionAborted } else { ErrorKind::TimedOut };
        flaky(&calls, u64::MAX, kind)
    };
    let work = retry([MS * 50; 9], is_transient_io, operation).sleeping(sleep);
    let RetryError { error, attempts, waited } = work.await.unwrap_err();
    assert_eq!((error.kind(), attempts, waited), (ErrorKind::ConnectionAborted, 2, MS * 50));
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
    assert_eq!(tokio::spawn(work).await.unwrap(), Ok(5));
}

/// What an HTTP client would report.
#[derive(Debug)]
struct Refused {
    status: u16,
    retry_after: Option<&'static str>,
}

/// How long a 503 with this header waits, its own delay being 2 s and the longest 30 s.
async fn wait_for(retry_after: Option<&'static str>) -> Duration {
    // 7 s before 06 Nov 1994 08:49:37 GMT, RFC 9110's example.
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
    let operation = async || Err::<(), _>(Refused { status: 503, retry_after });
    let work = retry([MS * 2_000], |error: &Refused| is_transient_status(error.status), operation)
        .hinted(MS * 30_000, |error| Some(error.retry_after?.parse::<RetryAfter>().ok()?.wait(now)))
        .sleeping(sleep);
    let (result, took) = timed(work).await;
    assert!(result.is_err_and(|refused| (refused.attempts, refused.waited) == (2, took)));
    took
}

#[tokio::test(start_paused = true)]
async fn a_hint_lengthens_a_wait_but_never_shortens_it_and_is_bounded() {
    assert_eq!(wait_for(None).await, MS * 2_000);
    assert_eq!(wait_for(Some("5")).await, MS * 5_000);
    assert_eq!(wait_for(Some("1")).await, MS * 2_000);
    assert_eq!(wait_for(Some("0")).await, MS * 2_000);
    assert_eq!(wait_for(Some("3600")).await, MS * 30_000);
    assert_eq!(wait_for(Some("99999999999999999999999")).await, MS * 30_000);
    assert_eq!(wait_for(Some("Sun, 06 Nov 1994 08:49:37 GMT")).await, MS * 7_000);
    assert_eq!(wait_for(Some("Sun, 06 Nov 1994 08:49:20 GMT")).await, MS * 2_000);
    assert_eq!(wait_for(Some("whenever")).await, MS * 2_000);
}

#[tokio::test(start_paused = true)]
async fn the_longest_wait_bounds_the_delays_too() {
    let bounded = retry([MS * 500, MS * 5_000], |_| true, busy).hinted(MS * 1_000, |_| None);
    assert_eq!(bounded.sleeping(sleep).await.unwrap_err().waited, MS * 1_500);
}

#[tokio::test(start_paused = true)]
async fn a_hint_makes_no_retry_of_its_own() {
    let calls = Cell::new(0);
    let operation = || flaky(&calls, 3, ErrorKind::TimedOut);
    let none = retry([], |_| true, operation).hinted(MS * 1_000, |_| Some(MS)).sleeping(sleep).await;
    assert_eq!(none.unwrap_err().attempts, 1);
    let refused = retry([MS; 9], |_| false, operation).hinted(MS * 1_000, |_| Some(MS)).sleeping(sleep).await;
    assert_eq!(refused.unwrap_err().attempts, 1);
}

#[test]
fn the_error_says_how_it_was_given_up_and_leads_to_its_source() {
    let error = RetryError { error: Error::from(ErrorKind::TimedOut), attempts: 4, waited: MS * 1_350 };
    assert_eq!(error.to_string(), "gave up after 4 calls and 1.35s of waiting");
    assert_eq!(error.source().unwrap().to_string(), "timed out");
    let at_once = RetryError { error: "busy", attempts: 1, waited: Duration::ZERO };
    assert_eq!(at_once.to_string(), "gave up after 1 call and 0ns of waiting");
}
