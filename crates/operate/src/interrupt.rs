//! [`Interrupt`], an operator's signal to stop.

use tokio::sync::watch;

use crate::failure::Failure;

/// An operator's signal to stop long-running work. The signal is checked between calls to AWS. Once it is raised, the
/// dead-letters that the work hid are made visible again, and the operator gets a report of what was done.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(watch::Sender<bool>);

impl Interrupt {
    /// Raises this interrupt and all its clones.
    pub fn raise(&self) {
        self.0.send_replace(true);
    }

    /// Returns true once the interrupt has been raised.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the interrupt is raised.
    pub async fn raised(&self) {
        // The wait cannot fail, because this value keeps the channel open.
        let _ = self.0.subscribe().wait_for(|raised| *raised).await;
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
