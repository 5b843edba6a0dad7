//! An asynchronous invocation that fails. Source: "Retaining records of asynchronous invocations", AWS Lambda
//! Developer Guide.

use std::collections::BTreeSet;

use comeback_engine::InvocationRecord;
use serde_json::Value;

use crate::stand::{Difference, Stand};

/// What the function fails with.
pub(crate) const ERROR_TYPE: &str = "OrderRefused";
pub(crate) const ERROR_MESSAGE: &str = "never \u{e9}";

pub(crate) async fn its_failure_is_recorded_with_its_payload(stand: &impl Stand) {
    let payload = r#"{"text": "caf\u00e9", "n": 1.50,  "big": 12345678901234567890}"#;
    stand.fail(payload).await;
    let body = stand.next().await.body;
    let record = InvocationRecord::read(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    if stand.differs(Difference::RewritesPayloads) {
        let [sent, kept] = [payload, record.request_payload.get()]
            .map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
        assert_eq!(kept, sent);
    } else {
        assert_eq!(record.request_payload.get(), payload);
    }
    let named = if stand.differs(Difference::LeavesOutOfRecords) { "" } else { ":$LATEST" };
    assert!(record.function_arn.contains(":function:") && record.function_arn.ends_with(named), "{body}");
    let error = record.error.expect("it failed with an error");
    let text = |raw: Option<&serde_json::value::RawValue>| -> Option<String> {
        raw.map(|raw| serde_json::from_str(raw.get()).expect("a string"))
    };
    let all_alike = stand.differs(Difference::NamesAllErrorsAlike);
    let error_type = if all_alike { "Runtime.HandlerError" } else { ERROR_TYPE };
    assert_eq!(text(error.error_type).as_deref(), Some(error_type));
    assert_eq!(text(error.message).as_deref(), Some(ERROR_MESSAGE));
    assert!(!record.not_found);
}

pub(crate) async fn its_record_has_these_members(stand: &impl Stand) {
    stand.fail("null").await;
    let body: Value = serde_json::from_str(&stand.next().await.body).expect("a record is JSON");
    let left_out = stand.differs(Difference::LeavesOutOfRecords);
    for (member, always, left_out_by_some) in [
        (
            "",
            &["requestContext", "requestPayload", "responseContext", "responsePayload"][..],
            &["version", "timestamp"][..],
        ),
        ("/requestContext", &["functionArn", "condition", "approximateInvokeCount", "requestId"], &[]),
        ("/responseContext", &["statusCode", "functionError"], &["executedVersion"]),
    ] {
        let members = body.pointer(member).and_then(Value::as_object).expect("an object");
        let there: BTreeSet<&str> = members.keys().map(String::as_str).collect();
        let others = if left_out { &[] } else { left_out_by_some };
        assert_eq!(there, always.iter().chain(others).copied().collect(), "{member} of {body}");
    }
    assert_eq!(body["requestContext"]["condition"], "RetriesExhausted");
    let invokes = if stand.differs(Difference::CountsThreeInvokes) { 3 } else { 1 };
    assert_eq!(body["requestContext"]["approximateInvokeCount"], invokes, "no retries of Lambda's own");
    assert_eq!(body["responseContext"]["statusCode"], 200);
    assert_eq!(body["responseContext"]["functionError"], "Unhandled");
}
