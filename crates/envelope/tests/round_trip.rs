//! What goes into an envelope comes out of it byte for byte.

use std::borrow::Cow;

use comeback_envelope::{Envelope, Metadata, Style, open};
use proptest::prelude::*;
use serde_json::value::RawValue;

mod json_text;
use json_text::{metadata, nearly_an_envelope, object, payload, payload_members, raw, space, value};

/// Seals and opens `payload`, which must come back as it was.
fn assert_round_trip(payload: &str, metadata: &Metadata, style: Style) {
    let payload = raw(payload);
    let envelope =
        Envelope { metadata: metadata.clone(), original_payload: Cow::<RawValue>::Borrowed(&payload) };
    let sealed = envelope.seal(style);
    assert_eq!(envelope.sealed_len(style), sealed.len(), "{style}: {sealed}");
    let event = raw(sealed);
    let opened = open(&event).expect("what seal writes, open reads");
    assert!(opened.payload.get() == payload.get(), "{style}: {} != {}", opened.payload, payload);
    assert_eq!(opened.metadata.as_ref(), Some(metadata), "{style}");
}

fn second_attempt() -> Metadata {
    Metadata { attempt: 2, initial_timestamp: 1_643_667_670, origin_request_id: Some("a1".to_owned()) }
}

#[test]
fn named_payloads_come_back_byte_for_byte() {
    let payloads = [
        "null",
        "true",
        "\"text\"",
        "[1, 2.0,  3]",
        "12345678901234567890123456789",
        "1.0",
        "1E400",
        "-0.0",
        "{}",
        "{ \t\r\n}",
        r#"{"a":1,"a":2, "a" : 3}"#,
        r#"{"\ud800":"\udfff","\u00e9":"é","🦀":"\ud83e\udd80"}"#,
        r#"{"_original_payload":{"_retry_metadata":null}}"#,
        r#"{"comma":",","brace":"}","quote":"\"_retry_metadata\":{}"}"#,
        "{\n  \"pretty\": [\n    1\n  ]\n}",
    ];
    for payload in payloads {
        for style in Style::ALL {
            assert_round_trip(payload, &second_attempt(), style);
        }
    }
}

#[test]
fn payloads_nested_10_000_levels_deep_come_back() {
    let levels = 10_000;
    let arrays = "[".repeat(levels) + &"]".repeat(levels);
    let objects = r#"{"_retry_metadata2":"#.repeat(levels) + "1.0" + &"}".repeat(levels);
    for payload in [&arrays, &objects, &format!(r#"{{"deep": {objects} , "deeper": {arrays}}}"#)] {
        for style in Style::ALL {
            assert_round_trip(payload, &second_attempt(), style);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn any_payload_comes_back_byte_for_byte(payload in payload(), metadata in metadata()) {
        for style in Style::ALL {
            assert_round_trip(&payload, &metadata, style);
        }
    }

    #[test]
    fn any_payload_without_an_envelope_is_itself(payload in payload()) {
        let event = raw(payload);
        let opened = open(&event).expect("no envelope can be no malformed one");
        prop_assert_eq!(opened.payload.get(), event.get());
        prop_assert_eq!(opened.attempt(), 0);
        prop_assert_eq!(opened.idempotency_key("r1"), "r1");
    }

    /// The comma that goes is the one after the member, or before it if it is the last; white
    /// space between the two goes as well, white space on the member's other side stays.
    #[test]
    fn an_inline_member_is_taken_out_wherever_it_stands(
        members in payload_members(),
        place in any::<prop::sample::Index>(),
        before in space(),
        after in space(),
        escaped in any::<bool>(),
    ) {
        let place = place.index(members.len() + 1);
        let key = if escaped { r"\u005Fretry_metadata" } else { "_retry_metadata" };
        let member = format!(r#"{before}"{key}":{{"attempt":3,"initial_timestamp":0,"style":"inline"}}{after}"#);
        let mut with = members.clone();
        with.insert(place, member);

        let mut rest = members.clone();
        if members.is_empty() {
            rest.push(before + &after);
        } else if place < members.len() {
            rest[place].insert_str(0, &before);
        } else {
            rest[place - 1].push_str(&after);
        }

        let event = raw(object(&with));
        let opened = open(&event).expect("a well-formed inline envelope");
        prop_assert_eq!(opened.payload.get(), object(&rest));
        prop_assert_eq!(opened.attempt(), 3);
    }

    /// Never a panic, and never an envelope within an envelope.
    #[test]
    fn open_answers_on_any_json(event in prop_oneof![value(), nearly_an_envelope()]) {
        let event = raw(event);
        match open(&event) {
            Ok(opened) => prop_assert!(open(&opened.payload).is_ok_and(|inner| inner.metadata.is_none())),
            Err(malformed) => prop_assert!(!malformed.to_string().is_empty()),
        }
    }
}
