//! The only file of this crate that reads the clock. All other code takes the time as a parameter.

use std::time::{Duration, SystemTime};

use comeback_engine::Timestamp;

/// Returns the current time. `comeback replay --shift-to-now` shifts the times of events to it.
#[expect(clippy::disallowed_methods, reason = "this moment is what the command is asked for")]
pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(since_epoch.as_millis() as u64)
}

/// Runs `work` and returns its result and its wall time. A command must not print the wall time as JSON, because the
/// same seed must give the same bytes.
#[expect(clippy::disallowed_methods, reason = "wall time is what is measured")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = std::time::Instant::now();
    let result = work();
    (result, start.elapsed())
}
