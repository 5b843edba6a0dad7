//! The event source mapping with `ReportBatchItemFailures`. Source: "Using Lambda with Amazon SQS" and
//! "Reporting batch item failures", AWS Lambda Developer Guide.

use crate::queue::moved;
use crate::stand::{Difference, Stand};

pub(crate) async fn a_record_holds_what_sqs_says(stand: &impl Stand) {
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
    assert_eq!(stand.hide(&[(&seen.receipt_handle, 1)]).await, [false], "a receive like any other");
    stand.answer(&batch, &[]).await;
}

pub(crate) async fn a_delayed_message_is_delivered_with_its_attributes(stand: &impl Stand) {
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

pub(crate) async fn an_empty_answer_deletes_the_batch(stand: &impl Stand) {
    stand.send("one").await;
    stand.send("two").await;
    let batch = stand.deliver(2).await;
    assert_eq!(stand.held().await, 2, "until the function has answered");
    stand.answer(&batch, &[]).await;
    assert_eq!(stand.held().await, 0);
}

pub(crate) async fn what_an_answer_names_is_kept_and_the_rest_deleted(stand: &impl Stand) {
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

pub(crate) async fn what_is_kept_keeps_the_visibility_that_was_set(stand: &impl Stand) {
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

pub(crate) async fn an_unknown_id_keeps_the_whole_batch(stand: &impl Stand) {
    keeps_the_whole_batch(stand, "no id of this batch").await;
}

pub(crate) async fn an_empty_id_keeps_the_whole_batch(stand: &impl Stand) {
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
