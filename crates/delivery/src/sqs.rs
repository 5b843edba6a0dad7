//! SQS: `SendMessageBatch`, `ChangeMessageVisibilityBatch`, `DeleteMessageBatch`.
//!
//! On a FIFO queue (its name ends in `.fifo`), the messages in one group are sent one at a time, in the order of the
//! input. When the sender gives up on a message, it also gives up on the messages behind it in the group. A message
//! without a group is rejected without being sent. A message with a deduplication id arrives only once, even if it is
//! sent again because a response was lost. A standard queue does not keep messages in order, and a message that is sent
//! again may arrive twice.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry,
    MessageAttributeValue, MessageSystemAttributeNameForSends, MessageSystemAttributeValue,
    SendMessageBatchRequestEntry,
};

use crate::classify::{TokioSleep, kind_of_code, send_once};
use crate::lanes::Lane;
use crate::limits::{Limits, SQS_RECEIPTS, SQS_SEND};
use crate::operation::{EntryAnswer, ErrorKind, Operation, ServiceError};

/// Sends messages to one queue.
pub type Sender = crate::Sender<SendMessages, TokioSleep>;

impl Sender {
    /// Creates a sender for the queue at this URL. The client's own retries are switched off.
    pub fn new(client: Client, queue_url: impl Into<String>) -> Self {
        let url = queue_url.into();
        let fifo = url.ends_with(".fifo");
        Self::over(SendMessages { queue: QueueClient { client, url }, fifo }, tokio::time::sleep)
    }
}

/// The `SendMessageBatch` API, for one queue.
#[derive(Debug)]
pub struct SendMessages {
    queue: QueueClient,
    fifo: bool,
}

/// SQS's receipt for an accepted message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqsReceipt {
    /// The id that SQS gave the message.
    pub message_id: String,
    /// A number that increases with each message in a group. `None` on a standard queue.
    pub sequence_number: Option<String>,
}

/// A message to send, with its attributes and options.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The body. SQS refuses an empty body.
    pub body: String,
    /// Attributes by name, at most ten. They count towards the message's size.
    pub attributes: Vec<(String, MessageAttributeValue)>,
    /// The message's group. Required on a FIFO queue, where messages in one group keep their order. On a standard
    /// queue, SQS treats each group as a tenant, and shares the queue fairly among the groups.
    pub group_id: Option<String>,
    /// Deduplication id, for a FIFO queue. Not needed if the queue deduplicates by content.
    pub deduplication_id: Option<String>,
    /// Time until the message can be received. A delayed message is not in flight. SQS refuses a delay of more than 15
    /// minutes and, on a FIFO queue, any delay. `None` uses the queue's own delay.
    pub delay: Option<Duration>,
    /// `AWSTraceHeader`, the only system attribute that a sender can set: it links the message to an X-Ray trace. The
    /// attribute does not count towards the message's size.
    pub trace_header: Option<String>,
}

impl Message {
    /// Creates a message with only a body.
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

    /// Sets the message's delay.
    #[must_use]
    pub fn delayed(self, delay: Duration) -> Self {
        Self { delay: Some(delay), ..self }
    }

    /// Sets the message's group and deduplication id, for a FIFO queue.
    #[must_use]
    pub fn fifo(self, group_id: impl Into<String>, deduplication_id: impl Into<String>) -> Self {
        Self { group_id: Some(group_id.into()), deduplication_id: Some(deduplication_id.into()), ..self }
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
        let trace = self.trace_header.iter().map(|header| {
            let value = MessageSystemAttributeValue::builder().data_type("String").string_value(header);
            let value = value.build().expect("BUG: the data type is set");
            (MessageSystemAttributeNameForSends::AwsTraceHeader, value)
        });
        let entry = trace.fold(entry, |entry, (name, value)| entry.message_system_attributes(name, value));
        entry.build().expect("BUG: id and body are set")
    }
}

impl Operation for SendMessages {
    type Entry = Message;
    type Receipt = SqsReceipt;

    fn limits(&self) -> Limits {
        SQS_SEND
    }

    /// Returns the size of a message: its body, and each attribute's name, type and value.
    fn size(&self, message: &Message) -> usize {
        let attributes = message.attributes.iter().map(|(name, attribute)| {
            let text = attribute.string_value().map_or(0, str::len);
            let binary = attribute.binary_value().map_or(0, |value| value.as_ref().len());
            name.len() + attribute.data_type().len() + text + binary
        });
        message.body.len() + attributes.sum::<usize>()
    }

    /// Refuses a message without a group id if the queue is a FIFO queue, because SQS would refuse the whole call that
    /// carries it.
    fn check(&self, message: &Message) -> Result<(), ServiceError> {
        if self.fifo && message.group_id.as_ref().is_none_or(String::is_empty) {
            let why = "a message to a FIFO queue needs a group: see `Message::fifo`";
            return Err(ServiceError::new(ErrorKind::Refused, "", why));
        }
        Ok(())
    }

    fn lane(&self, message: &Message) -> Option<Lane> {
        let group = message.group_id.as_ref().filter(|_| self.fifo)?;
        Some(Lane::new([group]))
    }

    async fn call(&self, messages: &[&Message]) -> Result<Vec<EntryAnswer<SqsReceipt>>, ServiceError> {
        let entries = messages.iter().enumerate().map(|(id, message)| message.request(id)).collect();
        let call = self.queue.client.send_message_batch().queue_url(&self.queue.url);
        let output = send_once!(aws_sdk_sqs, call.set_entries(Some(entries)))?;
        let done = output.successful.iter().map(|entry| {
            let sequence_number = entry.sequence_number.clone();
            (entry.id(), SqsReceipt { message_id: entry.message_id.clone(), sequence_number })
        });
        Ok(by_entry(messages.len(), done, &output.failed))
    }
}

/// Hides messages received from one queue, or makes them visible again.
///
/// ```no_run
/// # async fn example(client: aws_sdk_sqs::Client, url: &str, receipt_handle: String) -> Result<(), Box<dyn std::error::Error>> {
/// use comeback_delivery::sqs::{Visibility, VisibilityChanger};
/// use std::time::Duration;
///
/// let hide = VisibilityChanger::new(client, url);
/// hide.send([Visibility { receipt_handle, timeout: Duration::from_secs(3_600) }]).await?;
/// # Ok(())
/// # }
/// ```
pub type VisibilityChanger = crate::Sender<ChangeVisibility, TokioSleep>;

impl VisibilityChanger {
    /// Creates a sender that changes the visibility timeouts of messages in the queue at this URL. The client's own
    /// retries are switched off.
    pub fn new(client: Client, queue_url: impl Into<String>) -> Self {
        Self::over(ChangeVisibility(QueueClient { client, url: queue_url.into() }), tokio::time::sleep)
    }
}

/// The `ChangeMessageVisibilityBatch` API, for one queue.
#[derive(Debug)]
pub struct ChangeVisibility(QueueClient);

/// A new visibility timeout for a received message, counted from the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visibility {
    /// Receipt handle from the latest receive of the message.
    pub receipt_handle: String,
    /// The timeout, rounded up to a whole second so that no message is visible too early. SQS refuses a timeout that
    /// ends more than 12 hours after the receive.
    pub timeout: Duration,
}

impl Operation for ChangeVisibility {
    type Entry = Visibility;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_RECEIPTS
    }

    /// Returns the length of the receipt handle. The value does not matter, because `ChangeMessageVisibilityBatch`
    /// calls have no size limit.
    fn size(&self, entry: &Visibility) -> usize {
        entry.receipt_handle.len()
    }

    async fn call(&self, changes: &[&Visibility]) -> Result<Vec<EntryAnswer>, ServiceError> {
        let entries = changes.iter().enumerate().map(|(id, change)| {
            let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(id.to_string());
            let entry = entry.receipt_handle(&change.receipt_handle);
            let entry = entry.visibility_timeout(whole_seconds(change.timeout)).build();
            entry.expect("BUG: id and receipt handle are set")
        });
        let call = self.0.client.change_message_visibility_batch().queue_url(&self.0.url);
        let output = send_once!(aws_sdk_sqs, call.set_entries(Some(entries.collect())))?;
        let done = output.successful.iter().map(|entry| (entry.id(), ()));
        Ok(by_entry(changes.len(), done, &output.failed))
    }
}

/// Deletes received messages from one queue by their receipt handles.
///
/// ```no_run
/// # async fn example(client: aws_sdk_sqs::Client, url: &str, handles: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
/// use comeback_delivery::sqs::Deleter;
///
/// Deleter::new(client, url).send(handles).await?;
/// # Ok(())
/// # }
/// ```
pub type Deleter = crate::Sender<DeleteMessages, TokioSleep>;

impl Deleter {
    /// Creates a sender that deletes messages from the queue at this URL. The client's own retries are switched off.
    pub fn new(client: Client, queue_url: impl Into<String>) -> Self {
        Self::over(DeleteMessages(QueueClient { client, url: queue_url.into() }), tokio::time::sleep)
    }
}

/// The `DeleteMessageBatch` API, for one queue.
#[derive(Debug)]
pub struct DeleteMessages(QueueClient);

impl Operation for DeleteMessages {
    type Entry = String;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_RECEIPTS
    }

    /// Returns the length of the receipt handle. The value does not matter, because `DeleteMessageBatch` calls have no
    /// size limit.
    fn size(&self, receipt_handle: &String) -> usize {
        receipt_handle.len()
    }

    async fn call(&self, receipt_handles: &[&String]) -> Result<Vec<EntryAnswer>, ServiceError> {
        let entries = receipt_handles.iter().enumerate().map(|(id, &handle)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(id.to_string()).receipt_handle(handle);
            entry.build().expect("BUG: id and receipt handle are set")
        });
        let call = self.0.client.delete_message_batch().queue_url(&self.0.url);
        let output = send_once!(aws_sdk_sqs, call.set_entries(Some(entries.collect())))?;
        let done = output.successful.iter().map(|entry| (entry.id(), ()));
        Ok(by_entry(receipt_handles.len(), done, &output.failed))
    }
}

#[derive(Clone, Debug)]
struct QueueClient {
    client: Client,
    url: String,
}

/// Converts a duration to the whole seconds that SQS accepts, rounded up so that no message is visible too early. SQS
/// itself refuses values that are too large.
fn whole_seconds(time: Duration) -> i32 {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

/// Puts the results of an SQS response into the order of the request's entries. An entry's id is its position in the
/// request. An entry without a result gets an error.
fn by_entry<'a, R>(
    entries: usize,
    done: impl Iterator<Item = (&'a str, R)>,
    failed: &'a [BatchResultErrorEntry],
) -> Vec<EntryAnswer<R>> {
    let mut answers: Vec<EntryAnswer<R>> = (0..entries).map(|_| Err(ServiceError::no_answer())).collect();
    let failed = failed.iter().map(|entry| (entry.id(), Err(error_of(entry))));
    for (id, answer) in done.map(|(id, receipt)| (id, Ok(receipt))).chain(failed) {
        if let Some(slot) = id.parse().ok().and_then(|index: usize| answers.get_mut(index)) {
            *slot = answer;
        }
    }
    answers
}

/// Converts SQS's error for one entry into a [`ServiceError`]. A throttled entry is always retried. Any other entry is
/// retried unless SQS reports that the sender is at fault.
fn error_of(entry: &BatchResultErrorEntry) -> ServiceError {
    let kind = match (kind_of_code(entry.code()), entry.sender_fault()) {
        (Some(ErrorKind::Throttled), _) => ErrorKind::Throttled,
        (Some(kind), sender_fault) if kind.is_retriable() != sender_fault => kind,
        (_, true) => ErrorKind::Refused,
        (_, false) => ErrorKind::Transient,
    };
    ServiceError::new(kind, entry.code(), entry.message().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    //! Tests with the SDK's own client and canned HTTP responses: which requests are sent, and how responses are
    //! parsed.

    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use aws_sdk_sqs::config::retry::RetryConfig;
    use aws_sdk_sqs::config::{BehaviorVersion, Config, Credentials, Region};
    use aws_sdk_sqs::primitives::Blob;
    use aws_sdk_sqs::types::MessageAttributeValue;
    use aws_smithy_http_client::test_util::infallible_client_fn;
    use serde_json::{Value, json};

    use super::*;
    use crate::lanes::Lane;
    use crate::operation::Operation;
    use crate::outcome::EntryError;
    use crate::retries::Retries;

    const URL: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders";
    const FIFO: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo";

    type Requests = Arc<Mutex<Vec<(String, Value)>>>;

    /// Creates a client that gets these responses in turn, then always the last one. Its own retries are enabled. Also
    /// returns the list that collects its requests.
    fn answering(answers: impl IntoIterator<Item = (u16, Value)>) -> (Client, Requests) {
        let requests = Requests::default();
        let seen = requests.clone();
        let answers = Mutex::new(answers.into_iter().collect::<Vec<_>>());
        let http_client = infallible_client_fn(move |request: http::Request<_>| {
            let operation = request.headers()["x-amz-target"].to_str().unwrap().to_owned();
            let body = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
            seen.lock().unwrap().push((operation, body));
            let mut answers = answers.lock().unwrap();
            let (status, body) = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
            http::Response::builder().status(status).body(body.to_string()).unwrap()
        });
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::for_tests())
            .retry_config(RetryConfig::standard().with_max_attempts(9))
            .http_client(http_client)
            .build();
        (Client::from_conf(config), requests)
    }

    fn done(ids: impl IntoIterator<Item = usize>) -> Value {
        let done = ids
            .into_iter()
            .map(|id| json!({"Id": id.to_string(), "MessageId": "m", "MD5OfMessageBody": "x"}));
        json!({ "Successful": done.collect::<Vec<_>>() })
    }

    fn string(value: &str) -> MessageAttributeValue {
        MessageAttributeValue::builder().data_type("String").string_value(value).build().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn messages_are_sent_with_all_fields() {
        let (client, requests) = answering([(200, done(0..5))]);
        let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1";
        let delayed = |millis| Message::new("x").delayed(Duration::from_millis(millis));
        let messages = [
            Message { attributes: vec![("Reason".into(), string("why"))], ..Message::new("one") },
            Message::new("two").fifo("g", "d"),
            Message { trace_header: Some(header.into()), ..Message::new("three") },
            // The delay is rounded up to whole seconds.
            delayed(1),
            delayed(u64::MAX),
        ];
        let delivered = Sender::new(client, URL).send(messages).await.unwrap();
        assert_eq!((delivered.count(), delivered.calls, delivered.retries), (5, 1, 0));
        let attributes = json!({"Reason": {"DataType": "String", "StringValue": "why"}});
        let traced = json!({"AWSTraceHeader": {"DataType": "String", "StringValue": header}});
        let entries = json!([
            {"Id": "0", "MessageBody": "one", "MessageAttributes": attributes},
            {"Id": "1", "MessageBody": "two", "MessageGroupId": "g", "MessageDeduplicationId": "d"},
            {"Id": "2", "MessageBody": "three", "MessageSystemAttributes": traced},
            {"Id": "3", "MessageBody": "x", "DelaySeconds": 1},
            {"Id": "4", "MessageBody": "x", "DelaySeconds": i32::MAX},
        ]);
        let expected = ("AmazonSQS.SendMessageBatch".into(), json!({"QueueUrl": URL, "Entries": entries}));
        assert_eq!(*requests.lock().unwrap(), [expected]);
    }

    #[tokio::test(start_paused = true)]
    async fn visibility_is_rounded_up_to_seconds() {
        let (client, requests) = answering([(200, json!({"Successful": [{"Id": "0"}, {"Id": "1"}]}))]);
        let hidden =
            |millis| Visibility { receipt_handle: "handle".into(), timeout: Duration::from_millis(millis) };
        VisibilityChanger::new(client, URL).send([hidden(2_000), hidden(2_001)]).await.unwrap();
        let entries = json!([
            {"Id": "0", "ReceiptHandle": "handle", "VisibilityTimeout": 2},
            {"Id": "1", "ReceiptHandle": "handle", "VisibilityTimeout": 3},
        ]);
        let expected =
            ("AmazonSQS.ChangeMessageVisibilityBatch".into(), json!({"QueueUrl": URL, "Entries": entries}));
        assert_eq!(*requests.lock().unwrap(), [expected]);
    }

    #[tokio::test(start_paused = true)]
    async fn partial_answer_is_read_by_id() {
        let failed =
            json!([{"Id": "2", "Code": "InvalidMessageContents", "SenderFault": true, "Message": "bad"}]);
        let first = json!({"Successful": done([3, 0])["Successful"], "Failed": failed});
        let (client, requests) = answering([(200, first), (200, done([0]))]);
        let undelivered =
            Sender::new(client, URL).send((0..4).map(|n| Message::new(n.to_string()))).await.unwrap_err();
        assert_eq!((undelivered.delivered.len(), undelivered.calls), (3, 2));
        assert_eq!(undelivered.entries[0].entry, Message::new("2"));
        assert_eq!(undelivered.entries[0].cause.to_string(), "refused: InvalidMessageContents: bad");
        // Entry 1 got no answer, so it was sent again. Its id is its position in the new call.
        let again = json!([{"Id": "0", "MessageBody": "1"}]);
        assert_eq!(requests.lock().unwrap()[1].1["Entries"], again);
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_ids_are_ignored() {
        let (client, _) = answering([(200, done([1, 7]))]);
        let sender = Sender::new(client, URL).retries(Retries::none());
        let undelivered = sender.send([Message::new("0")]).await.unwrap_err();
        assert_eq!(undelivered.by_entry(), [Err(EntryError::Exhausted(ServiceError::no_answer()))]);
    }

    #[test]
    fn sqs_decides_whose_fault_an_error_is() {
        let kind = |code, sender_fault| {
            let entry = BatchResultErrorEntry::builder().id("0").code(code).sender_fault(sender_fault);
            error_of(&entry.build().unwrap()).kind
        };
        assert_eq!(kind("SomethingNew", true), ErrorKind::Refused);
        assert_eq!(kind("SomethingNew", false), ErrorKind::Transient);
        assert_eq!(kind("InternalError", false), ErrorKind::Transient);
        assert_eq!(kind("InternalError", true), ErrorKind::Refused);
        assert_eq!(kind("AccessDenied", true), ErrorKind::Denied);
        assert_eq!(kind("AccessDenied", false), ErrorKind::Transient);
        assert_eq!(kind("RequestThrottled", true), ErrorKind::Throttled);
        assert_eq!(kind("RequestThrottled", false), ErrorKind::Throttled);
    }

    #[test]
    fn a_message_counts_with_its_attributes() {
        let (client, _) = answering([]);
        let sender = Sender::new(client, URL);
        let binary = MessageAttributeValue::builder().data_type("Binary").binary_value(Blob::new([0; 5]));
        let attributes = vec![("name".into(), string("värde")), ("bytes".into(), binary.build().unwrap())];
        // The trace header does not count.
        let trace_header = Some("Root=1".into());
        let message = Message { attributes, trace_header, ..Message::new("körper") };
        let expected = "körper".len() + "nameStringvärde".len() + "bytesBinary".len() + 5;
        assert_eq!(sender.operation.size(&message), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn fifo_message_without_group_is_refused() {
        let (client, requests) = answering([(200, done([0]))]);
        let no_group = Message { group_id: Some(String::new()), ..Message::new("two") };
        let messages = [Message::new("one"), no_group, Message::new("three").fifo("g", "d")];
        let undelivered = Sender::new(client, FIFO).send(messages).await.unwrap_err();
        let why = "refused: a message to a FIFO queue needs a group: see `Message::fifo`";
        for left in &undelivered.entries {
            assert_eq!((left.cause.to_string().as_str(), left.calls), (why, 0));
        }
        assert_eq!((undelivered.entries.len(), undelivered.calls), (2, 1));
        assert_eq!(requests.lock().unwrap()[0].1["Entries"][0]["MessageBody"], "three");
    }

    #[test]
    fn groups_are_lanes_on_fifo_queues_only() {
        let lane = |url: &str, message: &Message| {
            let (client, _) = answering([]);
            Sender::new(client, url).operation.lane(message)
        };
        let message = Message::new("x").fifo("g", "d");
        assert_eq!(lane(FIFO, &message), Some(Lane::new(["g"])));
        assert_eq!(lane(URL, &message), None, "a fair queue keeps no order");
        assert_eq!(lane(FIFO, &Message::new("x")), None);
    }
}
