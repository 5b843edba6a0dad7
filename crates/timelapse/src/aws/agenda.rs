//! The agenda of a simulation, which alone determines the order in which things happen.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use comeback_engine::Timestamp;

/// Start of every run, fixed so that a run's result does not depend on the date: 2026-01-01T00:00:00Z.
pub const START: Timestamp = Timestamp::from_secs(1_767_225_600);

/// A scheduled occurrence, reversed because [`BinaryHeap`] pops the greatest item first.
type Scheduled<H> = Reverse<(Timestamp, u64, H)>;

/// Future occurrences, ordered by time, then by when they were scheduled. Only the current second's occurrences are
/// in a heap. A heap of all occurrences would outgrow the processor's caches.
#[derive(Debug)]
pub(crate) struct Agenda<H> {
    /// Occurrences up to the end of `second`, earliest first.
    soon: BinaryHeap<Scheduled<H>>,
    /// The current second, counted from the epoch.
    second: u64,
    /// Occurrences after the current second, grouped by second.
    later: BTreeMap<u64, Vec<Scheduled<H>>>,
    planned: u64,
}

impl<H: Ord> Default for Agenda<H> {
    fn default() -> Self {
        Self { soon: BinaryHeap::new(), second: 0, later: BTreeMap::new(), planned: 0 }
    }
}

impl<H: Ord> Agenda<H> {
    pub(crate) fn plan(&mut self, at: Timestamp, occurrence: impl Into<H>) {
        let entry = Reverse((at, self.planned, occurrence.into()));
        self.planned += 1;
        if at.as_secs() <= self.second {
            self.soon.push(entry);
        } else {
            self.later.entry(at.as_secs()).or_default().push(entry);
        }
    }

    /// Removes and returns the next occurrence if it is scheduled at or before `end`.
    pub(crate) fn next_until(&mut self, end: Timestamp) -> Option<(Timestamp, H)> {
        if self.soon.is_empty() {
            let (second, entries) = self.later.pop_first()?;
            self.second = second;
            self.soon = entries.into();
        }
        let Reverse((at, _, _)) = self.soon.peek()?;
        if *at > end {
            return None;
        }
        self.soon.pop().map(|Reverse((at, _, occurrence))| (at, occurrence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_seconds_as_well_whenever_they_are_planned() {
        let mut agenda = Agenda::default();
        let at = |millis| Timestamp::from_millis(millis);
        agenda.plan(at(5_200), "poll");
        agenda.plan(at(5_100), "batch 1");
        agenda.plan(at(86_400_000), "batch 4");
        // This call advances the agenda to the second that begins at 5 s.
        assert_eq!(agenda.next_until(at(5_000)), None::<(Timestamp, &str)>);
        agenda.plan(at(4_000), "batch 0");
        agenda.plan(at(5_150), "batch 2");
        agenda.plan(at(6_000), "batch 3");
        let order: Vec<u64> =
            std::iter::from_fn(|| agenda.next_until(at(u64::MAX))).map(|(at, _)| at.as_millis()).collect();
        assert_eq!(order, [4_000, 5_100, 5_150, 5_200, 6_000, 86_400_000]);
    }

    #[test]
    fn orders_by_time_and_then_by_when_it_was_planned() {
        let mut agenda = Agenda::default();
        let at = Timestamp::from_secs;
        agenda.plan(at(2), "poll");
        agenda.plan(at(1), "batch 1");
        agenda.plan(at(1), "batch 0");
        agenda.plan(at(1), "arrival");
        let order: Vec<&str> = std::iter::from_fn(|| agenda.next_until(at(1))).map(|(_, h)| h).collect();
        assert_eq!(order, ["batch 1", "batch 0", "arrival"]);
        assert_eq!(agenda.next_until(at(9)), Some((at(2), "poll")));
    }
}
