//! The bounds that a policy sets, as checks of one call each. They are bounds, not the rules: what
//! the engine computes is never computed again, so that a mistake there is one here by no means.

use std::time::Duration;

use comeback_backoff::{Backoff, ceiling};
use comeback_engine::{Jitter, Policy, ReasonCode, Timestamp};

use super::{Broken, Invariant};
use crate::handling::Look;
use crate::queue::Flaw;

/// Less than this before the due time counts as due: rule 7 of the engine's `decide.rs`.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(500);
/// Waits are asked for in whole seconds, rounded up.
const SECOND: Duration = Duration::from_secs(1);
/// The last retry is made this long before `MAX_AGE`, and not within as much of the first receive.
const LAST_RETRY: Duration = Duration::from_secs(60);
/// The longest cap there is: 12 hours less the margin for SQS, which counts from the receive.
const LONGEST_HIDING: Duration = Duration::from_secs(12 * 3_600 - 30);
/// A message this old is given up before its retention ends.
const OLDEST_MESSAGE: Duration = Duration::from_secs((13 * 24 + 12) * 3_600);

/// What a policy allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    max_age: Duration,
    max_retries: u64,
    backoff: Backoff,
}

/// What a re-invocation says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) attempt: u64,
    pub(crate) initial_timestamp: u64,
}

impl Law {
    pub(crate) fn of(policy: &Policy) -> Self {
        Self { max_age: policy.max_age(), max_retries: policy.max_retries(), backoff: policy.backoff() }
    }

    /// A re-invocation at `now`, the handler's, of an event that first failed at `first_failure`.
    pub(crate) fn reinvocation(
        &self,
        look: &Look,
        now: Timestamp,
        first_failure: Timestamp,
        envelope: Envelope,
    ) -> Result<(), Broken> {
        let broken = |invariant, detail| Err(Broken::new(invariant, look.received.event, detail));
        let retry = look.received.attempt + 1;
        if envelope.attempt != retry {
            let detail = format!("attempt {} is followed by attempt {}", retry - 1, envelope.attempt);
            return broken(Invariant::AttemptsByOne, detail);
        }
        if retry > self.max_retries {
            return broken(Invariant::MaxRetries, format!("attempt {retry} of {}", self.max_retries));
        }
        if envelope.initial_timestamp != first_failure.as_secs() {
            let told = Timestamp::from_secs(envelope.initial_timestamp);
            let detail =
                format!("its envelope counts MAX_AGE from {told}; it first failed at {first_failure}");
            return broken(Invariant::MaxAge, detail);
        }
        let end = self.end(first_failure);
        if now > end {
            return broken(Invariant::MaxAge, format!("re-invoked at {now}; MAX_AGE ended at {end}"));
        }
        if look.is_told_first() {
            return broken(Invariant::DueTime, format!("re-invoked at {now}, on a first receive"));
        }
        let mut shortest = self.shortest(retry);
        let cut = end.since(look.first_receive).saturating_sub(LAST_RETRY);
        if cut >= LAST_RETRY {
            shortest = shortest.min(cut);
        }
        // What was asked for on a look before may have been cut since: each look counts from its own
        // start, be it now or the first receive.
        let last = Timestamp::from_millis(end.as_millis() - LAST_RETRY.as_millis() as u64);
        let earliest = look.first_receive.saturating_add(shortest).max(look.not_before.min(last));
        if now.saturating_add(CLOCK_TOLERANCE) <= earliest {
            return broken(Invariant::DueTime, format!("re-invoked at {now}; due at {earliest} or later"));
        }
        Ok(())
    }

    /// A deferral asked for at `now`. Gives the moment before which the message cannot be due.
    pub(crate) fn deferral(
        &self,
        look: &Look,
        now: Timestamp,
        hidden_for: Duration,
    ) -> Result<Timestamp, Broken> {
        let longest = self.longest(look.received.attempt + 1);
        let (start, waits_from) = if look.is_told_first() {
            (now, now.min(look.first_receive))
        } else {
            (look.first_receive.saturating_add(SECOND), now)
        };
        let over = now.saturating_add(hidden_for) > start.saturating_add(longest);
        if over || hidden_for > LONGEST_HIDING {
            let detail = format!(
                "hidden at {now} for {} s; its wait from {start} is at most {} s",
                hidden_for.as_secs(),
                longest.as_secs()
            );
            return Err(Broken::new(Invariant::LongestWait, look.received.event, detail));
        }
        Ok(waits_from.saturating_add(hidden_for.saturating_sub(SECOND)))
    }

    /// The hiding of a message whose re-invocation or dead-letter did not work.
    pub(crate) fn hiding(&self, look: &Look, hidden_for: Duration) -> Result<(), Broken> {
        let longest = ceiling(1, 3_600, u64::from(look.receive_count) + 1);
        if hidden_for <= Duration::from_secs(longest) {
            return Ok(());
        }
        let detail =
            format!("hidden for {} s after a failed call; at most {longest} s", hidden_for.as_secs());
        Err(Broken::new(Invariant::LongestWait, look.received.event, detail))
    }

    /// A dead-letter at `now`, the handler's. What this world never does is no reason.
    pub(crate) fn dead_letter(
        &self,
        look: &Look,
        now: Timestamp,
        first_failure: Timestamp,
        reason: ReasonCode,
    ) -> Result<(), Broken> {
        let end = self.end(first_failure);
        let start = if look.is_told_first() { now } else { look.first_receive };
        let is_true = match reason {
            ReasonCode::MaxRetries => look.received.attempt >= self.max_retries,
            ReasonCode::MaxAge => {
                now > end || end.since(start) < 2 * LAST_RETRY || now.since(look.sent) > OLDEST_MESSAGE
            }
            ReasonCode::TargetNotAllowed => look.received.flaw == Some(Flaw::Unlisted),
            ReasonCode::MalformedRecord => look.received.flaw == Some(Flaw::Unreadable),
            // Which errors those are is the policy's secret, and told in full by its unit tests.
            ReasonCode::NonRetryableError => true,
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
            look.received.attempt, self.max_retries
        );
        Err(Broken::new(Invariant::TrueReasons, look.received.event, detail))
    }

    fn end(&self, first_failure: Timestamp) -> Timestamp {
        // Envelopes carry whole seconds.
        Timestamp::from_secs(first_failure.as_secs()).saturating_add(self.max_age)
    }

    /// The shortest wait that the jitter can draw before a retry.
    fn shortest(&self, retry: u64) -> Duration {
        let Backoff { base, cap, jitter } = self.backoff;
        let ceiling = ceiling(base, cap, retry);
        Duration::from_secs(match jitter {
            Jitter::Full => 1,
            Jitter::Equal => ceiling.div_ceil(2),
            Jitter::Decorrelated => base,
            Jitter::None => ceiling,
        })
    }

    /// The longest one.
    fn longest(&self, retry: u64) -> Duration {
        let Backoff { base, cap, jitter } = self.backoff;
        Duration::from_secs(match jitter {
            Jitter::Full | Jitter::Equal | Jitter::None => ceiling(base, cap, retry),
            Jitter::Decorrelated => {
                let tripled = 3u64.saturating_pow(u32::try_from(retry).unwrap_or(u32::MAX));
                base.saturating_mul(tripled).min(cap)
            }
        })
    }
}

#[cfg(test)]
mod tests;
