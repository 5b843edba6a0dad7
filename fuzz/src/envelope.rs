use comeback_envelope::{Envelope, Metadata, Style, open};
use serde_json::value::RawValue;

/// The bytes as an event: a payload, an envelope, or no JSON. Whatever opens is sealed again with an
/// id made of the event's own characters.
///
/// # Panics
///
/// If a payload is not what it was before, or an envelope holds an envelope.
pub fn envelope(data: &[u8]) {
    let Ok(event) = serde_json::from_slice::<&RawValue>(data) else { return };
    let opened = match open(event) {
        Ok(opened) => opened,
        Err(malformed) => return assert!(!malformed.to_string().is_empty()),
    };
    if opened.metadata.is_none() {
        assert_eq!(opened.payload.get(), event.get(), "without an envelope, an event is its payload");
    }
    let payload = opened.payload;
    assert!(open(&payload).is_ok_and(|inner| inner.metadata.is_none()), "nested: {payload}");

    let id: String = event.get().chars().take(40).collect();
    let metadata = opened.metadata.unwrap_or(Metadata {
        attempt: event.get().len() as u64,
        initial_timestamp: data.iter().map(|byte| u64::from(*byte)).sum(),
        origin_request_id: Some(id),
    });
    let envelope = Envelope { metadata, original_payload: payload };
    for style in Style::ALL {
        let sealed = RawValue::from_string(envelope.seal(style)).expect("what is sealed is JSON");
        let opened = open(&sealed).expect("what is sealed can be opened");
        assert_eq!(opened.payload.get(), envelope.original_payload.get(), "{style}");
        assert_eq!(opened.metadata.as_ref(), Some(&envelope.metadata), "{style}");
    }
}
