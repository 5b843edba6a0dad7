//! What the handler remembers of pauses.

use super::*;
use crate::log::tests::logged_in;

const PAUSED: &str = r#"{"v":1,"pauses":[{"target":"*","from":1789400000,"until":null,"spread":60}]}"#;

/// A handler whose parameter answers this to every call, and a batch that is due.
fn reading(status: u16, error: &'static str, body: &Value) -> (Handler, Requests, Value) {
    let (Handler { config, .. }, _) = handler(None);
    let (aws, requests) = answering(status, error, body);
    let handler = Handler::new(Config { pauses: Some("/comeback/pauses".into()), ..config }, aws);
    let mut due = message("m-1", "retries");
    due["attributes"]["ApproximateReceiveCount"] = json!("2");
    (handler, requests, json!({ "Records": [due] }))
}

async fn kept_after(handler: &Handler, batch: &Value, seconds: u64) -> usize {
    let batch = BatchEvent::read(&batch.to_string()).unwrap();
    let now = NOW.saturating_add(Duration::from_secs(60 + seconds));
    handler.batch(batch, now, HANDLER_TIMEOUT).await.batch_item_failures.len()
}

fn operations(requests: &Requests) -> Vec<String> {
    requests.lock().unwrap().drain(..).map(|request| request.operation).collect()
}

#[tokio::test(start_paused = true)]
async fn an_environment_reads_once_in_its_interval_and_holds_what_is_paused() {
    let body = json!({"Parameter": {"Value": PAUSED}, "Successful": [{"Id": "0"}]});
    let (handler, requests, batch) = reading(200, "", &body);
    let hide = "AmazonSQS.ChangeMessageVisibilityBatch";
    for (seconds, calls) in [
        (0, vec!["AmazonSSM.GetParameter", hide]),
        (29, vec![hide]),
        (38, vec!["AmazonSSM.GetParameter", hide]),
        (40, vec![hide]),
    ] {
        let (kept, log) = logged_in(kept_after(&handler, &batch, seconds)).await;
        assert_eq!((kept, operations(&requests)), (1, calls.iter().map(ToString::to_string).collect()));
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(r#""action":"hold","delay":1344"#), "{log}");
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_pauses_are_unknown_no_function_is_invoked_and_each_batch_says_why_once() {
    let (handler, requests, batch) = reading(400, "AccessDeniedException", &json!({"message": "no"}));
    for seconds in [0, 1] {
        let (kept, log) = logged_in(kept_after(&handler, &batch, seconds)).await;
        assert_eq!(kept, 1);
        let operations = operations(&requests);
        assert_eq!(operations[0], "AmazonSSM.GetParameter");
        assert!(!operations.iter().any(|operation| operation == "Event"), "{operations:?}");
        let errors: Vec<&str> =
            log.lines().filter(|line| line.contains("the pauses could not be read")).collect();
        assert_eq!(errors.len(), 1, "{log}");
        assert!(errors[0].contains("ERROR") && errors[0].contains("allow ssm:GetParameter"), "{log}");
        assert!(log.contains(r#""action":"keep""#), "{log}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_variable_nothing_is_read() {
    let (_, _, batch) = reading(200, "", &json!({}));
    let (handler, requests) = handler(None);
    kept_after(&handler, &batch, 0).await;
    assert!(!operations(&requests).iter().any(|operation| operation.contains("SSM")));
}
