//! The retry loop: calls an operation again until it succeeds or the delays run out.

use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use crate::hint::Hint;

/// Calls `operation`, and repeats the call after each of `delays` until a call succeeds.
///
/// The operation is called once, and then at most once after each delay. `delays` may be a
/// [`&Backoff`](crate::Backoff), a [`ladder!`](crate::ladder)'s `ceilings()`, or any other iterable of durations. If
/// the delays are endless, an operation that keeps failing is retried forever.
///
/// For a closure that mutates what it borrows, use [`retry_mut`]. Nothing happens until [`sleep`](Retry::sleep) is
/// awaited.
///
/// ```
/// use comeback_backoff::{Tally, retry};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let mut tally = Tally::default();
/// let delays = [50, 50, 100].map(Duration::from_millis);
/// let busy = retry(async || Err::<(), _>("busy"), delays)
///     .when(|error| *error == "busy")
///     .tally(&mut tally)
///     .sleep(tokio::time::sleep)
///     .await;
/// assert_eq!((busy, tally.attempts, tally.waited), (Err("busy"), 4, Duration::from_millis(200)));
/// # }
/// ```
pub fn retry<Op, Fut, T, E, D>(operation: Op, delays: D) -> Retry<'static, Op, T, E, D::IntoIter>
where
    Op: FnMut() -> Fut, // a closure that changes what it borrows needs `retry_mut` (the compiler shows this line)
    Fut: Future<Output = Result<T, E>>,
    D: IntoIterator<Item: Delay>,
{
    Retry::new(operation, delays)
}

/// Like [`retry`], but for an `async` closure that mutates what it borrows, such as a connection. To run it, call
/// [`sleep_mut`](Retry::sleep_mut).
///
/// The compiler does not see that the future of such a closure is `Send` inside an `async` block
/// (rust-lang/rust#134997). To spawn the retry, move everything into the closure, and spawn the future that
/// `sleep_mut` returns.
///
/// ```
/// use comeback_backoff::retry_mut;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// # async fn read(buffer: &mut Vec<u8>) -> Result<usize, &'static str> {
/// #     buffer.push(7);
/// #     if buffer.len() < 3 { Err("busy") } else { Ok(buffer.len()) }
/// # }
/// let delays = [50, 50, 100].map(Duration::from_millis);
/// let mut buffer = Vec::new();
/// let read_it = retry_mut(async || read(&mut buffer).await, delays).sleep_mut(tokio::time::sleep).await;
/// assert_eq!(read_it, Ok(3));
///
/// let mut buffer = Vec::new();
/// let spawned = tokio::spawn(retry_mut(async move || read(&mut buffer).await, delays).sleep_mut(tokio::time::sleep));
/// assert_eq!(spawned.await.unwrap(), Ok(3));
/// # }
/// ```
pub fn retry_mut<Op, T, E, D>(operation: Op, delays: D) -> Retry<'static, Op, T, E, D::IntoIter>
where
    Op: AsyncFnMut() -> Result<T, E>,
    D: IntoIterator<Item: Delay>,
{
    Retry::new(operation, delays)
}

/// Like [`retry`], but for an operation that blocks the current thread. End the chain of calls with
/// [`sleep_blocking`](Retry::sleep_blocking).
pub fn retry_blocking<Op, T, E, D>(operation: Op, delays: D) -> Retry<'static, Op, T, E, D::IntoIter>
where
    Op: FnMut() -> Result<T, E>,
    D: IntoIterator<Item: Delay>,
{
    Retry::new(operation, delays)
}

/// The type of a retry's delays. Only [`Duration`] implements this trait.
#[diagnostic::on_unimplemented(
    message = "a delay is a `Duration`, not `{Self}`",
    label = "these delays yield `{Self}`",
    note = "if they are a `Result`, as from `Backoff::exponential(…)`, add a `?`; if they are borrowed, add \
            `.iter().copied()`"
)]
pub trait Delay: sealed::Sealed {
    #[doc(hidden)]
    fn duration(self) -> Duration;
}

impl Delay for Duration {
    fn duration(self) -> Duration {
        self
    }
}

/// Makes the compiler show the message below for a [`Retry`] that is awaited without one of its `sleep` functions.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this retry does not know how to wait yet",
    label = "add `.sleep(tokio::time::sleep)`, or any other function from a duration to a future",
    note = "`retry_mut` needs `.sleep_mut(…)`, and `retry_blocking` needs `.sleep_blocking(std::thread::sleep)` and no `.await`"
)]
pub trait KnowsHowToWait: sealed::Sealed {}

/// Stands in for [`Retry`] in the bound on its `Future` implementation. If the bound named `Retry` itself, the
/// compiler would not show the message of `KnowsHowToWait`.
#[doc(hidden)]
pub struct Unfinished<Op>(PhantomData<Op>);

mod sealed {
    pub trait Sealed {}

    impl Sealed for core::time::Duration {}
}

/// A retry loop that has not started yet, and its options.
#[must_use = "nothing is called until `sleep` or `sleep_mut` is awaited, or `sleep_blocking` is called"]
pub struct Retry<
    't,
    Op,
    T,
    E,
    Delays,
    When = fn(&E) -> bool,
    WhenOk = fn(&T) -> bool,
    Hinting = fn(&E) -> Option<Hint>,
    Notify = fn(Attempt<'_, T, E>),
    Elapsed = fn() -> Duration,
> {
    operation: Op,
    delays: Delays,
    when: When,
    when_ok: WhenOk,
    hint: Hinting,
    notify: Notify,
    /// Every wait must end by this time, as measured by `elapsed`.
    limit: Duration,
    elapsed: Elapsed,
    /// Maximum sum of all waits.
    longest_total: Duration,
    so_far: Tally,
    tally: Option<&'t mut Tally>,
    result: PhantomData<fn(&T, &E)>,
}

/// A call that [`Retry::notify`] reports: a failed call, or a successful call that [`when_ok`](Retry::when_ok) retries.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt<'r, T, E> {
    /// The result that the call returned.
    pub result: Result<&'r T, &'r E>,
    /// The number of the call: 1 for the first.
    pub number: u64,
    /// The wait before the next call, or `None` if this call was the last.
    pub wait: Option<Duration>,
    /// The number of calls that may still follow, or `None` if it is unlimited or unknown.
    pub retries_left: Option<u64>,
}

/// The number of calls that a retry loop has made, and the time that it has waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// The number of calls made, including the first.
    pub attempts: u64,
    /// The total time waited between calls.
    pub waited: Duration,
}

impl<Op, T, E, D> Retry<'static, Op, T, E, D> {
    fn new(operation: Op, delays: impl IntoIterator<IntoIter = D>) -> Self {
        Self {
            operation,
            delays: delays.into_iter(),
            when: |_| true,
            when_ok: |_| false,
            hint: |_| None,
            notify: |_| {},
            limit: Duration::MAX,
            elapsed: || Duration::ZERO,
            longest_total: Duration::MAX,
            so_far: Tally::default(),
            tally: None,
            result: PhantomData,
        }
    }
}

/// Expands to the retry with one option replaced. The new retry has a different type.
macro_rules! with {
    ($retry:ident: $($changed:ident),*; $($kept:ident),*) => {{
        let Self { $($kept,)* limit, longest_total, so_far, .. } = $retry;
        Retry { $($changed,)* $($kept,)* limit, longest_total, so_far, result: PhantomData }
    }};
}

impl<'t, Op, T, E, D, W, O, H, N, C> Retry<'t, Op, T, E, D, W, O, H, N, C>
where
    D: Iterator<Item: Delay>,
    W: FnMut(&E) -> bool,
    O: FnMut(&T) -> bool,
    H: FnMut(&E) -> Option<Hint>,
    N: FnMut(Attempt<'_, T, E>),
    C: FnMut() -> Duration,
{
    /// Retries only errors for which `when` returns true; see [`is_transient_io`](crate::is_transient_io) for an
    /// example. By default, every error is retried.
    ///
    /// [`sleep_blocking`](Self::sleep_blocking) calls `when` again after each wait. If `when` then returns false, no
    /// further call is made.
    pub fn when<When: FnMut(&E) -> bool>(self, when: When) -> Retry<'t, Op, T, E, D, When, O, H, N, C> {
        with!(self: when; operation, delays, when_ok, hint, notify, elapsed, tally)
    }

    /// Also retries a successful call if `when_ok` returns true for its value. Once no retry is left, such a value is
    /// returned as `Ok`.
    ///
    /// ```
    /// # use comeback_backoff::retry_blocking;
    /// # use std::time::Duration;
    /// let mut states = ["pending", "pending", "done"].into_iter();
    /// let state = retry_blocking(|| states.next().ok_or("gone"), [Duration::from_millis(1); 9])
    ///     .when_ok(|state| *state == "pending")
    ///     .sleep_blocking(std::thread::sleep);
    /// assert_eq!(state, Ok("done"));
    /// ```
    pub fn when_ok<WhenOk>(self, when_ok: WhenOk) -> Retry<'t, Op, T, E, D, W, WhenOk, H, N, C>
    where
        WhenOk: FnMut(&T) -> bool,
    {
        with!(self: when_ok; operation, delays, when, hint, notify, elapsed, tally)
    }

    /// Lets the [`Hint`] of an error lengthen the wait, [shorten](Hint::may_shorten) it, or end the retries. A hint
    /// cannot add a retry once the delays have run out.
    pub fn hint<Hinting>(self, hint: Hinting) -> Retry<'t, Op, T, E, D, W, O, Hinting, N, C>
    where
        Hinting: FnMut(&E) -> Option<Hint>,
    {
        with!(self: hint; operation, delays, when, when_ok, notify, elapsed, tally)
    }

    /// Calls `notify` after each failed call, including the last, and after each successful call that
    /// [`when_ok`](Self::when_ok) retries.
    ///
    /// ```
    /// # use comeback_backoff::retry_blocking;
    /// # use std::time::Duration;
    /// # let delays = [Duration::from_millis(1); 3];
    /// let _ = retry_blocking(|| std::fs::read("/not-there"), delays)
    ///     .notify(|attempt| match (attempt.result, attempt.wait) {
    ///         (Err(error), Some(wait)) => eprintln!("attempt {} failed: {error}; again in {wait:?}", attempt.number),
    ///         (Err(error), None) => eprintln!("attempt {} failed, the last: {error}", attempt.number),
    ///         (Ok(_), _) => {}
    ///     })
    ///     .sleep_blocking(std::thread::sleep);
    /// ```
    pub fn notify<Notify>(self, notify: Notify) -> Retry<'t, Op, T, E, D, W, O, H, Notify, C>
    where
        Notify: FnMut(Attempt<'_, T, E>),
    {
        with!(self: notify; operation, delays, when, when_ok, hint, elapsed, tally)
    }

    /// Ends the retries instead of waiting past `limit`. A call that is already running is not interrupted. `elapsed`
    /// returns the time since the retry loop started.
    pub fn max_elapsed<Elapsed: FnMut() -> Duration>(
        mut self,
        limit: Duration,
        elapsed: Elapsed,
    ) -> Retry<'t, Op, T, E, D, W, O, H, N, Elapsed> {
        self.limit = limit;
        with!(self: elapsed; operation, delays, when, when_ok, hint, notify, tally)
    }

    /// Ends the retries before the total of all waits, including those from hints, exceeds `limit`.
    pub fn max_waited(self, limit: Duration) -> Self {
        Self { longest_total: limit, ..self }
    }

    /// Resets `tally`. The retry loop then counts its calls and its waiting time in `tally`.
    pub fn tally<'u>(self, tally: &'u mut Tally) -> Retry<'u, Op, T, E, D, W, O, H, N, C> {
        *tally = Tally::default();
        let tally = Some(tally);
        with!(self: tally; operation, delays, when, when_ok, hint, notify, elapsed)
    }

    /// Runs the operation passed to [`retry`], and calls `sleeper`, such as `tokio::time::sleep`, for each wait.
    ///
    /// # Errors
    ///
    /// Returns the error from the last call.
    pub async fn sleep<Fut, Sleep>(mut self, mut sleeper: impl FnMut(Duration) -> Sleep) -> Result<T, E>
    where
        Op: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        Sleep: Future<Output = ()>,
    {
        loop {
            let result = (self.operation)().await;
            let Some(wait) = self.wait_after(&result) else { return result };
            drop(result);
            sleeper(wait).await;
        }
    }

    /// Runs the operation passed to [`retry_mut`], and calls `sleeper`, such as `tokio::time::sleep`, for each wait.
    ///
    /// # Errors
    ///
    /// Returns the error from the last call.
    pub async fn sleep_mut<Sleep>(mut self, mut sleeper: impl FnMut(Duration) -> Sleep) -> Result<T, E>
    where
        Op: AsyncFnMut() -> Result<T, E>,
        Sleep: Future<Output = ()>,
    {
        loop {
            let result = (self.operation)().await;
            let Some(wait) = self.wait_after(&result) else { return result };
            drop(result);
            sleeper(wait).await;
        }
    }

    /// Runs the operation passed to [`retry_blocking`] on this thread, and calls `sleep`, such as
    /// `std::thread::sleep`, for each wait.
    ///
    /// # Errors
    ///
    /// Returns the error from the last call.
    pub fn sleep_blocking(mut self, mut sleep: impl FnMut(Duration)) -> Result<T, E>
    where
        Op: FnMut() -> Result<T, E>,
    {
        loop {
            let result = (self.operation)();
            let Some(wait) = self.wait_after(&result) else { return result };
            sleep(wait);
            if !self.is_retried(&result) {
                return result;
            }
        }
    }

    fn is_retried(&mut self, result: &Result<T, E>) -> bool {
        match result {
            Ok(value) => (self.when_ok)(value),
            Err(error) => (self.when)(error),
        }
    }

    /// Records the result of a call, and returns the wait before the next call, if any.
    fn wait_after(&mut self, result: &Result<T, E>) -> Option<Duration> {
        self.so_far.attempts = self.so_far.attempts.saturating_add(1);
        let is_retried = self.is_retried(result);
        // Taken before `next_wait`, so this count includes the delay before the next call.
        let left = match self.delays.size_hint() {
            (least, Some(most)) if least == most => u64::try_from(most).ok(),
            _ => None,
        };
        let wait = if is_retried { self.next_wait(result.as_ref().err()) } else { None };
        if is_retried || result.is_err() {
            (self.notify)(Attempt {
                result: result.as_ref(),
                number: self.so_far.attempts,
                wait,
                retries_left: if wait.is_some() { left } else { Some(0) },
            });
        }
        self.so_far.waited = self.so_far.waited.saturating_add(wait.unwrap_or_default());
        if let Some(tally) = &mut self.tally {
            **tally = self.so_far;
        }
        wait
    }

    /// Returns the wait before the next retry, or `None` if no retry may follow.
    fn next_wait(&mut self, error: Option<&E>) -> Option<Duration> {
        let delay = self.delays.next()?.duration();
        let hint = error.and_then(|error| (self.hint)(error));
        let wait = hint.map_or(Some(delay), |hint| hint.over(delay))?;
        let fits = self.so_far.waited.saturating_add(wait) <= self.longest_total
            && (self.elapsed)().saturating_add(wait) <= self.limit;
        fits.then_some(wait)
    }
}

/// Implemented only so that the compiler shows a helpful message when a retry is awaited without a call to a `sleep`
/// function.
impl<Op, T, E, D, W, O, H, N, C> Future for Retry<'_, Op, T, E, D, W, O, H, N, C>
where
    Unfinished<Op>: KnowsHowToWait,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<T, E>> {
        Poll::Pending
    }
}
