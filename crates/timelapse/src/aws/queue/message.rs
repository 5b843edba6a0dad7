use std::fmt;
use std::time::Duration;

use comeback_engine::{Record, Timestamp};

use super::{Attributes, Sent};
use crate::aws::id::Id;

/// Where the queue stores a message. Once the message is gone, another may have its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(super) usize);

/// One receive of one message. A later receive makes it stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Receipt {
    pub(super) slot: Slot,
    /// Unique in the queue, so that a handle never fits a later receive or another message.
    pub(super) number: u64,
}

impl Receipt {
    pub(crate) fn parse(handle: &str) -> Option<Self> {
        let (slot, number) = handle.split_once('.')?;
        Some(Self { slot: Slot(slot.parse().ok()?), number: number.parse().ok()? })
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot.0, self.number)
    }
}

/// A message in a receiver's hands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) receipt: Receipt,
    pub(crate) id: Id,
}

/// Whether a receive can bring a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not yet: its delay is not over.
    Delayed,
    Visible,
    /// Not now: it was received, and is hidden or in a receiver's hands.
    InFlight,
}

#[derive(Debug)]
pub(super) struct Message<T> {
    pub(super) id: Id,
    pub(super) body: String,
    pub(super) attributes: Option<Box<Attributes>>,
    pub(super) carried: T,
    pub(super) sent_at: Timestamp,
    pub(super) first_receive: Timestamp,
    pub(super) last_receive: Timestamp,
    pub(super) receive_count: u32,
    /// Of the latest receive.
    pub(super) number: u64,
    pub(super) visible_at: Timestamp,
    pub(super) state: State,
}

impl<T> Message<T> {
    pub(super) fn new(now: Timestamp, number: u64, sent: Sent<T>) -> Self {
        let Sent { id, body, delay, attributes, carried } = sent;
        Self {
            id,
            body,
            attributes,
            carried,
            sent_at: now,
            first_receive: now,
            last_receive: now,
            receive_count: 0,
            number,
            visible_at: now.saturating_add(delay),
            state: if delay.is_zero() { State::Visible } else { State::Delayed },
        }
    }

    pub(super) fn take(&mut self, now: Timestamp, number: u64, visibility_timeout: Duration) {
        if self.receive_count == 0 {
            self.first_receive = now;
        }
        self.receive_count += 1;
        self.last_receive = now;
        self.number = number;
        self.visible_at = now.saturating_add(visibility_timeout);
        self.state = State::InFlight;
    }

    pub(super) fn received(&self, receipt: Receipt) -> Received {
        Received { receipt, id: self.id }
    }

    /// Writes what a receiver gets into `record`, reusing its buffers.
    pub(super) fn write(&self, receipt: Receipt, record: &mut Record) {
        record.message_id.clear();
        self.id.write(&mut record.message_id);
        record.receipt_handle.clear();
        fmt::Write::write_fmt(&mut record.receipt_handle, format_args!("{receipt}"))
            .expect("BUG: writing to a String");
        record.body.clear();
        record.body.push_str(&self.body);
        record.receive_count = self.receive_count;
        record.sent = self.sent_at;
        record.first_receive = self.first_receive;
        record.moved = None;
        record.trace_header = None;
    }
}

/// A record to write into.
pub(super) fn blank(now: Timestamp) -> Record {
    Record {
        message_id: String::new(),
        receipt_handle: String::new(),
        body: String::new(),
        receive_count: 0,
        sent: now,
        first_receive: now,
        moved: None,
        trace_header: None,
    }
}
