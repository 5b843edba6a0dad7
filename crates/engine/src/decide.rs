//! The rules, in the order they apply. Pure and total: the same message, policy, pauses and time always
//! give the same answer, and no message can make it panic.
//!
//! *n* is the retry about to be made, 1 for the first; *t0* is the first failure; *start* is now on a
//! first receive, and the time of the first receive on a later one. A message that was moved is the
//! message that it was first: its receives, its id and its `SentTimestamp` count, but for the 13 days and
//! 12 hours of rule 4, which count from the `SentTimestamp` of the copy at hand.
//!
//! `MAX_AGE` stands for the moment at which it ends after *t0*. It does not count the time in which the event's
//! function was paused since *t0*, nor the time after each such pause in which every event that it held comes
//! back: 1,344 s after the longest time between two reads of the pauses. Of these times only what lies before now is
//! counted, and the 1,344 s.
//!
//! 1. A message that holds no invocation record, or a malformed envelope, is dead-lettered. An event
//!    that was redriven to the retry queue starts anew, with *n* = 1 and *t0* = `SentTimestamp`: a
//!    dead-letter of ours, or a record whose `timestamp` lies more than 24 h before `SentTimestamp`.
//! 2. An event of a function that `TARGET_FUNCTIONS` does not allow is dead-lettered
//!    (`target_not_allowed`).
//! 3. An event is dead-lettered if its record says 404 (`target_not_found`), or if its error type or the
//!    [simple name](crate::simple_name()) of it matches `NON_RETRYABLE_ERRORS` or is `NonRetryable`, `NonRetriable` or
//!    `NeverRetry` (`non_retryable_error`).
//! 4. An event is dead-lettered if *n* is over `MAX_RETRIES` (`max_retries`), if `MAX_AGE` has passed
//!    since *t0*, or if its message was sent over 13 days and 12 hours ago (both `max_age`).
//! 5. The delay is drawn in whole seconds, as `JITTER` says, under the ceiling
//!    min(`MAX_BACKOFF`, `BASE_BACKOFF` · 2^(*n*−1)), from a generator that the message seeds. If the error's
//!    simple name is `RetryAfter` and its message names a moment after the failure, the delay ends at that moment
//!    instead, whatever `MAX_BACKOFF` is, and up to a tenth of the time from the failure to that moment later. How
//!    much is drawn from another generator of the message. The failure was when the record says, and by
//!    `SentTimestamp` at the latest. If the moment has passed, there is no delay. Any other message changes nothing.
//! 6. A delay from *start* that would end later than *m* = min(60 s, `MAX_AGE`/10) before *t0* +
//!    `MAX_AGE`, or before the end of the 13 days and 12 hours of rule 4 if that is sooner, is cut to end there, and
//!    the event is dead-lettered (`max_age`) if that leaves under *m*.
//! 7. The retry is due at *start* + delay. If that is before the end of a pause of the function, and the
//!    pause is over, it is due within the pause's spread after that end, *m* before `MAX_AGE` at the latest;
//!    so for one pause after another. The moment is drawn from a generator that the message, *n* and the
//!    pause seed.
//! 8. A first receive defers the message by the delay; a later one defers it until it is due, which it is
//!    once less than 0.5 s is left.
//! 9. An event that is due while its function is paused is held: hidden for 1,344 s, or until the planned end
//!    of the pause if that is sooner.
//! 10. A deferral is rounded up to whole seconds, 1 at least, and ends at the latest 43,170 s after a
//!     first receive, or 41,940 s after now on a later one.
//! 11. An event is dead-lettered (`payload_too_large`) instead of re-invoked if the record of its next
//!     failure could be over 1,048,576 bytes: this record with its payload newly enveloped, and 64 KiB.
//!
//! With `DIRECTIVES` off, an error's simple name matters to `NON_RETRYABLE_ERRORS` only.
//!
//! | file | holds |
//! |---|---|
//! | `action` | [`Action`]: what is decided |
//! | `ruled_out` | rules 2 to 4: why there is no retry |
//! | `due`, `seed` | the moment a retry is due; the generator that a message seeds |
//! | `paused` | what pauses do to an event's times |

pub(crate) mod action;
pub(crate) mod due;
pub(crate) mod paused;
pub(crate) mod ruled_out;
pub(crate) mod seed;

use std::time::Duration;

use comeback_envelope::{Envelope, Metadata};

use action::Action;
use due::{due, is_first_receive};
use paused::hold;
use ruled_out::{out_of_time, rule_out};

use crate::dead_letter::SQS_MESSAGE_BYTES;
use crate::message::event::FailedEvent;
use crate::{Pauses, Policy, Reason, ReasonCode, Record, Timestamp};

/// SQS's longest visibility timeout. SQS counts it from the receive and refuses a longer one.
const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3_600);
/// Kept free below it for the time between the receive and SQS's receipt of our call.
const VISIBILITY_MARGIN: Duration = Duration::from_secs(30);
/// The retry queue's own `VisibilityTimeout`. SQS redrives a message after 1,000 receives at most, so
/// with a handler that cannot run this must be over 14 days / 1,000. Lambda may hand a message over this
/// late after its receive, if the handler was throttled.
pub const QUEUE_VISIBILITY_TIMEOUT: Duration = Duration::from_secs(1_230);
/// Less than this before the due time counts as due: SQS's clock and ours differ.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(500);
/// What the next failure record may hold beside the payload, more than this one does. Its
/// `responsePayload` has the error's message and stack trace, escaped: some ten KiB of an ordinary trace
/// in Java or Node, and none in a record of a throttled event.
const RECORD_ALLOWANCE: usize = 64 * 1_024;

/// Decides what happens to a message at `now`.
pub fn decide<'a>(record: &'a Record, policy: &Policy, pauses: &Pauses, now: Timestamp) -> Action<'a> {
    match FailedEvent::read(record) {
        Ok(event) if policy.directives() => retry(event, record, policy, pauses, now),
        Ok(event) => retry(FailedEvent { directive: None, ..event }, record, policy, pauses, now),
        Err(reason) => Action::DeadLetter { event: None, reason },
    }
}

/// Rules 2 to 11: when the next retry is due and what that means now, or why there is none.
fn retry<'a>(
    event: FailedEvent<'a>,
    record: &Record,
    policy: &Policy,
    pauses: &Pauses,
    now: Timestamp,
) -> Action<'a> {
    let due = match due_unless_ruled_out(&event, record, policy, pauses, now) {
        Ok(due) => due,
        Err(reason) => return Action::DeadLetter { event: Some(event), reason },
    };
    if let Some(visibility_timeout) = left_to_serve(record, now, due) {
        return Action::Defer { event, due, visibility_timeout };
    }
    if let Some(visibility_timeout) = hold(&event.function_arn, pauses, now) {
        return Action::Hold { event, due, visibility_timeout };
    }
    match envelope(&event, record, policy) {
        Ok(envelope) => Action::Reinvoke { event, due, envelope },
        Err(reason) => Action::DeadLetter { event: Some(event), reason },
    }
}

/// Rules 2 to 7.
fn due_unless_ruled_out(
    event: &FailedEvent<'_>,
    record: &Record,
    policy: &Policy,
    pauses: &Pauses,
    now: Timestamp,
) -> Result<Timestamp, Reason> {
    rule_out(event, record, policy, pauses, now)?;
    due(event, record, policy, pauses, now).ok_or_else(|| out_of_time(event, record, policy, pauses, now))
}

/// Rules 8 and 10: how long to hide the message for what is left of its backoff, in whole seconds;
/// `None` if it is due. On a first receive no backoff was served yet, so it is never due.
fn left_to_serve(record: &Record, now: Timestamp, due: Timestamp) -> Option<Duration> {
    let left = due.since(now);
    let first = is_first_receive(record);
    if !first && left < CLOCK_TOLERANCE {
        return None;
    }
    // When the current receive was is known only of the first.
    let since_receive = if first { now.since(record.first_receive) } else { QUEUE_VISIBILITY_TIMEOUT };
    let longest = LONGEST_VISIBILITY.saturating_sub(since_receive + VISIBILITY_MARGIN);
    let rounded_up = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    Some(Duration::from_secs(rounded_up.min(longest.as_secs()).max(1)))
}

/// Rule 11. Lambda drops the record of a failure that is over SQS's limit without a word, so a retry
/// whose own failure could not come back is not made.
fn envelope<'a>(event: &FailedEvent<'a>, record: &Record, policy: &Policy) -> Result<Envelope<'a>, Reason> {
    let metadata = Metadata {
        attempt: event.retry,
        initial_timestamp: event.first_failure.as_secs(),
        origin_request_id: Some(event.origin_request_id.clone()),
    };
    let envelope = Envelope { metadata, original_payload: event.payload.clone() };
    let sealed = envelope.sealed_len(policy.envelope);
    let next_record = record.body.len() - event.received_payload_bytes + sealed + RECORD_ALLOWANCE;
    if next_record <= SQS_MESSAGE_BYTES {
        return Ok(envelope);
    }
    let detail = format!(
        "the record of its next failure could have {next_record} bytes; SQS takes {SQS_MESSAGE_BYTES}"
    );
    Err(Reason::new(ReasonCode::PayloadTooLarge, detail))
}
