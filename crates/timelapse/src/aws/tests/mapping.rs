//! Contracts for an event source mapping with `ReportBatchItemFailures`, and for the records of failed invocations.
//!
//! Sources in the AWS Lambda Developer Guide: "Using Lambda with Amazon SQS", "Reporting batch item failures" and
//! "Retaining records of asynchronous invocations".

use std::collections::BTreeSet;

use comeback_engine::InvocationRecord;
use serde_json::Value;

use super::queue::moved;
use super::stand::{Difference, ERROR_MESSAGE, ERROR_TYPE, Stand};

pub(crate) async fn record_holds_what_sqs_says(stand: &impl Stand) {
    let body = "{\"text\": \"\u{e9}\\ud800\", \"n\": 1E400, \"n\": -0.0}\t\n";
    let id = stand.send(body).await;
    let seen = stand.next().await;
    assert_eq!(stand.hide(&[(&seen.receipt_handle, 0)]).await, [true]);
    let batch = stand.deliver(1).await;
    let record = &batch[0];
    assert_eq!((&record.message_id, record.body.as_str()), (&id, body));
    assert_eq!(record.receive_count, 2);
    assert_eq!((record.sent, record.first_receive), (seen.sent, seen.first_receive));
    assert_ne!(record.receipt_handle, seen.receipt_handle);
    let is_known = !stand.differs(Difference::RefusesOldHandles);
    assert_eq!(stand.hide(&[(&seen.receipt_handle, 60)]).await, [is_known], "a receive like any other");
    stand.answer(&batch, &[]).await;
}

pub(crate) async fn delayed_message_is_delivered_with_attributes(stand: &impl Stand) {
    let message = moved(1);
    let id = stand.send_delayed(&message).await.expect("it is sent");
    let batch = stand.deliver(1).await;
    let record = &batch[0];
    assert_eq!((&record.message_id, record.body.as_str()), (&id, message.body));
    assert_eq!(record.receive_count, 1);
    assert!(record.first_receive.since(record.sent).as_secs() >= message.delay, "{record:?}");
    assert_eq!(stand.attributes(&record.receipt_handle), message.attributes);
    stand.answer(&batch, &[]).await;
}

pub(crate) async fn empty_answer_deletes_the_batch(stand: &impl Stand) {
    stand.send("one").await;
    stand.send("two").await;
    let batch = stand.deliver(2).await;
    assert_eq!(stand.held().await, 2, "until the function has answered");
    stand.answer(&batch, &[]).await;
    assert_eq!(stand.held().await, 0);
}

pub(crate) async fn named_messages_are_kept_and_the_rest_deleted(stand: &impl Stand) {
    for body in ["one", "two", "three"] {
        stand.send(body).await;
    }
    let batch = stand.deliver(3).await;
    let kept = &batch[1];
    stand.answer(&batch, &[&kept.message_id]).await;
    assert_eq!(stand.held().await, 1);
    assert_eq!(stand.hide(&[(&kept.receipt_handle, 0)]).await, [true], "its handle is still good");
    let again = stand.next().await;
    assert_eq!((&again.message_id, again.receive_count), (&kept.message_id, 2));
}

pub(crate) async fn kept_message_keeps_its_visibility(stand: &impl Stand) {
    let (later, sooner) = (stand.send("later").await, stand.send("sooner").await);
    let batch = stand.deliver(2).await;
    let seconds = |id: &str| if id == later { 8 } else { 1 };
    let entries: Vec<_> =
        batch.iter().map(|record| (record.receipt_handle.as_str(), seconds(&record.message_id))).collect();
    assert_eq!(stand.hide(&entries).await, [true, true]);
    stand.answer(&batch, &[&later, &sooner]).await;
    assert_eq!(stand.next().await.message_id, sooner, "sooner than after the queue's own ten minutes");
    assert_eq!(stand.next().await.message_id, later, "but not at once");
}

pub(crate) async fn unknown_id_keeps_the_whole_batch(stand: &impl Stand) {
    keeps_the_whole_batch(stand, "no id of this batch").await;
}

pub(crate) async fn empty_id_keeps_the_whole_batch(stand: &impl Stand) {
    keeps_the_whole_batch(stand, "").await;
}

async fn keeps_the_whole_batch(stand: &impl Stand, id: &str) {
    stand.send("one").await;
    stand.send("two").await;
    let batch = stand.deliver(2).await;
    stand.answer(&batch, &[&batch[0].message_id, id]).await;
    let kept = if stand.differs(Difference::DeletesDespiteUnknownIds) { 1 } else { 2 };
    assert_eq!(stand.held().await, kept);
}

pub(crate) async fn failure_is_recorded_with_its_payload(stand: &impl Stand) {
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
    assert_eq!(text(error.error_type).as_deref(), Some(ERROR_TYPE));
    assert_eq!(text(error.message).as_deref(), Some(ERROR_MESSAGE));
    assert!(!record.not_found);
}

pub(crate) async fn failure_record_has_these_members(stand: &impl Stand) {
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
