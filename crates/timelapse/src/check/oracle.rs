//! The oracle receives each step of a run and checks the invariants.

pub(super) mod calls;

use std::cell::{RefCell, RefMut};
use std::iter::once;
use std::rc::Rc;
use std::time::Duration;

use comeback_engine::{HideUpTo, Policies, Policy, Record, Timestamp};

use super::Broken;
use super::handling::{Handling, SeenMessage};
use super::history::{After, Attempt, Carried, LatestBatch, MessageHistory, SharedHistory};
use super::invariants::{
    bounded_in_flight, few_receives, hops_end_in_time, kept_edits, lasting_requests, leaves_for_a_reason,
    longest_wait, no_stall, none_expires, none_vanishes, recalls_shorten, spaced_recalls, working_commands,
};
use super::ledger::Ledger;
use super::lookup::policy_of;
use super::parameter::LongestWaits;
use super::pauses::{KnownPauses, Reads, WrittenValues, between_reads};
use crate::aws::agenda::START;
use crate::aws::queue::Removal;
use crate::event::EventNumber;
use crate::faults::fault::InFlightEffect;
use crate::scenario::Scenario;
use crate::targets::SimulatedTarget;

/// An operator's command reads the policies at most this long before it uses them.
const RECENT_READ: Duration = Duration::from_secs(60);

/// Checks a simulated run, step by step, and keeps only the first broken invariant.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub(crate) ledger: Ledger,
    scenario: Scenario,
    targets: Vec<String>,
    /// The policy for each target, initially and after each policy change.
    policies: Vec<Vec<Policy>>,
    /// Maximum number of messages in flight, and the worst effect of the run's faults on this number.
    in_flight: (usize, InFlightEffect),
    between_reads: Duration,
    written: WrittenValues,
    payload: String,
    batch: Option<CheckedBatch>,
    pub(crate) broken: Option<Broken>,
}

#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) received_at: Timestamp,
    pub(crate) clock: Timestamp,
    /// True if the handler does not crash and has time for its calls.
    pub(crate) can_act: bool,
    pub(crate) reads: Reads,
    /// Number of policy changes that had taken effect when the handler's environment was created.
    pub(crate) policies: usize,
}

#[derive(Debug)]
struct CheckedBatch {
    start: Start,
    messages: Vec<CheckedMessage>,
}

#[derive(Debug)]
struct CheckedMessage {
    carried: Carried,
    seen: SeenMessage,
    /// The last requested visibility timeout, if it could protect a re-invocation or a move. It is checked later.
    guard: Option<Duration>,
}

impl Oracle {
    pub(crate) fn new(scenario: &Scenario, policies: &Policies) -> Self {
        let targets: Vec<String> = scenario.targets.iter().map(SimulatedTarget::arn).collect();
        let of_each = |policies| targets.iter().map(|arn| policy_of(policies, arn).clone()).collect();
        let all = once(policies).chain(scenario.changes.iter().map(|change| &change.policies));
        Self {
            ledger: Ledger::new(scenario.events),
            policies: all.map(of_each).collect(),
            targets,
            scenario: scenario.clone(),
            in_flight: most_in_flight(policies.stack(), scenario),
            between_reads: between_reads(policies.stack().settings().maximum_concurrency),
            written: WrittenValues::default(),
            payload: String::new(),
            batch: None,
            broken: None,
        }
    }

    pub(crate) fn check(&mut self, checked: Result<(), Broken>) {
        if let Err(broken) = checked {
            self.broken.get_or_insert(broken);
        }
    }

    pub(crate) fn arrived(&mut self, event: EventNumber, now: Timestamp) {
        self.ledger.carry(event).arrived = Some(now);
    }

    /// Records that an invocation has ended. If the invocation failed, [`sent`](Self::sent) must be called first.
    pub(crate) fn invocation_ended(&mut self, event: EventNumber, succeeded: bool, now: Timestamp) {
        if succeeded {
            self.ledger.life(event).delivered.get_or_insert(now);
        }
        self.drop_carrier(event);
    }

    fn drop_carrier(&mut self, event: EventNumber) {
        let checked = none_vanishes(event, self.ledger.drop_carrier(event));
        self.check(checked);
    }

    pub(crate) fn sent(&mut self, event: EventNumber, now: Timestamp) -> SharedHistory {
        self.ledger.carry(event).first_failure.get_or_insert(now);
        Rc::new(RefCell::new(MessageHistory::new(now)))
    }

    pub(crate) fn removed(&mut self, carried: &Carried, removal: Removal, now: Timestamp) {
        let event = carried.event();
        let MessageHistory { last_handled, retention_cut, .. } = *carried.history.borrow();
        let (reason, check): (_, fn(_, _, _, _) -> _) = match removal {
            Removal::ReceivedTooOften => ("max_receive_count", few_receives),
            Removal::Expired => ("expired", none_expires),
        };
        self.check(check(event, now, last_handled, retention_cut));
        // A handler may still be working on the message, and may settle it.
        carried.excuse();
        carried.history.borrow_mut().forget(now);
        self.ledger.life(event).dead_lettered.get_or_insert(reason);
        self.drop_carrier(event);
    }

    /// Records that an operator changed the time at which a hidden message becomes visible, from `before` to `until`.
    pub(crate) fn recalled(
        &mut self,
        carried: &Carried,
        before: Timestamp,
        until: Timestamp,
        now: Timestamp,
    ) {
        let MessageHistory { no_invoke_before, duplicated, .. } = *carried.history.borrow();
        self.check(recalls_shorten(carried.event(), now, [before, until], no_invoke_before, duplicated));
    }

    /// Records that the event source mapping deletes a message; `is_gone` is false for a stale receipt handle.
    pub(crate) fn deleted(&mut self, carried: &Carried, is_gone: bool, now: Timestamp) {
        let was_settled = carried.history.borrow().settled > 0;
        self.check(leaves_for_a_reason(carried.event(), was_settled));
        if is_gone {
            carried.history.borrow_mut().forget(now);
            self.drop_carrier(carried.event());
        }
    }

    /// After each step, checks the number of messages in flight. Also checks that no message stays visible while a
    /// poller is free.
    pub(crate) fn queue_settled(&mut self, in_flight: usize, left_visible: bool) {
        let (most, room) = self.in_flight;
        self.check(bounded_in_flight(in_flight, most, room));
        self.check(no_stall(in_flight, left_visible, room));
    }
}

/// Records and checks the steps that a handler takes to process a batch.
impl Oracle {
    pub(crate) fn environment_made(&self) -> Reads {
        let known = if self.reads_pauses() { KnownPauses::NOTHING } else { KnownPauses::no_pauses() };
        Reads { known, last_tried: None }
    }

    fn reads_pauses(&self) -> bool {
        self.scenario.operators.is_some()
    }

    pub(crate) fn started<'a>(
        &mut self,
        start: Start,
        messages: impl Iterator<Item = (Carried, &'a Record)>,
        now: Timestamp,
    ) {
        let message = |(carried, record)| {
            let seen = seen(&start, &carried, record, now);
            CheckedMessage { carried, seen, guard: None }
        };
        let messages = messages.map(message).collect();
        self.batch = Some(CheckedBatch { start, messages });
    }

    pub(crate) fn pauses_written(&mut self, text: &str, now: Timestamp) {
        // An operator who read the policies just before a change may still use the earlier ones.
        let longest_at = |moment: Timestamp| {
            let changes = self.scenario.changes.iter().filter(|it| START.saturating_add(it.at) <= moment);
            let policies = &self.policies[changes.count()];
            policies.iter().map(|policy| policy.backoff().cap()).max().unwrap_or_default()
        };
        let longest_backoff = longest_at(now).min(longest_at(now.before(RECENT_READ)));
        let waits = LongestWaits { longest_backoff, between_reads: self.between_reads };
        let added = write(&mut self.written, text, waits, now);
        self.check(added);
    }

    pub(crate) fn command_failed(&mut self, what: String, excused: bool) {
        self.check(working_commands(what, excused));
    }

    /// Records that the handler has tried to read the pauses. It got the pauses as of `read`; `None` means that the
    /// read failed.
    pub(crate) fn read_pauses(&mut self, read: Option<Timestamp>, now: Timestamp) {
        let known = read.map(|moment| self.written.known_at(moment));
        let reads = &mut self.batch_mut().start.reads;
        reads.last_tried = Some(now);
        if let Some(known) = known {
            reads.known = known;
        }
    }

    pub(crate) fn hop_reported(&mut self, position: usize, delay: Duration, due: Timestamp) {
        let handling = self.handling(position);
        self.check(hops_end_in_time(handling.event(), handling.now.saturating_add(delay), due));
    }

    /// Checks that a message is hidden, and has been neither re-invoked nor moved. The handler's log contains the
    /// message's receipt handle, so an operator may use it to make the message visible early.
    pub(crate) fn may_be_recalled(&mut self, position: usize, now: Timestamp) {
        let LatestBatch { after, hidden_until, is_settled, reason } = self.history(position).latest;
        let is_called = after >= Some(After::Unanswered) || is_settled && reason.is_none();
        let is_hidden = hidden_until.is_some_and(|until| until > now);
        self.check(spaced_recalls(self.message(position).carried.event(), is_called, is_hidden));
    }

    /// Records the end of the handler's batch, checks the remaining visibility timeouts, and returns the pauses that
    /// were read.
    pub(crate) fn finished(&mut self) -> Reads {
        for position in 0..self.batch().messages.len() {
            let LatestBatch { after, is_settled, .. } = self.history(position).latest;
            let guard = self.message(position).guard;
            let Some(hidden_for) = guard.filter(|_| !is_settled && after < Some(After::Unanswered)) else {
                continue;
            };
            if self.batch().start.can_act {
                self.check_hiding(position, hidden_for);
            } else if after.is_none() {
                // The handler may have hidden the message to prepare a call, and crashed before the call.
                let handling = self.handling(position);
                let latest = handling.now.saturating_add(handling.longest_of_original(hidden_for));
                self.check(longest_wait(&handling, hidden_for, latest));
            }
        }
        self.batch.take().expect("BUG: a batch ended that never began").start.reads
    }

    /// Records that SQS keeps all messages in the batch, because the handler crashed or the deletion was lost.
    pub(crate) fn kept_after_all(&mut self) {
        let messages = &self.batch().messages;
        for (position, CheckedMessage { carried, .. }) in messages.iter().enumerate() {
            let history = &carried.history;
            // A message that was delivered twice in the batch is kept once.
            let is_repeated =
                messages[..position].iter().any(|earlier| Rc::ptr_eq(&earlier.carried.history, history));
            if !is_repeated && history.borrow().latest.is_settled {
                carried.excuse();
            }
        }
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

    fn history(&self, position: usize) -> RefMut<'_, MessageHistory> {
        self.message(position).carried.history.borrow_mut()
    }

    fn handling(&self, position: usize) -> Handling<'_> {
        let CheckedBatch { start, messages } = self.batch();
        let seen = &messages[position].seen;
        let Attempt { event, anew, .. } = seen.origin.attempt;
        let first_failure = anew.or(self.ledger.lives[event.0].first_failure);
        Handling {
            seen,
            now: start.clock,
            first_failure: first_failure.expect("BUG: only events that have failed are handled"),
            known: &start.reads.known,
            policy: &self.policies[start.policies][self.scenario.target_of(event)],
            between_reads: self.between_reads,
        }
    }
}

fn seen(
    start: &Start,
    Carried { history, origin }: &Carried,
    record: &Record,
    now: Timestamp,
) -> SeenMessage {
    let history = &mut *history.borrow_mut();
    history.latest = LatestBatch::default();
    if start.can_act {
        history.last_handled = now;
    }
    if start.clock != start.received_at {
        history.hops.excused += 1;
    }
    if std::mem::replace(&mut history.policies, start.policies) != start.policies {
        // A new policy may change the message's wait.
        history.not_before = START;
        history.hops.excused += 1;
    }
    let first_sent = record.moved.as_ref().map_or(record.sent, |moved| moved.sent);
    SeenMessage {
        origin: if history.forgotten { origin.of_new_message(first_sent) } else { *origin },
        receive_count: record.receive_count,
        first_receive: record.first_receive,
        sent: record.sent,
        first_sent,
        bytes: record.body.len(),
        not_before: history.not_before,
        held_until: history.hops.held_until,
    }
}

/// Returns the maximum number of messages in flight, and the worst effect that the run's faults can have on it.
pub(super) fn most_in_flight(policy: &Policy, scenario: &Scenario) -> (usize, InFlightEffect) {
    let HideUpTo::UpTo(most) = policy.settings().hide_up_to else {
        return (usize::MAX, InFlightEffect::Full);
    };
    let batches = policy.settings().maximum_concurrency as usize * scenario.batch_size;
    let most = 2 * most as usize + batches;
    let worst = scenario.faults.iter().map(|(fault, _)| fault.row().1).max().unwrap_or(InFlightEffect::Kept);
    (most, if most <= scenario.in_flight_limit { worst } else { InFlightEffect::Full })
}

pub(super) fn write(
    written: &mut WrittenValues,
    text: &str,
    waits: LongestWaits,
    now: Timestamp,
) -> Result<(), Broken> {
    let latest = written.latest();
    let document = kept_edits(text, &latest, now)?;
    lasting_requests(&document, &latest, waits)?;
    written.add(document, now);
    Ok(())
}

#[cfg(test)]
mod tests;
