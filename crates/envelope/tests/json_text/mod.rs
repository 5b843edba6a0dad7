//! Arbitrary JSON *text*: what a parser would normalise away (big integers, `1.0`, `1E400`, duplicate
//! keys, lone surrogates, white space) is what must survive.

use comeback_envelope::Metadata;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::value::RawValue;

pub(crate) fn raw(text: impl Into<String>) -> Box<RawValue> {
    RawValue::from_string(text.into()).expect("the test gives valid JSON")
}

/// Any JSON value, often with keys and values an envelope has, at any depth.
pub(crate) fn value() -> BoxedStrategy<String> {
    scalar()
        .prop_recursive(4, 32, 5, |inner| {
            prop_oneof![array(inner.clone()), members(envelope_key(), inner).prop_map(|m| object(&m))]
        })
        .boxed()
}

/// Any value that is no envelope: at its top level no key is `_retry_metadata`.
pub(crate) fn payload() -> BoxedStrategy<String> {
    prop_oneof![
        scalar(),
        array(value()),
        payload_members().prop_map(|m| object(&m)),
        space().prop_map(|s| format!("{{{s}}}"))
    ]
    .boxed()
}

/// The members of an object payload, each with the white space around it.
pub(crate) fn payload_members() -> BoxedStrategy<Vec<String>> {
    let key = prop_oneof![
        4 => string(),
        1 => words(&[r#""_original_payload""#, r#""_retry_metadata2""#, r#""attempt""#, r#""\ud800""#]),
    ];
    members(key.boxed(), value())
}

/// An object that has, or nearly has, the shape of an envelope.
pub(crate) fn nearly_an_envelope() -> BoxedStrategy<String> {
    let plausible = prop_oneof![
        3 => words(&["0", "1", "1.0", "-1", r#""a1""#, r#""""#, r#""wrap""#, r#""inline""#, "null"]),
        1 => scalar(),
    ];
    let fields = members(envelope_key(), plausible.boxed()).prop_map(|m| object(&m));
    let metadata = prop_oneof![
        2 => words(&[
            r#"{"attempt":1,"initial_timestamp":0}"#,
            r#"{"attempt":1,"initial_timestamp":0,"style":"inline"}"#,
        ]),
        1 => fields,
        1 => value(),
    ];
    let envelope = words(&[r#"{"_retry_metadata":{}}"#]);
    let values = prop_oneof![4 => metadata, 1 => envelope, 1 => value()];
    members(envelope_key(), values.boxed()).prop_map(|m| object(&m)).boxed()
}

pub(crate) fn object(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}

pub(crate) fn space() -> BoxedStrategy<String> {
    prop_oneof![2 => Just(String::new()), 1 => "[ \t\r\n]{1,3}"].boxed()
}

pub(crate) fn metadata() -> impl Strategy<Value = Metadata> {
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

/// A string or key: characters as they are, short escapes, and `\u` escapes, lone surrogates included.
fn string() -> BoxedStrategy<String> {
    let piece = prop_oneof![
        3 => any::<char>().prop_filter("escaped elsewhere", |c| *c >= ' ' && !"\"\\".contains(*c)).prop_map(String::from),
        1 => words(&[r#"\""#, r"\\", r"\/", r"\b", r"\f", r"\n", r"\r", r"\t", ",", "{", "}", ":"]),
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

/// Repeats the first of several members as the last one.
fn with_a_duplicate(mut members: Vec<String>) -> Vec<String> {
    if members.len() > 3 {
        members.push(members[0].clone());
    }
    members
}

fn words(words: &[&str]) -> BoxedStrategy<String> {
    select(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).boxed()
}
