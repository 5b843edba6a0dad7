//! Tests of `retry` and its options, on tokio's paused clock, and tests of `retry_blocking`.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use comeback_backoff::{Hint, Tally, ladder, retry, retry_blocking, retry_mut};
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

/// Retries an operation that returns the next of `results` on each call.
async fn retried(results: &[Result<u64, &'static str>]) -> (Result<u64, &'static str>, u64, Duration) {
    let calls = Cell::new(0);
    let operation = async || {
        calls.set(calls.get() + 1);
        results[calls.get() as usize - 1]
    };
    let mut tally = Tally::default();
    let work = retry(operation, [50, 70, 1_000].map(Duration::from_millis)).when(|error| *error != "denied");
    let (result, took) = timed(work.tally(&mut tally).sleep(sleep)).await;
    assert_eq!((tally.attempts, tally.waited), (calls.get(), took));
    (result, tally.attempts, took)
}

#[tokio::test(start_paused = true)]
async fn waits_once_per_failure() {
    assert_eq!(retried(&[Ok(1)]).await, (Ok(1), 1, Duration::ZERO));
    assert_eq!(retried(&[Err("busy"), Err("busy"), Ok(3)]).await, (Ok(3), 3, MS * 120));
    let failing = [Err("busy"), Err("busy"), Err("busy"), Err("reset")];
    assert_eq!(retried(&failing).await, (Err("reset"), 4, MS * 1_120));
    assert_eq!(retried(&[Err("denied")]).await, (Err("denied"), 1, Duration::ZERO));
    assert_eq!(retried(&[Err("busy"), Err("denied")]).await, (Err("denied"), 2, MS * 50));
}

#[derive(Default)]
struct Busy(Cell<u64>);

impl Busy {
    async fn call(&self) -> Result<(), &'static str> {
        self.0.set(self.0.get() + 1);
        busy().await
    }
}

#[tokio::test(start_paused = true)]
async fn delays_are_anything_that_yields_durations() {
    ladder! { Rungs: 50ms, 100ms }
    let mut climbed = Tally::default();
    assert_eq!(retry(busy, Rungs::ceilings()).tally(&mut climbed).sleep(sleep).await, Err("busy"));
    assert_eq!((climbed.attempts, climbed.waited), (3, Rungs::LONGEST_TOTAL_WAIT));
    let backoff = Rungs::backoff();
    assert_eq!(timed(retry(busy, backoff.seeded(7)).sleep(sleep)).await.1, MS * 150);
    // These delays are not `Send`, and need not be, because this retry stays on one thread.
    let local = std::rc::Rc::new(MS);
    assert_eq!(timed(retry(busy, (0..2).map(|_| *local)).sleep(sleep)).await.1, MS * 2);
}

/// Each inner function returns a different common error type.
#[tokio::test(start_paused = true)]
async fn the_operations_own_error_comes_out() {
    async fn any() -> anyhow::Result<u64> {
        let made = retry(async || Err::<u64, _>(anyhow::anyhow!("busy")), [MS]).sleep(sleep).await?;
        Ok(made)
    }
    async fn boxed() -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
        let busy = async || Err::<u64, Box<dyn std::error::Error + Send + Sync>>("busy".into());
        let made = retry(busy, [MS]).sleep(sleep).await?;
        Ok(made)
    }
    async fn text() -> Result<u64, String> {
        let made = retry(async || Err::<u64, _>("busy".to_owned()), [MS]).sleep(sleep).await?;
        Ok(made)
    }
    async fn io() -> std::io::Result<u64> {
        retry(async || Err::<u64, _>(std::io::ErrorKind::TimedOut.into()), [MS]).sleep(sleep).await
    }
    assert_eq!(any().await.unwrap_err().to_string(), "busy");
    assert_eq!(boxed().await.unwrap_err().to_string(), "busy");
    assert_eq!(text().await.unwrap_err(), "busy");
    assert_eq!(io().await.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn it_can_be_spawned() {
    let work = retry(async || Ok::<_, &str>(5), [MS]).sleep(sleep);
    assert_eq!(tokio::spawn(work).await.unwrap(), Ok(5));

    let kept = String::from("text");
    let work = tokio::spawn(async move {
        let mut tally = Tally::default();
        let borrowing = async || if kept.is_empty() { Err("empty") } else { Ok(kept.len()) };
        let result = retry(borrowing, [MS]).tally(&mut tally).sleep(sleep).await;
        (result, tally.attempts)
    });
    assert_eq!(work.await.unwrap(), (Ok(4), 1));

    let mut log = Vec::new();
    let lending = async move || {
        log.push("called");
        tokio::task::yield_now().await;
        if log.len() < 3 { Err("busy") } else { Ok(log.len()) }
    };
    let work = retry_mut(lending, [MS; 9]).notify(|_| {}).max_elapsed(MS * 9, || MS).sleep_mut(sleep);
    assert_eq!(tokio::spawn(work).await.unwrap(), Ok(3));
}

/// The operation is generic, as in a library that retries its caller's operation.
#[tokio::test(start_paused = true)]
async fn it_can_be_spawned_where_the_operation_is_generic() {
    fn spawn<Op, Fut>(operation: Op) -> tokio::task::JoinHandle<Result<u64, &'static str>>
    where
        Op: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<u64, &'static str>> + Send,
    {
        tokio::spawn(async move { retry(operation, [MS; 3]).when(|_| true).sleep(sleep).await })
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
    assert_eq!(retry_mut(operation, [MS; 5]).sleep_mut(sleep).await, Ok(3));
    assert_eq!(connection, "...");
}

#[tokio::test(start_paused = true)]
async fn hint_never_shortens_a_wait_by_default() {
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
        let calls = Busy::default();
        let (_, took) = timed(retry(|| calls.call(), [MS * 2]).hint(hint).sleep(sleep)).await;
        assert_eq!(calls.0.get(), if waited.is_some() { 2 } else { 1 });
        assert_eq!(took, MS * waited.unwrap_or(0));
    }
}

#[tokio::test(start_paused = true)]
async fn hint_shortens_a_wait_if_allowed() {
    let hint = |_: &&str| Some(Hint::new(MS).may_shorten());
    assert_eq!(timed(retry(busy, [MS * 9; 2]).hint(hint).sleep(sleep)).await.1, MS * 2);
}

#[tokio::test(start_paused = true)]
async fn hint_adds_no_retry() {
    let hint = |_: &&str| Some(Hint::new(MS));
    let calls = Busy::default();
    let _ = retry(|| calls.call(), [MS; 0]).hint(hint).sleep(sleep).await;
    assert_eq!(calls.0.take(), 1);
    let _ = retry(|| calls.call(), [MS; 9]).when(|_| false).hint(hint).sleep(sleep).await;
    assert_eq!(calls.0.take(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_failure_is_notified() {
    type Notice = (Result<(), &'static str>, u64, Option<Duration>, Option<u64>);
    let notices = RefCell::new(Vec::<Notice>::new());
    let notify = |it: comeback_backoff::Attempt<'_, (), &'static str>| {
        notices.borrow_mut().push((
            it.result.copied().map_err(|error| *error),
            it.number,
            it.wait,
            it.retries_left,
        ));
    };
    let delays = [MS * 5, MS * 7];
    let _ = retry(busy, delays).notify(notify).sleep(sleep).await;
    let failed = Err("busy");
    let expected =
        [(failed, 1, Some(MS * 5), Some(2)), (failed, 2, Some(MS * 7), Some(1)), (failed, 3, None, Some(0))];
    assert_eq!(notices.take(), expected);
    // The last call is reported the same way, whichever option ends the retries.
    let last = [(failed, 1, None, Some(0))];
    let _ = retry(busy, delays).notify(notify).when(|_| false).sleep(sleep).await;
    assert_eq!(notices.take(), last);
    let _ = retry(busy, delays).notify(notify).max_elapsed(MS, || MS).sleep(sleep).await;
    assert_eq!(notices.take(), last);
    // `retries_left` is `None` if the delays are endless or their number is unknown.
    let _ = retry(busy, std::iter::repeat(MS)).notify(notify).max_waited(MS).sleep(sleep).await;
    assert_eq!(notices.take(), [(failed, 1, Some(MS), None), (failed, 2, None, Some(0))]);
    let _ = retry(busy, [MS].into_iter().filter(|_| true)).notify(notify).sleep(sleep).await;
    assert_eq!(notices.take(), [(failed, 1, Some(MS), None), (failed, 2, None, Some(0))]);
    // A success is reported only if `when_ok` retries it.
    let _ = retry(async || Ok(()), delays).notify(notify).sleep(sleep).await;
    assert_eq!(notices.take(), []);
    let _ = retry(async || Ok(()), [MS]).notify(notify).when_ok(|()| true).sleep(sleep).await;
    assert_eq!(notices.take(), [(Ok(()), 1, Some(MS), Some(1)), (Ok(()), 2, None, Some(0))]);
}

#[tokio::test(start_paused = true)]
async fn unaccepted_value_is_retried() {
    let states = Cell::new(0);
    let state = async || {
        states.set(states.get() + 1);
        Ok::<u64, &str>(states.get())
    };
    let (done, took) = timed(retry(state, [MS; 9]).when_ok(|state| *state < 4).sleep(sleep)).await;
    assert_eq!((done, took), (Ok(4), MS * 3));
    let (pending, took) = timed(retry(state, [MS; 2]).when_ok(|_| true).sleep(sleep)).await;
    assert_eq!((pending, took), (Ok(7), MS * 2), "the last value comes out");
}

#[tokio::test(start_paused = true)]
async fn no_call_or_useless_wait_past_the_limit() {
    let start = Instant::now();
    let slow = async || {
        sleep(MS * 10).await;
        Err::<(), _>("busy")
    };
    let elapsed = || Instant::now().duration_since(start);
    let mut tally = Tally::default();
    // Each call and each wait takes 10 ms, so calls start at 0, 20, 40 and 60 ms. The wait that would end at 80 ms does
    // not start.
    let work = retry(slow, [MS * 10; 99]).max_elapsed(MS * 79, elapsed);
    let _ = work.tally(&mut tally).sleep(sleep).await;
    assert_eq!((tally.attempts, tally.waited, elapsed()), (4, MS * 30, MS * 70));
}

#[tokio::test(start_paused = true)]
async fn wait_may_end_at_the_limit() {
    let calls = Busy::default();
    let call = || calls.call();
    let at_once = Duration::ZERO;
    let _ = retry(call, [MS * 10]).max_elapsed(MS * 10, || at_once).sleep(sleep).await;
    assert_eq!(calls.0.take(), 2);
    let hinted = retry(call, [MS * 10]).hint(|_| Some(Hint::new(MS * 11)));
    let _ = hinted.max_elapsed(MS * 10, || at_once).sleep(sleep).await;
    assert_eq!(calls.0.take(), 1);
    let _ = retry(call, [Duration::MAX]).max_elapsed(MS, || Duration::MAX).sleep(sleep).await;
    assert_eq!(calls.0.take(), 1);
}

#[tokio::test(start_paused = true)]
async fn total_wait_stays_within_its_limit() {
    let wait = |limit, delays: [u64; 4]| async move {
        timed(retry(busy, delays.map(Duration::from_millis)).max_waited(limit).sleep(sleep)).await.1
    };
    assert_eq!(wait(MS * 30, [10, 10, 10, 10]).await, MS * 30);
    assert_eq!(wait(MS * 29, [10, 10, 10, 10]).await, MS * 20);
    assert_eq!(wait(MS * 29, [10, 20, 5, 5]).await, MS * 10, "the first that does not fit ends the retries");
    let hinted = retry(busy, [MS; 9]).hint(|_| Some(Hint::new(MS * 20))).max_waited(MS * 50);
    assert_eq!(timed(hinted.sleep(sleep)).await.1, MS * 40);
    assert_eq!(wait(Duration::MAX, [1, 1, 1, 1]).await, MS * 4);
}

#[test]
fn blocking_retry_behaves_alike() {
    let (mut calls, mut notices, mut slept, mut tally) = (0, 0, Vec::new(), Tally::default());
    let read = || {
        calls += 1;
        if calls < 4 { Err("busy") } else { Ok(calls) }
    };
    let read = retry_blocking(read, [MS * 5, MS * 70, MS * 9])
        .when(|error| *error == "busy")
        .hint(|_| Some(Hint::new(MS * 40)))
        .max_elapsed(MS * 100, || MS * 30)
        .notify(|_| notices += 1)
        .tally(&mut tally)
        .sleep_blocking(|wait| slept.push(wait));
    assert_eq!((read, tally.attempts, tally.waited), (Ok(4), 4, MS * 150));
    assert_eq!((notices, slept), (3, vec![MS * 40, MS * 70, MS * 40]));
}

/// A sleeping thread cannot be cancelled. A process that shuts down can stop the retries through `when`.
#[test]
fn blocking_retry_can_be_stopped() {
    let (stopped, calls) = (Cell::new(false), Cell::new(0));
    let call = || {
        calls.set(calls.get() + 1);
        Err::<(), _>("busy")
    };
    let stop_in_the_second = |_| stopped.set(calls.get() == 2);
    let result = retry_blocking(call, [MS; 9]).when(|_| !stopped.get()).sleep_blocking(stop_in_the_second);
    assert_eq!((result, calls.get()), (Err("busy"), 2));
}
