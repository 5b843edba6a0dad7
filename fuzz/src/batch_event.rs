use comeback_engine::{BatchEvent, BatchReport};
use serde_json::Value;

/// The bytes as the handler's event.
///
/// # Panics
///
/// If a message is lost, or read otherwise than another JSON parser reads it.
pub fn batch_event(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let batch = match BatchEvent::read(text) {
        Ok(batch) => batch,
        Err(problem) => return assert!(!problem.to_string().is_empty()),
    };
    let nameless = batch.message_ids().filter(|id| id.is_empty()).count();
    assert_eq!(BatchReport::new(&batch).kept_whole.is_some(), nameless > 0);
    assert!(batch.records.iter().all(|record| !record.message_id.is_empty()));
    // It refuses more than we do: lone surrogates, numbers over a double's range, deep nesting.
    let Ok(event) = serde_json::from_str::<Value>(text) else { return };
    let messages = event["Records"].as_array().expect("a batch has its messages");
    assert_eq!(batch.message_ids().count(), messages.len(), "each message is handled or kept");
    for record in &batch.records {
        let is_it = |message: &&Value| message["messageId"] == *record.message_id;
        assert!(
            messages.iter().filter(is_it).any(|message| {
                message["body"] == *record.body && message["receiptHandle"] == *record.receipt_handle
            }),
            "read otherwise: {record:?}"
        );
    }
}
