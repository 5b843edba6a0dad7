//! `retry` and its options under tokio's paused clock, and `retry_blocking`.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use comeback_backoff::{Hint, RetryError, ladder, retry, retry_blocking, retry_mut};
use tokio::time::{Instant, sleep};

const MS: Duration = Duration::from_millis(1);

async fn busy() -> Result<(), &'static str> {
    Err("busy")
}

async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let result = work.await;
    (result, Instant::now().duration_since(start))
}

/// An operation whose nth call has this result, with the delays 50, 70 and 1,000 ms: its end, the calls that it made and
/// the time that it took.
async fn retried(results: &[Result<u64, &'static str>]) -> (Result<u64, &'static str>, u64, Duration) {
    let calls = Cell::new(0);
    let operation = async || {
        calls.set(calls.get() + 1);
        results[calls.get() as usize - 1]
    };
    let work = retry(operation, [50, 70, 1_000].map(Duration::from_millis)).when(|error| *error != "denied");
    let (end, took) = timed(work.sleep(sleep)).await;
    let (result, attempts, waited) = match end {
        Ok(done) => (Ok(done.value), done.attempts, done.waited),
        Err(RetryError { error, attempts, waited, .. }) => (Err(error), attempts, waited),
    };
    assert_eq!((attempts, waited), (calls.get(), took));
    (result, attempts, took)
}

#[tokio::test(start_paused = true)]
async fn waits_once_per_failure_and_ends_with_the_last_result() {
    assert_eq!(retried(&[Ok(1)]).await, (Ok(1), 1, Duration::ZERO));
    assert_eq!(retried(&[Err("busy"), Err("busy"), Ok(3)]).await, (Ok(3), 3, MS * 120));
    let failing = [Err("busy"), Err("busy"), Err("busy"), Err("reset")];
    assert_eq!(retried(&failing).await, (Err("reset"), 4, MS * 1_120));
    assert_eq!(retried(&[Err("denied")]).await, (Err("denied"), 1, Duration::ZERO));
    assert_eq!(retried(&[Err("busy"), Err("denied")]).await, (Err("denied"), 2, MS * 50));
}

#[tokio::test(start_paused = true)]
async fn delays_are_anything_that_yields_durations() {
    ladder! { Rungs: 50ms, 100ms }
    let climbed = retry(busy, Rungs::ceilings()).sleep(sleep).await.unwrap_err();
    assert_eq!((climbed.attempts, climbed.waited), (3, Rungs::LONGEST_TOTAL_WAIT));
    let backoff = Rungs::backoff();
    assert_eq!(retry(busy, backoff.seeded(7)).sleep(sleep).await.unwrap_err().waited, MS * 150);
    // On one thread only.
    let local = std::rc::Rc::new(MS);
    assert_eq!(retry(busy, (0..2).map(|_| *local)).sleep(sleep).await.unwrap_err().attempts, 3);
}

#[tokio::test(start_paused = true)]
async fn it_can_be_spawned() {
    let work = retry(async || Ok::<_, &str>(5), [MS]).sleep(sleep);
    assert_eq!(tokio::spawn(work).await.unwrap().unwrap().value, 5);

    let kept = String::from("text");
    let work = tokio::spawn(async move {
        let borrowing = async || if kept.is_empty() { Err("empty") } else { Ok(kept.len()) };
        retry(borrowing, [MS]).sleep(sleep).await
    });
    assert_eq!(work.await.unwrap().unwrap().value, 4);

    let mut log = Vec::new();
    let lending = async move || {
        log.push("called");
        tokio::task::yield_now().await;
        if log.len() < 3 { Err("busy") } else { Ok(log.len()) }
    };
    let work = retry_mut(lending, [MS; 9]).notify(|_, _| {}).max_elapsed(MS * 9, || MS).sleep_mut(sleep);
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
            let done = retry(operation, [MS; 3]).when(|_| true).sleep(sleep).await;
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
    let done = retry_mut(operation, [MS; 5]).sleep_mut(sleep).await.unwrap();
    assert_eq!((done.value, done.attempts, connection.as_str()), (3, 3, "..."));
}

#[tokio::test(start_paused = true)]
async fn a_hint_lengthens_a_wait_or_ends_the_retry_but_never_shortens_it() {
    let up_to = Some(MS * 30);
    for (hint, longest, waited) in [
        (None, up_to, Some(2)),
        (Some(5), None, Some(5)),
        (Some(1), None, Some(2)),
        (Some(30), up_to, Some(30)),
        (Some(31), up_to, None),
        (Some(3_600), None, Some(3_600)),
    ] {
        let hint = |_: &&str| {
            let hint = Hint::new(MS * hint?);
            Some(longest.map_or(hint, |longest| hint.up_to(longest)))
        };
        let (end, took) = timed(retry(busy, [MS * 2]).hint(hint).sleep(sleep)).await;
        assert_eq!(end.unwrap_err().attempts, if waited.is_some() { 2 } else { 1 });
        assert_eq!(took, MS * waited.unwrap_or(0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_makes_no_retry_of_its_own() {
    let hint = |_: &&str| Some(Hint::new(MS));
    assert_eq!(retry(busy, []).hint(hint).sleep(sleep).await.unwrap_err().attempts, 1);
    let refused = retry(busy, [MS; 9]).when(|_| false).hint(hint).sleep(sleep).await;
    assert_eq!(refused.unwrap_err().attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn every_wait_and_nothing_else_is_notified() {
    let notices = RefCell::new(Vec::new());
    let notify = |error: &&'static str, wait| notices.borrow_mut().push((*error, wait));
    let delays = [MS * 5, MS * 7];
    retry(busy, delays).notify(notify).sleep(sleep).await.unwrap_err();
    assert_eq!(notices.take(), [("busy", MS * 5), ("busy", MS * 7)]);
    // Whichever option comes first.
    retry(busy, delays).notify(notify).when(|_| false).sleep(sleep).await.unwrap_err();
    retry(busy, delays).notify(notify).max_elapsed(MS, || MS).sleep(sleep).await.unwrap_err();
    assert_eq!(notices.take(), []);
}

#[tokio::test(start_paused = true)]
async fn no_call_starts_past_the_limit_and_no_wait_is_served_in_vain() {
    let start = Instant::now();
    let slow = async || {
        sleep(MS * 10).await;
        Err::<(), _>("busy")
    };
    let elapsed = || Instant::now().duration_since(start);
    // Calls of 10 ms and waits of 10 ms: at 0, 20, 40 and 60 ms. The wait that would end at 80 is not begun.
    let work = retry(slow, [MS * 10; 99]).max_elapsed(MS * 79, elapsed);
    let error = work.sleep(sleep).await.unwrap_err();
    assert_eq!((error.attempts, error.waited, elapsed()), (4, MS * 30, MS * 70));
}

#[tokio::test(start_paused = true)]
async fn a_wait_may_end_at_the_limit_which_bounds_hints_too() {
    let limited = |delay, limit, elapsed| retry(busy, [delay]).max_elapsed(limit, move || elapsed);
    let exactly = limited(MS * 10, MS * 10, Duration::ZERO).sleep(sleep).await;
    assert_eq!(exactly.unwrap_err().attempts, 2);
    let hinted =
        limited(MS * 10, MS * 10, Duration::ZERO).hint(|_| Some(Hint::new(MS * 11))).sleep(sleep).await;
    assert_eq!(hinted.unwrap_err().attempts, 1);
    let overflowing = limited(Duration::MAX, MS, Duration::MAX).sleep(sleep).await;
    assert_eq!(overflowing.unwrap_err().attempts, 1);
}

#[test]
fn blocking_is_the_same_on_this_thread() {
    let (mut calls, mut notices, mut slept) = (0, 0, Vec::new());
    let read = || {
        calls += 1;
        if calls < 4 { Err("busy") } else { Ok(calls) }
    };
    let done = retry_blocking(read, [MS * 5, MS * 70, MS * 9])
        .when(|error| *error == "busy")
        .hint(|_| Some(Hint::new(MS * 40)))
        .max_elapsed(MS * 100, || MS * 30)
        .notify(|_, _| notices += 1)
        .sleep_blocking(|wait| slept.push(wait))
        .unwrap();
    assert_eq!((done.value, done.attempts, done.waited), (4, 4, MS * 150));
    assert_eq!((notices, slept), (3, vec![MS * 40, MS * 70, MS * 40]));
}
