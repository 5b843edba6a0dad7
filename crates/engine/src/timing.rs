//! Durations that several rules share.

use std::time::Duration;

/// SQS's maximum retention period.
pub const RETENTION: Duration = Duration::from_secs(14 * 86_400);
/// The longest visibility timeout that SQS accepts, counted from the receive.
pub const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3_600);
/// Margin subtracted from [`LONGEST_VISIBILITY`], because the handler's call reaches SQS some time after the receive.
pub(crate) const VISIBILITY_MARGIN: Duration = Duration::from_secs(30);
/// The retry queue's own `VisibilityTimeout`. SQS dead-letters a message after 1,000 receives, which take longer than
/// 14 days with this timeout.
pub const QUEUE_VISIBILITY_TIMEOUT: Duration = Duration::from_secs(1_230);
/// Interval between two checks of a held message: 900 receives in 14 days, below SQS's limit of 1,000.
pub const HOLD: Duration = Duration::from_secs(RETENTION.as_secs() / 900);
/// Maximum wait after a failed call. The average wait is half of it, so 1,000 receives take longer than 14 days.
pub(crate) const LONGEST_AFTER_FAILURE: Duration = Duration::from_secs(3_600);
/// A message older than this is dead-lettered instead of being hidden again, because SQS deletes messages after 14
/// days.
pub(crate) const RETENTION_MARGIN: Duration = Duration::from_secs((13 * 24 + 12) * 3_600);
/// Minimum time between two reads of the pauses in one environment.
const BETWEEN_READS: Duration = Duration::from_secs(30);
/// With many environments, the minimum time between two reads in one environment is this time multiplied by the number
/// of environments. Together, they make at most about three reads a second. SSM allows 40 `GetParameter` calls
/// a second.
const PER_ENVIRONMENT: Duration = Duration::from_millis(300);
/// Maximum time between two reads of the pauses, as a multiple of the minimum. The actual time is random, which spreads
/// the reads of many environments.
pub(crate) const BETWEEN_READS_AT_MOST: f64 = 1.25;

/// The longest time between two reads of the pauses: 37.5 s, or 0.375 s × `environments` if that is longer. A busy
/// environment notices a change within this time.
pub fn longest_between_reads(environments: u64) -> Duration {
    between_reads(environments).mul_f64(BETWEEN_READS_AT_MOST)
}

pub(crate) fn between_reads(environments: u64) -> Duration {
    let environments = u32::try_from(environments).unwrap_or(u32::MAX);
    BETWEEN_READS.max(PER_ENVIRONMENT * environments)
}
