//! The AWS account as the handler sees it: the one port. This side decides what a failure means; the
//! other side decides how many API calls a request takes, and repeats calls within the deadline.

use std::future::Future;
use std::time::Duration;

use comeback_backoff::ladder;

use crate::dead_letter::DeadLetter;
use crate::message::moved::MOVED_ATTRIBUTE;
use crate::{Record, Timestamp, TraceHeader};

ladder! {
    /// The waits between the API calls that carry one entry to SQS, in every [`Account`].
    pub SqsBatchCalls: 100ms, 300ms, 1s
}

/// How long one call to SQS may take, with all of its tries.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// The retry handler's `Timeout` in `template.yaml`.
pub const HANDLER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long an `Invoke` may take. Its answer tells an accepted event from a lost one, so it is worth
/// waiting for.
pub const INVOKE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long before the function's own timeout every `Invoke` has to end, so that dead-letters and
/// hidings still go out when none was answered.
pub const INVOKE_RESERVE: Duration = Duration::from_secs(10);
/// How long before the function's own timeout `handle_batch`'s deadline has to come: an API call under
/// way then still ends in time, and so does the response.
pub const RESERVE: Duration = CALL_TIMEOUT.saturating_add(Duration::from_secs(2));
/// How long a look at the retry queue may take: it comes last, and no message depends on it.
pub const LOOK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a read of the pauses may take: the batch waits for it.
pub const PAUSES_TIMEOUT: Duration = Duration::from_secs(1);
// A wait between calls is not cut short by the deadline, so it must end within as much.
const _: () = assert!(SqsBatchCalls::LONGEST_TOTAL_WAIT.as_millis() < CALL_TIMEOUT.as_millis());
const _: () = assert!(RESERVE.as_millis() < INVOKE_RESERVE.as_millis());

/// What the handler can do in its account.
///
/// `past_deadline` answers whether it is too late to start an API call. An implementation asks it
/// before each call that it starts.
pub trait Account {
    /// Hides these messages of the retry queue, any number of them. Answers for each in order; an
    /// entry without an answer counts as failed.
    fn change_visibility(
        &self,
        changes: &[VisibilityChange<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> impl Future<Output = Vec<Result<(), CallFailure>>>;

    /// Re-invokes a function: one asynchronous `Invoke` of exactly `function_arn`, without a
    /// qualifier of its own, as a part of that trace if there is one. Answers with the id of the request, which is the invocation's, if the service
    /// named one.
    fn invoke(
        &self,
        function_arn: &str,
        payload: String,
        trace: Option<TraceHeader<'_>>,
    ) -> impl Future<Output = Result<Option<String>, InvokeFailure>>;

    /// Sends these to the dead-letter queue, any number of them. Answers for each in order; a
    /// dead-letter without an answer counts as not sent.
    fn send_dead_letters(
        &self,
        letters: &[&DeadLetter],
        past_deadline: &dyn Fn() -> bool,
    ) -> impl Future<Output = Vec<Result<(), CallFailure>>>;

    /// Sends these to the retry queue again, any number of them, and none twice: each copy that is accepted
    /// goes on by itself. Answers for each in order; a copy without an answer may have been accepted.
    fn send_again(
        &self,
        moves: &[Move<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> impl Future<Output = Vec<Result<(), MoveFailure>>>;

    /// Asks how many messages of the retry queue are in flight; within [`LOOK_TIMEOUT`].
    fn look(&self) -> impl Future<Output = Result<Look, CallFailure>>;

    /// Reads the parameter that holds the pauses; within [`PAUSES_TIMEOUT`]. Answers with its text, or `None`
    /// if there is no such parameter. Only an account whose handler has `PAUSES` is asked.
    fn read_pauses(&self) -> impl Future<Output = Result<Option<String>, CallFailure>>;
}

/// For how long a message is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisibilityChange<'a> {
    /// Of the receive at hand.
    pub receipt_handle: &'a str,
    /// Whole seconds, 1 to 43,170, counted by SQS from its receipt of the call.
    pub visibility_timeout: Duration,
}

/// A copy of a message, to be sent in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move<'a> {
    /// The message. The copy has its body, byte for byte, and its `AWSTraceHeader`.
    pub record: &'a Record,
    /// The value of the copy's attribute [`MOVED_ATTRIBUTE`](crate::MOVED_ATTRIBUTE), JSON.
    pub attribute: String,
    /// Whole seconds, 1 to 900, in which SQS does not hand the copy out.
    pub delay: Duration,
}

impl Move<'_> {
    /// What SQS counts: the body, and the attribute's name, type and value.
    pub fn size(&self) -> usize {
        self.record.body.len() + MOVED_ATTRIBUTE.len() + "String".len() + self.attribute.len()
    }
}

/// Why a copy is not known to be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveFailure {
    /// It was not accepted. The message is hidden for its wait instead.
    NotSent(CallFailure),
    /// It was sent and nothing is known of it: it may have been accepted. The message is hidden for one to
    /// two hours at least, so that a blackout cannot multiply it with each wait.
    Unanswered(String),
}

/// What a look at the retry queue found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// `ApproximateNumberOfMessagesNotVisible`: hidden, or in a handler's hands.
    pub in_flight: u64,
    /// When it looked.
    pub at: Timestamp,
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
    /// It may work later: throttled, 5xx, never sent, or something that an operator can fix. The
    /// event was not accepted. The message is kept and hidden; no retry is consumed.
    Later(CallFailure),
    /// It was sent and nothing is known of it: the event may have been accepted. The message is kept and
    /// hidden for one to two hours; no retry is consumed.
    Unanswered(String),
    /// The function does not exist (404).
    NotFound(String),
    /// The payload is over Lambda's limit (413).
    TooLarge(String),
    /// Lambda will never accept this request.
    Refused(String),
}
