//! The AWS account as the handler sees it: the trait `Account`, and the wrapper that makes the calls for a batch. An
//! implementation of `Account` decides how many API calls to make, and retries failed API calls until the deadline. The
//! engine decides what to do with a message whose call failed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::identity;
use std::future::Future;
use std::iter::repeat;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use comeback_backoff::ladder;
use comeback_envelope::{Envelope, Style};
use futures_util::future::FutureExt;
use serde::{Deserialize, Serialize, Serializer};

use crate::dead_letter::DeadLetter;
use crate::failed_event::logged;
use crate::record::{Attribute, MOVED_ATTRIBUTE, Record};
use crate::time::Timestamp;

ladder! {
    /// The waits before an [`Account`] retries a failed entry in an SQS batch call.
    pub SqsBatchCalls: 100ms, 300ms, 1s
}

/// Time limit for one call to SQS, including its retries.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// The retry handler's Lambda timeout, as set in `template.yaml`.
pub const HANDLER_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for one `Invoke` call. The limit is long because only Lambda's response shows whether the event was
/// accepted.
pub const INVOKE_TIMEOUT: Duration = Duration::from_secs(20);
/// Every `Invoke` ends at least this long before the handler's own timeout, so that messages can still be dead-lettered
/// or hidden even if Lambda does not respond to any of the calls.
pub const INVOKE_RESERVE: Duration = Duration::from_secs(10);
/// The batch's deadline is this long before the handler's own timeout, so that a call already in progress can finish
/// and the response can be sent in time.
pub const RESERVE: Duration = CALL_TIMEOUT.saturating_add(Duration::from_secs(2));
/// Time limit for counting the retry queue's messages in flight. The limit is short because the count is not
/// essential: without it, the handler moves messages instead of hiding them.
pub const COUNT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit for reading the pauses from SSM. The limit is short because the whole batch waits for SSM's response.
pub const PAUSES_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of concurrent `Invoke` calls: all ten messages in a batch may be due at once.
pub(crate) const CONCURRENT_INVOKES: usize = 10;
// The deadline does not cut short a wait between two attempts of a call, so all of a call's waits together must fit
// into its time limit.
const _: () = assert!(SqsBatchCalls::LONGEST_TOTAL_WAIT.as_millis() < CALL_TIMEOUT.as_millis());
const _: () = assert!(RESERVE.as_millis() < INVOKE_RESERVE.as_millis());

/// The AWS calls that the handler makes.
///
/// Some methods take a function `past_deadline`, which returns true once it is too late to start an API call.
/// Implementations of these methods must call it before each API call.
pub trait Account {
    /// Hides messages in the retry queue, each with its own visibility timeout. Returns one result per message, in
    /// order; a missing result counts as a failure.
    fn change_visibility(
        &self,
        changes: &[VisibilityChange<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> impl Future<Output = Vec<Result<(), CallFailure>>>;

    /// Re-invokes a message's target, `function_arn`, with one asynchronous `Invoke` call. The ARN is used exactly as
    /// it is: no qualifier is added. If the message has a [trace header](Record::trace), the invocation joins that
    /// trace. Returns the request id of the new invocation, or `None` if Lambda's response has none.
    fn invoke(
        &self,
        record: &Record,
        function_arn: &str,
        payload: String,
    ) -> impl Future<Output = Result<Option<String>, InvokeFailure>>;

    /// Sends messages to the dead-letter queue. Returns the results in the order of the messages. A message without a
    /// result counts as not sent.
    fn send_dead_letters(
        &self,
        dead_lettered: &[DeadLettered<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> impl Future<Output = Vec<Result<(), CallFailure>>>;

    /// Sends a copy of each message to the retry queue. A copy must never be sent twice, because each accepted copy
    /// would be retried separately. Returns one result per message, in order. A missing result means that SQS may have
    /// accepted the copy.
    fn send_again(
        &self,
        moves: &[Move<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> impl Future<Output = Vec<Result<(), MoveFailure>>>;

    /// Counts the retry queue's messages in flight. Takes at most [`COUNT_TIMEOUT`].
    fn count_in_flight(&self) -> impl Future<Output = Result<InFlightCount, CallFailure>>;

    /// Reads the SSM parameter that holds the pauses. Takes at most [`PAUSES_TIMEOUT`]. Returns the parameter's
    /// value, or `None` if the parameter does not exist. Called only if the environment variable `PAUSES` is set.
    fn read_pauses(&self) -> impl Future<Output = Result<Option<String>, CallFailure>>;
}

/// A message to hide, and its new visibility timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisibilityChange<'a> {
    /// The message to hide.
    pub record: &'a Record,
    /// The new visibility timeout: 1 to 43,170 whole seconds, counted from when SQS receives the call.
    pub visibility_timeout: Duration,
}

/// A message to dead-letter, and the dead-letter that replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLettered<'a> {
    /// The message in the retry queue.
    pub record: &'a Record,
    /// The message to send to the dead-letter queue.
    pub dead_letter: &'a DeadLetter,
}

/// A message to be replaced by a copy, which is sent to the retry queue with a delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move<'a> {
    /// The message to copy. The copy has a byte-for-byte identical body, the same `AWSTraceHeader`, and the message
    /// attributes that [`attributes`](Self::attributes) returns.
    pub record: &'a Record,
    /// JSON value of the copy's message attribute [`MOVED_ATTRIBUTE`](crate::MOVED_ATTRIBUTE).
    pub attribute: String,
    /// `DelaySeconds` of the copy: whole seconds, 1 to 900.
    pub delay: Duration,
}

impl Move<'_> {
    /// The copy's message attributes: `Comeback`, which is the handler's own, and as many of the sender's attributes as
    /// fit within SQS's limit of ten.
    pub fn attributes(&self) -> Vec<Attribute> {
        let value = self.attribute.clone();
        let ours = Attribute { name: MOVED_ATTRIBUTE.into(), data_type: "String".into(), value };
        Attribute::beside(vec![ours], &self.record.attributes)
    }

    /// The copy's size as SQS counts it, in bytes: the body, and each attribute's name, type and value.
    pub fn size(&self) -> usize {
        self.record.body.len() + self.attributes().iter().map(Attribute::size).sum::<usize>()
    }
}

/// Error from sending the copy of a [`Move`] to the retry queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveFailure {
    /// SQS did not accept the copy. The original is hidden until its wait ends.
    NotSent(CallFailure),
    /// SQS did not respond when the handler sent the copy, so SQS may have accepted the copy. The original message is
    /// hidden for an hour or longer, because each further move could add another copy of the event.
    Unanswered(String),
}

/// The number of messages in flight in the retry queue, and the time at which they were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightCount {
    /// SQS's `ApproximateNumberOfMessagesNotVisible`: the messages that are hidden or being handled.
    pub in_flight: u64,
    /// When the messages were counted.
    pub at: Timestamp,
}

/// A failed AWS call, or a failed entry in a batch call, as logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFailure {
    /// The error message from the AWS service, or the reason why the service did not respond.
    #[serde(rename = "problem", serialize_with = "cut")]
    pub cause: String,
    /// Advice on how an operator can fix the cause of the failure; `None` if no fix is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Cow<'static, str>>,
}

/// A failed `Invoke` call. The variant determines what the handler does with the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvokeFailure {
    /// Lambda refused the call for now: the call was throttled, got a 5xx response, or failed because of a problem that
    /// an operator can fix. The message is kept and hidden, and the attempt does not count as a retry.
    Later(CallFailure),
    /// The call was never sent. The message is kept and hidden, and the attempt does not count as a retry.
    NotSent(CallFailure),
    /// The call was sent, but Lambda did not respond, so it may have accepted the event. The message is kept and hidden
    /// for one to two hours, and the attempt does not count as a retry.
    Unanswered(String),
    /// The target function does not exist (404).
    NotFound(String),
    /// The payload exceeds Lambda's limit (413).
    TooLarge(String),
    /// Lambda will never accept this request, for a reason other than `NotFound` or `TooLarge`.
    Refused(String),
}

/// Serializes a string, truncated to the maximum length of strings in the log.
fn cut<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(logged(text))
}

/// Wraps the account for one batch. Starts no call after the deadline, and gives every message a result even if the
/// account panics or returns too few results.
pub(crate) struct BatchAccount<'c, A> {
    pub(crate) account: &'c A,
    pub(crate) past_deadline: &'c dyn Fn() -> bool,
}

const NOT_STARTED: &str = "not started: too close to the function's deadline";
const NO_ANSWER: &str = "the service gave no answer for this entry";

fn failure(cause: &str) -> CallFailure {
    CallFailure { cause: cause.into(), remedy: None }
}

/// The results of a call, by message id.
pub(crate) type Answers<E = CallFailure> = HashMap<String, Result<(), E>>;

impl<A: Account> BatchAccount<'_, A> {
    pub(crate) async fn change_visibility(&self, changes: &[VisibilityChange<'_>]) -> Answers {
        let call = async { self.account.change_visibility(changes, self.past_deadline).await };
        self.answers(changes.iter().map(|change| change.record), call, identity, identity).await
    }

    pub(crate) async fn send_dead_letters(&self, dead_lettered: &[DeadLettered<'_>]) -> Answers {
        let call = async { self.account.send_dead_letters(dead_lettered, self.past_deadline).await };
        self.answers(dead_lettered.iter().map(|it| it.record), call, identity, identity).await
    }

    pub(crate) async fn send_again(&self, moves: &[Move<'_>]) -> Answers<MoveFailure> {
        let call = async { self.account.send_again(moves, self.past_deadline).await };
        let unanswered = |failure: CallFailure| MoveFailure::Unanswered(failure.cause);
        self.answers(moves.iter().map(|copy| copy.record), call, MoveFailure::NotSent, unanswered).await
    }

    /// Counts the retry queue's messages in flight. Returns `None` if it is too late to start the call.
    pub(crate) async fn count_in_flight(&self) -> Option<Result<InFlightCount, CallFailure>> {
        Some(self.made(async { self.account.count_in_flight().await }).await?.flatten())
    }

    /// Reads the SSM parameter that holds the pauses. Returns `None` if it is too late to start the call, and
    /// `Some(Ok(None))` if the parameter does not exist.
    pub(crate) async fn read_pauses(&self) -> Option<Result<Option<String>, CallFailure>> {
        Some(self.made(async { self.account.read_pauses().await }).await?.flatten())
    }

    pub(crate) async fn invoke(
        &self,
        record: &Record,
        function_arn: &str,
        envelope: &Envelope<'_>,
        style: Style,
    ) -> Result<Option<String>, InvokeFailure> {
        let call = async { self.account.invoke(record, function_arn, envelope.seal(style)).await };
        match self.made(call).await {
            Some(Ok(answer)) => answer,
            // The request may have been sent before the panic.
            Some(Err(panic)) => Err(InvokeFailure::Unanswered(panic.cause)),
            None => Err(InvokeFailure::NotSent(failure(NOT_STARTED))),
        }
    }

    /// Makes a call, and maps the id of each message to its result. Results are matched to `records` by position.
    /// `not_sent` creates the error for a call that was never started, and `unanswered` the error for any other missing
    /// result.
    async fn answers<'r, E: Clone>(
        &self,
        records: impl ExactSizeIterator<Item = &'r Record>,
        call: impl Future<Output = Vec<Result<(), E>>>,
        not_sent: impl Fn(CallFailure) -> E,
        unanswered: impl Fn(CallFailure) -> E,
    ) -> Answers<E> {
        if records.len() == 0 {
            return Answers::new();
        }
        let (given, missing) = match self.made(call).await {
            Some(Ok(given)) => (given, unanswered(failure(NO_ANSWER))),
            Some(Err(panic)) => (Vec::new(), unanswered(panic)),
            None => (Vec::new(), not_sent(failure(NOT_STARTED))),
        };
        let given = given.into_iter().chain(repeat(Err(missing)));
        records.map(|record| record.message_id.clone()).zip(given).collect()
    }

    /// Awaits `call`, and catches any panic in it. Returns `None` if the deadline has passed. A future does nothing
    /// until it is polled, so no call is made after the deadline.
    async fn made<O>(&self, call: impl Future<Output = O>) -> Option<Result<O, CallFailure>> {
        if (self.past_deadline)() {
            return None;
        }
        Some(AssertUnwindSafe(call).catch_unwind().await.map_err(|_| panicked()))
    }
}

/// Runs `work` for one record, and catches any panic in it, so that other records are not affected.
pub(crate) fn isolated<O>(work: impl FnOnce() -> O) -> Result<O, CallFailure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked())
}

pub(crate) fn panicked() -> CallFailure {
    CallFailure {
        cause: "internal error (a panic; see the log above)".into(),
        remedy: Some("report it with this message's body".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use super::*;

    #[test]
    fn a_panic_is_a_failed_call() {
        assert_eq!(isolated(|| 7), Ok(7));
        // `resume_unwind` panics without printing a message.
        assert_eq!(isolated::<()>(|| resume_unwind(Box::new("planned"))), Err(panicked()));
    }
}
