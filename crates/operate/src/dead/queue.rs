//! The dead-letter queue and the retry queue, as the work on letters sees them.

use std::time::Duration;

use aws_sdk_sqs::types::MessageAttributeValue;
use comeback_delivery::Cause;
use comeback_delivery::sqs::Message;
use comeback_engine::{Letter, Record};

use crate::Failure;

/// For how long a letter that is received is hidden from everybody else, unless it is given back before. A look at
/// 100,000 letters takes some minutes. Longer would only keep letters from an operator whose command was killed:
/// what comes back while a slow command still works is received, and hidden, once more.
pub const HIDDEN_FOR: Duration = Duration::from_secs(15 * 60);

/// A message of the dead-letter queue that was received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// What SQS says of it, and its body.
    pub(crate) record: Record,
    /// Its message attributes.
    pub(crate) attributes: Vec<(String, MessageAttributeValue)>,
}

impl Received {
    pub(crate) fn letter(&self) -> Letter<'_> {
        let attribute = |name: &str| {
            let found = self.attributes.iter().find(|(other, _)| other == name);
            found.and_then(|(_, value)| value.string_value())
        };
        Letter::read(&self.record, attribute)
    }
}

/// Which queue a message is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The handler retries it.
    RetryQueue,
    /// It is a letter again.
    DeadLetterQueue,
}

/// The calls that are made. Answers come for each entry, in order.
pub(crate) trait LetterQueue {
    /// Receives letters, `most` or ten of them, and hides them for [`HIDDEN_FOR`]. Where there is none, it waits a
    /// second for one.
    async fn receive(&self, most: usize) -> Result<Vec<Received>, Failure>;

    /// Sends each of these once. One without an answer may have been accepted all the same.
    async fn send(&self, to: Destination, messages: Vec<Message>) -> Vec<Result<(), Cause>>;

    /// Deletes letters by their receipt handles.
    async fn delete(&self, receipt_handles: Vec<String>) -> Vec<Result<(), Cause>>;

    /// Gives letters back: everybody sees them again.
    async fn give_back(&self, receipt_handles: Vec<String>) -> Vec<Result<(), Cause>>;
}
