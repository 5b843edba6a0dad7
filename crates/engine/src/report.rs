//! The outcomes of the messages in a batch.

use crate::account::CallFailure;
use crate::batch_event::BatchEvent;
use crate::outcome::Outcome;
use crate::pauses::Pause;

/// The outcome of a batch, one [`Outcome`] for each message.
#[derive(Clone, Debug)]
pub struct BatchReport<'a> {
    /// The batch that was handled.
    pub batch: &'a BatchEvent,
    /// True if a message has no id. The whole batch is then kept untouched.
    pub kept_whole: bool,
    /// The outcomes, in the order of the batch. For a message that the batch contains twice, only the later delivery
    /// has one.
    pub outcomes: Vec<Outcome<'a>>,
    /// The number of messages that were moved, and the number that could not be moved.
    pub moves: Moves,
    /// The first failure to hide a message before its target was re-invoked; `None` if every such message was hidden.
    /// If the handler then crashes, the target is invoked again after the queue's own visibility timeout.
    pub unguarded: Option<CallFailure>,
    /// The error from counting the messages in flight; `None` if no count failed.
    pub count_failure: Option<CallFailure>,
    /// The result of reading the pauses; `None` if this batch did not read the pauses.
    pub pauses: Option<PausesRead>,
}

/// The result of reading the pauses from SSM.
#[derive(Clone, Debug, PartialEq)]
pub enum PausesRead {
    /// The handler read the pauses.
    Known {
        /// Pauses that have been in effect for over 24 hours and may have been forgotten.
        long: Vec<Pause>,
        /// The error for each unreadable entry in `retries` and `cancels`.
        unreadable_requests: Vec<String>,
    },
    /// The pauses could not be read, so those from the last successful read still apply.
    AsBefore(CallFailure),
    /// No read of the pauses has succeeded in this handler environment. Until one succeeds, no function is invoked, and
    /// `MAX_AGE` alone does not dead-letter an event.
    Unknown(CallFailure),
}

/// The outcome of the moves in a batch: how many succeeded and how many failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// The number of messages that were sent again.
    pub made: usize,
    /// The number of messages that could not be sent again and were hidden instead.
    pub failed: usize,
    /// The first error from sending a message again; `None` if `failed` is 0.
    pub problem: Option<CallFailure>,
}

impl<'a> BatchReport<'a> {
    /// Creates the report for a batch that has not been handled yet.
    pub fn new(batch: &'a BatchEvent) -> Self {
        Self {
            batch,
            kept_whole: batch.lacks_an_id(),
            outcomes: Vec::new(),
            moves: Moves::default(),
            unguarded: None,
            count_failure: None,
            pauses: None,
        }
    }

    /// The message ids for `batchItemFailures`. An empty id makes Lambda treat the whole batch as failed.
    pub fn batch_item_failures(&self) -> impl Iterator<Item = &'a str> {
        let untouched = if self.kept_whole { self.batch.records.as_slice() } else { &[] };
        let untouched = untouched.iter().map(|record| record.message_id.as_str());
        let unsettled = self.outcomes.iter().filter(|outcome| !outcome.settled());
        let incomplete = self.batch.incomplete.iter().map(|message| message.message_id.as_str());
        untouched.chain(unsettled.map(|outcome| outcome.record.message_id.as_str())).chain(incomplete)
    }
}
