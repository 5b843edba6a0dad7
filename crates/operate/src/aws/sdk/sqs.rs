//! SQS's calls, in batches through `comeback-delivery`, and its answers in our own types.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::SdkError;
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{self, MessageAttributeValue, MessageSystemAttributeName};
use comeback_delivery::sqs::{self, Deleter, Sender, Visibility, VisibilityChanger};
use comeback_delivery::{Cause, ErrorKind, Retries, ServiceError, by_entry};
use tokio::sync::mpsc;

use crate::aws::sdk::Or as _;
use crate::aws::{
    Attribute, AttributeValue, EntryFailure, EntryFailureKind, Message, NewMessage, Paused, Receive,
};
use crate::failure::Failure;

/// SQS's limit for one receive.
const MOST_OF_A_RECEIVE: usize = 10;
/// Concurrent calls that send or delete.
const AT_ONCE: usize = 8;
/// Concurrent calls that hide: there may be 100,000 messages, ten a call.
const HIDING: usize = 16;

pub(super) async fn receive(
    client: &Client,
    url: &str,
    most: usize,
    receive: Receive,
) -> Result<Vec<Message>, Failure> {
    let call = client
        .receive_message()
        .queue_url(url)
        .max_number_of_messages(most.min(MOST_OF_A_RECEIVE) as i32)
        .visibility_timeout(receive.visibility.as_secs() as i32)
        .wait_time_seconds(receive.wait.as_secs() as i32)
        .message_attribute_names("All")
        .message_system_attribute_names(MessageSystemAttributeName::All);
    match call.send().await {
        // Past the limit of messages in flight nothing can be received. A long poll usually does not say so.
        Err(SdkError::ServiceError(error)) if error.err().is_over_limit() => Ok(Vec::new()),
        answer => {
            let messages = answer.or_failure("sqs:ReceiveMessage", url)?.messages;
            Ok(messages.unwrap_or_default().into_iter().map(message).collect())
        }
    }
}

fn message(message: types::Message) -> Message {
    let system = message.attributes.unwrap_or_default().into_iter();
    let attributes = message.message_attributes.unwrap_or_default().into_iter();
    Message {
        id: message.message_id.unwrap_or_default(),
        receipt_handle: message.receipt_handle,
        body: message.body,
        system: system.map(|(name, value)| (name.as_str().to_owned(), value)).collect(),
        attributes: attributes.map(|(name, value)| (name, attribute(value))).collect(),
    }
}

fn attribute(value: MessageAttributeValue) -> Attribute {
    Attribute {
        data_type: value.data_type,
        value: match (value.string_value, value.binary_value) {
            (None, Some(bytes)) => AttributeValue::Bytes(bytes.into_inner()),
            (text, _) => AttributeValue::Text(text.unwrap_or_default()),
        },
    }
}

/// A send without an answer is not repeated: if SQS accepted it, a second one would be another message.
pub(super) async fn send(
    client: &Client,
    url: &str,
    messages: Vec<NewMessage>,
    paused: Paused<'_>,
) -> Vec<Result<(), EntryFailure>> {
    let (tell, told) = pauses();
    let sender =
        Sender::new(client.clone(), url).retries(Retries::none()).concurrency(AT_ONCE).on_pause(tell);
    let answers = hearing(sender.send(messages.into_iter().map(new_message)), told, paused).await;
    by_entry(answers).into_iter().map(|answer| answer.map(drop).map_err(failure)).collect()
}

fn new_message(message: NewMessage) -> sqs::Message {
    let attributes = message.attributes.into_iter().map(|(name, attribute)| {
        let value = MessageAttributeValue::builder().data_type(attribute.data_type);
        let value = match attribute.value {
            AttributeValue::Text(text) => value.string_value(text),
            AttributeValue::Bytes(bytes) => value.binary_value(Blob::new(bytes)),
        };
        (name, value.build().expect("BUG: an attribute without a type"))
    });
    let attributes = attributes.collect();
    sqs::Message { attributes, trace_header: message.trace_header, ..sqs::Message::new(message.body) }
}

pub(super) async fn delete(
    client: &Client,
    url: &str,
    receipt_handles: Vec<String>,
    paused: Paused<'_>,
) -> Vec<Result<(), EntryFailure>> {
    let (tell, told) = pauses();
    let deleter = Deleter::new(client.clone(), url).concurrency(AT_ONCE).on_pause(tell);
    let answers = hearing(deleter.send(receipt_handles), told, paused).await;
    by_entry(answers).into_iter().map(|answer| answer.map_err(failure)).collect()
}

pub(super) async fn hide(
    client: &Client,
    url: &str,
    messages: Vec<(String, Duration)>,
    paused: Paused<'_>,
) -> Vec<Result<(), EntryFailure>> {
    let (tell, told) = pauses();
    let changer = VisibilityChanger::new(client.clone(), url).concurrency(HIDING).on_pause(tell);
    let hidden = messages.into_iter().map(|(receipt_handle, timeout)| Visibility { receipt_handle, timeout });
    let answers = hearing(changer.send(hidden), told, paused).await;
    by_entry(answers).into_iter().map(|answer| answer.map_err(failure)).collect()
}

type Told = mpsc::UnboundedReceiver<(Duration, String)>;

/// A listener for a sender's pauses, which may be called on any thread, and what it hears.
fn pauses() -> (impl Fn(Duration, &ServiceError) + Send + Sync + 'static, Told) {
    let (tell, told) = mpsc::unbounded_channel();
    let listen = move |pause: Duration, error: &ServiceError| {
        // Nobody listens once the work is done.
        let _ = tell.send((pause, error.to_string()));
    };
    (listen, told)
}

/// Does the work, and passes on its pauses.
async fn hearing<T>(work: impl Future<Output = T>, mut told: Told, paused: Paused<'_>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return result,
            Some((pause, why)) = told.recv() => paused(pause, &why),
        }
    }
}

fn failure(cause: Cause) -> EntryFailure {
    let error = cause.error();
    let kind = match error.map(|error| error.kind) {
        Some(ErrorKind::Denied) => EntryFailureKind::Denied,
        Some(ErrorKind::Missing) => EntryFailureKind::Missing,
        Some(ErrorKind::Refused | ErrorKind::TooLarge) => EntryFailureKind::Refused,
        Some(_) => EntryFailureKind::Transient,
        None if matches!(cause, Cause::TooLarge { .. }) => EntryFailureKind::Refused,
        None => EntryFailureKind::NotTried,
    };
    let code = error.map(|error| error.code.clone()).unwrap_or_default();
    EntryFailure { kind, code, text: cause.to_string() }
}
