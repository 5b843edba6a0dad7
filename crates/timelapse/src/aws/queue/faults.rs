//! What a queue does only where a fault makes it.

use comeback_engine::{Record, Timestamp};

use super::{Queue, Receipt, Received, Removal};
use crate::aws::agenda::{Agenda, Happening};
use crate::aws::id::Id;

impl Queue {
    /// A message goes to a receiver who has it already, as one more record of the batch.
    pub(crate) fn hand_out_again(
        &mut self,
        now: Timestamp,
        receipt: Receipt,
        agenda: &mut Agenda,
        records: &mut Vec<Record>,
    ) -> Received {
        let place = records.len();
        self.hand_out(now, receipt.slot, agenda, records, place)
    }

    /// A message becomes visible though it is hidden, if this is still its latest receipt.
    pub(crate) fn appear_early(&mut self, receipt: Receipt) -> Option<Received> {
        let message = self.latest(receipt).filter(|message| message.in_flight)?;
        message.in_flight = false;
        let received = message.received(receipt);
        self.in_flight -= 1;
        self.visible.push_back(receipt);
        Some(received)
    }

    /// A receipt is no longer a message's latest, though no one else has received it.
    pub(crate) fn make_stale(&mut self, receipt: Receipt, agenda: &mut Agenda) {
        let number = self.next_number();
        let Some(message) = self.latest(receipt) else { return };
        message.number = number;
        agenda.plan(message.visible_at, Happening::Appears(Receipt { number, ..receipt }));
    }

    /// A message's retention ends early, unless it is gone by then. Gives its event.
    pub(crate) fn expire_early(&mut self, slot: usize, id: Id) -> Option<usize> {
        let event = self.messages.get(slot).filter(|message| message.content.id == id)?.content.event;
        self.remove(slot, Removal::Expired);
        Some(event)
    }
}
