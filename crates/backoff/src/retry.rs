mod hint;
mod options;
mod outcome;
#[cfg(feature = "retry-after")]
mod retry_after;
mod rules;
mod run;
mod transient;

use core::time::Duration;

use rules::{NoClock, NoHint, NoNotice, Rules};

pub use hint::Hint;
pub use outcome::{Retried, RetryError};
#[cfg(feature = "retry-after")]
pub use retry_after::{RetryAfter, UnreadableRetryAfter};
#[cfg(feature = "std")]
pub use transient::is_transient_io;
pub use transient::is_transient_status;

/// Calls `operation`, and calls it again after each of `delays` as long as `is_retriable` accepts its
/// error. There is at least one call, and at most one more than there are delays.
///
/// `delays` is anything that yields durations: a [`&Streams`](crate::Streams), a
/// [ladder](crate::Ladder)'s `ceilings()`, an array. If they are endless, so are the retries of an
/// operation that keeps failing.
///
/// `operation` returns a future; one that changes what it borrows needs [`retry_mut`]. Nothing happens until
/// [`sleeping`](Retry::sleeping) is given a sleeper and awaited.
///
/// ```
/// use comeback_backoff::retry;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let delays = [50, 50, 100].map(Duration::from_millis);
/// let error = retry(delays, |error| *error == "busy", async || Err::<(), _>("busy"))
///     .sleeping(tokio::time::sleep)
///     .await
///     .unwrap_err();
/// assert_eq!((error.error, error.attempts, error.waited), ("busy", 4, Duration::from_millis(200)));
/// # }
/// ```
pub fn retry<D, P, Op, Fut, T, E>(delays: D, is_retriable: P, operation: Op) -> New<Plain<Op>, D, P, E>
where
    D: IntoIterator<Item = Duration>,
    P: FnMut(&E) -> bool,
    Op: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    Retry { operation: Plain(operation), rules: Rules::new(delays.into_iter(), is_retriable) }
}

/// As [`retry`], for an `async` closure that changes what it borrows, such as a connection.
///
/// It is apart because the compiler cannot see yet that such a future is `Send` inside another `async` block
/// that is (rust-lang/rust#134997): spawn what `sleeping` returns, or use [`retry`].
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
/// let done = retry_mut(delays, |_| true, async || {
///     read(&mut buffer).await // a part at a time
/// });
/// assert_eq!(done.sleeping(tokio::time::sleep).await.unwrap().attempts, 3);
/// # }
/// ```
pub fn retry_mut<D, P, Op, T, E>(delays: D, is_retriable: P, operation: Op) -> New<Lending<Op>, D, P, E>
where
    D: IntoIterator<Item = Duration>,
    P: FnMut(&E) -> bool,
    Op: AsyncFnMut() -> Result<T, E>,
{
    Retry { operation: Lending(operation), rules: Rules::new(delays.into_iter(), is_retriable) }
}

/// As [`retry`], for an operation that blocks its thread. [`blocking`](Retry::blocking) runs it.
///
/// ```
/// use comeback_backoff::retry_blocking;
/// use std::time::Duration;
///
/// let delays = [1, 2].map(Duration::from_millis);
/// let error = retry_blocking(delays, |_| true, || Err::<(), _>("busy")).blocking(std::thread::sleep).unwrap_err();
/// assert_eq!((error.error, error.attempts, error.waited), ("busy", 3, Duration::from_millis(3)));
/// ```
pub fn retry_blocking<D, P, Op, T, E>(delays: D, is_retriable: P, operation: Op) -> New<Blocking<Op>, D, P, E>
where
    D: IntoIterator<Item = Duration>,
    P: FnMut(&E) -> bool,
    Op: FnMut() -> Result<T, E>,
{
    Retry { operation: Blocking(operation), rules: Rules::new(delays.into_iter(), is_retriable) }
}

/// A retry that has not started: what [`retry`], [`retry_mut`] and [`retry_blocking`] return.
#[must_use = "nothing is called until `sleeping` is awaited, or `blocking` is called"]
pub struct Retry<Op, D, P, H, N, C> {
    operation: Op,
    rules: Rules<D, P, H, N, C>,
}

/// Without options yet.
type New<Op, D, P, E> = Retry<Op, <D as IntoIterator>::IntoIter, P, NoHint<E>, NoNotice<E>, NoClock>;

/// The operation of [`retry`]: its futures stand for themselves.
pub struct Plain<Op>(Op);

/// The operation of [`retry_mut`]: its futures borrow from it.
pub struct Lending<Op>(Op);

/// The operation of [`retry_blocking`].
pub struct Blocking<Op>(Op);
