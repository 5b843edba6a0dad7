use std::fmt;
use std::time::Duration;

use aws_sdk_sqs::types::{Message as Sent, MessageSystemAttributeName as Name};
use aws_sdk_sqs::{Client, error::SdkError};
use comeback_delivery::sqs::{Deleter, Message, Sender, Visibility, VisibilityChanger};
use comeback_delivery::{Cause, Retries, by_entry};
use comeback_engine::{MOVED_ATTRIBUTE, Record, Timestamp};

use super::queue::{Destination, HIDDEN_FOR, LetterQueue, Received};
use super::scan::ROUND;
use crate::Failure;

/// A long poll asks all of SQS's servers, a short one only some of them; a second is the shortest there is.
const WAIT_SECONDS: i32 = 1;
/// Of SQS.
const MOST_OF_A_RECEIVE: usize = 10;
/// Calls under way at once that carry a round's letters.
const AT_ONCE: usize = ROUND / MOST_OF_A_RECEIVE;
/// Calls under way at once that give letters back: there may be 100,000 letters, ten a call.
const GIVING_BACK: usize = 16;

/// The two queues on SQS.
pub(super) struct SqsQueues {
    client: Client,
    url: String,
    to_retry_queue: Sender,
    to_dead_letter_queue: Sender,
    deleter: Deleter,
    shower: VisibilityChanger,
}

impl SqsQueues {
    pub(super) fn new(client: &Client, dead_letter_queue: &str, retry_queue: &str) -> Self {
        // A copy that was accepted goes on by itself, so a message without an answer is not sent again: its letter
        // stays, and the error says so.
        let once = |url: &str| Sender::new(client.clone(), url).retries(Retries::none()).concurrency(AT_ONCE);
        Self {
            client: client.clone(),
            url: dead_letter_queue.to_owned(),
            to_retry_queue: once(retry_queue),
            to_dead_letter_queue: once(dead_letter_queue),
            deleter: Deleter::new(client.clone(), dead_letter_queue).concurrency(AT_ONCE),
            shower: VisibilityChanger::new(client.clone(), dead_letter_queue).concurrency(GIVING_BACK),
        }
    }
}

impl LetterQueue for SqsQueues {
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
            Ok(answer) => answer.messages.unwrap_or_default().into_iter().map(received).collect(),
            // Past the limit of messages in flight there is nothing to receive; a long poll usually says nothing.
            Err(SdkError::ServiceError(error)) if error.err().is_over_limit() => Ok(Vec::new()),
            Err(error) => Err(Failure::of_call("sqs:ReceiveMessage", &self.url, &error)),
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

impl fmt::Debug for SqsQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqsQueues").field("url", &self.url).finish_non_exhaustive()
    }
}

fn received(message: Sent) -> Result<Received, Failure> {
    let message_id = message.message_id.unwrap_or_default();
    let lacks = |what: &str| Failure::CouldNot(format!("SQS gave no {what} of message {message_id:?}"));
    let system = message.attributes.unwrap_or_default();
    let number = |name: Name| {
        let text = system.get(&name).and_then(|text| text.parse::<u64>().ok());
        text.ok_or_else(|| lacks(name.as_str()))
    };
    let sent = Timestamp::from_millis(number(Name::SentTimestamp)?);
    let first_receive = Timestamp::from_millis(number(Name::ApproximateFirstReceiveTimestamp)?);
    let receive_count = number(Name::ApproximateReceiveCount)?.try_into().unwrap_or(u32::MAX);
    let trace_header = system.get(&Name::AwsTraceHeader).cloned();
    let receipt_handle = message.receipt_handle.ok_or_else(|| lacks("receipt handle"))?;
    let body = message.body.ok_or_else(|| lacks("body"))?;
    let attributes: Vec<_> = message.message_attributes.unwrap_or_default().into_iter().collect();
    let mut record = Record {
        message_id,
        receipt_handle,
        body,
        receive_count,
        sent,
        first_receive,
        moved: None,
        trace_header,
    };
    let moved = attributes.iter().find(|(name, _)| name == MOVED_ATTRIBUTE);
    if let Some(attribute) = moved.and_then(|(_, value)| value.string_value()) {
        // SQS's own redrive takes copies of messages too. One whose attribute is garbled counts as a new message,
        // as it does for the handler.
        let _ = record.restore(attribute);
    }
    Ok(Received { record, attributes })
}
