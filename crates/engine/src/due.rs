//! When a retry is due: the backoff under `MAX_AGE`, and the draw behind it.

use std::hash::Hasher;
use std::time::Duration;

use comeback_backoff::{Backoff, Jitter};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use siphasher::sip::SipHasher13;

use crate::event::FailedEvent;
use crate::{Policy, Record, Timestamp};

/// The last retry is made this long before `MAX_AGE`, to be well inside it.
const LAST_RETRY_MARGIN: Duration = Duration::from_secs(60);

/// Rules 5 and 6: when the retry is due; `None` if no backoff fits before `MAX_AGE`. The backoff
/// starts at the first receive, so that it is served once, however often the message comes early.
pub(crate) fn due(
    event: &FailedEvent<'_>,
    record: &Record,
    policy: &Policy,
    now: Timestamp,
) -> Option<Timestamp> {
    let start = if is_first_receive(record) { now } else { record.first_receive };
    let due = start.saturating_add(delay(event, record, policy));
    let end = end(event, policy);
    if due <= end {
        return Some(due);
    }
    let last = end.since(start).saturating_sub(LAST_RETRY_MARGIN);
    (last >= LAST_RETRY_MARGIN).then(|| start.saturating_add(last))
}

/// `MAX_AGE` after the first failure.
pub(crate) fn end(event: &FailedEvent<'_>, policy: &Policy) -> Timestamp {
    event.first_failure.saturating_add(policy.max_age)
}

pub(crate) fn is_first_receive(record: &Record) -> bool {
    record.receive_count <= 1
}

/// Seeded by the message and the retry, so that whoever looks at the message draws the same delay;
/// decorrelated jitter by the event, whose chain must be the same on each of its messages.
fn delay(event: &FailedEvent<'_>, record: &Record, policy: &Policy) -> Duration {
    let mut rng = match policy.backoff.jitter {
        Jitter::Decorrelated => generator(&event.origin_request_id, 0),
        Jitter::Full | Jitter::Equal | Jitter::None => generator(&record.message_id, event.retry),
    };
    Duration::from_secs(policy.backoff.delay(event.retry, &mut rng))
}

/// How long a message is hidden whose action did not work: full jitter under min(3,600 s,
/// 2^receive count). At half an hour on average, 1,000 receives outlast 14 days.
pub(crate) fn hiding(record: &Record) -> Duration {
    let backoff = Backoff { base: 1, cap: 3_600, jitter: Jitter::Full };
    let count = u64::from(record.receive_count);
    Duration::from_secs(backoff.delay(count + 1, &mut generator(&record.message_id, count)))
}

fn generator(id: &str, number: u64) -> Xoshiro256PlusPlus {
    // Bytes are written one piece after another rather than through `Hash`, whose framing is not
    // the same on every platform. The id ends before the last eight bytes, so no two inputs meet.
    let mut hasher = SipHasher13::new();
    hasher.write(id.as_bytes());
    hasher.write(&number.to_le_bytes());
    Xoshiro256PlusPlus::seed_from_u64(hasher.finish())
}
