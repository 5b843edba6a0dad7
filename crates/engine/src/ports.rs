//! What the handler needs of the world. What a failure means is decided on this side; how many API
//! calls it takes, and what is called again within the deadline, on the other.

use std::future::Future;
use std::time::Duration;

use comeback_backoff::ladder;

use crate::dead_letter::DeadLetter;

ladder! {
    /// The waits between the API calls that carry one entry to SQS: for every implementation of
    /// [`RetryQueue`] and [`DeadLetterQueue`].
    pub SqsBatchCalls: 100ms, 300ms, 1s
}

/// How long one API call may take, whatever it takes.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long before the function's own timeout `handle_batch`'s deadline has to come: an API call under
/// way then still ends in time, and so does the response.
pub const RESERVE: Duration = CALL_TIMEOUT.saturating_add(Duration::from_secs(2));
// A wait between calls is not cut short by the deadline, so it must end within as much.
const _: () = assert!(SqsBatchCalls::LONGEST_TOTAL_WAIT.as_millis() < CALL_TIMEOUT.as_millis());

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
    /// Hides each of these, any number of them. Answers for each in order; an entry without an answer
    /// counts as failed. No API call is started once `deadline` has resolved, which wakes nobody: it
    /// is to be looked at before each.
    fn change_visibility(
        &self,
        entries: &[VisibilityChange<'_>],
        deadline: impl Future<Output = ()>,
    ) -> impl Future<Output = Vec<Result<(), CallFailure>>>;
}

/// Re-invokes functions.
pub trait Target {
    /// One asynchronous `Invoke` of exactly `function_arn`, without a qualifier of its own.
    fn invoke(&self, function_arn: &str, payload: String) -> impl Future<Output = Result<(), InvokeFailure>>;
}

/// Keeps events that were given up.
pub trait DeadLetterQueue {
    /// Sends each of these, any number of them. Answers for each in order; a message without an
    /// answer counts as not sent. The deadline is as for [`RetryQueue::change_visibility`].
    fn send(
        &self,
        messages: &[DeadLetter],
        deadline: impl Future<Output = ()>,
    ) -> impl Future<Output = Vec<Result<(), CallFailure>>>;
}

/// For how long a message is hidden.
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
