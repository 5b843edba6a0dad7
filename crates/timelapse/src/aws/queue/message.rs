use std::fmt;
use std::time::Duration;

use comeback_engine::{Record, Timestamp};

use crate::aws::id::Id;

/// One receive of one message. A later receive makes it stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Receipt {
    pub(super) slot: usize,
    /// Unique in the queue, so that a handle never fits a later receive or another message.
    pub(super) number: u64,
}

impl Receipt {
    pub(crate) fn parse(handle: &str) -> Option<Self> {
        let (slot, number) = handle.split_once('.')?;
        Some(Self { slot: slot.parse().ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.number)
    }
}

/// A message's content, and what only the simulation knows of it.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) id: Id,
    pub(crate) body: String,
    pub(crate) event: usize,
    /// Of the invocation that failed: 0 if it was the event's first.
    pub(crate) attempt: u64,
    /// What is wrong with the body.
    pub(crate) flaw: Option<Flaw>,
}

/// What a fault has made of an invocation record, such that it is not retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A member is missing that must be there.
    Unreadable,
    /// Its function is not on the policy's list.
    Unlisted,
}

/// What a receiver got of one message, apart from its record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) receipt: Receipt,
    pub(crate) id: Id,
    pub(crate) event: usize,
    pub(crate) attempt: u64,
    pub(crate) flaw: Option<Flaw>,
}

#[derive(Debug)]
pub(crate) struct Message {
    pub(super) content: Sent,
    /// Never re-invoked before: by what the handler asked of the queue so far.
    pub(crate) not_before: Timestamp,
    /// It was re-invoked or dead-lettered.
    pub(crate) settled: bool,
    pub(super) sent: Timestamp,
    pub(super) first_receive: Timestamp,
    pub(super) last_receive: Timestamp,
    pub(super) receive_count: u32,
    /// Of the latest receive.
    pub(super) number: u64,
    pub(super) visible_at: Timestamp,
    pub(super) in_flight: bool,
}

impl Message {
    pub(crate) fn body(&self) -> &str {
        &self.content.body
    }

    pub(super) fn take(&mut self, now: Timestamp, number: u64, visibility_timeout: Duration) {
        if self.receive_count == 0 {
            self.first_receive = now;
        }
        self.receive_count += 1;
        self.last_receive = now;
        self.number = number;
        self.visible_at = now.saturating_add(visibility_timeout);
        self.in_flight = true;
    }

    pub(super) fn received(&self, receipt: Receipt) -> Received {
        let Sent { id, event, attempt, flaw, .. } = self.content;
        Received { receipt, id, event, attempt, flaw }
    }

    /// Makes `record` what a receiver gets, in the buffers it has.
    pub(super) fn write(&self, receipt: Receipt, record: &mut Record) {
        record.message_id.clear();
        self.content.id.write(&mut record.message_id);
        record.receipt_handle.clear();
        fmt::Write::write_fmt(&mut record.receipt_handle, format_args!("{receipt}"))
            .expect("BUG: writing to a String");
        record.body.clear();
        record.body.push_str(&self.content.body);
        record.receive_count = self.receive_count;
        record.sent = self.sent;
        record.first_receive = self.first_receive;
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
    }
}
