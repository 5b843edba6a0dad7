//! A trait for the seven batch APIs that the senders support, and the checks to make after each delivery.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::config::{Credentials, SharedCredentialsProvider};
use aws_smithy_types::Blob;
use comeback_delivery::limits::{self, Limits};
use comeback_delivery::{
    EntryError, Operation, Retries, Sender, TokioSleep, dynamodb, eventbridge, firehose, kinesis, sqs,
};

use crate::service::Service;

pub(crate) type ApiResult<A> = comeback_delivery::DeliveryResult<<A as Api>::Operation>;

pub(crate) type Entry<A> = <<A as Api>::Operation as Operation>::Entry;

pub(crate) trait Api: Sized {
    type Operation: Operation<Receipt: std::fmt::Debug>;

    const LIMITS: Limits;

    /// Code of a transient error: if the service returns it for an entry, the sender retries the entry.
    const PASSING: &'static str;
    /// Code of a permanent error for an entry; `None` if the API has no such code.
    const FINAL: Option<&'static str> = None;
    /// Error code that the service returns when it refuses a whole call because of one entry.
    const REFUSING_WHOLE: &'static str;
    /// True if the sender treats a response without a list of results as if it had received no response.
    const ABSENT_IS_NO_ANSWER: bool = true;

    type Client: Clone;

    fn client(config: &SdkConfig) -> Self::Client;

    fn over(client: Self::Client) -> Sender<Self::Operation, TokioSleep>;

    fn entry(text: String) -> Entry<Self>;

    fn text(entry: &Entry<Self>) -> String;

    /// Size of an entry without its text, in bytes.
    const BESIDE: usize = 0;

    /// Creates a sender that never waits, and that retries an entry at most five times.
    fn sender(service: &Service) -> Sender<Self::Operation, TokioSleep> {
        let sender = Self::over(Self::client(&config(service))).sleep(|_| tokio::time::sleep(Duration::ZERO));
        sender.retries(Retries::of([Duration::ZERO; 5]))
    }

    fn entries(count: usize) -> Vec<Entry<Self>> {
        (0..count).map(|index| Self::entry(index.to_string())).collect()
    }
}

pub(crate) fn config(service: &Service) -> SdkConfig {
    let credentials = Credentials::new("id", "key", None, None, "test");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(service.endpoint())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        // The client's retries are on, so the senders must switch them off.
        .retry_config(RetryConfig::standard().with_max_attempts(4))
        .sleep_impl(
            aws_sdk_sqs::config::SharedAsyncSleep::new(aws_smithy_async::rt::sleep::TokioSleep::new()),
        )
        .build()
}

/// Checks the rules that hold whatever the service does, and returns each undelivered entry's error, keyed by the
/// entry's text.
pub(crate) fn accounted<A: Api>(
    service: &Service,
    texts: &[String],
    outcome: ApiResult<A>,
) -> HashMap<String, EntryError> {
    let log = service.log();
    assert_eq!(log.violations, Vec::<String>::new());
    let (delivered, calls, entries) = match outcome {
        Ok(delivered) => (delivered.count(), delivered.calls, Vec::new()),
        Err(undelivered) => (undelivered.delivered.len(), undelivered.calls, undelivered.entries),
    };
    assert_eq!(delivered + entries.len(), texts.len());
    assert_eq!(usize::try_from(calls).unwrap(), log.calls.len(), "calls as the service counts them");
    assert!(entries.is_sorted_by(|one, next| one.index < next.index));
    let causes: HashMap<String, EntryError> = entries
        .into_iter()
        .map(|left| {
            assert_eq!(A::text(&left.entry), texts[left.index]);
            let sent = log.calls.iter().filter(|call| call.contains(&texts[left.index])).count();
            assert_eq!(usize::try_from(left.calls).unwrap(), sent, "calls with {}", texts[left.index]);
            (texts[left.index].clone(), left.cause)
        })
        .collect();
    let done = counted(&log.done);
    let doubtful = counted(&log.doubtful);
    for text in texts.iter().filter(|text| !causes.contains_key(*text)) {
        assert!(done.contains_key(text), "{text} is called delivered, and is not done");
    }
    for (text, times) in &done {
        assert!(*times <= 1 + doubtful.get(text).copied().unwrap_or(0), "{text} is done {times} times");
    }
    let known: HashSet<&String> = texts.iter().collect();
    assert!(log.done.iter().all(|text| known.contains(text)));
    causes
}

fn counted(texts: &[String]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    texts.iter().for_each(|text| *counts.entry(text.clone()).or_default() += 1);
    counts
}

pub(crate) fn texts(count: usize) -> Vec<String> {
    (0..count).map(|index| index.to_string()).collect()
}

pub(crate) const QUEUE: &str = "http://localhost/000000000000/orders";

macro_rules! api {
    ($name:ident: $operation:ty, $sdk:ident, $limits:expr, { $($constants:tt)* }, $over:expr, $entry:expr, $text:expr) => {
        pub(crate) struct $name;

        impl Api for $name {
            type Operation = $operation;
            type Client = $sdk::Client;
            const LIMITS: Limits = $limits;
            $($constants)*

            fn client(config: &SdkConfig) -> Self::Client {
                Self::Client::new(config)
            }

            fn over(client: Self::Client) -> Sender<Self::Operation, TokioSleep> {
                let over: fn(Self::Client) -> Sender<Self::Operation, TokioSleep> = $over;
                over(client)
            }

            fn entry(text: String) -> Entry<Self> {
                let entry: fn(String) -> Entry<Self> = $entry;
                entry(text)
            }

            fn text(entry: &Entry<Self>) -> String {
                let text: fn(&Entry<Self>) -> String = $text;
                text(entry)
            }
        }
    };
}

api! {
    SendMessages: sqs::SendMessages, aws_sdk_sqs, limits::SQS_SEND,
    {
        const PASSING: &'static str = "InternalError";
        const FINAL: Option<&'static str> = Some("InvalidMessageContents");
        const REFUSING_WHOLE: &'static str = "InvalidMessageContents";
    },
    |client| sqs::Sender::new(client, QUEUE),
    |text| sqs::Message::new(text),
    |message| message.body.clone()
}

api! {
    ChangeVisibility: sqs::ChangeVisibility, aws_sdk_sqs, limits::SQS_RECEIPTS,
    {
        const PASSING: &'static str = "InternalError";
        const FINAL: Option<&'static str> = Some("InvalidMessageContents");
        const REFUSING_WHOLE: &'static str = "InvalidParameterValue";
    },
    |client| sqs::VisibilityChanger::new(client, QUEUE),
    |receipt_handle| sqs::Visibility { receipt_handle, timeout: Duration::from_secs(30) },
    |change| change.receipt_handle.clone()
}

api! {
    DeleteMessages: sqs::DeleteMessages, aws_sdk_sqs, limits::SQS_RECEIPTS,
    {
        const PASSING: &'static str = "InternalError";
        const FINAL: Option<&'static str> = Some("InvalidMessageContents");
        const REFUSING_WHOLE: &'static str = "InvalidParameterValue";
    },
    |client| sqs::Deleter::new(client, QUEUE),
    |receipt_handle| receipt_handle,
    |receipt_handle| receipt_handle.clone()
}

api! {
    BatchWriteItem: dynamodb::BatchWriteItem, aws_sdk_dynamodb, limits::DYNAMODB,
    {
        // DynamoDB returns no code for a single write, and lists unprocessed writes in `UnprocessedItems`.
        const PASSING: &'static str = "";
        const REFUSING_WHOLE: &'static str = "ValidationException";
        const ABSENT_IS_NO_ANSWER: bool = false;
        const BESIDE: usize = "pk".len();
    },
    |client| dynamodb::Sender::new(client, [dynamodb::Table::new("orders", "pk")]),
    |text| dynamodb::Write::put("orders", HashMap::from([("pk".into(), AttributeValue::S(text))])),
    |write| {
        let version = write.attributes().get("version").map_or("", |version| version.as_n().unwrap());
        format!("{}{version}", write.attributes()["pk"].as_s().unwrap())
    }
}

api! {
    PutRecords: kinesis::PutRecords, aws_sdk_kinesis, limits::KINESIS,
    {
        const PASSING: &'static str = "ProvisionedThroughputExceededException";
        const REFUSING_WHOLE: &'static str = "InvalidArgumentException";
        const BESIDE: usize = "key".len();
    },
    |client| kinesis::Sender::new(client, "orders"),
    |text: String| {
        let record = aws_sdk_kinesis::types::PutRecordsRequestEntry::builder();
        record.partition_key("key").data(Blob::new(text)).build().unwrap()
    },
    |record| String::from_utf8(record.data().as_ref().to_vec()).unwrap()
}

api! {
    PutRecordBatch: firehose::PutRecordBatch, aws_sdk_firehose, limits::FIREHOSE,
    {
        const PASSING: &'static str = "ServiceUnavailableException";
        const REFUSING_WHOLE: &'static str = "InvalidArgumentException";
    },
    |client| firehose::Sender::new(client, "orders"),
    |text: String| aws_sdk_firehose::types::Record::builder().data(Blob::new(text)).build().unwrap(),
    |record| String::from_utf8(record.data().as_ref().to_vec()).unwrap()
}

api! {
    PutEvents: eventbridge::PutEvents, aws_sdk_eventbridge, limits::EVENTBRIDGE,
    {
        const PASSING: &'static str = "ThrottlingException";
        const FINAL: Option<&'static str> = Some("MalformedDetail");
        const REFUSING_WHOLE: &'static str = "ValidationException";
        const BESIDE: usize = "shop".len() + "Placed".len() + "résource".len() + 14;
    },
    eventbridge::Sender::new,
    |text: String| {
        aws_sdk_eventbridge::types::PutEventsRequestEntry::builder()
            .event_bus_name("orders")
            .source("shop")
            .detail_type("Placed")
            .resources("résource")
            .time(aws_smithy_types::DateTime::from_secs(1_700_000_000))
            .detail(text)
            .build()
    },
    |event| event.detail().unwrap().to_owned()
}
