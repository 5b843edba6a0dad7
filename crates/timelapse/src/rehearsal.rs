//! Runs the retry handler on one batch, against a simulated AWS that accepts every call, and records the handler's
//! calls.

use comeback_engine::{
    Attribute, BatchEvent, BatchReport, CallFailure, DeadLettered, Environment, InFlightCount, Move,
    Policies, Record, Timestamp, VisibilityChange,
};
use serde::Serialize;

use crate::account::{Answers, Invoked, Service, SimulatedAccount};

/// A call that the handler made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "operation")]
pub enum Call {
    /// Hides messages.
    #[serde(rename = "sqs:ChangeMessageVisibilityBatch")]
    ChangeMessageVisibilityBatch {
        /// The messages to hide.
        entries: Vec<Hidden>,
    },
    /// Invokes a target function asynchronously.
    #[serde(rename = "lambda:Invoke")]
    Invoke {
        /// The request's `FunctionName`: the ARN of the function to invoke.
        function_name: String,
        /// The payload as a string, because not every JSON parser preserves values such as `1E400` or repeated keys.
        payload: String,
    },
    /// Sends messages to the dead-letter queue.
    #[serde(rename = "sqs:SendMessageBatch")]
    SendMessageBatch {
        /// The messages for the dead-letter queue.
        messages: Vec<SentMessage>,
    },
    /// Moves messages by sending them to the retry queue again.
    #[serde(rename = "sqs:SendMessageBatch (retry queue)")]
    SendAgain {
        /// One copy of each moved message, without its body.
        copies: Vec<SentAgain>,
    },
}

/// A message to hide, and its new visibility timeout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hidden {
    /// The message's SQS id.
    pub message_id: String,
    /// The visibility timeout, in seconds.
    pub visibility_timeout: u64,
}

/// A message for the dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SentMessage {
    /// Name and value of each message attribute.
    pub attributes: Vec<(String, String)>,
    /// Body of the message.
    pub body: String,
}

/// The copy of a moved message, sent to the retry queue with a delay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SentAgain {
    /// The SQS id of the moved message, which this copy replaces.
    pub message_id: String,
    /// The number of seconds by which SQS delays the copy of the message.
    pub delay: u64,
    /// Value of the copy's message attribute `Comeback`.
    pub comeback: String,
}

/// The result of [`rehearse`]: the handler's report on the batch, and the calls that the handler made.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    /// The handler's report, with the outcome of each message.
    pub report: BatchReport<'a>,
    /// Every call that the handler made for a message, in order.
    pub calls: Vec<Call>,
}

/// Handles a batch at `now`, with no message in flight, no function paused, and every AWS call accepted.
pub fn rehearse<'a>(batch: &'a BatchEvent, policies: &Policies, now: Timestamp) -> Rehearsal<'a> {
    let account = SimulatedAccount::new(Recorder { now, calls: Vec::new() });
    let mut environment = Environment::new(policies.clone());
    let report = account.handle(&mut environment, batch, [now; 3]);
    let report = report.expect("BUG: these calls answer at once");
    Rehearsal { report, calls: account.service.into_inner().calls }
}

struct Recorder {
    now: Timestamp,
    calls: Vec<Call>,
}

impl Recorder {
    fn accept(&mut self, call: Call, entries: usize) -> Answers {
        self.calls.push(call);
        Ok(vec![Ok(()); entries])
    }
}

impl Service for Recorder {
    fn change_visibility(&mut self, changes: &[&&VisibilityChange<'_>]) -> Answers {
        let entry = |change: &&&VisibilityChange<'_>| Hidden {
            message_id: change.record.message_id.clone(),
            visibility_timeout: change.visibility_timeout.as_secs(),
        };
        let entries = changes.iter().map(entry).collect();
        self.accept(Call::ChangeMessageVisibilityBatch { entries }, changes.len())
    }

    fn invoke(&mut self, _: &Record, function_arn: &str, payload: String) -> Invoked {
        self.calls.push(Call::Invoke { function_name: function_arn.into(), payload });
        Ok(None)
    }

    fn send_dead_letters(&mut self, dead_lettered: &[&&DeadLettered<'_>]) -> Answers {
        let named = |it: &Attribute| (it.name.to_string(), it.value.clone());
        let message = |dead_lettered: &&&DeadLettered<'_>| SentMessage {
            attributes: dead_lettered.dead_letter.attributes.iter().map(named).collect(),
            body: dead_lettered.dead_letter.body.clone(),
        };
        let messages = dead_lettered.iter().map(message).collect();
        self.accept(Call::SendMessageBatch { messages }, dead_lettered.len())
    }

    fn send_again(&mut self, moves: &[&&Move<'_>]) -> Answers {
        let copy = |copy: &&&Move<'_>| SentAgain {
            message_id: copy.record.message_id.clone(),
            delay: copy.delay.as_secs(),
            comeback: copy.attribute.clone(),
        };
        self.accept(Call::SendAgain { copies: moves.iter().map(copy).collect() }, moves.len())
    }

    fn count_in_flight(&mut self) -> Result<InFlightCount, CallFailure> {
        Ok(InFlightCount { in_flight: 0, at: self.now })
    }

    fn read_pauses(&mut self) -> Result<Option<String>, CallFailure> {
        Ok(None)
    }
}
