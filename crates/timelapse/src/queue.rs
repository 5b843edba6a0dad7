//! An SQS standard queue on a virtual clock.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use slab::Slab;

use crate::agenda::{Agenda, Happening};
use crate::id::Id;

/// The longest visibility timeout, and the longest time from a receive to a message's return.
/// Source: SQS quotas, "Message visibility timeout".
pub(crate) const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3_600);

/// How a queue is set up. The defaults are those of `template.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueSettings {
    /// For how long a receive hides a message; 180 s, six times the handler's timeout.
    pub(crate) visibility_timeout: Duration,
    /// For how long SQS keeps a message from its sending on; 14 days, the most there is.
    pub(crate) retention: Duration,
    /// `maxReceiveCount` of the redrive policy: a message that was received so often goes to the
    /// dead-letter queue instead of to a receiver; 1,000, the most there is.
    pub(crate) max_receive_count: u32,
    /// Messages that can be in flight (received, neither deleted nor visible again). At the limit
    /// a long poll returns nothing. SQS has about 120,000 for a standard queue.
    pub(crate) in_flight_limit: usize,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            visibility_timeout: Duration::from_secs(180),
            retention: Duration::from_secs(14 * 24 * 3_600),
            max_receive_count: 1_000,
            in_flight_limit: 120_000,
        }
    }
}

/// One receive of one message. A later receive makes it stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Receipt {
    slot: usize,
    /// Unique in the queue, so that a handle never fits a later receive or another message.
    number: u64,
}

impl Receipt {
    fn parse(handle: &str) -> Option<Self> {
        let (slot, number) = handle.split_once('.')?;
        Some(Self { slot: slot.parse().ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.number)
    }
}

/// What the queue took away by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// To the dead-letter queue, by the redrive policy.
    Redriven,
    /// Deleted: its retention ended.
    Expired,
}

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

#[derive(Debug)]
struct Message {
    id: Id,
    body: String,
    event: usize,
    sent: Timestamp,
    first_receive: Timestamp,
    last_receive: Timestamp,
    receive_count: u32,
    /// Of the latest receive.
    number: u64,
    visible_at: Timestamp,
    in_flight: bool,
}

/// The queue. Whose message is whose (`event`) is kept beside each, for the ledger only.
#[derive(Debug)]
pub(crate) struct Queue {
    settings: QueueSettings,
    messages: Slab<Message>,
    /// Receipts of visible messages in the order of their appearance. One whose message was taken
    /// away while visible is skipped when its turn comes.
    visible: VecDeque<Receipt>,
    in_flight: usize,
    peak_in_flight: usize,
    numbers: u64,
    removals: Vec<(usize, Removal)>,
}

impl Queue {
    pub(crate) fn new(settings: QueueSettings) -> Self {
        Self {
            settings,
            messages: Slab::new(),
            visible: VecDeque::new(),
            in_flight: 0,
            peak_in_flight: 0,
            numbers: 0,
            removals: Vec::new(),
        }
    }

    /// `SendMessage`. `horizon` is the run's end: what expires after it need not be planned.
    pub(crate) fn send(
        &mut self,
        now: Timestamp,
        horizon: Timestamp,
        agenda: &mut Agenda,
        (id, body, event): (Id, String, usize),
    ) {
        let number = self.next_number();
        let slot = self.messages.insert(Message {
            id,
            body,
            event,
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
    }

    /// `ReceiveMessage`: fills `records`, reusing what they hold, and says which event each is of.
    /// Fewer than `most` come if fewer are visible or the in-flight limit is reached.
    pub(crate) fn receive(
        &mut self,
        now: Timestamp,
        most: usize,
        agenda: &mut Agenda,
        records: &mut Vec<Record>,
    ) -> Vec<(Receipt, usize)> {
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
            let receipt = Receipt { slot, number: self.next_number() };
            let message = &mut self.messages[slot];
            message.take(now, receipt.number, self.settings.visibility_timeout);
            agenda.plan(message.visible_at, Happening::Appears(receipt));
            match records.get_mut(received.len()) {
                Some(record) => message.write(receipt, record),
                None => {
                    let mut record = blank(now);
                    message.write(receipt, &mut record);
                    records.push(record);
                }
            }
            received.push((receipt, message.event));
        }
        records.truncate(received.len());
        self.in_flight += received.len();
        self.peak_in_flight = self.peak_in_flight.max(self.in_flight);
        received
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

    /// `DeleteMessage`. Whether it deleted: a stale handle deletes nothing, and SQS says so to no one.
    pub(crate) fn delete(&mut self, receipt: Receipt) -> bool {
        let Some(message) = self.latest(receipt) else { return false };
        let was_in_flight = message.in_flight;
        self.messages.remove(receipt.slot);
        self.in_flight -= usize::from(was_in_flight);
        true
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

    /// Most messages in flight at once so far.
    pub(crate) fn peak_in_flight(&self) -> usize {
        self.peak_in_flight
    }

    /// The events whose messages the queue took away since this was last asked.
    pub(crate) fn take_removals(&mut self) -> Vec<(usize, Removal)> {
        std::mem::take(&mut self.removals)
    }

    fn latest(&mut self, receipt: Receipt) -> Option<&mut Message> {
        self.messages.get_mut(receipt.slot).filter(|message| message.number == receipt.number)
    }

    fn remove(&mut self, slot: usize, removal: Removal) {
        let message = self.messages.remove(slot);
        self.in_flight -= usize::from(message.in_flight);
        self.removals.push((message.event, removal));
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

impl Message {
    fn take(&mut self, now: Timestamp, number: u64, visibility_timeout: Duration) {
        if self.receive_count == 0 {
            self.first_receive = now;
        }
        self.receive_count += 1;
        self.last_receive = now;
        self.number = number;
        self.visible_at = now.saturating_add(visibility_timeout);
        self.in_flight = true;
    }

    fn write(&self, receipt: Receipt, record: &mut Record) {
        record.message_id.clear();
        self.id.write(&mut record.message_id);
        record.receipt_handle.clear();
        fmt::Write::write_fmt(&mut record.receipt_handle, format_args!("{receipt}"))
            .expect("BUG: writing to a String");
        record.body.clear();
        record.body.push_str(&self.body);
        record.receive_count = self.receive_count;
        record.sent = self.sent;
        record.first_receive = self.first_receive;
    }
}

fn blank(now: Timestamp) -> Record {
    Record {
        message_id: String::new(),
        receipt_handle: String::new(),
        body: String::new(),
        receive_count: 0,
        sent: now,
        first_receive: now,
    }
}
