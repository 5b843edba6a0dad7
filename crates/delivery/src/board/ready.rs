use std::collections::{BTreeSet, HashSet};

use super::{Board, Place};
use crate::Answer;
use crate::limits::Limits;

/// What may go out now; the lowest index is taken first. Of each lane, only the first open entry can be here.
#[derive(Default)]
pub(super) struct Ready {
    indexes: BTreeSet<usize>,
    /// Of all of them together.
    bytes: usize,
}

impl Ready {
    pub(super) fn add(&mut self, index: usize, size: usize) {
        if self.indexes.insert(index) {
            self.bytes = self.bytes.saturating_add(size);
        }
    }

    pub(super) fn remove(&mut self, index: usize, size: usize) {
        if self.indexes.remove(&index) {
            self.bytes = self.bytes.saturating_sub(size);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    /// Whether they make at least one full batch.
    pub(super) fn fills(&self, limits: &Limits) -> bool {
        self.indexes.len() >= limits.entries || self.bytes >= limits.bytes
    }
}

impl<E, R> Board<E, R> {
    /// A batch in the order of input as far as lanes allow. It ends when it is full or the next
    /// entry does not fit, so any two successive batches together exceed one of the limits.
    pub(super) fn pack(&mut self) -> Vec<usize> {
        let mut batch = Vec::with_capacity(self.limits.entries.min(self.ready.indexes.len()));
        let mut bytes = 0usize;
        while batch.len() < self.limits.entries
            && let Some(&index) = self.ready.indexes.first()
        {
            let track = &self.tracks[&index];
            let with_it = bytes.saturating_add(track.size);
            if !batch.is_empty() && with_it > self.limits.bytes {
                break;
            }
            bytes = with_it;
            batch.push(index);
            self.ready.remove(index, track.size);
            if let Some(next) = self.follower(index) {
                self.ready.add(next, self.tracks[&next].size);
            }
        }
        self.keep_back_followers(&batch);
        batch
    }

    /// The entry that may go with this one because their lane goes together.
    fn follower(&self, index: usize) -> Option<usize> {
        let lane = self.tracks[&index].lane.as_ref().filter(|lane| lane.together)?;
        let next = self.lanes.after(lane, index)?;
        (self.tracks[&next].place == Place::Here).then_some(next)
    }

    /// A follower that found no room waits until those before it are settled.
    fn keep_back_followers(&mut self, batch: &[usize]) {
        for &index in batch {
            if let Some(next) = self.follower(index).filter(|next| !batch.contains(next)) {
                self.ready.remove(next, self.tracks[&next].size);
            }
        }
    }

    /// Entries that failed while a later one of their lane, in the same call, was taken.
    pub(super) fn overtaken(&self, answers: &[(usize, Answer<R>)]) -> HashSet<usize> {
        let (mut taken, mut overtaken) = (HashSet::new(), HashSet::new());
        for (index, answer) in answers.iter().rev() {
            let Some(lane) = self.tracks[index].lane.as_ref().filter(|lane| lane.together) else { continue };
            if answer.is_ok() {
                taken.insert(lane);
            } else if taken.contains(lane) {
                overtaken.insert(*index);
            }
        }
        overtaken
    }
}
