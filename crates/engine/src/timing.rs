//! Durations that several rules share: SQS's limits, and the intervals between checks of held events and between reads
//! of the pauses.

use std::time::Duration;

/// SQS's maximum retention period: no message stays in a queue for longer.
pub const RETENTION: Duration = Duration::from_secs(14 * 86_400);
/// The longest visibility timeout that SQS accepts. SQS counts the timeout from the receive.
pub const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3_600);
/// Margin subtracted from [`LONGEST_VISIBILITY`], because the handler's call reaches SQS some time after the receive.
pub(crate) const VISIBILITY_MARGIN: Duration = Duration::from_secs(30);
/// The retry queue's own `VisibilityTimeout`. The timeout must exceed a thousandth of 14 days: SQS dead-letters a
/// message after 1,000 receives, and must not do so while the handler cannot run. If the handler is throttled, Lambda
/// may deliver a message up to this long after receiving it.
pub const QUEUE_VISIBILITY_TIMEOUT: Duration = Duration::from_secs(1_230);
/// Interval between two checks of a held message (a message whose function is paused). At this interval, a message is
/// received 900 times in the 14 days before SQS deletes it. SQS allows 1,000 receives.
pub const HOLD: Duration = Duration::from_secs(RETENTION.as_secs() / 900);
/// Maximum wait after a failed call, such as a refused `Invoke`. The average wait is half of that, so 1,000 receives
/// take longer than the 14 days for which SQS keeps a message.
pub(crate) const LONGEST_AFTER_FAILURE: Duration = Duration::from_secs(3_600);
/// A message older than this is dead-lettered instead of being hidden again, because SQS deletes messages after 14
/// days.
pub(crate) const RETENTION_MARGIN: Duration = Duration::from_secs((13 * 24 + 12) * 3_600);
/// Minimum time between two reads of the pauses in one environment. With more than 100 environments, the time is
/// longer, so that all environments together read about three times a second. SSM allows 40 `GetParameter` calls a
/// second.
const BETWEEN_READS: Duration = Duration::from_secs(30);
const PER_ENVIRONMENT: Duration = Duration::from_millis(300);
/// Maximum time between two reads of the pauses, as a multiple of the minimum. Each environment draws its own multiple,
/// so that the environments do not all read at the same time.
pub(crate) const BETWEEN_READS_AT_MOST: f64 = 1.25;

/// The longest time between two reads of the pauses, and so the longest time until a busy environment notices a change:
/// 37.5 s, or 0.375 s × `environments` if that is longer.
pub fn longest_between_reads(environments: u64) -> Duration {
    between_reads(environments).mul_f64(BETWEEN_READS_AT_MOST)
}

pub(crate) fn between_reads(environments: u64) -> Duration {
    let environments = u32::try_from(environments).unwrap_or(u32::MAX);
    BETWEEN_READS.max(PER_ENVIRONMENT * environments)
}
