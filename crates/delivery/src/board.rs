//! The board keeps the state of a delivery's entries, and decides whether to send, retry or hand back each entry.

mod answers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::lanes::{Lane, Lanes};
use crate::limits::Limits;
use crate::operation::{Operation, ServiceError};
use crate::outcome::{EntryError, Left, Sent};

use answers::Refusals;

pub(crate) struct Board<E, R> {
    limits: Limits,
    /// Entries without an outcome, by their index in the input.
    tracks: BTreeMap<usize, Track<E>>,
    /// Entries that may be sent now; at most one in each lane.
    ready: BTreeSet<usize>,
    /// Halves of calls that the service refused as a whole.
    halves: VecDeque<Vec<usize>>,
    lanes: Lanes,
    refusals: Refusals,
    /// Number of consecutive calls that failed as a whole with a retriable error.
    failed_whole: u64,
    /// Outcomes that have not been returned to the caller yet.
    settled: Vec<Settled<E, R>>,
    pub(crate) counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) entries: usize,
    pub(crate) calls: u64,
    /// Number of calls that resent at least one entry.
    pub(crate) retries: u64,
}

pub(crate) type Settled<E, R> = Result<Sent<R>, Left<E>>;

/// An entry that has no outcome yet.
struct Track<E> {
    /// The entry, shared with the call that carries it.
    entry: Arc<E>,
    size: usize,
    lane: Option<Lane>,
    /// Number of calls in which the entry was sent, including a call that is still in flight.
    calls: u64,
    /// Number of calls that do not count against the entry's retries: calls that were split, and calls in which the
    /// service throttled this entry but accepted others.
    free: u64,
    place: Place,
    error: Option<ServiceError>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The entry may be sent, or is waiting for the entries before it in its lane.
    Here,
    /// The entry's call was refused. The entry will be sent again in a call with half of the entries.
    InHalf,
    /// The entry is part of a call that is in flight.
    Away,
    /// The entry is waiting for its next retry.
    Waiting,
}

/// The entries in one call, and their indexes in the input.
pub(crate) struct Batch<E> {
    indexes: Vec<usize>,
    is_half: bool,
    pub(crate) entries: Vec<Arc<E>>,
}

/// Entries that may be sent again after a delay.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Delayed {
    pub(crate) delay: Duration,
    pub(crate) entries: Vec<usize>,
}

impl<E, R> Board<E, R> {
    pub(crate) fn new(limits: Limits, lanes: Lanes) -> Self {
        assert!(limits.entries > 0, "BUG: an operation takes at least one entry a call");
        Self {
            limits,
            tracks: BTreeMap::new(),
            ready: BTreeSet::new(),
            halves: VecDeque::new(),
            lanes,
            refusals: Refusals::default(),
            failed_whole: 0,
            settled: Vec::new(),
            counts: Counts::default(),
        }
    }

    pub(crate) fn push<O: Operation<Entry = E, Receipt = R>>(&mut self, operation: &O, entry: E) {
        let index = self.counts.entries;
        self.counts.entries += 1;
        let (lane, size) = (operation.lane(&entry), operation.size_in_call(&entry));
        let over = [(operation.size(&entry), self.limits.entry_bytes), (size, self.limits.bytes)]
            .into_iter()
            .filter(|(size, limit)| size > limit)
            .min_by_key(|(_, limit)| *limit);
        let left = match (operation.check(&entry), over) {
            (Err(error), _) => Some(EntryError::Refused(error)),
            (Ok(()), Some((size, limit))) => Some(EntryError::TooLarge { size, limit }),
            (Ok(()), None) => {
                lane.as_ref().is_some_and(|lane| self.lanes.is_broken(lane)).then_some(EntryError::Behind)
            }
        };
        if let Some(cause) = left {
            lane.iter().for_each(|lane| self.lanes.close(lane));
            self.settled.push(Err(Left { index, entry, cause, calls: 0 }));
            return;
        }
        if lane.as_ref().is_none_or(|lane| self.lanes.push(lane, index)) {
            self.ready.insert(index);
        }
        let (entry, place) = (Arc::new(entry), Place::Here);
        self.tracks.insert(index, Track { entry, size, lane, calls: 0, free: 0, place, error: None });
    }

    /// Returns the number of entries without an outcome.
    pub(crate) fn open(&self) -> usize {
        self.tracks.len()
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty() || !self.halves.is_empty()
    }

    /// Returns true if the next batch, of at most `most` entries, would not grow if more entries arrived.
    pub(crate) fn is_full(&self, most: usize) -> bool {
        let bytes =
            || self.ready.iter().fold(0usize, |sum, index| sum.saturating_add(self.tracks[index].size));
        !self.halves.is_empty()
            || self.ready.len() >= self.limits.entries.min(most)
            || bytes() >= self.limits.bytes
    }

    /// Takes the next batch: up to `most` ready entries, or half of the entries of a refused call. May take an eighth
    /// more than `most` if no ready entries then remain. Halves usually come last, so that one bad entry does not hold
    /// up the rest.
    pub(crate) fn take(&mut self, most: usize) -> Batch<E> {
        let halves_first = self.ready.is_empty() || self.refusals.may_be_of_every_entry(self.open());
        let half = if halves_first { self.halves.pop_front() } else { None };
        let is_half = half.is_some();
        let indexes = half.unwrap_or_else(|| self.pack(most));
        self.counts.calls += 1;
        self.counts.retries += u64::from(indexes.iter().any(|index| self.tracks[index].calls > 0));
        let entries = indexes.iter().map(|&index| {
            let track = self.track(index);
            track.calls += 1;
            track.place = Place::Away;
            track.entry.clone()
        });
        Batch { entries: entries.collect(), indexes, is_half }
    }

    /// Marks these entries, which have finished waiting, as ready to be sent.
    pub(crate) fn waited(&mut self, entries: Vec<usize>) {
        for index in entries {
            let Some(track) = self.tracks.get_mut(&index) else { continue }; // The entry has failed in the meantime.
            track.place = Place::Here;
            match track.lane.clone() {
                None => drop(self.ready.insert(index)),
                Some(lane) => self.release(&lane),
            }
        }
    }

    /// Takes the outcomes decided since the previous call of this function.
    pub(crate) fn settled(&mut self) -> std::vec::Drain<'_, Settled<E, R>> {
        self.settled.drain(..)
    }

    fn track(&mut self, index: usize) -> &mut Track<E> {
        self.tracks.get_mut(&index).expect("BUG: an open entry")
    }
}

/// Methods that choose the entries for the next call.
impl<E, R> Board<E, R> {
    /// Chooses the next batch: ready entries in the order of the input, until one does not fit.
    fn pack(&mut self, most: usize) -> Vec<usize> {
        // If only a few more entries are ready, they go in this call too, which saves a separate call.
        let with_rest = most.saturating_add(most / 8);
        let most = if self.ready.len() <= with_rest { with_rest } else { most };
        let most = self.limits.entries.min(most);
        let mut batch = Vec::with_capacity(most.min(self.ready.len()));
        let mut bytes = 0usize;
        while batch.len() < most
            && let Some(&index) = self.ready.first()
        {
            let with_it = bytes.saturating_add(self.tracks[&index].size);
            if !batch.is_empty() && with_it > self.limits.bytes {
                break;
            }
            bytes = with_it;
            batch.push(index);
            self.ready.remove(&index);
        }
        batch
    }

    /// Marks the first entry in a lane as ready, unless it is in flight, is waiting for a retry, or was in a refused
    /// call that will be sent again in halves.
    fn release(&mut self, lane: &Lane) {
        let first = self.lanes.first(lane).filter(|first| self.tracks[first].place == Place::Here);
        self.ready.extend(first);
    }
}

/// Methods that give up on entries, and on the entries that wait behind them in the same lane.
impl<E, R> Board<E, R> {
    /// Gives up on every entry that has no outcome yet, without awaiting the calls in flight.
    pub(crate) fn stop(&mut self) {
        self.leave_all(|track| track.place == Place::Away, |_| EntryError::Unanswered);
        self.leave_all(|_| true, EntryError::Stopped);
    }

    /// Gives up on every entry that has no outcome yet, when the batcher's future is dropped.
    pub(crate) fn interrupt(&mut self) {
        self.leave_all(|_| true, EntryError::Interrupted);
    }

    /// Gives up on all entries except those in flight, because another call would fail with the same error.
    fn halt(&mut self, error: &ServiceError) {
        self.leave_all(|track| track.place != Place::Away, |_| EntryError::Halted(error.clone()));
    }

    /// Settles an entry as failed; also fails the entries behind it in its lane, unless the lane has `last_wins`.
    fn leave(&mut self, index: usize, cause: EntryError) {
        let Some(lane) = self.set_left(index, cause) else { return };
        if lane.last_wins {
            self.lanes.remove(&lane, index);
            self.release(&lane);
        } else {
            for behind in self.lanes.break_at(&lane, index) {
                self.set_left(behind, EntryError::Behind);
            }
        }
    }

    fn leave_all(
        &mut self,
        which: impl Fn(&Track<E>) -> bool,
        cause: impl Fn(Option<ServiceError>) -> EntryError,
    ) {
        let all = self.tracks.iter().filter(|(_, track)| which(track));
        for index in all.map(|(&index, _)| index).collect::<Vec<_>>() {
            let error = self.track(index).error.take();
            if let Some(lane) = self.set_left(index, cause(error)) {
                self.lanes.remove(&lane, index);
                self.lanes.close(&lane);
            }
        }
        self.halves.retain(|half| half.iter().any(|index| self.tracks.contains_key(index)));
    }

    /// Removes an undelivered entry from the board, and returns its lane.
    fn set_left(&mut self, index: usize, cause: EntryError) -> Option<Lane> {
        let track = self.tracks.remove(&index).expect("BUG: an entry is left once");
        self.ready.remove(&index);
        let entry = Arc::into_inner(track.entry).expect("BUG: the call that carried it is over");
        self.settled.push(Err(Left { index, entry, cause, calls: track.calls }));
        track.lane
    }
}
