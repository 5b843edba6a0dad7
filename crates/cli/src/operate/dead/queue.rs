//! The dead-letter queue and the retry queue: the calls that the `dead` commands make, and these calls on SQS.

use std::time::Duration;

use aws_sdk_sqs::types::{Message as Sent, MessageAttributeValue, MessageSystemAttributeName as Name};
use aws_sdk_sqs::{Client, error::SdkError};
use comeback_delivery::sqs::{Deleter, Message, Sender, Visibility, VisibilityChanger};
use comeback_delivery::{Cause, ErrorKind, Retries, ServiceError, by_entry};
use comeback_engine::{MOVED_ATTRIBUTE, ReceivedDeadLetter, Record, Timestamp};

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::Deployment;
use crate::text::durations;

/// How long a received dead-letter is hidden from other readers, unless it is given back earlier. Reading 100,000
/// dead-letters takes some minutes. A longer time would only keep dead-letters from the operator of a command that was
/// killed; a dead-letter that becomes visible while a slow command still works is received, and hidden, once more.
pub(crate) const HIDDEN_FOR: Duration = Duration::from_secs(15 * 60);
/// Dead-letters received in one round, ten in a call.
pub(crate) const ROUND: usize = 80;
/// SQS's limit for one receive.
pub(crate) const MOST_OF_A_RECEIVE: usize = 10;
/// A long poll asks all of SQS's servers, a short one only some of them. One second is the shortest long poll.
const WAIT_SECONDS: i32 = 1;
/// Concurrent calls that send or delete one round's dead-letters.
const AT_ONCE: usize = ROUND / MOST_OF_A_RECEIVE;
/// Concurrent calls that give dead-letters back, ten dead-letters a call: there may be 100,000.
const GIVING_BACK: usize = 16;

/// A message received from the dead-letter queue.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) record: Record,
    pub(crate) attributes: Vec<(String, MessageAttributeValue)>,
}

impl Received {
    pub(crate) fn dead_letter(&self) -> ReceivedDeadLetter<'_> {
        let attribute = |name: &str| {
            let found = self.attributes.iter().find(|(other, _)| other == name);
            found.and_then(|(_, value)| value.string_value())
        };
        ReceivedDeadLetter::read(&self.record, attribute)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    RetryQueue,
    DeadLetterQueue,
}

/// The calls. Each gives one answer per entry, in the order of the entries.
pub(crate) trait QueueCalls {
    /// Receives up to `most` dead-letters, at most ten, and hides them for [`HIDDEN_FOR`]. Waits a second for the
    /// first.
    async fn receive(&self, most: usize) -> Result<Vec<Received>, Failure>;

    /// Sends each message once. A message without an answer may have been accepted.
    async fn send(&self, to: Destination, messages: Vec<Message>) -> Vec<Result<(), Cause>>;

    async fn delete(&self, receipt_handles: Vec<String>) -> Vec<Result<(), Cause>>;

    /// Makes dead-letters visible to everybody again.
    async fn give_back(&self, receipt_handles: Vec<String>) -> Vec<Result<(), Cause>>;
}

/// Why a call failed for one dead-letter.
#[derive(Clone, Debug)]
pub(crate) struct CallFailure {
    pub(crate) why: String,
    /// The call would fail for every other dead-letter too.
    pub(crate) for_all: bool,
    /// The dead-letter may be elsewhere all the same.
    pub(crate) may_be_elsewhere: bool,
}

impl CallFailure {
    /// `action` is the call's IAM action.
    pub(crate) fn of(action: &str, cause: &Cause) -> Self {
        let kind = cause.error().map(|error| error.kind);
        let for_all = matches!(kind, Some(ErrorKind::Denied | ErrorKind::Missing));
        let is_denied = kind == Some(ErrorKind::Denied);
        let remedy = if is_denied { "; docs/operate.md lists the permissions of each command" } else { "" };
        Self { why: format!("{action}: {cause}{remedy}"), for_all, may_be_elsewhere: false }
    }
}

/// The two queues on SQS.
pub(crate) struct SqsQueues {
    client: Client,
    url: String,
    to_retry_queue: Sender,
    to_dead_letter_queue: Sender,
    deleter: Deleter,
    shower: VisibilityChanger,
}

impl SqsQueues {
    pub(crate) fn new(account: &Account, deployment: &Deployment) -> Self {
        let client = &account.sqs;
        let (dead, retry) = (&deployment.dead_letter_queue.url, &deployment.retry_queue.url);
        // A send without an answer is not repeated: if SQS accepted it, the copy is retried in any case. Its dead-letter
        // stays, and the error says so.
        let once = |url: &str| {
            let sender = Sender::new(client.clone(), url).retries(Retries::none()).concurrency(AT_ONCE);
            sender.on_pause(tell_pause)
        };
        Self {
            client: client.clone(),
            url: dead.clone(),
            to_retry_queue: once(retry),
            to_dead_letter_queue: once(dead),
            deleter: Deleter::new(client.clone(), dead).concurrency(AT_ONCE).on_pause(tell_pause),
            shower: VisibilityChanger::new(client.clone(), dead)
                .concurrency(GIVING_BACK)
                .on_pause(tell_pause),
        }
    }
}

impl QueueCalls for SqsQueues {
    async fn receive(&self, most: usize) -> Result<Vec<Received>, Failure> {
        let call = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(most.min(MOST_OF_A_RECEIVE) as i32)
            .visibility_timeout(HIDDEN_FOR.as_secs() as i32)
            .wait_time_seconds(WAIT_SECONDS)
            .message_attribute_names("All")
            .message_system_attribute_names(Name::All);
        match call.send().await {
            // Past the limit of messages in flight nothing can be received. A long poll usually does not say so.
            Err(SdkError::ServiceError(error)) if error.err().is_over_limit() => Ok(Vec::new()),
            answer => {
                let messages = answer.or_failure("sqs:ReceiveMessage", &self.url)?.messages;
                messages.unwrap_or_default().into_iter().map(received).collect()
            }
        }
    }

    async fn send(&self, to: Destination, messages: Vec<Message>) -> Vec<Result<(), Cause>> {
        let sender = match to {
            Destination::RetryQueue => &self.to_retry_queue,
            Destination::DeadLetterQueue => &self.to_dead_letter_queue,
        };
        by_entry(sender.send(messages).await).into_iter().map(|answer| answer.map(drop)).collect()
    }

    async fn delete(&self, receipt_handles: Vec<String>) -> Vec<Result<(), Cause>> {
        by_entry(self.deleter.send(receipt_handles).await)
    }

    async fn give_back(&self, receipt_handles: Vec<String>) -> Vec<Result<(), Cause>> {
        let shown = |receipt_handle| Visibility { receipt_handle, timeout: Duration::ZERO };
        by_entry(self.shower.send(receipt_handles.into_iter().map(shown)).await)
    }
}

/// The command stands still meanwhile, with dead-letters hidden.
fn tell_pause(pause: Duration, error: &ServiceError) {
    anstream::eprintln!("{}", waits(pause, error));
}

fn waits(pause: Duration, error: &ServiceError) -> String {
    format!("waiting {}, as SQS asked: {error}", durations::text(pause))
}

fn received(message: Sent) -> Result<Received, Failure> {
    let message_id = message.message_id.unwrap_or_default();
    let lacks = |what: &str| Failure::CouldNot(format!("SQS returned no {what} for message {message_id:?}"));
    let system = message.attributes.unwrap_or_default();
    let number = |name: Name| {
        let text = system.get(&name).and_then(|text| text.parse::<u64>().ok());
        text.ok_or_else(|| lacks(name.as_str()))
    };
    let attributes: Vec<_> = message.message_attributes.unwrap_or_default().into_iter().collect();
    let mut record = Record {
        receipt_handle: message.receipt_handle.ok_or_else(|| lacks("receipt handle"))?,
        body: message.body.ok_or_else(|| lacks("body"))?,
        receive_count: number(Name::ApproximateReceiveCount)?.try_into().unwrap_or(u32::MAX),
        sent: Timestamp::from_millis(number(Name::SentTimestamp)?),
        first_receive: Timestamp::from_millis(number(Name::ApproximateFirstReceiveTimestamp)?),
        moved: None,
        trace_header: system.get(&Name::AwsTraceHeader).cloned(),
        attributes: Vec::new(),
        message_id: message_id.clone(),
    };
    let moved = attributes.iter().find(|(name, _)| name == MOVED_ATTRIBUTE);
    if let Some(attribute) = moved.and_then(|(_, value)| value.string_value()) {
        // SQS's own redrive takes copies of messages too. A copy whose attribute is garbled counts as a new message, as
        // it does for the handler.
        let _ = record.restore(attribute);
    }
    Ok(Received { record, attributes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_says_how_long_and_why() {
        let error = ServiceError::new(ErrorKind::Throttled, "SlowDown", "reduce your rate");
        let said = waits(Duration::from_secs(5), &error);
        assert_eq!(said, "waiting 5s, as SQS asked: SlowDown: reduce your rate");
    }
}
