//! What a queue does only when it is asked to. A standard queue delivers at least once, so SQS may
//! hand out a message that is hidden, and a receipt handle may go stale for no visible reason.

use comeback_engine::{Record, Timestamp};

use super::message::State;
use super::{Queue, QueueTimer, Receipt, Received, Removal, Slot};
use crate::aws::agenda::Agenda;
use crate::aws::id::Id;

impl<T> Queue<T> {
    /// A message goes to a receiver who has it already, as one more record of the batch.
    pub(crate) fn hand_out_again<H: Ord + From<QueueTimer>>(
        &mut self,
        now: Timestamp,
        receipt: Receipt,
        agenda: &mut Agenda<H>,
        records: &mut Vec<Record>,
    ) -> Received {
        let index = records.len();
        self.hand_out(now, receipt.slot, agenda, records, index)
    }

    /// A message becomes visible though it is hidden, if this is still its latest receipt.
    pub(crate) fn appear_early(&mut self, receipt: Receipt) -> Option<Received> {
        let message = self.latest(receipt).filter(|message| message.state == State::InFlight)?;
        message.state = State::Visible;
        let received = message.received(receipt);
        self.in_flight -= 1;
        self.visible.push_back(receipt);
        Some(received)
    }

    /// A receipt is no longer a message's latest, though no one else has received it.
    pub(crate) fn make_stale<H: Ord + From<QueueTimer>>(&mut self, receipt: Receipt, agenda: &mut Agenda<H>) {
        let number = self.next_number();
        let Some(message) = self.latest(receipt) else { return };
        message.number = number;
        agenda.plan(message.visible_at, QueueTimer::Visibility(Receipt { number, ..receipt }));
    }

    /// A message's retention ends early. False if the message is gone already.
    pub(crate) fn expire_early(&mut self, slot: Slot, id: Id) -> bool {
        let is_there = self.messages.get(slot.0).is_some_and(|message| message.id == id);
        if is_there {
            self.remove(slot, Removal::Expired);
        }
        is_there
    }
}
