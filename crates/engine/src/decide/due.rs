//! When a retry is due: the backoff under `MAX_AGE`, the draw behind it, and the pauses after it.

use std::time::Duration;

use comeback_backoff::Jitter;

use crate::decide::paused::{due_after_pauses, end, end_when_noticed};
use crate::decide::seed::generator;
use crate::message::event::FailedEvent;
use crate::{Pauses, Policy, Record, Timestamp};

/// The last retry is made this long before the end of `MAX_AGE`, so that a late poll does not lose it; a
/// tenth of `MAX_AGE` if that is shorter.
const LAST_RETRY_MARGIN: Duration = Duration::from_secs(60);

/// Rules 5 to 7: when the retry is due; `None` if no backoff fits before `MAX_AGE`. The backoff
/// starts at the first receive, so that it is served once, however often the message comes early.
pub(crate) fn due(
    event: &FailedEvent<'_>,
    record: &Record,
    policy: &Policy,
    pauses: &Pauses,
    now: Timestamp,
) -> Option<Timestamp> {
    let start = if is_first_receive(record) { now } else { record.first_receive };
    let end = end(event, policy, pauses, now);
    let delay = cut(delay(event, record, policy), start, end, policy)?;
    let left_at = |over: Timestamp| longest(over, end_when_noticed(over, event, policy, pauses), policy);
    Some(due_after_pauses(start.saturating_add(delay), event, record, pauses, now, left_at))
}

/// Rule 6: a wait from `start`, or as much of it as leaves time for a last retry before the `end` of
/// `MAX_AGE`; `None` if that is too little.
pub(crate) fn cut(wait: Duration, start: Timestamp, end: Timestamp, policy: &Policy) -> Option<Duration> {
    let longest = longest(start, end, policy);
    (wait <= longest || longest >= margin(policy)).then(|| wait.min(longest))
}

fn longest(start: Timestamp, end: Timestamp, policy: &Policy) -> Duration {
    end.since(start).saturating_sub(margin(policy))
}

fn margin(policy: &Policy) -> Duration {
    LAST_RETRY_MARGIN.min(policy.max_age / 10)
}

pub(crate) fn is_first_receive(record: &Record) -> bool {
    record.receive_count <= 1
}

/// Seeded by the message and the retry, so that every look at the message draws the same delay;
/// decorrelated jitter by the event, whose chain must be the same on each of its messages.
fn delay(event: &FailedEvent<'_>, record: &Record, policy: &Policy) -> Duration {
    let mut rng = match policy.backoff.jitter {
        Jitter::Decorrelated => generator(&event.origin_request_id, 0),
        Jitter::Full | Jitter::Equal | Jitter::None => generator(record.first_id(), event.retry),
    };
    Duration::from_secs(policy.backoff.delay(event.retry, &mut rng))
}
