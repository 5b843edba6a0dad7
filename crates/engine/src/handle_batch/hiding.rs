//! How long a message waits whose step did not work.

use std::ops::RangeInclusive;
use std::time::Duration;

use comeback_backoff::{Backoff, Jitter};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use super::answered::isolated;
use super::waiting::Wait;
use crate::account::INVOKE_TIMEOUT;
use crate::decide::due::cut;
use crate::decide::paused::end;
use crate::decide::seed::generator;
use crate::message::event::FailedEvent;
use crate::message::moved::LONGEST_CARRIED;
use crate::{Pauses, Policy, Record, Timestamp};

/// The hiding after an unanswered `Invoke` is drawn from this range, in seconds. Each repeat of an
/// accepted one that fails is one more chain, and so is each repeat of theirs: with an hour between
/// repeats, a blackout of up to an hour cannot multiply an event twice.
const AFTER_UNANSWERED: RangeInclusive<u64> = 3_600..=LONGEST_CARRIED.as_secs();

/// How long a message is hidden whose step did not work: full jitter under min(3,600 s,
/// 2^receive count). At half an hour on average, 1,000 receives outlast 14 days.
pub(super) fn after_failure(record: &Record) -> Duration {
    let backoff = Backoff::new(1, 3_600, Jitter::Full);
    let count = u64::from(record.receive_count);
    Duration::from_secs(backoff.delay(count + 1, &mut generator_of(record)))
}

/// Another one on each receive.
fn generator_of(record: &Record) -> Xoshiro256PlusPlus {
    generator(record.first_id(), u64::from(record.receive_count))
}

/// How long a message is hidden at least whose copy may have been accepted: as after an unanswered
/// re-invocation, for each accepted copy is a chain of its own.
pub(super) fn after_lost_copy(record: &Record, policy: &Policy, pauses: &Pauses, now: Timestamp) -> Duration {
    match isolated(|| FailedEvent::read(record)) {
        Ok(Ok(event)) => after_unanswered(record, &event, policy, pauses, now),
        _ => Duration::from_secs(generator_of(record).random_range(AFTER_UNANSWERED)),
    }
}

/// What is left of a wait that a moved message carries: the step of the message before it did not work, or
/// its function is paused.
pub(super) fn carried(record: &Record, now: Timestamp) -> Option<Wait> {
    let not_before = record.moved.as_ref()?.not_before?;
    let left = Duration::from_secs(not_before.since(now).as_millis().div_ceil(1_000) as u64);
    (!left.is_zero()).then_some(Wait { visibility_timeout: left, left, not_before: Some(not_before) })
}

/// How long a message is hidden whose re-invocation may have been accepted: one to two hours, cut by
/// rule 6 so that a last try is left. With too little time for one, what comes back is given up.
pub(super) fn after_unanswered(
    record: &Record,
    event: &FailedEvent<'_>,
    policy: &Policy,
    pauses: &Pauses,
    now: Timestamp,
) -> Duration {
    let drawn = Duration::from_secs(generator_of(record).random_range(AFTER_UNANSWERED));
    // `now` is when the batch came; the call is made once this invoke and those before it have ended.
    let start = now.saturating_add(INVOKE_TIMEOUT);
    let end = end(event, policy, pauses, now);
    Duration::from_secs(cut(drawn, start, end, policy).unwrap_or(drawn).as_secs().max(1))
}
