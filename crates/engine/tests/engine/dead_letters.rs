//! Tests of dead-letters: how they are written, read and redriven.

use comeback_engine::{
    Action, Attribute, DeadLetter, DeadLetterKind, FailedEvent, MOVED_ATTRIBUTE, Pauses, Policies, Policy,
    ReasonCode, ReceivedDeadLetter, Record, SQS_MESSAGE_BYTES, Timestamp, decide,
};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::account::World;
use crate::support::*;

fn dead_letter_under(record: Record, policy: &Policy) -> DeadLetter {
    let world = World::default();
    world.handle(&[record], policy, NOW);
    world.sent.borrow()[0].clone()
}

fn string(name: &'static str, value: &str) -> Attribute {
    Attribute { name: name.into(), data_type: "String".into(), value: value.into() }
}

fn dead_letter(body: impl Into<String>) -> DeadLetter {
    dead_letter_under(record(body), &policy(|settings| settings.max_retries = 0))
}

fn attributes(dead_letter: &DeadLetter) -> Vec<(&str, &str, &str)> {
    dead_letter.attributes.iter().map(|a| (&*a.name, &*a.data_type, a.value.as_str())).collect()
}

fn attribute<'l>(dead_letter: &'l DeadLetter, name: &str) -> Option<&'l str> {
    dead_letter.attributes.iter().find(|attribute| attribute.name == name).map(|a| a.value.as_str())
}

#[test]
fn a_dead_letter_in_full() {
    let policy = policy(|settings| settings.max_retries = 2);
    let dead_letter = dead_letter_under(record(body(&enveloped(2, r#"{"order":7}"#))), &policy);
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
    assert_eq!(serde_json::from_str::<Value>(&dead_letter.body).unwrap(), expected);
    assert!(dead_letter.body.starts_with(r#"{"reason":"max_retries","detail":"#), "{}", dead_letter.body);
    assert_eq!(
        attributes(&dead_letter),
        [
            ("Reason", "String", "max_retries"),
            ("TargetFunction", "String", TARGET),
            ("RetriesMade", "Number", "2"),
            ("ErrorType", "String", "Timeout"),
        ]
    );
}

#[test]
fn errors_are_copied_verbatim() {
    let response = r#"{"errorType":"Timeout","errorMessage":"too slow"}"#;
    for (payload, error, error_type) in [
        ("null", "null", None),
        (r#"{"trace":[]}"#, "null", None),
        (r#"{"errorType":"A"}"#, r#"{"type":"A","message":null}"#, Some("A")),
        (r#"{"errorMessage":"b"}"#, r#"{"type":null,"message":"b"}"#, None),
        (
            r#"{"errorType":"\ud800","errorMessage":"\udfff 1E400"}"#,
            r#"{"type":"\ud800","message":"\udfff 1E400"}"#,
            Some("\u{fffd}"),
        ),
        (r#"{"errorType":"","errorMessage":1E400}"#, r#"{"type":"","message":1E400}"#, None),
        (r#"{"errorType":{"a": 1}}"#, r#"{"type":{"a": 1},"message":null}"#, None),
    ] {
        let dead_letter = dead_letter(replaced(&body("7"), response, payload));
        let expected = format!(r#","error":{error},"payload":7}}"#);
        assert!(dead_letter.body.ends_with(&expected), "{}", dead_letter.body);
        assert_eq!(attribute(&dead_letter, "ErrorType"), error_type, "{payload}");
    }
}

#[test]
fn attributes_are_cut_to_256_characters() {
    let long = "é".repeat(300);
    let dead_letter = dead_letter(replaced(&body("7"), "Timeout", &long));
    assert_eq!(attribute(&dead_letter, "ErrorType"), Some(&*"é".repeat(256)));
    assert!(dead_letter.body.contains(&long), "the body keeps it whole");
}

#[test]
fn characters_that_sqs_refuses_are_replaced() {
    let escaped = r"\u0000a\u0008\tb\n\u001f\ud7ff\ufffdc\ufffe\uffff\ud83d\ude00";
    let dead_letter = dead_letter(replaced(&body("7"), "Timeout", escaped));
    let expected = "\u{fffd}a\u{fffd}\tb\n\u{fffd}\u{d7ff}\u{fffd}c\u{fffd}\u{fffd}\u{1f600}";
    assert_eq!(attribute(&dead_letter, "ErrorType"), Some(expected));
    assert!(dead_letter.body.contains(escaped), "raw in the body");
}

#[test]
fn a_body_has_no_character_that_sqs_refuses() {
    let policy = policy(|settings| settings.non_retryable_errors = vec!["*".into()]);
    let dead_letter =
        dead_letter_under(record(replaced(&body("7"), "Timeout", r"\ufffe\uffff\u0001")), &policy);
    let body: Value = serde_json::from_str(&dead_letter.body).unwrap();
    assert_eq!(body["detail"], "\u{fffe}\u{ffff}\u{1} matches NON_RETRYABLE_ERRORS");
    assert!(dead_letter.body.chars().all(|c| c >= ' ' && c != '\u{fffe}' && c != '\u{ffff}'));
}

#[test]
fn unparsed_messages_go_verbatim_with_a_reason() {
    let dead_letter = dead_letter(" not JSON \u{7f}");
    assert_eq!(dead_letter.body, " not JSON \u{7f}");
    let expected = [("Reason", "String", "malformed_record"), ("Detail", "String", "not a JSON object")];
    assert_eq!(attributes(&dead_letter), expected);

    let malformed = body(r#"{"_retry_metadata":{"attempt":0}}"#);
    let dead_letter = self::dead_letter(&*malformed);
    assert_eq!(dead_letter.body, malformed);
    let detail = "`attempt` is not an integer of at least 1";
    let expected = [("Reason", "String", "malformed_envelope"), ("Detail", "String", detail)];
    assert_eq!(attributes(&dead_letter), expected);
}

fn sent_with(attributes: Vec<Attribute>, body: &str) -> Record {
    Record { attributes, ..record(body) }
}

#[test]
fn unparsed_messages_keep_their_attributes() {
    let binary = Attribute { name: "Blob".into(), data_type: "Binary.gz".into(), value: "AAEC".into() };
    let own = [string("Reason", "mine"), binary.clone(), string("RequestID", "r-1")];
    let dead_letter = dead_letter_under(sent_with(own.into(), "{}"), &policy(|_| ()));
    let expected = [
        ("Reason", "String", "malformed_record"),
        ("Detail", "String", "missing field `requestContext` at line 1 column 2"),
        ("Blob", "Binary.gz", "AAEC"),
        ("RequestID", "String", "r-1"),
    ];
    assert_eq!(attributes(&dead_letter), expected);
    let names = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];
    let ten = names.map(|name| string(name, "x")).to_vec();
    let dead_letter = dead_letter_under(sent_with(ten, "{}"), &policy(|_| ()));
    let kept: Vec<_> = dead_letter.attributes.iter().map(|it| &*it.name).collect();
    assert_eq!(kept, ["Reason", "Detail", "A", "B", "C", "D", "E", "F", "G", "H"]);
    // The dead-letter for a parsed event needs no attributes from the sender.
    let understood = sent_with(vec![string("RequestID", "r-1")], &body("7"));
    assert_eq!(attribute(&dead_letter_under(understood, &without_retries()), "RequestID"), None);
}

/// Returns a body of `bytes` bytes that is not an invocation record, so the handler dead-letters it verbatim.
fn garbage(bytes: usize) -> String {
    "x".repeat(bytes)
}

#[test]
fn unparsed_messages_shed_attributes_to_fit() {
    let reason = "Reason".len() + "String".len() + "malformed_record".len();
    let detail = "Detail".len() + "String".len() + "not a JSON object".len();
    for (bytes, names) in [
        (SQS_MESSAGE_BYTES - reason - detail, &["Reason", "Detail"][..]),
        (SQS_MESSAGE_BYTES - reason - detail + 1, &["Reason"]),
        (SQS_MESSAGE_BYTES - reason, &["Reason"]),
        (SQS_MESSAGE_BYTES - reason + 1, &[]),
        (SQS_MESSAGE_BYTES, &[]),
    ] {
        let dead_letter = dead_letter(garbage(bytes));
        assert_eq!(dead_letter.body.len(), bytes);
        assert_eq!(dead_letter.attributes.iter().map(|a| &*a.name).collect::<Vec<_>>(), names);
        assert!(dead_letter.size() <= SQS_MESSAGE_BYTES);
    }
}

#[test]
fn senders_attributes_are_shed_first() {
    let ours = dead_letter(garbage(7)).size() - 7;
    for (bytes, names) in [
        (SQS_MESSAGE_BYTES - ours - 14, &["Reason", "Detail", "Own"][..]),
        (SQS_MESSAGE_BYTES - ours - 13, &["Reason", "Detail"]),
        (SQS_MESSAGE_BYTES - ours + 1, &["Reason"]),
    ] {
        let record = sent_with(vec![string("Own", "value")], &garbage(bytes));
        let dead_letter = dead_letter_under(record, &without_retries());
        assert_eq!(dead_letter.attributes.iter().map(|a| &*a.name).collect::<Vec<_>>(), names);
    }
}

#[test]
fn an_oversized_dead_letter_is_the_received_body() {
    // A record that has only the required members is smaller than its dead-letter.
    let body = |bytes: usize| {
        let around = format!(r#"{{"requestContext":{{"functionArn":"{TARGET}"}},"requestPayload":""}}"#);
        replaced(&around, r#""""#, &format!("\"{}\"", garbage(bytes - around.len())))
    };
    let small = dead_letter(body(1_000));
    let grown_by = small.size() - 1_000;
    let fits = dead_letter(body(SQS_MESSAGE_BYTES - grown_by));
    assert_eq!((fits.size(), fits.attributes.len()), (SQS_MESSAGE_BYTES, 3));
    let outgrown = dead_letter(body(SQS_MESSAGE_BYTES - grown_by + 1));
    assert_eq!(outgrown.body, body(SQS_MESSAGE_BYTES - grown_by + 1));
    assert_eq!(attributes(&outgrown), [("Reason", "String", "max_retries")]);
    let full = dead_letter(body(SQS_MESSAGE_BYTES));
    assert_eq!((full.body.len(), full.attributes.len()), (SQS_MESSAGE_BYTES, 0));
}

/// Returns the message that the dead-letter queue receives, and its attributes.
fn dead_lettered(received: Record, policy: &Policy) -> (Record, Vec<Attribute>) {
    let DeadLetter { body, attributes } = dead_letter_under(received, policy);
    (Record { message_id: "letter-1".into(), sent: NOW, ..record(body) }, attributes)
}

fn read<'l>((record, attributes): &'l (Record, Vec<Attribute>)) -> ReceivedDeadLetter<'l> {
    let attribute = |name: &str| attributes.iter().find(|it| it.name == name).map(|it| it.value.as_str());
    ReceivedDeadLetter::read(record, attribute)
}

fn without_retries() -> Policy {
    policy(|settings| settings.max_retries = 0)
}

fn on_the_retry_queue(body: String) -> Record {
    let sent = after(NOW, 50 * 86_400_000);
    Record { message_id: "redriven-1".into(), sent, first_receive: sent, ..record(body) }
}

#[test]
fn a_dead_letter_is_read_back_in_full() {
    let dead_letter =
        dead_lettered(record(body(&enveloped(2, r#"{"order": 7}"#))), &policy(|it| it.max_retries = 2));
    let dead_letter = read(&dead_letter);
    assert_eq!((dead_letter.kind, dead_letter.reason), (DeadLetterKind::Event, Some(ReasonCode::MaxRetries)));
    assert_eq!(dead_letter.detail.as_deref(), Some("2 retries made; MAX_RETRIES is 2"));
    assert_eq!((dead_letter.function_arn.as_deref(), dead_letter.retries_made), (Some(TARGET), Some(2)));
    assert_eq!(
        (dead_letter.first_failure, dead_letter.dead_lettered_at),
        (Some(T0), Timestamp::from_secs(NOW.as_secs()))
    );
    assert_eq!(dead_letter.key.as_deref(), Some("r-0"));
    assert_eq!(dead_letter.error_type.as_deref(), Some("Timeout"));
    assert_eq!(dead_letter.error_message.as_deref(), Some("too slow"));
    assert_eq!(dead_letter.payload.as_ref().unwrap().get(), r#"{"order": 7}"#);
}

#[test]
fn an_unparsed_body_has_its_reason() {
    let dead_letter = dead_lettered(record("hello"), &policy(|_| ()));
    let dead_letter = read(&dead_letter);
    assert_eq!(
        (dead_letter.kind, dead_letter.reason),
        (DeadLetterKind::Verbatim, Some(ReasonCode::MalformedRecord))
    );
    assert_eq!(dead_letter.detail.as_deref(), Some("not a JSON object"));
    assert!(dead_letter.payload.is_none() && dead_letter.key.is_none() && dead_letter.function_arn.is_none());
    assert_eq!(dead_letter.redriven(None, None).unwrap_err().code, ReasonCode::MalformedRecord);
}

/// A message body that looks like an old dead-letter with an unreadable envelope.
const CLAIM: &str = r#"{"reason":"max_age","detail":"long ago","function_arn":"f","dead_lettered_at":9,"origin_request_id":"r-9","payload":{"_retry_metadata":1}}"#;

#[test]
fn reason_and_detail_of_the_attributes_win_over_the_body() {
    let dead_letter = dead_lettered(record(CLAIM), &policy(|_| ()));
    let dead_letter = read(&dead_letter);
    assert_eq!(
        (dead_letter.kind, dead_letter.reason),
        (DeadLetterKind::Verbatim, Some(ReasonCode::MalformedEnvelope))
    );
    assert_eq!(dead_letter.detail.as_deref(), Some("`_retry_metadata` is not an object"));
    assert_eq!(dead_letter.dead_lettered_at, NOW, "when it was sent");
    assert_eq!((dead_letter.function_arn.as_deref(), dead_letter.key.as_deref()), (Some("f"), Some("r-9")));
    // A message whose body leaves no space for the detail has only the attribute `Reason`.
    let no_room = (record(CLAIM), vec![string("Reason", "max_retries")]);
    let dead_letter = read(&no_room);
    assert_eq!(
        (dead_letter.kind, dead_letter.reason),
        (DeadLetterKind::Verbatim, Some(ReasonCode::MaxRetries))
    );
    assert_eq!((dead_letter.detail.as_deref(), dead_letter.dead_lettered_at), (None, SENT));
}

#[test]
fn a_dead_letter_from_the_future_counts_from_sending() {
    let claim = CLAIM.replace(r#""dead_lettered_at":9"#, r#""dead_lettered_at":99999999999"#);
    let dead_letter = (record(claim), vec![string("Reason", "max_age")]);
    assert_eq!((read(&dead_letter).kind, read(&dead_letter).dead_lettered_at), (DeadLetterKind::Event, SENT));
}

#[test]
fn a_malformed_envelope_still_names_its_event() {
    let dead_letter = dead_lettered(record(body(r#"{"_retry_metadata":7}"#)), &policy(|_| ()));
    let dead_letter = read(&dead_letter);
    assert_eq!(
        (dead_letter.kind, dead_letter.reason),
        (DeadLetterKind::Verbatim, Some(ReasonCode::MalformedEnvelope))
    );
    assert_eq!(
        (dead_letter.function_arn.as_deref(), dead_letter.key.as_deref()),
        (Some(TARGET), Some("r-1"))
    );
    assert_eq!(
        (dead_letter.retries_made, dead_letter.payload.unwrap().get()),
        (None, r#"{"_retry_metadata":7}"#)
    );
}

#[test]
fn a_verbatim_record_is_read_as_a_record() {
    let large = body(&format!("\"{}\"", "x".repeat(SQS_MESSAGE_BYTES - 600)));
    let large = replaced(&large, "too slow", &"x".repeat(SQS_MESSAGE_BYTES - 30 - large.len()));
    let dead_letter = dead_lettered(record(large), &without_retries());
    let dead_letter = read(&dead_letter);
    assert_eq!(
        (dead_letter.kind, dead_letter.reason),
        (DeadLetterKind::Verbatim, Some(ReasonCode::MaxRetries))
    );
    assert_eq!((dead_letter.retries_made, dead_letter.key.as_deref()), (Some(0), Some("r-1")));
}

#[test]
fn a_record_dead_lettered_by_sqs_has_no_reason() {
    let taken = (record(body(&enveloped(3, "7"))), Vec::new());
    let dead_letter = read(&taken);
    assert_eq!(
        (dead_letter.kind, dead_letter.reason, dead_letter.detail.as_deref()),
        (DeadLetterKind::Record, None, None)
    );
    assert_eq!((dead_letter.retries_made, dead_letter.key.as_deref()), (Some(3), Some("r-0")));
    assert_eq!((dead_letter.first_failure, dead_letter.dead_lettered_at), (Some(T0), SENT));
    assert_eq!(dead_letter.error_type.as_deref(), Some("Timeout"));
}

#[test]
fn other_messages_are_unknown() {
    for text in ["", "hello", "{}", r#"{"reason":"because","payload":7}"#] {
        let unknown = (record(text), Vec::new());
        let dead_letter = read(&unknown);
        assert_eq!((dead_letter.kind, dead_letter.reason), (DeadLetterKind::Unknown, None), "{text}");
        let odd = vec![string("Reason", "because")];
        assert_eq!(read(&(record(text), odd)).kind, DeadLetterKind::Unknown, "{text}");
    }
}

#[test]
fn odd_members_of_a_dead_letter_are_left_unknown() {
    let odd = r#"{"reason":"max_age","detail":7,"function_arn":"f","retries_made":"x","initial_timestamp":null,"dead_lettered_at":9,"origin_request_id":null,"error":{"type":"\ud800","message":[]},"payload":null}"#;
    let dead_letter = (record(odd), Vec::new());
    let dead_letter = read(&dead_letter);
    assert_eq!((dead_letter.kind, dead_letter.key.as_deref()), (DeadLetterKind::Event, Some("m-1")));
    assert_eq!((dead_letter.detail, dead_letter.retries_made, dead_letter.first_failure), (None, None, None));
    assert_eq!((dead_letter.error_type.as_deref(), dead_letter.error_message), (Some("\u{fffd}"), None));
    assert_eq!(dead_letter.payload.unwrap().get(), "null");
}

#[test]
fn a_redriven_event_starts_anew() {
    let event = dead_lettered(record(body(&enveloped(2, "1E400"))), &policy(|it| it.max_retries = 2));
    let young_record = (Record { sent: NOW, ..record(body(&enveloped(3, "1E400"))) }, Vec::new());
    for dead_letter in [event, young_record] {
        for (retarget, function) in [(None, TARGET), (Some(ORDERS), ORDERS)] {
            let redriven = on_the_retry_queue(read(&dead_letter).redriven(retarget, None).unwrap());
            let event = FailedEvent::read(&redriven).unwrap();
            assert_eq!((event.retry, event.function_arn.as_ref()), (1, function));
            assert_eq!(event.first_failure, Timestamp::from_secs(redriven.sent.as_secs()));
            assert_eq!((event.payload.get(), event.origin_request_id.as_str()), ("1E400", "r-0"));
            assert!(event.error.is_none());
            let action =
                decide(&redriven, &Policies::from(policy(|_| ())), &Pauses::default(), redriven.sent);
            assert!(matches!(action, Action::Defer { .. }), "{action:?}");
        }
    }
}

#[test]
fn a_redriven_event_may_have_another_payload() {
    let dead_letter = dead_lettered(record(body(&enveloped(2, "1"))), &policy(|it| it.max_retries = 2));
    let payload: Box<RawValue> = serde_json::from_str(r#"{"n":1E400}"#).unwrap();
    let redriven = on_the_retry_queue(read(&dead_letter).redriven(None, Some(&payload)).unwrap());
    let event = FailedEvent::read(&redriven).unwrap();
    assert_eq!((event.payload.get(), event.origin_request_id.as_str()), (r#"{"n":1E400}"#, "r-0"));
}

#[test]
fn copies_of_a_keyless_dead_letter_share_a_key() {
    let nameless =
        r#"{"reason":"max_age","function_arn":"f","dead_lettered_at":9,"origin_request_id":"","payload":1}"#;
    let dead_letter = (record(nameless), Vec::new());
    let copies = [(); 2].map(|()| on_the_retry_queue(read(&dead_letter).redriven(None, None).unwrap()));
    let keys = copies.iter().map(|copy| FailedEvent::read(copy).unwrap().origin_request_id);
    assert!(keys.eq(["m-1", "m-1"]));
}

#[test]
fn a_moved_record_keeps_its_originals_key() {
    let nameless = replaced(&body("7"), r#""requestId":"r-1","#, "");
    let mut moved = record(nameless);
    let attribute = r#"{"message_id":"first-1","sent":1,"first_receive":1,"receives":1,"moves":1}"#;
    moved.restore(attribute).unwrap();
    let attributes = vec![string(MOVED_ATTRIBUTE, attribute)];
    assert_eq!(read(&(moved, attributes)).key.as_deref(), Some("first-1"));
}

proptest! {
    /// A message can be redriven from the dead-letter queue if and only if the handler can read an event from its body.
    #[test]
    fn any_body_is_read(body in "\\PC{0,40}", reason in "max_age|because|") {
        let record = record(body);
        let dead_letter = ReceivedDeadLetter::read(&record, |name| (name == "Reason").then_some(reason.as_str()));
        prop_assert_eq!(dead_letter.redriven(None, None).is_ok(), FailedEvent::read(&record).is_ok());
        prop_assert_eq!(dead_letter.reason.is_some(), reason == "max_age");
    }
}
