//! The handler's rules for a message, in the order in which they apply. The rules are pure, and no message makes them
//! panic.
//!
//! `POLICIES` may give a function its own policy. A change to a policy also affects events that are already waiting.
//!
//! - *n* is the number of the retry about to be made, starting at 1.
//! - *t0* is the time of the first failure.
//! - *start* is the time when the message was first received. On a first receive, *start* is now.
//!
//! A moved message (one sent again with a delay) keeps the id, the receive count and the `SentTimestamp` of the
//! original. Only rule 4's limit of 13 days and 12 hours counts from the copy's own `SentTimestamp`.
//!
//! `MAX_AGE` counts from *t0*. Its clock is stopped while the function is paused, and for another 1,344 s after the
//! handler notices the end of the pause, because the handler may need that long to check every held event. The rules
//! assume that the handler notices the end as late as it can: after the longest interval between two reads of the
//! pauses. If this assumed time is in the future, or if the pause is still open, the rules use the current time
//! instead.
//!
//! 1. A message that is not an invocation record, or has a malformed envelope, is dead-lettered. An event redriven to
//!    the retry queue starts over, with *n* = 1 and *t0* = `SentTimestamp`. A message is a redriven event if it is one
//!    of our dead-letters, or a record whose `timestamp` is more than 24 h before `SentTimestamp`.
//! 2. An event is dead-lettered if `TARGET_FUNCTIONS` does not allow its function (`target_not_allowed`).
//! 3. An event is dead-lettered if its record says 404 (`target_not_found`), or if its error is not retryable
//!    (`non_retryable_error`): one of the [names](crate::error_names()) of the error's type matches
//!    `NON_RETRYABLE_ERRORS`, or its simple name is `NonRetryable`, `NonRetriable` or `NeverRetry`.
//! 4. An event is dead-lettered in four cases, checked in this order: *n* is over `MAX_RETRIES` (`max_retries`),
//!    `MAX_AGE` has passed since *t0* (`max_age`), its message was sent over 13 days and 12 hours ago (`max_age`), or
//!    an operator's [cancel request](crate::Request) applies to it (`cancelled`). A cancel request applies to an event
//!    if the event's message was sent before the request's `at`. If the request names keys, it applies to the events
//!    with these keys, regardless of when they failed.
//! 5. The delay is a whole number of seconds. It depends on `JITTER`:
//!    - `full` draws from {1 … *c*}.
//!    - `equal` draws from {⌈*c*/2⌉ … *c*}.
//!    - `none` is *c*.
//!    - `decorrelated` draws *s*ₙ from {`BASE_BACKOFF` … min(`MAX_BACKOFF`, 3·*s*ₙ₋₁)}, where *s*₀ is `BASE_BACKOFF`.
//!
//!    The ceiling *c* is min(`MAX_BACKOFF`, `BASE_BACKOFF` · 2^(*n*−1)), or the *n*th entry in `BACKOFFS`; the last
//!    entry repeats. The random number generator is seeded with the message's id and *n*, or, for `decorrelated`, with
//!    the event's key.
//!
//!    If the error's simple name is `RetryAfter` and its message names a time after the failure, the delay ends at
//!    that time instead, even if the delay is then longer than `MAX_BACKOFF`. Jitter of up to a tenth of the time
//!    from the failure to that time is added. It is drawn from another generator, which is seeded with the message's
//!    id and *n*. If the result is not after *start*, the delay is zero. The time of the failure is the record's
//!    `timestamp`, or `SentTimestamp` if that is earlier. A `RetryAfter` with any other message changes nothing.
//! 6. The last possible retry is made *m* = min(60 s, `MAX_AGE`/10) before *t0* + `MAX_AGE`, or before the end of
//!    rule 4's 13 days and 12 hours if that is sooner. A delay from *start* that would end later is cut to end then.
//!    If the cut leaves a delay under *m*, the event is dead-lettered instead (`max_age`).
//! 7. The retry is due at *start* + delay. A pause and a retry request may change this due time, in this order:
//!    - A pause: if a pause of the function is over and ended after the due time, the retry moves to a random time
//!      within the pause's spread period. This period begins at the end of the pause, and ends no later than rule 6's
//!      last retry. The generator is seeded with the message's id, *n* and the end of the pause. Later pauses may move
//!      the retry again.
//!    - A [retry request](crate::Request): if the message was sent before the request's `at`, the retry becomes due at
//!      a random time between `at` and `at` + `within`, but not before *start*. The generator is seeded with the
//!      message's id, *n* and `at`. Pauses move that time like any other due time. A request changes nothing if the
//!      retry would not become due sooner, if a pause has moved the retry, or if *n* is `MAX_RETRIES`. Only a request
//!      that names keys can shorten a wait that a `RetryAfter` requested.
//! 8. The message is deferred until the retry is due: always on a first receive, and on a later receive if 0.5 s or
//!    more is left.
//! 9. An event that is due while its function is paused is held: hidden for 1,344 s, or until the planned end of the
//!    pause if that is sooner.
//! 10. A deferral is rounded up to whole seconds, at least 1. On a first receive, it ends at most 43,170 s after the
//!     receive; on a later receive, at most 41,940 s from now. A longer wait takes several deferrals.
//! 11. An event is dead-lettered (`payload_too_large`) instead of re-invoked if the record of its next failure could be
//!     over 1,048,576 bytes. Its size is estimated as the size of the current record, with the payload in the new
//!     envelope, plus 64 KiB.
//!
//! With `DIRECTIVES` off, an error's simple name matters only to `NON_RETRYABLE_ERRORS`.

use std::time::Duration;

use comeback_backoff::Jitter;
use comeback_envelope::{Envelope, Metadata};
use rand::RngExt;

use crate::dead_letter::{Reason, ReasonCode, SQS_MESSAGE_BYTES};
use crate::directive::Directive;
use crate::failed_event::FailedEvent;
use crate::outcome::{DueBy, Early};
use crate::pauses::{Pause, Pauses, returns_at};
use crate::policies::Policies;
use crate::policy::Policy;
use crate::record::Record;
use crate::requests::{Request, RequestKind};
use crate::seed::generator;
use crate::time::{Timestamp, ceil_secs};
use crate::timing::{
    HOLD, LONGEST_VISIBILITY, QUEUE_VISIBILITY_TIMEOUT, RETENTION_MARGIN, VISIBILITY_MARGIN,
    longest_between_reads,
};

/// A retry counts as due this long before its due time, because SQS's clock and the handler's may differ.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(500);
/// Assumed maximum growth of an event's record, without the payload, from one failure to the next, in bytes. The next
/// record may add an error and its stack trace: about 10 KiB for an ordinary trace in Java or Node.
const RECORD_ALLOWANCE: usize = 64 * 1_024;
/// Maximum number of characters that a reason's detail quotes from one string, because details are logged.
const SHOWN_CHARACTERS: usize = 256;
/// Time from the last possible retry to the end of `MAX_AGE`, or a tenth of `MAX_AGE` if that is shorter.
const LAST_RETRY_MARGIN: Duration = Duration::from_secs(60);
/// Maximum jitter added to the wait that a `RetryAfter` requests, as a fraction of that wait.
const RETRY_AFTER_JITTER: f64 = 0.1;

/// The next step for a message, as decided by [`decide()`].
#[derive(Clone, Debug)]
pub enum Action<'a> {
    /// Hide the message for a while, because its retry is not due yet.
    Defer {
        /// When the message's retry is due.
        due: Timestamp,
        /// The new visibility timeout of the message: whole seconds, 1 to 43,170.
        visibility_timeout: Duration,
        /// The rule or request that set the due time.
        due_by: DueBy,
        /// The retry request, if any, that made the retry due earlier.
        early: Option<Early>,
    },
    /// Hide the message because its function is paused, although its retry is due. This does not count as a retry.
    Hold {
        /// When the message's retry was due.
        due: Timestamp,
        /// The time until the handler checks the hidden message again: whole seconds, 1 to 1,344.
        visibility_timeout: Duration,
    },
    /// Re-invoke the target function.
    Reinvoke {
        /// When the message's retry was due.
        due: Timestamp,
        /// The retry request that made the retry due earlier; `None` if no request did.
        early: Option<Early>,
        /// The payload for the target, in its envelope.
        envelope: Envelope<'a>,
    },
    /// Send the event to the dead-letter queue.
    DeadLetter {
        /// The reason for dead-lettering the event.
        reason: Reason,
    },
}

impl Action<'_> {
    /// The time when the retry is due; `None` if the event is dead-lettered.
    pub const fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Defer { due, .. } | Self::Hold { due, .. } | Self::Reinvoke { due, .. } => Some(*due),
            Self::DeadLetter { .. } => None,
        }
    }
}

/// Decides the next step for a message at `now`, under the policy of its function.
pub fn decide<'a>(record: &'a Record, policies: &Policies, pauses: &Pauses, now: Timestamp) -> Action<'a> {
    match FailedEvent::read(record) {
        Ok(event) => {
            let event = event.under(policies);
            let policy = policies.of(&event.function_arn);
            let case = Case { event: &event, record, policy, pauses: Some(pauses), now };
            case.decide().expect("BUG: the pauses are known")
        }
        Err(reason) => Action::DeadLetter { reason },
    }
}

/// Everything that a decision depends on.
#[derive(Clone, Copy)]
pub(crate) struct Case<'c, 'r> {
    pub(crate) event: &'c FailedEvent<'r>,
    pub(crate) record: &'c Record,
    pub(crate) policy: &'c Policy,
    /// The pauses that the handler last read; `None` until it has read them.
    pub(crate) pauses: Option<&'c Pauses>,
    pub(crate) now: Timestamp,
}

struct Due {
    at: Timestamp,
    by: DueBy,
    early: Option<Early>,
}

impl<'r> Case<'_, 'r> {
    /// Decides the next step for the message by rules 2 to 11 above. Returns `None` if unknown pauses could change the
    /// decision.
    pub(crate) fn decide(&self) -> Option<Action<'r>> {
        let dead_letter = |reason| Some(Action::DeadLetter { reason });
        if let Some(reason) = self.ruled_out() {
            return dead_letter(reason);
        }
        // Pauses do not extend SQS's 14 days.
        let expiring = expiring(self.record, self.record.sent, self.now);
        if self.now > self.end_of_max_age() {
            let is_certain = self.pauses.is_some() || expiring.is_some();
            return if is_certain { dead_letter(self.too_old()) } else { None };
        }
        if let Some(reason) = expiring.or_else(|| self.cancelled()) {
            return dead_letter(reason);
        }
        let Some(Due { at: due, by: due_by, early }) = self.due() else {
            return self.pauses.and_then(|_| dead_letter(self.out_of_time()));
        };
        if let Some(left) = self.left_to_serve(due) {
            return Some(Action::Defer { due, visibility_timeout: self.deferral(left), due_by, early });
        }
        if let Some(visibility_timeout) = self.hold() {
            return Some(Action::Hold { due, visibility_timeout });
        }
        match self.envelope() {
            Ok(envelope) => self.pauses.map(|_| Action::Reinvoke { due, early, envelope }),
            Err(reason) => dead_letter(reason),
        }
    }

    /// Returns the reason to dead-letter the event if rule 2, rule 3 or `MAX_RETRIES` (rule 4) forbids a retry.
    fn ruled_out(&self) -> Option<Reason> {
        let Self { event, policy, .. } = *self;
        if !policy.allows(&event.function_arn) {
            let detail = "the function is not on TARGET_FUNCTIONS";
            return Some(Reason::new(ReasonCode::TargetNotAllowed, detail));
        }
        if event.not_found {
            return Some(Reason::new(ReasonCode::TargetNotFound, "the invocation record has status 404"));
        }
        if event.error_type().is_some_and(|error_type| policy.is_non_retryable(error_type)) {
            let detail = format!("{} matches NON_RETRYABLE_ERRORS", self.shown_error_type());
            return Some(Reason::new(ReasonCode::NonRetryableError, detail));
        }
        if event.directive == Some(Directive::NonRetryable) {
            let detail = format!("{} forbids retries; DIRECTIVES is on", self.shown_error_type());
            return Some(Reason::new(ReasonCode::NonRetryableError, detail));
        }
        if event.retry > policy.settings().max_retries {
            let made = event.retries_made();
            let retries = if made == 1 { "retry" } else { "retries" };
            let detail = format!("{made} {retries} made; MAX_RETRIES is {}", policy.settings().max_retries);
            return Some(Reason::new(ReasonCode::MaxRetries, detail));
        }
        None
    }

    fn shown_error_type(&self) -> String {
        shown(self.event.error_type().unwrap_or_default())
    }

    /// The pauses that apply to the event's function; empty while the pauses are unknown.
    fn pauses(&self) -> impl Iterator<Item = &Pause> {
        self.pauses.into_iter().flat_map(|pauses| pauses.of_function(&self.event.function_arn))
    }

    /// The time at which the event reaches `MAX_AGE`, not counting paused time or a [`HOLD`] after each pause.
    ///
    /// A pause that has not ended yet is treated as if it ended now, because an operator can end it at any time. The
    /// result never gets earlier from one check of an event to the next, so a wait that fits now still fits later.
    pub(crate) fn end_of_max_age(&self) -> Timestamp {
        let Self { event, policy, now, .. } = *self;
        let latest_notice = longest_between_reads(policy.settings().maximum_concurrency);
        let mut end = event.first_failure.saturating_add(policy.max_age());
        let mut counted_until = event.first_failure;
        for pause in self.pauses().take_while(|pause| pause.from <= now) {
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

    fn too_old(&self) -> Reason {
        let Self { event, record, policy, .. } = self;
        let max_age_secs = policy.max_age().as_secs();
        max_age(record, &format!("first failed at {}; MAX_AGE is {max_age_secs} s", event.first_failure))
    }

    /// Returns the reason to dead-letter the event if an operator's cancel request applies to it (rule 4 above).
    fn cancelled(&self) -> Option<Reason> {
        let Request { by, why, .. } = self.pauses?.requests_to(RequestKind::Cancel).find(|request| {
            (self.record.first_sent() < request.at || request.names_keys()) && self.is_reached_by(request)
        })?;
        let said = |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(shown);
        let by = said(by).unwrap_or_else(|| "an operator".into());
        let why = said(why).map(|why| format!(": {why}")).unwrap_or_default();
        let maybe = if self.is_held_since_due() { "" } else { maybe_called(self.record) };
        Some(Reason::new(ReasonCode::Cancelled, format!("cancelled by {by}{why}{maybe}")))
    }

    /// Returns true if the request is in force and covers the event's function, error type and key. The caller must
    /// check when the message was sent.
    fn is_reached_by(&self, request: &Request) -> bool {
        let FailedEvent { function_arn, origin_request_id, .. } = self.event;
        request.is_in_force(self.now)
            && request.covers(function_arn, self.event.error_type(), origin_request_id)
    }

    /// Returns true if every handler environment knew of the function's pause by the time the retry became due. If so,
    /// no environment has made the retry.
    fn is_held_since_due(&self) -> bool {
        let noticed = longest_between_reads(self.policy.settings().maximum_concurrency);
        let Some(due) = self.due() else { return false };
        self.pauses().any(|pause| pause.is_active(self.now) && pause.from.saturating_add(noticed) <= due.at)
    }

    /// Determines when the retry is due (rules 5 to 7 above); `None` if no backoff fits before [the last
    /// moment](Self::last_moment).
    fn due(&self) -> Option<Due> {
        let start = self.start();
        let delay = self.cut(self.delay(start), start, self.last_moment())?;
        let served = start.saturating_add(delay);
        let due = self.due_after_pauses(served);
        let requested = if due == served { self.requested(start, due) } else { None };
        let by = match self.event.directive {
            _ if due != served => DueBy::Pause,
            Some(Directive::RetryAfter(_)) => DueBy::RetryAfter,
            _ => DueBy::Policy,
        };
        Some(requested.unwrap_or(Due { at: due, by, early: None }))
    }

    fn start(&self) -> Timestamp {
        if self.record.is_first_receive() { self.now } else { self.record.first_receive }
    }

    /// Returns the retry's delay, counted from `start` (rule 5 in the module's documentation).
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

    /// Draws the backoff from a seed, so that every receive of a message gets the same delay. The seed is usually the
    /// message's first id. With decorrelated jitter, the seed is the event's key, because a delay then depends on the
    /// delays of the event's earlier messages.
    fn draw(&self) -> Duration {
        let Self { event, record, policy, .. } = self;
        let mut rng = match policy.backoff().jitter() {
            Jitter::Decorrelated => generator(&event.origin_request_id, 0),
            Jitter::Full | Jitter::Equal | Jitter::None => generator(record.first_id(), event.retry),
        };
        // The last entry in `BACKOFFS` repeats.
        let retry = policy.backoff().retries().map_or(event.retry, |last| event.retry.min(last));
        policy.backoff().delay(retry, &mut rng).expect("BUG: a policy has a backoff")
    }

    /// Shortens a wait that begins at `start`, so that one more retry fits before `end` (rule 6 above). Returns `None`
    /// if the shortened wait would be too short.
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

    /// The time when `MAX_AGE` runs out, or 13 days and 12 hours after the message was sent, whichever is sooner.
    fn last_moment(&self) -> Timestamp {
        self.end_of_max_age().min(self.record.sent.saturating_add(RETENTION_MARGIN))
    }

    fn out_of_time(&self) -> Reason {
        if self.last_moment() < self.end_of_max_age() {
            kept_too_long(self.record, self.record.sent)
        } else {
            self.too_old()
        }
    }

    /// Returns the retry's due time, which is `due` unless a pause that has ended moves it (rule 7 in the module's
    /// documentation).
    fn due_after_pauses(&self, due: Timestamp) -> Timestamp {
        let over = self.pauses().filter(|pause| pause.is_over(self.now));
        over.fold(due, |due, pause| match pause.until {
            Some(until) if due < until => {
                let spread = pause.spread.min(self.left_at(until));
                returns_at(until, spread, self.record.first_id(), self.event.retry)
            }
            _ => due,
        })
    }

    /// Returns the time from `over`, the end of a pause, to the last possible retry. Once the handler has noticed that
    /// the pause is over, further paused time is ignored. Otherwise, a later pause would change the due times of events
    /// that this pause held.
    fn left_at(&self, over: Timestamp) -> Duration {
        let noticed = over.saturating_add(longest_between_reads(self.policy.settings().maximum_concurrency));
        let then = Self { now: noticed.min(self.now), ..*self };
        self.longest(over, then.last_moment())
    }

    /// Returns the earliest time at which a retry request makes the retry due (rule 7 above), or `None` if no request
    /// makes it due before `otherwise_due`.
    fn requested(&self, start: Timestamp, otherwise_due: Timestamp) -> Option<Due> {
        let Self { event, record, policy, .. } = *self;
        if event.retry >= policy.settings().max_retries {
            return None;
        }
        let asked_to_wait = matches!(event.directive, Some(Directive::RetryAfter(_)));
        let reaching = self.pauses?.requests_to(RequestKind::Retry).filter(|request| {
            record.first_sent() < request.at
                && self.is_reached_by(request)
                && (request.names_keys() || !asked_to_wait)
        });
        let moments = reaching.map(|request| {
            let at = request.due_of(record.first_id(), event.retry).max(start);
            let at = self.due_after_pauses(at);
            let early = Early { otherwise_due, asked_at: request.at, asked_by: request.by.clone() };
            Due { at, by: DueBy::RetryNow, early: Some(early) }
        });
        moments.filter(|due| due.at < otherwise_due).min_by_key(|due| due.at)
    }

    /// Returns the time left until the retry is due, even if it is zero on a first receive (rule 8 above). Returns
    /// `None` if the message need not wait.
    fn left_to_serve(&self, due: Timestamp) -> Option<Duration> {
        let left = due.since(self.now);
        let first = self.record.is_first_receive();
        if !first && left < CLOCK_TOLERANCE {
            return None;
        }
        Some(left)
    }

    /// Returns how long to hide the message because of a pause (rule 9 above), or `None` if its function is not
    /// paused.
    fn hold(&self) -> Option<Duration> {
        let active = self.pauses().filter(|pause| pause.is_active(self.now));
        let left = active.map(|pause| pause.until.map_or(HOLD, |until| until.since(self.now).min(HOLD)));
        left.max().map(|left| Duration::from_secs(ceil_secs(left)))
    }

    /// Returns how long to hide the message now if its retry is due in `left` (rule 10 above).
    fn deferral(&self, left: Duration) -> Duration {
        // The time of the current receive is known only if it is the first. On any later receive, a throttled poller
        // may have held the message for as long as the queue's own visibility timeout.
        let since_receive = if self.record.is_first_receive() {
            self.now.since(self.record.first_receive)
        } else {
            QUEUE_VISIBILITY_TIMEOUT
        };
        let longest = LONGEST_VISIBILITY.saturating_sub(since_receive + VISIBILITY_MARGIN);
        Duration::from_secs(ceil_secs(left).min(longest.as_secs()).max(1))
    }

    /// Puts the payload in its envelope for the retry. Fails if the record of the next failure could be too large
    /// (rule 11).
    fn envelope(&self) -> Result<Envelope<'r>, Reason> {
        let Self { event, record, policy, .. } = self;
        let metadata = Metadata {
            attempt: event.retry,
            initial_timestamp: event.first_failure.as_secs(),
            origin_request_id: Some(event.origin_request_id.clone()),
        };
        let envelope = Envelope { metadata, original_payload: event.payload.clone() };
        let sealed = envelope.sealed_len(policy.settings().envelope);
        let next_record = record.body.len() - event.received_payload_bytes + sealed + RECORD_ALLOWANCE;
        if next_record <= SQS_MESSAGE_BYTES {
            return Ok(envelope);
        }
        let detail = format!(
            "the record of its next failure could have {next_record} bytes; SQS accepts {SQS_MESSAGE_BYTES}"
        );
        Err(Reason::new(ReasonCode::PayloadTooLarge, detail))
    }
}

/// Returns the reason to dead-letter a message if it was sent more than 13 days and 12 hours ago.
pub(crate) fn expiring(record: &Record, sent: Timestamp, now: Timestamp) -> Option<Reason> {
    (now.since(sent) > RETENTION_MARGIN).then(|| kept_too_long(record, sent))
}

fn kept_too_long(record: &Record, sent: Timestamp) -> Reason {
    max_age(record, &format!("sent to the retry queue at {sent}; SQS keeps a message for 14 days"))
}

fn max_age(record: &Record, why: &str) -> Reason {
    let (received, maybe) = (record.receive_count, maybe_called(record));
    Reason::new(ReasonCode::MaxAge, format!("{why}; receive {received} of its message{maybe}"))
}

/// Returns a warning that an earlier re-invocation may have succeeded. Before the third receive, the warning is empty.
fn maybe_called(record: &Record) -> &'static str {
    if record.receive_count > 2 { "; an earlier call that was not answered may have succeeded" } else { "" }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARACTERS).collect()
}
