//! The simulated AWS account, and the effect of each [`Occurrence`] on it.

pub(crate) mod batch;
mod calls;
mod operated;
mod strikes;

use std::time::Duration;

use comeback_engine::{BatchEvent, HANDLER_TIMEOUT, Policies, Policy, RESERVE, Timestamp};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::aws::agenda::{Agenda, START};
use crate::aws::draw_id;
use crate::aws::mapping::{LONG_POLL, Mapping};
use crate::aws::queue::{OutgoingMessage, QueueSettings, QueueTimer, ReceiptHandle, SqsQueue};
use crate::aws::target::{TargetError, Targets};
use crate::check::Broken;
use crate::check::history::{Attempt, Carried, Origin};
use crate::check::log::LogCheck;
use crate::check::oracle::{Oracle, Start};
use crate::event::EventNumber;
use crate::faults::Dice;
use crate::faults::fault::Fault;
use crate::faults::mix::seeded;
use crate::figures::Tallies;
use crate::figures::prices::ApiCall;
use crate::scenario::Scenario;
use crate::watch::Watcher;
use batch::{Batch, Death, Environments, Handover, Polled};
use operated::Operated;

const NO_BATCH: &str = "BUG: no batch is under way";

/// A scheduled step in a run. It has no effect if the state that it refers to has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Occurrence {
    Arrival,
    InvocationEnds(usize),
    QueueTimer(QueueTimer),
    /// A poller of the event source mapping requests messages.
    Poll,
    /// The retry handler makes its calls for a batch, and responds.
    BatchEnds(usize),
    /// Lambda ends a handler invocation that has reached its timeout.
    HandlerTimesOut(usize),
    /// A fault makes a hidden message visible early, unless the message has a newer receipt handle than this one.
    AppearsEarly(ReceiptHandle),
    /// A fault makes the message with this handle expire before the end of its retention period.
    ExpiresEarly(ReceiptHandle),
    OperatorsAct,
}

impl From<QueueTimer> for Occurrence {
    fn from(timer: QueueTimer) -> Self {
        Self::QueueTimer(timer)
    }
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    agenda: Agenda<Occurrence>,
    queue: SqsQueue<Carried>,
    mapping: Mapping<(Batch, Handover)>,
    target: Targets<Attempt>,
    pub(crate) dice: Dice,
    pub(crate) oracle: Oracle,
    pub(crate) log: LogCheck,
    pub(crate) tallies: Tallies,
    current_batch: Option<Batch>,
    environments: Environments,
    operated: Operated,
    scenario: Scenario,
    /// The stack's policy, used only for its queue-wide settings.
    policy: Policy,
    /// Arrival times of the events that have not arrived yet, earliest last.
    arrivals: Vec<Timestamp>,
    counts: InFlightCounts,
    message_ids: Xoshiro256PlusPlus,
    /// A separate generator for the ids of copies, so that moves do not change the ids of other messages.
    copy_ids: Xoshiro256PlusPlus,
}

impl World {
    pub(crate) fn new(scenario: &Scenario, policies: &Policies) -> Self {
        let policy = policies.stack();
        // Each purpose has its own generator, so that an extra draw for one purpose does not change the draws for
        // another.
        let mut seeds = Xoshiro256PlusPlus::seed_from_u64(scenario.seed);
        let arrivals = scenario.arrivals(seeds.random());
        let oracle = Oracle::new(scenario, policies);
        let may_change = scenario.operators.is_some()
            || !scenario.changes.is_empty()
            || scenario.faults.iter().next().is_some();
        let mut world = Self {
            now: START,
            agenda: Agenda::default(),
            queue: SqsQueue::new(QueueSettings {
                in_flight_limit: scenario.in_flight_limit,
                ..QueueSettings::default()
            }),
            mapping: Mapping::new(START),
            target: Targets::new(scenario, seeds.random()),
            dice: Dice::new(scenario.seed, START, &scenario.faults),
            environments: Environments::new(policies, scenario, oracle.environment_made()),
            oracle,
            log: LogCheck::new(may_change),
            tallies: Tallies::until(scenario.end(), scenario.targets.len()),
            current_batch: None,
            arrivals,
            counts: InFlightCounts::default(),
            message_ids: Xoshiro256PlusPlus::seed_from_u64(seeds.random()),
            copy_ids: Xoshiro256PlusPlus::seed_from_u64(seeds.random()),
            operated: Operated::default(),
            scenario: scenario.clone(),
            policy: policy.clone(),
        };
        world.plan_arrival();
        if scenario.operators.is_some() {
            world.operators_act_at(START);
        }
        world
    }

    /// Advances the clock to the next occurrence, and returns that occurrence; `None` once the run is over.
    pub(crate) fn next(&mut self) -> Option<Occurrence> {
        let (now, occurrence) = self.agenda.next_until(self.scenario.end())?;
        self.advance(now);
        Some(occurrence)
    }

    /// Processes an occurrence. If the handler must now make its calls for a batch, returns the batch.
    pub(crate) fn perform(&mut self, occurrence: Occurrence, watcher: &mut dyn Watcher) -> Option<Handover> {
        match occurrence {
            Occurrence::Arrival => self.arrive(),
            Occurrence::InvocationEnds(invocation) => self.end_invocation(invocation, watcher),
            Occurrence::QueueTimer(timer) => self.queue.run_out(self.now, timer),
            Occurrence::Poll => self.poll(),
            Occurrence::BatchEnds(batch) => return Some(self.open_batch(batch)),
            Occurrence::HandlerTimesOut(batch) => self.mapping.end(self.now, batch),
            Occurrence::AppearsEarly(receipt) => self.appear_early(receipt),
            Occurrence::ExpiresEarly(sent) => self.expire_early(sent),
            // The operators act outside this function, because the world must not be borrowed while they call it.
            Occurrence::OperatorsAct => {}
        }
        None
    }

    /// Records the queue's depth, which has been constant since the previous step in the run, and advances the clock to
    /// `now`.
    fn advance(&mut self, now: Timestamp) {
        let depth = self.queue.depth();
        self.tallies.note_depth(self.now, now, depth);
        self.counts.note(now, depth.in_flight);
        self.now = now;
    }

    /// After each step, records removed messages, schedules the next poll if one is needed, and checks the queue.
    pub(crate) fn follow_up(&mut self) {
        for (carried, removal) in std::mem::take(&mut self.queue.removals) {
            self.oracle.removed(&carried, removal, self.now);
            self.log.excuse(carried.event());
            self.tallies.minute(self.now).dead_lettered += 1;
        }
        if !self.mapping.poll_planned && self.can_receive() {
            self.mapping.poll_planned = true;
            self.plan(self.scenario.poll_delay, Occurrence::Poll);
        }
        let depth = self.queue.depth();
        let left_visible = !self.mapping.poll_planned && depth.visible > 0 && self.has_a_free_poller();
        self.oracle.queue_settled(depth.in_flight, left_visible);
    }

    pub(crate) fn operators_act_at(&mut self, moment: Timestamp) {
        self.agenda.plan(moment.max(self.now), Occurrence::OperatorsAct);
    }

    pub(crate) fn finish(&mut self) {
        let end = self.scenario.end();
        self.advance(end);
        self.tallies.calls.add(ApiCall::ReceiveMessage, self.mapping.empty_polls(end));
    }

    pub(crate) fn check_log(&mut self) -> Result<(), Broken> {
        let stored = self.queue.stored().map(|(mut record, attributes, carried)| {
            let comeback = attributes.and_then(|attributes| attributes.comeback.as_deref());
            // The handler ignores a garbled attribute, so the check ignores it too.
            let _ = comeback.map(|attribute| record.restore(attribute));
            (carried.event(), record)
        });
        std::mem::take(&mut self.log).ended(stored)
    }

    fn arrive(&mut self) {
        let event = EventNumber(self.scenario.events - self.arrivals.len());
        self.arrivals.pop().expect("BUG: an arrival was planned without an event");
        self.oracle.arrived(event, self.now);
        let mut payload = String::new();
        event.write_payload(self.scenario.payload_size, &mut payload);
        self.start_invocation(Attempt { event, number: 0, anew: None }, payload);
        self.plan_arrival();
    }

    fn plan_arrival(&mut self) {
        if let Some(&next) = self.arrivals.last() {
            self.agenda.plan(next, Occurrence::Arrival);
        }
    }

    fn start_invocation(&mut self, attempt: Attempt, payload: String) -> usize {
        let (function, is_flaky) = (self.scenario.target_of(attempt.event), self.is_flaky(attempt));
        let (invocation, run_time) = self.target.start(self.now, attempt, payload, function, is_flaky);
        self.plan(run_time, Occurrence::InvocationEnds(invocation));
        invocation
    }

    /// Returns true if an invocation fails although its function is up. The result does not depend on the policy.
    fn is_flaky(&self, Attempt { event, number, .. }: Attempt) -> bool {
        let Scenario { seed, failure_rate, poison, .. } = self.scenario;
        let draw = |purpose: &[u8], number: u64| {
            let event = (event.0 as u64).to_le_bytes();
            seeded([&seed.to_le_bytes(), purpose, &event, &number.to_le_bytes()]).random::<f64>()
        };
        poison > 0.0 && draw(b"poison", 0) < poison
            || failure_rate > 0.0 && draw(b"luck", number) < failure_rate
    }

    fn end_invocation(&mut self, invocation: usize, watcher: &mut dyn Watcher) {
        let (attempt, failure) = self.target.end(self.now, invocation);
        let error = failure.as_ref().map(|(error, _)| *error);
        match failure {
            None => self.tallies.minute(self.now).delivered += 1,
            Some((error, record)) => self.send(attempt, record, error),
        }
        self.oracle.invocation_ended(attempt.event, error.is_none(), self.now);
        watcher.invoked(self.now.since(START), attempt.event, attempt.number, error);
    }

    fn send(&mut self, attempt: Attempt, mut body: String, error: TargetError) {
        let mut asked = error.retry_after;
        let flaw = self.strike_record(attempt.event, &mut body, &mut asked);
        let written = body.contains(r#""timestamp":"#).then_some(self.now);
        self.tallies.calls.add_carrying(ApiCall::SendMessage, body.len());
        let id = draw_id(&mut self.message_ids);
        let history = self.oracle.sent(attempt.event, self.now);
        let error = body.contains(error.error_type).then_some(error.error_type);
        let carried = Carried { history, origin: Origin { attempt, flaw, written, asked, error } };
        let sent =
            self.enqueue(OutgoingMessage { id, body, delay: Duration::ZERO, attributes: None, carried });
        self.strike_retention(sent);
    }

    fn enqueue(&mut self, sent: OutgoingMessage<Carried>) -> ReceiptHandle {
        let sent = self.queue.send(self.now, self.scenario.end(), &mut self.agenda, sent);
        sent.expect("BUG: a delay of over 15 minutes")
    }

    fn poll(&mut self) {
        self.mapping.poll_planned = false;
        while self.can_receive() {
            if self.dice.strikes(Fault::InFlightLimit, self.now, []) {
                self.mapping.poll_planned = true;
                return self.plan(LONG_POLL, Occurrence::Poll);
            }
            let mut records = self.mapping.spare.pop().unwrap_or_default();
            let most = self.scenario.batch_size;
            let received = self.queue.receive(self.now, most, &mut self.agenda, &mut records);
            if received.is_empty() {
                return;
            }
            let mut messages = received.into_iter().map(|receipt| self.polled(receipt)).collect();
            self.strike_messages(&mut messages, &mut records);
            let batch = Batch { started: self.now, clock: self.now, messages, death: None };
            self.tallies.calls.add_carrying(ApiCall::ReceiveMessage, batch.bytes(&records));
            let event = BatchEvent { records, ..BatchEvent::default() };
            let handover = Handover { event, struck: None, environment: self.environments.take(self.now) };
            if self.dice.strikes(Fault::PollerThrottled, self.now, batch.events()) {
                self.release(handover);
            } else {
                self.hand_over(batch, handover);
            }
        }
    }

    fn polled(&self, receipt: ReceiptHandle) -> Polled {
        let message = self.queue.message(receipt).expect("BUG: a message was received and is gone");
        Polled { receipt, carried: message.carried.clone(), attributes: message.attributes.clone() }
    }

    /// Passes a batch to the handler, and plans when the handler makes its calls.
    fn hand_over(&mut self, mut batch: Batch, handover: Handover) {
        batch.clock = self.handlers_clock(&batch);
        batch.death = self.draw_death(batch.messages.len() as u64);
        let calls_at = batch.death.and_then(|death| death.calls_at);
        let run_time = calls_at.unwrap_or(self.scenario.handler_run_time);
        self.tallies.decisions += batch.messages.len() as u64;
        let (key, empty_polls) = self.mapping.start(self.now, (batch, handover));
        self.tallies.calls.add(ApiCall::ReceiveMessage, empty_polls);
        self.tallies.calls.add(ApiCall::InvokeHandler, 1);
        self.plan(run_time, Occurrence::BatchEnds(key));
    }

    fn open_batch(&mut self, key: usize) -> Handover {
        let (batch, mut handover) = self.mapping.take(key);
        match batch.death {
            Some(Death { fault: Fault::HandlerTimedOut, .. }) => {
                let timeout = batch.started.saturating_add(HANDLER_TIMEOUT);
                self.agenda.plan(timeout, Occurrence::HandlerTimesOut(key));
            }
            _ => self.mapping.end(self.now, key),
        }
        handover.struck = self.strike_fields(&batch, &handover.event.records);
        batch.restore(&mut handover.event.records);
        let start = Start {
            received_at: batch.started,
            clock: batch.clock,
            can_act: batch.death.is_none()
                && self.now < batch.started.saturating_add(HANDLER_TIMEOUT - RESERVE),
            reads: handover.environment.reads.clone(),
            policies: handover.environment.policies,
        };
        let carried = batch.messages.iter().map(|message| message.carried.clone());
        self.oracle.started(start, carried.zip(&handover.event.records), self.now);
        self.current_batch = Some(batch);
        handover
    }

    pub(crate) fn current_batch(&self) -> &Batch {
        self.current_batch.as_ref().expect(NO_BATCH)
    }

    /// Ends a batch whose handler crashed. All messages of the batch stay in the queue.
    pub(crate) fn bury(&mut self, handover: Handover, fault: Fault) {
        let batch = self.current_batch.take().expect(NO_BATCH);
        self.dice.note(fault, batch.events());
        self.oracle.kept_after_all();
        self.oracle.finished();
        self.mapping.spare.push(handover.event.records);
    }

    /// Deletes the messages that the handler did not report as failed, as the event source mapping does.
    pub(crate) fn delete_settled(&mut self, mut handover: Handover, kept: &[bool]) {
        let batch = self.current_batch.take().expect(NO_BATCH);
        let lost = kept.contains(&false) && self.dice.strikes(Fault::DeleteLost, self.now, batch.events());
        if lost {
            self.oracle.kept_after_all();
        }
        handover.environment.reads = self.oracle.finished();
        if !lost {
            let settled = batch.messages.iter().zip(kept).filter(|(_, kept)| !**kept);
            settled.for_each(|(message, _)| self.delete(message));
            self.tallies.calls.add(ApiCall::DeleteMessageBatch, u64::from(kept.contains(&false)));
        }
        self.release(handover);
    }

    fn delete(&mut self, Polled { receipt, carried, .. }: &Polled) {
        let body = self.queue.delete(*receipt);
        self.oracle.deleted(carried, body.is_some(), self.now);
        if let Some(body) = body {
            self.target.reuse(body);
        }
    }

    fn release(&mut self, handover: Handover) {
        self.mapping.spare.push(handover.event.records);
        self.environments.give_back(self.now, handover.environment);
    }

    fn can_receive(&self) -> bool {
        self.has_a_free_poller() && self.queue.has_visible()
    }

    fn has_a_free_poller(&self) -> bool {
        self.mapping.batches_under_way() < self.policy.settings().maximum_concurrency as usize
    }

    fn plan(&mut self, delay: Duration, occurrence: Occurrence) {
        self.agenda.plan(self.now.saturating_add(delay), occurrence);
    }
}

/// Counts of the messages in flight at the end of each minute, because SQS's own count may be a minute old.
#[derive(Debug, Default)]
struct InFlightCounts(Vec<usize>);

impl InFlightCounts {
    /// The age, in minutes, of the count that SQS returns when a fault makes it stale.
    const STALE: usize = 10;

    fn note(&mut self, now: Timestamp, in_flight: usize) {
        self.0.resize(now.since(START).as_secs() as usize / 60, in_flight);
    }

    fn get(&self, stale: bool) -> u64 {
        let age = if stale { Self::STALE } else { 0 };
        self.0.get(self.0.len().saturating_sub(1 + age)).copied().unwrap_or_default() as u64
    }
}
