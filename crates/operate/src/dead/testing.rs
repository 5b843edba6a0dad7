//! Sample dead-letters of every kind, in the dead-letter queue of a simulated account.
//!
//! They are behind the feature `simulated`, not only `cfg(test)`, because the console's tests use them too.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use comeback_engine::Timestamp;

use crate::aws::simulated::{Sample, SimulatedAws, Stored};
use crate::aws::{AttributeValue, NewMessage};
use crate::deployment::find::Which;
use crate::deployment::queue::Depth;
use crate::interrupt::Interrupt;
use crate::operator::{Follow, Operator, Progress};
use crate::text::Text;

/// The ARN of the only function on the allow-list, which also allows all of the function's versions and aliases.
pub const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
/// The time on the simulated account's clock when the account is created.
pub const NOW: Timestamp = Timestamp::from_secs(2_000_000_000);

/// A sample dead-letter.
#[derive(Clone, Debug)]
pub struct SampleDeadLetter {
    /// The event's key.
    pub key: String,
    /// The type of the last error.
    pub error_type: &'static str,
    /// The message's body.
    pub body: String,
    /// The message attribute `Reason`.
    pub reason: Option<&'static str>,
    /// True if the event can be redriven.
    pub can_be_redriven: bool,
}

thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });

fn key() -> String {
    NUMBER.set(NUMBER.get() + 1);
    format!("key-{}", NUMBER.get())
}

/// A dead-letter that the handler wrote in its own format.
pub fn event(error_type: &'static str) -> SampleDeadLetter {
    let key = key();
    let body = format!(
        r#"{{"reason":"max_age","detail":"why","function_arn":"{ORDERS}:$LATEST","retries_made":7,"initial_timestamp":999990000,"dead_lettered_at":1000000000,"origin_request_id":"{key}","error":{{"type":"{error_type}","message":"m"}},"payload":{{"n":1E400,"id":"{key}"}}}}"#
    );
    SampleDeadLetter { key, error_type, body, reason: Some("max_age"), can_be_redriven: true }
}

/// An invocation record that SQS moved from the retry queue after too many receives.
pub fn record(error_type: &'static str) -> SampleDeadLetter {
    let key = key();
    let body = format!(
        r#"{{"timestamp":"2001-09-09T01:46:40Z","requestContext":{{"requestId":"{key}","functionArn":"{ORDERS}"}},"requestPayload":{{"id":"{key}"}},"responsePayload":{{"errorType":"{error_type}"}}}}"#
    );
    SampleDeadLetter { key, error_type, body, reason: None, can_be_redriven: true }
}

/// A message with a body that the handler could not parse.
pub fn malformed() -> SampleDeadLetter {
    let key = key();
    let body = format!(r#"{{"requestPayload":"{key}"}}"#);
    SampleDeadLetter { key, error_type: "", body, reason: Some("malformed_record"), can_be_redriven: false }
}

/// A message that Comeback did not write.
pub fn unknown() -> SampleDeadLetter {
    let key = key();
    let body = format!("hello from {key}");
    SampleDeadLetter { key, error_type: "", body, reason: None, can_be_redriven: false }
}

impl SampleDeadLetter {
    /// Changes the function to `payments`, which is not on the allow-list.
    #[must_use]
    pub fn of_payments(self) -> Self {
        Self { body: self.body.replace("function:orders", "function:payments"), ..self }
    }

    fn message(&self) -> NewMessage {
        let attribute = |reason: &str| {
            let value = AttributeValue { data_type: "String".into(), value: reason.to_owned() };
            ("Reason".to_owned(), value)
        };
        NewMessage {
            body: self.body.clone(),
            attributes: self.reason.map(attribute).into_iter().collect(),
            trace_header: None,
        }
    }
}

/// A simulated account with a deployment and its dead-letters.
#[derive(Clone, Debug)]
pub struct Dead {
    /// The simulated account.
    pub aws: SimulatedAws,
}

impl Dead {
    /// Creates a simulated account that has one deployment, with the function `orders` attached and these dead-letters
    /// in its dead-letter queue.
    pub fn with(dead_letters: impl IntoIterator<Item = SampleDeadLetter>) -> Self {
        let dead = Self { aws: Sample { is_attached: true, ..Sample::new(NOW) }.build() };
        dead_letters.into_iter().for_each(|dead_letter| drop(dead.put(&dead_letter)));
        dead
    }

    /// Puts a dead-letter into the queue, and returns the message's id.
    pub fn put(&self, dead_letter: &SampleDeadLetter) -> String {
        let now = self.aws.time();
        self.aws.queue(Sample::DEAD_LETTER_QUEUE).send(now, std::time::Duration::ZERO, dead_letter.message())
    }

    /// The message counts of the dead-letter queue.
    pub fn depth(&self) -> Depth {
        let now = self.aws.time();
        self.aws.queue(Sample::DEAD_LETTER_QUEUE).depth(now)
    }

    /// All messages in the dead-letter queue, visible or hidden.
    pub fn dead(&self) -> Vec<Stored> {
        self.stored(Sample::DEAD_LETTER_QUEUE)
    }

    /// All messages in the retry queue, visible or hidden.
    pub fn retried(&self) -> Vec<Stored> {
        self.stored(Sample::RETRY_QUEUE)
    }

    fn stored(&self, queue: &str) -> Vec<Stored> {
        let now = self.aws.time();
        self.aws.queue(queue).stored(now).cloned().collect()
    }

    /// Returns an operator who ignores progress reports and never interrupts the command.
    pub fn operator(&self) -> Operator {
        Operator::new(self.aws.account(), Which::Stack(Sample::STACK.into()))
    }

    /// Returns an operator who interrupts the command after `times` progress reports. `times` must be at least 1.
    pub fn stopping_after(&self, times: u64) -> Operator {
        let interrupt = Interrupt::default();
        let raised = interrupt.clone();
        let follow = self.following(move |told| {
            if told == times {
                raised.raise();
            }
        });
        Operator { interrupt, ..follow }
    }

    /// Returns an [`Operator`] that calls `hear` for each progress report, with the number of reports so far.
    pub fn following(&self, hear: impl Fn(u64) + 'static) -> Operator {
        Operator { follow: Rc::new(Hears { told: Cell::new(0), hear: Box::new(hear) }), ..self.operator() }
    }
}

struct Hears {
    told: Cell<u64>,
    hear: Box<dyn Fn(u64)>,
}

impl fmt::Debug for Hears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hears").field("told", &self.told).finish_non_exhaustive()
    }
}

impl Follow for Hears {
    fn progress(&self, _: Progress) {
        self.told.set(self.told.get() + 1);
        (self.hear)(self.told.get());
    }

    fn remark(&self, _: &Text) {}
}

#[cfg(test)]
impl Dead {
    pub(crate) async fn deployment(&self) -> crate::deployment::Deployment {
        self.operator().deployment().await.unwrap()
    }

    /// Sets an environment variable of the handler.
    pub(crate) fn set(&self, variable: &str, value: &str) {
        let handler = &mut self.aws.function_named(Sample::HANDLER).configuration;
        handler.variables.insert(variable.to_owned(), value.to_owned());
    }
}

#[cfg(test)]
pub(crate) fn deployment() -> crate::deployment::Deployment {
    let mut deployment = crate::deployment::Deployment::sample();
    deployment.variables.insert("TARGET_FUNCTIONS".into(), ORDERS.into());
    deployment
}

#[cfg(test)]
pub(crate) fn received(dead_letter: &SampleDeadLetter) -> crate::aws::Received {
    let NewMessage { body, attributes, .. } = dead_letter.message();
    let sent = Timestamp::from_secs(1_000_000_000);
    let record = comeback_engine::Record {
        message_id: "m-1".into(),
        receipt_handle: "h-1".into(),
        body,
        receive_count: 1,
        sent,
        first_receive: sent,
        moved: None,
        trace_header: None,
        attributes: Vec::new(),
    };
    crate::aws::Received { record, attributes }
}
