use comeback_engine::Policy;
use serde_json::{Value, json};

use super::*;
use crate::aws::Environment;
use crate::aws::tests::{Requests, answering, never_invoking};
use crate::metrics::Metrics;
use crate::queue::Queue;

mod moves;
mod pauses;
mod secrets;

const TARGET: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
const NOW: Timestamp = Timestamp::from_secs(1_789_400_815);

/// It hides every message, and never looks at the queue.
fn handler(retry_queue_url: Option<&str>) -> (Handler, Requests) {
    hiding_up_to("always", retry_queue_url)
}

fn hiding_up_to(hide_up_to: &str, retry_queue_url: Option<&str>) -> (Handler, Requests) {
    let done: Vec<Value> = (0..10).map(|id| json!({"Id": id.to_string(), "MessageId": "m"})).collect();
    let attributes = json!({"ApproximateNumberOfMessagesNotVisible": "700"});
    let (aws, requests) = answering(200, "", &json!({"Successful": done, "Attributes": attributes}));
    let dead_letter_queue_url = "https://sqs.eu-west-1.amazonaws.com/123456789012/dead".to_owned();
    let config = Config {
        policy: Policy::from_variables(|name| match name {
            "TARGET_FUNCTIONS" => Some(TARGET.into()),
            "HIDE_UP_TO" => Some(hide_up_to.into()),
            _ => None,
        })
        .unwrap(),
        dead_letter_queue: Queue::from_url(&dead_letter_queue_url).unwrap(),
        dead_letter_queue_url,
        retry_queue_url: retry_queue_url.map(Into::into),
        pauses: None,
        metrics: Metrics::Off,
        aws: Environment::default(),
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
    let batch = BatchEvent::read(&json!({ "Records": messages }).to_string()).unwrap();
    let response = handler.batch(batch, NOW, HANDLER_TIMEOUT).await;
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
async fn a_batch_from_a_fifo_queue_is_kept_whole() {
    for configured in [None, Some("https://sqs.eu-west-1.amazonaws.com/123456789012/retries")] {
        let (handler, requests) = handler(configured);
        assert_eq!(kept_of(&handler, json!([message("m-1", "retries.fifo")])).await, ["m-1"]);
        assert!(requests.lock().unwrap().is_empty());
    }
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

/// A message that can only be dead-lettered, and ten that are due, of which no invoke is answered.
#[tokio::test(start_paused = true)]
async fn dead_letters_and_hidings_go_out_though_no_invoke_is_answered() {
    for (timeout, waited) in [(60, 20), (30, 20), (25, 15)] {
        let (aws, requests) = never_invoking();
        let handler = Handler::new(handler(None).0.config, aws);
        let mut messages: Vec<Value> = (0..10).map(|id| message(&format!("m-{id}"), "retries")).collect();
        messages.iter_mut().for_each(|due| due["attributes"]["ApproximateReceiveCount"] = json!("2"));
        messages[9]["body"] = json!("garbage");
        let start = tokio::time::Instant::now();
        let batch = BatchEvent::read(&json!({ "Records": messages }).to_string()).unwrap();
        let now = NOW.saturating_add(Duration::from_secs(60));
        let response = handler.batch(batch, now, Duration::from_secs(timeout)).await;
        assert_eq!(start.elapsed().as_secs(), waited, "of {timeout} s");
        assert_eq!(response.batch_item_failures.len(), 9);
        let requests = requests.lock().unwrap();
        let [sent, hidden] = requests.as_slice() else { panic!("{requests:?}") };
        assert!(sent.body.contains("garbage") && sent.operation.ends_with("SendMessageBatch"), "{sent:?}");
        let hidden: Value = serde_json::from_str(&hidden.body).unwrap();
        let hidden = hidden["Entries"].as_array().unwrap();
        let hours = hidden.iter().map(|entry| entry["VisibilityTimeout"].as_u64().unwrap());
        assert_eq!(hours.filter(|secs| (3_600..=7_200).contains(secs)).count(), 9);
    }
}

/// On the real clock, and with a message that is due: a paused clock, or a call that waits for one
/// before it, would hide a deadline that is noticed late.
#[tokio::test]
async fn without_time_left_nothing_is_called_and_everything_kept() {
    let (handler, requests) = handler(None);
    let mut due = message("m-1", "retries");
    due["attributes"]["ApproximateReceiveCount"] = json!("2");
    let response = handled(&handler, &json!({ "Records": [due] }).to_string(), Duration::ZERO).await;
    assert_eq!(response.unwrap(), json!({"batchItemFailures": [{"itemIdentifier": "m-1"}]}));
    assert!(requests.lock().unwrap().is_empty());
}

/// `cargo lambda watch` says that ten minutes after 1970 are the deadline.
#[tokio::test]
async fn a_deadline_that_cannot_be_is_taken_for_the_usual_time() {
    let event = json!({ "Records": [message_sent_now("m-1")] }).to_string();
    let days_ahead = now().saturating_add(Duration::from_secs(3 * 86_400));
    for deadline in [Timestamp::from_secs(600), days_ahead, Timestamp::from_millis(u64::MAX)] {
        let (handler, requests) = handler(None);
        let response = handled_until(&handler, &event, deadline).await.unwrap();
        assert_eq!(response, json!({"batchItemFailures": [{"itemIdentifier": "m-1"}]}));
        assert_eq!(requests.lock().unwrap().len(), 1, "it is hidden");
        assert_eq!(handler.time_left(deadline, now()), HANDLER_TIMEOUT);
        assert!(handler.deadline_is_unknown.is_completed(), "and that was said");
    }
    let (handler, _) = handler(None);
    for (deadline, left) in [(NOW.saturating_add(HANDLER_TIMEOUT), HANDLER_TIMEOUT), (NOW, Duration::ZERO)] {
        assert_eq!(handler.time_left(deadline, NOW), left);
    }
    let passed = Timestamp::from_millis(NOW.as_millis() - 3_600_000);
    assert_eq!(handler.time_left(passed, NOW), Duration::ZERO);
    assert!(!handler.deadline_is_unknown.is_completed());
}

/// The event as JSON text, and the response as Lambda reads it.
async fn handled(handler: &Handler, event: &str, left: Duration) -> Result<Value, Error> {
    handled_until(handler, event, now().saturating_add(left)).await
}

async fn handled_until(handler: &Handler, event: &str, deadline: Timestamp) -> Result<Value, Error> {
    let mut context = lambda_runtime::Context::default();
    context.deadline = deadline.as_millis();
    let payload = serde_json::from_str(event).unwrap();
    let response = handler.handle(LambdaEvent { payload, context }).await?;
    Ok(serde_json::to_value(response).unwrap())
}

/// A first receive on the real clock, which is `handle`'s.
fn message_sent_now(id: &str) -> Value {
    let mut message = message(id, "retries");
    for attribute in ["SentTimestamp", "ApproximateFirstReceiveTimestamp"] {
        message["attributes"][attribute] = json!(now().as_millis().to_string());
    }
    message
}

#[tokio::test]
async fn a_message_of_an_odd_shape_is_kept_by_its_id_alone_and_its_batch_mates_are_handled() {
    let whole = message_sent_now("m-1").to_string();
    for (from, to) in [
        (r#""receiptHandle":"handle""#, r#""receiptHandle":7"#),
        (r#""ApproximateReceiveCount":"1""#, r#""ApproximateReceiveCount":1"#),
        (r#""SentTimestamp":""#, r#""SentTimestamp":7,"other":""#),
        (r#""attributes":{"#, r#""attributes":"none","other":{"#),
        (r#""body":"{"#, r#""body":"\ud800{"#),
        (r#""body":"{"#, r#""body":7,"other":"{"#),
    ] {
        assert!(whole.contains(from), "{from} is not in {whole}");
        let (handler, requests) = handler(None);
        let (odd, mate) = (whole.replace(from, to), message_sent_now("m-2"));
        let response =
            handled(&handler, &format!(r#"{{"Records":[{odd},{mate}]}}"#), HANDLER_TIMEOUT).await.unwrap();
        let kept = json!({"batchItemFailures": [{"itemIdentifier": "m-2"}, {"itemIdentifier": "m-1"}]});
        assert_eq!(response, kept, "{odd}");
        let requests = requests.lock().unwrap();
        assert_eq!(requests.len(), 1, "the other is hidden: {requests:?}");
        let body: Value = serde_json::from_str(&requests[0].body).unwrap();
        assert_eq!(body["Entries"].as_array().unwrap().len(), 1, "{odd}");
    }
}

#[tokio::test]
async fn members_that_the_handler_does_not_need_may_have_any_shape() {
    let (handler, requests) = handler(None);
    let mut odd = message_sent_now("m-1");
    odd["messageAttributes"] = json!({"a": {"stringListValues": null, "dataType": 7}});
    odd["md5OfBody"] = json!(7);
    let response =
        handled(&handler, &json!({ "Records": [odd] }).to_string(), HANDLER_TIMEOUT).await.unwrap();
    assert_eq!(response, json!({"batchItemFailures": [{"itemIdentifier": "m-1"}]}));
    assert_eq!(requests.lock().unwrap().len(), 1, "it is handled");
}

#[tokio::test]
async fn a_message_that_is_no_object_keeps_its_whole_batch_untouched() {
    let (handler, requests) = handler(None);
    let event = json!({ "Records": [7, message("m-1", "retries")] }).to_string();
    let response = handled(&handler, &event, HANDLER_TIMEOUT).await.unwrap();
    assert_eq!(response, json!({"batchItemFailures": [{"itemIdentifier": "m-1"}, {"itemIdentifier": ""}]}));
    assert!(requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_event_that_is_no_batch_is_an_error() {
    let (handler, _) = handler(None);
    let error = handled(&handler, r#"{"order": 7}"#, HANDLER_TIMEOUT).await.unwrap_err().to_string();
    assert_eq!(error, "not an SQS event: missing field `Records` at line 1 column 12");
}
