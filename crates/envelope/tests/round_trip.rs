//! Tests that any JSON payload comes out of its envelope byte for byte, even with `1E400`, duplicate keys or lone
//! surrogates.

use std::borrow::Cow;

use comeback_envelope::{Envelope, Metadata, Style, open};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::value::RawValue;

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
    fn payload_without_envelope_is_unchanged(payload in payload()) {
        let event = raw(payload);
        let opened = open(&event).expect("an event without an envelope is never malformed");
        prop_assert_eq!(opened.payload.get(), event.get());
        prop_assert_eq!(opened.attempt(), 0);
        prop_assert_eq!(opened.idempotency_key("r1"), "r1");
    }

    /// Opening an inline envelope removes the metadata member, one comma beside it, and the white space between them.
    #[test]
    fn inline_member_is_removed_anywhere(
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
}

fn raw(text: impl Into<String>) -> Box<RawValue> {
    RawValue::from_string(text.into()).expect("the test gives valid JSON")
}

/// Generates a JSON value of any type, which often contains the keys and values of an envelope.
fn value() -> BoxedStrategy<String> {
    scalar()
        .prop_recursive(4, 32, 5, |inner| {
            prop_oneof![array(inner.clone()), members(envelope_key(), inner).prop_map(|m| object(&m))]
        })
        .boxed()
}

/// Generates a value without the top-level key `_retry_metadata`.
fn payload() -> BoxedStrategy<String> {
    prop_oneof![
        scalar(),
        array(value()),
        payload_members().prop_map(|m| object(&m)),
        space().prop_map(|s| format!("{{{s}}}"))
    ]
    .boxed()
}

fn payload_members() -> BoxedStrategy<Vec<String>> {
    let key = prop_oneof![
        4 => string(),
        1 => words(&[r#""_original_payload""#, r#""_retry_metadata2""#, r#""attempt""#, r#""\ud800""#]),
    ];
    members(key.boxed(), value())
}

fn object(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}

fn space() -> BoxedStrategy<String> {
    prop_oneof![2 => Just(String::new()), 1 => "[ \t\r\n]{1,3}"].boxed()
}

fn metadata() -> impl Strategy<Value = Metadata> {
    (1_u64.., any::<u64>(), proptest::option::of("\\PC{1,8}")).prop_map(
        |(attempt, initial_timestamp, origin_request_id)| Metadata {
            attempt,
            initial_timestamp,
            origin_request_id,
        },
    )
}

fn scalar() -> BoxedStrategy<String> {
    prop_oneof![
        words(&["null", "true", "false", "-0.0", "1.0", "1E400", "-1e-400", "18446744073709551616"]),
        "-?[1-9][0-9]{0,60}(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?",
        string(),
    ]
    .boxed()
}

/// Generates a JSON string or key: raw characters and escapes, including lone surrogates.
fn string() -> BoxedStrategy<String> {
    let piece = prop_oneof![
        3 => any::<char>().prop_filter("escaped elsewhere", |c| *c >= ' ' && !"\"\\".contains(*c)).prop_map(String::from),
        1 => words(&[r#"\""#, r"\\", r"\/", r"\b", r"\f", r"\n", r"\r", r"\t", ",", "{", "}", "[", "]", ":"]),
        1 => any::<u16>().prop_map(|unit| format!("\\u{unit:04x}")),
        1 => (0xD800_u16..0xE000).prop_map(|surrogate| format!("\\u{surrogate:04X}")),
    ];
    vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat())).boxed()
}

fn envelope_key() -> BoxedStrategy<String> {
    let known = [
        r#""_retry_metadata""#,
        r#""\u005fretry_metadata""#,
        r#""_original_payload""#,
        r#""attempt""#,
        r#""initial_timestamp""#,
        r#""origin_request_id""#,
        r#""style""#,
    ];
    prop_oneof![3 => words(&known), 1 => string()].boxed()
}

fn array(values: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let item = (space(), values, space()).prop_map(|(before, value, after)| before + &value + &after);
    vec(item, 0..5).prop_map(|items| format!("[{}]", items.join(","))).boxed()
}

fn members(keys: BoxedStrategy<String>, values: BoxedStrategy<String>) -> BoxedStrategy<Vec<String>> {
    let member = (keys, values, [space(), space(), space(), space()])
        .prop_map(|(key, value, [a, b, c, d])| format!("{a}{key}{b}:{c}{value}{d}"));
    vec(member, 0..5).prop_map(with_a_duplicate).boxed()
}

fn with_a_duplicate(mut members: Vec<String>) -> Vec<String> {
    if members.len() > 3 {
        members.push(members[0].clone());
    }
    members
}

fn words(words: &[&str]) -> BoxedStrategy<String> {
    select(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).boxed()
}
