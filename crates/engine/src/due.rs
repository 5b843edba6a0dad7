//! Computes the due time of a retry by rules 5 to 7, and when `MAX_AGE` ends; its clock stops during a pause.

use std::time::Duration;

use comeback_backoff::Jitter;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::directive::Directive;
use crate::failed_event::FailedEvent;
use crate::pauses::{Pauses, returns_at};
use crate::policy::Policy;
use crate::record::Record;
use crate::requests::{Cancel, Request, RetryNow};
use crate::seed::generator;
use crate::time::Timestamp;
use crate::timing::{HOLD, RETENTION_MARGIN, longest_between_reads};

/// The last retry is made this long before the end of `MAX_AGE`, or a tenth of `MAX_AGE` before if that is shorter, so
/// that a late poll does not lose it.
const LAST_RETRY_MARGIN: Duration = Duration::from_secs(60);
/// Up to this share of the wait that a `RetryAfter` asks for is added to it. An overloaded function asks for the same
/// wait each time, and its events must not all come back at once.
const RETRY_AFTER_JITTER: f64 = 0.1;

/// A failed event, its message, and everything else that the decision depends on.
#[derive(Clone, Copy)]
pub(crate) struct Case<'c, 'r> {
    pub(crate) event: &'c FailedEvent<'r>,
    pub(crate) record: &'c Record,
    pub(crate) policy: &'c Policy,
    pub(crate) pauses: &'c Pauses,
    pub(crate) now: Timestamp,
}

/// The due time of a retry, and what set it.
pub(crate) struct Due {
    pub(crate) at: Timestamp,
    /// The rule or request that set the due time.
    pub(crate) by: DueBy,
    /// The retry request that moved the due time forward; `None` if none did.
    pub(crate) early: Option<Early>,
}

/// The rule or request that set a retry's due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DueBy {
    /// The policy's backoff.
    Policy,
    /// A `RetryAfter` error of the function.
    RetryAfter,
    /// A pause that is over: the held event comes back within the pause's spread.
    Pause,
    /// An operator's [`RetryNow`](crate::RetryNow).
    RetryNow,
}

/// The effect of an operator's retry request that moved a retry forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Early {
    /// When the retry would be due without the request.
    pub otherwise_due: Timestamp,
    /// When the operator made the request.
    pub asked_at: Timestamp,
    /// The operator who made the request, if the request names one.
    pub asked_by: Option<String>,
}

impl Case<'_, '_> {
    /// Applies rules 5 to 7. Returns the due time of the retry; `None` if no backoff fits before [the last
    /// moment](Self::last_moment). The backoff starts at the first receive, so it is served once, however often the
    /// message comes early.
    pub(crate) fn due(&self) -> Option<Due> {
        let start = self.start();
        let delay = self.cut(self.delay(start), start, self.last_moment())?;
        let served = start.saturating_add(delay);
        let due = self.due_after_pauses(served);
        let requested = if due == served { self.early(start, due) } else { None };
        if let Some((at, early)) = requested {
            return Some(Due { at, by: DueBy::RetryNow, early: Some(early) });
        }
        let by = match self.event.directive {
            _ if due != served => DueBy::Pause,
            Some(Directive::RetryAfter(_)) => DueBy::RetryAfter,
            _ => DueBy::Policy,
        };
        Some(Due { at: due, by, early: None })
    }

    /// When the message's backoff started: at its first receive.
    pub(crate) fn start(&self) -> Timestamp {
        if self.record.is_first_receive() { self.now } else { self.record.first_receive }
    }

    /// Applies the last part of rule 7. Returns the earliest due time that an operator's retry request gives, never
    /// before `start`; `None` if no request makes it earlier than `otherwise_due`.
    fn early(&self, start: Timestamp, otherwise_due: Timestamp) -> Option<(Timestamp, Early)> {
        let Self { event, record, policy, pauses, now, .. } = *self;
        if event.retry >= policy.settings().max_retries {
            return None;
        }
        let asked_to_wait = matches!(event.directive, Some(Directive::RetryAfter(_)));
        let reaching = pauses.retries().filter(|RetryNow { request, .. }| {
            record.first_sent() < request.at
                && request.is_in_force(now)
                && request.covers(&event.function_arn, event.error_type(), &event.origin_request_id)
                && (request.names_keys() || !asked_to_wait)
        });
        let moments = reaching.map(|retry| {
            let RetryNow { request, .. } = retry;
            let at = retry.due_of(record.first_id(), event.retry).max(start);
            let at = self.due_after_pauses(at);
            (at, Early { otherwise_due, asked_at: request.at, asked_by: request.by.clone() })
        });
        moments.filter(|(at, _)| *at < otherwise_due).min_by_key(|(at, _)| *at)
    }

    /// Applies the last part of rule 4. Returns the operator's request that cancels the event, if there is one.
    pub(crate) fn cancelled_by(&self) -> Option<&Request> {
        let Self { event, record, pauses, now, .. } = *self;
        let mut requests = pauses.cancels().map(|Cancel { request }| request);
        requests.find(|request| {
            (record.first_sent() < request.at || request.names_keys())
                && request.is_in_force(now)
                && request.covers(&event.function_arn, event.error_type(), &event.origin_request_id)
        })
    }

    /// The moment at which `MAX_AGE` ends, or at which the message is dead-lettered before SQS deletes it, whichever is
    /// sooner. Rule 6 leaves time for a last retry before it.
    pub(crate) fn last_moment(&self) -> Timestamp {
        self.end_of_max_age().min(self.end_of_retention())
    }

    /// The end of the 13 days and 12 hours that rule 4 lets a message wait.
    fn end_of_retention(&self) -> Timestamp {
        self.record.sent.saturating_add(RETENTION_MARGIN)
    }

    /// Applies rule 6: cuts the wait from `start` to leave time for a last retry before `end`. Returns `None` if too
    /// little of the wait remains.
    pub(crate) fn cut(&self, wait: Duration, start: Timestamp, end: Timestamp) -> Option<Duration> {
        let longest = self.longest(start, end);
        (wait <= longest || longest >= self.margin()).then(|| wait.min(longest))
    }

    fn longest(&self, start: Timestamp, end: Timestamp) -> Duration {
        end.since(start).saturating_sub(self.margin())
    }

    fn margin(&self) -> Duration {
        LAST_RETRY_MARGIN.min(self.policy.max_age() / 10)
    }

    /// The delay of the retry by rule 5, counted from `start`.
    fn delay(&self, start: Timestamp) -> Duration {
        match self.event.directive {
            Some(Directive::RetryAfter(moment)) => {
                let wait = moment.since(self.event.failed_at);
                let seed = format!("{} RetryAfter", self.record.first_id());
                let share: f64 = generator(&seed, self.event.retry).random();
                moment.saturating_add(wait.mul_f64(RETRY_AFTER_JITTER * share)).since(start)
            }
            _ => self.draw(),
        }
    }

    /// Draws the backoff under its ceiling. The generator is seeded by the message and the retry, so that each receive
    /// of the message draws the same delay. For decorrelated jitter, it is seeded by the event, because each draw
    /// depends on the draws for the event's earlier messages.
    pub(crate) fn draw(&self) -> Duration {
        let Self { event, record, policy, .. } = self;
        let mut rng = match policy.backoff().jitter() {
            Jitter::Decorrelated => generator(&event.origin_request_id, 0),
            Jitter::Full | Jitter::Equal | Jitter::None => generator(record.first_id(), event.retry),
        };
        // The last entry of `BACKOFFS` repeats.
        let retry = policy.backoff().retries().map_or(event.retry, |last| event.retry.min(last));
        policy.backoff().delay(retry, &mut rng).expect("BUG: a policy has a backoff")
    }

    /// The moment that is `MAX_AGE` after the first failure. The clock stops while the function is paused, and after
    /// each pause until the handler has checked every held message again. An environment notices the end of a pause at
    /// its next read; just before that, it may still hold a message for [`HOLD`].
    ///
    /// A pause that looks open to this environment may have ended since its last read, so the clock stops only for time that
    /// is certainly paused. A later check never computes an earlier end, so a wait that fits now still fits then.
    pub(crate) fn end_of_max_age(&self) -> Timestamp {
        let Self { event, policy, pauses, now, .. } = *self;
        let latest_notice = longest_between_reads(policy.settings().maximum_concurrency);
        let mut end = event.first_failure.saturating_add(policy.max_age());
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

    /// Applies the first part of rule 7 to the due time `due`. If it lies before the end of a pause that is over, the
    /// event comes back within the pause's spread after that end, or within the time until a last retry if that is
    /// shorter.
    fn due_after_pauses(&self, due: Timestamp) -> Timestamp {
        let over = self.pauses.of_function(&self.event.function_arn).filter(|pause| pause.is_over(self.now));
        over.fold(due, |due, pause| match pause.until {
            Some(until) if due < until => {
                let spread = pause.spread.min(self.left_at(until));
                returns_at(until, spread, self.record.first_id(), self.event.retry)
            }
            _ => due,
        })
    }

    /// The time from the end of a pause, `over`, until a last retry. It is computed as of the moment when every
    /// environment has noticed that end, so that a later pause, which extends `MAX_AGE`, does not move events that come
    /// back after this one. Before that moment it is computed as of now: a pause whose planned end has passed may have
    /// ended earlier, since the last read.
    fn left_at(&self, over: Timestamp) -> Duration {
        let noticed = over.saturating_add(longest_between_reads(self.policy.settings().maximum_concurrency));
        let then = Self { now: noticed.min(self.now), ..*self };
        self.longest(over, then.last_moment())
    }
}
