//! An SQS standard queue on a virtual clock. Each message carries something of its sender's (`T`), which the queue never
//! reads.

mod message;

use std::collections::VecDeque;
use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use slab::Slab;

use super::agenda::Agenda;
use super::target::Id;
use message::{Message, State, blank};

pub use message::{Attributes, Depth, IN_FLIGHT_LIMIT};
pub(crate) use message::{QueueSettings, Receipt, Received, Removal, Removed, Sent, Slot};

/// The longest delay of a message. Source: SQS quotas, "Message delay".
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(900);
/// The longest visibility timeout, and the longest time from a receive to a message's return.
/// Source: SQS quotas, "Message visibility timeout".
const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3_600);

/// Why a visibility timeout was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VisibilityError {
    #[error("InvalidParameterValue: VisibilityTimeout {0} must be between 0 and 43200")]
    OutOfRange(u64),
    #[error("InvalidParameterValue: total VisibilityTimeout is beyond the limit of 43200 s from the receive")]
    BeyondTwelveHours,
    #[error("ReceiptHandleIsInvalid: a later receive, or the message's deletion, made the handle stale")]
    StaleHandle,
    #[error("MessageNotInflight: the message is visible again")]
    NotInFlight,
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    #[error(
        "InvalidParameterValue: Value {0} for parameter DelaySeconds is invalid. \
         Reason: DelaySeconds must be >= 0 and <= 900."
    )]
    DelayTooLong(u64),
}

/// A timer that a queue has set. It has no effect if the message has moved on.
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
    /// Receipts of visible messages in the order of their appearance. A receipt is skipped if its message is gone.
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

    /// `SendMessage`. Plans nothing after `horizon`, the end of the run.
    pub(crate) fn send<H: Ord + From<QueueTimer>>(
        &mut self,
        now: Timestamp,
        horizon: Timestamp,
        agenda: &mut Agenda<H>,
        sent: Sent<T>,
    ) -> Result<Slot, SendError> {
        let delay = sent.delay;
        assert_eq!(delay.subsec_nanos(), 0, "BUG: DelaySeconds are whole");
        if delay > LONGEST_DELAY {
            return Err(SendError::DelayTooLong(delay.as_secs()));
        }
        let number = self.next_number();
        let slot = Slot(self.messages.insert(Message::new(now, number, sent)));
        let receipt = Receipt { slot, number };
        let mut plan = |at: Timestamp, timer| {
            if at <= horizon {
                agenda.plan(at, timer);
            }
        };
        if delay.is_zero() {
            self.visible.push_back(receipt);
        } else {
            self.delayed += 1;
            plan(now.saturating_add(delay), QueueTimer::Delay(receipt));
        }
        plan(now.saturating_add(self.settings.retention), QueueTimer::Retention(slot));
        Ok(slot)
    }

    /// `ReceiveMessage`: fills `records`, reusing their buffers, and returns a receipt for each. Fewer than `most` come if
    /// fewer are visible or the in-flight limit is reached.
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

    /// `ChangeMessageVisibility`: hides a message for `timeout` from now on.
    pub(crate) fn change_visibility<H: Ord + From<QueueTimer>>(
        &mut self,
        now: Timestamp,
        agenda: &mut Agenda<H>,
        handle: &str,
        timeout: Duration,
    ) -> Result<(), VisibilityError> {
        if timeout > LONGEST_VISIBILITY {
            return Err(VisibilityError::OutOfRange(timeout.as_secs()));
        }
        let receipt = Receipt::parse(handle).ok_or(VisibilityError::StaleHandle)?;
        let message = self.latest(receipt).ok_or(VisibilityError::StaleHandle)?;
        if message.state != State::InFlight {
            return Err(VisibilityError::NotInFlight);
        }
        if now.since(message.last_receive) + timeout > LONGEST_VISIBILITY {
            return Err(VisibilityError::BeyondTwelveHours);
        }
        message.visible_at = now.saturating_add(timeout);
        agenda.plan(message.visible_at, QueueTimer::Visibility(receipt));
        Ok(())
    }

    /// `DeleteMessage`. Returns the body of the deleted message. A stale handle deletes nothing, and SQS still reports
    /// success.
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

    /// A message is visible, for the first time or again, unless another timeout was set since.
    pub(super) fn appear(&mut self, now: Timestamp, receipt: Receipt) {
        let Some(message) = self.latest(receipt) else { return };
        if message.state != State::Visible && message.visible_at <= now {
            let left = std::mem::replace(&mut message.state, State::Visible);
            self.leave(left);
            self.visible.push_back(receipt);
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

    /// What a message carries, unless the message is gone.
    pub(crate) fn carried(&self, received: &Received) -> Option<&T> {
        self.message(received).map(|message| &message.carried)
    }

    /// A message's body, unless the message is gone.
    pub(crate) fn body(&self, received: &Received) -> Option<&str> {
        self.message(received).map(|message| message.body.as_str())
    }

    /// The attributes a message was sent with, unless there are none or the message is gone.
    pub(crate) fn attributes(&self, received: &Received) -> Option<&Attributes> {
        self.message(received)?.attributes.as_deref()
    }

    /// Whether a receive would bring anything, or remove a message that was received too often.
    pub(crate) fn has_visible(&self) -> bool {
        !self.visible.is_empty() && self.in_flight < self.settings.in_flight_limit
    }

    /// How many messages there are.
    pub(crate) fn depth(&self) -> Depth {
        let Self { in_flight, delayed, .. } = *self;
        Depth { visible: self.messages.len() - in_flight - delayed, in_flight, delayed }
    }

    fn message(&self, received: &Received) -> Option<&Message<T>> {
        self.messages.get(received.receipt.slot.0).filter(|message| message.id == received.id)
    }

    fn latest(&mut self, receipt: Receipt) -> Option<&mut Message<T>> {
        self.messages.get_mut(receipt.slot.0).filter(|message| message.number == receipt.number)
    }

    fn remove(&mut self, slot: Slot, removal: Removal) {
        let Message { carried, state, .. } = self.messages.remove(slot.0);
        self.leave(state);
        self.removals.push(Removed { carried, removal });
    }

    /// A message leaves this state.
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

/// What a queue does only when it is asked to. A standard queue delivers at least once, so SQS may hand out a message that
/// is hidden, and a receipt handle may go stale for no visible reason.
impl<T> Queue<T> {
    /// Hands a message to a receiver who already has it, as one more record of the batch.
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

    /// Makes a hidden message visible, if this is still its latest receipt.
    pub(crate) fn appear_early(&mut self, receipt: Receipt) -> Option<Received> {
        let message = self.latest(receipt).filter(|message| message.state == State::InFlight)?;
        message.state = State::Visible;
        let received = message.received(receipt);
        self.in_flight -= 1;
        self.visible.push_back(receipt);
        Some(received)
    }

    /// Makes a receipt stale, though nobody else has received the message.
    pub(crate) fn make_stale<H: Ord + From<QueueTimer>>(&mut self, receipt: Receipt, agenda: &mut Agenda<H>) {
        let number = self.next_number();
        let Some(message) = self.latest(receipt) else { return };
        message.number = number;
        agenda.plan(message.visible_at, QueueTimer::Visibility(Receipt { number, ..receipt }));
    }

    /// Ends a message's retention early. False if the message is already gone.
    pub(crate) fn expire_early(&mut self, slot: Slot, id: Id) -> bool {
        let is_there = self.messages.get(slot.0).is_some_and(|message| message.id == id);
        if is_there {
            self.remove(slot, Removal::Expired);
        }
        is_there
    }
}

#[cfg(test)]
mod tests;
