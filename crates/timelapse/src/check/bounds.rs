//! The bounds that a policy sets for each call of the handler. The bounds deliberately repeat some of the engine's
//! arithmetic, and share only `ceiling` with the engine. Values that depend on jitter have a lower and an upper bound.

use std::ops::RangeInclusive;
use std::time::Duration;

use comeback_engine::{HANDLER_TIMEOUT, HideUpTo, Jitter, Policy, ReasonCode, Timestamp};
use comeback_envelope::Metadata;

use super::history::{Origin, Window};
use super::pauses::{Failed, KnownPauses, SECOND, between_reads};
use super::{Broken, Invariant};
use crate::faults::fault::Room;
use crate::faults::records::Flaw;
use crate::scenario::Scenario;

/// Tolerance for differences between clocks. A message already counts as due this long before its due time. See rule 8
/// in the engine's `decide.rs`.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(500);
/// Longest visibility timeout on a first receive: 12 hours, which SQS counts from the receive, less 30 s.
const LONGEST_HIDING: Duration = Duration::from_secs(12 * 3_600 - 30);
/// Longest visibility timeout on a later receive. This timeout is 1,230 s shorter than on a first receive, because a
/// throttled poller may have held the message for the whole visibility timeout of the queue.
const LONGEST_LATER_HIDING: Duration = Duration::from_secs(12 * 3_600 - 30 - 1_230);
/// Age after which the handler dead-letters a message, half a day before its retention ends.
const OLDEST_MESSAGE: Duration = Duration::from_secs((13 * 24 + 12) * 3_600);
/// Range of the visibility timeout after a re-invocation without an answer.
const AFTER_UNANSWERED: RangeInclusive<Duration> = Duration::from_secs(3_600)..=Duration::from_secs(7_200);
/// Time that the handler waits for the answer to an invoke.
const INVOKE_TIME: Duration = Duration::from_secs(20);
/// The largest message that SQS accepts, in bytes.
const LARGEST_MESSAGE: usize = 1_048_576;
/// Allowance for the growth of the invocation record from one failure to the next, in bytes. The envelope is not
/// included.
const RECORD_ALLOWANCE: usize = 64 * 1_024;
/// Maximum size of an envelope, in bytes.
const ENVELOPE: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct Bounds {
    policy: Policy,
    pub(super) between_reads: Duration,
}

/// The worst failed call about a message, as far as the message's handler can tell. Worse failures compare as greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum After {
    /// A re-invocation or a dead-letter failed.
    Failure,
    /// A re-invocation got no answer.
    Unanswered,
    /// A move failed, and its copy may have been accepted.
    LostCopy,
}

/// A message as its handler sees it, together with the oracle's data about the message.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenMessage {
    pub(super) origin: Origin,
    /// Receive count that the handler sees, which a fault may have changed.
    pub(super) receive_count: u32,
    pub(super) first_receive: Timestamp,
    pub(super) sent: Timestamp,
    /// Time at which the first copy of the message was sent.
    pub(super) first_sent: Timestamp,
    /// Size of the message's body, in bytes.
    pub(super) bytes: usize,
    /// The due times that the target's `RetryAfter` allows; `None` if the target requested no wait.
    pub(super) asked: Option<Window>,
    /// Earliest time at which the message may be re-invoked, according to the visibility timeouts that handlers have
    /// set.
    pub(super) not_before: Timestamp,
    /// Latest end of the wait after a failed call; `None` if the message does not carry a wait of this kind.
    pub(super) held_until: Option<Timestamp>,
}

/// A message that a handler processes, as of the start of the batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handling<'a> {
    pub(super) seen: &'a SeenMessage,
    pub(super) now: Timestamp,
    /// Actual time of the event's first failure, whatever time the handler reads.
    pub(super) first_failure: Timestamp,
    /// The pauses that the handler has read.
    pub(super) known: &'a KnownPauses,
}

impl Bounds {
    pub(super) fn of(policy: &Policy) -> Self {
        let between_reads = between_reads(policy.settings().maximum_concurrency);
        Self { policy: policy.clone(), between_reads }
    }

    pub(super) fn longest_backoff(&self) -> Duration {
        self.policy.backoff().cap()
    }

    /// Checks that the handler may re-invoke the message with this envelope.
    pub(super) fn reinvocation(&self, handling: &Handling<'_>, claim: &Metadata) -> Result<(), Broken> {
        let Handling { seen, now, first_failure, known } = *handling;
        let broken = |invariant, detail| Err(handling.broken(invariant, detail));
        let retry = seen.origin.attempt.number + 1;
        if claim.attempt != retry {
            let detail = format!("attempt {} is followed by attempt {}", retry - 1, claim.attempt);
            return broken(Invariant::AttemptsByOne, detail);
        }
        if retry > self.policy.settings().max_retries {
            return broken(
                Invariant::MaxRetries,
                format!("attempt {retry} of {}", self.policy.settings().max_retries),
            );
        }
        let failed = handling.failed(claim.origin_request_id.as_deref());
        if known.cancelled(failed, now) {
            let detail = format!("re-invoked at {now}; an operator has cancelled it");
            return broken(Invariant::CancelledNotInvoked, detail);
        }
        let next_record = seen.bytes + RECORD_ALLOWANCE;
        if next_record > LARGEST_MESSAGE + ENVELOPE {
            let detail = format!(
                "re-invoked, though Lambda would drop the record of its next failure, of {next_record} bytes"
            );
            return broken(Invariant::NoneVanishes, detail);
        }
        if claim.initial_timestamp != first_failure.as_secs() {
            let claimed = Timestamp::from_secs(claim.initial_timestamp);
            let detail =
                format!("its envelope counts MAX_AGE from {claimed}; it first failed at {first_failure}");
            return broken(Invariant::MaxAge, detail);
        }
        let end = self.end(handling);
        if now > end {
            return broken(Invariant::MaxAge, format!("re-invoked at {now}; MAX_AGE ended at {end}"));
        }
        if seen.is_first_receive() {
            return broken(Invariant::DueTime, format!("re-invoked at {now}, on a first receive"));
        }
        let earliest = self.earliest(seen, retry, end.min(last_of_retention(seen)));
        let may_be_early = retry < self.policy.settings().max_retries;
        let requested = known.requested(failed, self.asked(seen).is_some(), now);
        let earliest =
            requested.filter(|_| may_be_early).map_or(earliest, |requested| earliest.min(requested));
        if now.saturating_add(CLOCK_TOLERANCE) <= earliest {
            return broken(Invariant::DueTime, format!("re-invoked at {now}; due at {earliest} or later"));
        }
        Ok(())
    }

    /// Checks the visibility timeout of a backoff. Returns the earliest time at which the message can be due.
    pub(super) fn deferral(
        &self,
        handling: &Handling<'_>,
        hidden_for: Duration,
    ) -> Result<Timestamp, Broken> {
        let Handling { seen, now, known, .. } = *handling;
        let (start, waits_from) = if seen.is_first_receive() {
            (now, now.min(seen.first_receive))
        } else {
            (seen.first_receive.saturating_add(SECOND), now)
        };
        let backoff_ends = match self.asked(seen) {
            Some(window) => start.max(window.latest).saturating_add(SECOND),
            None => start.saturating_add(self.longest(seen.origin.attempt.number + 1)),
        };
        let last_retry = self.latest_before(start, self.end(handling).min(last_of_retention(seen)));
        let latest = known.latest_due(start, backoff_ends.min(last_retry), now);
        let most = if seen.is_first_receive() { LONGEST_HIDING } else { LONGEST_LATER_HIDING };
        if now.saturating_add(hidden_for) > latest || hidden_for > most {
            let detail = format!(
                "hidden at {now} for {} s; its wait from {start} ends at {latest} at the latest",
                hidden_for.as_secs()
            );
            return Err(handling.broken(Invariant::LongestWait, detail));
        }
        if known.over(start, now).next().is_some() {
            return Ok(seen.not_before);
        }
        Ok(waits_from.saturating_add(hidden_for.saturating_sub(SECOND)))
    }

    /// Checks that a dead-letter gives a true reason. `key` is the event's key in the dead-letter.
    pub(super) fn dead_letter(
        &self,
        handling: &Handling<'_>,
        reason: ReasonCode,
        key: Option<&str>,
    ) -> Result<(), Broken> {
        let Handling { seen, now, first_failure, known } = *handling;
        let end = self.end(handling);
        let start = if seen.is_first_receive() { now } else { seen.first_receive };
        let is_true = match reason {
            ReasonCode::MaxRetries => seen.origin.attempt.number >= self.policy.settings().max_retries,
            ReasonCode::MaxAge => {
                let is_too_old =
                    !known.is_nothing() && self.is_too_old(now, start, end.min(last_of_retention(seen)));
                is_too_old || now.since(seen.sent) > OLDEST_MESSAGE
            }
            ReasonCode::TargetNotAllowed => seen.origin.flaw == Some(Flaw::Unlisted),
            ReasonCode::MalformedRecord | ReasonCode::PayloadLost => {
                seen.origin.flaw == Some(Flaw::Unreadable)
            }
            // The oracle does not check which errors are non-retryable. The policy's own tests check this.
            ReasonCode::NonRetryableError => true,
            ReasonCode::PayloadTooLarge => seen.bytes + RECORD_ALLOWANCE + ENVELOPE > LARGEST_MESSAGE,
            ReasonCode::Cancelled => known.cancelled(handling.failed(key), now),
            // Nothing in the simulation causes these reasons.
            ReasonCode::TargetNotFound | ReasonCode::TargetRefused | ReasonCode::MalformedEnvelope => false,
        };
        if is_true {
            return Ok(());
        }
        let detail = format!(
            "dead-lettered as {reason} at {now} after attempt {} of {}; MAX_AGE ends at {end}",
            seen.origin.attempt.number,
            self.policy.settings().max_retries
        );
        let without_pauses =
            KnownPauses::NO_PAUSES.end(first_failure, self.policy.max_age(), self.between_reads, now);
        let by_a_pause = reason == ReasonCode::MaxAge && self.is_too_old(now, start, without_pauses);
        let invariant = if by_a_pause { Invariant::PauseEndsNothing } else { Invariant::TrueReasons };
        Err(handling.broken(invariant, detail))
    }

    /// Checks the visibility timeout that was set after a call. After a failed call, the timeout is at most min(3,600,
    /// 2^receive count) seconds. After a call without an answer, the timeout is one to two hours, or shorter if a last
    /// retry would otherwise come too late.
    pub(super) fn hiding(
        &self,
        handling: &Handling<'_>,
        after: After,
        hidden_for: Duration,
    ) -> Result<(), Broken> {
        let cut = self.cut_after_unanswered(handling);
        let (shortest, longest) = match after {
            After::Failure => (Duration::ZERO, self.longest_after_failure(handling.seen, false)),
            After::Unanswered => (cut.min(*AFTER_UNANSWERED.start()), cut.min(*AFTER_UNANSWERED.end())),
            After::LostCopy => {
                (*self.guard(handling).start(), self.longest_of_original(handling, hidden_for))
            }
        };
        let invariant = if hidden_for.as_secs() < shortest.as_secs() {
            Invariant::SpacedInvokes
        } else if hidden_for > longest {
            Invariant::LongestWait
        } else {
            return Ok(());
        };
        let [hidden, shortest, longest] = [hidden_for, shortest, longest].map(|time| time.as_secs());
        let now = handling.now;
        let detail =
            format!("hidden at {now} for {hidden} s ({after:?}), instead of {shortest} to {longest} s");
        Err(handling.broken(invariant, detail))
    }

    /// Returns the range of visibility timeouts that are allowed before a call. A timeout ends one to two hours after
    /// the latest possible end of the batch, or earlier if a last retry would otherwise come too late.
    pub(super) fn guard(&self, handling: &Handling<'_>) -> RangeInclusive<Duration> {
        let cut = self
            .end(handling)
            .since(handling.now.saturating_add(HANDLER_TIMEOUT))
            .saturating_sub(self.last_retry());
        let cut = if cut >= self.last_retry() { cut } else { Duration::from_secs(86_400) };
        // A shortened wait may be off by a second, because the oracle computes the end of MAX_AGE only in whole
        // seconds.
        let shortest = cut.saturating_sub(SECOND).min(*AFTER_UNANSWERED.start());
        let longest = cut.saturating_add(SECOND).min(*AFTER_UNANSWERED.end());
        HANDLER_TIMEOUT + shortest..=HANDLER_TIMEOUT + longest
    }

    /// Returns the longest visibility timeout that the handler may set for the original of a moved message. This is the
    /// longest timeout that is ever allowed before a call, whatever time is left until the end of `MAX_AGE`. If
    /// `hidden_for` is the wait of the message itself, the original may be hidden for longer.
    pub(super) fn longest_of_original(&self, handling: &Handling<'_>, hidden_for: Duration) -> Duration {
        let is_its_wait = handling.is_held(hidden_for) || self.deferral(handling, hidden_for).is_ok();
        if is_its_wait { LONGEST_HIDING } else { HANDLER_TIMEOUT + *AFTER_UNANSWERED.end() }
    }

    /// Returns the longest time for which the handler may keep a message hidden because of a pause, or because it has
    /// never read the pauses. Returns `None` for all other messages, and if `wait` is longer than this time.
    pub(super) fn longest_keep(&self, handling: &Handling<'_>, wait: Duration) -> Option<Duration> {
        let after_failure = self.longest_after_failure(handling.seen, false);
        let longest = handling.known.longest_keep(handling.now, handling.seen.receive_count, after_failure);
        longest.filter(|longest| wait <= *longest)
    }

    pub(super) fn longest_after_failure(&self, seen: &SeenMessage, unanswered: bool) -> Duration {
        if unanswered {
            return *AFTER_UNANSWERED.end() + INVOKE_TIME;
        }
        Duration::from_secs(3_600.min(1 << seen.receive_count.min(12)))
    }

    pub(super) fn shortest_after_unanswered(&self, handling: &Handling<'_>) -> Duration {
        self.cut_after_unanswered(handling).min(*AFTER_UNANSWERED.start())
    }

    fn cut_after_unanswered(&self, handling: &Handling<'_>) -> Duration {
        let cut = self.end(handling).since(handling.now).saturating_sub(self.last_retry());
        // The handler subtracts the time that it waited for the answer to the invoke.
        let cut = cut.saturating_sub(INVOKE_TIME);
        if cut >= self.last_retry() { cut } else { Duration::MAX }
    }

    fn earliest(&self, seen: &SeenMessage, retry: u64, end: Timestamp) -> Timestamp {
        let asked = self.asked(seen).map(|window| window.earliest.since(seen.first_receive));
        let mut shortest = asked.unwrap_or_else(|| self.shortest(retry));
        let cut = end.since(seen.first_receive).saturating_sub(self.last_retry());
        if cut >= self.last_retry() {
            shortest = shortest.min(cut);
        }
        // A later check may cut the wait. The wait counts from the first receive; on the first receive, it counts from
        // now.
        let last = end.before(self.last_retry());
        seen.first_receive.saturating_add(shortest).max(seen.not_before.min(last))
    }

    /// Returns the due times that the target's `RetryAfter` allows, if the policy honors it; otherwise `None`.
    fn asked(&self, seen: &SeenMessage) -> Option<Window> {
        seen.asked.filter(|_| self.policy.settings().directives)
    }

    /// Returns the latest end of a wait that begins at `start` and leaves time for a last retry before `end`.
    fn latest_before(&self, start: Timestamp, end: Timestamp) -> Timestamp {
        start.max(end.before(self.last_retry())).saturating_add(SECOND)
    }

    /// Returns true if a wait that begins at `start` leaves no time for a retry before `end`.
    fn is_too_old(&self, now: Timestamp, start: Timestamp, end: Timestamp) -> bool {
        now > end || end.since(start) < 2 * self.last_retry()
    }

    /// Returns the time from the last retry to the end of `MAX_AGE`. At least the same time passes between the first
    /// receive and the last retry.
    fn last_retry(&self) -> Duration {
        Duration::from_secs(60).min(self.policy.max_age() / 10)
    }

    fn end(&self, handling: &Handling<'_>) -> Timestamp {
        // Envelopes contain times in whole seconds.
        let first_failure = Timestamp::from_secs(handling.first_failure.as_secs());
        handling.known.end(first_failure, self.policy.max_age(), self.between_reads, handling.now)
    }

    fn shortest(&self, retry: u64) -> Duration {
        let ceiling = self.policy.backoff().ceiling(retry);
        match self.policy.backoff().jitter() {
            Jitter::Full => SECOND,
            Jitter::Equal => Duration::from_secs(ceiling.as_secs().div_ceil(2)),
            Jitter::Decorrelated => self.policy.backoff().base(),
            Jitter::None => ceiling,
        }
    }

    fn longest(&self, retry: u64) -> Duration {
        match self.policy.backoff().jitter() {
            Jitter::Full | Jitter::Equal | Jitter::None => self.policy.backoff().ceiling(retry),
            Jitter::Decorrelated => {
                let tripled = 3u32.saturating_pow(u32::try_from(retry).unwrap_or(u32::MAX));
                self.policy.backoff().base().saturating_mul(tripled).min(self.policy.backoff().cap())
            }
        }
    }
}

/// Limits on the number of messages in flight. The limits hold as long as the handler alone keeps messages in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlightBound {
    /// Maximum number of messages in flight; `None` if the number is unlimited.
    most: Option<usize>,
    /// True if messages must not stay visible while a poller is free.
    no_stall: bool,
}

impl InFlightBound {
    pub(crate) fn of(policy: &Policy, scenario: &Scenario) -> Self {
        let HideUpTo::UpTo(most) = policy.settings().hide_up_to else {
            return Self { most: None, no_stall: false };
        };
        let batches = policy.settings().maximum_concurrency as usize * scenario.batch_size;
        let bound = 2 * most as usize + batches;
        let fits = bound <= scenario.in_flight_limit;
        let worst = scenario.faults.iter().map(|(fault, _)| fault.row().2).max();
        let most = (fits && worst <= Some(Room::Kept)).then_some(bound);
        Self { most, no_stall: fits && worst < Some(Room::Full) }
    }

    /// Fails if more messages are in flight than allowed, or if messages are visible although a poller is free.
    pub(crate) fn check(self, in_flight: usize, left_visible: bool) -> Result<(), Broken> {
        if let Some(most) = self.most.filter(|&most| in_flight > most) {
            let detail = format!("{in_flight} messages are in flight; {most} at most");
            return Err(Broken::new(Invariant::BoundedInFlight, None, detail));
        }
        if left_visible && self.no_stall {
            let detail = format!("messages are visible, pollers are free, and {in_flight} are in flight");
            return Err(Broken::new(Invariant::NoStall, None, detail));
        }
        Ok(())
    }
}

/// Returns the time at which the handler dead-letters a message regardless of its event's age, because SQS would soon
/// delete the message.
fn last_of_retention(seen: &SeenMessage) -> Timestamp {
    seen.sent.saturating_add(OLDEST_MESSAGE)
}

impl Handling<'_> {
    /// Returns true if `wait` may continue a wait that began after a failed call about an earlier copy of the message.
    pub(super) fn is_held(&self, wait: Duration) -> bool {
        let ends_by = |until: Timestamp| {
            self.now < until && self.now.saturating_add(wait) <= until.saturating_add(SECOND)
        };
        self.seen.held_until.is_some_and(ends_by)
    }

    /// Returns the properties that operators' requests use to select the event. `key` is the event's key, as written by
    /// the handler.
    fn failed<'k>(&self, key: Option<&'k str>) -> Failed<'k> {
        Failed { sent: self.seen.first_sent, error: self.seen.origin.error, key }
    }

    pub(super) fn broken(&self, invariant: Invariant, detail: impl Into<String>) -> Broken {
        Broken::new(invariant, self.seen.origin.attempt.event, detail)
    }
}

impl SeenMessage {
    /// Returns true if this is the message's first receive, according to the receive count that the handler sees.
    fn is_first_receive(&self) -> bool {
        self.receive_count <= 1
    }
}

#[cfg(test)]
mod tests;
