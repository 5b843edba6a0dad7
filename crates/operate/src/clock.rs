//! This machine's clock. No other file of this crate reads it.

use std::time::SystemTime;

use comeback_engine::Timestamp;

/// The current time by this machine's clock.
#[expect(clippy::disallowed_methods, reason = "the one place where the operator's half reads the clock")]
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(since_epoch.as_millis() as u64)
}
