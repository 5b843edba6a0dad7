//! The batch that is in the handler's hands while it runs: what it was told of each message, and
//! what it has done about each so far.

use comeback_engine::{Record, Timestamp};

use crate::aws::mapping::Batch;
use crate::aws::queue::{Receipt, Received};
use crate::check::invariants::Broken;

#[derive(Debug)]
pub(crate) struct Handling {
    /// The handler's clock when it started.
    pub(crate) now: Timestamp,
    pub(crate) looks: Vec<Look>,
    /// Calls until the handler dies.
    pub(crate) calls_left: u64,
}

/// What the handler was told of a message.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) received: Received,
    /// As told, which may be wrong.
    pub(crate) receive_count: u32,
    pub(crate) first_receive: Timestamp,
    pub(crate) sent: Timestamp,
    /// By what any handler asked for before, the message cannot be due earlier.
    pub(crate) not_before: Timestamp,
    pub(crate) done: Done,
}

/// What the handler has done about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// It never saw the message, which lacks a field.
    Unseen,
    Nothing,
    /// It asked for it to be hidden.
    Deferred,
    /// It tried to re-invoke or to dead-letter it.
    Tried,
    /// And that was accepted, whether or not it knows.
    Settled,
}

impl Handling {
    /// `not_before` is the message's, where the queue still has it.
    pub(crate) fn of(batch: &Batch, calls_left: u64, not_before: impl Fn(&Received) -> Timestamp) -> Self {
        let look = |(&received, record): (&Received, &Record)| Look {
            received,
            receive_count: record.receive_count,
            first_receive: record.first_receive,
            sent: record.sent,
            not_before: not_before(&received),
            done: Done::Nothing,
        };
        Self {
            now: batch.clock,
            looks: batch.received.iter().zip(&batch.records).map(look).collect(),
            calls_left,
        }
    }

    /// The message that a receipt handle is of.
    pub(crate) fn of_receipt(&self, handle: &str) -> Option<usize> {
        let receipt = Receipt::parse(handle)?;
        self.looks.iter().position(|look| look.received.receipt == receipt)
    }

    /// The message that a re-invocation or a dead-letter is of: neither says. An event that was
    /// invoked twice may have two in one batch, so it is the first that passes the check, of those
    /// that nothing was done about yet if there are any; the handler's calls come in the order of its
    /// records. `None` if there are no candidates, an error if none passes.
    pub(crate) fn find(
        &self,
        is_candidate: impl Fn(&Look) -> bool,
        check: impl Fn(&Look) -> Result<(), Broken>,
    ) -> Option<Result<usize, Broken>> {
        let mut found: Option<Result<usize, Broken>> = None;
        for done in [Done::Nothing, Done::Tried, Done::Settled, Done::Deferred] {
            for (place, look) in self.looks.iter().enumerate() {
                if look.done != done || !is_candidate(look) {
                    continue;
                }
                match check(look) {
                    Ok(()) => return Some(Ok(place)),
                    Err(broken) => drop(found.get_or_insert(Err(broken))),
                }
            }
        }
        found
    }

    /// Something was done about a message, of which the batch may have several copies.
    pub(crate) fn mark(&mut self, place: usize, done: Done) {
        let message = self.looks[place].received.id;
        let copies = self.looks.iter_mut().filter(|look| look.received.id == message);
        copies.filter(|look| look.done != Done::Unseen).for_each(|look| look.done = done);
    }
}

impl Look {
    /// Whether the handler was told that this is the message's first receive.
    pub(crate) fn is_told_first(&self) -> bool {
        self.receive_count <= 1
    }
}
