//! What an answer means for the entries of its call: delivered, again after a wait, or left.

use std::collections::{BTreeMap, HashSet};

use super::{Batch, Board, Place, Wait};
use crate::{Answer, Cause, Lane, Retries, Sent, ServiceError};

/// So many calls in a row must fail whole before a service is taken to be down.
const DOWN: u64 = 6;

impl<E, R> Board<E, R> {
    /// Takes in the answer to a batch. Entries that failed may go again after the returned waits.
    pub(crate) fn answered(
        &mut self,
        batch: Batch<E>,
        result: Result<Vec<Answer<R>>, ServiceError>,
        retries: &Retries,
    ) -> Vec<Wait> {
        let Batch { indexes, entries } = batch;
        drop(entries);
        let answers = match result {
            Err(error) if error.kind.may_be_of_one_entry() && indexes.len() > 1 => {
                self.halve(&indexes, &error);
                return Vec::new();
            }
            Err(error) => return self.failed_whole(&indexes, error, retries),
            Ok(answers) => answers,
        };
        self.failed_whole = 0;
        let answers = answers.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
        let answers = answers.map(|answer| answer.unwrap_or_else(|| Err(ServiceError::no_answer())));
        let answers: Vec<(usize, Answer<R>)> = indexes.into_iter().zip(answers).collect();
        let overtaken = self.overtaken(&answers);
        let mut failed = Vec::new();
        for (index, answer) in answers {
            match answer {
                Ok(receipt) => self.deliver(index, receipt),
                Err(error) => failed.push((index, error)),
            }
        }
        let mut again = Vec::new();
        for (index, error) in failed {
            if overtaken.contains(&index) {
                self.leave(index, Cause::Overtaken(error));
            } else if error.kind.is_retriable() {
                again.push((index, error));
            } else {
                self.leave(index, Cause::Refused(error));
            }
        }
        self.retry(again, retries)
    }

    /// Entries whose calls and waits were dropped: those that were under way have failed without an answer.
    pub(crate) fn resume(&mut self, retries: &Retries) -> Vec<Wait> {
        let dropped =
            self.tracks.iter_mut().filter(|(_, track)| matches!(track.place, Place::Away | Place::Waiting));
        let dropped = dropped.map(|(&index, track)| {
            // A refusal was the answer to a call that was halved, not to the half.
            let passing = track.error.take().filter(|error| error.kind.is_retriable());
            (index, passing.unwrap_or_else(ServiceError::no_answer))
        });
        let dropped = dropped.collect();
        self.retry(dropped, retries)
    }

    fn failed_whole(&mut self, indexes: &[usize], error: ServiceError, retries: &Retries) -> Vec<Wait> {
        if !error.kind.is_retriable() {
            // From the back: one that was sent has this error, and is not only behind another.
            indexes.iter().rev().for_each(|&index| self.leave(index, Cause::Refused(error.clone())));
            if error.kind.is_of_every_call() {
                self.halt(&error);
            }
            return Vec::new();
        }
        self.failed_whole += 1;
        let open = self.open();
        let waits = self.retry(indexes.iter().map(|&index| (index, error.clone())).collect(), retries);
        if self.open() < open && self.failed_whole >= DOWN {
            self.halt(&error);
            return Vec::new();
        }
        waits
    }

    /// The call was refused whole, perhaps for one of its entries: each half may go without it.
    fn halve(&mut self, batch: &[usize], error: &ServiceError) {
        for &index in batch {
            let track = self.track(index);
            track.halved += 1;
            track.error = Some(error.clone());
            track.place = Place::InHalf;
        }
        let (one, other) = batch.split_at(batch.len() / 2);
        // Of a lane that goes together, what is in the second half waits for the first.
        let lanes: HashSet<Lane> = one.iter().filter_map(|index| self.tracks[index].lane.clone()).collect();
        let of_first =
            |index: &usize| self.tracks[index].lane.as_ref().is_some_and(|lane| lanes.contains(lane));
        let (waiting, other): (Vec<usize>, Vec<usize>) = other.iter().partition(|index| of_first(index));
        waiting.into_iter().for_each(|index| self.track(index).place = Place::Here);
        self.halves.extend([one.to_vec(), other].into_iter().filter(|half| !half.is_empty()));
    }

    /// Entries of one batch may have been sent a different number of times: each number has its own wait. Those
    /// of one lane wait together, as long as the one that was sent most often.
    fn retry(&mut self, failed: Vec<(usize, ServiceError)>, retries: &Retries) -> Vec<Wait> {
        let mut by_calls: BTreeMap<u64, Option<Wait>> = BTreeMap::new();
        let mut exhausted = Vec::new();
        let mut of_lane: Option<(Lane, u64)> = None;
        for (index, error) in failed {
            let Some(track) = self.tracks.get_mut(&index) else { continue }; // Left behind another of these.
            let mut calls = track.calls - track.halved;
            if let Some(lane) = &track.lane {
                match &of_lane {
                    Some((last, most)) if last == lane => calls = calls.max(*most),
                    _ => of_lane = Some((lane.clone(), calls)),
                }
            }
            let wait = || retries.wait(calls).map(|delay| Wait { delay, entries: Vec::new() });
            match by_calls.entry(calls).or_insert_with(wait) {
                Some(wait) => {
                    track.place = Place::Waiting;
                    track.error = Some(error);
                    wait.entries.push(index);
                }
                None => exhausted.push((index, error)),
            }
        }
        // From the back: one that was sent has its own error, and is not only behind another.
        for (index, error) in exhausted.into_iter().rev() {
            self.leave(index, Cause::Exhausted(error));
        }
        by_calls.into_values().flatten().collect()
    }

    fn deliver(&mut self, index: usize, receipt: R) {
        let track = self.tracks.remove(&index).expect("BUG: an entry that was sent is open");
        self.progress.delivered += 1;
        self.settled.push(Ok(Sent { index, receipt }));
        if let Some(next) = track.lane.and_then(|lane| self.lanes.settle(&lane, index)) {
            self.make_ready(next);
        }
    }
}
