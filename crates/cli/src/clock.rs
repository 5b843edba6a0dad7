//! The only file in this crate that reads the clock.

use std::time::Duration;

pub(crate) use comeback_operate::clock::now;

/// Runs `work`, and returns its result and the wall time that it took. Commands leave this time out of their JSON, so
/// that the same seed gives the same bytes.
#[expect(clippy::disallowed_methods, reason = "wall time is what is measured")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = std::time::Instant::now();
    let result = work();
    (result, start.elapsed())
}
