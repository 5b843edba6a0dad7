//! The oracle, which checks the invariants against what happens in the simulation.

use std::iter::once;
use std::time::Duration;

use comeback_engine::{DeadLetter, Policies, ReasonCode, Record, Timestamp};
use comeback_envelope::{Metadata, open};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::bounds::{After, Bounds, Handling, InFlightBound, SeenMessage};
use super::history::{Attempt, Carried, Entry, MessageHistories, MessageHistory, Origin};
use super::ledger::Ledger;
use super::lookup::policy_of;
use super::parameter::Waits;
use super::pauses::{KnownPauses, Written};
use super::{Broken, Invariant, UNHIDDEN};
use crate::aws::agenda::START;
use crate::aws::queue::Removal;
use crate::aws::target::Id;
use crate::event::EventNumber;
use crate::faults::records::Flaw;
use crate::scenario::{PolicyChange, Scenario};
use crate::targets::{Mix, SimulatedTarget};

/// A message must not expire within this time after a handler has received it. The time equals the longest possible
/// backoff.
const RECENTLY: Duration = Duration::from_secs(12 * 3_600);
/// Maximum age of the policies that an operator's command uses.
const RECENT_READ: Duration = Duration::from_secs(60);
/// Maximum error when a handler measures the time between two reads of the pauses. The handler's clock may be off by 5
/// s at each read.
const SKEW: Duration = Duration::from_secs(10);

/// Checks the invariants during a run. Each public method records one step of the run. The oracle keeps only the first
/// broken invariant.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub(crate) ledger: Ledger,
    histories: MessageHistories,
    targets: Vec<String>,
    mix: Mix,
    /// The bounds of each target, under the first policies and after each policy change.
    bounds: Vec<Vec<Bounds>>,
    in_flight_bound: InFlightBound,
    /// True if the handler reads the pauses parameter.
    reads_pauses: bool,
    /// Times at which the policies change.
    changes: Vec<Timestamp>,
    written: Written,
    payload_size: usize,
    payload: String,
    batch: Option<CheckedBatch>,
    pub(crate) broken: Option<Broken>,
}

/// The pauses that an environment of the handler has read, and the time of its last attempt to read them.
#[derive(Clone, Debug)]
pub(crate) struct Reads {
    known: KnownPauses,
    last_tried: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) received_at: Timestamp,
    pub(crate) clock: Timestamp,
    /// True if the handler does not crash and has time for its calls.
    pub(crate) can_act: bool,
    pub(crate) reads: Reads,
    /// Number of policy changes that had taken effect when the handler's environment was made.
    pub(crate) policies: usize,
}

#[derive(Debug)]
struct CheckedBatch {
    start: Start,
    messages: Vec<CheckedMessage>,
}

#[derive(Clone, Copy, Debug)]
struct CheckedMessage {
    entry: Entry,
    seen: SeenMessage,
    /// True if the message lacks a field, so that the handler can only report the message failed.
    overlooked: bool,
    /// The worst failure that the handler's calls about the message may have had; `None` if the handler has only set a
    /// backoff.
    after: Option<After>,
    /// The last visibility timeout that the handler requested; `None` if the timeout is too short to precede a call.
    /// The timeout is checked once it is clear whether a call follows.
    guard: Option<Duration>,
    /// Time at which the message becomes visible again; `None` if the handler has not hidden the message.
    hidden_until: Option<Timestamp>,
    /// True if AWS accepted a re-invocation, a dead-letter or a copy of the message, even if the answer was lost.
    settled: bool,
    reason: Option<ReasonCode>,
}

impl Oracle {
    pub(crate) fn new(scenario: &Scenario, policies: &Policies, changes: &[PolicyChange]) -> Self {
        let targets: Vec<String> = scenario.targets.iter().map(SimulatedTarget::arn).collect();
        let bounds = |policies| targets.iter().map(|arn| Bounds::of(policy_of(policies, arn))).collect();
        let all = once(policies).chain(changes.iter().map(|change| &change.policies));
        let bounds = all.map(bounds).collect();
        Self {
            ledger: Ledger::new(scenario.events),
            histories: MessageHistories::default(),
            targets,
            mix: Mix::of(&scenario.targets, scenario.seed),
            bounds,
            in_flight_bound: InFlightBound::of(policies.stack(), scenario),
            reads_pauses: scenario.operators.is_some(),
            changes: changes.iter().map(|change| START.saturating_add(change.at)).collect(),
            written: Written::default(),
            payload_size: scenario.payload_size,
            payload: String::new(),
            batch: None,
            broken: None,
        }
    }

    fn note<T>(&mut self, checked: Result<T, Broken>) -> Option<T> {
        checked.map_err(|broken| self.broken.get_or_insert(broken)).ok()
    }

    fn broke(&mut self, invariant: Invariant, event: impl Into<Option<EventNumber>>, detail: String) {
        self.broken.get_or_insert_with(|| Broken::new(invariant, event, detail));
    }

    pub(crate) fn arrived(&mut self, event: EventNumber, now: Timestamp) {
        self.ledger.carry(event).arrived = Some(now);
    }

    /// Records the end of an invocation. If the invocation failed, Lambda has already [sent](Self::sent) its invocation
    /// record.
    pub(crate) fn invocation_ended(&mut self, event: EventNumber, succeeded: bool, now: Timestamp) {
        if succeeded {
            self.ledger.life(event).delivered.get_or_insert(now);
        }
        self.drop_carrier(event);
    }

    fn drop_carrier(&mut self, event: EventNumber) {
        let dropped = self.ledger.drop_carrier(event);
        self.note(dropped);
    }

    pub(crate) fn sent(&mut self, id: Id, event: EventNumber, now: Timestamp) -> Entry {
        self.ledger.carry(event).first_failure.get_or_insert(now);
        self.histories.open(MessageHistory::new(id, now))
    }

    /// Records that SQS delivers a message that another receiver already has.
    pub(crate) fn duplicated(&mut self, entry: Entry) {
        self.histories.excuse(entry);
        self.histories.change(entry, |history| history.duplicated = true);
    }

    /// Allows a message to be settled a second time because of a fault: a stale receipt handle, or a dead-letter that
    /// was accepted without an answer.
    pub(crate) fn excuse(&mut self, entry: Entry) {
        self.histories.excuse(entry);
    }

    pub(crate) fn cut_retention(&mut self, entry: Entry) {
        self.histories.change(entry, |history| history.cut = true);
    }

    pub(crate) fn removed(&mut self, entry: Entry, event: EventNumber, removal: Removal, now: Timestamp) {
        let MessageHistory { seen, cut, .. } = self.histories.close(entry);
        let reason = match removal {
            Removal::ReceivedTooOften => "max_receive_count",
            Removal::Expired => "expired",
        };
        if removal == Removal::Expired && !cut && now.since(seen) < RECENTLY {
            let detail = format!("expired; a handler decided about it at {seen}");
            self.broke(Invariant::NoneExpires, event, detail);
        }
        if removal == Removal::ReceivedTooOften && !cut && now.since(seen) < RECENTLY {
            let detail = format!("received 1,000 times; a handler decided about it at {seen}");
            self.broke(Invariant::FewReceives, event, detail);
        }
        // A handler may still be working on the message, and may settle it.
        self.histories.excuse(entry);
        self.ledger.life(event).dead_lettered.get_or_insert(reason);
        self.drop_carrier(event);
    }

    /// Records that an operator's recall changes the visibility of a message that was hidden until `before`.
    pub(crate) fn recalled(
        &mut self,
        entry: Entry,
        event: EventNumber,
        before: Timestamp,
        until: Timestamp,
        now: Timestamp,
    ) {
        // A message with duplicate deliveries is not checked. Without a fault, only one receiver has a message at a
        // time.
        let Some(history) = self.histories.get(entry).filter(|history| !history.duplicated) else { return };
        let guarded_until = history.no_invoke_before;
        // Timeouts are whole seconds, rounded up.
        let is_longer = until >= before.saturating_add(Duration::from_secs(1));
        if is_longer || now < guarded_until && until < guarded_until {
            let detail = format!(
                "recalled at {now} until {until}; hidden until {before}, after a call until {guarded_until}"
            );
            self.broke(Invariant::RecallsShorten, event, detail);
        }
    }

    /// Records that the mapping deletes a message that the handler did not report failed. `is_gone` is false if SQS
    /// kept the message because the handle was stale.
    pub(crate) fn deleted(&mut self, entry: Entry, event: EventNumber, is_gone: bool) {
        if self.histories.get(entry).is_some_and(|history| !history.settled) {
            let detail = "its message was deleted, but neither re-invoked nor dead-lettered nor moved";
            self.broke(Invariant::LeavesForAReason, event, detail.into());
        }
        if is_gone {
            self.histories.close(entry);
            self.drop_carrier(event);
        }
    }

    /// Checks that the number of messages in flight is within its limit, and that no message stays visible while a
    /// poller is free. Called after each step of the run.
    pub(crate) fn queue_settled(&mut self, in_flight: usize, left_visible: bool) {
        let checked = self.in_flight_bound.check(in_flight, left_visible);
        self.note(checked);
    }
}

/// Steps of a handler while it processes a batch.
impl Oracle {
    pub(crate) fn environment_made(&self) -> Reads {
        let known = if self.reads_pauses { KnownPauses::NOTHING } else { KnownPauses::NO_PAUSES };
        Reads { known, last_tried: None }
    }

    /// Records that a handler begins its calls. The flag of each message is true if the message lacks a field, so that
    /// the handler cannot parse it.
    pub(crate) fn started<'a>(
        &mut self,
        start: Start,
        messages: impl Iterator<Item = (Carried, &'a Record, bool)>,
        now: Timestamp,
    ) {
        let message = |(carried, record, overlooked): (Carried, _, _)| CheckedMessage {
            entry: carried.entry,
            seen: self.seen(&start, carried, record, now),
            overlooked,
            after: None,
            guard: None,
            hidden_until: None,
            settled: false,
            reason: None,
        };
        let messages = messages.map(message).collect();
        self.batch = Some(CheckedBatch { start, messages });
    }

    fn seen(&mut self, start: &Start, carried: Carried, record: &Record, now: Timestamp) -> SeenMessage {
        let Carried { entry, origin } = carried;
        let history = self.histories.get(entry);
        let history = history.map(|history| {
            if start.can_act {
                history.seen = now;
            }
            if start.clock != start.received_at {
                history.hops.excused += 1;
            }
            history.follow_policies(start.policies);
            &*history
        });
        let first_sent = record.moved.as_ref().map_or(record.sent, |moved| moved.sent);
        let counts_as_new = history.is_none_or(|history| history.forgotten);
        let origin = if counts_as_new { origin.of_new_message(first_sent) } else { origin };
        SeenMessage {
            origin,
            receive_count: record.receive_count,
            first_receive: record.first_receive,
            sent: record.sent,
            first_sent,
            bytes: record.body.len(),
            asked: origin.window(first_sent),
            not_before: history.map_or(START, |history| history.not_before),
            held_until: history.and_then(|history| history.hops.held_until),
        }
    }

    /// Records that operators replace the text of the pauses parameter.
    pub(crate) fn pauses_written(&mut self, text: &str, now: Timestamp) {
        // An operator who has read the policies just before a change may still use the earlier policies.
        let in_force = |moment: Timestamp| {
            let bounds = &self.bounds[self.changes.iter().filter(|at| **at <= moment).count()];
            bounds.iter().map(Bounds::longest_backoff).max().unwrap_or_default()
        };
        let longest_backoff = in_force(now).min(in_force(now.before(RECENT_READ)));
        let waits = Waits { longest_backoff, between_reads: self.bounds[0][0].between_reads };
        let added = self.written.add(text, waits, now);
        self.note(added);
    }

    /// Records that an operator's command has failed. Called only if no fault and no other operator explains the
    /// failure.
    pub(crate) fn command_failed(&mut self, what: String) {
        self.broke(Invariant::WorkingCommands, None, what);
    }

    /// Records that the handler tries to read the pauses. `read` is the time of the text that the handler gets; `None`
    /// if the read fails.
    pub(crate) fn read_pauses(&mut self, read: Option<Timestamp>, now: Timestamp) {
        let known = read.map(|moment| self.written.known_at(moment));
        let reads = &mut self.batch_mut().start.reads;
        reads.last_tried = Some(now);
        if let Some(known) = known {
            reads.known = known;
        }
    }

    /// Checks that a move's delay ends at most a second after the due time that the handler reports.
    pub(crate) fn hop_reported(&mut self, message_id: &str, delay: Duration, due: Timestamp) {
        let end = self.batch().start.clock.saturating_add(delay);
        if end.since(due) > Duration::from_secs(1) {
            let detail = format!("message {message_id}: its hop ends at {end}, it is due at {due}");
            self.broke(Invariant::HopsEndInTime, None, detail);
        }
    }

    /// Checks a message whose log line has a receipt handle. With the handle, an operator can end the message's hiding.
    /// Therefore, the line must not have a handle after a call that Lambda or SQS may have accepted.
    pub(crate) fn may_be_recalled(&mut self, position: usize, now: Timestamp) {
        let CheckedMessage { seen, after, settled, reason, hidden_until, .. } = *self.message(position);
        let is_called = after >= Some(After::Unanswered) || settled && reason.is_none();
        if is_called || hidden_until.is_none_or(|until| until <= now) {
            let detail = format!("its line has a handle; {after:?}, hidden until {hidden_until:?}");
            self.broke(Invariant::SpacedInvokes, seen.origin.attempt.event, detail);
        }
    }

    /// Records that the handler has finished its batch. Returns the pauses that the handler's environment has read.
    pub(crate) fn finished(&mut self) -> Reads {
        for position in 0..self.batch().messages.len() {
            let CheckedMessage { guard, settled, after, .. } = *self.message(position);
            let Some(hidden_for) = guard.filter(|_| !settled && after < Some(After::Unanswered)) else {
                continue;
            };
            if self.batch().start.can_act {
                self.judge_hiding(position, hidden_for);
            } else if after.is_none() {
                self.judge_hiding_before_death(position, hidden_for);
            }
        }
        self.batch.take().expect("BUG: a batch ended that never began").start.reads
    }

    /// Records that SQS deletes no message of the batch, because the handler crashed or the deletion was lost. The
    /// messages come back, and a handler repeats the calls.
    pub(crate) fn kept_after_all(&mut self) {
        let settled = self.batch().messages.iter().filter(|message| message.settled);
        let settled: Vec<Entry> = settled.map(|message| message.entry).collect();
        settled.into_iter().for_each(|entry| self.histories.excuse(entry));
    }

    fn batch(&self) -> &CheckedBatch {
        self.batch.as_ref().expect("BUG: calls come from a handler")
    }

    fn batch_mut(&mut self) -> &mut CheckedBatch {
        self.batch.as_mut().expect("BUG: calls come from a handler")
    }

    fn message(&self, position: usize) -> &CheckedMessage {
        &self.batch().messages[position]
    }

    /// Changes the oracle's data about a message, for every copy of the message in the batch.
    fn mark(&mut self, position: usize, change: impl Fn(&mut CheckedMessage)) {
        let entry = self.message(position).entry;
        let copies = self.batch_mut().messages.iter_mut();
        copies.filter(|copy| copy.entry == entry && !copy.overlooked).for_each(change);
    }

    fn mark_after(&mut self, position: usize, after: After) {
        self.mark(position, |copy| copy.after = copy.after.max(Some(after)));
    }

    /// Returns the bounds for the event at `position`, under the policies of the handler that has the batch.
    fn bounds(&self, position: usize) -> &Bounds {
        let CheckedBatch { start, messages } = self.batch();
        &self.bounds[start.policies][self.mix.target_of(messages[position].seen.origin.attempt.event)]
    }

    fn handling(&self, position: usize) -> Handling<'_> {
        let CheckedBatch { start, messages } = self.batch();
        let seen = &messages[position].seen;
        let Attempt { event, anew, .. } = seen.origin.attempt;
        let first_failure = anew.or(self.ledger.lives[event.0].first_failure);
        let first_failure = first_failure.expect("BUG: only events that have failed are handled");
        Handling { seen, now: start.clock, first_failure, known: &start.reads.known }
    }
}

/// Calls of the handler. `position` is the index of the message in the batch.
impl Oracle {
    /// Records that the handler sends a request to hide a message. If the visibility timeout is long enough, a call may
    /// follow.
    pub(crate) fn hides(&mut self, position: usize, hidden_for: Duration) {
        let guards = hidden_for >= *self.bounds(position).guard(&self.handling(position)).start();
        // The guard applies only to this copy of the message. If an earlier copy in the batch counts as a first
        // receive, the earlier copy's backoff starts at a different time.
        self.batch_mut().messages[position].guard = guards.then_some(hidden_for);
        if !guards {
            self.judge_hiding(position, hidden_for);
        }
    }

    /// Checks a visibility timeout after which the handler made no call.
    fn judge_hiding(&mut self, position: usize, hidden_for: Duration) {
        let (handling, message) = (self.handling(position), *self.message(position));
        if let Some(after) = message.after {
            let checked = self.bounds(position).hiding(&handling, after, hidden_for);
            self.note(checked);
        } else if let Some(checked) = self.check_backoff(position, &handling, hidden_for) {
            let Some(not_before) = self.note(checked) else { return };
            self.histories
                .change(message.entry, |history| history.not_before = history.not_before.max(not_before));
        }
    }

    /// Checks a visibility timeout that a handler set before it crashed. The handler may have set the timeout to
    /// prepare a call.
    fn judge_hiding_before_death(&mut self, position: usize, hidden_for: Duration) {
        let handling = self.handling(position);
        if hidden_for > self.bounds(position).longest_of_original(&handling, hidden_for) {
            let event = handling.seen.origin.attempt.event;
            let detail = format!("hidden for {} s, and its handler died", hidden_for.as_secs());
            self.broke(Invariant::LongestWait, event, detail);
        }
    }

    /// Checks the length of a backoff. Checks nothing and returns `None` if the message may be hidden for another
    /// reason.
    fn check_backoff(
        &self,
        position: usize,
        handling: &Handling<'_>,
        wait: Duration,
    ) -> Option<Result<Timestamp, Broken>> {
        let is_backoff =
            !handling.is_held(wait) && self.bounds(position).longest_keep(handling, wait).is_none();
        is_backoff.then(|| self.bounds(position).deferral(handling, wait))
    }

    pub(crate) fn hidden(&mut self, position: usize, until: Timestamp) {
        let CheckedMessage { entry, seen, after, settled, hidden_until, reason, .. } =
            *self.message(position);
        // A dead-letter whose answer is lost counts as refused.
        let is_moved = settled && reason.is_none();
        let is_duplicated = self.histories.get(entry).is_none_or(|history| history.duplicated);
        // If the deletion of the original is lost, the original comes back at `until`.
        if is_moved && after != Some(After::Unanswered) && Some(until) < hidden_until && !is_duplicated {
            let detail = format!("its copy was sent, but it is hidden only until {until}");
            self.broke(Invariant::SpacedInvokes, seen.origin.attempt.event, detail);
        }
        self.mark(position, |copy| copy.hidden_until = Some(until));
        if after >= Some(After::Unanswered) {
            self.histories.change(entry, |history| history.no_invoke_before = until);
        }
    }

    pub(crate) fn reinvokes(&mut self, position: usize, function_arn: &str, payload: &str) {
        let checked = self.check_reinvocation(position, function_arn, payload);
        self.note(checked);
        self.mark_after(position, After::Failure);
    }

    /// Checks that the handler has hidden a message, or has tried to, before a call that must not be repeated soon.
    fn check_guard(&mut self, position: usize, longest: Duration) -> Result<(), Broken> {
        let handling = self.handling(position);
        match self.message(position).guard {
            None => Err(handling.broken(Invariant::SpacedInvokes, "called without being hidden for an hour")),
            Some(guard) if guard > longest => {
                let detail = format!("hidden for {} s before it is called", guard.as_secs());
                Err(handling.broken(Invariant::LongestWait, detail))
            }
            Some(_) => Ok(()),
        }
    }

    fn check_reinvocation(
        &mut self,
        position: usize,
        function_arn: &str,
        payload: &str,
    ) -> Result<(), Broken> {
        let Origin { attempt: Attempt { event, .. }, flaw, .. } = self.message(position).seen.origin;
        let target = &self.targets[self.mix.target_of(event)];
        if function_arn.strip_suffix(":$LATEST").unwrap_or(function_arn) != target || flaw.is_some() {
            return Err(Broken::new(Invariant::AllowList, event, format!("{function_arn} was invoked")));
        }
        let claim = self.check_envelope(event, payload)?;
        self.check_paused(event)?;
        self.check_guard(position, *self.bounds(position).guard(&self.handling(position)).end())?;
        self.bounds(position).reinvocation(&self.handling(position), &claim)
    }

    /// Opens the envelope of a re-invocation as a target does, and returns its metadata. Fails if the payload has
    /// changed.
    fn check_envelope(&mut self, event: EventNumber, invoked_with: &str) -> Result<Metadata, Broken> {
        let broken = |detail: &str| Broken::new(Invariant::PayloadVerbatim, event, detail);
        let raw: &RawValue =
            serde_json::from_str(invoked_with).map_err(|_| broken("the target did not get JSON"))?;
        let opened = open(raw)
            .map_err(|malformed| broken(&format!("the target got a malformed envelope: {malformed}")))?;
        if !self.is_payload_of(event, opened.payload.get()) {
            return Err(broken(&format!("the target got {}", opened.payload.get())));
        }
        opened.metadata.ok_or_else(|| broken("the target got no envelope"))
    }

    fn is_payload_of(&mut self, event: EventNumber, payload: &str) -> bool {
        event.write_payload(self.payload_size, &mut self.payload);
        payload == self.payload
    }

    /// Checks that the handler has read no active pause, and that it has tried to read the pauses recently enough to
    /// re-invoke.
    fn check_paused(&self, event: EventNumber) -> Result<(), Broken> {
        let Start { received_at, clock, ref reads, .. } = self.batch().start;
        let broken = |why: String| {
            Err(Broken::new(Invariant::PausedNotInvoked, event, format!("invoked at {clock}; {why}")))
        };
        if let Some(why) = reads.known.forbids_invokes(clock) {
            return broken(why);
        }
        if !self.reads_pauses {
            return Ok(());
        }
        match reads.last_tried {
            Some(tried) if received_at.since(tried) <= self.bounds[0][0].between_reads + SKEW => Ok(()),
            Some(tried) => broken(format!("its handler last tried to read at {tried}")),
            None => broken("its handler has not tried to read the pauses".into()),
        }
    }

    /// Records that Lambda accepts a re-invocation. Returns the attempt that begins.
    pub(crate) fn reinvoked(&mut self, position: usize, now: Timestamp) -> Attempt {
        self.ledger.faults.duplicate_retries += u64::from(self.settle(position));
        let Attempt { event, number, anew } = self.message(position).seen.origin.attempt;
        self.ledger.attempt(event, number + 1);
        self.space(position, now);
        Attempt { event, number: number + 1, anew }
    }

    /// Records that the handler gets no answer to an invoke. `accepted` is true if Lambda accepted the invoke.
    pub(crate) fn invoke_unanswered(&mut self, position: usize, accepted: bool, now: Timestamp) {
        if accepted {
            self.histories.excuse(self.message(position).entry);
        } else {
            self.space(position, now);
        }
        self.mark_after(position, After::Unanswered);
    }

    /// Returns the time at which the message becomes visible again. If the handler has not hidden the message, this is
    /// the end of the queue's own visibility timeout.
    fn back(&self, position: usize) -> Timestamp {
        let unhidden = self.batch().start.received_at.saturating_add(UNHIDDEN);
        self.message(position).hidden_until.unwrap_or(unhidden)
    }

    /// Checks that an invoke which is not refused comes late enough after the previous one.
    fn space(&mut self, position: usize, now: Timestamp) {
        let CheckedMessage { entry, seen, .. } = *self.message(position);
        let back = self.back(position);
        let Some(history) = self.histories.get(entry) else { return };
        let earliest = std::mem::replace(&mut history.no_invoke_before, back);
        if now < earliest && !history.duplicated {
            let detail = format!("invoked at {now}; an earlier invoke forbids the next until {earliest}");
            self.broke(Invariant::SpacedInvokes, seen.origin.attempt.event, detail);
        }
    }

    /// Checks a dead-letter that the handler sends. `original` is the body of the dead-lettered message; `None` if the
    /// message is no longer on the queue.
    pub(crate) fn dead_letters(&mut self, position: usize, dead_letter: &DeadLetter, original: Option<&str>) {
        let checked = self.check_dead_letter(position, dead_letter, original);
        let reason = self.note(checked);
        self.mark(position, |copy| copy.reason = reason);
        self.mark_after(position, After::Failure);
    }

    fn check_dead_letter(
        &mut self,
        position: usize,
        dead_letter: &DeadLetter,
        original: Option<&str>,
    ) -> Result<ReasonCode, Broken> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            payload: &'a RawValue,
            retries_made: u64,
            origin_request_id: Option<&'a str>,
        }
        let Origin { attempt: Attempt { event, number, .. }, flaw, .. } = self.message(position).seen.origin;
        let broken = |invariant, detail: String| Err(Broken::new(invariant, event, detail));
        let reason = dead_letter.attributes.iter().find(|attribute| attribute.name == "Reason");
        let reason =
            reason.and_then(|reason| ReasonCode::ALL.into_iter().find(|it| it.name() == reason.value));
        let Some(reason) = reason else {
            return broken(
                Invariant::TrueReasons,
                format!("a dead-letter has no known reason: {}", dead_letter.body),
            );
        };
        let mut key = None;
        if flaw == Some(Flaw::Unreadable) {
            if original.is_some_and(|original| original != dead_letter.body) {
                return broken(
                    Invariant::PayloadVerbatim,
                    format!("its dead-letter is {}", dead_letter.body),
                );
            }
        } else {
            let body: Option<Body<'_>> = serde_json::from_str(&dead_letter.body).ok();
            let Some(body) = body.filter(|body| self.is_payload_of(event, body.payload.get())) else {
                return broken(
                    Invariant::PayloadVerbatim,
                    format!("its dead-letter is {}", dead_letter.body),
                );
            };
            if body.retries_made != number {
                let said = body.retries_made;
                let detail = format!("its dead-letter says {said} retries; attempt {number} has failed");
                return broken(Invariant::AttemptsByOne, detail);
            }
            key = body.origin_request_id;
        }
        self.bounds(position).dead_letter(&self.handling(position), reason, key).map(|()| reason)
    }

    pub(crate) fn dead_lettered(&mut self, position: usize) {
        self.ledger.faults.duplicate_dead_letters += u64::from(self.settle(position));
        let CheckedMessage { seen, reason, .. } = *self.message(position);
        if let Some(reason) = reason {
            self.ledger.life(seen.origin.attempt.event).dead_lettered.get_or_insert(reason.name());
        }
    }

    /// Checks a move. `altered` is true if the copy's body differs from the original's body.
    pub(crate) fn moves(&mut self, position: usize, delay: Duration, altered: bool) {
        let guard = self.message(position).guard.unwrap_or_default();
        let longest = self.bounds(position).longest_of_original(&self.handling(position), guard);
        let guarded = self.check_guard(position, longest);
        self.note(guarded);
        let handling = self.handling(position);
        if altered {
            let event = handling.seen.origin.attempt.event;
            self.broke(Invariant::PayloadVerbatim, event, "its copy has another body".into());
        } else if self.message(position).after.is_none()
            && let Some(checked) = self.check_backoff(position, &handling, delay)
        {
            self.note(checked);
        }
    }

    pub(crate) fn moved(&mut self, position: usize, delay: Duration, copy: Id, now: Timestamp) -> Entry {
        let CheckedMessage { entry, seen, after, .. } = *self.message(position);
        let event = seen.origin.attempt.event;
        let handling = self.handling(position);
        let clock = handling.now;
        let longest_keep = self.bounds(position).longest_keep(&handling, delay);
        let shortest = self.bounds(position).shortest_after_unanswered(&handling);
        let boundaries = handling.known.boundaries(clock);
        let mut history = self.histories.get(entry).map_or_else(
            // Another receiver has removed the message from the queue in the meantime.
            || MessageHistory { duplicated: true, forgotten: true, ..MessageHistory::new(copy, clock) },
            |history| *history,
        );
        if after.is_some() {
            let unanswered = after == Some(After::Unanswered);
            let longest = self.bounds(position).longest_after_failure(&seen, unanswered);
            history.hops.held_until = Some(clock.saturating_add(longest));
            history.hops.excused += 1;
            if unanswered {
                history.no_invoke_before = clock.saturating_add(shortest);
            }
        } else if let Some(longest) = longest_keep {
            history.hops.held_until = history.hops.held_until.max(Some(clock.saturating_add(longest)));
            history.hops.excused += 1;
        }
        history.hops.follow_boundaries(boundaries);
        match history.hops.after(clock, delay) {
            Ok(hops) => history.hops = hops,
            Err(detail) => self.broke(Invariant::FewestHops, event, detail),
        }
        self.ledger.faults.duplicate_moves += u64::from(self.settle(position));
        let back = self.back(position);
        self.histories.change(entry, |original| original.no_invoke_before = back);
        self.ledger.carry(event);
        self.histories.open(history.of_copy(copy, now))
    }

    /// Records that a moved copy loses its message attribute, which holds all data about earlier waits.
    pub(crate) fn attribute_lost(&mut self, copy: Entry, now: Timestamp) {
        self.histories.change(copy, |history| history.forget(now));
    }

    /// Records that the handler gets no answer to a move whose copy was accepted.
    pub(crate) fn move_unanswered(&mut self, position: usize) {
        self.histories.excuse(self.message(position).entry);
        self.mark_after(position, After::LostCopy);
    }

    /// Records that a message was re-invoked, dead-lettered or moved. Returns true for a duplicate.
    fn settle(&mut self, position: usize) -> bool {
        self.mark_after(position, After::Failure);
        self.mark(position, |copy| copy.settled = true);
        let CheckedMessage { entry, seen, .. } = *self.message(position);
        self.histories.settle(entry).unwrap_or_else(|| {
            let detail = format!("message {} was re-invoked, dead-lettered or moved before", entry.id);
            self.broke(Invariant::ExplainedDuplicates, seen.origin.attempt.event, detail);
            false
        })
    }
}

#[cfg(test)]
mod tests;
