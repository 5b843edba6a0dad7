use std::time::Duration;

use comeback_engine::QUEUE_VISIBILITY_TIMEOUT;

use crate::aws::id::Id;

/// Messages a standard queue can have in flight: received, and neither deleted nor visible again.
/// AWS says "approximately". Source: SQS quotas, "In-flight messages per queue (standard queue)".
pub const IN_FLIGHT_LIMIT: usize = 120_000;

/// How a queue is set up. The defaults are those of `template.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueSettings {
    /// For how long a receive hides a message; 1,230 s, so that 1,000 receives outlast the retention.
    pub(crate) visibility_timeout: Duration,
    /// For how long SQS stores a message after it was sent; 14 days, the most there is.
    pub(crate) retention: Duration,
    /// `maxReceiveCount`: SQS moves a message to the dead-letter queue, instead of handing it out,
    /// once it has been received this often; 1,000, the most there is.
    pub(crate) max_receive_count: u32,
    /// Messages that can be in flight (received, neither deleted nor visible again). At the limit
    /// a long poll returns nothing.
    pub(crate) in_flight_limit: usize,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            visibility_timeout: QUEUE_VISIBILITY_TIMEOUT,
            retention: Duration::from_secs(14 * 24 * 3_600),
            max_receive_count: 1_000,
            in_flight_limit: IN_FLIGHT_LIMIT,
        }
    }
}

/// Why the queue removed a message by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// Moved to the dead-letter queue, for `maxReceiveCount`.
    ReceivedTooOften,
    /// Deleted, because its retention ended.
    Expired,
}

/// A message that the queue removed by itself.
#[derive(Debug)]
pub(crate) struct Removed<T> {
    pub(crate) id: Id,
    pub(crate) carried: T,
    pub(crate) removal: Removal,
}
