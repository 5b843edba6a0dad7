use std::time::Duration;

use comeback_backoff::{Backoff, Jitter};

use crate::Record;
use crate::decide::seed::generator;

/// How long a message is hidden whose step did not work: full jitter under min(3,600 s,
/// 2^receive count). At half an hour on average, 1,000 receives outlast 14 days.
pub(super) fn hiding(record: &Record) -> Duration {
    let backoff = Backoff { base: 1, cap: 3_600, jitter: Jitter::Full };
    let count = u64::from(record.receive_count);
    Duration::from_secs(backoff.delay(count + 1, &mut generator(&record.message_id, count)))
}
