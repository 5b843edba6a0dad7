//! Makes batch calls to SQS through `comeback-delivery`, and converts the responses to our own types.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::SdkError;
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{self, MessageAttributeValue, MessageSystemAttributeName as SystemAttribute};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use comeback_delivery::{EntryError, ErrorKind, Left, Operation, Sender, ServiceError, by_entry, sqs};
use comeback_engine::{Record, Timestamp};
use tokio::sync::mpsc;

use crate::aws::sdk::Or as _;
use crate::aws::{
    AttributeValue, EntryFailure, EntryFailureKind, EntryResults, MOST_OF_A_RECEIVE, NewMessage,
    PauseCallback, Receive, Received,
};
use crate::failure::Failure;

/// The maximum number of concurrent calls that send or delete messages.
pub(super) const AT_ONCE: usize = 8;
/// The maximum number of concurrent calls that hide messages. A command may have to hide 100,000 messages, ten in each
/// call.
pub(super) const HIDING: usize = 16;

pub(super) async fn receive(
    client: &Client,
    url: &str,
    most: usize,
    receive: Receive,
) -> Result<Vec<Received>, Failure> {
    let call = client
        .receive_message()
        .queue_url(url)
        .max_number_of_messages(most.min(MOST_OF_A_RECEIVE) as i32)
        .visibility_timeout(receive.visibility.as_secs() as i32)
        .wait_time_seconds(receive.wait.as_secs() as i32)
        .message_attribute_names("All")
        .message_system_attribute_names(SystemAttribute::All);
    match call.send().await {
        // At the limit on messages in flight, SQS returns an empty response or this error.
        Err(SdkError::ServiceError(error)) if error.err().is_over_limit() => Ok(Vec::new()),
        answer => {
            let messages = answer.or_failure("sqs:ReceiveMessage", url)?.messages;
            messages.unwrap_or_default().into_iter().map(message).collect()
        }
    }
}

/// Converts a message; fails if SQS left out part of it.
fn message(message: types::Message) -> Result<Received, Failure> {
    let id = message.message_id.unwrap_or_default();
    let mut system = message.attributes.unwrap_or_default();
    let attributes = message.message_attributes.unwrap_or_default().into_iter();
    let lacks = |what: &str| Failure::could_not(format!("SQS returned no {what} for message {id:?}"));
    let number = |name: SystemAttribute| {
        let text = system.get(&name).and_then(|text| text.parse::<u64>().ok());
        text.ok_or_else(|| lacks(name.as_str()))
    };
    let record = Record {
        receipt_handle: message.receipt_handle.ok_or_else(|| lacks("receipt handle"))?,
        body: message.body.ok_or_else(|| lacks("body"))?,
        receive_count: number(SystemAttribute::ApproximateReceiveCount)?.try_into().unwrap_or(u32::MAX),
        sent: Timestamp::from_millis(number(SystemAttribute::SentTimestamp)?),
        first_receive: Timestamp::from_millis(number(SystemAttribute::ApproximateFirstReceiveTimestamp)?),
        moved: None,
        trace_header: system.remove(&SystemAttribute::AwsTraceHeader),
        attributes: Vec::new(),
        message_id: id,
    };
    Ok(Received { record, attributes: attributes.map(|(name, value)| (name, attribute(value))).collect() })
}

fn attribute(value: MessageAttributeValue) -> AttributeValue {
    let text = value.string_value.or_else(|| Some(BASE64.encode(value.binary_value?)));
    AttributeValue { data_type: value.data_type, value: text.unwrap_or_default() }
}

/// Performs a batch operation on any number of entries, and returns the result for each entry.
pub(super) async fn deliver<O: Operation, F: Future<Output = ()>, S: Fn(Duration) -> F>(
    sender: Sender<O, S>,
    entries: impl IntoIterator<Item = O::Entry>,
    paused: PauseCallback<'_>,
) -> EntryResults {
    // The sender may pause on any thread, but `paused` must run on this one.
    let (pause, mut pauses) = mpsc::unbounded_channel();
    let sender = sender.on_pause(move |length: Duration, error: &ServiceError| {
        // This fails only once the work is done, when nobody needs the pause.
        let _ = pause.send((length, error.to_string()));
    });
    let mut work = pin!(sender.send(entries));
    let answers = loop {
        tokio::select! {
            answers = &mut work => break answers,
            Some((length, why)) = pauses.recv() => paused(length, &why),
        }
    };
    let left = answers.as_ref().err().into_iter().flat_map(|undelivered| &undelivered.entries);
    let before: BTreeSet<usize> = left.filter(|left| was_sent_before(left)).map(|left| left.index).collect();
    let answers = by_entry(answers).into_iter().enumerate();
    let answers = answers
        .map(|(index, answer)| answer.map(drop).map_err(|cause| failure(cause, before.contains(&index))));
    answers.collect()
}

/// Returns true if an entry was also in a call before the one that ended its delivery: the earlier call may have taken
/// effect.
fn was_sent_before<E>(left: &Left<E>) -> bool {
    // If the delivery was halted, the entry was not in the call that failed.
    let last_calls = if matches!(left.cause, EntryError::Halted(_)) { 0 } else { 1 };
    left.calls > last_calls
}

pub(super) fn new_message(message: NewMessage) -> sqs::Message {
    let attributes = message.attributes.into_iter().map(|(name, attribute)| {
        let value = MessageAttributeValue::builder().data_type(&attribute.data_type);
        let value = match attribute.bytes().filter(|_| attribute.is_binary()) {
            Some(bytes) => value.binary_value(Blob::new(bytes)),
            // A value that is not Base64 is sent as text, which SQS refuses for a binary attribute.
            None => value.string_value(&attribute.value),
        };
        (name, value.build().expect("BUG: an attribute without a type"))
    });
    let attributes = attributes.collect();
    sqs::Message { attributes, trace_header: message.trace_header, ..sqs::Message::new(message.body) }
}

fn failure(cause: EntryError, was_sent_before: bool) -> EntryFailure {
    let error = cause.error();
    let kind = match error.map(|error| error.kind) {
        // A denial says nothing about an earlier call.
        Some(ErrorKind::Denied) if was_sent_before => EntryFailureKind::Transient,
        Some(ErrorKind::Denied) => EntryFailureKind::Denied,
        Some(ErrorKind::Missing) => EntryFailureKind::Missing,
        Some(ErrorKind::Refused | ErrorKind::TooLarge) => EntryFailureKind::Refused,
        Some(_) => EntryFailureKind::Transient,
        None if matches!(cause, EntryError::TooLarge { .. }) => EntryFailureKind::Refused,
        None => EntryFailureKind::NotTried,
    };
    let code = error.map(|error| error.code.clone()).unwrap_or_default();
    EntryFailure { kind, code, text: cause.to_string() }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::aws::Aws as _;
    use crate::aws::sdk::tests::{answering, answering_with};

    const URL: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/dead";

    #[tokio::test]
    async fn a_queue_over_its_limit_in_flight_gives_nothing() {
        let ask = async |code: &'static str| {
            let account = answering(move |_| (400, code, "{}".into())).await;
            let options = Receive { visibility: Duration::from_secs(900), wait: Duration::from_secs(1) };
            receive(&account.sqs, URL, 10, options).await
        };
        assert_eq!(ask("OverLimit").await, Ok(Vec::new()));
        let failure = ask("AccessDenied").await.unwrap_err().to_string();
        assert!(failure.starts_with(&format!("sqs:ReceiveMessage on {URL}: AccessDenied")), "{failure}");
    }

    #[tokio::test]
    async fn a_receive_asks_for_all_attributes_and_ten_messages_at_most() {
        let account = answering(|request| {
            let request: serde_json::Value = serde_json::from_str(request).unwrap();
            assert_eq!(request["MaxNumberOfMessages"], 10);
            assert_eq!(
                (&request["VisibilityTimeout"], &request["WaitTimeSeconds"]),
                (&900.into(), &1.into())
            );
            assert_eq!(request["MessageAttributeNames"], serde_json::json!(["All"]));
            assert_eq!(request["MessageSystemAttributeNames"], serde_json::json!(["All"]));
            (200, "", "{}".into())
        });
        let options = Receive { visibility: Duration::from_secs(900), wait: Duration::from_secs(1) };
        assert_eq!(receive(&account.await.sqs, URL, 80, options).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn message_that_lacks_a_part_fails() {
        let whole = serde_json::json!({
            "MessageId": "m-1", "ReceiptHandle": "h-1", "Body": "b",
            "Attributes": {
                "ApproximateReceiveCount": "4294967296", "SentTimestamp": "1000",
                "ApproximateFirstReceiveTimestamp": "2000", "AWSTraceHeader": "Root=1",
            },
        });
        let ask = async |message: &serde_json::Value| {
            let answer = serde_json::json!({"Messages": [message]}).to_string();
            let account = answering(move |_| (200, "", answer.clone())).await;
            let options = Receive { visibility: Duration::ZERO, wait: Duration::ZERO };
            receive(&account.sqs, URL, 10, options).await
        };
        let record = Record {
            message_id: "m-1".into(),
            receipt_handle: "h-1".into(),
            body: "b".into(),
            receive_count: u32::MAX,
            sent: Timestamp::from_secs(1),
            first_receive: Timestamp::from_secs(2),
            moved: None,
            trace_header: Some("Root=1".into()),
            attributes: Vec::new(),
        };
        assert_eq!(ask(&whole).await, Ok(vec![Received { record, attributes: [].into() }]));
        for (of, part, what) in [
            ("", "ReceiptHandle", "receipt handle"),
            ("", "Body", "body"),
            ("/Attributes", "ApproximateReceiveCount", "ApproximateReceiveCount"),
            ("/Attributes", "SentTimestamp", "SentTimestamp"),
            ("/Attributes", "ApproximateFirstReceiveTimestamp", "ApproximateFirstReceiveTimestamp"),
        ] {
            let mut message = whole.clone();
            message.pointer_mut(of).unwrap().as_object_mut().unwrap().remove(part);
            let expected = format!("SQS returned no {what} for message \"m-1\"");
            assert_eq!(ask(&message).await, Err(Failure::could_not(expected)), "{part}");
        }
    }

    #[test]
    fn binary_value_is_sent_as_bytes() {
        let raw = AttributeValue { data_type: "Binary.png".into(), value: "AP8=".into() };
        let attributes = [("Raw".to_owned(), raw.clone())].into();
        let (_, sent) = new_message(NewMessage { attributes, ..NewMessage::default() }).attributes.remove(0);
        assert_eq!((sent.binary_value(), sent.string_value()), (Some(&Blob::new([0, 255])), None));
        assert_eq!(attribute(sent), raw);
    }

    #[derive(Clone, Default)]
    struct Calls(Arc<AtomicUsize>);

    impl Calls {
        fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_send_without_an_answer_is_not_repeated() {
        let calls = Calls::default();
        let counted = calls.clone();
        let account = answering(move |_| {
            counted.0.fetch_add(1, Ordering::Relaxed);
            (500, "InternalError", "{}".into())
        });
        let message = NewMessage { body: "b".into(), ..NewMessage::default() };
        let answers = account.await.send(URL, vec![message], &|_, _| ()).await;
        let kinds: Vec<_> = answers.into_iter().map(|answer| answer.unwrap_err().kind).collect();
        assert_eq!((kinds, calls.count()), (vec![EntryFailureKind::Transient], 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_delete_is_repeated() {
        let calls = Calls::default();
        let counted = calls.clone();
        let account = answering(move |_| match counted.0.fetch_add(1, Ordering::Relaxed) {
            0 => (500, "InternalError", "{}".into()),
            _ => (200, "", r#"{"Successful":[{"Id":"0"}]}"#.into()),
        });
        let answers = account.await.delete(URL, vec!["handle".into()], &|_, _| ()).await;
        assert_eq!((answers, calls.count()), (vec![Ok(())], 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deletion_that_is_denied_only_when_repeated_may_have_been_made() {
        for (first, kind) in [
            ((500, "InternalError"), EntryFailureKind::Transient),
            ((403, "AccessDenied"), EntryFailureKind::Denied),
        ] {
            let calls = Calls::default();
            let counted = calls.clone();
            let account = answering(move |_| match counted.0.fetch_add(1, Ordering::Relaxed) {
                0 => (first.0, first.1, "{}".into()),
                _ => (403, "AccessDenied", "{}".into()),
            });
            let answers = account.await.delete(URL, vec!["handle".into()], &|_, _| ()).await;
            let failure = answers.into_iter().next().unwrap().unwrap_err();
            assert_eq!((failure.kind, &*failure.code), (kind, "AccessDenied"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_passed_on_when_it_begins() {
        let calls = Calls::default();
        let counted = calls.clone();
        let header = Some(("retry-after", "5"));
        let account = answering_with(header, move |_| match counted.0.fetch_add(1, Ordering::Relaxed) {
            0 => (400, "RequestThrottled", "{}".into()),
            _ => (200, "", r#"{"Successful":[{"Id":"0"}]}"#.into()),
        });
        let heard = RefCell::new(Vec::new());
        let hear =
            |pause: Duration, why: &str| heard.borrow_mut().push((calls.count(), pause, why.to_owned()));
        assert_eq!(account.await.delete(URL, vec!["handle".into()], &hear).await, [Ok(())]);
        let heard = heard.into_inner();
        let [(1, pause, why)] = &*heard else { panic!("{heard:?}") };
        assert!(*pause >= Duration::from_secs(5) && why.starts_with("RequestThrottled"), "{heard:?}");
    }

    #[test]
    fn entry_failures_are_classified() {
        let error = |kind| ServiceError::new(kind, "Code", "why");
        for (cause, kind, code) in [
            (EntryError::Halted(error(ErrorKind::Denied)), EntryFailureKind::Denied, "Code"),
            (EntryError::Refused(error(ErrorKind::Missing)), EntryFailureKind::Missing, "Code"),
            (EntryError::Refused(error(ErrorKind::Refused)), EntryFailureKind::Refused, "Code"),
            (EntryError::Refused(error(ErrorKind::TooLarge)), EntryFailureKind::Refused, "Code"),
            (EntryError::TooLarge { size: 2, limit: 1 }, EntryFailureKind::Refused, ""),
            (EntryError::Exhausted(error(ErrorKind::Throttled)), EntryFailureKind::Transient, "Code"),
            (EntryError::Stopped(None), EntryFailureKind::NotTried, ""),
        ] {
            let text = cause.to_string();
            assert_eq!(failure(cause, false), EntryFailure { kind, code: code.into(), text });
        }
    }
}
