//! Sends invocation records to a retry queue as Lambda would, without invoking any function.

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use comeback_tests::{MiniStack, Stack};
use serde_json::json;

/// The invocation record that Lambda writes after an event of this function has failed.
pub(crate) fn record(function: &str, error: &str, request: &str) -> String {
    json!({
        "version": "1.0",
        "requestContext": {
            "requestId": request,
            "functionArn": format!("{}:$LATEST", MiniStack::function_arn(function)),
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 1,
        },
        "requestPayload": {},
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "responsePayload": {"errorType": error, "errorMessage": "no answer"},
    })
    .to_string()
}

pub(crate) async fn send(ministack: &MiniStack, stack: &Stack, records: &[String]) {
    for some in records.chunks(10) {
        let entries = some.iter().enumerate().map(|(id, record)| {
            let entry = SendMessageBatchRequestEntry::builder().id(id.to_string()).message_body(record);
            entry.build().expect("it has a body")
        });
        let send = ministack.sqs.send_message_batch().queue_url(stack.output("RetryQueueUrl"));
        let sent = send.set_entries(Some(entries.collect())).send().await.expect("SQS answers");
        assert!(sent.failed.is_empty(), "{sent:?}");
    }
}
