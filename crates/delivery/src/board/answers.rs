//! Handles a service's responses: each entry in a call is delivered, sent again after a wait, or abandoned.

use std::collections::BTreeMap;

use crate::board::{Batch, Board, Delayed, Place};
use crate::operation::{EntryAnswer, ErrorKind, ServiceError};
use crate::outcome::{EntryError, Sent};
use crate::retries::Retries;

/// Number of consecutive calls that must each fail entirely before the service counts as down.
const DOWN: u64 = 6;

/// Failed entries: the index and the error of each, and whether the failure uses up a retry.
type Failed = Vec<(usize, ServiceError, bool)>;

impl<E, R> Board<E, R> {
    /// Records the result of a call, and returns the entries to send again, grouped by their wait.
    pub(crate) fn answered(
        &mut self,
        batch: Batch<E>,
        result: Result<Vec<EntryAnswer<R>>, ServiceError>,
        retries: &Retries,
    ) -> Vec<Delayed> {
        let Batch { indexes, entries, is_half } = batch;
        drop(entries);
        let whole;
        let answers = match result {
            Err(error) if error.kind.may_be_of_one_entry() => {
                self.refused_whole(&indexes, is_half, error);
                return Vec::new();
            }
            Err(error) if !error.kind.is_retriable() => {
                self.refuse(&indexes, &error);
                if error.kind.is_of_every_call() {
                    self.halt(&error);
                }
                return Vec::new();
            }
            Err(error) => {
                whole = Some(error.clone());
                indexes.iter().map(|_| Err(error.clone())).collect()
            }
            Ok(answers) => {
                whole = throttled_whole(&answers);
                answers
            }
        };
        self.failed_whole = if whole.is_some() { self.failed_whole + 1 } else { 0 };
        let answers = answers.into_iter().chain(std::iter::repeat_with(|| Err(ServiceError::no_answer())));
        let answers: Vec<(usize, EntryAnswer<R>)> = indexes.into_iter().zip(answers).collect();
        let open = self.open();
        let waits = self.retry_failed(answers, retries);
        match whole {
            Some(error) if self.open() < open && self.failed_whole >= DOWN => {
                self.halt(&error);
                Vec::new()
            }
            _ => waits,
        }
    }

    fn retry_failed(&mut self, answers: Vec<(usize, EntryAnswer<R>)>, retries: &Retries) -> Vec<Delayed> {
        let took_some = answers.iter().any(|(_, answer)| answer.is_ok());
        if took_some {
            self.refusals.taken();
        }
        let mut again = Failed::new();
        for (index, answer) in answers {
            match answer {
                Ok(receipt) => self.deliver(index, receipt),
                Err(error) if !error.kind.is_retriable() => self.leave(index, EntryError::Refused(error)),
                Err(error) => {
                    let uses_retry = error.kind != ErrorKind::Throttled || !took_some;
                    again.push((index, error, uses_retry));
                }
            }
        }
        self.retry(again, retries)
    }

    /// Handles the refusal of a whole call.
    fn refused_whole(&mut self, indexes: &[usize], is_half: bool, error: ServiceError) {
        if self.refusals.refused(&error, is_half, self.open()) {
            self.refuse(indexes, &error);
            self.halt(&error);
        } else if indexes.len() > 1 {
            self.halve(indexes, &error);
        } else {
            self.refuse(indexes, &error);
        }
    }

    fn refuse(&mut self, indexes: &[usize], error: &ServiceError) {
        indexes.iter().for_each(|&index| self.leave(index, EntryError::Refused(error.clone())));
    }

    /// Splits a call that was refused as a whole, in case only one of its entries was the reason.
    fn halve(&mut self, batch: &[usize], error: &ServiceError) {
        for &index in batch {
            let track = self.track(index);
            track.free += 1;
            track.error = Some(error.clone());
            track.place = Place::InHalf;
        }
        let (one, other) = batch.split_at(batch.len() / 2);
        self.halves.extend([one, other].map(<[usize]>::to_vec));
    }

    /// Returns the failed entries to retry, with their waits. Gives up on the others.
    fn retry(&mut self, failed: Failed, retries: &Retries) -> Vec<Delayed> {
        let mut by_calls: BTreeMap<(bool, u64), Option<Delayed>> = BTreeMap::new();
        for (index, error, uses_retry) in failed {
            let track = self.track(index);
            let mut calls = track.calls;
            if uses_retry {
                calls -= track.free;
            } else {
                track.free += 1;
            }
            let delay = || if uses_retry { retries.wait(calls.max(1)) } else { retries.wait_or_last(calls) };
            let wait = || delay().map(|delay| Delayed { delay, entries: Vec::new() });
            match by_calls.entry((uses_retry, calls)).or_insert_with(wait) {
                Some(wait) => {
                    track.place = Place::Waiting;
                    track.error = Some(error);
                    wait.entries.push(index);
                }
                None => self.leave(index, EntryError::Exhausted(error)),
            }
        }
        by_calls.into_values().flatten().collect()
    }

    fn deliver(&mut self, index: usize, receipt: R) {
        let track = self.tracks.remove(&index).expect("BUG: an entry that is delivered is open");
        self.settled.push(Ok(Sent { index, receipt }));
        if let Some(lane) = track.lane {
            self.lanes.remove(&lane, index);
            self.release(&lane);
        }
    }
}

/// Returns the first error if the service throttled every entry in a call; otherwise `None`.
fn throttled_whole<R>(answers: &[EntryAnswer<R>]) -> Option<ServiceError> {
    let is_throttle =
        |answer: &EntryAnswer<R>| matches!(answer, Err(error) if error.kind == ErrorKind::Throttled);
    answers.first()?.as_ref().err().filter(|_| answers.iter().all(is_throttle)).cloned()
}

/// Minimum number of entirely refused calls before the sender assumes that the service would refuse every call.
const CALLS: u32 = 6;
/// Minimum number of refused half-size calls before the sender assumes that the service would refuse every call.
const HALVES: u32 = 2;
/// If at most this many entries are left, the sender tries each, even if the service has refused every call so far.
/// This takes at most two calls per entry.
const FEW: usize = 50;

/// Counts the calls that were refused as a whole, until the service accepts an entry.
#[derive(Default)]
pub(super) struct Refusals {
    code: Option<String>,
    calls: u32,
    halves: u32,
    /// True if the service might not refuse every call. It has accepted an entry or given different reasons for
    /// refusals, or it has refused a call only because of the call's size or some of its entries.
    differ: bool,
    is_certain: bool,
}

impl Refusals {
    /// Counts a refused call. Returns true once the service is expected to refuse all further calls.
    pub(super) fn refused(&mut self, error: &ServiceError, is_half: bool, open: usize) -> bool {
        let code = self.code.get_or_insert_with(|| error.code.clone());
        self.differ |= *code != error.code || error.kind != ErrorKind::Refused || error.is_of_some;
        self.calls += 1;
        self.halves += u32::from(is_half);
        self.is_certain |= self.calls >= CALLS && self.halves >= HALVES && open > FEW;
        self.is_certain && !self.differ
    }

    pub(super) fn taken(&mut self) {
        self.differ = true;
    }

    /// Returns true if the service may be refusing every entry. If so, the sender next sends the halves of a refused
    /// call, to find out.
    pub(super) fn may_be_of_every_entry(&self, open: usize) -> bool {
        self.calls > 1 && !self.differ && open > FEW
    }
}
