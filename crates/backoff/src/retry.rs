//! Calls an operation again until it succeeds or its delays end.

use core::fmt;
use core::marker::PhantomData;
use core::ops::ControlFlow;
use core::time::Duration;

use crate::Hint;

/// Calls `operation`, and calls it again after each of `delays` as long as it fails.
///
/// There is at least one call, and at most one more than there are delays. `delays` is anything that yields
/// durations: a [`&Backoff`](crate::Backoff), a [`ladder!`](crate::ladder)'s `ceilings()`, an array. If they are
/// endless, so are the retries of an operation that keeps failing.
///
/// `operation` returns a future; one that changes what it borrows needs [`retry_mut`]. Nothing happens until
/// [`sleep`](Retry::sleep) is awaited.
///
/// ```
/// use comeback_backoff::retry;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let delays = [50, 50, 100].map(Duration::from_millis);
/// let given_up = retry(async || Err::<(), _>("busy"), delays)
///     .when(|error| *error == "busy")
///     .sleep(tokio::time::sleep)
///     .await
///     .unwrap_err();
/// assert_eq!((given_up.error, given_up.attempts, given_up.waited), ("busy", 4, Duration::from_millis(200)));
/// # }
/// ```
pub fn retry<Op, Fut, T, E, D>(operation: Op, delays: D) -> Retry<Op, E, D::IntoIter>
where
    Op: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
    D: IntoIterator<Item = Duration>,
{
    Retry::new(operation, delays)
}

/// As [`retry`], for an `async` closure that changes what it borrows, such as a connection.
/// [`sleep_mut`](Retry::sleep_mut) runs it.
///
/// It is apart because the compiler cannot see yet that such a future is `Send` inside another `async` block
/// that is (rust-lang/rust#134997): spawn what `sleep_mut` returns, or use [`retry`].
///
/// ```
/// use comeback_backoff::retry_mut;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// # async fn read(buffer: &mut Vec<u8>) -> Result<(), &'static str> {
/// #     buffer.push(7);
/// #     if buffer.len() < 3 { Err("busy") } else { Ok(()) }
/// # }
/// let mut buffer = Vec::new();
/// let delays = [50, 50, 100].map(Duration::from_millis);
/// let done = retry_mut(async || read(&mut buffer).await, delays).sleep_mut(tokio::time::sleep).await;
/// assert_eq!(done.unwrap().attempts, 3);
/// # }
/// ```
pub fn retry_mut<Op, T, E, D>(operation: Op, delays: D) -> Retry<Op, E, D::IntoIter>
where
    Op: AsyncFnMut() -> Result<T, E>,
    D: IntoIterator<Item = Duration>,
{
    Retry::new(operation, delays)
}

/// As [`retry`], for an operation that blocks its thread. [`sleep_blocking`](Retry::sleep_blocking) runs it.
pub fn retry_blocking<Op, T, E, D>(operation: Op, delays: D) -> Retry<Op, E, D::IntoIter>
where
    Op: FnMut() -> Result<T, E>,
    D: IntoIterator<Item = Duration>,
{
    Retry::new(operation, delays)
}

/// A retry that has not started, with its options: what [`retry`], [`retry_mut`] and [`retry_blocking`] return.
#[must_use = "nothing is called until `sleep` or `sleep_mut` is awaited, or `sleep_blocking` is called"]
pub struct Retry<
    Op,
    E,
    Delays,
    When = fn(&E) -> bool,
    Hinting = fn(&E) -> Option<Hint>,
    Notify = fn(&E, Duration),
    Elapsed = fn() -> Duration,
> {
    operation: Op,
    delays: Delays,
    when: When,
    hint: Hinting,
    notify: Notify,
    /// No wait may end later, by `elapsed`.
    limit: Duration,
    elapsed: Elapsed,
    error: PhantomData<fn(&E)>,
}

impl<Op, E, D> Retry<Op, E, D> {
    fn new(operation: Op, delays: impl IntoIterator<IntoIter = D>) -> Self {
        Self {
            operation,
            delays: delays.into_iter(),
            when: |_| true,
            hint: |_| None,
            notify: |_, _| {},
            limit: Duration::MAX,
            elapsed: || Duration::ZERO,
            error: PhantomData,
        }
    }
}

impl<Op, E, D, W, H, N, C> Retry<Op, E, D, W, H, N, C>
where
    D: Iterator<Item = Duration>,
    W: FnMut(&E) -> bool,
    H: FnMut(&E) -> Option<Hint>,
    N: FnMut(&E, Duration),
    C: FnMut() -> Duration,
{
    /// Retries only errors that `when` accepts, such as [`is_transient_io`](crate::is_transient_io). By default every
    /// error is retried.
    pub fn when<When: FnMut(&E) -> bool>(self, when: When) -> Retry<Op, E, D, When, H, N, C> {
        let Self { operation, delays, hint, notify, limit, elapsed, error, .. } = self;
        Retry { operation, delays, when, hint, notify, limit, elapsed, error }
    }

    /// Obeys the wait that an error asks for: each wait is the longer of its delay and its [`Hint`], which is awaited
    /// in full or ends the retry, as the hint says. A hint adds no retry when no delay is left.
    pub fn hint<Hinting>(self, hint: Hinting) -> Retry<Op, E, D, W, Hinting, N, C>
    where
        Hinting: FnMut(&E) -> Option<Hint>,
    {
        let Self { operation, delays, when, notify, limit, elapsed, error, .. } = self;
        Retry { operation, delays, when, hint, notify, limit, elapsed, error }
    }

    /// Calls `notify` with the error and the wait before each wait, for a log or a metric.
    pub fn notify<Notify: FnMut(&E, Duration)>(self, notify: Notify) -> Retry<Op, E, D, W, H, Notify, C> {
        let Self { operation, delays, when, hint, limit, elapsed, error, .. } = self;
        Retry { operation, delays, when, hint, notify, limit, elapsed, error }
    }

    /// Gives up instead of waiting past `limit`, so that no call but the first starts later. A call that has started
    /// is not cut short. `elapsed` returns the time since the start that `limit` counts from.
    pub fn max_elapsed<Elapsed: FnMut() -> Duration>(
        self,
        limit: Duration,
        elapsed: Elapsed,
    ) -> Retry<Op, E, D, W, H, N, Elapsed> {
        let Self { operation, delays, when, hint, notify, error, .. } = self;
        Retry { operation, delays, when, hint, notify, limit, elapsed, error }
    }

    /// Runs the operation of [`retry`] and waits with `sleeper`, such as `tokio::time::sleep`.
    ///
    /// # Errors
    ///
    /// The last error, with the number of calls and the time waited between them.
    pub async fn sleep<Fut, Sleep, T>(
        mut self,
        mut sleeper: impl FnMut(Duration) -> Sleep,
    ) -> Result<Retried<T>, RetryError<E>>
    where
        Op: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        Sleep: Future<Output = ()>,
    {
        let mut tally = Tally::default();
        loop {
            let result = (self.operation)().await;
            match self.after(result, &mut tally) {
                ControlFlow::Continue(wait) => sleeper(wait).await,
                ControlFlow::Break(end) => return end,
            }
        }
    }

    /// Runs the operation of [`retry_mut`] and waits with `sleeper`, such as `tokio::time::sleep`.
    ///
    /// # Errors
    ///
    /// The last error, with the number of calls and the time waited between them.
    pub async fn sleep_mut<Sleep, T>(
        mut self,
        mut sleeper: impl FnMut(Duration) -> Sleep,
    ) -> Result<Retried<T>, RetryError<E>>
    where
        Op: AsyncFnMut() -> Result<T, E>,
        Sleep: Future<Output = ()>,
    {
        let mut tally = Tally::default();
        loop {
            let result = (self.operation)().await;
            match self.after(result, &mut tally) {
                ControlFlow::Continue(wait) => sleeper(wait).await,
                ControlFlow::Break(end) => return end,
            }
        }
    }

    /// Runs the operation of [`retry_blocking`] on this thread and waits with `sleep`, such as `std::thread::sleep`.
    ///
    /// # Errors
    ///
    /// The last error, with the number of calls and the time waited between them.
    pub fn sleep_blocking<T>(mut self, mut sleep: impl FnMut(Duration)) -> Result<Retried<T>, RetryError<E>>
    where
        Op: FnMut() -> Result<T, E>,
    {
        let mut tally = Tally::default();
        loop {
            let result = (self.operation)();
            match self.after(result, &mut tally) {
                ControlFlow::Continue(wait) => sleep(wait),
                ControlFlow::Break(end) => return end,
            }
        }
    }

    /// What follows a call: the wait before the next one, or the end.
    fn after<T>(
        &mut self,
        result: Result<T, E>,
        tally: &mut Tally,
    ) -> ControlFlow<Result<Retried<T>, RetryError<E>>, Duration> {
        tally.attempts = tally.attempts.saturating_add(1);
        let Tally { attempts, waited } = *tally;
        let error = match result {
            Ok(value) => return ControlFlow::Break(Ok(Retried { value, attempts, waited })),
            Err(error) => error,
        };
        let Some(wait) = self.wait(&error) else {
            return ControlFlow::Break(Err(RetryError { error, attempts, waited }));
        };
        tally.waited = waited.saturating_add(wait);
        ControlFlow::Continue(wait)
    }

    /// The wait after a call that failed with `error`; `None` to give up.
    fn wait(&mut self, error: &E) -> Option<Duration> {
        if !(self.when)(error) {
            return None;
        }
        let delay = self.delays.next()?;
        let wait = (self.hint)(error).map_or(Some(delay), |hint| hint.over(delay))?;
        if (self.elapsed)().saturating_add(wait) > self.limit {
            return None;
        }
        (self.notify)(error, wait);
        Some(wait)
    }
}

#[derive(Clone, Copy, Default)]
struct Tally {
    attempts: u64,
    waited: Duration,
}

/// An operation that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retried<T> {
    /// The last call's result.
    pub value: T,
    /// Calls made, the first included.
    pub attempts: u64,
    /// Total time waited between them.
    pub waited: Duration,
}

/// An operation that was given up. Its message says after how many calls; the error itself is the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryError<E> {
    /// The last call's error.
    pub error: E,
    /// Calls made, the first included.
    pub attempts: u64,
    /// Total time waited between them.
    pub waited: Duration,
}

impl<E> fmt::Display for RetryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = if self.attempts == 1 { "call" } else { "calls" };
        write!(f, "gave up after {} {calls} and {:?} of waiting", self.attempts, self.waited)
    }
}

impl<E: core::error::Error + 'static> core::error::Error for RetryError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::io::{Error, ErrorKind};
    use std::time::Duration;

    use super::RetryError;

    #[test]
    fn an_error_says_how_it_was_given_up_and_leads_to_its_source() {
        let (error, waited) = (Error::from(ErrorKind::TimedOut), Duration::from_millis(1_350));
        let error = RetryError { error, attempts: 4, waited };
        assert_eq!(error.to_string(), "gave up after 4 calls and 1.35s of waiting");
        assert_eq!(error.source().unwrap().to_string(), "timed out");
        let at_once = RetryError { error: "busy", attempts: 1, waited: Duration::ZERO };
        assert_eq!(at_once.to_string(), "gave up after 1 call and 0ns of waiting");
    }
}
