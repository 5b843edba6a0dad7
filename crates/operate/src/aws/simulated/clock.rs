//! The clock of a simulated account.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use comeback_engine::Timestamp;

use super::calls::yield_now;

/// The clock of a simulated account.
#[async_trait(?Send)]
pub trait Clock: fmt::Debug {
    /// The current time in the simulated account. It never goes backwards.
    fn now(&self) -> Timestamp;

    /// Waits until the clock shows this time.
    async fn sleep_until(&self, time: Timestamp);
}

/// A clock that stands still until it is set. A sleep sets it to the time at which the sleep ends.
#[derive(Debug)]
pub struct ManualClock(Cell<Timestamp>);

impl ManualClock {
    /// Creates a clock that shows the time `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self(Cell::new(now))
    }

    /// Sets the clock, unless the time is in the past.
    pub fn set(&self, time: Timestamp) {
        self.0.set(self.now().max(time));
    }

    /// Moves the clock forward by a duration.
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
