use comeback_engine::Policies;
use serde_json::{Value, json};

use super::*;
use crate::aws::SdkSettings;
use crate::aws::tests::{Requests, answering, answering_by, entries, never_invoking};
use crate::clock::now;
use crate::log::tests::logged_in;

const TARGET: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
const NOW: Timestamp = Timestamp::from_secs(1_789_400_815);

/// Builds a handler that hides every waiting message without counting the messages in flight.
fn handler(retry_queue_url: Option<&str>) -> (Handler, Requests) {
    hiding_up_to("always", retry_queue_url)
}

fn hiding_up_to(hide_up_to: &str, retry_queue_url: Option<&str>) -> (Handler, Requests) {
    let done: Vec<Value> = (0..10).map(|id| json!({"Id": id.to_string(), "MessageId": "m"})).collect();
    let attributes = json!({"ApproximateNumberOfMessagesNotVisible": "700"});
    let (aws, requests) = answering(200, "", &json!({"Successful": done, "Attributes": attributes}));
    let config = Config {
        policies: Policies::from_variables(|name| match name {
            "TARGET_FUNCTIONS" => Some(TARGET.into()),
            "HIDE_UP_TO" => Some(hide_up_to.into()),
            // With this base, the first retry is due a second after the failure.
            "BASE_BACKOFF" => Some("1".into()),
            _ => None,
        })
        .unwrap(),
        dead_letter_queue_url: "https://sqs.eu-west-1.amazonaws.com/123456789012/dead".into(),
        retry_queue_url: retry_queue_url.map(Into::into),
        pauses: None,
        metrics: None,
        aws: SdkSettings::default(),
    };
    (Handler::new(config, aws), requests)
}

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
async fn deferrals_cost_one_call_on_their_queue() {
    let (handler, requests) = handler(None);
    let messages: Vec<Value> = (0..10).map(|id| message(&format!("m-{id}"), "retries")).collect();
    assert_eq!(kept_of(&handler, json!(messages)).await.len(), 10);
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].body.contains("https://sqs.eu-west-1.amazonaws.com/123456789012/retries"));
}

#[tokio::test(start_paused = true)]
async fn configured_url_is_for_its_queue_only() {
    for (came_from, url) in [
        ("retries", "http://127.0.0.1:4566/123456789012/retries"),
        ("others", "https://sqs.eu-west-1.amazonaws.com/123456789012/others"),
    ] {
        let (handler, requests) = handler(Some("http://127.0.0.1:4566/123456789012/retries"));
        kept_of(&handler, json!([message("m-1", came_from)])).await;
        assert!(requests.lock().unwrap()[0].body.contains(url), "{came_from}");
    }
}

#[tokio::test(start_paused = true)]
async fn batch_from_a_wrong_queue_is_kept() {
    let retries = Some("https://sqs.eu-west-1.amazonaws.com/123456789012/retries");
    let mut nowhere = message("m-1", "retries");
    nowhere.as_object_mut().unwrap().remove("eventSourceARN");
    for (configured, message) in [
        (None, message("m-1", "dead")),
        (None, message("m-1", "retries.fifo")),
        (retries, message("m-1", "retries.fifo")),
        (None, nowhere),
    ] {
        let (handler, requests) = handler(configured);
        assert_eq!(kept_of(&handler, json!([message])).await, ["m-1"], "{message}");
        assert!(requests.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn record_of_another_source_is_named() {
    let arn = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders";
    let record = json!({"eventSource": "aws:kinesis", "eventSourceARN": arn, "kinesis": {}});
    let (handler, _) = handler(None);
    let (kept, log) = logged_in(kept_of(&handler, json!([record]))).await;
    assert_eq!(kept, [""], "the whole batch");
    let line: Value = serde_json::from_str(&log).unwrap();
    let expected = format!("eventSourceARN {arn:?} is not a queue's ARN; the whole batch is kept");
    assert_eq!((&line["level"], &line["message"]), (&json!("ERROR"), &json!(expected)));
}

/// Nine messages wait for `Invoke` calls that are never answered, and the tenth can only be dead-lettered.
#[tokio::test(start_paused = true)]
async fn unanswered_invokes_block_nothing_else() {
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
        let [_guarded, sent, hidden] = requests.as_slice() else { panic!("{requests:?}") };
        assert!(sent.body.contains("garbage") && sent.operation.ends_with("SendMessageBatch"), "{sent:?}");
        let hidden: Value = serde_json::from_str(&hidden.body).unwrap();
        let hidden = hidden["Entries"].as_array().unwrap();
        let hours = hidden.iter().map(|entry| entry["VisibilityTimeout"].as_u64().unwrap());
        assert_eq!(hours.filter(|secs| (3_600..=7_200).contains(secs)).count(), 9);
    }
}

/// `make conformance` checks this test's requests.
#[tokio::test(start_paused = true)]
async fn any_error_type_is_sent_as_attribute() {
    let (handler, requests) = handler(None);
    let long = "é".repeat(300);
    let types = ["\u{0}\u{1b}", "\u{fffe}\u{ffff}", "\u{e000}\u{10ffff}", "\t\r\n", "", &long];
    let messages = types.iter().enumerate().map(|(id, error_type)| {
        let mut message = message(&format!("m-{id}"), "retries");
        let mut record: Value = serde_json::from_str(message["body"].as_str().unwrap()).unwrap();
        record["responsePayload"] = json!({"errorType": error_type, "errorMessage": error_type});
        message["body"] = record.to_string().into();
        // This makes the message older than `MAX_AGE`.
        message["attributes"]["SentTimestamp"] = json!("1789000000000");
        message
    });
    assert_eq!(kept_of(&handler, messages.collect()).await, [""; 0]);
    let sent = entries(&requests);
    let [sent] = sent.as_slice() else { panic!("one request: {sent:?}") };
    let error_type = |id: usize| sent[id]["MessageAttributes"]["ErrorType"]["StringValue"].clone();
    assert_eq!([error_type(0), error_type(4)], [json!("\u{fffd}\u{fffd}"), Value::Null]);
}

/// The message is due, but the deadline is now. A handler that checked the deadline too late would re-invoke the
/// function. The test uses the real clock: with a paused clock, it would pass in spite of this bug.
#[tokio::test]
async fn without_time_left_everything_is_kept() {
    let (handler, requests) = handler(None);
    let mut due = message("m-1", "retries");
    due["attributes"]["ApproximateReceiveCount"] = json!("2");
    let response = handled_until(&handler, &json!({ "Records": [due] }).to_string(), now()).await;
    assert_eq!(response.unwrap(), json!({"batchItemFailures": [{"itemIdentifier": "m-1"}]}));
    assert!(requests.lock().unwrap().is_empty());
}

/// The first of these deadlines, ten minutes after the epoch, is the one that `cargo lambda watch` sends.
#[tokio::test]
async fn implausible_deadline_counts_as_usual_time() {
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
    let in_a = |seconds| NOW.saturating_add(Duration::from_secs(seconds));
    for (deadline, left) in [(in_a(59), 59), (in_a(60), 60), (in_a(900), 60), (NOW, 0)] {
        assert_eq!(handler.time_left(deadline, NOW).as_secs(), left);
    }
    let passed = Timestamp::from_millis(NOW.as_millis() - 3_600_000);
    assert_eq!(handler.time_left(passed, NOW), Duration::ZERO);
    assert!(!handler.deadline_is_unknown.is_completed());
}

async fn handled_until(handler: &Handler, event: &str, deadline: Timestamp) -> Result<Value, Error> {
    let mut context = lambda_runtime::Context::default();
    context.deadline = deadline.as_millis();
    let payload = serde_json::from_str(event).unwrap();
    let response = handler.handle(LambdaEvent { payload, context }).await?;
    Ok(serde_json::to_value(response).unwrap())
}

/// Returns a message that was sent and first received now, for tests of `Handler::handle`, which uses the real clock.
fn message_sent_now(id: &str) -> Value {
    let mut message = message(id, "retries");
    for attribute in ["SentTimestamp", "ApproximateFirstReceiveTimestamp"] {
        message["attributes"][attribute] = json!(now().as_millis().to_string());
    }
    message
}

#[tokio::test]
async fn bad_message_keeps_its_batch_bad_batch_errs() {
    let (handler, requests) = handler(None);
    let event = json!({ "Records": [7, message("m-1", "retries")] }).to_string();
    let deadline = now().saturating_add(HANDLER_TIMEOUT);
    let response = handled_until(&handler, &event, deadline).await.unwrap();
    assert_eq!(response, json!({"batchItemFailures": [{"itemIdentifier": "m-1"}, {"itemIdentifier": ""}]}));
    assert!(requests.lock().unwrap().is_empty());
    let error = handled_until(&handler, r#"{"order": 7}"#, deadline).await.unwrap_err().to_string();
    assert_eq!(error, "not an SQS event: missing field `Records` at line 1 column 12");
}

/// Returns the names of the operations that the handler requested, and clears the list of requests.
fn operations(requests: &Requests) -> Vec<String> {
    let name = |operation: &str| operation.trim_start_matches("AmazonSQS.").to_owned();
    requests.lock().unwrap().drain(..).map(|request| name(&request.operation)).collect()
}

#[tokio::test(start_paused = true)]
async fn first_move_is_a_delayed_copy() {
    let (handler, requests) = hiding_up_to("0", None);
    let mut traced = message("m-1", "retries");
    traced["attributes"]["AWSTraceHeader"] = json!("Root=1-5759e988-bd862e3fe1be46a994272793");
    let batch = json!([traced, message("m-2", "retries")]);
    let (kept, log) = logged_in(kept_of(&handler, batch.clone())).await;
    assert_eq!(kept, [] as [&str; 0]);
    let requests = requests.lock().unwrap();
    let [_guarded, sent] = requests.as_slice() else { panic!("{requests:?}") };
    let sent: Value = serde_json::from_str(&sent.body).unwrap();
    assert_eq!(sent["QueueUrl"], "https://sqs.eu-west-1.amazonaws.com/123456789012/retries");
    let attribute =
        r#"{"message_id":"m-1","sent":1789400814145,"first_receive":1789400814200,"receives":1,"moves":1}"#;
    assert_eq!(
        sent["Entries"][0],
        json!({
            "Id": "0", "MessageBody": batch[0]["body"], "DelaySeconds": 1,
            "MessageAttributes": {"Comeback": {"DataType": "String", "StringValue": attribute}},
            "MessageSystemAttributes": {"AWSTraceHeader": {
                "DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}},
        })
    );
    assert_eq!(sent["Entries"][1]["MessageSystemAttributes"], Value::Null);
    let lines: Vec<&str> = log.lines().collect();
    let [first, second, moves] = lines[..] else { panic!("{log}") };
    for (line, expected) in [
        (first, r#""message_id":"m-1","key":"m-1""#),
        (second, r#""message_id":"m-2","key":"m-2""#),
        (moves, r#""action":"move","moved":2,"hidden_instead":0"#),
    ] {
        assert!(line.contains(expected), "{log}");
    }
}

#[tokio::test(start_paused = true)]
async fn denied_move_hides_and_logs_the_remedy() {
    let (Handler { config, .. }, _) = hiding_up_to("0", None);
    let (aws, requests) = answering_by(|operation| match operation.ends_with("SendMessageBatch") {
        true => (403, "AccessDeniedException", json!({"message": "no"})),
        false => (200, "", json!({"Successful": [{"Id": "0"}], "Failed": []})),
    });
    let handler = Handler::new(config, aws);
    let (kept, log) = logged_in(kept_of(&handler, json!([message("m-1", "retries")]))).await;
    assert_eq!(kept, ["m-1"]);
    let hiding = "ChangeMessageVisibilityBatch";
    assert_eq!(operations(&requests), [hiding, "SendMessageBatch", hiding]);
    assert!(log.contains("allow sqs:SendMessage on the retry queue"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn denied_hiding_moves_nothing_and_logs_the_remedy() {
    let (Handler { config, .. }, _) = hiding_up_to("0", None);
    let (aws, requests) = answering(403, "AccessDeniedException", &json!({"message": "no"}));
    let handler = Handler::new(config, aws);
    let (kept, log) = logged_in(kept_of(&handler, json!([message("m-1", "retries")]))).await;
    assert_eq!(kept, ["m-1"]);
    assert_eq!(operations(&requests), ["ChangeMessageVisibilityBatch"; 2]);
    assert!(log.contains("allow sqs:ChangeMessageVisibility on the retry queue"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn failed_count_is_logged() {
    for (status, error, said) in [
        (403, "AccessDeniedException", "allow sqs:GetQueueAttributes on the retry queue"),
        (200, "", "no count of the messages in flight"),
        (500, "InternalError", "InternalError"),
    ] {
        let (Handler { config, .. }, _) = hiding_up_to("1000", None);
        let (aws, _) = answering(status, error, &json!({"message": "no"}));
        let (_, log) =
            logged_in(kept_of(&Handler::new(config, aws), json!([message("m-1", "retries")]))).await;
        let said_once = |line: &&str| line.contains("the messages in flight could not be counted");
        let lines: Vec<&str> = log.lines().filter(said_once).collect();
        assert!(lines.len() == 1 && lines[0].contains(said), "{log}");
    }
}

/// The batch never finishes, as if the function had timed out.
#[tokio::test(start_paused = true)]
async fn unreadable_messages_are_logged_first() {
    let (aws, _) = never_invoking();
    let handler = Handler::new(handler(None).0.config, aws);
    let mut garbled = message("m-1", "retries");
    garbled["attributes"]["ApproximateReceiveCount"] = json!("2");
    garbled["messageAttributes"] = json!({"Comeback": {"stringValue": "hunter2", "dataType": "String"}});
    let mut incomplete = message("m-2", "retries");
    incomplete["body"] = json!(7);
    let batch = BatchEvent::read(&json!({ "Records": [incomplete, garbled] }).to_string()).unwrap();
    let now = NOW.saturating_add(Duration::from_secs(60));
    let batch = handler.batch(batch, now, HANDLER_TIMEOUT);
    let (done, log) = logged_in(tokio::time::timeout(Duration::from_secs(1), batch)).await;
    let [error, warning] = log.lines().collect::<Vec<_>>()[..] else { panic!("{log}") };
    assert!(done.is_err() && error.contains("ERROR") && error.contains("body is missing"), "{log}");
    assert!(warning.contains("WARN") && warning.contains("the attribute Comeback is unreadable"), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
}

const PAUSED: &str = r#"{"v":1,"pauses":[{"target":"*","from":1789400000,"until":null,"spread":60}]}"#;

#[tokio::test(start_paused = true)]
async fn pauses_are_read_and_obeyed() {
    let denied = "allow ssm:GetParameter";
    let body = json!({"Parameter": {"Value": PAUSED}, "Successful": [{"Id": "0"}]});
    for (status, error, body, action, said) in [
        (200, "", body, r#""action":"hold""#, r#""delay":1344"#),
        (
            400,
            "AccessDeniedException",
            json!({"message": "no"}),
            r#""action":"keep","cause":"pauses_unknown""#,
            denied,
        ),
    ] {
        let (aws, requests) = answering(status, error, &body);
        let config = Config { pauses: Some("/comeback/pauses".into()), ..handler(None).0.config };
        let mut due = message("m-1", "retries");
        due["attributes"]["ApproximateReceiveCount"] = json!("2");
        let (kept, log) = logged_in(kept_of(&Handler::new(config, aws), json!([due]))).await;
        assert_eq!(kept, ["m-1"]);
        assert_eq!(operations(&requests)[0], "AmazonSSM.GetParameter");
        assert!(log.contains(action) && log.contains(said), "{log}");
    }
}

const SECRET: &str = "hunter2";
const NUMBER: &str = "5318008";

/// Handles a message with a handler that moves each message, and then with one that hides each message. Returns the log
/// lines that they wrote, and the details of the dead-letters that they sent.
async fn written(body: String, status: u16, error: &'static str) -> String {
    let moving = written_hiding_up_to("0", body.clone(), status, error).await;
    moving + &written_hiding_up_to("1000", body, status, error).await
}

async fn written_hiding_up_to(hide_up_to: &str, body: String, status: u16, error: &'static str) -> String {
    let (Handler { config, .. }, _) = hiding_up_to(hide_up_to, None);
    let said = format!("could not read {SECRET} or {NUMBER}");
    let failed = json!([{"Id": "0", "SenderFault": true, "Code": "InvalidParameterValue", "Message": said}]);
    let (aws, requests) = answering(status, error, &json!({"message": said, "Failed": failed}));
    let handler = Handler::new(config, aws);
    let mut message = message("m-1", "retries");
    message["body"] = json!(body);
    message["attributes"]["ApproximateReceiveCount"] = json!("2");
    let batch = BatchEvent::read(&json!({ "Records": [message] }).to_string()).unwrap();
    let now = NOW.saturating_add(Duration::from_secs(60));
    let (_, mut written) = logged_in(handler.batch(batch, now, HANDLER_TIMEOUT)).await;
    for request in requests.lock().unwrap().iter().filter(|request| request.operation.ends_with("Batch")) {
        let entries: Value = serde_json::from_str(&request.body).unwrap();
        let entry = &entries["Entries"][0];
        let attribute = entry["MessageAttributes"]["Detail"]["StringValue"].as_str().unwrap_or_default();
        let dead_letter =
            entry["MessageBody"].as_str().and_then(|body| serde_json::from_str::<Value>(body).ok());
        let detail = dead_letter.map(|dead_letter| dead_letter["detail"].to_string()).unwrap_or_default();
        written.push_str(&format!("\nDetail: {attribute}\ndetail: {detail}"));
    }
    written
}

fn record(payload: &str) -> String {
    format!(r#"{{"requestContext":{{"functionArn":"{TARGET}"}},"requestPayload":{payload}}}"#)
}

#[track_caller]
fn assert_silent(written: &str, expected: &str) {
    assert!(written.contains(expected), "no {expected} in {written}");
    assert!(!written.contains(SECRET) && !written.contains(NUMBER), "{written}");
}

#[tokio::test(start_paused = true)]
async fn refused_payloads_are_not_written() {
    let metadata = |members: &str| {
        record(&format!(r#"{{"_retry_metadata":{{{members}}},"_original_payload":"{SECRET}"}}"#))
    };
    let secret = format!("\"{SECRET}\"");
    let forbidden = record(&secret).replace("orders", "payroll");
    let deleted = record(&secret)
        .replace(r#""requestPayload""#, r#""responseContext":{"statusCode":404},"requestPayload""#);
    let large = record(&format!("\"{}\"", SECRET.repeat(1_048_000 / SECRET.len())));
    for (body, reason) in [
        (secret.clone(), "malformed_record"),
        (format!("{{{secret}"), "malformed_record"),
        (format!("{{{secret}:{NUMBER}}}"), "malformed_record"),
        (record(&secret).replace(&format!("\"{TARGET}\""), NUMBER), "malformed_record"),
        (metadata(&format!(r#""attempt":{secret},"initial_timestamp":1"#)), "malformed_envelope"),
        (metadata(&format!(r#""attempt":{NUMBER}.5,"initial_timestamp":1"#)), "malformed_envelope"),
        (metadata(&format!(r#""attempt":1,"initial_timestamp":{secret}"#)), "malformed_envelope"),
        (
            metadata(&format!(r#""attempt":1,"initial_timestamp":1,"origin_request_id":[{secret}]"#)),
            "malformed_envelope",
        ),
        (metadata(&format!(r#""attempt":1,"initial_timestamp":1,"style":{secret}"#)), "malformed_envelope"),
        (
            metadata(r#""attempt":1,"initial_timestamp":1"#)
                .replace("_original", &format!("{SECRET}\":1,\"_original")),
            "malformed_envelope",
        ),
        (metadata(r#""attempt":1,"initial_timestamp":1"#), "max_age"),
        (metadata(r#""attempt":9999,"initial_timestamp":1789400814"#), "max_retries"),
        (forbidden, "target_not_allowed"),
        (deleted, "target_not_found"),
        (large, "payload_too_large"),
    ] {
        assert_silent(&written(body, 200, "").await, reason);
    }
}

#[tokio::test(start_paused = true)]
async fn service_messages_are_not_written() {
    for (status, error) in [
        (400, "InvalidRequestContentException"),
        (400, "InvalidParameterValueException"),
        (400, "InvalidMessageContents"),
        (400, "SomethingNewException"),
        (400, ""),
        (413, "RequestTooLargeException"),
        (415, "UnsupportedMediaTypeException"),
        (500, "ServiceException"),
        (503, ""),
        (504, ""),
        (200, ""),
    ] {
        let due = written(record(&format!("\"{SECRET}\"")), status, error).await;
        assert_silent(&due, r#""retry":1"#);
        // A malformed message is dead-lettered at once, and that call gets the same answer.
        let malformed = written(format!("\"{SECRET}\""), status, error).await;
        assert_silent(&malformed, r#""problem""#);
    }
}
