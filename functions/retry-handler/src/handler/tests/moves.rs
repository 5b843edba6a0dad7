//! Messages that there is no room to hide.

use super::*;
use crate::log::tests::logged_in;

/// The operations of the requests so far.
fn operations(requests: &Requests) -> Vec<String> {
    let name = |operation: &str| operation.trim_start_matches("AmazonSQS.").to_owned();
    requests.lock().unwrap().drain(..).map(|request| name(&request.operation)).collect()
}

fn ten() -> Value {
    (0..10).map(|id| message(&format!("m-{id}"), "retries")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_new_environment_looks_and_has_a_room_for_each_queue() {
    let (handler, requests) = hiding_up_to("1000", None);
    // (1,000 - 700) / 20 are 15.
    assert_eq!(kept_of(&handler, ten()).await.len(), 10);
    assert_eq!(operations(&requests), ["GetQueueAttributes", "ChangeMessageVisibilityBatch"]);
    assert_eq!(kept_of(&handler, ten()).await.len(), 5);
    assert_eq!(operations(&requests), ["ChangeMessageVisibilityBatch", "SendMessageBatch"]);
    assert_eq!(kept_of(&handler, json!([message("m-1", "others")])).await, ["m-1"]);
    assert_eq!(operations(&requests), ["GetQueueAttributes", "ChangeMessageVisibilityBatch"]);
}

#[tokio::test(start_paused = true)]
async fn a_first_move_is_a_delayed_copy_on_the_queue_that_it_came_from_and_a_line_of_its_own() {
    let (handler, requests) = hiding_up_to("0", None);
    let mut traced = message("m-1", "retries");
    traced["attributes"]["AWSTraceHeader"] = json!("Root=1-5759e988-bd862e3fe1be46a994272793");
    let batch = json!([traced, message("m-2", "retries")]);
    let (kept, log) = logged_in(kept_of(&handler, batch.clone())).await;
    assert_eq!(kept, [] as [&str; 0]);
    let requests = requests.lock().unwrap();
    let [sent] = requests.as_slice() else { panic!("{requests:?}") };
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
async fn without_the_permission_messages_are_hidden_and_the_remedy_logged() {
    let (Handler { config, .. }, _) = hiding_up_to("0", None);
    let (aws, requests) = answering(403, "AccessDeniedException", &json!({"message": "no"}));
    let handler = Handler::new(config, aws);
    let (kept, log) = logged_in(kept_of(&handler, json!([message("m-1", "retries")]))).await;
    assert_eq!(kept, ["m-1"]);
    assert_eq!(operations(&requests), ["SendMessageBatch", "ChangeMessageVisibilityBatch"]);
    assert!(log.contains("allow sqs:SendMessage on the retry queue"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_look_that_is_denied_or_says_nothing_is_logged() {
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

#[tokio::test(start_paused = true)]
async fn a_garbled_attribute_is_ignored_with_a_warning() {
    let (handler, requests) = handler(None);
    let mut garbled = message("m-1", "retries");
    garbled["messageAttributes"] = json!({"Comeback": {"stringValue": "hunter2", "dataType": "String"}});
    let (kept, log) = logged_in(kept_of(&handler, json!([garbled]))).await;
    assert_eq!(kept, ["m-1"]);
    assert_eq!(operations(&requests), ["ChangeMessageVisibilityBatch"]);
    let warning = log.lines().next().unwrap();
    assert!(warning.contains("WARN") && warning.contains("the attribute Comeback is unreadable"), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
}
