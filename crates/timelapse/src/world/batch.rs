use std::time::Duration;

use comeback_engine::{BatchEvent, Record, Timestamp};

use super::environments::Environment;
use crate::aws::queue::{Attributes, Received};
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
    /// The attributes of each, where it has any.
    pub(crate) attributes: Vec<Option<Attributes>>,
    /// The handler's environment, until its batch ends.
    pub(crate) environment: Environment,
    /// The handler is older than moves.
    pub(crate) old_handler: bool,
    pub(crate) death: Option<Death>,
    /// The event as the handler gets it, if messages of it lack a field.
    pub(crate) struck: Option<BatchEvent>,
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
    /// What its messages carry.
    pub(crate) fn bytes(&self) -> usize {
        let attributes = self.attributes.iter().flatten().map(Attributes::size);
        self.records.iter().map(|record| record.body.len()).sum::<usize>() + attributes.sum::<usize>()
    }

    /// Makes moved messages those that they were first, as a handler does that knows of moves.
    pub(crate) fn restore(&mut self) {
        for (record, attributes) in self.records.iter_mut().zip(&self.attributes) {
            let Some(attributes) = attributes else { continue };
            record.trace_header = attributes.trace_header.as_deref().map(Into::into);
            if let Some(attribute) = &attributes.comeback {
                // A garbled one is ignored.
                let _ = record.restore(attribute);
            }
        }
    }

    /// The event of each message.
    pub(crate) fn events(&self) -> impl Iterator<Item = EventNumber> {
        self.messages.iter().map(|message| message.origin.event)
    }
}
