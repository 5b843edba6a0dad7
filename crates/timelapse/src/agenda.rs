use std::cmp::Reverse;
use std::collections::BinaryHeap;

use comeback_engine::Timestamp;

use crate::queue::Receipt;

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

/// What happens when, ordered by time and, within one moment, by when it was planned. Nothing else
/// orders a run, so the same seed gives the same run.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Reverse<(Timestamp, u64, Happening)>>,
    planned: u64,
}

impl Agenda {
    pub(crate) fn plan(&mut self, at: Timestamp, happening: Happening) {
        self.heap.push(Reverse((at, self.planned, happening)));
        self.planned += 1;
    }

    /// The next happening, unless it comes after `end`.
    pub(crate) fn next_until(&mut self, end: Timestamp) -> Option<(Timestamp, Happening)> {
        let Reverse((at, _, _)) = self.heap.peek()?;
        if *at > end {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, happening))| (at, happening))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
