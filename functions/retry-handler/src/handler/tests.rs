use comeback_engine::Policy;
use serde_json::{Value, json};

use super::*;
use crate::aws::tests::{Requests, answering};
use crate::queue::Queue;

const TARGET: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
const NOW: Timestamp = Timestamp::from_secs(1_789_400_815);

fn handler(retry_queue_url: Option<&str>) -> (Handler, Requests) {
    let done: Vec<Value> = (0..10).map(|id| json!({"Id": id.to_string()})).collect();
    let (aws, requests) = answering(200, "", &json!({"Successful": done}));
    let dead_letter_queue_url = "https://sqs.eu-west-1.amazonaws.com/123456789012/dead".to_owned();
    let config = Config {
        policy: Policy::from_variables(|name| (name == "TARGET_FUNCTIONS").then(|| TARGET.into())).unwrap(),
        dead_letter_queue: Queue::from_url(&dead_letter_queue_url).unwrap(),
        dead_letter_queue_url,
        retry_queue_url: retry_queue_url.map(Into::into),
    };
    (Handler::new(config, aws), requests)
}

/// A first receive, from the queue of that name.
fn message(id: &str, queue: &str) -> Value {
    let record = json!({"requestContext": {"functionArn": TARGET}, "requestPayload": {}});
    json!({
        "messageId": id, "receiptHandle": "handle", "body": record.to_string(),
        "eventSourceARN": format!("arn:aws:sqs:eu-west-1:123456789012:{queue}"),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1789400814145",
                       "ApproximateFirstReceiveTimestamp": "1789400814200"},
    })
}

async fn kept_of(handler: &Handler, messages: Value) -> Vec<String> {
    let event: SqsEvent = serde_json::from_value(json!({ "Records": messages })).unwrap();
    let response = handler.batch(event.records, NOW, &|| false).await;
    response.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect()
}

#[tokio::test(start_paused = true)]
async fn ten_first_receives_cost_one_visibility_call_on_the_queue_they_came_from() {
    let (handler, requests) = handler(None);
    let messages: Vec<Value> = (0..10).map(|id| message(&format!("m-{id}"), "retries")).collect();
    assert_eq!(kept_of(&handler, json!(messages)).await.len(), 10);
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].body.contains("https://sqs.eu-west-1.amazonaws.com/123456789012/retries"));
}

#[tokio::test(start_paused = true)]
async fn a_configured_retry_queue_wins_over_the_arn() {
    let (handler, requests) = handler(Some("http://127.0.0.1:4566/123456789012/retries"));
    kept_of(&handler, json!([message("m-1", "retries")])).await;
    assert!(requests.lock().unwrap()[0].body.contains("http://127.0.0.1:4566/123456789012/retries"));
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_another_queue_than_the_configured_one_is_hidden_on_its_own() {
    let (handler, requests) = handler(Some("http://127.0.0.1:4566/123456789012/retries"));
    kept_of(&handler, json!([message("m-1", "others")])).await;
    assert!(requests.lock().unwrap()[0].body.contains("eu-west-1.amazonaws.com/123456789012/others"));
}

#[tokio::test(start_paused = true)]
async fn a_batch_from_the_dead_letter_queue_is_kept_whole() {
    let (handler, requests) = handler(None);
    let messages = json!([message("m-1", "dead"), message("m-2", "dead")]);
    assert_eq!(kept_of(&handler, messages).await, ["m-1", "m-2"]);
    assert!(requests.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_no_known_queue_is_kept_whole() {
    let (handler, requests) = handler(None);
    let mut message = message("m-1", "retries");
    message.as_object_mut().unwrap().remove("eventSourceARN");
    assert_eq!(kept_of(&handler, json!([message])).await, ["m-1"]);
    assert!(requests.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_without_an_id_keeps_its_whole_batch_untouched() {
    let (handler, requests) = handler(None);
    let mut nameless = message("", "retries");
    nameless["messageId"] = Value::Null;
    assert_eq!(kept_of(&handler, json!([message("m-1", "retries"), nameless])).await, ["m-1", ""]);
    assert!(requests.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_message_is_kept_and_its_batch_goes_on() {
    let (handler, requests) = handler(None);
    let mut incomplete = message("m-2", "retries");
    incomplete["attributes"] = json!({});
    assert_eq!(kept_of(&handler, json!([message("m-1", "retries"), incomplete])).await, ["m-1", "m-2"]);
    assert_eq!(requests.lock().unwrap().len(), 1);
}

/// On the real clock, and with a message that is due: a paused clock, or a call that waits for one
/// before it, would hide a deadline that is noticed late.
#[tokio::test]
async fn without_time_left_nothing_is_called_and_everything_kept() {
    let (handler, requests) = handler(None);
    let mut due = message("m-1", "retries");
    due["attributes"]["ApproximateReceiveCount"] = json!("2");
    let payload = serde_json::from_value(json!({ "Records": [due] })).unwrap();
    let event = LambdaEvent { payload, context: lambda_runtime::Context::default() };
    let response = handler.handle(event).await.unwrap();
    assert_eq!(response.batch_item_failures.len(), 1);
    assert!(requests.lock().unwrap().is_empty());
}
