use std::time::Duration;

use backon::{Retryable, Sleeper};

use crate::RetryError;

/// Calls `operation`, and calls it again after each of `delays` as long as `is_retriable` accepts its
/// error. There is at least one call, and at most one more than there are delays.
///
/// `delays` is anything that yields durations: a [`&Streams`](crate::Streams), a
/// [ladder](crate::Ladder)'s `ceilings()`, an array. If they are endless, so are the retries of an
/// operation that keeps failing.
///
/// Nothing happens until [`sleeping`](Retry::sleeping) is given a sleeper and awaited.
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
pub fn retry<D, P, Op, Fut, T, E>(
    delays: D,
    is_retriable: P,
    operation: Op,
) -> Retry<D::IntoIter, P, Op, NoHint<E>>
where
    D: IntoIterator<Item = Duration>,
    P: FnMut(&E) -> bool,
    Op: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    Retry { delays: delays.into_iter(), is_retriable, operation, hint: |_| None, longest: Duration::MAX }
}

type NoHint<E> = fn(&E) -> Option<Duration>;

/// A retry that has not started: what [`retry`] returns.
#[must_use = "nothing is called until `sleeping` is awaited"]
pub struct Retry<D, P, Op, H> {
    delays: D,
    is_retriable: P,
    operation: Op,
    hint: H,
    longest: Duration,
}

impl<D, P, Op, H> Retry<D, P, Op, H> {
    /// Also obeys the wait that an error asks for, such as its [`RetryAfter`](crate::RetryAfter): each wait
    /// is min(`longest`, max(delay, hint)), or min(`longest`, delay) without a hint. A hint adds no retry
    /// when no delay is left.
    ///
    /// ```
    /// use comeback_backoff::{RetryAfter, is_transient_status, retry};
    /// use std::time::{Duration, SystemTime};
    ///
    /// struct Refused { status: u16, retry_after: Option<RetryAfter> }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// # let clock = || SystemTime::UNIX_EPOCH;
    /// # let request = async || Err::<(), _>(Refused { status: 503, retry_after: "2".parse().ok() });
    /// let refused = retry([Duration::from_millis(50)], |error: &Refused| is_transient_status(error.status), request)
    ///     .hinted(Duration::from_secs(30), |error| error.retry_after.map(|after| after.wait(clock())))
    ///     .sleeping(tokio::time::sleep)
    ///     .await;
    /// # assert_eq!(refused.unwrap_err().waited, Duration::from_secs(2));
    /// # }
    /// ```
    pub fn hinted<E, Hint>(self, longest: Duration, hint: Hint) -> Retry<D, P, Op, Hint>
    where
        P: FnMut(&E) -> bool,
        Hint: FnMut(&E) -> Option<Duration>,
    {
        let Self { delays, is_retriable, operation, .. } = self;
        Retry { delays, is_retriable, operation, hint, longest }
    }

    /// Runs it and waits with `sleeper`: any `Fn(Duration) -> impl Future`, such as `tokio::time::sleep`.
    ///
    /// # Errors
    ///
    /// The last error, with the number of calls and the time waited between them.
    pub async fn sleeping<Fut, T, E>(self, sleeper: impl Sleeper) -> Result<T, RetryError<E>>
    where
        D: backon::Backoff,
        P: FnMut(&E) -> bool,
        Op: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        H: FnMut(&E) -> Option<Duration>,
    {
        let Self { delays, is_retriable, mut operation, mut hint, longest } = self;
        let (mut attempts, mut waited) = (0u64, Duration::ZERO);
        let counted = || {
            attempts = attempts.saturating_add(1);
            operation()
        };
        let result = counted
            .retry(delays)
            .when(is_retriable)
            .adjust(|error, delay| Some(longest.min(delay?.max(hint(error).unwrap_or_default()))))
            .notify(|_, wait| waited = waited.saturating_add(wait))
            .sleep(sleeper)
            .await;
        result.map_err(|error| RetryError { error, attempts, waited })
    }
}
