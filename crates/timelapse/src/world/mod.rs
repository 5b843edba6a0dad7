//! The simulated account: a retry queue, a target, an event source mapping, and how one leads to
//! another. Its clock only moves from one happening to the next.

mod api;
mod asked;
mod delivery;
mod fields;
pub(crate) mod handling;
pub(crate) mod ports;
mod sending;

pub(crate) use asked::Letter;

use std::time::Duration;

use comeback_engine::{Policy, Timestamp};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::aws::agenda::{Agenda, Happening};
use crate::aws::id::Id;
use crate::aws::mapping::Mapping;
use crate::aws::queue::{Queue, QueueSettings, Removal};
use crate::aws::target::Target;
use crate::check::bounds::Law;
use crate::check::copies::Copies;
use crate::check::invariants::Broken;
use crate::check::ledger::{EXPIRED, Ledger, MAX_RECEIVE_COUNT};
use crate::faults::dice::Dice;
use crate::figures::calls::Calls;
use crate::figures::summary::Minute;
use crate::scenario::{START, Scenario};
use crate::world::handling::Handling;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) now: Timestamp,
    /// What the handler has waited between its calls, on top of `now`.
    pub(crate) waited: Duration,
    pub(crate) agenda: Agenda,
    pub(crate) queue: Queue,
    pub(crate) mapping: Mapping,
    pub(crate) target: Target,
    pub(crate) ledger: Ledger,
    pub(crate) calls: Calls,
    pub(crate) dice: Dice,
    /// The batch that is in the handler's hands right now.
    pub(crate) handling: Option<Handling>,
    /// On one of its calls, or on what it asks for.
    pub(crate) at_work: bool,
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
            waited: Duration::ZERO,
            agenda: Agenda::default(),
            queue: Queue::new(queue),
            mapping: Mapping::new(START),
            ledger: Ledger::new(scenario.events),
            calls: Calls::default(),
            dice: Dice::new(scenario.seed, &scenario.faults),
            handling: None,
            at_work: false,
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
    fn arrive(&mut self) {
        let event = self.scenario.events - self.arrivals.len();
        self.arrivals.pop().expect("BUG: an arrival was planned without an event");
        self.ledger.arrives(event, self.now);
        self.ledger.carry(event);
        let place = self.target.arrive(self.now, event);
        self.plan(self.scenario.run_time, Happening::InvocationEnds(place));
        self.plan_arrival();
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
