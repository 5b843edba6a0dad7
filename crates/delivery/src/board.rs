//! Which entry is where. Every decision of a delivery is made here, and nothing here waits.
//!
//! | file | holds |
//! |---|---|
//! | `lanes` | the open entries of each lane, in their order |
//! | `ready` | what may go out now, and how it is packed |
//! | `answers` | what an answer means for the entries of its call: delivered, again, or left |
//! | `leaving` | what is not delivered, and what is left behind it |

mod answers;
mod lanes;
mod leaving;
mod ready;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lanes::Lanes;
use ready::Ready;

use crate::limits::Limits;
use crate::{Cause, Lane, Left, Operation, Progress, Sent, ServiceError};

pub(crate) struct Board<E, R> {
    limits: Limits,
    /// The open entries, by their place in the input.
    tracks: BTreeMap<usize, Track<E>>,
    ready: Ready,
    /// Halves of calls that were refused whole, to go out as they are.
    halves: VecDeque<Vec<usize>>,
    lanes: Lanes,
    /// Calls in a row that failed whole, though another may work.
    failed_whole: u64,
    /// What is decided and not yet handed out.
    settled: Vec<Settled<E, R>>,
    pub(crate) progress: Progress,
}

/// What became of an entry.
pub(crate) type Settled<E, R> = Result<Sent<R>, Left<E>>;

/// One open entry.
struct Track<E> {
    /// Shared with the call that carries it.
    entry: Arc<E>,
    size: usize,
    lane: Option<Lane>,
    /// Calls begun that carry it.
    calls: u64,
    /// Those of them that were refused whole and sent again in halves: they use up no retry.
    halved: u64,
    place: Place,
    /// Its last error.
    error: Option<ServiceError>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// May go out, or waits for its lane's first to be settled.
    Here,
    /// In a half of a call.
    InHalf,
    /// In a call.
    Away,
    /// Until its next retry.
    Waiting,
}

/// A batch to call with.
pub(crate) struct Batch<E> {
    indexes: Vec<usize>,
    pub(crate) entries: Vec<Arc<E>>,
}

/// Entries that may go out again after a while.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) delay: Duration,
    pub(crate) entries: Vec<usize>,
}

impl<E, R> Board<E, R> {
    pub(crate) fn new(limits: Limits) -> Self {
        assert!(limits.entries > 0, "BUG: an operation takes at least one entry a call");
        Self {
            limits,
            tracks: BTreeMap::new(),
            ready: Ready::default(),
            halves: VecDeque::new(),
            lanes: Lanes::new(),
            failed_whole: 0,
            settled: Vec::new(),
            progress: Progress::default(),
        }
    }

    /// One on which an entry that is left leaves none that comes later.
    pub(crate) fn forgetting(limits: Limits) -> Self {
        Self { lanes: Lanes::forgetting(), ..Self::new(limits) }
    }

    /// The next entry of the input.
    pub(crate) fn push<O: Operation<Entry = E, Receipt = R>>(&mut self, operation: &O, entry: E) {
        let index = self.progress.entries;
        self.progress.entries += 1;
        let (lane, size) = (operation.lane(&entry), operation.size_in_call(&entry));
        let over = [(operation.size(&entry), self.limits.entry_bytes), (size, self.limits.bytes)]
            .into_iter()
            .filter(|(size, limit)| size > limit)
            .min_by_key(|(_, limit)| *limit);
        let entry = Arc::new(entry);
        let track = Track { entry, size, lane, calls: 0, halved: 0, place: Place::Here, error: None };
        let lane = track.lane.clone();
        self.tracks.insert(index, track);
        let is_first = lane.as_ref().is_none_or(|lane| self.lanes.push(lane, index));
        if let Some((size, limit)) = over {
            self.leave(index, Cause::TooLarge { size, limit });
        } else if lane.is_some_and(|lane| self.lanes.is_broken(&lane)) {
            self.leave(index, Cause::Behind);
        } else if is_first {
            self.ready.add(index, size);
        }
    }

    /// Entries that are not settled.
    pub(crate) fn open(&self) -> usize {
        self.tracks.len()
    }

    /// Whether there is a batch to [`take`](Self::take).
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty() || !self.halves.is_empty()
    }

    /// Whether waiting for more entries would make the next batch no fuller.
    pub(crate) fn is_full(&self) -> bool {
        self.ready.fills(&self.limits) || !self.halves.is_empty()
    }

    /// The next batch. Halves come last: one bad entry holds up no other batch.
    pub(crate) fn take(&mut self) -> Batch<E> {
        let half = if self.ready.is_empty() { self.halves.pop_front() } else { None };
        let indexes = half.unwrap_or_else(|| self.pack());
        self.progress.calls += 1;
        self.progress.retries += u64::from(indexes.iter().any(|index| self.tracks[index].calls > 0));
        let entries = indexes.iter().map(|&index| {
            let track = self.track(index);
            track.calls += 1;
            track.place = Place::Away;
            track.entry.clone()
        });
        Batch { entries: entries.collect(), indexes }
    }

    /// Makes ready the entries whose wait is over.
    pub(crate) fn waited(&mut self, entries: Vec<usize>) {
        entries.into_iter().for_each(|index| self.come_back(index));
    }

    /// What was decided since the last time.
    pub(crate) fn settled(&mut self) -> std::vec::Drain<'_, Settled<E, R>> {
        self.settled.drain(..)
    }

    fn come_back(&mut self, index: usize) {
        let Some(track) = self.tracks.get_mut(&index) else { return }; // Left since.
        track.place = Place::Here;
        let is_first = track.lane.as_ref().is_none_or(|lane| self.lanes.is_first(lane, index));
        if is_first {
            self.ready.add(index, track.size);
        }
    }

    /// The first of its lane now, unless it waits or is under way beside others of it.
    fn make_ready(&mut self, index: usize) {
        let track = &self.tracks[&index];
        if track.place == Place::Here {
            self.ready.add(index, track.size);
        }
    }

    fn track(&mut self, index: usize) -> &mut Track<E> {
        self.tracks.get_mut(&index).expect("BUG: an open entry")
    }
}
