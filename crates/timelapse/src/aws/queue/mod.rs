//! An SQS standard queue on a virtual clock. Each message carries something of its sender's (`T`), which
//! the queue never looks at.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | receiving, deleting, and what timers lead to |
//! | `sending` | `SendMessage`: what is sent, and its delay |
//! | `message` | a message, its receipts and its record |
//! | `depth` | how many messages there are: visible, in flight, delayed |
//! | `settings` | how a queue is set up; its limits |
//! | `visibility` | `ChangeMessageVisibility`, and its 12 hours |
//! | `irregular` | what SQS does only now and then |

mod depth;
mod irregular;
mod message;
mod sending;
mod settings;
mod visibility;

use std::collections::VecDeque;

use comeback_engine::{Record, Timestamp};
use slab::Slab;

use super::agenda::Agenda;
use message::{Message, State, blank};

pub use depth::Depth;
pub(crate) use message::{Receipt, Received, Slot};
pub use sending::Attributes;
pub(crate) use sending::{LONGEST_DELAY, Sent};
pub use settings::IN_FLIGHT_LIMIT;
pub(crate) use settings::{QueueSettings, Removal, Removed};

/// A timer that a queue has set. It runs out for nothing if the message has moved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QueueTimer {
    /// A message's delay. It was never received, so its receipt is the one it was sent with.
    Delay(Receipt),
    /// A message's visibility timeout, if this is still its latest receipt.
    Visibility(Receipt),
    /// The retention of the message in this slot.
    Retention(Slot),
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    settings: QueueSettings,
    messages: Slab<Message<T>>,
    /// Receipts of visible messages in the order of their appearance. One whose message was taken
    /// away while visible is skipped when its turn comes.
    visible: VecDeque<Receipt>,
    in_flight: usize,
    delayed: usize,
    numbers: u64,
    removals: Vec<Removed<T>>,
}

impl<T> Queue<T> {
    pub(crate) fn new(settings: QueueSettings) -> Self {
        Self {
            settings,
            messages: Slab::new(),
            visible: VecDeque::new(),
            in_flight: 0,
            delayed: 0,
            numbers: 0,
            removals: Vec::new(),
        }
    }

    /// `ReceiveMessage`: fills `records`, reusing their buffers, and gives a receipt for each. Fewer
    /// than `most` come if fewer are visible or the in-flight limit is reached.
    pub(crate) fn receive<H: Ord + From<QueueTimer>>(
        &mut self,
        now: Timestamp,
        most: usize,
        agenda: &mut Agenda<H>,
        records: &mut Vec<Record>,
    ) -> Vec<Received> {
        let room = self.settings.in_flight_limit.saturating_sub(self.in_flight);
        let mut received = Vec::with_capacity(most.min(room));
        while received.len() < most.min(room) {
            let Some(receipt) = self.visible.pop_front() else { break };
            let Some(message) = self.latest(receipt) else { continue };
            if message.receive_count >= self.settings.max_receive_count {
                self.remove(receipt.slot, Removal::ReceivedTooOften);
                continue;
            }
            self.in_flight += 1;
            received.push(self.hand_out(now, receipt.slot, agenda, records, received.len()));
        }
        records.truncate(received.len());
        received
    }

    /// One message goes to a receiver, as `records[index]`.
    fn hand_out<H: Ord + From<QueueTimer>>(
        &mut self,
        now: Timestamp,
        slot: Slot,
        agenda: &mut Agenda<H>,
        records: &mut Vec<Record>,
        index: usize,
    ) -> Received {
        let receipt = Receipt { slot, number: self.next_number() };
        let message = &mut self.messages[slot.0];
        message.take(now, receipt.number, self.settings.visibility_timeout);
        agenda.plan(message.visible_at, QueueTimer::Visibility(receipt));
        if index == records.len() {
            records.push(blank(now));
        }
        message.write(receipt, &mut records[index]);
        message.received(receipt)
    }

    /// What a message carries, unless the message is gone.
    pub(crate) fn carried(&self, received: &Received) -> Option<&T> {
        self.message(received).map(|message| &message.carried)
    }

    /// The same, to be changed.
    pub(crate) fn carried_mut(&mut self, received: &Received) -> Option<&mut T> {
        let message = self.messages.get_mut(received.receipt.slot.0);
        message.filter(|message| message.id == received.id).map(|message| &mut message.carried)
    }

    /// A message's body, unless the message is gone.
    pub(crate) fn body(&self, received: &Received) -> Option<&str> {
        self.message(received).map(|message| message.body.as_str())
    }

    /// The attributes a message was sent with, unless there are none or the message is gone.
    pub(crate) fn attributes(&self, received: &Received) -> Option<&Attributes> {
        self.message(received)?.attributes.as_deref()
    }

    /// `DeleteMessage`. Gives the body of the message it deleted. A stale handle deletes nothing, and
    /// SQS reports success all the same.
    pub(crate) fn delete(&mut self, receipt: Receipt) -> Option<String> {
        self.latest(receipt)?;
        let message = self.messages.remove(receipt.slot.0);
        self.leave(message.state);
        Some(message.body)
    }

    /// A timer that was set earlier has run out.
    pub(crate) fn run_out(&mut self, now: Timestamp, timer: QueueTimer) {
        match timer {
            QueueTimer::Delay(receipt) | QueueTimer::Visibility(receipt) => self.appear(now, receipt),
            QueueTimer::Retention(slot) => self.expire(now, slot),
        }
    }

    /// SQS deletes a message, unless it is gone already and a younger one has its slot.
    fn expire(&mut self, now: Timestamp, slot: Slot) {
        let retention = self.settings.retention;
        if self.messages.get(slot.0).is_some_and(|message| now.since(message.sent_at) >= retention) {
            self.remove(slot, Removal::Expired);
        }
    }

    /// The messages that the queue has removed by itself since the last call.
    pub(crate) fn take_removals(&mut self) -> Vec<Removed<T>> {
        std::mem::take(&mut self.removals)
    }

    fn message(&self, received: &Received) -> Option<&Message<T>> {
        self.messages.get(received.receipt.slot.0).filter(|message| message.id == received.id)
    }

    fn latest(&mut self, receipt: Receipt) -> Option<&mut Message<T>> {
        self.messages.get_mut(receipt.slot.0).filter(|message| message.number == receipt.number)
    }

    fn remove(&mut self, slot: Slot, removal: Removal) {
        let Message { id, carried, state, .. } = self.messages.remove(slot.0);
        self.leave(state);
        self.removals.push(Removed { id, carried, removal });
    }

    /// A message is no longer in this state.
    fn leave(&mut self, state: State) {
        match state {
            State::Delayed => self.delayed -= 1,
            State::Visible => {}
            State::InFlight => self.in_flight -= 1,
        }
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

#[cfg(test)]
mod tests;
