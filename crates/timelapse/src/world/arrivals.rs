//! Events reach the target.

use super::World;
use super::happening::Happening;
use crate::check::origin::Attempt;
use crate::event::EventNumber;

impl World {
    /// The next event reaches the target.
    pub(super) fn arrive(&mut self) {
        let event = EventNumber(self.scenario.events - self.arrivals.len());
        self.arrivals.pop().expect("BUG: an arrival was planned without an event");
        self.ledger.arrives(event, self.now);
        self.ledger.carry(event);
        let mut payload = String::new();
        event.write_payload(self.scenario.payload_size, &mut payload);
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
