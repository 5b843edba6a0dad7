use comeback_engine::Timestamp;
use serde::Serialize;

use crate::aws::queue::Depth;
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
    /// Most messages delayed at once: sent again, and neither visible nor in flight until their delay is over.
    pub delayed: u32,
}

/// The minutes of a run, from its start.
#[derive(Debug)]
pub(crate) struct Minutes(Vec<Minute>);

impl Minutes {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self(vec![Minute::default(); index(scenario.end()) + 1])
    }

    /// The queue had this many messages from one moment to another.
    pub(crate) fn note_depth(&mut self, from: Timestamp, until: Timestamp, depth: Depth) {
        let Depth { visible, in_flight, delayed } = depth;
        let [visible, in_flight, delayed] =
            [visible, in_flight, delayed].map(|messages| u32::try_from(messages).unwrap_or(u32::MAX));
        for minute in &mut self.0[index(from)..=index(until)] {
            minute.in_flight = minute.in_flight.max(in_flight);
            minute.visible = minute.visible.max(visible);
            minute.delayed = minute.delayed.max(delayed);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_minute_has_the_most_of_each() {
        let mut minutes =
            Minutes::of(&Scenario { duration: Duration::from_secs(180), ..Scenario::default() });
        let at = |secs| START.saturating_add(Duration::from_secs(secs));
        minutes.note_depth(at(0), at(10), Depth { visible: 1, in_flight: 20, delayed: 300 });
        minutes.note_depth(at(10), at(70), Depth { visible: 3, in_flight: 30, delayed: 100 });
        let depths: Vec<[u32; 3]> =
            minutes.into_vec().iter().map(|it| [it.visible, it.in_flight, it.delayed]).collect();
        assert_eq!(depths, [[3, 30, 300], [3, 30, 100], [0, 0, 0], [0, 0, 0]]);
    }
}
