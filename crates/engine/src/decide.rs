//! The rules, in the order they apply. Pure and total: the same message, policy, pauses and time always give the same
//! answer, and no message can make it panic.
//!
//! *n* is the retry about to be made, 1 for the first. *t0* is the first failure. *start* is now on a first receive, and
//! the time of the first receive on a later one.
//!
//! A moved message counts as the message that it was first, with its id, its receives and its `SentTimestamp`. Only the
//! 13 days and 12 hours of rule 4 count from the `SentTimestamp` of the copy.
//!
//! `MAX_AGE` runs from *t0* on a clock that stands still while the event's function is paused, and after each pause
//! until every event that it held was checked again: 1,344 s after the longest time between two reads of the pauses. Of
//! these times only what lies before now counts, and the 1,344 s.
//!
//! 1. A message that is not an invocation record, or has a malformed envelope, is dead-lettered. An event redriven to the
//!    retry queue starts anew, with *n* = 1 and *t0* = `SentTimestamp`. It comes as one of our dead-letters, or as a
//!    record whose `timestamp` lies more than 24 h before `SentTimestamp`.
//! 2. An event of a function that `TARGET_FUNCTIONS` does not allow is dead-lettered (`target_not_allowed`).
//! 3. An event is dead-lettered if its record says 404 (`target_not_found`), or if its error is not retryable
//!    (`non_retryable_error`): its type or the [simple name](crate::simple_name()) of it matches `NON_RETRYABLE_ERRORS`,
//!    or the simple name is `NonRetryable`, `NonRetriable` or `NeverRetry`.
//! 4. An event is dead-lettered if *n* is over `MAX_RETRIES` (`max_retries`), if `MAX_AGE` has passed since *t0*, or if
//!    its message was sent over 13 days and 12 hours ago (both `max_age`).
//! 5. The delay is drawn in whole seconds, as `JITTER` says, under the ceiling min(`MAX_BACKOFF`, `BASE_BACKOFF` ·
//!    2^(*n*−1)), from a generator that the message seeds. If the error's simple name is `RetryAfter` and its message
//!    names a moment after the failure, that moment replaces the draw, whatever `MAX_BACKOFF` is. The delay then ends up
//!    to a tenth of the time from the failure to the moment later, drawn from another generator of the message; if the
//!    moment has passed, it is zero. The failure was when the record says, but not after `SentTimestamp`. A `RetryAfter`
//!    with any other message changes nothing.
//! 6. The last retry is made *m* = min(60 s, `MAX_AGE`/10) before *t0* + `MAX_AGE`, or before the end of rule 4's 13 days
//!    and 12 hours if that is sooner. A delay from *start* that would end later is cut to end there. If that leaves under
//!    *m*, the event is dead-lettered (`max_age`).
//! 7. The retry is due at *start* + delay. If that is before the end of a pause of the function, and the pause is over,
//!    the retry is due within the pause's spread after that end, but *m* before `MAX_AGE` at the latest; and so on for each
//!    pause. The moment is drawn from a generator that the message, *n* and the pause seed.
//! 8. A first receive defers the message by the delay. A later one defers it until it is due, which it is once less than
//!    0.5 s is left.
//! 9. An event that is due while its function is paused is held: hidden for 1,344 s, or until the planned end of the
//!    pause if that is sooner.
//! 10. A deferral is rounded up to whole seconds, 1 at least. It ends at most 43,170 s after a first receive, or 41,940 s
//!     after now on a later one.
//! 11. An event is dead-lettered (`payload_too_large`) instead of re-invoked if the record of its next failure could be
//!     over 1,048,576 bytes: this record with its payload newly enveloped, and 64 KiB.
//!
//! With `DIRECTIVES` off, an error's simple name matters only to `NON_RETRYABLE_ERRORS`.

use std::time::Duration;

use comeback_envelope::{Envelope, Metadata};

use crate::dead_letter::SQS_MESSAGE_BYTES;
use crate::due::{Case, HOLD, RETENTION_MARGIN};
use crate::failed_event::FailedEvent;
use crate::time::ceil_secs;
use crate::{Directive, Pauses, Policy, Reason, ReasonCode, Record, Timestamp};

/// SQS's longest visibility timeout. SQS counts it from the receive and refuses a longer one.
const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3_600);
/// Kept free below it for the time between the receive and SQS's receipt of our call.
const VISIBILITY_MARGIN: Duration = Duration::from_secs(30);
/// The retry queue's own `VisibilityTimeout`. SQS redrives a message after 1,000 receives at most, so with a handler that
/// cannot run this must be over 14 days / 1,000. If the handler was throttled, Lambda may hand a message over this long
/// after its receive.
pub const QUEUE_VISIBILITY_TIMEOUT: Duration = Duration::from_secs(1_230);
/// A retry counts as due with less than this left: SQS's clock and ours differ.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(500);
/// How much more the next failure record may hold beside the payload than this one. Its `responsePayload` has the
/// error's message and stack trace, escaped: some ten KiB for an ordinary trace in Java or Node, and nothing in the
/// record of a throttled event.
const RECORD_ALLOWANCE: usize = 64 * 1_024;
/// Characters of an error type in a detail, which is logged; a function may write a megabyte there.
const SHOWN_CHARACTERS: usize = 256;

/// The next step for a message, and its event.
#[derive(Clone, Debug)]
pub enum Action<'a> {
    /// Hide the message for a while and keep it.
    Defer {
        /// The event.
        event: FailedEvent<'a>,
        /// When its retry is due.
        due: Timestamp,
        /// Whole seconds, 1 to 43,170.
        visibility_timeout: Duration,
    },
    /// Keep the message while its function is paused, though its retry is due. No retry is consumed.
    Hold {
        /// The event.
        event: FailedEvent<'a>,
        /// When its retry was due.
        due: Timestamp,
        /// Whole seconds, 1 to 1,344, until the handler checks it again.
        visibility_timeout: Duration,
    },
    /// Call the target again.
    Reinvoke {
        /// The event.
        event: FailedEvent<'a>,
        /// When its retry was due.
        due: Timestamp,
        /// The payload for the target.
        envelope: Envelope<'a>,
    },
    /// Give the event up.
    DeadLetter {
        /// The event; `None` if the message could not be parsed.
        event: Option<FailedEvent<'a>>,
        /// Why.
        reason: Reason,
    },
}

impl Action<'_> {
    /// The event; `None` if the message could not be parsed.
    pub const fn event(&self) -> Option<&FailedEvent<'_>> {
        match self {
            Self::Defer { event, .. } | Self::Hold { event, .. } | Self::Reinvoke { event, .. } => {
                Some(event)
            }
            Self::DeadLetter { event, .. } => event.as_ref(),
        }
    }

    /// When the retry is due; `None` if there will be none.
    pub const fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Defer { due, .. } | Self::Hold { due, .. } | Self::Reinvoke { due, .. } => Some(*due),
            Self::DeadLetter { .. } => None,
        }
    }
}

/// Decides the next step for a message at `now`.
pub fn decide<'a>(record: &'a Record, policy: &Policy, pauses: &Pauses, now: Timestamp) -> Action<'a> {
    let mut event = match FailedEvent::read(record) {
        Ok(event) => event,
        Err(reason) => return Action::DeadLetter { event: None, reason },
    };
    if !policy.directives() {
        event.directive = None;
    }
    let case = Case { event: &event, record, policy, pauses, now };
    let due = match case.due_unless_ruled_out() {
        Ok(due) => due,
        Err(reason) => return Action::DeadLetter { event: Some(event), reason },
    };
    if let Some(visibility_timeout) = case.left_to_serve(due) {
        return Action::Defer { event, due, visibility_timeout };
    }
    if let Some(visibility_timeout) = case.hold() {
        return Action::Hold { event, due, visibility_timeout };
    }
    match case.envelope() {
        Ok(envelope) => Action::Reinvoke { event, due, envelope },
        Err(reason) => Action::DeadLetter { event: Some(event), reason },
    }
}

impl<'r> Case<'_, 'r> {
    /// Rules 2 to 7.
    fn due_unless_ruled_out(&self) -> Result<Timestamp, Reason> {
        self.rule_out()?;
        self.due().ok_or_else(|| self.out_of_time())
    }

    /// Rules 2 to 4: what rules a retry out, whenever it would be.
    fn rule_out(&self) -> Result<(), Reason> {
        let Self { event, record, policy, now, .. } = *self;
        if !policy.allows(&event.function_arn) {
            return Err(Reason::new(ReasonCode::TargetNotAllowed, "the function is not on TARGET_FUNCTIONS"));
        }
        if event.not_found {
            return Err(Reason::new(ReasonCode::TargetNotFound, "the invocation record says 404"));
        }
        if event.error_type().is_some_and(|error_type| policy.is_non_retryable(error_type)) {
            let detail = format!("{} matches NON_RETRYABLE_ERRORS", self.shown_error_type());
            return Err(Reason::new(ReasonCode::NonRetryableError, detail));
        }
        if event.directive == Some(Directive::NonRetryable) {
            let detail = format!("{} asks for no retry; DIRECTIVES is on", self.shown_error_type());
            return Err(Reason::new(ReasonCode::NonRetryableError, detail));
        }
        if event.retry > policy.max_retries {
            let made = event.retries_made();
            let retries = if made == 1 { "retry" } else { "retries" };
            let detail = format!("{made} {retries} made; MAX_RETRIES is {}", policy.max_retries);
            return Err(Reason::new(ReasonCode::MaxRetries, detail));
        }
        if now > self.end_of_max_age() {
            return Err(self.too_old());
        }
        expiring(record, record.sent, now).map_or(Ok(()), Err)
    }

    /// Rule 6: why there is no time for a retry.
    fn out_of_time(&self) -> Reason {
        if self.last_moment() < self.end_of_max_age() {
            kept_too_long(self.record, self.record.sent)
        } else {
            self.too_old()
        }
    }

    fn too_old(&self) -> Reason {
        let Self { event, record, policy, .. } = self;
        let max_age_secs = policy.max_age.as_secs();
        max_age(record, &format!("first failed at {}; MAX_AGE is {max_age_secs} s", event.first_failure))
    }

    fn shown_error_type(&self) -> String {
        self.event.error_type().unwrap_or_default().chars().take(SHOWN_CHARACTERS).collect()
    }

    /// Rules 8 and 10: how long to hide the message for what is left of its backoff, in whole seconds; `None` if it is
    /// due. On a first receive no backoff was served yet, so it is never due.
    fn left_to_serve(&self, due: Timestamp) -> Option<Duration> {
        let left = due.since(self.now);
        let first = self.record.is_first_receive();
        if !first && left < CLOCK_TOLERANCE {
            return None;
        }
        // The time of the current receive is known only for the first one.
        let since_receive =
            if first { self.now.since(self.record.first_receive) } else { QUEUE_VISIBILITY_TIMEOUT };
        let longest = LONGEST_VISIBILITY.saturating_sub(since_receive + VISIBILITY_MARGIN);
        Some(Duration::from_secs(ceil_secs(left).min(longest.as_secs()).max(1)))
    }

    /// Rule 9: how long to hold the event, in whole seconds; `None` if its function is not paused.
    fn hold(&self) -> Option<Duration> {
        let pauses = self.pauses.of_function(&self.event.function_arn);
        let active = pauses.filter(|pause| pause.is_active(self.now));
        let left = active.map(|pause| pause.until.map_or(HOLD, |until| until.since(self.now).min(HOLD)));
        left.max().map(|left| Duration::from_secs(ceil_secs(left)))
    }

    /// Rule 11. Lambda silently drops the record of a failure that is over SQS's limit, so a retry whose own failure could
    /// not come back is not made.
    fn envelope(&self) -> Result<Envelope<'r>, Reason> {
        let Self { event, record, policy, .. } = self;
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
}

/// The end of rule 4: why a message that was sent then is given up before SQS deletes it.
pub(crate) fn expiring(record: &Record, sent: Timestamp, now: Timestamp) -> Option<Reason> {
    (now.since(sent) > RETENTION_MARGIN).then(|| kept_too_long(record, sent))
}

fn kept_too_long(record: &Record, sent: Timestamp) -> Reason {
    max_age(record, &format!("sent to the retry queue at {sent}; SQS keeps a message for 14 days"))
}

/// A message is re-invoked on its second receive at the earliest, so by its third it may have been re-invoked without an
/// answer.
fn max_age(record: &Record, why: &str) -> Reason {
    let received = record.receive_count;
    let maybe = if received > 2 {
        "; an earlier re-invocation, if it was not answered, may have been accepted"
    } else {
        ""
    };
    Reason::new(ReasonCode::MaxAge, format!("{why}; this is receive {received} of its message{maybe}"))
}
