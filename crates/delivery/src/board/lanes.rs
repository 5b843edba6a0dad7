use std::collections::{HashMap, HashSet, VecDeque};

use crate::Lane;

/// The open entries of each lane, in their order.
pub(super) struct Lanes {
    open: HashMap<Lane, VecDeque<usize>>,
    /// Lanes that an entry was left of, if that matters to those that come later.
    broken: Option<HashSet<Lane>>,
}

impl Lanes {
    pub(super) fn new() -> Self {
        Self { open: HashMap::new(), broken: Some(HashSet::new()) }
    }

    pub(super) fn forgetting() -> Self {
        Self { open: HashMap::new(), broken: None }
    }

    /// The next entry of the lane; whether it is the first.
    pub(super) fn push(&mut self, lane: &Lane, index: usize) -> bool {
        let open = self.open.entry(lane.clone()).or_default();
        open.push_back(index);
        open.len() == 1
    }

    pub(super) fn is_broken(&self, lane: &Lane) -> bool {
        self.broken.as_ref().is_some_and(|broken| broken.contains(lane))
    }

    pub(super) fn is_first(&self, lane: &Lane, index: usize) -> bool {
        self.open.get(lane).and_then(VecDeque::front) == Some(&index)
    }

    /// The entry of the lane after this one.
    pub(super) fn after(&self, lane: &Lane, index: usize) -> Option<usize> {
        let open = self.open.get(lane)?;
        let place = open.iter().position(|&other| other == index)?;
        open.get(place + 1).copied()
    }

    /// The entry is done with; gives the lane's new first if it was the first.
    pub(super) fn settle(&mut self, lane: &Lane, index: usize) -> Option<usize> {
        let was_first = self.is_first(lane, index);
        self.remove(lane, index);
        self.open.get(lane).filter(|_| was_first)?.front().copied()
    }

    /// The entry was left: gives those behind it, which are left too, as will be all that come.
    pub(super) fn break_at(&mut self, lane: &Lane, index: usize) -> Vec<usize> {
        self.close(lane);
        let Some(open) = self.open.get_mut(lane) else { return Vec::new() };
        let place = open.iter().position(|&other| other == index).expect("BUG: an open entry is in its lane");
        let behind = open.split_off(place).into_iter().skip(1).collect();
        if open.is_empty() {
            self.open.remove(lane);
        }
        behind
    }

    /// None of the lane goes any more.
    pub(super) fn close(&mut self, lane: &Lane) {
        if let Some(broken) = &mut self.broken {
            broken.insert(lane.clone());
        }
    }

    pub(super) fn remove(&mut self, lane: &Lane, index: usize) {
        if let Some(open) = self.open.get_mut(lane) {
            open.retain(|&other| other != index);
            if open.is_empty() {
                self.open.remove(lane);
            }
        }
    }
}
