//! The batch that the handler is working on: what it sees of each message, and what it has done about
//! each so far.

use comeback_engine::{Action, Pauses, Policy, Record, Timestamp, decide};

use super::batch::{Batch, Polled};
use crate::aws::queue::{Receipt, Received};
use crate::check::bounds::Look;
use crate::check::origin::Tracked;
use crate::faults::fault::Fault;
use crate::scenario::START;

#[derive(Debug)]
pub(crate) struct Handling {
    /// The handler's clock when it started.
    pub(crate) now: Timestamp,
    /// When its messages were received.
    pub(crate) received_at: Timestamp,
    /// When its environment last tried to read them.
    pub(crate) tried_to_read: Option<Timestamp>,
    messages: Vec<InHand>,
    /// The messages of an event of which there are several: where they are, and what the handler sees of them.
    siblings: Vec<(usize, Record)>,
    /// Calls until the handler dies.
    pub(crate) calls_left: u64,
    /// It dies once it has moved messages.
    pub(crate) dies_of_moves: bool,
    /// It has moved messages, and died of that.
    pub(crate) died: bool,
    /// It is older than moves.
    pub(crate) is_old: bool,
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
    /// A copy of it was accepted, of which the handler does not know.
    pub(crate) copied: bool,
    /// The engine decides to keep it for now.
    pub(crate) waits: bool,
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
    /// And that was accepted, or a copy of the message was, whether or not it knows.
    Settled,
}

impl Handling {
    /// `tracked` is what the queue says of a message that it still has.
    pub(crate) fn of<'t>(batch: &Batch, tracked: impl Fn(&Received) -> Option<&'t Tracked>) -> Self {
        let in_hand = |(&Polled { received, origin }, record): (&Polled, &Record)| {
            let tracked = tracked(&received).filter(|_| !batch.old_handler);
            InHand {
                received,
                look: Look {
                    origin,
                    receive_count: record.receive_count,
                    first_receive: record.first_receive,
                    sent: record.sent,
                    asked: origin.asked.map(|asked| {
                        asked.window(record.moved.as_ref().map_or(record.sent, |moved| moved.sent))
                    }),
                    not_before: tracked.map_or(START, |tracked| tracked.not_before),
                    held_until: tracked.and_then(|tracked| tracked.hops.held_until),
                },
                done: Done::Nothing,
                unanswered: false,
                copied: false,
                waits: false,
            }
        };
        let death = batch.death;
        let dies_of_moves = death.is_some_and(|death| death.fault == Fault::HandlerDiedAfterMove);
        Self {
            now: batch.clock,
            received_at: batch.started,
            tried_to_read: batch.environment.tried_to_read,
            messages: batch.messages.iter().zip(&batch.records).map(in_hand).collect(),
            siblings: siblings(batch),
            calls_left: death.map_or(u64::MAX, |death| death.calls),
            dies_of_moves,
            died: false,
            is_old: batch.old_handler,
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
    /// accepts, and one about which nothing was done yet if there is any, and that does not wait; the
    /// handler makes its calls in the order of its records. `None` if there are no candidates; the check's
    /// first error if it accepts none of them.
    pub(crate) fn find<E>(
        &self,
        is_candidate: impl Fn(&Look) -> bool,
        check: impl Fn(&InHand) -> Result<(), E>,
    ) -> Option<Result<Position, E>> {
        let mut refused = None;
        let all = [Done::Nothing, Done::Tried, Done::Settled, Done::Deferred];
        for (done, waits) in all.into_iter().flat_map(|done| [(done, false), (done, true)]) {
            for (index, message) in self.messages.iter().enumerate() {
                if message.done != done || message.waits != waits || !is_candidate(&message.look) {
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

    /// Asks the engine which of the messages wait, where several are of one event: the handler moves those last,
    /// and says of no invoke whose it is.
    pub(crate) fn tell_apart(&mut self, policy: &Policy, pauses: &Pauses) {
        for (index, record) in &self.siblings {
            let carried = record.moved.as_ref().and_then(|moved| moved.not_before);
            let waits = || {
                matches!(decide(record, policy, pauses, self.now), Action::Defer { .. } | Action::Hold { .. })
            };
            self.messages[*index].waits = carried.is_some_and(|until| until > self.now) || waits();
        }
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

    pub(crate) fn mark_copied(&mut self, position: Position) {
        self.copies_of(position).for_each(|copy| copy.copied = true);
    }

    /// The message, of which the batch may have several copies.
    fn copies_of(&mut self, position: Position) -> impl Iterator<Item = &mut InHand> {
        let message = self.at(position).received.id;
        self.messages.iter_mut().filter(move |copy| copy.received.id == message)
    }

    /// The messages that were re-invoked, dead-lettered or moved.
    pub(crate) fn settled(&self) -> impl Iterator<Item = Received> {
        self.messages.iter().filter(|message| message.done == Done::Settled).map(|message| message.received)
    }
}

fn siblings(batch: &Batch) -> Vec<(usize, Record)> {
    let is_sibling = |index: usize| {
        let event = batch.messages[index].origin.event;
        batch.events().filter(|other| *other == event).count() > 1
    };
    let places = (0..batch.messages.len()).filter(|&index| is_sibling(index));
    places.map(|index| (index, batch.records[index].clone())).collect()
}
