//! The system clock, which no other file in this crate reads.

use std::time::SystemTime;

use comeback_engine::Timestamp;

/// The current time according to the system clock.
#[expect(clippy::disallowed_methods, reason = "the one place where the operator's half reads the clock")]
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(since_epoch.as_millis() as u64)
}
