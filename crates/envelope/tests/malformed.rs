//! Each way an envelope can be wrong, with its exact words.

use comeback_envelope::{Malformed, open};
use serde_json::value::RawValue;

fn refusal(event: &str) -> Malformed {
    let event = RawValue::from_string(event.to_owned()).expect("the test gives valid JSON");
    match open(&event) {
        Ok(opened) => panic!("{event} opened as {}", opened.payload),
        Err(malformed) => malformed,
    }
}

/// What wrap style says of `metadata`.
fn refused_metadata(metadata: &str) -> String {
    refusal(&format!(r#"{{"_retry_metadata":{metadata},"_original_payload":{{}}}}"#)).to_string()
}

/// `OK` stands for good metadata, `INLINE` for good metadata of inline style.
fn refused(event: &str) -> String {
    let inline = r#"{"attempt":1,"initial_timestamp":0,"style":"inline"}"#;
    refusal(&event.replace("OK", r#"{"attempt":1,"initial_timestamp":0}"#).replace("INLINE", inline))
        .to_string()
}

#[test]
fn metadata_twice() {
    for event in [
        r#"{"_retry_metadata":OK,"_retry_metadata":OK,"_original_payload":{}}"#,
        r#"{"_retry_metadata":OK,"_original_payload":{},"\u005fretry_metadata":null}"#,
        r#"{"_retry_metadata":INLINE,"a":1,"_retry_metadata":INLINE}"#,
        r#"{"_retry_metadata":null,"_retry_metadata":INLINE,"_retry_metadata":1}"#,
    ] {
        assert_eq!(refused(event), "`_retry_metadata` appears twice", "{event}");
    }
}

#[test]
fn payload_twice() {
    let event = r#"{"_retry_metadata":OK,"_original_payload":1,"_original_payload":1}"#;
    assert_eq!(refused(event), "`_original_payload` appears twice");
}

#[test]
fn payload_missing() {
    for event in [r#"{"_retry_metadata":OK}"#, r#"{"_retry_metadata":OK,"order":1}"#] {
        assert_eq!(refused(event), "`_original_payload` is missing", "{event}");
    }
}

#[test]
fn another_key_beside_a_wrapped_payload() {
    for key in ["order", "", r"a\nb", r"\ud800"] {
        assert_eq!(
            refused(&format!(r#"{{"_retry_metadata":OK,"{key}":1,"_original_payload":{{}},"z":2}}"#)),
            "another key stands beside `_retry_metadata` and `_original_payload`, which must stand alone",
        );
    }
}

#[test]
fn an_envelope_within_an_envelope() {
    for payload in [
        r#"{"_retry_metadata":OK,"_original_payload":1}"#,
        r#"{"a":1,"_retry_metadata":INLINE}"#,
        r#"{"\u005fretry_metadata":null}"#,
    ] {
        let event = format!(r#"{{"_retry_metadata":OK,"_original_payload":{payload}}}"#);
        assert_eq!(refused(&event), "`_original_payload` is itself an envelope", "{event}");
    }
}

#[test]
fn metadata_that_is_no_object() {
    for metadata in ["null", "1", "\"{}\"", "[]", r#"[{"attempt":1,"initial_timestamp":0}]"#, "true"] {
        assert_eq!(refused_metadata(metadata), "`_retry_metadata` is not an object", "{metadata}");
    }
}

#[test]
fn a_field_that_is_missing() {
    for (metadata, text) in [
        ("{}", "`attempt` is missing"),
        (r#"{"initial_timestamp":0}"#, "`attempt` is missing"),
        (r#"{"attempt":1}"#, "`initial_timestamp` is missing"),
        (r#"{"attempt":1,"origin_request_id":"a1","style":"inline"}"#, "`initial_timestamp` is missing"),
    ] {
        assert_eq!(refused_metadata(metadata), text, "{metadata}");
    }
}

#[test]
fn a_field_that_stands_twice() {
    for (key, value) in
        [("attempt", "1"), ("initial_timestamp", "0"), ("origin_request_id", "\"a1\""), ("style", "\"wrap\"")]
    {
        let metadata = format!(r#"{{"attempt":1,"{key}":{value},"initial_timestamp":0,"{key}":{value}}}"#);
        assert_eq!(refused_metadata(&metadata), format!("`{key}` appears twice"), "{metadata}");
    }
}

/// Both of them are read from the digits of an unsigned integer, and from nothing else.
const NO_INTEGERS: [&str; 16] = [
    "-1",
    "-0",
    "1.0",
    "1e3",
    "1E400",
    "18446744073709551616",
    "-9223372036854775809",
    "\"2\"",
    "\"\"",
    "null",
    "true",
    "[1]",
    "[]",
    "{}",
    r#"{"$serde_json::private::Number":"1"}"#,
    "0.5",
];

#[test]
fn an_attempt_that_is_no_integer_of_at_least_1() {
    for attempt in NO_INTEGERS.into_iter().chain(["0"]) {
        assert_eq!(
            refused_metadata(&format!(r#"{{"attempt":{attempt},"initial_timestamp":0}}"#)),
            "`attempt` is not an integer of at least 1",
        );
    }
}

#[test]
fn an_initial_timestamp_that_is_no_integer_of_at_least_0() {
    for timestamp in NO_INTEGERS {
        assert_eq!(
            refused_metadata(&format!(r#"{{"attempt":1,"initial_timestamp":{timestamp}}}"#)),
            "`initial_timestamp` is not an integer of at least 0",
        );
    }
}

#[test]
fn an_id_that_is_no_string_or_empty() {
    for id in [r#""""#, "7", "[]", "{}", "true", r#""\ud800""#] {
        assert_eq!(
            refused_metadata(&format!(r#"{{"attempt":1,"initial_timestamp":0,"origin_request_id":{id}}}"#)),
            "`origin_request_id` is not a string that is not empty",
        );
    }
}

#[test]
fn a_style_that_is_unknown() {
    for style in [r#""zip""#, r#""Inline""#, r#""""#, "1", "[]", "{}", r#"{"inline":null}"#, r#"["wrap"]"#] {
        assert_eq!(
            refused_metadata(&format!(r#"{{"attempt":1,"initial_timestamp":0,"style":{style}}}"#)),
            "`style` is not \"inline\" or \"wrap\"",
        );
    }
}

#[test]
fn each_refusal_has_a_variant_of_its_own() {
    assert_eq!(refusal(r#"{"_retry_metadata":null}"#), Malformed::NotAnObject);
    assert_eq!(refusal(r#"{"_retry_metadata":{}}"#), Malformed::Missing("attempt"));
    let event = r#"{"_retry_metadata":{"attempt":0,"initial_timestamp":0}}"#;
    let expected = "an integer of at least 1";
    assert_eq!(refusal(event), Malformed::Value { key: "attempt", expected });
}
