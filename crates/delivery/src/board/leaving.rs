//! What is not delivered, and what is left behind it.

use std::sync::Arc;

use super::{Board, Place};
use crate::{Cause, Left, ServiceError};

impl<E, R> Board<E, R> {
    /// Leaves each entry: nothing goes out any more, and nobody awaits the answer to what is under way.
    pub(crate) fn stop(&mut self) {
        self.leave_all(|place| place == Place::Away, |_| Cause::Unanswered);
        self.leave_all(|_| true, Cause::Stopped);
    }

    /// Leaves every entry: the delivery ends here.
    pub(crate) fn interrupt(&mut self) {
        self.leave_all(|_| true, Cause::Interrupted);
    }

    /// Another call would not fare better now, so everything but what is under way is left.
    pub(super) fn halt(&mut self, error: &ServiceError) {
        self.leave_all(|place| place != Place::Away, |_| Cause::Halted(error.clone()));
    }

    /// Leaves an entry, and the entries behind it in its lane.
    pub(super) fn leave(&mut self, index: usize, cause: Cause) {
        let Some(track) = self.tracks.get(&index) else { return }; // Left behind another of its call.
        let lane = track.lane.clone();
        let never_sent = matches!(cause, Cause::TooLarge { .. });
        self.set_left(index, cause);
        let Some(lane) = lane else { return };
        if lane.last_wins && never_sent {
            self.lanes.remove(&lane, index);
            return;
        }
        for behind in self.lanes.break_at(&lane, index) {
            self.set_left(behind, Cause::Behind);
        }
    }

    fn leave_all(&mut self, which: impl Fn(Place) -> bool, cause: impl Fn(Option<ServiceError>) -> Cause) {
        let all = self.tracks.iter().filter(|(_, track)| which(track.place));
        for index in all.map(|(&index, _)| index).collect::<Vec<_>>() {
            let error = self.track(index).error.take();
            if let Some(lane) = self.tracks[&index].lane.clone() {
                self.lanes.remove(&lane, index);
                self.lanes.close(&lane);
            }
            self.set_left(index, cause(error));
        }
        self.halves.retain(|half| half.iter().any(|index| self.tracks.contains_key(index)));
    }

    fn set_left(&mut self, index: usize, cause: Cause) {
        let track = self.tracks.remove(&index).expect("BUG: an entry is left once");
        self.ready.remove(index, track.size);
        let entry = Arc::into_inner(track.entry).expect("BUG: the call that carried it is over");
        self.progress.left += 1;
        self.settled.push(Err(Left { index, entry, cause, calls: track.calls }));
    }
}
