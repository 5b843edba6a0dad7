//! The oracle's own arithmetic for the age, the due times and the allowed visibility timeouts of a message.

use std::ops::RangeInclusive;
use std::time::Duration;

use comeback_engine::{HANDLER_TIMEOUT, Jitter, Policy, Timestamp};

use super::history::{After, Origin};
use super::pauses::{Failed, KnownPauses};
use super::{HOLD, SECOND};
use crate::event::EventNumber;

/// Longest visibility timeout after a message's first receive: SQS's 12 hours from the receive, less 30 s.
const LONGEST_HIDING: Duration = Duration::from_secs(12 * 3_600 - 30);
/// Longest visibility timeout from a message's second receive on: SQS's 12 hours, less 30 s, less the 1,230 s for which
/// a throttled poller may have held the message.
const LONGEST_LATER_HIDING: Duration = Duration::from_secs(12 * 3_600 - 30 - 1_230);
/// Age after which the handler dead-letters a message: half a day less than the queue's retention period of 14 days.
const OLDEST_MESSAGE: Duration = Duration::from_secs((13 * 24 + 12) * 3_600);
/// Range of visibility timeouts allowed after an `Invoke` call that got no response.
const AFTER_UNANSWERED: RangeInclusive<Duration> = Duration::from_secs(3_600)..=Duration::from_secs(7_200);
/// Time that the handler waits for the response to an `Invoke` call.
const INVOKE_TIME: Duration = Duration::from_secs(20);
/// Longest time that a message may wait if the handler got no response to a re-invocation and then moved the message.
pub(super) const LONGEST_AFTER_UNANSWERED: Duration = Duration::from_secs(7_200 + INVOKE_TIME.as_secs());

/// A message as the handler sees it, with the oracle's data about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenMessage {
    pub(super) origin: Origin,
    /// The message's receive count as the handler sees it, perhaps changed by a fault.
    pub(super) receive_count: u32,
    pub(super) first_receive: Timestamp,
    pub(super) sent: Timestamp,
    /// Time at which the first copy of the message was sent.
    pub(super) first_sent: Timestamp,
    pub(super) bytes: usize,
    /// Earliest time for a re-invocation, given the visibility timeouts that handlers have set.
    pub(super) not_before: Timestamp,
    /// Latest end of a wait caused by a pause or a failed call, or `None` for any other wait.
    pub(super) held_until: Option<Timestamp>,
}

/// A message that a handler processes, as it was when the batch began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handling<'a> {
    pub(super) seen: &'a SeenMessage,
    pub(super) now: Timestamp,
    /// When the event first failed, even if the message says otherwise.
    pub(super) first_failure: Timestamp,
    pub(super) known: &'a KnownPauses,
    pub(super) policy: &'a Policy,
    /// Longest time between two consecutive attempts by one environment to read the pauses.
    pub(super) between_reads: Duration,
}

impl Handling<'_> {
    pub(super) fn event(&self) -> EventNumber {
        self.seen.origin.attempt.event
    }

    pub(super) fn retry(&self) -> u64 {
        self.seen.origin.attempt.number + 1
    }

    pub(super) fn is_first_receive(&self) -> bool {
        self.seen.receive_count <= 1
    }

    /// Returns the properties that a request can select the event by. `key` is the event's key as the handler wrote it.
    pub(super) fn failed<'k>(&self, key: Option<&'k str>) -> Failed<'k> {
        Failed { sent: self.seen.first_sent, error: self.seen.origin.error, key }
    }

    /// Returns the time at which the event reaches `MAX_AGE`.
    pub(super) fn end(&self) -> Timestamp {
        // Envelopes contain times in whole seconds.
        let first_failure = Timestamp::from_secs(self.first_failure.as_secs());
        self.known.end(first_failure, self.policy.max_age(), self.between_reads, self.now)
    }

    /// Returns the earlier of [`Self::end`] and the time at which the message itself becomes too old.
    fn end_of_message(&self) -> Timestamp {
        self.end().min(self.seen.sent.saturating_add(OLDEST_MESSAGE))
    }

    /// Returns the time between the last retry and the end of `MAX_AGE`. The wait before the last retry is at least as
    /// long.
    fn last_retry(&self) -> Duration {
        Duration::from_secs(60).min(self.policy.max_age() / 10)
    }

    /// Returns the time from `start` to the event's last retry, or `Duration::MAX` if `end` comes too soon for a retry.
    fn until_last_retry(&self, start: Timestamp, end: Timestamp) -> Duration {
        let cut = end.since(start).saturating_sub(self.last_retry());
        if cut >= self.last_retry() { cut } else { Duration::MAX }
    }

    pub(super) fn is_too_old(&self) -> bool {
        let is_too_old = !self.known.is_nothing() && self.leaves_no_retry_before(self.end_of_message());
        is_too_old || self.now.since(self.seen.sent) > OLDEST_MESSAGE
    }

    pub(super) fn leaves_no_retry_before(&self, end: Timestamp) -> bool {
        let start = if self.is_first_receive() { self.now } else { self.seen.first_receive };
        self.now > end || end.since(start) < 2 * self.last_retry()
    }

    /// Returns the range of due times that the target's `RetryAfter` allows, unless the policy ignores it.
    fn asked(&self) -> Option<RangeInclusive<Timestamp>> {
        let asked = self.seen.origin.window(self.seen.first_sent);
        asked.filter(|_| self.policy.settings().directives)
    }

    pub(super) fn earliest_due(&self, failed: Failed<'_>) -> Timestamp {
        let (seen, end) = (self.seen, self.end_of_message());
        let asked = self.asked().map(|window| window.start().since(seen.first_receive));
        let shortest = asked.unwrap_or_else(|| *self.backoffs().start());
        let shortest = shortest.min(self.until_last_retry(seen.first_receive, end));
        // A later check may shorten the wait, to leave time for a last retry.
        let last = end.before(self.last_retry());
        let earliest = seen.first_receive.saturating_add(shortest).max(seen.not_before.min(last));
        let requested = self.known.requested(failed, self.asked().is_some(), self.now);
        // A request does not bring the last retry forward.
        let requested = requested.filter(|_| self.retry() < self.policy.settings().max_retries);
        requested.map_or(earliest, |requested| requested.min(earliest))
    }

    /// Returns the latest time at which the wait before the next retry may have begun.
    fn wait_start(&self) -> Timestamp {
        if self.is_first_receive() { self.now } else { self.seen.first_receive.saturating_add(SECOND) }
    }

    pub(super) fn latest_due(&self) -> Timestamp {
        let start = self.wait_start();
        let backoff_ends = match self.asked() {
            Some(window) => start.max(*window.end()).saturating_add(SECOND),
            None => start.saturating_add(*self.backoffs().end()),
        };
        let last_retry = start.max(self.end_of_message().before(self.last_retry())).saturating_add(SECOND);
        let latest = self.known.latest_due(start, backoff_ends.min(last_retry), self.now);
        let most = if self.is_first_receive() { LONGEST_HIDING } else { LONGEST_LATER_HIDING };
        latest.min(self.now.saturating_add(most))
    }

    /// Returns the earliest time at which the message can be due if the handler hides it for `hidden_for`.
    pub(super) fn not_before(&self, hidden_for: Duration) -> Timestamp {
        if self.known.over(self.wait_start(), self.now).next().is_some() {
            return self.seen.not_before;
        }
        let start = if self.is_first_receive() { self.now.min(self.seen.first_receive) } else { self.now };
        start.saturating_add(hidden_for.saturating_sub(SECOND))
    }

    /// Returns the range of backoffs that the policy allows before the next retry.
    fn backoffs(&self) -> RangeInclusive<Duration> {
        let backoff = self.policy.backoff();
        let ceiling = backoff.ceiling(self.retry());
        match backoff.jitter() {
            Jitter::Full => SECOND..=ceiling,
            Jitter::Equal => Duration::from_secs(ceiling.as_secs().div_ceil(2))..=ceiling,
            Jitter::None => ceiling..=ceiling,
            Jitter::Decorrelated => {
                let tripled = 3u32.saturating_pow(u32::try_from(self.retry()).unwrap_or(u32::MAX));
                backoff.base()..=backoff.base().saturating_mul(tripled).min(backoff.cap())
            }
        }
    }

    /// Returns true if the handler may delay the message by `wait` because of a failed call, a pause, or pauses that it
    /// has not read yet.
    pub(super) fn may_be_kept(&self, wait: Duration) -> bool {
        self.is_held(wait) || self.longest_keep(wait).is_some()
    }

    /// Returns true if `wait` may be the rest of a wait that began with an earlier copy of the message.
    fn is_held(&self, wait: Duration) -> bool {
        self.seen.held_until.is_some_and(|until| {
            self.now < until && self.now.saturating_add(wait) <= until.saturating_add(SECOND)
        })
    }

    /// Returns the longest visibility timeout that is allowed because the function is paused, or because the pauses
    /// have not been read yet. Returns `None` if neither is the case, or if `wait` is longer.
    pub(super) fn longest_keep(&self, wait: Duration) -> Option<Duration> {
        let longest = if self.known.is_nothing() {
            Some(self.longest_after_failure())
        } else {
            (!self.is_first_receive() && self.known.active(self.now).is_some()).then_some(HOLD)
        };
        longest.filter(|longest| wait <= *longest)
    }

    /// Returns the range of visibility timeouts that the handler may set for a message before it re-invokes the target.
    pub(super) fn before_call(&self) -> RangeInclusive<Duration> {
        let cut = self.until_last_retry(self.now.saturating_add(HANDLER_TIMEOUT), self.end());
        // The oracle counts MAX_AGE in whole seconds, so a shortened wait may be off by a second.
        let shortest = cut.saturating_sub(SECOND).min(*AFTER_UNANSWERED.start());
        let longest = cut.saturating_add(SECOND).min(*AFTER_UNANSWERED.end());
        HANDLER_TIMEOUT + shortest..=HANDLER_TIMEOUT + longest
    }

    /// Returns the longest visibility timeout that the handler may set for the original of a moved message.
    pub(super) fn longest_of_original(&self, hidden_for: Duration) -> Duration {
        let is_its_wait =
            self.is_held(hidden_for) || self.now.saturating_add(hidden_for) <= self.latest_due();
        if is_its_wait { LONGEST_HIDING } else { HANDLER_TIMEOUT + *AFTER_UNANSWERED.end() }
    }

    /// Returns the range of visibility timeouts allowed after a call that failed or got no response.
    pub(super) fn after_call(&self, after: After, hidden_for: Duration) -> RangeInclusive<Duration> {
        let allowed = match after {
            After::Failure => Duration::ZERO..=self.longest_after_failure(),
            After::Unanswered => self.after_unanswered(),
            After::LostCopy => *self.before_call().start()..=self.longest_of_original(hidden_for),
        };
        Duration::from_secs(allowed.start().as_secs())..=*allowed.end()
    }

    pub(super) fn longest_after_failure(&self) -> Duration {
        Duration::from_secs(3_600.min(1 << self.seen.receive_count.min(12)))
    }

    /// Returns the range of waits allowed after an `Invoke` call that got no response.
    pub(super) fn after_unanswered(&self) -> RangeInclusive<Duration> {
        // The handler subtracts the time that it spent waiting for the response.
        let cut = self.until_last_retry(self.now.saturating_add(INVOKE_TIME), self.end());
        cut.min(*AFTER_UNANSWERED.start())..=cut.min(*AFTER_UNANSWERED.end())
    }
}
