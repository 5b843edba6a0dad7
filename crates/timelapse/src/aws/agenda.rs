use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use comeback_engine::Timestamp;

use crate::aws::queue::Receipt;

/// Something that will happen. Where the world has moved on meanwhile, it happens to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    /// The next event of the scenario reaches the target.
    Arrival,
    /// An invocation of the target ends; its place in Lambda's list.
    InvocationEnds(usize),
    /// A message's visibility timeout runs out, if this is still its latest receipt.
    Appears(Receipt),
    /// A message's retention ends; its place in the queue.
    Expires(usize),
    /// A poller of the event source mapping asks for messages.
    Poll,
    /// The retry handler answers for a batch; its place in the mapping's list.
    BatchEnds(usize),
    /// A batch's handler, gone quiet, is ended by its timeout; likewise.
    BatchDies(usize),
    /// A fault: SQS hands a message out again, if this is still its latest receipt.
    AppearsEarly(Receipt),
    /// A fault: a message's retention ends; its place in the world's list.
    ExpiresEarly(usize),
}

/// The moment, how many were planned before it, and what happens; the earliest is the greatest.
type Entry = Reverse<(Timestamp, u64, Happening)>;

/// What happens when, ordered by time and, within one moment, by when it was planned. Nothing else
/// orders a run, so the same seed gives the same run.
///
/// Only the second at hand is sorted: one heap of all would be too large for the processor's caches
/// with a million events, and cost each of them the more, the more they are.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// All up to the end of `second`.
    soon: BinaryHeap<Entry>,
    /// Since the epoch, like all moments here.
    second: u64,
    /// All after it, by their second.
    later: BTreeMap<u64, Vec<Entry>>,
    planned: u64,
}

impl Agenda {
    pub(crate) fn plan(&mut self, at: Timestamp, happening: Happening) {
        let entry = Reverse((at, self.planned, happening));
        self.planned += 1;
        if at.as_secs() <= self.second {
            self.soon.push(entry);
        } else {
            self.later.entry(at.as_secs()).or_default().push(entry);
        }
    }

    /// The next happening, unless it comes after `end`.
    pub(crate) fn next_until(&mut self, end: Timestamp) -> Option<(Timestamp, Happening)> {
        if self.soon.is_empty() {
            let (second, entries) = self.later.pop_first()?;
            self.second = second;
            self.soon = entries.into();
        }
        let Reverse((at, _, _)) = self.soon.peek()?;
        if *at > end {
            return None;
        }
        self.soon.pop().map(|Reverse((at, _, happening))| (at, happening))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_seconds_as_well_whenever_they_are_planned() {
        let mut agenda = Agenda::default();
        let at = |millis| Timestamp::from_millis(millis);
        agenda.plan(at(5_200), Happening::Poll);
        agenda.plan(at(5_100), Happening::BatchEnds(1));
        agenda.plan(at(86_400_000), Happening::BatchEnds(4));
        // It has looked ahead to 5 s by now.
        assert_eq!(agenda.next_until(at(5_000)), None);
        agenda.plan(at(4_000), Happening::BatchEnds(0));
        agenda.plan(at(5_150), Happening::BatchEnds(2));
        agenda.plan(at(6_000), Happening::BatchEnds(3));
        let order: Vec<u64> =
            std::iter::from_fn(|| agenda.next_until(at(u64::MAX))).map(|(at, _)| at.as_millis()).collect();
        assert_eq!(order, [4_000, 5_100, 5_150, 5_200, 6_000, 86_400_000]);
    }

    #[test]
    fn orders_by_time_and_then_by_when_it_was_planned() {
        let mut agenda = Agenda::default();
        let at = Timestamp::from_secs;
        agenda.plan(at(2), Happening::Poll);
        agenda.plan(at(1), Happening::BatchEnds(1));
        agenda.plan(at(1), Happening::BatchEnds(0));
        agenda.plan(at(1), Happening::Arrival);
        let order: Vec<Happening> = std::iter::from_fn(|| agenda.next_until(at(1))).map(|(_, h)| h).collect();
        assert_eq!(order, [Happening::BatchEnds(1), Happening::BatchEnds(0), Happening::Arrival]);
        assert_eq!(agenda.next_until(at(9)), Some((at(2), Happening::Poll)));
    }
}
