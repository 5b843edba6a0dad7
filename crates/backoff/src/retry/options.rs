use core::time::Duration;

use super::rules::Rules;
use crate::{Hint, Retry};

impl<Op, D, P, H, N, C> Retry<Op, D, P, H, N, C> {
    /// Also obeys the wait that an error asks for, such as its `RetryAfter`: each wait is the longer of its
    /// delay and its [`Hint`], which is awaited in full or ends the retry, as the hint says. A hint adds no
    /// retry when no delay is left.
    ///
    /// ```
    /// use comeback_backoff::{Hint, is_transient_status, retry};
    /// use std::time::Duration;
    ///
    /// struct Refused { status: u16, retry_after_seconds: Option<u64> }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// # let request = async || Err::<(), _>(Refused { status: 503, retry_after_seconds: Some(2) });
    /// let refused = retry([Duration::from_millis(50)], |error: &Refused| is_transient_status(error.status), request)
    ///     .hinted(|error| {
    ///         let wait = Duration::from_secs(error.retry_after_seconds?);
    ///         Some(Hint::awaited_up_to(Duration::from_secs(30), wait).spread(&mut rand::rng()))
    ///     })
    ///     .sleeping(tokio::time::sleep)
    ///     .await;
    /// # assert!(refused.is_err_and(|refused| refused.waited >= Duration::from_secs(2)));
    /// # }
    /// ```
    pub fn hinted<E, Hinting>(self, hint: Hinting) -> Retry<Op, D, P, Hinting, N, C>
    where
        P: FnMut(&E) -> bool,
        Hinting: FnMut(&E) -> Option<Hint>,
    {
        let Rules { delays, is_retriable, notify, limit, elapsed, retries, waited, .. } = self.rules;
        let rules = Rules { delays, is_retriable, hint, notify, limit, elapsed, retries, waited };
        Retry { operation: self.operation, rules }
    }

    /// Calls `notify` with the error and the wait before each wait, for a log or a metric.
    ///
    /// ```
    /// # use comeback_backoff::retry_blocking;
    /// # use std::time::Duration;
    /// # let (delays, read) = ([Duration::from_millis(1)], || Err::<(), _>("busy"));
    /// retry_blocking(delays, |_| true, read)
    ///     .notify(|error, wait| eprintln!("{error}; again in {wait:?}"))
    ///     .blocking(std::thread::sleep)
    /// # .unwrap_err();
    /// ```
    pub fn notify<E, Notice>(self, notify: Notice) -> Retry<Op, D, P, H, Notice, C>
    where
        P: FnMut(&E) -> bool,
        Notice: FnMut(&E, Duration),
    {
        let Rules { delays, is_retriable, hint, limit, elapsed, retries, waited, .. } = self.rules;
        let rules = Rules { delays, is_retriable, hint, notify, limit, elapsed, retries, waited };
        Retry { operation: self.operation, rules }
    }

    /// Gives up instead of waiting past `limit`, so that no call but the first starts later than that. A call
    /// that has started is not cut short.
    ///
    /// `elapsed` says how long ago the time began that `limit` bounds.
    ///
    /// ```
    /// # use comeback_backoff::retry_blocking;
    /// use std::time::{Duration, Instant};
    ///
    /// # let (delays, read) = ([Duration::from_millis(20)], || Err::<(), _>("busy"));
    /// let start = Instant::now();
    /// let error = retry_blocking(delays, |_| true, read)
    ///     .max_elapsed(Duration::from_millis(10), || start.elapsed())
    ///     .blocking(std::thread::sleep)
    ///     .unwrap_err();
    /// assert_eq!(error.attempts, 1); // after a wait of 20 ms it would be too late
    /// ```
    pub fn max_elapsed<Clock: FnMut() -> Duration>(
        self,
        limit: Duration,
        elapsed: Clock,
    ) -> Retry<Op, D, P, H, N, Clock> {
        let Rules { delays, is_retriable, hint, notify, retries, waited, .. } = self.rules;
        let rules = Rules { delays, is_retriable, hint, notify, limit, elapsed, retries, waited };
        Retry { operation: self.operation, rules }
    }
}
