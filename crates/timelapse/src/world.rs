//! The simulated account: a retry queue, a target, an event source mapping, and how one leads to
//! another. Its clock only moves from one happening to the next.

mod api;
mod delivery;

use std::time::Duration;

use comeback_engine::{Policy, Timestamp};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::agenda::{Agenda, Happening};
use crate::calls::{Calls, Operation};
use crate::copies::Copies;
use crate::failure_record::{of_another_function, without_a_member};
use crate::faults::{Dice, Fault};
use crate::handling::Handling;
use crate::id::Id;
use crate::invariants::{Broken, Law};
use crate::ledger::{EXPIRED, Ledger, MAX_RECEIVE_COUNT};
use crate::mapping::Mapping;
use crate::queue::{Flaw, Queue, QueueSettings, Removal, Sent};
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
    pub(crate) dice: Dice,
    /// The batch that is in the handler's hands right now.
    pub(crate) handling: Option<Handling>,
    /// One of its calls is under way.
    pub(crate) in_call: bool,
    /// The first invariant that was broken.
    pub(crate) broken: Option<Broken>,
    /// Re-invocations that Lambda accepted.
    pub(crate) retries: u64,
    /// Of those, the ones of a message that was re-invoked or dead-lettered before.
    pub(crate) duplicate_retries: u64,
    /// Dead-letters that SQS accepted of such a message.
    pub(crate) duplicate_dead_letters: u64,
    pub(crate) minutes: Vec<Minute>,
    /// The moments of arrival, earliest last.
    arrivals: Vec<Timestamp>,
    law: Law,
    copies: Copies,
    /// Messages whose retention is to end early.
    expiring: Vec<(usize, Id)>,
    message_ids: Xoshiro256PlusPlus,
}

impl World {
    pub(crate) fn new(scenario: Scenario, policy: &Policy) -> Self {
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
            dice: Dice::new(scenario.seed, &scenario.faults),
            handling: None,
            in_call: false,
            broken: None,
            retries: 0,
            duplicate_retries: 0,
            duplicate_dead_letters: 0,
            law: Law::of(policy),
            copies: Copies::default(),
            expiring: Vec::new(),
            minutes: vec![Minute::default(); scenario.duration.as_secs() as usize / 60 + 1],
            arrivals: arrivals(&scenario, seeds.random()),
            target: Target::new(&scenario, seeds.random()),
            message_ids: Xoshiro256PlusPlus::seed_from_u64(seeds.random()),
            scenario,
        };
        world.plan_arrival();
        world
    }

    /// What happens without the handler.
    pub(crate) fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrival => self.arrive(),
            Happening::Appears(receipt) => self.queue.appear(self.now, receipt),
            Happening::AppearsEarly(receipt) => self.appear_early(receipt),
            Happening::Expires(slot) => self.queue.expire(self.now, slot),
            Happening::ExpiresEarly(place) => self.expire_early(place),
            Happening::Poll => self.poll(),
            Happening::BatchDies(place) => drop(self.mapping.end(self.now, place)),
            Happening::InvocationEnds(_) | Happening::BatchEnds(_) => {
                unreachable!("BUG: a watcher is told of these")
            }
        }
    }

    /// The next event reaches the target.
    fn arrive(&mut self) {
        let event = self.scenario.events - self.arrivals.len();
        self.arrivals.pop().expect("BUG: an arrival was planned without an event");
        self.ledger.arrives(event, self.now);
        self.ledger.carry(event);
        let place = self.target.arrive(self.now, event);
        self.plan(self.scenario.run_time, Happening::InvocationEnds(place));
        self.plan_arrival();
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
                let body = std::mem::take(record);
                self.ledger.fail(ended.event, self.now);
                self.send(ended.event, ended.attempt, body);
            }
        }
        self.drop_carrier(ended.event);
        ended
    }

    /// Lambda sends the record of a failure to the retry queue.
    fn send(&mut self, event: usize, attempt: u64, mut body: String) {
        let flaw = self.strike_record(event, &mut body);
        let id = Id::draw(&mut self.message_ids);
        let content = Sent { id, body, event, attempt, flaw };
        let slot = self.queue.send(self.now, self.scenario.end(), &mut self.agenda, content);
        self.ledger.carry(event);
        self.calls.add(Operation::SendMessage, 1);
        if let Some(rng) = self.dice.roll(Fault::RetentionEnded, self.now) {
            let left = Duration::from_millis(rng.random_range(0..12 * 3_600_000));
            let place = self.expiring.len();
            self.expiring.push((slot, id));
            self.plan(left, Happening::ExpiresEarly(place));
        }
    }

    fn strike_record(&mut self, event: usize, body: &mut String) -> Option<Flaw> {
        if let Some(rng) = self.dice.roll(Fault::IncompleteRecord, self.now) {
            let flaw = without_a_member(body, rng);
            self.dice.note(Fault::IncompleteRecord, [event]);
            return flaw;
        }
        self.dice.strikes(Fault::UnlistedFunction, self.now, [event]).then(|| of_another_function(body))
    }

    /// A retention ends early, unless the message is gone by now.
    fn expire_early(&mut self, place: usize) {
        let (slot, id) = self.expiring[place];
        if let Some(event) = self.queue.expire_early(slot, id) {
            self.dice.note(Fault::RetentionEnded, [event]);
        }
    }

    /// After each happening: what it did to the queue leads on to the ledger and to the pollers.
    pub(crate) fn follow_up(&mut self) {
        for (gone, removal) in self.queue.take_removals() {
            let reason = match removal {
                Removal::Redriven => MAX_RECEIVE_COUNT,
                Removal::Expired => EXPIRED,
            };
            // A handler may have it in its hands still.
            self.copies.excuse(gone.id, false);
            self.dead_letter(gone.event, reason);
            self.drop_carrier(gone.event);
        }
        if !self.mapping.poll_planned && self.can_receive() {
            self.mapping.poll_planned = true;
            self.plan(self.scenario.poll_delay, Happening::Poll);
        }
    }

    /// Notes an event that was given up.
    fn dead_letter(&mut self, event: usize, reason: &'static str) {
        self.ledger.give_up(event, reason);
        self.minute().dead_lettered += 1;
    }

    fn drop_carrier(&mut self, event: usize) {
        let dropped = self.ledger.drop_carrier(event);
        self.hold(dropped);
    }

    /// Keeps the first invariant that is broken, which ends the run.
    fn hold<T>(&mut self, checked: Result<T, Broken>) -> Option<T> {
        checked.map_err(|broken| self.broken.get_or_insert(broken)).ok()
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
