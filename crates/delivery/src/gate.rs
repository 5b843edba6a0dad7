use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_lock::{Semaphore, SemaphoreGuardArc};

use crate::pace::{Pace, Round};

/// What every call of a sender goes through, whichever delivery or clone makes it: so many at once, and no
/// faster than the service takes them.
#[derive(Debug)]
pub(crate) struct Gate {
    calls: Arc<Semaphore>,
    /// Held while the next call waits for its turn.
    turn: async_lock::Mutex<()>,
    pace: Mutex<Pace>,
}

/// Leave to make one call.
pub(crate) struct Pass {
    _permit: SemaphoreGuardArc,
    began: Round,
}

impl Gate {
    pub(crate) fn new(concurrency: usize) -> Self {
        Self {
            calls: Arc::new(Semaphore::new(concurrency)),
            turn: async_lock::Mutex::new(()),
            pace: Mutex::default(),
        }
    }

    /// Waits until a call may begin.
    pub(crate) async fn enter<F: Future<Output = ()>>(&self, sleep: impl Fn(Duration) -> F) -> Pass {
        // In this order: who waits longest for a turn is next, whereas a permit goes to whoever asks first.
        let _turn = self.turn.lock().await;
        let permit = self.calls.acquire_arc().await;
        let mut gap_left = self.gap();
        loop {
            let step = self.pace(|pace| pace.step(gap_left));
            if step.is_zero() {
                return Pass { _permit: permit, began: self.pace(|pace| pace.begin()) };
            }
            sleep(step).await;
            self.pace(|pace| pace.waited(step));
            gap_left = gap_left.saturating_sub(step);
        }
    }

    /// This share of the call's entries was throttled, and the others were taken.
    pub(crate) fn answered(&self, pass: &Pass, throttled: f64) {
        self.pace(|pace| pace.answered(pass.began, throttled));
    }

    /// The service asked for it.
    pub(crate) fn pause(&self, pause: Duration) {
        self.pace(|pace| pace.pause(pause));
    }

    /// The time that each call waits for after the one before.
    pub(crate) fn gap(&self) -> Duration {
        self.pace(|pace| pace.gap())
    }

    fn pace<T>(&self, work: impl FnOnce(&mut Pace) -> T) -> T {
        work(&mut self.pace.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
