//! What the handler needs of the world. Each method is one API call; packing, order and what a
//! failure means are decided on this side, so every implementation behaves alike.

use std::future::Future;
use std::time::Duration;

use crate::dead_letter::DeadLetter;

/// Entries an SQS batch call takes at most.
/// Source: `ChangeMessageVisibilityBatch` and `SendMessageBatch`, SQS API reference.
pub const SQS_BATCH_ENTRIES: usize = 10;

/// How long a call may take, retries within it included.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long before the function's own timeout `handle_batch`'s deadline has to come: a call under way
/// then still ends in time, and so does the response.
pub const RESERVE: Duration = CALL_TIMEOUT.saturating_add(Duration::from_secs(2));

/// The three ports, borrowed for one batch.
#[derive(Debug)]
pub struct Ports<'a, Q, T, D> {
    /// The queue the batch came from.
    pub retry_queue: &'a Q,
    /// The functions that may be re-invoked.
    pub target: &'a T,
    /// Where events go that are given up.
    pub dead_letter_queue: &'a D,
}

/// Hides messages of the retry queue.
pub trait RetryQueue {
    /// One `ChangeMessageVisibilityBatch` of at most [`SQS_BATCH_ENTRIES`]. Answers for each entry
    /// in order; an entry without an answer counts as failed.
    fn change_visibility(
        &self,
        entries: &[VisibilityChange<'_>],
    ) -> impl Future<Output = Vec<Result<(), CallFailure>>>;
}

/// Re-invokes functions.
pub trait Target {
    /// One asynchronous `Invoke` of exactly `function_arn`, without a qualifier of its own.
    fn invoke(&self, function_arn: &str, payload: String) -> impl Future<Output = Result<(), InvokeFailure>>;
}

/// Keeps events that were given up.
pub trait DeadLetterQueue {
    /// One `SendMessageBatch` of at most [`SQS_BATCH_ENTRIES`] and the size limit of a batch.
    /// Answers for each message in order; a message without an answer counts as not sent.
    fn send(&self, messages: &[DeadLetter]) -> impl Future<Output = Vec<Result<(), CallFailure>>>;
}

/// One entry of a `ChangeMessageVisibilityBatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisibilityChange<'a> {
    /// Of the receive at hand.
    pub receipt_handle: &'a str,
    /// Whole seconds, 1 to 43,170, counted by SQS from its receipt of the call.
    pub visibility_timeout: Duration,
}

/// A call, or one entry of it, that did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// What the service said.
    pub cause: String,
    /// What an operator can do about it, where that is known.
    pub remedy: Option<&'static str>,
}

/// Why an `Invoke` was not accepted, by what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvokeFailure {
    /// It may work later: throttled, 5xx, timed out, unknown, or mendable by an operator. The
    /// message is kept and hidden; no retry is consumed.
    Later(CallFailure),
    /// The function does not exist (404).
    NotFound(String),
    /// The payload is over Lambda's limit (413).
    TooLarge(String),
    /// Lambda will never accept this request.
    Refused(String),
}
