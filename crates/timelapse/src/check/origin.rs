use comeback_engine::Timestamp;

use super::asked::Asked;
use super::hops::Hops;
use crate::event::EventNumber;
use crate::faults::records::Flaw;

/// What an invocation of the target carries: whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) event: EventNumber,
    /// 0 if it is the event's first invocation.
    pub(crate) number: u64,
}

/// Where a message on the retry queue comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) event: EventNumber,
    /// The attempt that failed: 0 if it was the event's first invocation.
    pub(crate) attempt: u64,
    pub(crate) flaw: Option<Flaw>,
    /// What that attempt asked for.
    pub(crate) asked: Option<Asked>,
}

/// What a message on the retry queue carries: its origin, and what the handler has done about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracked {
    pub(crate) origin: Origin,
    /// It must not be re-invoked before: by the visibility timeouts that the handler has set so far.
    pub(crate) not_before: Timestamp,
    /// It was re-invoked or dead-lettered.
    pub(crate) settled: bool,
    /// By an invoke that was not refused, and what has hidden the message since: none may follow before.
    pub(crate) no_invoke_before: Timestamp,
    /// SQS has handed it out while it was hidden, or it has lost what it carried, so that nothing spaces its
    /// invokes.
    pub(crate) duplicated: bool,
    /// When a handler that lived, and had time for its calls, last decided about it.
    pub(crate) decided: Timestamp,
    /// The moves of its waits.
    pub(crate) hops: Hops,
}

impl Tracked {
    /// Of a message about which nothing was done yet.
    pub(crate) fn new(origin: Origin, now: Timestamp) -> Self {
        Self {
            origin,
            not_before: now,
            settled: false,
            no_invoke_before: now,
            duplicated: false,
            decided: now,
            hops: Hops::default(),
        }
    }
}
