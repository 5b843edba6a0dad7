use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    MessageAttributeValue, MessageSystemAttributeNameForSends, MessageSystemAttributeValue,
    SendMessageBatchRequestEntry, SendMessageBatchResultEntry,
};

use super::{Queue, by_entry, once, whole_seconds};
use crate::limits::{Limits, SQS_SEND};
use crate::{Answer, Lane, Operation, ServiceError, TokioSleep, classify};

/// Sends messages to one queue.
///
/// ```no_run
/// # async fn example(client: aws_sdk_sqs::Client, url: &str) {
/// use comeback_delivery::sqs::{Message, Sender};
///
/// let deliver = Sender::new(client, url);
/// match deliver.send((0..100).map(|n| Message::new(format!("order {n}")))).await {
///     Ok(delivered) => println!("{} messages in {} calls", delivered.count(), delivered.calls),
///     Err(undelivered) => {
///         eprintln!("{undelivered}");
///         let keep: Vec<Message> = undelivered.entries.into_iter().map(|left| left.entry).collect();
///     }
/// }
/// # }
/// ```
pub type Sender = crate::Sender<SendMessages, TokioSleep>;

impl Sender {
    /// A sender to the queue of this URL. The client's own retries are switched off.
    pub fn new(client: Client, queue_url: impl Into<String>) -> Self {
        let queue = Queue { client, url: queue_url.into() };
        let fifo = queue.url.ends_with(".fifo");
        Self::over(SendMessages { queue, fifo, together: false }, tokio::time::sleep)
    }

    /// As [`new`](Self::new), but on a FIFO queue several messages of one group go in one call, ten times as many
    /// at once. SQS keeps their order.
    ///
    /// If SQS takes only some of them, an earlier one that failed is handed back
    /// ([`Cause::Overtaken`](crate::Cause::Overtaken)) with all behind those that were taken: sent again, it would come
    /// after them. With [`new`](Self::new), it is sent again, and the others wait for it.
    pub fn with_groups_together(client: Client, queue_url: impl Into<String>) -> Self {
        let queue = Queue { client, url: queue_url.into() };
        let fifo = queue.url.ends_with(".fifo");
        Self::over(SendMessages { queue, fifo, together: true }, tokio::time::sleep)
    }
}

/// `SendMessageBatch` to one queue.
#[derive(Debug)]
pub struct SendMessages {
    queue: Queue,
    fifo: bool,
    /// Whether messages of one group may go in one call.
    together: bool,
}

/// What SQS says of a message that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// SQS's id of the message.
    pub message_id: String,
    /// On a FIFO queue: a number that rises with each message of its group.
    pub sequence_number: Option<String>,
}

impl Receipt {
    fn of(entry: &SendMessageBatchResultEntry) -> Self {
        let sequence_number = entry.sequence_number().map(Into::into);
        Self { message_id: entry.message_id().into(), sequence_number }
    }
}

/// A message to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The body; SQS refuses an empty one.
    pub body: String,
    /// Attributes by name, ten at most. They count in the message's size.
    pub attributes: Vec<(String, MessageAttributeValue)>,
    /// On a FIFO queue, messages of one group keep their order. On a standard queue it names the tenant
    /// (fair queues).
    pub group_id: Option<String>,
    /// For a FIFO queue; not needed if the queue deduplicates by content.
    pub deduplication_id: Option<String>,
    /// Nobody receives the message before; meanwhile it is not in flight. At most 15 minutes, and not on a
    /// FIFO queue: SQS refuses more. Without one, the queue's own delay counts.
    pub delay: Option<Duration>,
    /// `AWSTraceHeader`, SQS's one system attribute: it joins the message to a trace of X-Ray. It does not
    /// count in the message's size.
    pub trace_header: Option<String>,
}

impl Message {
    /// A message with nothing but a body.
    pub fn new(body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            attributes: Vec::new(),
            group_id: None,
            deduplication_id: None,
            delay: None,
            trace_header: None,
        }
    }

    /// The same, received after this time at the earliest.
    #[must_use]
    pub fn delayed(self, delay: Duration) -> Self {
        Self { delay: Some(delay), ..self }
    }

    /// With a FIFO queue's group and deduplication id.
    #[must_use]
    pub fn fifo(self, group_id: impl Into<String>, deduplication_id: impl Into<String>) -> Self {
        Self { group_id: Some(group_id.into()), deduplication_id: Some(deduplication_id.into()), ..self }
    }

    fn size(&self) -> usize {
        let attributes = self.attributes.iter().map(|(name, attribute)| {
            let text = attribute.string_value().map_or(0, str::len);
            let binary = attribute.binary_value().map_or(0, |value| value.as_ref().len());
            name.len() + attribute.data_type().len() + text + binary
        });
        self.body.len() + attributes.sum::<usize>()
    }

    fn request(&self, id: usize) -> SendMessageBatchRequestEntry {
        let entry = SendMessageBatchRequestEntry::builder().id(id.to_string()).message_body(&self.body);
        let entry = self
            .attributes
            .iter()
            .fold(entry, |entry, (name, value)| entry.message_attributes(name, value.clone()))
            .set_message_group_id(self.group_id.clone())
            .set_message_deduplication_id(self.deduplication_id.clone())
            .set_delay_seconds(self.delay.map(whole_seconds));
        let entry = match &self.trace_header {
            Some(header) => entry.message_system_attributes(
                MessageSystemAttributeNameForSends::AwsTraceHeader,
                MessageSystemAttributeValue::builder()
                    .data_type("String")
                    .string_value(header)
                    .build()
                    .expect("BUG: the data type is set"),
            ),
            None => entry,
        };
        entry.build().expect("BUG: id and body are set")
    }
}

impl Operation for SendMessages {
    type Entry = Message;
    type Receipt = Receipt;

    fn limits(&self) -> Limits {
        SQS_SEND
    }

    /// The body, and each attribute's name, type and value.
    fn size(&self, message: &Message) -> usize {
        message.size()
    }

    fn lane(&self, message: &Message) -> Option<Lane> {
        let group = message.group_id.as_ref().filter(|_| self.fifo)?;
        let lane = Lane::new([group]);
        Some(if self.together { lane.together() } else { lane })
    }

    async fn call(&self, messages: &[&Message]) -> Result<Vec<Answer<Receipt>>, ServiceError> {
        let entries = messages.iter().enumerate().map(|(id, message)| message.request(id)).collect();
        let call = self.queue.client.send_message_batch().queue_url(&self.queue.url);
        let call = call.set_entries(Some(entries)).customize().config_override(once());
        let output = call.send().await.map_err(|error| classify(&error))?;
        let done = output.successful.iter().map(|entry| (entry.id(), Receipt::of(entry)));
        Ok(by_entry(messages.len(), done, &output.failed))
    }
}
