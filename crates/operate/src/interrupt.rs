//! [`Interrupt`], an operator's signal to stop.

use tokio::sync::watch;

use crate::failure::Failure;

/// An operator's signal to stop long-running work. The signal is checked between calls to AWS. Once it is raised, the
/// dead-letters that the work hid are made visible again, and the operator gets a report of what was done.
#[derive(Clone, Debug)]
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Creates an interrupt, and a sender that raises it by sending `true`.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (raise, raised) = watch::channel(false);
        (raise, Self(raised))
    }

    /// An interrupt that is raised by sending `true` through `raise`.
    pub fn of(raise: &watch::Sender<bool>) -> Self {
        Self(raise.subscribe())
    }

    /// An interrupt that is never raised.
    pub fn never() -> Self {
        Self::new().1
    }

    /// Returns true once the interrupt has been raised.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the interrupt is raised, or forever if the sender is dropped first.
    pub async fn raised(&self) {
        if self.0.clone().wait_for(|raised| *raised).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Awaits `work` until it completes or the interrupt is raised. `work` must not change anything, because it may
    /// be dropped at any moment.
    ///
    /// # Errors
    ///
    /// Returns the future's own error, or [`Failure::Interrupted`] if the interrupt was raised.
    pub async fn or<T, E: From<Failure>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        tokio::select! {
            result = work => result,
            () = self.raised() => Err(Failure::interrupted("nothing was changed").into()),
        }
    }
}
