//! Lanes: groups of entries that must be delivered in order.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// A group of entries that must stay in order, such as a FIFO queue's message group or the writes to one DynamoDB item.
/// The entries are sent one at a time, in the order of the input. When the sender gives up on an entry, it also gives
/// up on the entries behind it ([`EntryError::Behind`](crate::EntryError::Behind)), because sending them would change
/// the order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    name: Arc<[u8]>,
    pub(crate) last_wins: bool,
}

impl Lane {
    /// Creates a lane from the parts of its name, such as a table and a key. Lanes with equal parts are the same lane.
    pub fn new<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut name = Vec::new();
        for part in parts {
            name.extend_from_slice(&part.as_ref().len().to_be_bytes());
            name.extend_from_slice(part.as_ref());
        }
        Self { name: name.into(), last_wins: false }
    }

    /// Declares that only the last entry in the lane matters. When the sender gives up on an entry, it still sends the
    /// entries behind it.
    #[must_use]
    pub fn last_wins(self) -> Self {
        Self { last_wins: true, ..self }
    }
}

/// The entries in each lane that have no outcome yet, in order. With [`remembering`](Self::remembering), a lane
/// accepts no more entries once the sender has given up on one.
#[derive(Default)]
pub(crate) struct Lanes {
    open: HashMap<Lane, VecDeque<usize>>,
    /// Lanes that accept no further entries, because the sender gave up on one of their entries. `None` if lanes always
    /// accept further entries.
    broken: Option<HashSet<Lane>>,
}

impl Lanes {
    pub(crate) fn remembering() -> Self {
        Self { open: HashMap::new(), broken: Some(HashSet::new()) }
    }

    /// Adds an entry to the end of its lane. Returns true if every earlier entry in the lane already has an outcome.
    pub(crate) fn push(&mut self, lane: &Lane, index: usize) -> bool {
        let open = self.open.entry(lane.clone()).or_default();
        open.push_back(index);
        open.len() == 1
    }

    pub(crate) fn is_broken(&self, lane: &Lane) -> bool {
        self.broken.as_ref().is_some_and(|broken| broken.contains(lane))
    }

    pub(crate) fn first(&self, lane: &Lane) -> Option<usize> {
        self.open.get(lane)?.front().copied()
    }

    /// Closes the lane at an entry that was abandoned. Returns the entries behind it, which must be abandoned too.
    pub(crate) fn break_at(&mut self, lane: &Lane, index: usize) -> VecDeque<usize> {
        self.close(lane);
        let Some(open) = self.open.get_mut(lane) else { return VecDeque::new() };
        let place = open.iter().position(|&other| other == index).expect("BUG: an open entry is in its lane");
        let behind = open.split_off(place + 1);
        self.remove(lane, index);
        behind
    }

    /// Closes the lane to entries added later, unless the lane is marked [`last_wins`](Lane::last_wins).
    pub(crate) fn close(&mut self, lane: &Lane) {
        if let Some(broken) = self.broken.as_mut().filter(|_| !lane.last_wins) {
            broken.insert(lane.clone());
        }
    }

    pub(crate) fn remove(&mut self, lane: &Lane, index: usize) {
        if let Some(open) = self.open.get_mut(lane) {
            open.retain(|&other| other != index);
            if open.is_empty() {
                self.open.remove(lane);
            }
        }
    }
}
