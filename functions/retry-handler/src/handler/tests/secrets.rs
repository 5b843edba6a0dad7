//! Whatever is refused, neither the log nor a dead-letter's detail holds anything of a payload.

use super::*;
use crate::log::tests::logged_in;

const SECRET: &str = "hunter2";
const NUMBER: &str = "5318008";

/// Everything the handler wrote, to the log and into details, about a message with this body: once it moves
/// what it keeps, and once it hides it and looks at the queue.
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
        let letter = entry["MessageBody"].as_str().and_then(|body| serde_json::from_str::<Value>(body).ok());
        let detail = letter.map(|letter| letter["detail"].to_string()).unwrap_or_default();
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
async fn what_the_handler_refuses() {
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
async fn what_a_service_says_of_a_request() {
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
        // It is dead-lettered at once, by a call that gets the same answer.
        let malformed = written(format!("\"{SECRET}\""), status, error).await;
        assert_silent(&malformed, r#""problem""#);
    }
}
