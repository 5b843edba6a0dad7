//! The one file that asks for the time. Everything else takes the time as a parameter.

use std::time::SystemTime;

use comeback_engine::Timestamp;

/// The time. Codes end by it, and pages measure by it how old their figures are.
#[expect(clippy::disallowed_methods, reason = "this moment is what a page is asked for")]
pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(since_epoch.as_millis() as u64)
}
