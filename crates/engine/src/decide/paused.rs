//! What pauses do to the times of an event.

use std::time::Duration;

use rand::RngExt;

use crate::decide::seed::generator;
use crate::message::event::FailedEvent;
use crate::pauses::known::KnownPauses;
use crate::{Pauses, Policy, Record, Timestamp};

/// How long a message of a paused function is hidden before it is looked at again: so 900 receives, which
/// are fewer than SQS's 1,000, outlast the 14 days that it keeps a message.
pub const HOLD: Duration = Duration::from_secs(14 * 86_400 / 900);

/// `MAX_AGE` after the first failure, on a clock that stands still while the function is paused, and after each
/// pause until every message that it held has been looked at again. Environments notice the end of a pause as late
/// as their next read, and may hold a message just before.
///
/// A pause that an environment takes for open may have ended since its last read. So the clock counts only what is
/// certain, and the end that one environment knows is never later than the end that another knows afterwards: a
/// wait that fits before the one fits before the other.
pub(crate) fn end(event: &FailedEvent<'_>, policy: &Policy, pauses: &Pauses, now: Timestamp) -> Timestamp {
    let latest_notice = KnownPauses::longest_between_reads(policy);
    let mut end = event.first_failure.saturating_add(policy.max_age);
    let mut counted_until = event.first_failure;
    let begun = pauses.of_function(&event.function_arn).take_while(|pause| pause.from <= now);
    for pause in begun {
        if pause.from > end {
            break;
        }
        let noticed = pause.until.map_or(now, |until| until.saturating_add(latest_notice).min(now));
        if noticed <= event.first_failure {
            continue;
        }
        let stands_still_until = noticed.saturating_add(HOLD);
        end = end.saturating_add(stands_still_until.since(pause.from.max(counted_until)));
        counted_until = counted_until.max(stands_still_until);
    }
    end
}

/// The [`end`] as it is known once a pause that is over was noticed by all. A later pause moves the end, but not
/// this, so that it does not move the events that come back after the first.
///
/// Until then it is the end of now: a pause whose planned end has passed may have ended before that, since the
/// last read.
pub(crate) fn end_when_noticed(
    over: Timestamp,
    event: &FailedEvent<'_>,
    policy: &Policy,
    pauses: &Pauses,
    now: Timestamp,
) -> Timestamp {
    let noticed = over.saturating_add(KnownPauses::longest_between_reads(policy));
    end(event, policy, pauses, noticed.min(now))
}

/// Rule 7: when an event is due that was due at `due`. One that was due before the end of a pause that is over
/// comes back over its spread, or over what is left of it until `latest`, the time until a last retry.
pub(crate) fn due_after_pauses(
    due: Timestamp,
    event: &FailedEvent<'_>,
    record: &Record,
    pauses: &Pauses,
    now: Timestamp,
    left_at: impl Fn(Timestamp) -> Duration,
) -> Timestamp {
    let over = pauses.of_function(&event.function_arn).filter(|pause| pause.is_over(now));
    over.fold(due, |due, pause| match pause.until {
        Some(until) if due < until => {
            let seed = format!("{} {}", record.first_id(), event.retry);
            let share: f64 = generator(&seed, until.as_secs()).random();
            until.saturating_add(pause.spread.min(left_at(until)).mul_f64(share))
        }
        _ => due,
    })
}

/// Rule 9: how long to hold an event of the function, in whole seconds; `None` if it is not paused.
pub(crate) fn hold(function_arn: &str, pauses: &Pauses, now: Timestamp) -> Option<Duration> {
    let active = pauses.of_function(function_arn).filter(|pause| pause.is_active(now));
    let left = active.map(|pause| pause.until.map_or(HOLD, |until| until.since(now).min(HOLD))).max()?;
    Some(Duration::from_millis(u64::try_from(left.as_millis()).unwrap_or(u64::MAX).next_multiple_of(1_000)))
}
