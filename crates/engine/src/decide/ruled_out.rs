//! Why an event is given up that a message was understood to hold.

use std::time::Duration;

use crate::decide::due::last_moment;
use crate::decide::paused::end;
use crate::message::event::FailedEvent;
use crate::{Directive, Pauses, Policy, Reason, ReasonCode, Record, Timestamp};

/// SQS keeps a message for 14 days at most; one this old must not be hidden again.
pub(crate) const RETENTION_MARGIN: Duration = Duration::from_secs((13 * 24 + 12) * 3_600);
/// Of an error type in a detail, which is logged; a function may write a megabyte there.
const SHOWN_CHARACTERS: usize = 256;

/// Rules 2 to 4: what rules a retry out, whenever it would be.
pub(crate) fn rule_out(
    event: &FailedEvent<'_>,
    record: &Record,
    policy: &Policy,
    pauses: &Pauses,
    now: Timestamp,
) -> Result<(), Reason> {
    if !policy.allows(&event.function_arn) {
        return Err(Reason::new(ReasonCode::TargetNotAllowed, "the function is not on TARGET_FUNCTIONS"));
    }
    if event.not_found {
        return Err(Reason::new(ReasonCode::TargetNotFound, "the invocation record says 404"));
    }
    if event.error_type().is_some_and(|error_type| policy.is_non_retryable(error_type)) {
        let detail = format!("{} matches NON_RETRYABLE_ERRORS", shown(event));
        return Err(Reason::new(ReasonCode::NonRetryableError, detail));
    }
    if event.directive == Some(Directive::NonRetryable) {
        let detail = format!("{} asks for no retry; DIRECTIVES is on", shown(event));
        return Err(Reason::new(ReasonCode::NonRetryableError, detail));
    }
    if event.retry > policy.max_retries {
        let made = event.retries_made();
        let retries = if made == 1 { "retry" } else { "retries" };
        let detail = format!("{made} {retries} made; MAX_RETRIES is {}", policy.max_retries);
        return Err(Reason::new(ReasonCode::MaxRetries, detail));
    }
    if now > end(event, policy, pauses, now) {
        return Err(too_old(event, record, policy));
    }
    expiring(record, record.sent, now).map_or(Ok(()), Err)
}

/// Rule 6: why there is no time for a retry.
pub(crate) fn out_of_time(
    event: &FailedEvent<'_>,
    record: &Record,
    policy: &Policy,
    pauses: &Pauses,
    now: Timestamp,
) -> Reason {
    if last_moment(event, record, policy, pauses, now) < end(event, policy, pauses, now) {
        kept_too_long(record, record.sent)
    } else {
        too_old(event, record, policy)
    }
}

/// The error's type, as much of it as a detail shows.
fn shown(event: &FailedEvent<'_>) -> String {
    event.error_type().unwrap_or_default().chars().take(SHOWN_CHARACTERS).collect()
}

/// The end of rule 4: why a message that was sent then is given up before SQS deletes it.
pub(crate) fn expiring(record: &Record, sent: Timestamp, now: Timestamp) -> Option<Reason> {
    (now.since(sent) > RETENTION_MARGIN).then(|| kept_too_long(record, sent))
}

fn kept_too_long(record: &Record, sent: Timestamp) -> Reason {
    max_age(record, &format!("sent to the retry queue at {sent}; SQS keeps a message for 14 days"))
}

fn too_old(event: &FailedEvent<'_>, record: &Record, policy: &Policy) -> Reason {
    let why = format!("first failed at {}; MAX_AGE is {} s", event.first_failure, policy.max_age.as_secs());
    max_age(record, &why)
}

/// A message is re-invoked on its second receive at the earliest, so one that is here a third time may
/// have been re-invoked without an answer.
fn max_age(record: &Record, why: &str) -> Reason {
    let received = record.receive_count;
    let maybe = if received > 2 {
        "; an earlier re-invocation, if it was not answered, may have been accepted"
    } else {
        ""
    };
    Reason::new(ReasonCode::MaxAge, format!("{why}; this is receive {received} of its message{maybe}"))
}
