//! What pauses do to the times of an event.

use std::time::Duration;

use rand::RngExt;

use crate::decide::seed::generator;
use crate::message::event::FailedEvent;
use crate::{Pauses, Policy, Record, Timestamp};

/// How long a message of a paused function is hidden before it is looked at again: so 900 receives, which
/// are fewer than SQS's 1,000, outlast the 14 days that it keeps a message.
pub const HOLD: Duration = Duration::from_secs(14 * 86_400 / 900);

/// `MAX_AGE` after the first failure, on a clock that stands still while the function is paused. A pause that
/// is not over counts as ending now. After each pause the clock stands still for one more hold: by then every
/// message that it held has been looked at again, so that none is too old because of the pause.
pub(crate) fn end(event: &FailedEvent<'_>, policy: &Policy, pauses: &Pauses, now: Timestamp) -> Timestamp {
    let mut end = event.first_failure.saturating_add(policy.max_age);
    let mut counted_until = event.first_failure;
    let begun = pauses.of_function(&event.function_arn).take_while(|pause| pause.from <= now);
    for pause in begun {
        if pause.from > end {
            break;
        }
        let over = pause.until.unwrap_or(now).min(now);
        if over <= event.first_failure && pause.is_over(now) {
            continue;
        }
        let stands_still_until = over.saturating_add(HOLD);
        end = end.saturating_add(stands_still_until.since(pause.from.max(counted_until)));
        counted_until = counted_until.max(stands_still_until);
    }
    end
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
