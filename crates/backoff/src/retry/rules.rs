use core::time::Duration;

use crate::{Hint, Retried, RetryError};

/// What happens after each call: the part of a retry that neither calls nor waits.
pub(super) struct Rules<D, P, H, N, C> {
    pub(super) delays: D,
    pub(super) is_retriable: P,
    pub(super) hint: H,
    pub(super) notify: N,
    /// No wait may end later, by `elapsed`.
    pub(super) limit: Duration,
    pub(super) elapsed: C,
    pub(super) retries: u64,
    pub(super) waited: Duration,
}

/// What a call leads to.
pub(super) enum Next<T, E> {
    /// To another call after this wait.
    Wait(Duration),
    End(Result<Retried<T>, RetryError<E>>),
}

pub(super) type NoHint<E> = fn(&E) -> Option<Hint>;
pub(super) type NoNotice<E> = fn(&E, Duration);
pub(super) type NoClock = fn() -> Duration;

impl<D, P, E> Rules<D, P, NoHint<E>, NoNotice<E>, NoClock> {
    pub(super) fn new(delays: D, is_retriable: P) -> Self {
        Self {
            delays,
            is_retriable,
            hint: |_| None,
            notify: |_, _| {},
            limit: Duration::MAX,
            elapsed: || Duration::ZERO,
            retries: 0,
            waited: Duration::ZERO,
        }
    }
}

impl<D, P, H, N, C> Rules<D, P, H, N, C> {
    pub(super) fn after<T, E>(&mut self, result: Result<T, E>) -> Next<T, E>
    where
        D: Iterator<Item = Duration>,
        P: FnMut(&E) -> bool,
        H: FnMut(&E) -> Option<Hint>,
        N: FnMut(&E, Duration),
        C: FnMut() -> Duration,
    {
        let (attempts, waited) = (self.retries.saturating_add(1), self.waited);
        match result {
            Ok(value) => Next::End(Ok(Retried { value, attempts, waited })),
            Err(error) => match self.wait(&error) {
                Some(wait) => Next::Wait(wait),
                None => Next::End(Err(RetryError { error, attempts, waited })),
            },
        }
    }

    /// The wait after a call that failed with `error`, counted as waited; `None` to give up.
    fn wait<E>(&mut self, error: &E) -> Option<Duration>
    where
        D: Iterator<Item = Duration>,
        P: FnMut(&E) -> bool,
        H: FnMut(&E) -> Option<Hint>,
        N: FnMut(&E, Duration),
        C: FnMut() -> Duration,
    {
        if !(self.is_retriable)(error) {
            return None;
        }
        let delay = self.delays.next()?;
        let wait = (self.hint)(error).map_or(Some(delay), |hint| hint.over(delay))?;
        if (self.elapsed)().saturating_add(wait) > self.limit {
            return None;
        }
        (self.notify)(error, wait);
        self.retries = self.retries.saturating_add(1);
        self.waited = self.waited.saturating_add(wait);
        Some(wait)
    }
}
