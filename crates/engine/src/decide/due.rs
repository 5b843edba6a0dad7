//! When a retry is due: the backoff under `MAX_AGE`, the draw or the `RetryAfter` behind it, and the pauses after it.

use std::time::Duration;

use comeback_backoff::Jitter;
use rand::RngExt;

use crate::decide::paused::{due_after_pauses, end, end_when_noticed};
use crate::decide::ruled_out::RETENTION_MARGIN;
use crate::decide::seed::generator;
use crate::message::event::FailedEvent;
use crate::{Directive, Pauses, Policy, Record, Timestamp};

/// The last retry is made this long before the end of `MAX_AGE`, so that a late poll does not lose it; a
/// tenth of `MAX_AGE` if that is shorter.
const LAST_RETRY_MARGIN: Duration = Duration::from_secs(60);

/// A function asks for the same wait whenever it is overloaded: so much of it at most is added, so that not all come back
/// at once.
const RETRY_AFTER_JITTER: f64 = 0.1;

/// Rules 5 to 7: when the retry is due; `None` if no backoff fits before the `end` of its time. The backoff
/// starts at the first receive, so that it is served once, however often the message comes early.
pub(crate) fn due(
    event: &FailedEvent<'_>,
    record: &Record,
    policy: &Policy,
    pauses: &Pauses,
    now: Timestamp,
) -> Option<Timestamp> {
    let start = if is_first_receive(record) { now } else { record.first_receive };
    let end = last_moment(event, record, policy, pauses, now);
    let delay = cut(delay(event, record, policy, start), start, end, policy)?;
    let left_at = |over: Timestamp| {
        let end = end_when_noticed(over, event, policy, pauses, now).min(given_up(record));
        longest(over, end, policy)
    };
    Some(due_after_pauses(start.saturating_add(delay), event, record, pauses, now, left_at))
}

/// Rule 6: when `MAX_AGE` ends, or when the message is given up before SQS deletes it, if that is sooner.
pub(crate) fn last_moment(
    event: &FailedEvent<'_>,
    record: &Record,
    policy: &Policy,
    pauses: &Pauses,
    now: Timestamp,
) -> Timestamp {
    end(event, policy, pauses, now).min(given_up(record))
}

/// The end of rule 4's 13 days and 12 hours.
fn given_up(record: &Record) -> Timestamp {
    record.sent.saturating_add(RETENTION_MARGIN)
}

/// Rule 6: a wait from `start`, or as much of it as leaves time for a last retry before `end`; `None` if that is
/// too little.
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

/// Rule 5, from `start`.
fn delay(event: &FailedEvent<'_>, record: &Record, policy: &Policy, start: Timestamp) -> Duration {
    match event.directive {
        Some(Directive::RetryAfter(moment)) => {
            let wait = moment.since(event.failed_at);
            let seed = format!("{} RetryAfter", record.first_id());
            let share: f64 = generator(&seed, event.retry).random();
            moment.saturating_add(wait.mul_f64(RETRY_AFTER_JITTER * share)).since(start)
        }
        _ => draw(event, record, policy),
    }
}

/// Seeded by the message and the retry, so that every look at the message draws the same delay;
/// decorrelated jitter by the event, whose chain must be the same on each of its messages.
fn draw(event: &FailedEvent<'_>, record: &Record, policy: &Policy) -> Duration {
    let mut rng = match policy.backoff.jitter {
        Jitter::Decorrelated => generator(&event.origin_request_id, 0),
        Jitter::Full | Jitter::Equal | Jitter::None => generator(record.first_id(), event.retry),
    };
    Duration::from_secs(policy.backoff.delay(event.retry, &mut rng))
}
