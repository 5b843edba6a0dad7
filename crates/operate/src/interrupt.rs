use tokio::sync::watch;

use crate::Failure;

/// Whether the operator has asked a command to stop. Long work looks at it between two calls, gives back what it holds,
/// and ends with a summary.
#[derive(Clone, Debug)]
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// An interrupt, and what raises it by sending `true`.
    #[must_use]
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (raise, raised) = watch::channel(false);
        (raise, Self(raised))
    }

    /// Whether it was raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is raised; for ever if it never is.
    pub async fn raised(&self) {
        let mut raised = self.0.clone();
        if raised.wait_for(|raised| *raised).await.is_err() {
            // Nothing is left that could raise it.
            std::future::pending::<()>().await;
        }
    }

    /// Work that may be dropped at any moment, because it changes nothing.
    ///
    /// # Errors
    ///
    /// Its own, and [`Failure::Interrupted`].
    pub async fn or<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            result = work => result,
            () = self.raised() => Err(Failure::Interrupted("nothing was changed".into())),
        }
    }
}
