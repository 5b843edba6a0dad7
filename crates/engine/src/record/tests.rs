use proptest::prelude::*;

use super::*;

const WRITTEN: &str = r#"{"message_id":"m-0","sent":1000,"first_receive":2000,"receives":3,"moves":1}"#;
const SENT: Timestamp = Timestamp::from_millis(9_000_000);

fn copy() -> Record {
    Record {
        message_id: "m-1".into(),
        receipt_handle: "h-1".into(),
        body: "{}".into(),
        receive_count: 1,
        sent: SENT,
        first_receive: SENT,
        moved: None,
        trace_header: None,
        attributes: Vec::new(),
    }
}

fn restored(attribute: &str) -> Record {
    let mut record = copy();
    record.restore(attribute).unwrap();
    record
}

#[test]
fn a_copy_is_restored_to_its_original() {
    let record = restored(WRITTEN);
    let ms = Timestamp::from_millis;
    assert_eq!((record.first_id(), record.first_sent(), record.first_receive), ("m-0", ms(1_000), ms(2_000)));
    assert_eq!((record.receive_count, record.sent, record.message_id.as_str()), (4, SENT, "m-1"));
    assert_eq!(
        Moved::next(&record, Some(ms(10_000_000)), false),
        r#"{"message_id":"m-0","sent":1000,"first_receive":2000,"receives":4,"moves":2,"not_before":10000000}"#
    );
}

/// The format must not change, because messages with this attribute may be in flight while the handler is being
/// updated.
#[test]
fn format_of_the_attribute_is_fixed() {
    let record = Record { receive_count: 3, sent: Timestamp::from_millis(1_000), ..copy() };
    let record = Record { first_receive: Timestamp::from_millis(2_000), message_id: "m-0".into(), ..record };
    assert_eq!(Moved::next(&record, None, true), WRITTEN);
}

#[test]
fn a_wait_of_many_moves_is_one_receive() {
    let first = Record { receive_count: 1, ..copy() };
    let mut hop = first.clone();
    hop.restore(&Moved::next(&first, None, true)).unwrap();
    for _ in 0..10 {
        let next = Moved::next(&hop, None, true);
        hop = copy();
        hop.restore(&next).unwrap();
        assert_eq!(hop.receive_count, 2);
    }
    let failed = Moved::next(&hop, None, false);
    hop = copy();
    hop.restore(&failed).unwrap();
    assert_eq!((hop.receive_count, hop.moved.unwrap().moves), (3, 12));
}

#[test]
fn a_copy_is_never_on_its_first_receive() {
    let mut uncounted = Record { receive_count: 0, ..copy() };
    uncounted.restore(&WRITTEN.replace(r#""receives":3"#, r#""receives":1"#)).unwrap();
    assert_eq!(uncounted.receive_count, 2);
    let most = restored(&WRITTEN.replace(r#""receives":3"#, r#""receives":4294967295"#));
    assert_eq!(most.receive_count, u32::MAX);
}

#[test]
fn claimed_times_are_bounded_by_sqs() {
    let claims = |sent: u64, first: u64, not_before: u64| {
        let text = format!(
            r#"{{"message_id":"m","sent":{sent},"first_receive":{first},"receives":1,"moves":1,"not_before":{not_before}}}"#
        );
        let record = restored(&text);
        let not_before = record.moved.as_ref().unwrap().not_before.unwrap();
        [record.first_sent(), record.first_receive, not_before].map(Timestamp::as_millis)
    };
    let latest = 9_000_000 + 7_200_000;
    assert_eq!(claims(u64::MAX, u64::MAX, u64::MAX), [9_000_000, 9_000_000, latest]);
    assert_eq!(claims(5_000, 1_000, 0), [5_000, 5_000, 0]);
}

#[test]
fn a_malformed_attribute_changes_nothing() {
    let long = "m".repeat(101);
    for (garbled, problem) in [
        ("", "not a JSON object"),
        ("[]", "not a JSON object"),
        (r#"{"message_id":"m-0"}"#, "missing field `sent` at line 1 column 20"),
        (&WRITTEN.replace("1000", "-1"), "wrong type, expected u64 at line 1 column 29"),
        (&WRITTEN.replace("m-0", ""), "message_id is not an id"),
        (&WRITTEN.replace("m-0", "m 0"), "message_id is not an id"),
        (&WRITTEN.replace("m-0", &long), "message_id is not an id"),
        (&WRITTEN.replace(r#""receives":3"#, r#""receives":0"#), "receives and moves must be at least 1"),
        (&WRITTEN.replace(r#""moves":1"#, r#""moves":0"#), "receives and moves must be at least 1"),
    ] {
        let mut record = copy();
        let error = record.restore(garbled).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the attribute Comeback is unreadable: {problem}"),
            "{garbled}"
        );
        assert_eq!(record, copy(), "{garbled}");
    }
}

#[test]
fn a_later_version_may_add_members() {
    assert_eq!(restored(&WRITTEN.replace('{', r#"{"more":[],"#)), restored(WRITTEN));
}

prop_compose! {
    fn moved_record()(
        message_id in "[!-~]{1,100}",
        times in prop::array::uniform3(0..=9_000_000u64),
        receives in 1..=u32::MAX,
        moves in 1..u32::MAX,
    ) -> Record {
        let [one, other, copied] = times.map(Timestamp::from_millis);
        let (sent, first_receive) = (one.min(other), one.max(other));
        let moved = Moved { message_id, sent, first_receive, receives, moves, not_before: None };
        Record { receive_count: receives, sent: copied, first_receive, moved: Some(moved), ..copy() }
    }
}

proptest! {
    #[test]
    fn a_written_attribute_is_read_back(
        record in moved_record(),
        waits_on in any::<bool>(),
        held in prop::option::of(0..=16_200_000u64),
    ) {
        let not_before = held.map(Timestamp::from_millis);
        let written = Moved::next(&record, not_before, waits_on);
        let moved = record.moved.unwrap();
        let expected = Moved { moves: moved.moves + 1, not_before, ..moved };
        prop_assert_eq!(Moved::read(&written, SENT).unwrap(), expected);
    }
}

const ROOT: &str = "1-5759e988-bd862e3fe1be46a994272793";

fn traced(header: &str) -> Record {
    Record { trace_header: Some(header.into()), ..copy() }
}

#[test]
fn a_header_in_xrays_form_is_read_whole() {
    let long = format!("Root={ROOT};{}", "a".repeat(LONGEST_TRACE - 41));
    assert_eq!(long.len(), LONGEST_TRACE);
    for text in [
        "Root=1-5759e988-bd862e3fe1be46a994272793",
        "Root=1-5759e988-bd862e3fe1be46a994272793;",
        "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=25:ab12cd34:3",
        &long,
    ] {
        let record = traced(text);
        assert_eq!((record.trace(), record.trace_id()), (Some(text), Some(ROOT)));
    }
}

#[test]
fn any_other_header_is_dropped() {
    for text in [
        "",
        "Root=",
        "Sampled=1;Root=1-5759e988-bd862e3fe1be46a994272793",
        "Root=2-5759e988-bd862e3fe1be46a994272793",
        "Root=1-5759e98-bd862e3fe1be46a994272793",
        "Root=1-5759e988-bd862e3fe1be46a99427279",
        "Root=1-5759e988-bd862e3fe1be46a994272793-1",
        "Root=1-5759e98g-bd862e3fe1be46a994272793",
        "Root=1-5759e988-bd862e3fe1be46a994272793 ",
        "Root=1-5759e988-bd862e3fe1be46a994272793,Sampled=1",
        "Root=1-5759e988-bd862e3fe1be46a994272793;\r\nX-Amz-Invocation-Type: RequestResponse",
        "Root=1-5759e988-bd862e3fe1be46a994272793;Größe",
        &format!("Root={ROOT};{}", "a".repeat(LONGEST_TRACE - 40)),
    ] {
        let record = traced(text);
        assert_eq!((record.trace(), record.trace_id()), (None, None), "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_printable_header_or_none(text in prop_oneof![any::<String>(), "Root=1-[0-9a-f]{8}-[0-9a-f]{24}.*"]) {
        let record = traced(&text);
        if let Some(header) = record.trace() {
            prop_assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(record.trace_id().map(str::len), Some(ROOT.len()));
        }
    }
}
