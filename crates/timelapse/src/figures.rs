//! The figures of a run: counted in [`Tallies`] as it goes, summed up in [`Summary`](summary::Summary) at its end.

pub mod prices;
pub(crate) mod summary;

use comeback_engine::Timestamp;
use serde::Serialize;

use crate::aws::agenda::START;
use crate::aws::queue::Depth;
use prices::CallCounts;

/// What is counted while a run goes on.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) calls: CallCounts,
    /// Lines in the handler's log: one for each message, and one for all messages of a batch that only wait on.
    pub(crate) decisions: u64,
    /// Re-invocations that Lambda accepted.
    pub(crate) retries: u64,
    /// Copies that SQS accepted.
    pub(crate) moves: u64,
    /// Moves made while messages in flight were under half of `HIDE_UP_TO`.
    pub(crate) moves_with_room: u64,
    /// The run minute by minute.
    pub(crate) minutes: Vec<Minute>,
}

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
    /// Most messages visible at once: ready to be received.
    pub visible: u32,
    /// Most messages delayed at once: sent again, and neither visible nor in flight until their delay is over.
    pub delayed: u32,
}

impl Tallies {
    /// Nothing yet of a run that lasts until `end`.
    pub(crate) fn until(end: Timestamp) -> Self {
        Self { minutes: vec![Minute::default(); index(end) + 1], ..Self::default() }
    }

    /// The minute of a moment.
    pub(crate) fn minute(&mut self, now: Timestamp) -> &mut Minute {
        &mut self.minutes[index(now)]
    }

    /// The queue had this many messages from one moment to another.
    pub(crate) fn note_depth(&mut self, from: Timestamp, until: Timestamp, depth: Depth) {
        let [visible, in_flight, delayed] = [depth.visible, depth.in_flight, depth.delayed]
            .map(|messages| u32::try_from(messages).unwrap_or(u32::MAX));
        for minute in &mut self.minutes[index(from)..=index(until)] {
            minute.in_flight = minute.in_flight.max(in_flight);
            minute.visible = minute.visible.max(visible);
            minute.delayed = minute.delayed.max(delayed);
        }
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
        let at = |secs| START.saturating_add(Duration::from_secs(secs));
        let mut tallies = Tallies::until(at(180));
        tallies.note_depth(at(0), at(10), Depth { visible: 1, in_flight: 20, delayed: 300 });
        tallies.note_depth(at(10), at(70), Depth { visible: 3, in_flight: 30, delayed: 100 });
        let depths: Vec<[u32; 3]> =
            tallies.minutes.iter().map(|it| [it.visible, it.in_flight, it.delayed]).collect();
        assert_eq!(depths, [[3, 30, 300], [3, 30, 100], [0, 0, 0], [0, 0, 0]]);
    }
}
