use comeback_engine::{Attribute, DeadLetter, Policy, Record, SQS_MESSAGE_BYTES};
use serde_json::{Value, json};

use crate::fakes::World;
use crate::support::*;

/// What a message becomes that is given up.
fn letter_under(record: Record, policy: &Policy) -> DeadLetter {
    let world = World::default();
    world.handle(&[record], policy, NOW);
    let [letter] = &world.sent.borrow()[..] else { panic!("not dead-lettered") };
    letter.clone()
}

/// Under a policy without retries.
fn letter(body: impl Into<String>) -> DeadLetter {
    letter_under(record(body), &policy(|settings| settings.max_retries = 0))
}

fn attributes(letter: &DeadLetter) -> Vec<(&str, &str, &str)> {
    letter.attributes.iter().map(|a| (a.name, a.data_type, a.value.as_str())).collect()
}

fn attribute<'l>(letter: &'l DeadLetter, name: &str) -> Option<&'l str> {
    letter.attributes.iter().find(|attribute| attribute.name == name).map(|a| a.value.as_str())
}

#[test]
fn the_whole_of_it() {
    let policy = policy(|settings| settings.max_retries = 2);
    let letter = letter_under(record(body(&enveloped(2, r#"{"order":7}"#))), &policy);
    let expected = json!({
        "reason": "max_retries",
        "detail": "2 retries made; MAX_RETRIES is 2",
        "function_arn": "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST",
        "retries_made": 2,
        "initial_timestamp": 1_789_400_814,
        "dead_lettered_at": 1_789_404_414,
        "origin_request_id": "r-0",
        "error": {"type": "Timeout", "message": "too slow"},
        "payload": {"order": 7},
    });
    assert_eq!(serde_json::from_str::<Value>(&letter.body).unwrap(), expected);
    assert!(letter.body.starts_with(r#"{"reason":"max_retries","detail":"#), "{}", letter.body);
    assert_eq!(
        attributes(&letter),
        [
            ("Reason", "String", "max_retries"),
            ("TargetFunction", "String", TARGET),
            ("RetriesMade", "Number", "2"),
            ("ErrorType", "String", "Timeout"),
        ]
    );
}

#[test]
fn errors_are_copied_as_they_stand() {
    let response = r#"{"errorType":"Timeout","errorMessage":"too slow"}"#;
    for (payload, error, error_type) in [
        ("null", "null", None),
        (r#"{"trace":[]}"#, "null", None),
        (r#"{"errorType":"A"}"#, r#"{"type":"A","message":null}"#, Some("A")),
        (r#"{"errorMessage":"b"}"#, r#"{"type":null,"message":"b"}"#, None),
        (
            r#"{"errorType":"\ud800","errorMessage":"\udfff 1E400"}"#,
            r#"{"type":"\ud800","message":"\udfff 1E400"}"#,
            None,
        ),
        (r#"{"errorType":"","errorMessage":1E400}"#, r#"{"type":"","message":1E400}"#, None),
        (r#"{"errorType":{"a": 1}}"#, r#"{"type":{"a": 1},"message":null}"#, None),
    ] {
        let letter = letter(replaced(&body("7"), response, payload));
        let expected = format!(r#","error":{error},"payload":7}}"#);
        assert!(letter.body.ends_with(&expected), "{}", letter.body);
        assert_eq!(attribute(&letter, "ErrorType"), error_type, "{payload}");
    }
}

#[test]
fn attributes_are_cut_to_256_characters() {
    let long = "é".repeat(300);
    let letter = letter(replaced(&body("7"), "Timeout", &long));
    assert_eq!(attribute(&letter, "ErrorType"), Some(&*"é".repeat(256)));
    assert!(letter.body.contains(&long), "the body keeps it whole");
}

#[test]
fn characters_that_sqs_refuses_are_replaced() {
    let escaped = r"\u0000a\u0008\tb\n\u001f\ud7ff\ufffdc\ufffe\uffff\ud83d\ude00";
    let letter = letter(replaced(&body("7"), "Timeout", escaped));
    let expected = "\u{fffd}a\u{fffd}\tb\n\u{fffd}\u{d7ff}\u{fffd}c\u{fffd}\u{fffd}\u{1f600}";
    assert_eq!(attribute(&letter, "ErrorType"), Some(expected));
    assert!(letter.body.contains(escaped), "raw in the body");
}

#[test]
fn a_body_has_no_character_that_sqs_refuses() {
    let policy = policy(|settings| settings.non_retryable_errors = vec!["*".into()]);
    let letter = letter_under(record(replaced(&body("7"), "Timeout", r"\ufffe\uffff\u0001")), &policy);
    let body: Value = serde_json::from_str(&letter.body).unwrap();
    assert_eq!(body["detail"], "\u{fffe}\u{ffff}\u{1} matches NON_RETRYABLE_ERRORS");
    assert!(letter.body.chars().all(|c| c >= ' ' && c != '\u{fffe}' && c != '\u{ffff}'));
}

#[test]
fn what_is_not_understood_goes_verbatim_with_reason_and_detail() {
    let letter = letter(" not JSON \u{7f}");
    assert_eq!(letter.body, " not JSON \u{7f}");
    let expected = [("Reason", "String", "malformed_record"), ("Detail", "String", "not a JSON object")];
    assert_eq!(attributes(&letter), expected);

    let malformed = body(r#"{"_retry_metadata":{"attempt":0}}"#);
    let letter = self::letter(&*malformed);
    assert_eq!(letter.body, malformed);
    let detail = "`attempt` is not an integer of at least 1";
    let expected = [("Reason", "String", "malformed_envelope"), ("Detail", "String", detail)];
    assert_eq!(attributes(&letter), expected);
}

#[test]
fn the_detail_is_cut_and_cleaned_too() {
    let key = r"\u0000".repeat(30);
    let payload = format!(
        r#"{{"_retry_metadata":{{"attempt":1,"initial_timestamp":0}},"_original_payload":1,"{key}":1}}"#
    );
    let letter = letter(body(&payload));
    let detail = attribute(&letter, "Detail").unwrap();
    assert!(detail.chars().count() <= 256 && detail.chars().all(|c| c >= ' '), "{detail:?}");
}

/// A body that is dead-lettered verbatim, of so many bytes.
fn garbage(bytes: usize) -> String {
    "x".repeat(bytes)
}

#[test]
fn what_is_not_understood_sheds_its_attributes_to_fit() {
    let reason = "Reason".len() + "String".len() + "malformed_record".len();
    let detail = "Detail".len() + "String".len() + "not a JSON object".len();
    for (bytes, names) in [
        (SQS_MESSAGE_BYTES - reason - detail, &["Reason", "Detail"][..]),
        (SQS_MESSAGE_BYTES - reason - detail + 1, &["Reason"]),
        (SQS_MESSAGE_BYTES - reason, &["Reason"]),
        (SQS_MESSAGE_BYTES - reason + 1, &[]),
        (SQS_MESSAGE_BYTES, &[]),
    ] {
        let letter = letter(garbage(bytes));
        assert_eq!(letter.body.len(), bytes);
        assert_eq!(letter.attributes.iter().map(|a| a.name).collect::<Vec<_>>(), names);
        assert!(letter.size() <= SQS_MESSAGE_BYTES);
    }
}

#[test]
fn a_dead_letter_that_outgrows_a_message_is_the_received_body() {
    // The barest record is smaller than its dead-letter.
    let body = |bytes: usize| {
        let around = format!(r#"{{"requestContext":{{"functionArn":"{TARGET}"}},"requestPayload":""}}"#);
        replaced(&around, r#""""#, &format!("\"{}\"", garbage(bytes - around.len())))
    };
    let small = letter(body(1_000));
    let grown_by = small.size() - 1_000;
    let fits = letter(body(SQS_MESSAGE_BYTES - grown_by));
    assert_eq!((fits.size(), fits.attributes.len()), (SQS_MESSAGE_BYTES, 3));
    let outgrown = letter(body(SQS_MESSAGE_BYTES - grown_by + 1));
    assert_eq!(outgrown.body, body(SQS_MESSAGE_BYTES - grown_by + 1));
    assert_eq!(attributes(&outgrown), [("Reason", "String", "max_retries")]);
    let full = letter(body(SQS_MESSAGE_BYTES));
    assert_eq!((full.body.len(), full.attributes.len()), (SQS_MESSAGE_BYTES, 0));
}

#[test]
fn the_size_is_what_sqs_counts() {
    let attribute = |name, data_type, value: &str| Attribute { name, data_type, value: value.into() };
    let letter = DeadLetter {
        body: "é".into(),
        attributes: vec![attribute("Reason", "String", "é"), attribute("RetriesMade", "Number", "10")],
    };
    assert_eq!(letter.size(), 2 + (6 + 6 + 2) + (11 + 6 + 2));
}
