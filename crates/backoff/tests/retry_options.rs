//! Hints, notices and the limit of a retry, under tokio's paused clock.

use std::cell::{Cell, RefCell};
use std::time::{Duration, SystemTime};

use comeback_backoff::rand_core::SeedableRng;
use comeback_backoff::{
    Hint, RetryAfter, RetryError, Xoshiro256PlusPlus, is_transient_status, retry, retry_blocking,
};
use tokio::time::{Instant, sleep};

const MS: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(30);

async fn busy() -> Result<(), &'static str> {
    Err("busy")
}

/// What an HTTP client would report.
#[derive(Debug)]
struct Refused {
    status: u16,
    retry_after: Option<&'static str>,
}

impl Refused {
    /// 7 s before 06 Nov 1994 08:49:37 GMT, RFC 9110's example.
    fn wait(&self) -> Option<Duration> {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        Some(self.retry_after?.parse::<RetryAfter>().ok()?.wait(now))
    }
}

/// How long a 503 with this header is waited for, its own delay being 2 s; `None` if it is given up.
async fn waited_for(retry_after: Option<&'static str>, hint: fn(Duration) -> Hint) -> Option<Duration> {
    let (calls, start) = (Cell::new(0), Instant::now());
    let operation = async || {
        calls.set(calls.get() + 1);
        Err::<(), _>(Refused { status: 503, retry_after })
    };
    let work = retry([MS * 2_000], |error: &Refused| is_transient_status(error.status), operation)
        .hinted(|error| error.wait().map(hint));
    let RetryError { attempts, waited, .. } = work.sleeping(sleep).await.expect_err("every call fails");
    assert_eq!((attempts, waited), (calls.get(), Instant::now().duration_since(start)));
    (attempts == 2).then_some(waited)
}

#[tokio::test(start_paused = true)]
async fn a_hint_lengthens_a_wait_but_never_shortens_it() {
    let up_to = |wait| Hint::awaited_up_to(LONGEST, wait);
    for hint in [Hint::awaited, up_to] {
        for (header, wait) in [
            (None, 2),
            (Some("5"), 5),
            (Some("1"), 2),
            (Some("0"), 2),
            (Some("30"), 30),
            (Some("Sun, 06 Nov 1994 08:49:37 GMT"), 7),
            (Some("Sun, 06 Nov 1994 08:49:20 GMT"), 2),
            (Some("whenever"), 2),
        ] {
            assert_eq!(waited_for(header, hint).await, Some(Duration::from_secs(wait)), "{header:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_is_too_long_is_awaited_or_given_up_but_never_called_early() {
    let up_to = |wait| Hint::awaited_up_to(LONGEST, wait);
    assert_eq!(waited_for(Some("3600"), Hint::awaited).await, Some(Duration::from_secs(3_600)));
    assert_eq!(waited_for(Some("3600"), up_to).await, None);
    assert_eq!(waited_for(Some("31"), up_to).await, None);
    assert_eq!(waited_for(Some("99999999999999999999999"), up_to).await, None);
}

#[tokio::test(start_paused = true)]
async fn hints_can_be_spread() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let minute = Duration::from_secs(60);
    let waits = RefCell::new(Vec::new());
    let work = retry([MS; 20], |_| true, busy)
        .hinted(|_| Some(Hint::awaited(minute).spread(&mut rng)))
        .notify(|_, wait| waits.borrow_mut().push(wait));
    work.sleeping(sleep).await.expect_err("every call fails");
    let mut waits = waits.into_inner();
    assert!(waits.iter().all(|wait| (minute..=minute * 11 / 10).contains(wait)), "{waits:?}");
    waits.sort();
    waits.dedup();
    assert_eq!(waits.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_hint_makes_no_retry_of_its_own() {
    let hint = |_: &&str| Some(Hint::awaited(MS));
    let none = retry([], |_| true, busy).hinted(hint).sleeping(sleep).await;
    assert_eq!(none.unwrap_err().attempts, 1);
    let refused = retry([MS; 9], |_| false, busy).hinted(hint).sleeping(sleep).await;
    assert_eq!(refused.unwrap_err().attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn every_wait_and_nothing_else_is_notified() {
    let mut notices = Vec::new();
    let delays = [MS * 5, MS * 7];
    let work = retry(delays, |_| true, busy).notify(|error, wait| notices.push((*error, wait)));
    work.sleeping(sleep).await.expect_err("every call fails");
    assert_eq!(notices, [("busy", MS * 5), ("busy", MS * 7)]);
    let denied = retry(delays, |_| false, busy).notify(|_, _| unreachable!("no wait"));
    denied.sleeping(sleep).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn no_call_starts_past_the_limit_and_no_time_is_waited_for_nothing() {
    let start = Instant::now();
    let slow = async || {
        sleep(MS * 10).await;
        Err::<(), _>("busy")
    };
    let elapsed = || Instant::now().duration_since(start);
    // Calls of 10 ms and waits of 10 ms: at 0, 20, 40 and 60 ms. The wait that would end at 80 is not begun.
    let work = retry([MS * 10; 99], |_| true, slow).max_elapsed(MS * 79, elapsed);
    let error = work.sleeping(sleep).await.expect_err("every call fails");
    assert_eq!((error.attempts, error.waited, elapsed()), (4, MS * 30, MS * 70));
}

#[tokio::test(start_paused = true)]
async fn a_wait_may_end_at_the_limit_and_hints_are_bounded_by_it_too() {
    let exactly = retry([MS * 10], |_| true, busy).max_elapsed(MS * 10, || Duration::ZERO);
    assert_eq!(exactly.sleeping(sleep).await.unwrap_err().attempts, 2);
    let hinted = retry([MS * 10], |_| true, busy)
        .max_elapsed(MS * 10, || Duration::ZERO)
        .hinted(|_| Some(Hint::awaited(MS * 11)));
    assert_eq!(hinted.sleeping(sleep).await.unwrap_err().attempts, 1);
    let endless = retry([Duration::MAX], |_| true, busy).max_elapsed(LONGEST, || Duration::MAX);
    assert_eq!(endless.sleeping(sleep).await.unwrap_err().attempts, 1);
}

#[test]
fn a_blocking_retry_has_the_same_options() {
    let (mut notices, mut slept) = (0, Vec::new());
    let error = retry_blocking([MS; 9], |_| true, || Err::<(), _>("busy"))
        .hinted(|_| Some(Hint::awaited(MS * 40)))
        .max_elapsed(MS * 100, || MS * 60)
        .notify(|_, _| notices += 1)
        .blocking(|wait| slept.push(wait))
        .unwrap_err();
    assert_eq!((error.attempts, error.waited), (10, MS * 360));
    assert_eq!((notices, slept), (9, vec![MS * 40; 9]));
}
