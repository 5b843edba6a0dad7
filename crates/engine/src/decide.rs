//! The rules, in the order they apply. Pure and total: the same message, policy and time always
//! give the same answer, and no message can make it panic.

use std::time::Duration;

use comeback_backoff::{Backoff, Jitter};
use comeback_envelope::{Envelope, Metadata};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;

use crate::dead_letter::SQS_MESSAGE_BYTES;
use crate::event::FailedEvent;
use crate::{Policy, Reason, ReasonCode, Record, Timestamp};

/// SQS's longest visibility timeout. It is counted from the receive, over it SQS errors.
const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3_600);
/// Kept free below it for the time between the receive and SQS's receipt of our call.
const VISIBILITY_MARGIN: Duration = Duration::from_secs(30);
/// The last retry is made this long before `MAX_AGE`, to be well inside it.
const LAST_RETRY_MARGIN: Duration = Duration::from_secs(60);
/// SQS keeps a message for 14 days at most; one this old must not be hidden again.
const RETENTION_MARGIN: Duration = Duration::from_secs((13 * 24 + 12) * 3_600);
/// Less than this before the due time counts as due: SQS's clock and ours differ.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(500);
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
    let given_up = |reason| (None, Action::DeadLetter(reason));
    let (due, action) = match never_again(&event, record, policy, now) {
        Some(reason) => given_up(reason),
        None => match due(&event, record, policy, now) {
            Ok(due) => (Some(due), when_due(&event, record, policy, now, due)),
            Err(reason) => given_up(reason),
        },
    };
    Decision { event: Some(event), due, action }
}

/// Rules 2 to 4: what rules a retry out whenever it would be.
fn never_again(event: &FailedEvent<'_>, record: &Record, policy: &Policy, now: Timestamp) -> Option<Reason> {
    if !policy.allows(&event.function_arn) {
        return Some(Reason::new(ReasonCode::TargetNotAllowed, "the function is not on TARGET_FUNCTIONS"));
    }
    if event.not_found {
        return Some(Reason::new(ReasonCode::TargetNotFound, "the invocation record says 404"));
    }
    if let Some(error_type) = event.error_type().filter(|error| policy.is_non_retryable(error)) {
        let detail = format!("{error_type} matches NON_RETRYABLE_ERRORS");
        return Some(Reason::new(ReasonCode::NonRetryableError, detail));
    }
    if event.retry > policy.max_retries {
        let detail = format!("{} retries made; MAX_RETRIES is {}", event.retries_made(), policy.max_retries);
        return Some(Reason::new(ReasonCode::MaxRetries, detail));
    }
    if now > event.first_failure.saturating_add(policy.max_age) {
        return Some(too_old(event, policy));
    }
    if now.since(record.sent) > RETENTION_MARGIN {
        let detail = format!("sent to the retry queue at {}; SQS keeps a message for 14 days", record.sent);
        return Some(Reason::new(ReasonCode::MaxAge, detail));
    }
    None
}

fn too_old(event: &FailedEvent<'_>, policy: &Policy) -> Reason {
    let detail =
        format!("first failed at {}; MAX_AGE is {} s", event.first_failure, policy.max_age.as_secs());
    Reason::new(ReasonCode::MaxAge, detail)
}

/// Rules 5 and 6: when the retry is due. The backoff starts at the first receive, so that it is
/// served once, however often the message comes early.
fn due(
    event: &FailedEvent<'_>,
    record: &Record,
    policy: &Policy,
    now: Timestamp,
) -> Result<Timestamp, Reason> {
    let start = if is_first_receive(record) { now } else { record.first_receive };
    let due = start.saturating_add(delay(event, record, policy));
    let end = event.first_failure.saturating_add(policy.max_age);
    if due <= end {
        return Ok(due);
    }
    let last = end.since(start).saturating_sub(LAST_RETRY_MARGIN);
    if last < LAST_RETRY_MARGIN { Err(too_old(event, policy)) } else { Ok(start.saturating_add(last)) }
}

/// Rules 7 to 9: serve what is left of the backoff, then re-invoke.
fn when_due<'a>(
    event: &FailedEvent<'a>,
    record: &Record,
    policy: &Policy,
    now: Timestamp,
    due: Timestamp,
) -> Action<'a> {
    let left = due.since(now);
    let hidden_already = now.since(record.first_receive);
    if is_first_receive(record) {
        let longest = LONGEST_VISIBILITY.saturating_sub(hidden_already).saturating_sub(VISIBILITY_MARGIN);
        return defer(left.min(longest).as_secs());
    }
    if left >= CLOCK_TOLERANCE {
        let longest = LONGEST_VISIBILITY - VISIBILITY_MARGIN;
        return defer(left.min(longest).as_millis().div_ceil(1_000) as u64);
    }
    reinvoke(event, record, policy)
}

fn defer(seconds: u64) -> Action<'static> {
    Action::Defer { visibility_timeout: Duration::from_secs(seconds.max(1)) }
}

/// Lambda drops the record of a failure that is over SQS's limit without a word, so a retry whose
/// own failure could not come back is not made.
fn reinvoke<'a>(event: &FailedEvent<'a>, record: &Record, policy: &Policy) -> Action<'a> {
    let metadata = Metadata {
        attempt: event.retry,
        initial_timestamp: event.first_failure.as_secs(),
        origin_request_id: Some(event.origin_request_id.clone()),
    };
    let envelope = Envelope { metadata, original_payload: event.payload.clone() };
    let sealed = envelope.seal(policy.envelope).len();
    let next_record = record.body.len() - event.received_payload_bytes + sealed + RECORD_ALLOWANCE;
    if next_record <= SQS_MESSAGE_BYTES {
        return Action::Reinvoke(envelope);
    }
    let detail = format!(
        "the record of its next failure could have {next_record} bytes; SQS takes {SQS_MESSAGE_BYTES}"
    );
    Action::DeadLetter(Reason::new(ReasonCode::PayloadTooLarge, detail))
}

fn is_first_receive(record: &Record) -> bool {
    record.receive_count <= 1
}

/// Rule 5. Seeded by the message and the retry, so that whoever looks at the message draws the same
/// delay; decorrelated jitter by the event, whose chain must be the same on each of its messages.
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
    let backoff = Backoff { base: 2, cap: 3_600, jitter: Jitter::Full };
    let count = u64::from(record.receive_count);
    Duration::from_secs(backoff.delay(count, &mut generator(&record.message_id, count)))
}

fn generator(id: &str, number: u64) -> Xoshiro256PlusPlus {
    // Bytes are written one piece after another rather than through `Hash`, whose framing is not
    // the same on every platform. The id ends before the last eight bytes, so no two inputs meet.
    let mut hasher = SipHasher13::new();
    hasher.write(id.as_bytes());
    hasher.write(&number.to_le_bytes());
    Xoshiro256PlusPlus::seed_from_u64(hasher.finish())
}
