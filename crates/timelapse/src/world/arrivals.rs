//! Events reach the target.

use std::time::Duration;

use comeback_engine::Timestamp;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::World;
use super::happening::Happening;
use crate::check::origin::Attempt;
use crate::event::EventNumber;
use crate::scenario::{START, Scenario};

impl World {
    /// The next event reaches the target.
    pub(super) fn arrive(&mut self) {
        let event = EventNumber(self.scenario.events - self.arrivals.len());
        self.arrivals.pop().expect("BUG: an arrival was planned without an event");
        self.ledger.arrives(event, self.now);
        self.ledger.carry(event);
        let mut payload = String::new();
        event.write_payload(&mut payload);
        let invocation = self.target.start(self.now, Attempt { event, number: 0 }, payload);
        self.plan(self.scenario.run_time, Happening::InvocationEnds(invocation));
        self.plan_arrival();
    }

    pub(super) fn plan_arrival(&mut self) {
        if let Some(&next) = self.arrivals.last() {
            self.agenda.plan(next, Happening::Arrival);
        }
    }
}

/// Draws the moments at which events arrive, latest first.
pub(super) fn draw(scenario: &Scenario, seed: u64) -> Vec<Timestamp> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let spread = scenario.arrival_spread.as_millis() as u64;
    let mut moments: Vec<Timestamp> = (0..scenario.events)
        .map(|_| START.saturating_add(Duration::from_millis(rng.random_range(0..=spread))))
        .collect();
    moments.sort_unstable_by(|one, other| other.cmp(one));
    moments
}
