//! Records the handler's calls and the responses to them, and checks the invariants that a call can break.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use comeback_engine::{DeadLetter, ReasonCode, Timestamp};
use comeback_envelope::{Metadata, open};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Oracle;
use crate::check::handling::{Handling, LONGEST_AFTER_UNANSWERED};
use crate::check::history::{After, Attempt, LatestBatch, MessageHistory, SharedHistory};
use crate::check::invariants::{
    allow_list, attempts_by_one, cancelled_not_invoked, due_time, explained_duplicates, fewest_hops,
    longest_wait, max_age, max_retries, none_would_vanish, pause_ends_nothing, paused_not_invoked,
    payload_verbatim, spaced_invokes, true_reasons,
};
use crate::check::{Broken, UNHIDDEN};
use crate::faults::records::Flaw;

/// In these methods, `position` is the index of a message in the batch.
impl Oracle {
    /// Records a request to hide a message, and checks its timeout. A timeout that is long enough to protect a
    /// re-invocation or a move is checked later.
    pub(crate) fn hides(&mut self, position: usize, hidden_for: Duration) {
        let may_precede_a_call = hidden_for >= *self.handling(position).before_call().start();
        // The guard applies only to this copy of the message. If an earlier copy in the batch counts as a first
        // receive, the earlier copy's backoff starts at a different time.
        self.batch_mut().messages[position].guard = may_precede_a_call.then_some(hidden_for);
        if !may_precede_a_call {
            self.check_hiding(position, hidden_for);
        }
    }

    /// Checks a visibility timeout that the handler set as a wait, not to protect its next call.
    pub(super) fn check_hiding(&mut self, position: usize, hidden_for: Duration) {
        let handling = self.handling(position);
        let after = self.history(position).latest.after;
        if let Some(after) = after {
            self.check(hidden_within(&handling, hidden_for, &handling.after_call(after, hidden_for)));
        } else if !handling.may_be_kept(hidden_for) {
            let not_before = handling.not_before(hidden_for);
            self.check(longest_wait(&handling, hidden_for, handling.latest_due()));
            let mut history = self.history(position);
            history.not_before = history.not_before.max(not_before);
        }
    }

    pub(crate) fn hidden(&mut self, position: usize, until: Timestamp) {
        let mut history = self.history(position);
        let LatestBatch { after, hidden_until, is_settled, reason } = history.latest;
        // A dead-letter does not count: if its response is lost, the handler assumes that SQS refused it.
        let is_moved = is_settled && reason.is_none();
        history.latest.hidden_until = Some(until);
        if after >= Some(After::Unanswered) {
            history.no_invoke_before = until;
        }
        let is_duplicated = history.duplicated;
        drop(history);
        // If the deletion of the original is lost, the original comes back at `until`.
        if is_moved && after != Some(After::Unanswered) {
            let earliest = hidden_until.unwrap_or(until);
            let event = self.message(position).carried.event();
            self.check(spaced_invokes(event, until, earliest, is_duplicated));
        }
    }

    pub(crate) fn reinvokes(&mut self, position: usize, function_arn: &str, payload: &str) {
        self.write_payload(position);
        self.check(self.reinvocation(position, function_arn, payload));
        self.history(position).may_fail(After::Failure);
    }

    fn reinvocation(&self, position: usize, function_arn: &str, payload: &str) -> Result<(), Broken> {
        let handling = self.handling(position);
        let (event, start) = (handling.event(), &self.batch().start);
        let target = &self.targets[self.scenario.target_of(event)];
        allow_list(event, function_arn, target, handling.seen.origin.flaw)?;
        // Opens the envelope as the target does.
        let opened = serde_json::from_str(payload).ok().and_then(|event: &RawValue| open(event).ok());
        let opened = opened.filter(|opened| opened.payload.get() == self.payload);
        let claim = payload_verbatim(event, opened.and_then(|opened| opened.metadata), payload)?;
        let between_reads = self.reads_pauses().then_some(self.between_reads);
        paused_not_invoked(&handling, &start.reads, start.received_at, between_reads)?;
        let guard = self.message(position).guard.unwrap_or_default();
        hidden_within(&handling, guard, &handling.before_call())?;
        retried(&handling, &claim)
    }

    fn write_payload(&mut self, position: usize) {
        let event = self.message(position).carried.event();
        event.write_payload(self.scenario.payload_size, &mut self.payload);
    }

    /// Records that Lambda accepted a re-invocation, and returns the attempt that it starts.
    pub(crate) fn reinvoked(&mut self, position: usize, now: Timestamp) -> Attempt {
        self.ledger.faults.duplicate_retries += u64::from(self.settle(position));
        let Attempt { event, number, anew } = self.message(position).seen.origin.attempt;
        self.ledger.attempt(event, number + 1);
        self.space(position, now);
        Attempt { event, number: number + 1, anew }
    }

    /// Records that an `Invoke` call got no response; `accepted` is true if Lambda accepted the call.
    pub(crate) fn invoke_unanswered(&mut self, position: usize, accepted: bool, now: Timestamp) {
        if accepted {
            self.message(position).carried.excuse();
        } else {
            self.space(position, now);
        }
        self.history(position).may_fail(After::Unanswered);
    }

    /// Returns the time at which the message becomes visible again.
    fn back(&self, position: usize) -> Timestamp {
        let unhidden = self.batch().start.received_at.saturating_add(UNHIDDEN);
        self.history(position).latest.hidden_until.unwrap_or(unhidden)
    }

    /// Checks the time since the previous `Invoke` call for the message, and sets the earliest time for the next one.
    fn space(&mut self, position: usize, now: Timestamp) {
        let (event, back) = (self.message(position).carried.event(), self.back(position));
        let mut history = self.history(position);
        let earliest = std::mem::replace(&mut history.no_invoke_before, back);
        let checked = spaced_invokes(event, now, earliest, history.duplicated);
        drop(history);
        self.check(checked);
    }

    /// Records and checks a dead-letter. `original` is the message's body, or `None` if the message is no longer in
    /// the queue.
    pub(crate) fn dead_letters(&mut self, position: usize, dead_letter: &DeadLetter, original: Option<&str>) {
        self.write_payload(position);
        let reason = dead_letter.attributes.iter().find(|attribute| attribute.name == "Reason");
        let reason =
            reason.and_then(|reason| ReasonCode::ALL.into_iter().find(|it| it.name() == reason.value));
        self.check(self.dead_letter(position, reason, &dead_letter.body, original));
        let mut history = self.history(position);
        history.latest.reason = reason;
        history.may_fail(After::Failure);
    }

    fn dead_letter(
        &self,
        position: usize,
        reason: Option<ReasonCode>,
        body: &str,
        original: Option<&str>,
    ) -> Result<(), Broken> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            payload: &'a RawValue,
            retries_made: u64,
            origin_request_id: Option<&'a str>,
        }
        let handling = self.handling(position);
        let event = handling.event();
        if handling.seen.origin.flaw == Some(Flaw::Unreadable) {
            let is_verbatim = original.is_none_or(|original| original == body);
            payload_verbatim(event, is_verbatim.then_some(()), body)?;
            return dead_lettered_for(&handling, reason, None);
        }
        let parsed: Option<Body<'_>> = serde_json::from_str(body).ok();
        let parsed = parsed.filter(|parsed| parsed.payload.get() == self.payload);
        let parsed = payload_verbatim(event, parsed, body)?;
        attempts_by_one(&handling, parsed.retries_made.saturating_add(1))?;
        dead_lettered_for(&handling, reason, parsed.origin_request_id)
    }

    pub(crate) fn dead_lettered(&mut self, position: usize) {
        self.ledger.faults.duplicate_dead_letters += u64::from(self.settle(position));
        let (event, reason) = (self.message(position).carried.event(), self.history(position).latest.reason);
        if let Some(reason) = reason {
            self.ledger.life(event).dead_lettered.get_or_insert(reason.name());
        }
    }

    /// Checks a request to move a message; `altered` is true if the copy's body differs from the original's.
    pub(crate) fn moves(&mut self, position: usize, delay: Duration, altered: bool) {
        self.check(self.move_of(position, delay, altered));
    }

    fn move_of(&self, position: usize, delay: Duration, altered: bool) -> Result<(), Broken> {
        let handling = self.handling(position);
        let guard = self.message(position).guard.unwrap_or_default();
        let allowed = *handling.before_call().start()..=handling.longest_of_original(guard);
        hidden_within(&handling, guard, &allowed)?;
        payload_verbatim(handling.event(), (!altered).then_some(()), "a copy that differs")?;
        if self.history(position).latest.after.is_none() && !handling.may_be_kept(delay) {
            longest_wait(&handling, delay, handling.latest_due())?;
        }
        Ok(())
    }

    pub(crate) fn moved(&mut self, position: usize, delay: Duration, now: Timestamp) -> SharedHistory {
        let handling = self.handling(position);
        let (event, clock) = (handling.event(), handling.now);
        let mut history =
            MessageHistory { settled: 0, excuses: 0, last_handled: now, ..*self.history(position) };
        let (hops, after) = (&mut history.hops, history.latest.after);
        let longest = match after {
            Some(After::Unanswered) => Some(LONGEST_AFTER_UNANSWERED),
            Some(_) => Some(handling.longest_after_failure()),
            None => handling.longest_keep(delay),
        };
        if let Some(until) = longest.map(|longest| clock.saturating_add(longest)) {
            hops.held_until = if after.is_some() { Some(until) } else { hops.held_until.max(Some(until)) };
            hops.excused += 1;
        }
        if after == Some(After::Unanswered) {
            history.no_invoke_before = clock.saturating_add(*handling.after_unanswered().start());
        }
        let boundaries = handling.known.boundaries(clock);
        hops.excused += u32::from(std::mem::replace(&mut hops.boundaries, boundaries) != boundaries);
        hops.add(clock);
        let checked = fewest_hops(event, hops, clock, delay);
        self.check(checked);
        self.ledger.faults.duplicate_moves += u64::from(self.settle(position));
        let back = self.back(position);
        self.history(position).no_invoke_before = back;
        self.ledger.carry(event);
        Rc::new(RefCell::new(history))
    }

    /// Records that SQS accepted a move's copy, but the handler got no response.
    pub(crate) fn move_unanswered(&mut self, position: usize) {
        self.message(position).carried.excuse();
        self.history(position).may_fail(After::LostCopy);
    }

    /// Records that AWS accepted a call that settles the message; returns true if it had already accepted one.
    fn settle(&mut self, position: usize) -> bool {
        let mut history = self.history(position);
        history.may_fail(After::Failure);
        history.latest.is_settled = true;
        history.settled += 1;
        let (settled, excuses) = (history.settled, history.excuses);
        drop(history);
        self.check(explained_duplicates(self.message(position).carried.event(), settled, excuses));
        settled > 1
    }
}

pub(in crate::check) fn hidden_within(
    handling: &Handling<'_>,
    hidden_for: Duration,
    allowed: &RangeInclusive<Duration>,
) -> Result<(), Broken> {
    let [earliest, end, latest] = [*allowed.start(), hidden_for, *allowed.end()]
        .map(|visibility_timeout| handling.now.saturating_add(visibility_timeout));
    spaced_invokes(handling.event(), end, earliest, false)?;
    longest_wait(handling, hidden_for, latest)
}

/// Checks that the handler may retry the event with `claim`, the metadata in the new envelope.
pub(in crate::check) fn retried(handling: &Handling<'_>, claim: &Metadata) -> Result<(), Broken> {
    let failed = handling.failed(claim.origin_request_id.as_deref());
    attempts_by_one(handling, claim.attempt)?;
    max_retries(handling)?;
    cancelled_not_invoked(handling, failed)?;
    none_would_vanish(handling)?;
    max_age(handling, Timestamp::from_secs(claim.initial_timestamp))?;
    due_time(handling, failed)
}

/// Checks that the handler may dead-letter the event for this reason; `key` comes from the dead-letter.
pub(in crate::check) fn dead_lettered_for(
    handling: &Handling<'_>,
    reason: Option<ReasonCode>,
    key: Option<&str>,
) -> Result<(), Broken> {
    pause_ends_nothing(handling, reason)?;
    true_reasons(handling, reason, key)
}
