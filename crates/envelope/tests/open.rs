//! Tests of `open`.

use comeback_envelope::{Malformed, open};
use serde_json::value::RawValue;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("the test gives valid JSON")
}

/// Returns the payload, the attempt and the idempotency key.
fn opened(event: &str) -> (String, u64, String) {
    let event = raw(event);
    let opened = open(&event).unwrap_or_else(|malformed| panic!("{event}: {malformed}"));
    (opened.payload.get().to_owned(), opened.attempt(), opened.idempotency_key("now").to_owned())
}

#[test]
fn event_without_metadata_is_a_payload() {
    let events = [
        "null",
        "false",
        "0",
        "-1.0",
        "\"_retry_metadata\"",
        "[]",
        r#"[{"_retry_metadata":{"attempt":0}}]"#,
        "{}",
        "{ }",
        r#"{"order":{"_retry_metadata":{"attempt":0}}}"#,
        r#"{"order":"\"_retry_metadata\":{}"}"#,
        r#"{"_original_payload":1}"#,
        r#"{"_retry_metadata ":1,"_Retry_metadata":2,"retry_metadata":3,"":4,"\ud800":5}"#,
    ];
    for event in events {
        assert_eq!(opened(event), (event.to_owned(), 0, "now".to_owned()), "{event}");
    }
}

#[test]
fn a_wrapped_payload_is_any_json() {
    for payload in ["null", "[1,2.0]", "\"text\"", "1E400", "{}", r#"{ "a" : [{"_retry_metadata":0}] }"#] {
        let metadata = r#"{"attempt":2,"initial_timestamp":1643667670,"origin_request_id":"a1"}"#;
        for event in [
            format!(r#"{{"_retry_metadata":{metadata},"_original_payload":{payload}}}"#),
            format!(" {{\n\"_original_payload\" : {payload} ,\t\"_retry_metadata\" : {metadata} }} "),
            format!(r#"{{"\u005fretry_metadata":{metadata},"_origin\u0061l_payload":{payload}}}"#),
        ] {
            assert_eq!(opened(&event), (payload.to_owned(), 2, "a1".to_owned()), "{event}");
        }
    }
}

/// The `_retry_metadata` member of an inline envelope (`@` below) may contain white space and escapes, and its keys may
/// be in any order.
#[test]
fn an_inline_member_has_any_spelling() {
    for member in [
        r#""_retry_metadata":{"attempt":1,"initial_timestamp":0,"origin_request_id":"a1","style":"inline"}"#,
        r#""_retry_metadata"	: {"style" :"\u0069nline", "origin_request_id":"a\u0031", "initial_timestamp":0, "attempt": 1}"#,
        r#""\u005fretry_metadata":{"attempt":1,"initial_timestamp":0,"origin_request_id":"a1","style":"inline"}"#,
    ] {
        for (event, payload) in [("{@}", "{}"), (r#"{"a":",",@,"b":"{"}"#, r#"{"a":",","b":"{"}"#)] {
            let event = event.replace('@', member);
            assert_eq!(opened(&event), (payload.to_owned(), 1, "a1".to_owned()), "{event}");
        }
    }
}

#[test]
fn metadata_may_lack_optional_keys() {
    let cases = [
        (r#""attempt":1,"initial_timestamp":1643667670"#, 1, "now"),
        (r#""attempt":1,"initial_timestamp":0,"origin_request_id":null,"style":null"#, 1, "now"),
        (r#""attempt":1,"initial_timestamp":0,"style":"wrap""#, 1, "now"),
        (r#""attempt":18446744073709551615,"initial_timestamp":18446744073709551615"#, u64::MAX, "now"),
        (r#""\u0061ttempt":7,"initial_timestamp":0,"origin_request_id":"\u00e9🦀""#, 7, "é🦀"),
        (r#""x":1E400,"attempt":2,"x":{"attempt":0},"initial_timestamp":0"#, 2, "now"),
        (r#""\ud800":"\udfff","attempt":2,"Attempt":0,"initial_timestamp":0,"\ud800":1"#, 2, "now"),
    ];
    for (metadata, attempt, key) in cases {
        let event = format!(r#"{{"_retry_metadata":{{{metadata}}},"_original_payload":{{"a":1.0}}}}"#);
        assert_eq!(opened(&event), (r#"{"a":1.0}"#.to_owned(), attempt, key.to_owned()), "{event}");
    }
}

fn refusal(event: &str) -> Malformed {
    let event = raw(event);
    match open(&event) {
        Ok(opened) => panic!("{event} opened as {}", opened.payload),
        Err(malformed) => malformed,
    }
}

fn refused_metadata(metadata: &str) -> String {
    refusal(&format!(r#"{{"_retry_metadata":{metadata},"_original_payload":{{}}}}"#)).to_string()
}

fn refused(event: &str) -> String {
    let inline = r#"{"attempt":1,"initial_timestamp":0,"style":"inline"}"#;
    refusal(&event.replace("OK", r#"{"attempt":1,"initial_timestamp":0}"#).replace("INLINE", inline))
        .to_string()
}

#[test]
fn each_refusal_has_its_message() {
    for (event, words) in [
        (r#"{"_retry_metadata":OK,"_retry_metadata":OK,"_original_payload":{}}"#, METADATA_TWICE),
        (r#"{"_retry_metadata":OK,"_original_payload":{},"\u005fretry_metadata":null}"#, METADATA_TWICE),
        (r#"{"_retry_metadata":INLINE,"a":1,"_retry_metadata":INLINE}"#, METADATA_TWICE),
        (r#"{"_retry_metadata":null,"_retry_metadata":INLINE,"_retry_metadata":1}"#, METADATA_TWICE),
        (
            r#"{"_retry_metadata":OK,"_original_payload":1,"_original_payload":1}"#,
            "`_original_payload` appears twice",
        ),
        (r#"{"_retry_metadata":OK}"#, "`_original_payload` is missing"),
        (r#"{"_retry_metadata":OK,"order":1}"#, "`_original_payload` is missing"),
        (r#"{"_retry_metadata":OK,"order":1,"_original_payload":{},"z":2}"#, OTHER_KEY),
        (r#"{"_retry_metadata":OK,"":1,"_original_payload":{}}"#, OTHER_KEY),
        (r#"{"_retry_metadata":OK,"\ud800":1,"_original_payload":{}}"#, OTHER_KEY),
        (
            r#"{"_retry_metadata":OK,"_original_payload":{"_retry_metadata":OK,"_original_payload":1}}"#,
            NESTED,
        ),
        (r#"{"_retry_metadata":OK,"_original_payload":{"a":1,"_retry_metadata":INLINE}}"#, NESTED),
        (r#"{"_retry_metadata":OK,"_original_payload":{"\u005fretry_metadata":null}}"#, NESTED),
    ] {
        assert_eq!(refused(event), words, "{event}");
    }
}

const METADATA_TWICE: &str = "`_retry_metadata` appears twice";
const OTHER_KEY: &str =
    "another key stands beside `_retry_metadata` and `_original_payload`, which must stand alone";
const NESTED: &str = "`_original_payload` is itself an envelope";

#[test]
fn each_metadata_refusal_has_its_message() {
    for (metadata, words) in [
        ("{}", "`attempt` is missing"),
        (r#"{"initial_timestamp":0}"#, "`attempt` is missing"),
        (r#"{"attempt":1}"#, "`initial_timestamp` is missing"),
        (r#"{"attempt":1,"origin_request_id":"a1","style":"inline"}"#, "`initial_timestamp` is missing"),
        (r#"{"attempt":1,"initial_timestamp":0,"attempt":1}"#, "`attempt` appears twice"),
        (r#"{"attempt":1,"initial_timestamp":0,"style":null,"style":"wrap"}"#, "`style` appears twice"),
    ] {
        assert_eq!(refused_metadata(metadata), words, "{metadata}");
    }
    for metadata in ["null", "1", "\"{}\"", "[]", r#"[{"attempt":1,"initial_timestamp":0}]"#, "true"] {
        assert_eq!(refused_metadata(metadata), "`_retry_metadata` is not an object", "{metadata}");
    }
}

/// Each invalid value of a key is refused with that key's message.
#[test]
fn each_refused_value_has_its_message() {
    let no_integers = r#"-1 -0 1.0 0.5 1e3 1E400 18446744073709551616 -9223372036854775809 "2" "" null true [1] [] {}
        {"$serde_json::private::Number":"1"}"#;
    let valid = r#"{"attempt":1,"initial_timestamp":0,"origin_request_id":"a1","style":"wrap"}"#;
    for (field, refused, words) in [
        (r#""attempt":1"#, format!("0 {no_integers}"), "`attempt` is not an integer of at least 1"),
        (
            r#""initial_timestamp":0"#,
            no_integers.to_owned(),
            "`initial_timestamp` is not an integer of at least 0",
        ),
        (
            r#""origin_request_id":"a1""#,
            r#""" 7 [] {} true "\ud800""#.to_owned(),
            "`origin_request_id` is not a string that is not empty",
        ),
        (
            r#""style":"wrap""#,
            r#""zip" "Inline" "" 1 [] {} {"inline":null} ["wrap"]"#.to_owned(),
            "`style` is not \"inline\" or \"wrap\"",
        ),
    ] {
        let (key, _) = field.split_once(':').expect("a key and a value");
        for value in refused.split_whitespace() {
            let metadata = valid.replace(field, &format!("{key}:{value}"));
            assert_eq!(refused_metadata(&metadata), words, "{metadata}");
        }
    }
}
