//! Which entry is where. Every decision of a delivery is made here, and nothing here waits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use crate::limits::Limits;
use crate::{Answer, Cause, Lane, Operation, Progress, Retries, ServiceError};

pub(crate) struct Board {
    limits: Limits,
    tracks: Vec<Track>,
    /// Entries that may go out now; the lowest index is taken first. Of each lane, only the first open
    /// entry can be here.
    ready: BinaryHeap<Reverse<usize>>,
    /// Halves of calls that were refused whole, to go out as they are.
    halves: VecDeque<Vec<usize>>,
    /// The open entries of each lane, in their order.
    lanes: Vec<VecDeque<usize>>,
    pub(crate) progress: Progress,
}

/// One entry.
struct Track {
    size: usize,
    lane: Option<usize>,
    /// Calls begun that carry it.
    calls: u64,
    /// Those of them that were refused whole and sent again in halves: they use up no retry.
    halved: u64,
    state: State,
}

enum State {
    /// Still to be sent (again), or under way; the last error.
    Open(Option<ServiceError>),
    Delivered,
    Left(Cause),
}

/// Entries that may go out again after a while.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) delay: Duration,
    pub(crate) entries: Vec<usize>,
}

impl Board {
    pub(crate) fn new<O: Operation>(operation: &O, entries: &[O::Entry]) -> Self {
        let limits = operation.limits();
        assert!(limits.entries > 0, "BUG: an operation takes at least one entry a call");
        let progress = Progress { entries: entries.len(), delivered: 0, left: 0, calls: 0, retries: 0 };
        let tracks = Vec::with_capacity(entries.len());
        let (ready, halves, lanes) = Default::default();
        let mut board = Self { limits, tracks, ready, halves, lanes, progress };
        let mut numbers: HashMap<Lane, usize> = HashMap::new();
        let mut never_fit = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let lane = operation.lane(entry).map(|name| {
                let next = numbers.len();
                *numbers.entry(name).or_insert(next)
            });
            board.lanes.resize_with(numbers.len(), VecDeque::new);
            lane.into_iter().for_each(|lane| board.lanes[lane].push_back(index));
            let size = operation.size_in_call(entry);
            board.tracks.push(Track { size, lane, calls: 0, halved: 0, state: State::Open(None) });
            let over = [(operation.size(entry), limits.entry_bytes), (size, limits.bytes)]
                .into_iter()
                .filter(|(size, limit)| size > limit)
                .min_by_key(|(_, limit)| *limit);
            never_fit.extend(over.map(|(size, limit)| (index, Cause::TooLarge { size, limit })));
        }
        for (index, cause) in never_fit {
            if matches!(board.tracks[index].state, State::Open(_)) {
                board.leave(index, cause);
            }
        }
        board
    }

    /// Makes ready the entries that were never sent. An entry that was sent, but whose answer was not
    /// awaited, has failed; a half that has not gone out yet still goes.
    pub(crate) fn resume(&mut self, retries: &Retries) -> Vec<Wait> {
        let (mut first, mut again) = (Vec::new(), Vec::new());
        let in_halves: HashSet<usize> = self.halves.iter().flatten().copied().collect();
        for (index, track) in self.tracks.iter_mut().enumerate() {
            let State::Open(error) = &mut track.state else { continue };
            if in_halves.contains(&index) {
                continue;
            }
            if track.lane.is_some_and(|lane| self.lanes[lane].front() != Some(&index)) {
                continue;
            }
            if track.calls == 0 {
                first.push(Reverse(index));
            } else {
                // A refusal was the answer to a call that was halved, not to the half.
                let passing = error.take().filter(|error| error.kind.is_retriable());
                *error = Some(passing.unwrap_or_else(ServiceError::no_answer));
                again.push(index);
            }
        }
        self.ready = first.into();
        self.retry(again, retries)
    }

    /// Whether there is a batch to [`take`](Self::take).
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty() || !self.halves.is_empty()
    }

    /// The next batch. Halves come last: one bad entry holds up no other batch.
    pub(crate) fn take(&mut self) -> Vec<usize> {
        let batch = if self.ready.is_empty() { self.halves.pop_front() } else { None };
        let batch = batch.unwrap_or_else(|| self.pack());
        self.progress.calls += 1;
        self.progress.retries += u64::from(batch.iter().any(|&index| self.tracks[index].calls > 0));
        batch.iter().for_each(|&index| self.tracks[index].calls += 1);
        batch
    }

    /// A batch in the order of input as far as lanes allow. It ends when it is full or the next
    /// entry does not fit, so any two successive batches together exceed one of the limits.
    fn pack(&mut self) -> Vec<usize> {
        let most = self.limits.entries.min(self.ready.len());
        let mut batch = Vec::with_capacity(most);
        let mut bytes = 0usize;
        while batch.len() < most
            && let Some(&Reverse(index)) = self.ready.peek()
        {
            let with_it = bytes.saturating_add(self.tracks[index].size);
            if !batch.is_empty() && with_it > self.limits.bytes {
                break;
            }
            bytes = with_it;
            batch.push(index);
            self.ready.pop();
        }
        batch
    }

    /// Takes in the answer to a batch. Entries that failed may go again after the returned waits.
    pub(crate) fn answered(
        &mut self,
        batch: &[usize],
        result: Result<Vec<Answer>, ServiceError>,
        retries: &Retries,
    ) -> Vec<Wait> {
        if let Err(error) = &result
            && error.kind.may_be_of_one_entry()
            && batch.len() > 1
        {
            self.halve(batch, error);
            return Vec::new();
        }
        let mut again = Vec::new();
        let mut answers = result.map(Vec::into_iter);
        for &index in batch {
            let answer = match &mut answers {
                Ok(answers) => answers.next().unwrap_or_else(|| Err(ServiceError::no_answer())),
                Err(error) => Err(error.clone()),
            };
            match answer {
                Ok(()) => self.deliver(index),
                Err(error) if error.kind.is_retriable() => {
                    self.tracks[index].state = State::Open(Some(error));
                    again.push(index);
                }
                Err(error) => self.leave(index, Cause::Refused(error)),
            }
        }
        self.retry(again, retries)
    }

    /// Makes ready the entries whose wait is over.
    pub(crate) fn waited(&mut self, entries: Vec<usize>) {
        self.ready.extend(entries.into_iter().map(Reverse));
    }

    /// The deadline has passed: nothing goes out any more.
    pub(crate) fn stop(&mut self) {
        for index in 0..self.tracks.len() {
            if let State::Open(error) = &mut self.tracks[index].state {
                let error = error.take();
                self.set_left(index, Cause::Stopped(error));
            }
        }
        self.ready.clear();
        self.halves.clear();
        self.lanes.iter_mut().for_each(VecDeque::clear);
    }

    /// Why each entry was left, with the number of calls that carried it; `None` if it was delivered.
    pub(crate) fn into_causes(self) -> impl Iterator<Item = Option<(Cause, u64)>> {
        self.tracks.into_iter().map(|track| match track.state {
            State::Delivered => None,
            State::Left(cause) => Some((cause, track.calls)),
            State::Open(error) => Some((Cause::Interrupted(error), track.calls)),
        })
    }

    /// The call was refused whole, perhaps for one of its entries: each half may go without it.
    fn halve(&mut self, batch: &[usize], error: &ServiceError) {
        for &index in batch {
            let track = &mut self.tracks[index];
            track.halved += 1;
            track.state = State::Open(Some(error.clone()));
        }
        let (one, other) = batch.split_at(batch.len() / 2);
        self.halves.extend([one.to_vec(), other.to_vec()]);
    }

    /// Entries of one batch may have been sent a different number of times: each number has its own wait.
    fn retry(&mut self, failed: Vec<usize>, retries: &Retries) -> Vec<Wait> {
        let mut by_calls: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for index in failed {
            let track = &self.tracks[index];
            by_calls.entry(track.calls - track.halved).or_default().push(index);
        }
        let mut waits = Vec::new();
        for (calls, entries) in by_calls {
            match retries.wait(calls) {
                Some(delay) => waits.push(Wait { delay, entries }),
                None => entries.into_iter().for_each(|index| self.exhaust(index)),
            }
        }
        waits
    }

    fn exhaust(&mut self, index: usize) {
        let State::Open(error) = &mut self.tracks[index].state else {
            unreachable!("BUG: only open entries are retried")
        };
        let error = error.take().expect("BUG: an entry that is retried has failed");
        self.leave(index, Cause::Exhausted(error));
    }

    fn deliver(&mut self, index: usize) {
        let track = &mut self.tracks[index];
        track.state = State::Delivered;
        self.progress.delivered += 1;
        if let Some(lane) = track.lane {
            self.lanes[lane].pop_front();
            self.ready.extend(self.lanes[lane].front().copied().map(Reverse));
        }
    }

    /// Leaves an open entry, and the entries behind it in its lane.
    fn leave(&mut self, index: usize, cause: Cause) {
        self.set_left(index, cause);
        if let Some(lane) = self.tracks[index].lane {
            let lane = &mut self.lanes[lane];
            let position = lane.iter().position(|&open| open == index);
            let left = lane.split_off(position.expect("BUG: an open entry is in its lane"));
            left.into_iter().skip(1).for_each(|behind| self.set_left(behind, Cause::Behind));
        }
    }

    fn set_left(&mut self, index: usize, cause: Cause) {
        self.tracks[index].state = State::Left(cause);
        self.progress.left += 1;
    }
}
