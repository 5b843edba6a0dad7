//! One batch on AWS that always works, and every call it makes.

use std::cell::RefCell;
use std::future::ready;

use comeback_delivery::limits::{Limits, SQS_RECEIPTS, SQS_SEND};
use comeback_delivery::{Operation, Sender};
use comeback_engine::{
    Account, BatchEvent, BatchReport, CallFailure, DeadLetter, Environment, GivenUp, InvokeFailure, Look,
    Move, MoveFailure, Policy, Record, Timestamp, VisibilityChange,
};
use futures_util::FutureExt;

use crate::world::account::{Answers, deliver, deliver_copies};

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

/// The handler's report on a batch, and the calls that it made, in order.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    /// What became of each message.
    pub report: BatchReport<'a>,
    /// Every call that it made about a message.
    pub calls: Vec<Call>,
}

/// Runs a new environment of the handler on a batch at `now`. Every call is accepted, nothing is in flight,
/// and no function is paused.
pub fn rehearse<'a>(batch: &'a BatchEvent, policy: &Policy, now: Timestamp) -> Rehearsal<'a> {
    let aws = WillingAws { now, calls: RefCell::default() };
    let report = Environment::new(policy.clone())
        .handle(batch, now, &|| false, &aws)
        .now_or_never()
        .expect("BUG: these calls answer at once");
    Rehearsal { report, calls: aws.calls.into_inner() }
}

struct WillingAws {
    now: Timestamp,
    calls: RefCell<Vec<Call>>,
}

impl Account for WillingAws {
    async fn change_visibility(
        &self,
        changes: &[VisibilityChange<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        deliver(Sender::over(ChangeVisibility(self), |_| ready(())), changes, past_deadline).await
    }

    async fn invoke(
        &self,
        _: &Record,
        function_arn: &str,
        payload: String,
    ) -> Result<Option<String>, InvokeFailure> {
        self.calls.borrow_mut().push(Call::Invoke { function_arn: function_arn.into(), payload });
        Ok(None)
    }

    async fn send_dead_letters(
        &self,
        given_up: &[GivenUp<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        let letters = given_up.iter().map(|given_up| given_up.letter);
        deliver(Sender::over(SendMessages(self), |_| ready(())), letters, past_deadline).await
    }

    async fn send_again(
        &self,
        moves: &[Move<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), MoveFailure>> {
        deliver_copies(Sender::over(SendAgain(self), |_| ready(())), moves, past_deadline).await
    }

    async fn look(&self) -> Result<Look, CallFailure> {
        Ok(Look { in_flight: 0, at: self.now })
    }

    async fn read_pauses(&self) -> Result<Option<String>, CallFailure> {
        Ok(None)
    }
}

struct SendAgain<'a>(&'a WillingAws);

impl<'a> Operation for SendAgain<'a> {
    type Entry = &'a Move<'a>;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_SEND
    }

    fn size(&self, copy: &Self::Entry) -> usize {
        copy.size()
    }

    fn call(&self, moves: &[&Self::Entry]) -> impl Future<Output = Answers> + Send {
        let copy = |copy: &&Self::Entry| {
            (copy.record.message_id.clone(), copy.delay.as_secs(), copy.attribute.clone())
        };
        let copies = moves.iter().map(copy).collect();
        self.0.calls.borrow_mut().push(Call::SendAgain { copies });
        ready(Ok(vec![Ok(()); moves.len()]))
    }
}

struct ChangeVisibility<'a>(&'a WillingAws);

impl<'a> Operation for ChangeVisibility<'a> {
    type Entry = &'a VisibilityChange<'a>;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_RECEIPTS
    }

    fn size(&self, change: &Self::Entry) -> usize {
        change.record.receipt_handle.len()
    }

    fn call(&self, changes: &[&Self::Entry]) -> impl Future<Output = Answers> + Send {
        let named =
            |change: &&Self::Entry| (change.record.message_id.clone(), change.visibility_timeout.as_secs());
        let entries = changes.iter().map(named).collect();
        self.0.calls.borrow_mut().push(Call::ChangeMessageVisibilityBatch { entries });
        ready(Ok(vec![Ok(()); changes.len()]))
    }
}

struct SendMessages<'a>(&'a WillingAws);

impl<'a> Operation for SendMessages<'a> {
    type Entry = &'a DeadLetter;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_SEND
    }

    fn size(&self, message: &Self::Entry) -> usize {
        message.size()
    }

    fn call(&self, messages: &[&Self::Entry]) -> impl Future<Output = Answers> + Send {
        let answers = vec![Ok(()); messages.len()];
        let messages = messages.iter().map(|&&message| message.clone()).collect();
        self.0.calls.borrow_mut().push(Call::SendMessageBatch { messages });
        ready(Ok(answers))
    }
}
