use comeback_engine::{FailedEvent, InvocationRecord, ReasonCode, Record, Timestamp};
use serde_json::Value;

/// The bytes as the body of a message.
///
/// # Panics
///
/// If a record is read otherwise than another JSON parser reads it, or a part of it was changed.
pub fn invocation_record(data: &[u8]) {
    let Ok(body) = std::str::from_utf8(data) else { return };
    let read = InvocationRecord::read(body);
    if let Ok(record) = &read {
        let raw = [Some(record.request_payload)]
            .into_iter()
            .chain(record.error.iter().flat_map(|error| [error.error_type, error.message]));
        for part in raw.flatten() {
            assert!(body.as_bytes().as_ptr_range().contains(&part.get().as_ptr()), "a copy: {part}");
        }
        // It refuses more than we do: lone surrogates, numbers over a double's range, deep nesting.
        if let Ok(value) = serde_json::from_str::<Value>(body) {
            assert_eq!(value["requestContext"]["functionArn"], *record.function_arn);
            let payload: Value =
                serde_json::from_str(record.request_payload.get()).expect("a part of it parses as well");
            assert_eq!(value["requestPayload"], payload);
        }
    }
    let message = Record {
        message_id: "m-1".into(),
        receipt_handle: "h-1".into(),
        body: body.into(),
        receive_count: 1,
        sent: Timestamp::from_secs(1),
        first_receive: Timestamp::from_secs(1),
        moved: None,
        trace_header: None,
    };
    match (FailedEvent::read(&message), read) {
        (Ok(event), read) => {
            assert!(event.retry >= 1 && event.first_failure <= message.sent);
            assert!(!event.origin_request_id.is_empty());
            let opened = comeback_envelope::open(&event.payload).expect("a payload is no malformed envelope");
            assert!(opened.metadata.is_none(), "still in an envelope: {}", event.payload);
            if let Ok(record) = read {
                assert_eq!(event.function_arn, record.function_arn);
            }
        }
        (Err(reason), read) => {
            // A redriven dead-letter is no record either, and may hold a malformed envelope.
            let malformed = reason.code == ReasonCode::MalformedEnvelope;
            assert!(malformed || (reason.code == ReasonCode::MalformedRecord && read.is_err()), "{reason}");
        }
    }
}
