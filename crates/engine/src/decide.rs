//! The rules, in the order they apply. Pure and total: the same message, policy and time always
//! give the same answer, and no message can make it panic.

use std::time::Duration;

use comeback_envelope::{Envelope, Metadata};

use crate::dead_letter::SQS_MESSAGE_BYTES;
use crate::due::{due, end, is_first_receive};
use crate::event::FailedEvent;
use crate::{Policy, Reason, ReasonCode, Record, Timestamp};

/// SQS's longest visibility timeout. It is counted from the receive, over it SQS errors.
const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3_600);
/// Kept free below it for the time between the receive and SQS's receipt of our call.
const VISIBILITY_MARGIN: Duration = Duration::from_secs(30);
/// SQS keeps a message for 14 days at most; one this old must not be hidden again.
const RETENTION_MARGIN: Duration = Duration::from_secs((13 * 24 + 12) * 3_600);
/// Less than this before the due time counts as due: SQS's clock and ours differ.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(500);
/// Of an error type in a detail, which is logged; a function may write a megabyte there.
const SHOWN_CHARACTERS: usize = 256;
/// What a failure record may hold beside the payload, more than the last one did.
const RECORD_ALLOWANCE: usize = 3 * 1_024;

/// What happens to a message next.
#[derive(Clone, Debug)]
pub enum Action<'a> {
    /// Hide the message for a while and keep it.
    Defer {
        /// Whole seconds, 1 to 43,170.
        visibility_timeout: Duration,
    },
    /// Call the target again with this.
    Reinvoke(Envelope<'a>),
    /// Give the event up.
    DeadLetter(Reason),
}

/// An [`Action`] and what it was decided from.
#[derive(Clone, Debug)]
pub struct Decision<'a> {
    /// The event; `None` if the message could not be understood.
    pub event: Option<FailedEvent<'a>>,
    /// When the retry is due; `None` if there will be none.
    pub due: Option<Timestamp>,
    /// What to do now.
    pub action: Action<'a>,
}

/// Decides what happens to a message at `now`.
pub fn decide<'a>(record: &'a Record, policy: &Policy, now: Timestamp) -> Decision<'a> {
    let event = match FailedEvent::read(record) {
        Ok(event) => event,
        Err(reason) => return Decision { event: None, due: None, action: Action::DeadLetter(reason) },
    };
    let (due, action) = match retry(&event, record, policy, now) {
        Ok((due, action)) => (Some(due), action),
        Err(reason) => (None, Action::DeadLetter(reason)),
    };
    Decision { event: Some(event), due, action }
}

/// Rules 2 to 9: when the next retry is due and what that means now, or why there is none.
fn retry<'a>(
    event: &FailedEvent<'a>,
    record: &Record,
    policy: &Policy,
    now: Timestamp,
) -> Result<(Timestamp, Action<'a>), Reason> {
    rule_out(event, record, policy, now)?;
    let due = due(event, record, policy, now).ok_or_else(|| too_old(event, policy))?;
    let action = match left_to_serve(record, now, due) {
        Some(visibility_timeout) => Action::Defer { visibility_timeout },
        None => Action::Reinvoke(envelope(event, record, policy)?),
    };
    Ok((due, action))
}

/// Rules 2 to 4: what rules a retry out, whenever it would be.
fn rule_out(event: &FailedEvent<'_>, record: &Record, policy: &Policy, now: Timestamp) -> Result<(), Reason> {
    if !policy.allows(&event.function_arn) {
        return Err(Reason::new(ReasonCode::TargetNotAllowed, "the function is not on TARGET_FUNCTIONS"));
    }
    if event.not_found {
        return Err(Reason::new(ReasonCode::TargetNotFound, "the invocation record says 404"));
    }
    if let Some(error_type) = event.error_type().filter(|error| policy.is_non_retryable(error)) {
        let error_type: String = error_type.chars().take(SHOWN_CHARACTERS).collect();
        let detail = format!("{error_type} matches NON_RETRYABLE_ERRORS");
        return Err(Reason::new(ReasonCode::NonRetryableError, detail));
    }
    if event.retry > policy.max_retries {
        let detail = format!("{} retries made; MAX_RETRIES is {}", event.retries_made(), policy.max_retries);
        return Err(Reason::new(ReasonCode::MaxRetries, detail));
    }
    if now > end(event, policy) {
        return Err(too_old(event, policy));
    }
    if now.since(record.sent) > RETENTION_MARGIN {
        let detail = format!("sent to the retry queue at {}; SQS keeps a message for 14 days", record.sent);
        return Err(Reason::new(ReasonCode::MaxAge, detail));
    }
    Ok(())
}

fn too_old(event: &FailedEvent<'_>, policy: &Policy) -> Reason {
    let detail =
        format!("first failed at {}; MAX_AGE is {} s", event.first_failure, policy.max_age.as_secs());
    Reason::new(ReasonCode::MaxAge, detail)
}

/// Rules 7 and 8: how long to hide the message for what is left of its backoff, in whole seconds;
/// `None` if it is due. On a first receive no backoff was served yet, so it is never due.
fn left_to_serve(record: &Record, now: Timestamp, due: Timestamp) -> Option<Duration> {
    let left = due.since(now);
    let first = is_first_receive(record);
    if !first && left < CLOCK_TOLERANCE {
        return None;
    }
    // When the current receive was is known only of the first.
    let since_receive = if first { now.since(record.first_receive) } else { Duration::ZERO };
    let longest = LONGEST_VISIBILITY.saturating_sub(since_receive + VISIBILITY_MARGIN);
    let rounded_up = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    Some(Duration::from_secs(rounded_up.min(longest.as_secs()).max(1)))
}

/// Rule 9. Lambda drops the record of a failure that is over SQS's limit without a word, so a retry
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
