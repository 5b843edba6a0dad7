//! The SDK's own client against canned HTTP answers: what is asked, and how answers are read.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::MessageAttributeValue;
use aws_smithy_http_client::test_util::infallible_client_fn;
use serde_json::{Value, json};

use super::*;
use crate::limits::SQS_SEND;
use crate::{Cause, Lane, Operation, Retries};

const URL: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders";
const FIFO: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo";

type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// A client whose requests get these answers, the last for all that follow. Its own retries are on.
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
    let done =
        ids.into_iter().map(|id| json!({"Id": id.to_string(), "MessageId": "m", "MD5OfMessageBody": "x"}));
    json!({ "Successful": done.collect::<Vec<_>>() })
}

fn string(value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder().data_type("String").string_value(value).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn messages_go_out_with_all_they_have() {
    let (client, requests) = answering([(200, done(0..2))]);
    let plain = Message { attributes: vec![("Reason".into(), string("why"))], ..Message::new("one") };
    let delivered =
        Sender::new(client, FIFO).send([plain, Message::new("two").fifo("g", "d")]).await.unwrap();
    assert_eq!((delivered.count(), delivered.calls, delivered.retries), (2, 1, 0));
    let attributes = json!({"Reason": {"DataType": "String", "StringValue": "why"}});
    let entries = json!([
        {"Id": "0", "MessageBody": "one", "MessageAttributes": attributes},
        {"Id": "1", "MessageBody": "two", "MessageGroupId": "g", "MessageDeduplicationId": "d"},
    ]);
    let expected = ("AmazonSQS.SendMessageBatch".into(), json!({"QueueUrl": FIFO, "Entries": entries}));
    assert_eq!(*requests.lock().unwrap(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_delay_goes_out_in_whole_seconds_never_too_few() {
    let (client, requests) = answering([(200, done(0..4))]);
    let millis = [0, 1, 900_000, u64::MAX];
    let messages = millis.map(|millis| Message::new("x").delayed(Duration::from_millis(millis)));
    Sender::new(client, URL).send(messages).await.unwrap();
    let requests = requests.lock().unwrap();
    let entries = requests[0].1["Entries"].as_array().unwrap();
    let delays: Vec<&Value> = entries.iter().map(|entry| &entry["DelaySeconds"]).collect();
    assert_eq!(delays, [0, 1, 900, i32::MAX]);
}

#[tokio::test(start_paused = true)]
async fn a_trace_header_goes_out_as_a_system_attribute_and_does_not_count() {
    let (client, requests) = answering([(200, done(0..2))]);
    let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1";
    let traced = Message { trace_header: Some(header.into()), ..Message::new("one") };
    let sender = Sender::new(client, URL);
    assert_eq!(sender.operation.size(&traced), "one".len());
    sender.send([traced, Message::new("two")]).await.unwrap();
    let attributes = json!({"AWSTraceHeader": {"DataType": "String", "StringValue": header}});
    let entries = json!([
        {"Id": "0", "MessageBody": "one", "MessageSystemAttributes": attributes},
        {"Id": "1", "MessageBody": "two"},
    ]);
    assert_eq!(requests.lock().unwrap()[0].1["Entries"], entries);
}

#[tokio::test(start_paused = true)]
async fn visibility_goes_out_in_whole_seconds_never_too_few() {
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
async fn receipt_handles_are_deleted_ten_a_call() {
    let answer = json!({"Successful": (0..10).map(|id| json!({"Id": id.to_string()})).collect::<Vec<_>>()});
    let (client, requests) = answering([(200, answer)]);
    let delivered = Deleter::new(client, URL).send((0..11).map(|n| format!("h-{n}"))).await.unwrap();
    assert_eq!((delivered.count(), delivered.calls), (11, 2));
    let requests = requests.lock().unwrap();
    assert_eq!(requests[0].0, "AmazonSQS.DeleteMessageBatch");
    assert_eq!(requests[0].1["Entries"].as_array().unwrap().len(), 10);
    assert_eq!(requests[1].1["Entries"], json!([{"Id": "0", "ReceiptHandle": "h-10"}]));
}

#[tokio::test(start_paused = true)]
async fn a_partial_answer_is_read_by_id_whatever_its_order() {
    let failed =
        json!([{"Id": "2", "Code": "InvalidMessageContents", "SenderFault": true, "Message": "bad"}]);
    let first = json!({"Successful": done([3, 0])["Successful"], "Failed": failed});
    let (client, requests) = answering([(200, first), (200, done([0]))]);
    let undelivered =
        Sender::new(client, URL).send((0..4).map(|n| Message::new(n.to_string()))).await.unwrap_err();
    assert_eq!((undelivered.delivered.len(), undelivered.calls), (3, 2));
    assert_eq!(undelivered.entries[0].entry, Message::new("2"));
    assert_eq!(undelivered.entries[0].cause.to_string(), "refused: InvalidMessageContents: bad");
    // Entry 1, without an answer, was sent again, under an id of that call.
    let again = json!([{"Id": "0", "MessageBody": "1"}]);
    assert_eq!(requests.lock().unwrap()[1].1["Entries"], again);
}

#[tokio::test(start_paused = true)]
async fn ids_that_were_not_asked_for_are_no_answers() {
    let (client, _) = answering([(200, done([1, 7]))]);
    let sender = Sender::new(client, URL).retries(Retries::none());
    let undelivered = sender.send([Message::new("0")]).await.unwrap_err();
    assert_eq!(undelivered.by_entry(), [Err(Cause::Exhausted(ServiceError::no_answer()))]);
}

#[tokio::test(start_paused = true)]
async fn the_clients_own_retries_are_off() {
    let (client, requests) = answering([(500, json!({"__type": "InternalFailure"}))]);
    let handle = || "h".to_owned();
    let change = Visibility { receipt_handle: handle(), timeout: Duration::ZERO };
    Sender::new(client.clone(), URL).retries(Retries::none()).send([Message::new("x")]).await.unwrap_err();
    VisibilityChanger::new(client.clone(), URL).retries(Retries::none()).send([change]).await.unwrap_err();
    Deleter::new(client, URL).retries(Retries::none()).send([handle()]).await.unwrap_err();
    assert_eq!(requests.lock().unwrap().len(), 3);
}

#[test]
fn sqs_says_whether_an_error_is_the_senders_fault() {
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
    let message = Message { attributes, ..Message::new("körper") };
    let expected = "körper".len() + "nameStringvärde".len() + "bytesBinary".len() + 5;
    assert_eq!(sender.operation.size(&message), expected);
}

#[tokio::test(start_paused = true)]
async fn at_and_over_the_limit_of_a_message_and_of_a_batch() {
    let (client, requests) = answering([(200, done(0..10))]);
    let body = |bytes: usize| Message::new("x".repeat(bytes));
    let sender = Sender::new(client, URL);
    let most = SQS_SEND.entry_bytes;
    sender.send([body(most - 1), body(1), body(1)]).await.unwrap();
    let bodies: Vec<usize> =
        requests.lock().unwrap().iter().map(|(_, body)| body["Entries"].as_array().unwrap().len()).collect();
    assert_eq!(bodies, [2, 1]);
    let undelivered = sender.send([body(most + 1), body(most)]).await.unwrap_err();
    let outcomes: Vec<_> = undelivered.by_entry().into_iter().map(|it| it.map(drop)).collect();
    assert_eq!(outcomes, [Err(Cause::TooLarge { size: most + 1, limit: 1_048_576 }), Ok(())]);
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

/// For `tokio::spawn`.
#[test]
fn deliveries_can_be_spawned() {
    fn sendable(_: impl Send) {}
    let (client, _) = answering([]);
    let sender = Sender::new(client, URL);
    sendable(sender.send([Message::new("x")]));
    let mut delivery = sender.start([Message::new("x")]);
    sendable(delivery.run());
    sendable(delivery);
}
