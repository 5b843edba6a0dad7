use std::fs;

use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::MessageAttributeValue;
use comeback_engine::{Record, Timestamp};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::Failure;
use crate::dead::export::{Export, Line};
use crate::dead::import::Importing;
use crate::dead::queue::Received;

fn attribute() -> impl Strategy<Value = MessageAttributeValue> {
    let text = ("(String|Number)(\\.[a-z]{1,5})?", "\\PC{1,20}").prop_map(|(of_type, value)| {
        MessageAttributeValue::builder().data_type(of_type).string_value(value).build().unwrap()
    });
    let binary = vec(any::<u8>(), 0..40).prop_map(|bytes| {
        let value = MessageAttributeValue::builder().data_type("Binary").binary_value(Blob::new(bytes));
        value.build().unwrap()
    });
    prop_oneof![text, binary]
}

proptest! {
    #[test]
    fn a_letter_comes_back_as_it_was(
        body in "\\PC{1,60}",
        attributes in btree_map("[A-Za-z]{1,8}", attribute(), 0..10),
        trace_header in proptest::option::of("Root=[0-9a-f-]{1,20}"),
        sent in any::<u64>(),
    ) {
        let record = Record {
            message_id: "m-1".into(),
            receipt_handle: "h-1".into(),
            body: format!("{body}\n\u{2028}\"\\"),
            receive_count: 1,
            sent: Timestamp::from_millis(sent),
            first_receive: Timestamp::from_millis(sent),
            moved: None,
            trace_header: trace_header.clone(),
        };
        let received = Received { record, attributes: attributes.into_iter().collect() };
        let line = serde_json::to_string(&Line::of(&received)).unwrap();
        prop_assert!(!line.contains('\n'), "{}", line);
        let message = serde_json::from_str::<Line>(&line).unwrap().message().unwrap();
        prop_assert_eq!(message.body, received.record.body);
        prop_assert_eq!(message.attributes, received.attributes);
        prop_assert_eq!(message.trace_header, trace_header);
    }
}

const LINE: &str = r#"{"message_id":"m-1","sent_timestamp":1,"attributes":{"Reason":{"type":"String","value":"max_age"}},"body":"{}"}"#;

/// What is said of a file with this text.
fn reading(text: &str) -> Result<Importing, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letters.jsonl");
    fs::write(&path, text).unwrap();
    let folder = folder.path().display().to_string();
    Importing::read(&path).map_err(|failure| failure.to_string().replace(&folder, ""))
}

#[test]
fn a_line_of_the_wire_is_read() {
    let importing = reading(&format!("{LINE}\n")).unwrap();
    assert_eq!((importing.letters, importing.before, importing.cut_off), (1, 0, false));
}

#[test]
fn a_last_line_that_is_cut_off_is_left() {
    for end in 1..LINE.len() {
        let importing = reading(&format!("{LINE}\n{}", &LINE.replace("m-1", "m-2")[..end])).unwrap();
        assert_eq!((importing.letters, importing.cut_off), (1, true));
    }
}

#[test]
fn anything_else_is_refused_with_its_line() {
    let binary = LINE.replace("String", "Binary").replace("max_age", "?");
    for (text, problem) in [
        (format!("{LINE}\n\n"), "line 2 is no letter that `dead discard` wrote: EOF while parsing a value"),
        (
            format!("{LINE}\n{LINE}\n"),
            "line 2 is no letter that `dead discard` wrote: message \"m-1\" is there twice",
        ),
        ("{}\n".into(), "line 1 is no letter that `dead discard` wrote: missing field `message_id`"),
        (
            format!("{binary}\n"),
            "line 1 is no letter that `dead discard` wrote: attribute \"Reason\": its value is not Base64",
        ),
        (
            LINE.replace("\"body\"", "\"Body\"") + "\n",
            "line 1 is no letter that `dead discard` wrote: unknown field `Body`",
        ),
    ] {
        let refused = reading(&text).unwrap_err();
        assert!(refused.starts_with(&format!("/letters.jsonl: {problem}")), "{refused}");
    }
}

#[test]
fn an_export_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letters.jsonl");
    fs::write(&path, "mine").unwrap();
    let Failure::CouldNot(refused) = Export::create(&path).unwrap_err() else { panic!("another exit code") };
    assert!(refused.ends_with("; it is not overwritten: name another file"), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}
