//! One batch on an AWS that accepts everything, and every call that the handler makes.

use std::cell::RefCell;

use comeback_engine::{
    BatchEvent, BatchReport, CallFailure, DeadLetter, Environment, GivenUp, InvokeFailure, Look, Move,
    Policy, Record, Timestamp, VisibilityChange,
};
use futures_util::FutureExt;

use crate::account::{Answers, Service, SimulatedAccount};

/// A call that the handler made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// SQS `ChangeMessageVisibilityBatch` on the retry queue.
    ChangeMessageVisibilityBatch {
        /// Message ids, with the timeout in seconds.
        entries: Vec<(String, u64)>,
    },
    /// Lambda `Invoke`, asynchronous.
    Invoke {
        /// `FunctionName`.
        function_arn: String,
        /// `Payload`, JSON text.
        payload: String,
    },
    /// SQS `SendMessageBatch` to the dead-letter queue.
    SendMessageBatch {
        /// The messages.
        messages: Vec<DeadLetter>,
    },
    /// SQS `SendMessageBatch` to the retry queue.
    SendAgain {
        /// Message ids, with the delay in seconds and the text of the copy's attribute `Comeback`.
        copies: Vec<(String, u64, String)>,
    },
}

/// The handler's report on a batch, and its calls in order.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    /// Outcome of each message.
    pub report: BatchReport<'a>,
    /// Every call about a message.
    pub calls: Vec<Call>,
}

/// Runs a new environment of the handler on a batch at `now`. Every call is accepted, nothing is in flight, and no
/// function is paused.
pub fn rehearse<'a>(batch: &'a BatchEvent, policy: &Policy, now: Timestamp) -> Rehearsal<'a> {
    let account = SimulatedAccount::new(Recorder { now, calls: RefCell::default() });
    let mut environment = Environment::new(policy.clone());
    let report = environment.handle(batch, now, &|| false, &account).now_or_never();
    let report = report.expect("BUG: these calls answer at once");
    Rehearsal { report, calls: account.service.calls.into_inner() }
}

struct Recorder {
    now: Timestamp,
    calls: RefCell<Vec<Call>>,
}

impl Recorder {
    fn accept(&self, call: Call, entries: usize) -> Option<Answers> {
        self.calls.borrow_mut().push(call);
        Some(Ok(vec![Ok(()); entries]))
    }
}

impl Service for Recorder {
    fn change_visibility(&self, changes: &[&&VisibilityChange<'_>]) -> Option<Answers> {
        let entry = |change: &&&VisibilityChange<'_>| {
            (change.record.message_id.clone(), change.visibility_timeout.as_secs())
        };
        let entries = changes.iter().map(entry).collect();
        self.accept(Call::ChangeMessageVisibilityBatch { entries }, changes.len())
    }

    fn invoke(
        &self,
        _: &Record,
        function_arn: &str,
        payload: String,
    ) -> Option<Result<Option<String>, InvokeFailure>> {
        self.calls.borrow_mut().push(Call::Invoke { function_arn: function_arn.into(), payload });
        Some(Ok(None))
    }

    fn send_dead_letters(&self, given_up: &[&&GivenUp<'_>]) -> Option<Answers> {
        let messages = given_up.iter().map(|given_up| given_up.letter.clone()).collect();
        self.accept(Call::SendMessageBatch { messages }, given_up.len())
    }

    fn send_again(&self, moves: &[&&Move<'_>]) -> Option<Answers> {
        let copy = |copy: &&&Move<'_>| {
            (copy.record.message_id.clone(), copy.delay.as_secs(), copy.attribute.clone())
        };
        self.accept(Call::SendAgain { copies: moves.iter().map(copy).collect() }, moves.len())
    }

    fn look(&self) -> Option<Result<Look, CallFailure>> {
        Some(Ok(Look { in_flight: 0, at: self.now }))
    }

    fn read_pauses(&self) -> Option<Result<Option<String>, CallFailure>> {
        Some(Ok(None))
    }
}
