use comeback_engine::Timestamp;
use serde::Serialize;

use crate::scenario::{START, Scenario};

/// One minute of a run: what happened in it, and how many messages the retry queue had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Minute {
    /// Re-invocations.
    pub retries: u32,
    /// Runs of the target that succeeded.
    pub delivered: u32,
    /// Events given up.
    pub dead_lettered: u32,
    /// Most messages in flight at once: hidden or in the handler's hands.
    pub in_flight: u32,
    /// Most messages visible at once: ready, and not yet received.
    pub visible: u32,
}

/// The minutes of a run, from its start.
#[derive(Debug)]
pub(crate) struct Minutes(Vec<Minute>);

impl Minutes {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self(vec![Minute::default(); index(scenario.end()) + 1])
    }

    /// The queue had this many messages in flight and visible from one moment to another.
    pub(crate) fn note_depth(&mut self, from: Timestamp, until: Timestamp, in_flight: usize, visible: usize) {
        let [in_flight, visible] = [in_flight, visible].map(|depth| u32::try_from(depth).unwrap_or(u32::MAX));
        for minute in &mut self.0[index(from)..=index(until)] {
            minute.in_flight = minute.in_flight.max(in_flight);
            minute.visible = minute.visible.max(visible);
        }
    }

    pub(crate) fn at(&mut self, now: Timestamp) -> &mut Minute {
        &mut self.0[index(now)]
    }

    pub(crate) fn into_vec(self) -> Vec<Minute> {
        self.0
    }
}

fn index(moment: Timestamp) -> usize {
    moment.since(START).as_secs() as usize / 60
}
