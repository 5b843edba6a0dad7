use std::time::Duration;

use comeback_engine::{Record, Timestamp};

use crate::aws::queue::Received;
use crate::check::origin::Origin;
use crate::event::EventNumber;
use crate::faults::fault::Fault;

/// A batch on its way through the handler.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) started: Timestamp,
    /// The handler's clock at that moment.
    pub(crate) clock: Timestamp,
    pub(crate) records: Vec<Record>,
    /// What else is known of each record's message, in the same order.
    pub(crate) messages: Vec<Polled>,
    pub(crate) death: Option<Death>,
}

/// A message that a poller has received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polled {
    pub(crate) received: Received,
    pub(crate) origin: Origin,
}

/// A fault ends the handler once it has made this many calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    pub(crate) fault: Fault,
    pub(crate) calls: u64,
    /// How long after its start it makes them, if not after its usual run time.
    pub(crate) calls_at: Option<Duration>,
}

impl Batch {
    /// A batch whose handler starts now.
    pub(crate) fn new(now: Timestamp, records: Vec<Record>, messages: Vec<Polled>) -> Self {
        Self { started: now, clock: now, records, messages, death: None }
    }

    /// What its messages carry.
    pub(crate) fn bytes(&self) -> usize {
        self.records.iter().map(|record| record.body.len()).sum()
    }

    /// The event of each message.
    pub(crate) fn events(&self) -> impl Iterator<Item = EventNumber> {
        self.messages.iter().map(|message| message.origin.event)
    }
}
