//! The batch that the handler is working on: what it sees of each message, and what it has done about
//! each so far.

use comeback_engine::{Record, Timestamp};

use super::batch::{Batch, Polled};
use crate::aws::queue::{Receipt, Received};
use crate::check::bounds::Look;

#[derive(Debug)]
pub(crate) struct Handling {
    /// The handler's clock when it started.
    pub(crate) now: Timestamp,
    /// When its messages were received.
    pub(crate) received_at: Timestamp,
    messages: Vec<InHand>,
    /// Calls until the handler dies.
    pub(crate) calls_left: u64,
}

/// Where in its batch a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position(pub(super) usize);

/// A message in the handler's hands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InHand {
    pub(crate) received: Received,
    pub(crate) look: Look,
    pub(crate) done: Done,
    /// Its re-invocation was sent, and the handler does not know what became of it.
    pub(crate) unanswered: bool,
}

/// What the handler has done about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// It never saw the message, which lacks a field.
    Unseen,
    Nothing,
    /// It hid the message for its backoff.
    Deferred,
    /// It tried to re-invoke or to dead-letter the message.
    Tried,
    /// And that was accepted, whether or not it knows.
    Settled,
}

impl Handling {
    /// `not_before` is what the queue says of a message that it still has.
    pub(crate) fn of(batch: &Batch, calls_left: u64, not_before: impl Fn(&Received) -> Timestamp) -> Self {
        let in_hand = |(&Polled { received, origin }, record): (&Polled, &Record)| InHand {
            received,
            look: Look {
                origin,
                receive_count: record.receive_count,
                first_receive: record.first_receive,
                sent: record.sent,
                not_before: not_before(&received),
            },
            done: Done::Nothing,
            unanswered: false,
        };
        Self {
            now: batch.clock,
            received_at: batch.started,
            messages: batch.messages.iter().zip(&batch.records).map(in_hand).collect(),
            calls_left,
        }
    }

    pub(crate) fn at(&self, position: Position) -> &InHand {
        &self.messages[position.0]
    }

    /// The message that a receipt handle belongs to.
    pub(crate) fn of_receipt(&self, handle: &str) -> Option<Position> {
        let receipt = Receipt::parse(handle)?;
        self.messages.iter().position(|message| message.received.receipt == receipt).map(Position)
    }

    /// The message that a re-invocation or a dead-letter belongs to, which neither says. If an event was
    /// invoked twice, a batch may have two messages of it. So this is the first candidate that the check
    /// accepts, and one about which nothing was done yet if there is any; the handler makes its calls in
    /// the order of its records. `None` if there are no candidates; the check's first error if it
    /// accepts none of them.
    pub(crate) fn find<E>(
        &self,
        is_candidate: impl Fn(&Look) -> bool,
        check: impl Fn(&InHand) -> Result<(), E>,
    ) -> Option<Result<Position, E>> {
        let mut refused = None;
        for done in [Done::Nothing, Done::Tried, Done::Settled, Done::Deferred] {
            for (index, message) in self.messages.iter().enumerate() {
                if message.done != done || !is_candidate(&message.look) {
                    continue;
                }
                match check(message) {
                    Ok(()) => return Some(Ok(Position(index))),
                    Err(error) => drop(refused.get_or_insert(error)),
                }
            }
        }
        refused.map(Err)
    }

    /// The handler does not see a message.
    pub(crate) fn overlook(&mut self, position: Position) {
        self.messages[position.0].done = Done::Unseen;
    }

    /// Something was done about a message.
    pub(crate) fn mark(&mut self, position: Position, done: Done) {
        self.copies_of(position).filter(|copy| copy.done != Done::Unseen).for_each(|copy| copy.done = done);
    }

    pub(crate) fn mark_unanswered(&mut self, position: Position) {
        self.copies_of(position).for_each(|copy| copy.unanswered = true);
    }

    /// The message, of which the batch may have several copies.
    fn copies_of(&mut self, position: Position) -> impl Iterator<Item = &mut InHand> {
        let message = self.at(position).received.id;
        self.messages.iter_mut().filter(move |copy| copy.received.id == message)
    }

    /// The messages that were re-invoked or dead-lettered.
    pub(crate) fn settled(&self) -> impl Iterator<Item = Received> {
        self.messages.iter().filter(|message| message.done == Done::Settled).map(|message| message.received)
    }
}
