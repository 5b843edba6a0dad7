use comeback_engine::{
    Action, Attribute, DeadLetter, FailedEvent, Letter, LetterKind, MOVED_ATTRIBUTE, Pauses, Policy,
    ReasonCode, Record, SQS_MESSAGE_BYTES, Timestamp, decide,
};
use proptest::prelude::*;

use crate::fakes::World;
use crate::support::*;

/// The dead-letter of a message, as the dead-letter queue holds it.
fn dead_lettered(received: Record, policy: &Policy) -> (Record, Vec<Attribute>) {
    let world = World::default();
    world.handle(&[received], policy, NOW);
    let [DeadLetter { body, attributes }] = &world.sent.borrow()[..] else { panic!("not dead-lettered") };
    (Record { message_id: "letter-1".into(), sent: NOW, ..record(body.as_str()) }, attributes.clone())
}

fn read<'l>((record, attributes): &'l (Record, Vec<Attribute>)) -> Letter<'l> {
    let attribute = |name: &str| attributes.iter().find(|it| it.name == name).map(|it| it.value.as_str());
    Letter::read(record, attribute)
}

fn without_retries() -> Policy {
    policy(|settings| settings.max_retries = 0)
}

/// What the handler makes of a body that was sent to the retry queue long after.
fn on_the_retry_queue(body: String) -> Record {
    let sent = after(NOW, 50 * 86_400_000);
    Record { message_id: "redriven-1".into(), sent, first_receive: sent, ..record(body) }
}

#[test]
fn a_dead_letter_tells_its_whole_story() {
    let letter =
        dead_lettered(record(body(&enveloped(2, r#"{"order": 7}"#))), &policy(|it| it.max_retries = 2));
    let letter = read(&letter);
    assert_eq!((letter.kind, letter.reason), (LetterKind::Event, Some(ReasonCode::MaxRetries)));
    assert_eq!(letter.detail.as_deref(), Some("2 retries made; MAX_RETRIES is 2"));
    assert_eq!((letter.function_arn.as_deref(), letter.retries_made), (Some(TARGET), Some(2)));
    assert_eq!((letter.first_failure, letter.given_up), (Some(T0), Timestamp::from_secs(NOW.as_secs())));
    assert_eq!(letter.key.as_deref(), Some("r-0"));
    assert_eq!(letter.error_type.as_deref(), Some("Timeout"));
    assert_eq!(letter.error_message.as_deref(), Some("too slow"));
    assert_eq!(letter.payload.as_ref().unwrap().get(), r#"{"order": 7}"#);
}

#[test]
fn a_body_that_was_not_understood_has_its_reason() {
    let letter = dead_lettered(record("hello"), &policy(|_| ()));
    let letter = read(&letter);
    assert_eq!((letter.kind, letter.reason), (LetterKind::Verbatim, Some(ReasonCode::MalformedRecord)));
    assert_eq!(letter.detail.as_deref(), Some("not a JSON object"));
    assert!(letter.payload.is_none() && letter.key.is_none() && letter.function_arn.is_none());
    assert_eq!(letter.redriven(None).unwrap_err().code, ReasonCode::MalformedRecord);
}

#[test]
fn a_malformed_envelope_still_names_its_event() {
    let letter = dead_lettered(record(body(r#"{"_retry_metadata":7}"#)), &policy(|_| ()));
    let letter = read(&letter);
    assert_eq!((letter.kind, letter.reason), (LetterKind::Verbatim, Some(ReasonCode::MalformedEnvelope)));
    assert_eq!((letter.function_arn.as_deref(), letter.key.as_deref()), (Some(TARGET), Some("r-1")));
    assert_eq!((letter.retries_made, letter.payload.unwrap().get()), (None, r#"{"_retry_metadata":7}"#));
}

#[test]
fn a_body_that_left_no_room_is_read_as_the_record_it_is() {
    let large = body(&format!("\"{}\"", "x".repeat(SQS_MESSAGE_BYTES - 600)));
    let large = replaced(&large, "too slow", &"x".repeat(SQS_MESSAGE_BYTES - 30 - large.len()));
    let letter = dead_lettered(record(large), &without_retries());
    let letter = read(&letter);
    assert_eq!((letter.kind, letter.reason), (LetterKind::Verbatim, Some(ReasonCode::MaxRetries)));
    assert_eq!((letter.retries_made, letter.key.as_deref()), (Some(0), Some("r-1")));
}

#[test]
fn a_record_that_sqs_took_has_no_reason() {
    let taken = (record(body(&enveloped(3, "7"))), Vec::new());
    let letter = read(&taken);
    assert_eq!((letter.kind, letter.reason, letter.detail.as_deref()), (LetterKind::Record, None, None));
    assert_eq!((letter.retries_made, letter.key.as_deref()), (Some(3), Some("r-0")));
    assert_eq!((letter.first_failure, letter.given_up), (Some(T0), SENT));
    assert_eq!(letter.error_type.as_deref(), Some("Timeout"));
}

#[test]
fn anything_else_is_unknown() {
    for text in ["", "hello", "{}", r#"{"reason":"because","payload":7}"#] {
        let unknown = (record(text), Vec::new());
        let letter = read(&unknown);
        assert_eq!((letter.kind, letter.reason), (LetterKind::Unknown, None), "{text}");
        let odd = vec![Attribute { name: "Reason", data_type: "String", value: "because".into() }];
        assert_eq!(read(&(record(text), odd)).kind, LetterKind::Unknown, "{text}");
    }
}

#[test]
fn odd_members_of_a_dead_letter_are_left_unknown() {
    let odd = r#"{"reason":"max_age","detail":7,"function_arn":"f","retries_made":"x","initial_timestamp":null,"dead_lettered_at":9,"origin_request_id":null,"error":{"type":"\ud800","message":[]},"payload":null}"#;
    let letter = (record(odd), Vec::new());
    let letter = read(&letter);
    assert_eq!((letter.kind, letter.key.as_deref()), (LetterKind::Event, Some("m-1")));
    assert_eq!((letter.detail, letter.retries_made, letter.first_failure), (None, None, None));
    assert_eq!((letter.error_type, letter.error_message), (None, None));
    assert_eq!(letter.payload.unwrap().get(), "null");
}

#[test]
fn a_redriven_letter_starts_anew_for_the_same_function_or_another() {
    let event = dead_lettered(record(body(&enveloped(2, "1E400"))), &policy(|it| it.max_retries = 2));
    let young_record = (Record { sent: NOW, ..record(body(&enveloped(3, "1E400"))) }, Vec::new());
    for letter in [event, young_record] {
        for (retarget, function) in [(None, TARGET), (Some(ORDERS), ORDERS)] {
            let redriven = on_the_retry_queue(read(&letter).redriven(retarget).unwrap());
            let event = FailedEvent::read(&redriven).unwrap();
            assert_eq!((event.retry, event.function_arn.as_ref()), (1, function));
            assert_eq!(event.first_failure, Timestamp::from_secs(redriven.sent.as_secs()));
            assert_eq!((event.payload.get(), event.origin_request_id.as_str()), ("1E400", "r-0"));
            assert!(event.error.is_none());
            let action = decide(&redriven, &policy(|_| ()), &Pauses::default(), redriven.sent);
            assert!(matches!(action, Action::Defer { .. }), "{action:?}");
        }
    }
}

#[test]
fn copies_of_a_letter_without_a_key_have_one_key() {
    let nameless =
        r#"{"reason":"max_age","function_arn":"f","dead_lettered_at":9,"origin_request_id":"","payload":1}"#;
    let letter = (record(nameless), Vec::new());
    let copies = [(); 2].map(|()| on_the_retry_queue(read(&letter).redriven(None).unwrap()));
    let keys = copies.iter().map(|copy| FailedEvent::read(copy).unwrap().origin_request_id);
    assert!(keys.eq(["m-1", "m-1"]));
}

#[test]
fn a_moved_record_keeps_the_key_of_the_message_that_it_was() {
    let nameless = replaced(&body("7"), r#""requestId":"r-1","#, "");
    let mut moved = record(nameless);
    let attribute = r#"{"message_id":"first-1","sent":1,"first_receive":1,"receives":1,"moves":1}"#;
    moved.restore(attribute).unwrap();
    let attributes = vec![Attribute { name: MOVED_ATTRIBUTE, data_type: "String", value: attribute.into() }];
    assert_eq!(read(&(moved, attributes)).key.as_deref(), Some("first-1"));
}

proptest! {
    /// Whatever a message holds: a letter is redriven exactly if the handler can read its event.
    #[test]
    fn any_body_is_read(body in "\\PC{0,40}", reason in "max_age|because|") {
        let record = record(body);
        let letter = Letter::read(&record, |name| (name == "Reason").then_some(reason.as_str()));
        prop_assert_eq!(letter.redriven(None).is_ok(), FailedEvent::read(&record).is_ok());
        prop_assert_eq!(letter.reason.is_some(), reason == "max_age");
    }
}
