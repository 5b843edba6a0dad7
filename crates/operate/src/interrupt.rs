//! An operator's request to stop.

use tokio::sync::watch;

use crate::failure::Failure;

/// An operator's request to stop. Long work checks it between two calls, gives back dead-letters that it holds, and
/// sums up.
#[derive(Clone, Debug)]
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// An interrupt, and the sender that raises it with `true`.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (raise, raised) = watch::channel(false);
        (raise, Self(raised))
    }

    /// An interrupt that this sender raises.
    pub fn of(raise: &watch::Sender<bool>) -> Self {
        Self(raise.subscribe())
    }

    /// An interrupt that nobody raises.
    pub fn never() -> Self {
        Self::new().1
    }

    /// Returns true once it is raised.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is raised, or for ever if its sender is gone.
    pub async fn raised(&self) {
        if self.0.clone().wait_for(|raised| *raised).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Does work that may be dropped at any moment, because it changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the work, or [`Failure::Interrupted`].
    pub async fn or<T, E: From<Failure>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        tokio::select! {
            result = work => result,
            () = self.raised() => Err(Failure::interrupted("nothing was changed").into()),
        }
    }
}
