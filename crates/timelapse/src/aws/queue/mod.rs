//! An SQS standard queue on a virtual clock.

mod faults;
mod message;
mod settings;

use std::collections::VecDeque;
use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use slab::Slab;

use crate::aws::agenda::{Agenda, Happening};
use message::blank;
use settings::LONGEST_VISIBILITY;

pub(crate) use message::{Flaw, Message, Receipt, Received, Sent};
pub(crate) use settings::{QueueSettings, Removal, VisibilityError};

/// The queue. Whose message is whose (`event`) is kept beside each, for the ledger only.
#[derive(Debug)]
pub(crate) struct Queue {
    settings: QueueSettings,
    messages: Slab<Message>,
    /// Receipts of visible messages in the order of their appearance. One whose message was taken
    /// away while visible is skipped when its turn comes.
    visible: VecDeque<Receipt>,
    in_flight: usize,
    numbers: u64,
    removals: Vec<(Received, Removal)>,
}

impl Queue {
    pub(crate) fn new(settings: QueueSettings) -> Self {
        Self {
            settings,
            messages: Slab::new(),
            visible: VecDeque::new(),
            in_flight: 0,
            numbers: 0,
            removals: Vec::new(),
        }
    }

    /// `SendMessage`. `horizon` is the run's end: what expires after it need not be planned. Gives the
    /// message's place.
    pub(crate) fn send(
        &mut self,
        now: Timestamp,
        horizon: Timestamp,
        agenda: &mut Agenda,
        content: Sent,
    ) -> usize {
        let number = self.next_number();
        let slot = self.messages.insert(Message {
            content,
            not_before: now,
            settled: false,
            sent: now,
            first_receive: now,
            last_receive: now,
            receive_count: 0,
            number,
            visible_at: now,
            in_flight: false,
        });
        self.visible.push_back(Receipt { slot, number });
        let expiry = now.saturating_add(self.settings.retention);
        if expiry <= horizon {
            agenda.plan(expiry, Happening::Expires(slot));
        }
        slot
    }

    /// `ReceiveMessage`: fills `records`, reusing what they hold, and says which event each is of.
    /// Fewer than `most` come if fewer are visible or the in-flight limit is reached.
    pub(crate) fn receive(
        &mut self,
        now: Timestamp,
        most: usize,
        agenda: &mut Agenda,
        records: &mut Vec<Record>,
    ) -> Vec<Received> {
        let room = self.settings.in_flight_limit.saturating_sub(self.in_flight);
        let mut received = Vec::with_capacity(most.min(room));
        while received.len() < most.min(room) {
            let Some(Receipt { slot, number }) = self.visible.pop_front() else { break };
            if self.messages.get(slot).is_none_or(|message| message.number != number) {
                continue;
            }
            if self.messages[slot].receive_count >= self.settings.max_receive_count {
                self.remove(slot, Removal::Redriven);
                continue;
            }
            self.in_flight += 1;
            received.push(self.hand_out(now, slot, agenda, records, received.len()));
        }
        records.truncate(received.len());
        received
    }

    /// One message goes to a receiver, as the record at `place`.
    fn hand_out(
        &mut self,
        now: Timestamp,
        slot: usize,
        agenda: &mut Agenda,
        records: &mut Vec<Record>,
        place: usize,
    ) -> Received {
        let receipt = Receipt { slot, number: self.next_number() };
        let message = &mut self.messages[slot];
        message.take(now, receipt.number, self.settings.visibility_timeout);
        agenda.plan(message.visible_at, Happening::Appears(receipt));
        if place == records.len() {
            records.push(blank(now));
        }
        message.write(receipt, &mut records[place]);
        message.received(receipt)
    }

    /// A message, unless it is gone and perhaps another in its place.
    pub(crate) fn get(&self, received: &Received) -> Option<&Message> {
        self.messages.get(received.receipt.slot).filter(|message| message.content.id == received.id)
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, received: &Received) -> Option<&mut Message> {
        self.messages.get_mut(received.receipt.slot).filter(|message| message.content.id == received.id)
    }

    /// `ChangeMessageVisibility`: hides a message from now for `timeout`.
    pub(crate) fn change_visibility(
        &mut self,
        now: Timestamp,
        agenda: &mut Agenda,
        handle: &str,
        timeout: Duration,
    ) -> Result<(), VisibilityError> {
        if timeout > LONGEST_VISIBILITY {
            return Err(VisibilityError::OutOfRange(timeout.as_secs()));
        }
        let receipt = Receipt::parse(handle).ok_or(VisibilityError::StaleHandle)?;
        let message = self.latest(receipt).ok_or(VisibilityError::StaleHandle)?;
        if !message.in_flight {
            return Err(VisibilityError::NotInFlight);
        }
        if now.since(message.last_receive) + timeout > LONGEST_VISIBILITY {
            return Err(VisibilityError::BeyondTwelveHours);
        }
        message.visible_at = now.saturating_add(timeout);
        agenda.plan(message.visible_at, Happening::Appears(receipt));
        Ok(())
    }

    /// `DeleteMessage`. Gives the body of what it deleted: a stale handle deletes nothing, and SQS
    /// says so to no one.
    pub(crate) fn delete(&mut self, receipt: Receipt) -> Option<String> {
        self.latest(receipt)?;
        let message = self.messages.remove(receipt.slot);
        self.in_flight -= usize::from(message.in_flight);
        Some(message.content.body)
    }

    /// A visibility timeout set earlier has run out, unless another was set since.
    pub(crate) fn appear(&mut self, now: Timestamp, receipt: Receipt) {
        let Some(message) = self.latest(receipt) else { return };
        if message.in_flight && message.visible_at <= now {
            message.in_flight = false;
            self.in_flight -= 1;
            self.visible.push_back(receipt);
        }
    }

    /// A retention planned earlier has ended, unless the message is gone and another is in its place.
    pub(crate) fn expire(&mut self, now: Timestamp, slot: usize) {
        let retention = self.settings.retention;
        if self.messages.get(slot).is_some_and(|message| now.since(message.sent) >= retention) {
            self.remove(slot, Removal::Expired);
        }
    }

    /// Whether a receive would bring anything (or redrive something).
    pub(crate) fn has_visible(&self) -> bool {
        !self.visible.is_empty() && self.in_flight < self.settings.in_flight_limit
    }

    /// Messages, visible or not.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Messages in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Messages a receive could bring, if the in-flight limit had room.
    pub(crate) fn visible(&self) -> usize {
        self.len() - self.in_flight
    }

    /// The messages that the queue took away since this was last asked.
    pub(crate) fn take_removals(&mut self) -> Vec<(Received, Removal)> {
        std::mem::take(&mut self.removals)
    }

    fn latest(&mut self, receipt: Receipt) -> Option<&mut Message> {
        self.messages.get_mut(receipt.slot).filter(|message| message.number == receipt.number)
    }

    fn remove(&mut self, slot: usize, removal: Removal) {
        let message = self.messages.remove(slot);
        self.in_flight -= usize::from(message.in_flight);
        self.removals.push((message.received(Receipt { slot, number: message.number }), removal));
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

#[cfg(test)]
mod tests;
