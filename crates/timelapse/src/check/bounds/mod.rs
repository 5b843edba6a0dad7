//! The bounds that a policy sets, checked at each call of the handler.
//!
//! They are an oracle beside the engine's rules, with arithmetic of their own: they repeat in part what
//! the engine computes, on purpose, and share only `ceiling` with it. What depends on the draw of the
//! jitter is bounded from both sides.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | backoffs, re-invocations and dead-letters |
//! | `after_failure` | waits after a step that did not work |

mod after_failure;

use std::time::Duration;

use comeback_backoff::{Backoff, ceiling};
use comeback_engine::{Jitter, Policy, ReasonCode, Timestamp};

use super::asked::Window;
use super::invariants::{Broken, Invariant};
use super::origin::Origin;
use super::pauses::{Known, between_reads};
use crate::faults::records::Flaw;

/// A message counts as due this long before its due time: rule 8 of the engine's `decide.rs`.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(500);
/// Visibility timeouts are whole seconds, rounded up.
const SECOND: Duration = Duration::from_secs(1);
/// The longest visibility timeout that the handler may set on a first receive: the 12 hours of SQS, which
/// count from the receive, less 30 s.
const LONGEST_HIDING: Duration = Duration::from_secs(12 * 3_600 - 30);
/// The same on a later receive, which a throttled poller may have held for all of the queue's timeout.
const LONGEST_LATER_HIDING: Duration = Duration::from_secs(12 * 3_600 - 30 - 1_230);
/// For how long a receive hides a message that the handler does not hide.
pub(crate) const UNHIDDEN: Duration = Duration::from_secs(1_230);
/// A message older than this is given up, before its retention ends.
const OLDEST_MESSAGE: Duration = Duration::from_secs((13 * 24 + 12) * 3_600);

/// The bounds of one policy, for the handler of the batch at hand.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// What that handler can know of the pauses.
    pub(crate) known: Known,
    max_age: Duration,
    between_reads: Duration,
    max_retries: u64,
    backoff: Backoff,
    directives: bool,
}

/// What the handler sees of a message, and what the checks know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) origin: Origin,
    /// As the handler sees it; a fault may have changed it.
    pub(crate) receive_count: u32,
    pub(crate) first_receive: Timestamp,
    pub(crate) sent: Timestamp,
    /// When its target asked to be retried.
    pub(crate) asked: Option<Window>,
    /// It must not be re-invoked before: by the visibility timeouts that the handler has set so far.
    pub(crate) not_before: Timestamp,
    /// It carries the wait after a failed step, until then at the latest.
    pub(crate) held_until: Option<Timestamp>,
}

/// What a re-invocation's envelope claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) attempt: u64,
    pub(crate) initial_timestamp: u64,
}

impl Bounds {
    pub(crate) fn of(policy: &Policy) -> Self {
        Self {
            known: Known::none(),
            max_age: policy.max_age(),
            between_reads: between_reads(policy.maximum_concurrency()),
            max_retries: policy.max_retries(),
            backoff: policy.backoff(),
            directives: policy.directives(),
        }
    }

    /// A re-invocation of an event that first failed at `first_failure`. `now` is the handler's clock.
    pub(crate) fn reinvocation(
        &self,
        look: &Look,
        now: Timestamp,
        first_failure: Timestamp,
        claim: Claim,
    ) -> Result<(), Broken> {
        let broken = |invariant, detail| Err(Broken::new(invariant, look.origin.event, detail));
        let retry = look.origin.attempt + 1;
        if claim.attempt != retry {
            let detail = format!("attempt {} is followed by attempt {}", retry - 1, claim.attempt);
            return broken(Invariant::AttemptsByOne, detail);
        }
        if retry > self.max_retries {
            return broken(Invariant::MaxRetries, format!("attempt {retry} of {}", self.max_retries));
        }
        if claim.initial_timestamp != first_failure.as_secs() {
            let claimed = Timestamp::from_secs(claim.initial_timestamp);
            let detail =
                format!("its envelope counts MAX_AGE from {claimed}; it first failed at {first_failure}");
            return broken(Invariant::MaxAge, detail);
        }
        let end = self.end(first_failure, now);
        if now > end {
            return broken(Invariant::MaxAge, format!("re-invoked at {now}; MAX_AGE ended at {end}"));
        }
        if look.is_first_receive() {
            return broken(Invariant::DueTime, format!("re-invoked at {now}, on a first receive"));
        }
        let earliest = self.earliest(look, retry, end.min(given_up(look)));
        if now.saturating_add(CLOCK_TOLERANCE) <= earliest {
            return broken(Invariant::DueTime, format!("re-invoked at {now}; due at {earliest} or later"));
        }
        Ok(())
    }

    /// The earliest due time of a retry.
    fn earliest(&self, look: &Look, retry: u64, end: Timestamp) -> Timestamp {
        let asked = self.asked(look).map(|window| window.earliest.since(look.first_receive));
        let mut shortest = asked.unwrap_or_else(|| self.shortest(retry));
        let cut = end.since(look.first_receive).saturating_sub(self.last_retry());
        if cut >= self.last_retry() {
            shortest = shortest.min(cut);
        }
        // A later look may cut a wait that an earlier look did not cut: on a first receive the wait counts
        // from now, afterwards from the first receive.
        let last = Timestamp::from_millis(end.as_millis() - self.last_retry().as_millis() as u64);
        look.first_receive.saturating_add(shortest).max(look.not_before.min(last))
    }

    /// A deferral at `now`, the handler's clock. Gives the moment before which the message is not due.
    pub(crate) fn deferral(
        &self,
        look: &Look,
        now: Timestamp,
        first_failure: Timestamp,
        hidden_for: Duration,
    ) -> Result<Timestamp, Broken> {
        let (start, waits_from) = if look.is_first_receive() {
            (now, now.min(look.first_receive))
        } else {
            (look.first_receive.saturating_add(SECOND), now)
        };
        let latest = match self.asked(look) {
            Some(window) => {
                self.latest_asked(window, start, self.end(first_failure, now).min(given_up(look)))
            }
            None => start.saturating_add(self.longest(look.origin.attempt + 1)),
        };
        let latest = self.known.latest_due(start, latest, now);
        let over = now.saturating_add(hidden_for) > latest;
        let most = if look.is_first_receive() { LONGEST_HIDING } else { LONGEST_LATER_HIDING };
        if over || hidden_for > most {
            let detail = format!(
                "hidden at {now} for {} s; its wait from {start} ends at {latest} at the latest",
                hidden_for.as_secs()
            );
            return Err(Broken::new(Invariant::LongestWait, look.origin.event, detail));
        }
        if self.known.moves_dues(start, now) {
            return Ok(look.not_before);
        }
        Ok(waits_from.saturating_add(hidden_for.saturating_sub(SECOND)))
    }

    /// A dead-letter at `now`, the handler's clock.
    pub(crate) fn dead_letter(
        &self,
        look: &Look,
        now: Timestamp,
        first_failure: Timestamp,
        reason: ReasonCode,
    ) -> Result<(), Broken> {
        let end = self.end(first_failure, now);
        let start = if look.is_first_receive() { now } else { look.first_receive };
        let is_true = match reason {
            ReasonCode::MaxRetries => look.origin.attempt >= self.max_retries,
            ReasonCode::MaxAge => {
                let is_too_old =
                    !self.known.is_nothing() && self.is_too_old(now, start, end.min(given_up(look)));
                is_too_old || now.since(look.sent) > OLDEST_MESSAGE
            }
            ReasonCode::TargetNotAllowed => look.origin.flaw == Some(Flaw::Unlisted),
            ReasonCode::MalformedRecord => look.origin.flaw == Some(Flaw::Unreadable),
            // The policy does not show which errors these are; its own tests check them.
            ReasonCode::NonRetryableError => true,
            // Nothing in the simulated world gives rise to these.
            ReasonCode::TargetNotFound
            | ReasonCode::TargetRefused
            | ReasonCode::PayloadTooLarge
            | ReasonCode::MalformedEnvelope => false,
        };
        if is_true {
            return Ok(());
        }
        let detail = format!(
            "dead-lettered as {reason} at {now} after attempt {} of {}; MAX_AGE ends at {end}",
            look.origin.attempt, self.max_retries
        );
        let without_pauses = Known::none().end(first_failure, self.max_age, self.between_reads, now);
        let by_a_pause = reason == ReasonCode::MaxAge && self.is_too_old(now, start, without_pauses);
        let invariant = if by_a_pause { Invariant::PauseEndsNothing } else { Invariant::TrueReasons };
        Err(Broken::new(invariant, look.origin.event, detail))
    }

    /// When its target asked to be retried, if that counts.
    fn asked(&self, look: &Look) -> Option<Window> {
        look.asked.filter(|_| self.directives)
    }

    /// The latest end of a wait from `start` that the target asked for. One that would leave no time for a last retry
    /// before `end` is cut.
    fn latest_asked(&self, window: Window, start: Timestamp, end: Timestamp) -> Timestamp {
        let last = end.as_millis().saturating_sub(self.last_retry().as_millis() as u64);
        start.max(window.latest.min(Timestamp::from_millis(last))).saturating_add(SECOND)
    }

    /// Whether no retry fits in any more, of a wait from `start`.
    fn is_too_old(&self, now: Timestamp, start: Timestamp, end: Timestamp) -> bool {
        now > end || end.since(start) < 2 * self.last_retry()
    }

    /// The last retry comes this long before `MAX_AGE` ends, and at least this long after the first receive.
    fn last_retry(&self) -> Duration {
        Duration::from_secs(60).min(self.max_age / 10)
    }

    fn end(&self, first_failure: Timestamp, now: Timestamp) -> Timestamp {
        // Envelopes carry whole seconds.
        let first_failure = Timestamp::from_secs(first_failure.as_secs());
        self.known.end(first_failure, self.max_age, self.between_reads, now)
    }

    /// The shortest wait that the jitter can draw before a retry.
    fn shortest(&self, retry: u64) -> Duration {
        let Backoff { base, cap, jitter, .. } = self.backoff;
        let ceiling = ceiling(base, cap, retry);
        Duration::from_secs(match jitter {
            Jitter::Full => 1,
            Jitter::Equal => ceiling.div_ceil(2),
            Jitter::Decorrelated => base,
            Jitter::None => ceiling,
        })
    }

    /// The longest wait that the jitter can draw before a retry.
    fn longest(&self, retry: u64) -> Duration {
        let Backoff { base, cap, jitter, .. } = self.backoff;
        Duration::from_secs(match jitter {
            Jitter::Full | Jitter::Equal | Jitter::None => ceiling(base, cap, retry),
            Jitter::Decorrelated => {
                let tripled = 3u64.saturating_pow(u32::try_from(retry).unwrap_or(u32::MAX));
                base.saturating_mul(tripled).min(cap)
            }
        })
    }
}

/// When a message is given up, whatever its event's age.
fn given_up(look: &Look) -> Timestamp {
    look.sent.saturating_add(OLDEST_MESSAGE)
}

impl Look {
    /// Whether this is the message's first receive, by the count that the handler sees.
    fn is_first_receive(&self) -> bool {
        self.receive_count <= 1
    }
}

#[cfg(test)]
mod tests;
