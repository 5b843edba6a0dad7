//! Runs one batch on an AWS that accepts everything, and records every call of the handler.

use comeback_engine::{
    Attribute, BatchEvent, BatchReport, CallFailure, DeadLettered, Environment, InFlightCount, Move,
    Policies, Record, Timestamp, VisibilityChange,
};
use futures_util::FutureExt;
use serde::Serialize;

use crate::account::{Answers, Invoked, Service, SimulatedAccount};

/// A call that the handler made, named in JSON by its operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "operation")]
pub enum Call {
    /// Hides messages.
    #[serde(rename = "sqs:ChangeMessageVisibilityBatch")]
    ChangeMessageVisibilityBatch {
        /// The messages.
        entries: Vec<Hidden>,
    },
    /// Calls a function, asynchronously.
    #[serde(rename = "lambda:Invoke")]
    Invoke {
        /// `FunctionName`.
        function_name: String,
        /// The payload, as text, because not every JSON reader keeps `1E400` or repeated keys.
        payload: String,
    },
    /// Dead-letters.
    #[serde(rename = "sqs:SendMessageBatch")]
    SendMessageBatch {
        /// The messages sent to the dead-letter queue.
        messages: Vec<SentMessage>,
    },
    /// Moves messages: sends them to the retry queue again.
    #[serde(rename = "sqs:SendMessageBatch (retry queue)")]
    SendAgain {
        /// The copies, without their bodies, which do not change.
        copies: Vec<SentAgain>,
    },
}

/// A message to hide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hidden {
    /// SQS's id.
    pub message_id: String,
    /// Seconds.
    pub visibility_timeout: u64,
}

/// A dead-letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SentMessage {
    /// Name and value of each message attribute.
    pub attributes: Vec<(String, String)>,
    /// The body, as text.
    pub body: String,
}

/// A message that is sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SentAgain {
    /// SQS's id of the message that the copy follows.
    pub message_id: String,
    /// Seconds.
    pub delay: u64,
    /// The copy's attribute `Comeback`, as text.
    pub comeback: String,
}

/// The handler's report on a batch, and its calls in order.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    /// Outcome of each message.
    pub report: BatchReport<'a>,
    /// Every call about a message.
    pub calls: Vec<Call>,
}

/// Runs a new environment of the handler on a batch at `now`, with nothing in flight and no function paused.
pub fn rehearse<'a>(batch: &'a BatchEvent, policies: &Policies, now: Timestamp) -> Rehearsal<'a> {
    let account = SimulatedAccount::new(Recorder { now, calls: Vec::new() });
    let mut environment = Environment::new(policies.clone());
    let report = environment.handle(batch, now, &|| false, &account).now_or_never();
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
