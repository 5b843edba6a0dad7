//! The clock of a simulated account.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use comeback_engine::Timestamp;

use super::calls::yield_now;

/// The clock of an account.
#[async_trait(?Send)]
pub trait Clock: fmt::Debug {
    /// The time of the account, which never goes back.
    fn now(&self) -> Timestamp;

    /// Waits until the clock shows this time.
    async fn sleep_until(&self, time: Timestamp);
}

/// A clock that stands still until it is set. A sleep sets the clock to the time when the sleep ends, so that nobody
/// waits and every run is the same.
#[derive(Debug)]
pub struct ManualClock(Cell<Timestamp>);

impl ManualClock {
    /// A clock that shows this time.
    pub const fn new(now: Timestamp) -> Self {
        Self(Cell::new(now))
    }

    /// Sets the clock. An earlier time than the current one is ignored.
    pub fn set(&self, time: Timestamp) {
        self.0.set(self.now().max(time));
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        self.set(self.now().saturating_add(duration));
    }
}

#[async_trait(?Send)]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.0.get()
    }

    async fn sleep_until(&self, time: Timestamp) {
        yield_now().await;
        self.set(time);
    }
}
