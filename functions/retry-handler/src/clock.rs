//! The only file in the handler that reads the clock.

use std::time::SystemTime;

use comeback_engine::Timestamp;

/// Only the handler's outermost layer calls this function; all other code receives the time as a parameter.
#[expect(clippy::disallowed_methods)]
pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}
