//! Batch events, each with ten messages from the retry queue.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

pub(crate) const TARGET: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
const MESSAGES: usize = 10;

/// A batch of messages that the handler must hide, because this is their first receive.
pub(crate) fn deferrals(round: usize) -> String {
    batch(round, "1", Duration::ZERO, |order| order)
}

/// A batch of messages on their first receive, with long backoffs. The handler logs the receipt handles of most of
/// these messages, so that an operator can recall them.
pub(crate) fn long_deferrals(round: usize) -> String {
    let first_failure = since_epoch().as_secs() - 3_600;
    batch(round, "1", Duration::ZERO, |order| {
        let metadata = json!({"attempt": 9, "initial_timestamp": first_failure, "origin_request_id": TARGET});
        json!({"_retry_metadata": metadata, "_original_payload": order})
    })
}

/// A batch of messages that are due.
pub(crate) fn re_invocations(round: usize) -> String {
    batch(round, "2", Duration::from_secs(60), |order| order)
}

/// Number of messages that a response reports as failed, or `None` for an invalid response.
pub(crate) fn kept(answer: &str) -> Option<usize> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    Some(answer["batchItemFailures"].as_array()?.len())
}

/// Headers for an invocation whose deadline is in one minute.
pub(crate) fn headers() -> String {
    format!(
        "Content-Type: application/json\r\n\
         Lambda-Runtime-Aws-Request-Id: 8476a536-e9f4-11e8-9739-2dfe598c3fcd\r\n\
         Lambda-Runtime-Deadline-Ms: {}\r\n\
         Lambda-Runtime-Invoked-Function-Arn: {TARGET}-retry-handler\r\n",
        millis(since_epoch() + Duration::from_secs(60))
    )
}

fn batch(round: usize, receives: &str, age: Duration, payload: impl Fn(Value) -> Value) -> String {
    let first = millis(since_epoch() - age).to_string();
    let message = |number: usize| {
        let id = format!("ac0cc4b9-406c-5db5-80f1-{round:06}{number:06}");
        let record = json!({
            "version": "1.0",
            "timestamp": "2026-11-22T09:12:09.309Z",
            "requestContext": {"requestId": id, "functionArn": format!("{TARGET}:$LATEST"), "condition": "RetriesExhausted", "approximateInvokeCount": 1},
            "requestPayload": payload(json!({"order": number, "total": 12.5})),
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
            "responsePayload": {"errorType": "TimeoutError", "errorMessage": "the database did not answer"}
        });
        json!({
            "messageId": id,
            "receiptHandle": format!("AQEB{}", "x".repeat(396)),
            "body": record.to_string(),
            "attributes": {"ApproximateReceiveCount": receives, "SentTimestamp": first, "ApproximateFirstReceiveTimestamp": first, "SenderId": "AROA:orders"},
            "messageAttributes": {},
            "md5OfBody": "5a44ba39127b9e0af3ecd42cfc9fd57c",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:retries",
            "awsRegion": "eu-west-1"
        })
    };
    json!({"Records": (0..MESSAGES).map(message).collect::<Vec<_>>()}).to_string()
}

fn millis(time: Duration) -> u128 {
    time.as_millis()
}

// The real time is needed, because the handler compares the messages' times with its own clock.
#[expect(clippy::disallowed_methods)]
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
