//! How far apart the invokes of one message lie.

use comeback_engine::VisibilityChange;

use crate::check::bounds::UNHIDDEN;
use crate::check::invariants::{Broken, Invariant};
use crate::check::origin::Tracked;
use crate::world::World;
use crate::world::handling::Position;

impl World {
    /// Checks an invoke that is not refused. Until something hides its message, that comes back when the
    /// queue's own timeout ends.
    pub(super) fn check_spacing(&mut self, position: Position) {
        let message = *self.handling().at(position);
        let unhidden = self.handling().received_at.saturating_add(UNHIDDEN);
        let now = self.now;
        let Some(tracked) = self.queue.carried_mut(&message.received) else { return };
        let earliest = std::mem::replace(&mut tracked.no_invoke_before, unhidden);
        let Tracked { duplicated, .. } = *tracked;
        if now < earliest && !duplicated {
            let detail = format!("invoked at {now}; an invoke before it keeps the next until {earliest}");
            self.note_broken(Err::<(), _>(Broken::new(
                Invariant::SpacedInvokes,
                message.look.origin.event,
                detail,
            )));
        }
    }

    /// A message is hidden whose invoke was unanswered.
    pub(super) fn note_hidden(&mut self, entry: &VisibilityChange<'_>) {
        let Some(position) = self.handling().of_receipt(&entry.record.receipt_handle) else { return };
        let message = *self.handling().at(position);
        let until = self.now.saturating_add(entry.visibility_timeout);
        if let Some(tracked) = self.queue.carried_mut(&message.received).filter(|_| message.unanswered) {
            tracked.no_invoke_before = until;
        }
    }
}
