//! A simulated SQS standard queue, in which each message carries its sender's data (`T`).

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::time::Duration;

use comeback_engine::{QUEUE_VISIBILITY_TIMEOUT, Record, Timestamp};
use slab::Slab;
use uuid::Uuid;

use super::agenda::Agenda;
use super::write_id;

/// Maximum number of messages in flight in a standard queue. The number is approximate, according to AWS. Source: SQS
/// quotas, "In-flight messages per queue (standard queue)".
pub const IN_FLIGHT_LIMIT: usize = 120_000;
/// Maximum delay of a message (SQS quotas, "Message delay").
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(900);
/// Longest visibility timeout of a received message (SQS quotas, "Message visibility timeout").
const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3_600);
/// Retention period for a message, counted from when it was sent: SQS's maximum of 14 days.
const RETENTION: Duration = Duration::from_secs(14 * 24 * 3_600);

/// A queue's settings, with the defaults of `template.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueSettings {
    /// Visibility timeout after a receive; by default 1,230 s, so that 1,000 receives outlast the retention period.
    pub(crate) visibility_timeout: Duration,
    /// `maxReceiveCount`: number of receives after which SQS moves a message to the dead-letter queue.
    pub(crate) max_receive_count: u32,
    /// Maximum number of messages in flight. At this limit, a long poll returns nothing.
    pub(crate) in_flight_limit: usize,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            visibility_timeout: QUEUE_VISIBILITY_TIMEOUT,
            max_receive_count: 1_000,
            in_flight_limit: IN_FLIGHT_LIMIT,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// The queue moved the message to the dead-letter queue because of `maxReceiveCount`.
    ReceivedTooOften,
    Expired,
}

#[derive(Debug)]
pub(crate) struct OutgoingMessage<T> {
    pub(crate) id: Uuid,
    pub(crate) body: String,
    /// `DelaySeconds`: time until the message can be received, in whole seconds.
    pub(crate) delay: Duration,
    /// Message attributes, boxed because few messages have any.
    pub(crate) attributes: Option<Box<QueuedAttributes>>,
    /// Data that the simulation attaches to the message, and that receivers do not get.
    pub(crate) carried: T,
}

/// The attributes that the simulated queue stores with a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueuedAttributes {
    /// The message attribute `Comeback`, a String; `None` if the message has no such attribute.
    pub(crate) comeback: Option<Box<str>>,
    /// The system attribute `AWSTraceHeader`; `None` if the message has no such attribute.
    pub(crate) trace_header: Option<Box<str>>,
}

/// A receipt handle. Each message gets one when it is sent, and a new one at each receive. An older handle can still
/// change the message's visibility, but cannot delete the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReceiptHandle {
    /// Slot of the message in the queue. Another message may use the slot once this message is deleted.
    pub(crate) slot: usize,
    /// The handle's number. It is unique in the queue, so that an old handle never matches a new message in its slot.
    number: u64,
}

impl ReceiptHandle {
    pub(crate) fn parse(handle: &str) -> Option<Self> {
        let (slot, number) = handle.split_once('.')?;
        Some(Self { slot: slot.parse().ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for ReceiptHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.number)
    }
}

/// Number of messages in each state, as `GetQueueAttributes` reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// `ApproximateNumberOfMessages`: messages that can be received, unless the in-flight limit is reached.
    pub visible: usize,
    /// `ApproximateNumberOfMessagesNotVisible`: messages that have been received, but neither deleted nor made visible
    /// again.
    pub in_flight: usize,
    /// `ApproximateNumberOfMessagesDelayed`: messages whose delay has not ended yet.
    pub delayed: usize,
}

/// A timer that the queue sets for a message. The queue ignores it if the message's state has since changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QueueTimer {
    /// Ends a message's delay or visibility timeout, unless the message has been received again since the timer was
    /// set.
    Appears(ReceiptHandle),
    Retention(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Delayed,
    Visible,
    InFlight,
}

#[derive(Debug)]
pub(crate) struct QueuedMessage<T> {
    id: Uuid,
    pub(crate) body: String,
    pub(crate) attributes: Option<Box<QueuedAttributes>>,
    pub(crate) carried: T,
    sent_at: Timestamp,
    first_receive: Timestamp,
    last_receive: Timestamp,
    receive_count: u32,
    /// Value of the queue's handle counter when this message was sent. All handles of the message have higher numbers.
    sent_as: u64,
    /// The number in the message's latest handle.
    number: u64,
    visible_at: Timestamp,
    state: State,
}

#[derive(Debug)]
pub(crate) struct SqsQueue<T> {
    settings: QueueSettings,
    messages: Slab<QueuedMessage<T>>,
    /// Receipts of visible messages, in the order in which the messages became visible; some messages may be gone.
    visible: VecDeque<ReceiptHandle>,
    in_flight: usize,
    delayed: usize,
    numbers: u64,
    /// The data of the messages that the queue itself has removed, with the reason for each removal.
    pub(crate) removals: Vec<(T, Removal)>,
}

impl<T> SqsQueue<T> {
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

    /// Sends a message, as `SendMessage` does. The returned handle is only for [`expire_early`](Self::expire_early).
    /// Sets no timer that would expire after `horizon`, the end of the run.
    pub(crate) fn send<H: Ord + From<QueueTimer>>(
        &mut self,
        now: Timestamp,
        horizon: Timestamp,
        agenda: &mut Agenda<H>,
        sent: OutgoingMessage<T>,
    ) -> Result<ReceiptHandle, String> {
        let OutgoingMessage { id, body, delay, attributes, carried } = sent;
        assert_eq!(delay.subsec_nanos(), 0, "BUG: DelaySeconds are whole");
        if delay > LONGEST_DELAY {
            return Err(format!(
                "InvalidParameterValue: Value {} for parameter DelaySeconds is invalid. \
                 Reason: DelaySeconds must be >= 0 and <= 900.",
                delay.as_secs()
            ));
        }
        let number = self.next_number();
        let visible_at = now.saturating_add(delay);
        let slot = self.messages.insert(QueuedMessage {
            id,
            body,
            attributes,
            carried,
            sent_at: now,
            first_receive: now,
            last_receive: now,
            receive_count: 0,
            sent_as: number,
            number,
            visible_at,
            state: if delay.is_zero() { State::Visible } else { State::Delayed },
        });
        let receipt = ReceiptHandle { slot, number };
        let mut plan = |at: Timestamp, timer| {
            if at <= horizon {
                agenda.plan(at, timer);
            }
        };
        if delay.is_zero() {
            self.visible.push_back(receipt);
        } else {
            self.delayed += 1;
            plan(visible_at, QueueTimer::Appears(receipt));
        }
        plan(now.saturating_add(RETENTION), QueueTimer::Retention(slot));
        Ok(receipt)
    }

    /// Receives up to `most` messages, as `ReceiveMessage` does, into the buffers of `records`.
    pub(crate) fn receive<H: Ord + From<QueueTimer>>(
        &mut self,
        now: Timestamp,
        most: usize,
        agenda: &mut Agenda<H>,
        records: &mut Vec<Record>,
    ) -> Vec<ReceiptHandle> {
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
            let handed_out = self.hand_out(now, receipt.slot, agenda);
            self.show(handed_out, records, received.len());
            received.push(handed_out);
        }
        records.truncate(received.len());
        received
    }

    /// Delivers one message to a receiver, even while another receiver has it.
    pub(crate) fn hand_out<H: Ord + From<QueueTimer>>(
        &mut self,
        now: Timestamp,
        slot: usize,
        agenda: &mut Agenda<H>,
    ) -> ReceiptHandle {
        let receipt = ReceiptHandle { slot, number: self.next_number() };
        let message = &mut self.messages[slot];
        if message.receive_count == 0 {
            message.first_receive = now;
        }
        message.receive_count += 1;
        message.last_receive = now;
        message.number = receipt.number;
        message.visible_at = now.saturating_add(self.settings.visibility_timeout);
        message.state = State::InFlight;
        agenda.plan(message.visible_at, QueueTimer::Appears(receipt));
        receipt
    }

    /// Writes a received message into `records[index]` as its receiver sees it, reusing the buffers of that record.
    pub(crate) fn show(&self, receipt: ReceiptHandle, records: &mut Vec<Record>, index: usize) {
        let message = &self.messages[receipt.slot];
        if index == records.len() {
            records.push(blank(message.sent_at));
        }
        message.write(receipt, &mut records[index]);
    }

    /// Hides a message for `timeout`, counted from `now`. On a standard queue, the handle of an earlier receive also
    /// works.
    pub(crate) fn change_visibility<H: Ord + From<QueueTimer>>(
        &mut self,
        now: Timestamp,
        agenda: &mut Agenda<H>,
        handle: &str,
        timeout: Duration,
    ) -> Result<(), String> {
        if timeout > LONGEST_VISIBILITY {
            let seconds = timeout.as_secs();
            return Err(format!(
                "InvalidParameterValue: VisibilityTimeout {seconds} must be between 0 and 43200"
            ));
        }
        let receipt = ReceiptHandle::parse(handle).ok_or_else(|| {
            format!(
                "ReceiptHandleIsInvalid: The input receipt handle \"{handle}\" is not a valid receipt handle."
            )
        })?;
        let message = self.messages.get_mut(receipt.slot).filter(|message| message.has_had(receipt));
        let message = message.ok_or_else(|| {
            format!(
                "InvalidParameterValue: Value {handle} for parameter ReceiptHandle is invalid. Reason: Message does not \
                 exist or is not available for visibility timeout change."
            )
        })?;
        // AWS documents this error. In practice, SQS has also been seen to report success and do nothing.
        if message.state != State::InFlight {
            return Err("MessageNotInflight: the message is visible again".into());
        }
        if now.since(message.last_receive) + timeout > LONGEST_VISIBILITY {
            let limit = "total VisibilityTimeout is beyond the limit of 43200 s from the receive";
            return Err(format!("InvalidParameterValue: {limit}"));
        }
        message.visible_at = now.saturating_add(timeout);
        let latest = ReceiptHandle { number: message.number, ..receipt };
        agenda.plan(message.visible_at, QueueTimer::Appears(latest));
        Ok(())
    }

    /// Deletes a message and returns its body. Returns `None` if the handle is stale, although SQS would report
    /// success.
    pub(crate) fn delete(&mut self, receipt: ReceiptHandle) -> Option<String> {
        self.latest(receipt)?;
        let message = self.messages.remove(receipt.slot);
        self.leave(message.state);
        Some(message.body)
    }

    /// Handles a timer that has expired, unless its message has changed or is gone.
    pub(crate) fn run_out(&mut self, now: Timestamp, timer: QueueTimer) {
        match timer {
            QueueTimer::Appears(receipt) => {
                let Some(message) = self.latest(receipt) else { return };
                if message.state != State::Visible && message.visible_at <= now {
                    let left = std::mem::replace(&mut message.state, State::Visible);
                    self.leave(left);
                    self.visible.push_back(receipt);
                }
            }
            QueueTimer::Retention(slot) => {
                if self.messages.get(slot).is_some_and(|message| now.since(message.sent_at) >= RETENTION) {
                    self.remove(slot, Removal::Expired);
                }
            }
        }
    }

    /// Returns true if a receive can return a message, or can remove a message that was received too many times.
    pub(crate) fn has_visible(&self) -> bool {
        !self.visible.is_empty() && self.in_flight < self.settings.in_flight_limit
    }

    pub(crate) fn depth(&self) -> Depth {
        let Self { in_flight, delayed, .. } = *self;
        Depth { visible: self.messages.len() - in_flight - delayed, in_flight, delayed }
    }

    /// Returns the message that was received with this handle, even if the message has a newer handle. Returns `None`
    /// if the message is gone.
    pub(crate) fn message(&self, receipt: ReceiptHandle) -> Option<&QueuedMessage<T>> {
        self.messages.get(receipt.slot).filter(|message| message.has_had(receipt))
    }

    /// Returns three things for each message: the record that a receiver would get, the message's attributes, and the
    /// data that the sender attached.
    pub(crate) fn stored(&self) -> impl Iterator<Item = (Record, Option<&QueuedAttributes>, &T)> {
        self.messages.iter().map(|(slot, message)| {
            let mut record = blank(message.sent_at);
            message.write(ReceiptHandle { slot, number: message.number }, &mut record);
            (record, message.attributes.as_deref(), &message.carried)
        })
    }

    fn latest(&mut self, receipt: ReceiptHandle) -> Option<&mut QueuedMessage<T>> {
        self.messages.get_mut(receipt.slot).filter(|message| message.number == receipt.number)
    }

    fn remove(&mut self, slot: usize, removal: Removal) {
        let QueuedMessage { carried, state, .. } = self.messages.remove(slot);
        self.leave(state);
        self.removals.push((carried, removal));
    }

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

/// Methods for recalls and for faults.
impl<T: Clone> SqsQueue<T> {
    /// Returns a message's data and the time when it becomes visible, or `None` if the message is not in flight.
    pub(crate) fn hidden(&self, receipt: ReceiptHandle) -> Option<(T, Timestamp)> {
        let message = self.message(receipt).filter(|message| message.state == State::InFlight)?;
        Some((message.carried.clone(), message.visible_at))
    }

    /// Makes a hidden message visible early, and returns its data. Returns `None` if the message is not hidden, or if
    /// it has a newer receipt.
    pub(crate) fn appear_early(&mut self, receipt: ReceiptHandle) -> Option<T> {
        let message = self.latest(receipt).filter(|message| message.state == State::InFlight)?;
        message.state = State::Visible;
        let carried = message.carried.clone();
        self.in_flight -= 1;
        self.visible.push_back(receipt);
        Some(carried)
    }

    /// Makes a receipt handle stale, as if another receiver had received the message.
    pub(crate) fn make_stale<H: Ord + From<QueueTimer>>(
        &mut self,
        receipt: ReceiptHandle,
        agenda: &mut Agenda<H>,
    ) {
        let number = self.next_number();
        let Some(message) = self.latest(receipt) else { return };
        message.number = number;
        agenda.plan(message.visible_at, QueueTimer::Appears(ReceiptHandle { number, ..receipt }));
    }

    /// Removes the message for which [`send`](Self::send) returned this handle, as if its retention period had ended.
    pub(crate) fn expire_early(&mut self, sent: ReceiptHandle) -> Option<T> {
        let message = self.messages.get(sent.slot).filter(|message| message.sent_as == sent.number)?;
        let carried = message.carried.clone();
        self.remove(sent.slot, Removal::Expired);
        Some(carried)
    }
}

impl<T> QueuedMessage<T> {
    /// Returns true if the handle comes from a receive of this message.
    fn has_had(&self, receipt: ReceiptHandle) -> bool {
        (self.sent_as + 1..=self.number).contains(&receipt.number)
    }

    fn write(&self, receipt: ReceiptHandle, record: &mut Record) {
        record.message_id.clear();
        write_id(self.id, &mut record.message_id);
        record.receipt_handle.clear();
        write!(record.receipt_handle, "{receipt}").expect("BUG: writing to a String");
        record.body.clear();
        record.body.push_str(&self.body);
        record.receive_count = self.receive_count;
        record.sent = self.sent_at;
        record.first_receive = self.first_receive;
        record.moved = None;
        record.trace_header = None;
    }
}

pub(crate) fn blank(now: Timestamp) -> Record {
    Record {
        message_id: String::new(),
        receipt_handle: String::new(),
        body: String::new(),
        receive_count: 0,
        sent: now,
        first_receive: now,
        moved: None,
        trace_header: None,
        attributes: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
