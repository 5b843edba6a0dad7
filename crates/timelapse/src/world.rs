//! The simulated account: a retry queue, a target, an event source mapping, and how one leads to
//! another. Its clock only moves from one happening to the next.

use std::time::Duration;

use comeback_engine::Timestamp;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::agenda::{Agenda, Happening};
use crate::calls::{Calls, Operation};
use crate::id::Id;
use crate::ledger::{EXPIRED, Ledger, MAX_RECEIVE_COUNT};
use crate::mapping::{Batch, Mapping};
use crate::queue::{Queue, QueueSettings, Removal};
use crate::scenario::{START, Scenario};
use crate::summary::Minute;
use crate::target::{Ended, Target};

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) now: Timestamp,
    pub(crate) agenda: Agenda,
    pub(crate) queue: Queue,
    pub(crate) mapping: Mapping,
    pub(crate) target: Target,
    pub(crate) ledger: Ledger,
    pub(crate) calls: Calls,
    pub(crate) minutes: Vec<Minute>,
    /// The moments of arrival, earliest last.
    arrivals: Vec<Timestamp>,
    message_ids: Xoshiro256PlusPlus,
}

impl World {
    pub(crate) fn new(scenario: Scenario) -> Self {
        // One generator for each purpose, so that one more draw here changes nothing there.
        let mut seeds = Xoshiro256PlusPlus::seed_from_u64(scenario.seed);
        let queue = QueueSettings { in_flight_limit: scenario.in_flight_limit, ..QueueSettings::default() };
        let mut world = Self {
            now: START,
            agenda: Agenda::default(),
            queue: Queue::new(queue),
            mapping: Mapping::new(START),
            ledger: Ledger::new(scenario.events),
            calls: Calls::default(),
            minutes: vec![Minute::default(); scenario.duration.as_secs() as usize / 60 + 1],
            arrivals: arrivals(&scenario, seeds.random()),
            target: Target::new(&scenario, seeds.random()),
            message_ids: Xoshiro256PlusPlus::seed_from_u64(seeds.random()),
            scenario,
        };
        world.plan_arrival();
        world
    }

    /// The clock moves on. Until then the queue was as deep as it is.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        let minute = |moment: Timestamp| moment.since(START).as_secs() as usize / 60;
        let [in_flight, visible] = [self.queue.in_flight(), self.queue.visible()]
            .map(|depth| u32::try_from(depth).unwrap_or(u32::MAX));
        for minute in &mut self.minutes[minute(self.now)..=minute(now)] {
            minute.in_flight = minute.in_flight.max(in_flight);
            minute.visible = minute.visible.max(visible);
        }
        self.now = now;
    }

    /// The next event reaches the target.
    pub(crate) fn arrive(&mut self) {
        let event = self.scenario.events - self.arrivals.len();
        self.arrivals.pop().expect("BUG: an arrival was planned without an event");
        self.ledger.arrives(event, self.now);
        self.ledger.carry(event);
        let place = self.target.arrive(self.now, event);
        self.plan(self.scenario.run_time, Happening::InvocationEnds(place));
        self.plan_arrival();
    }

    /// The target is invoked by the handler.
    pub(crate) fn retry(&mut self, payload: String) {
        let (event, attempt, place) = self.target.retry(self.now, payload);
        self.ledger.attempt(event, attempt);
        self.ledger.carry(event);
        self.minute().retries += 1;
        self.plan(self.scenario.run_time, Happening::InvocationEnds(place));
    }

    /// An invocation ends: delivered, or Lambda sends the record of its failure to the retry queue.
    pub(crate) fn end_invocation(&mut self, place: usize) -> Ended {
        let mut ended = self.target.end(self.now, place);
        match &mut ended.failure {
            None => {
                self.ledger.deliver(ended.event, self.now);
                self.minute().delivered += 1;
            }
            Some((_, record)) => {
                let message = (Id::draw(&mut self.message_ids), std::mem::take(record), ended.event);
                self.queue.send(self.now, self.scenario.end(), &mut self.agenda, message);
                self.ledger.carry(ended.event);
                self.calls.add(Operation::SendMessage, 1);
            }
        }
        self.ledger.drop_carrier(ended.event);
        ended
    }

    /// The pollers take what is visible, as far as the mapping's concurrency goes.
    pub(crate) fn poll(&mut self) {
        self.mapping.poll_planned = false;
        while self.can_receive() {
            let mut records = self.mapping.buffers();
            let most = self.scenario.batch_size;
            let received = self.queue.receive(self.now, most, &mut self.agenda, &mut records);
            if received.is_empty() {
                return;
            }
            let (place, polls) = self.mapping.start(self.now, records, received);
            self.calls.add(Operation::ReceiveMessage, polls);
            self.calls.add(Operation::InvokeHandler, 1);
            self.plan(self.scenario.handler_run_time, Happening::BatchEnds(place));
        }
    }

    /// The mapping deletes what the handler did not report failed.
    pub(crate) fn delete_settled(&mut self, batch: Batch, kept: &[bool]) {
        let mut deleted = false;
        for (&(receipt, event), kept) in batch.received.iter().zip(kept) {
            if !kept {
                deleted = true;
                if self.queue.delete(receipt) {
                    self.ledger.drop_carrier(event);
                }
            }
        }
        self.calls.add(Operation::DeleteMessageBatch, u64::from(deleted));
        self.mapping.recycle(batch);
    }

    /// Notes an event that the handler dead-lettered.
    pub(crate) fn dead_letter(&mut self, event: usize, reason: &'static str) {
        self.ledger.give_up(event, reason);
        self.minute().dead_lettered += 1;
    }

    /// After each happening: what it did to the queue leads on to the ledger and to the pollers.
    pub(crate) fn follow_up(&mut self) {
        for (event, removal) in self.queue.take_removals() {
            let reason = match removal {
                Removal::Redriven => MAX_RECEIVE_COUNT,
                Removal::Expired => EXPIRED,
            };
            self.dead_letter(event, reason);
            self.ledger.drop_carrier(event);
        }
        if !self.mapping.poll_planned && self.can_receive() {
            self.mapping.poll_planned = true;
            self.plan(self.scenario.poll_delay, Happening::Poll);
        }
    }

    fn can_receive(&self) -> bool {
        self.mapping.batches_under_way() < self.scenario.maximum_concurrency && self.queue.has_visible()
    }

    fn plan_arrival(&mut self) {
        if let Some(&next) = self.arrivals.last() {
            self.agenda.plan(next, Happening::Arrival);
        }
    }

    fn plan(&mut self, delay: Duration, happening: Happening) {
        self.agenda.plan(self.now.saturating_add(delay), happening);
    }

    fn minute(&mut self) -> &mut Minute {
        &mut self.minutes[self.now.since(START).as_secs() as usize / 60]
    }
}

/// Draws the moments at which events arrive, latest first.
fn arrivals(scenario: &Scenario, seed: u64) -> Vec<Timestamp> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let spread = scenario.arrival_spread.as_millis() as u64;
    let mut moments: Vec<Timestamp> = (0..scenario.events)
        .map(|_| START.saturating_add(Duration::from_millis(rng.random_range(0..=spread))))
        .collect();
    moments.sort_unstable_by(|one, other| other.cmp(one));
    moments
}
