use core::time::Duration;

use super::rules::Next;
use super::{Blocking, Lending, Plain};
use crate::{Hint, Retried, Retry, RetryError};

impl<Op, D, P, H, N, C> Retry<Plain<Op>, D, P, H, N, C> {
    /// Runs it and waits with `sleeper`, such as `tokio::time::sleep`.
    ///
    /// # Errors
    ///
    /// The last error, with the number of calls and the time waited between them.
    pub async fn sleeping<Fut, Sleep, T, E>(
        self,
        mut sleeper: impl FnMut(Duration) -> Sleep,
    ) -> Result<Retried<T>, RetryError<E>>
    where
        Op: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        Sleep: Future<Output = ()>,
        D: Iterator<Item = Duration>,
        P: FnMut(&E) -> bool,
        H: FnMut(&E) -> Option<Hint>,
        N: FnMut(&E, Duration),
        C: FnMut() -> Duration,
    {
        let Self { operation: Plain(mut operation), mut rules } = self;
        loop {
            match rules.after(operation().await) {
                Next::Wait(wait) => sleeper(wait).await,
                Next::End(result) => return result,
            }
        }
    }
}

impl<Op, D, P, H, N, C> Retry<Lending<Op>, D, P, H, N, C> {
    /// Runs it and waits with `sleeper`, such as `tokio::time::sleep`.
    ///
    /// # Errors
    ///
    /// The last error, with the number of calls and the time waited between them.
    pub async fn sleeping<Sleep, T, E>(
        self,
        mut sleeper: impl FnMut(Duration) -> Sleep,
    ) -> Result<Retried<T>, RetryError<E>>
    where
        Op: AsyncFnMut() -> Result<T, E>,
        Sleep: Future<Output = ()>,
        D: Iterator<Item = Duration>,
        P: FnMut(&E) -> bool,
        H: FnMut(&E) -> Option<Hint>,
        N: FnMut(&E, Duration),
        C: FnMut() -> Duration,
    {
        let Self { operation: Lending(mut operation), mut rules } = self;
        loop {
            match rules.after(operation().await) {
                Next::Wait(wait) => sleeper(wait).await,
                Next::End(result) => return result,
            }
        }
    }
}

impl<Op, D, P, H, N, C> Retry<Blocking<Op>, D, P, H, N, C> {
    /// Runs it on this thread and waits with `sleep`, such as `std::thread::sleep`.
    ///
    /// # Errors
    ///
    /// The last error, with the number of calls and the time waited between them.
    pub fn blocking<T, E>(self, mut sleep: impl FnMut(Duration)) -> Result<Retried<T>, RetryError<E>>
    where
        Op: FnMut() -> Result<T, E>,
        D: Iterator<Item = Duration>,
        P: FnMut(&E) -> bool,
        H: FnMut(&E) -> Option<Hint>,
        N: FnMut(&E, Duration),
        C: FnMut() -> Duration,
    {
        let Self { operation: Blocking(mut operation), mut rules } = self;
        loop {
            match rules.after(operation()) {
                Next::Wait(wait) => sleep(wait),
                Next::End(result) => return result,
            }
        }
    }
}
