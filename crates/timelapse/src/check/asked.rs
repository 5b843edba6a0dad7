//! What a target asked for with `RetryAfter`: by what the simulated world had it say, and with arithmetic of its own.

use std::time::Duration;

use comeback_engine::Timestamp;

/// A wait that an attempt asked for when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) wait: Duration,
    /// When it failed, if its record says so.
    pub(crate) written: Option<Timestamp>,
}

/// When the retry may be due: the wait, and up to a tenth of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) earliest: Timestamp,
    pub(crate) latest: Timestamp,
}

impl Asked {
    /// Of a message that was first sent then, for all that its handler sees.
    pub(crate) fn window(&self, first_sent: Timestamp) -> Window {
        let earliest = self.written.unwrap_or(first_sent).saturating_add(self.wait);
        Window { earliest, latest: earliest.saturating_add(self.wait / 10) }
    }
}
