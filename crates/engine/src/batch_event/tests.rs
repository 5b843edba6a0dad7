use super::*;

const WHOLE: &str = r#"{"messageId": "m-1", "receiptHandle": "h-1", "body": "{}",
    "attributes": {"ApproximateReceiveCount": "2", "SentTimestamp": "1789400814145",
                   "ApproximateFirstReceiveTimestamp": "1789400814200", "SenderId": "AIDA"},
    "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:retries"}"#;

fn with(from: &str, to: &str) -> String {
    assert!(WHOLE.contains(from), "{from}");
    WHOLE.replace(from, to)
}

fn read(messages: &[&str]) -> BatchEvent {
    BatchEvent::read(&format!(r#"{{"Records": [{}]}}"#, messages.join(", "))).unwrap()
}

fn mate() -> String {
    with("m-1", "m-2")
}

#[test]
fn reads_what_sqs_writes() {
    let record = Record {
        message_id: "m-1".into(),
        receipt_handle: "h-1".into(),
        body: "{}".into(),
        receive_count: 2,
        sent: Timestamp::from_millis(1_789_400_814_145),
        first_receive: Timestamp::from_millis(1_789_400_814_200),
        moved: None,
        trace_header: None,
        attributes: Vec::new(),
    };
    let queue_arn = Some("arn:aws:sqs:eu-west-1:123456789012:retries".into());
    let batch = read(&[WHOLE]);
    assert_eq!(batch, BatchEvent { records: vec![record], queue_arn, ..BatchEvent::default() });
    assert!(!batch.lacks_an_id());
}

#[test]
fn a_moved_message_is_restored() {
    let moved = r#""messageAttributes": {"Comeback": {"stringValue":
        "{\"message_id\":\"m-0\",\"sent\":7000,\"first_receive\":8000,\"receives\":3,\"moves\":1}",
        "stringListValues": [], "binaryListValues": [], "dataType": "String"}}, "body""#;
    let header = r#""SenderId": "AIDA", "AWSTraceHeader": "Root=1-5759e988-bd862e3fe1be46a994272793""#;
    let batch = read(&[&with(r#""body""#, moved).replace(r#""SenderId": "AIDA""#, header)]);
    let record = &batch.records[0];
    assert_eq!((record.message_id.as_str(), record.first_id()), ("m-1", "m-0"));
    assert_eq!((record.receive_count, record.first_receive), (5, Timestamp::from_secs(8)));
    assert_eq!(record.trace_header.as_deref(), Some("Root=1-5759e988-bd862e3fe1be46a994272793"));
    assert_eq!(batch.garbled, []);
}

#[test]
fn only_sendable_attributes_are_read() {
    let attributes = r#""messageAttributes": {
        "RequestID": {"stringValue": "r-1", "dataType": "String", "stringListValues": []},
        "ErrorCode": {"stringValue": "200", "dataType": "Number.int"},
        "Blob": {"binaryValue": "AAEC", "dataType": "Binary"},
        "Empty": {"stringValue": "", "dataType": "String"}, "Typeless": {"stringValue": "x"},
        "Odd": {"stringValue": "x", "dataType": "Text"}, "Textless": {"stringValue": "x", "dataType": "Binary"},
        "Number": 7, "Comeback": {"stringValue": "{}", "dataType": "String"}}, "body""#;
    let batch = read(&[&with(r#""body""#, attributes)]);
    let read = batch.records[0].attributes.iter().map(|it| (&*it.name, &*it.data_type, it.value.as_str()));
    let expected =
        [("Blob", "Binary", "AAEC"), ("ErrorCode", "Number.int", "200"), ("RequestID", "String", "r-1")];
    assert_eq!(read.collect::<Vec<_>>(), expected);
}

#[test]
fn a_garbled_attribute_is_named_and_ignored() {
    for attribute in [r#"{"stringValue": "{}", "dataType": "String"}"#, r#"{"binaryValue": "e30="}"#, "7"] {
        let garbled = format!(r#""messageAttributes": {{"Comeback": {attribute}}}, "body""#);
        let batch = read(&[&mate(), &with(r#""body""#, &garbled)]);
        assert_eq!(batch.records, read(&[&mate(), WHOLE]).records, "{attribute}");
        let [named] = batch.garbled.as_slice() else { panic!("{attribute}: {:?}", batch.garbled) };
        let text = named.to_string();
        assert!(text.starts_with(r#"message "m-1": the attribute Comeback is unreadable: "#), "{text}");
        assert!(text.ends_with("; it counts as a new message"), "{text}");
    }
}

#[test]
fn unneeded_members_may_have_any_shape() {
    let attributes = r#"{"a": {"stringListValues": null, "dataType": 7}, "Comeback": null}"#;
    let odd = format!(r#""messageAttributes": {attributes}, "awsRegion": 7, "#);
    let odd = with(r#""body""#, &format!(r#"{odd} "body""#)).replace(r#""AIDA""#, r#"["\ud800"]"#);
    assert_eq!(read(&[&odd]), read(&[WHOLE]));
}

#[test]
fn an_incomplete_message_is_kept_by_its_id() {
    let huge = with(r#"Count": "2""#, r#"Count": "4294967296""#);
    assert_eq!(read(&[&huge]).records[0].receive_count, u32::MAX);
    for (from, to, what) in [
        (r#""receiptHandle": "h-1","#, "", "receiptHandle"),
        (r#""body": "{}","#, "", "body"),
        (r#""ApproximateReceiveCount": "2","#, "", "ApproximateReceiveCount"),
        (r#""SentTimestamp": "1789400814145","#, "", "SentTimestamp"),
        (r#""ApproximateFirstReceiveTimestamp": "1789400814200","#, "", "ApproximateFirstReceiveTimestamp"),
        (r#""h-1""#, "7", "receiptHandle"),
        (r#""h-1""#, "null", "receiptHandle"),
        (r#""{}""#, "7", "body"),
        (r#""{}""#, "null", "body"),
        (r#""{}""#, "{}", "body"),
        (r#""{}""#, r#""\ud800""#, "body"),
        (r#""2""#, "2", "ApproximateReceiveCount"),
        (r#""2""#, "null", "ApproximateReceiveCount"),
        (r#""2""#, r#""-2""#, "ApproximateReceiveCount"),
        (r#""2""#, r#""two""#, "ApproximateReceiveCount"),
        (r#""1789400814145""#, "1789400814145", "SentTimestamp"),
        (r#""1789400814145""#, r#""soon""#, "SentTimestamp"),
        (r#""1789400814145""#, r#""18446744073709551616""#, "SentTimestamp"),
        (r#""1789400814200""#, r#"["1789400814200"]"#, "ApproximateFirstReceiveTimestamp"),
        (r#""attributes": {"#, r#""attributes": null, "ignored": {"#, "ApproximateReceiveCount"),
        (r#""attributes": {"#, r#""attributes": "none", "ignored": {"#, "ApproximateReceiveCount"),
        (r#""attributes": {"#, r#""attributes": [], "ignored": {"#, "ApproximateReceiveCount"),
    ] {
        let batch = read(&[&with(from, to), &mate()]);
        assert_eq!(batch.incomplete, [IncompleteMessage { message_id: "m-1".into(), what }], "{to}");
        assert_eq!(batch.records, read(&[&mate()]).records);
        assert!(!batch.lacks_an_id());
    }
}

#[test]
fn a_message_may_lack_an_id() {
    let id = r#""messageId": "m-1""#;
    let nameless = |to| with(id, to);
    for message in [
        with(r#""messageId": "m-1", "#, ""),
        nameless(r#""messageId": """#),
        nameless(r#""messageId": null"#),
        nameless(r#""messageId": 7"#),
        nameless(r#""messageId": "\ud800""#),
        nameless(r#""messageId": "m-1", "messageId": "m-1""#),
        "null".into(),
        "7".into(),
        r#""m-1""#.into(),
        r#"["m-1", "h-1"]"#.into(),
        "{}".into(),
    ] {
        let batch = read(&[&mate(), &message]);
        assert_eq!(batch.message_ids().collect::<Vec<_>>(), ["m-2", ""], "{message}");
        assert!(batch.lacks_an_id(), "{message}");
    }
}

#[test]
fn the_first_named_queue_counts() {
    let arn = r#""eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:retries""#;
    let other = |to: &str| with(arn, &format!(r#""eventSourceARN": {to}"#));
    let batch = read(&["7", &other("7"), &other("null"), &other(r#""first""#), &other(r#""second""#)]);
    assert_eq!(batch.queue_arn.as_deref(), Some("first"));
    assert_eq!(read(&[]).queue_arn, None);
}

#[test]
fn malformed_events_are_refused() {
    for (event, problem) in [
        ("", "not a JSON object"),
        ("7", "not a JSON object"),
        (r#"[{"Records": []}]"#, "not a JSON object"),
        ("{", "EOF while parsing an object at line 1 column 1"),
        ("{}", "missing field `Records` at line 1 column 2"),
        (r#"{"Records": null}"#, "wrong type, expected a sequence at line 1 column 16"),
        (r#"{"Records": {}}"#, "wrong type, expected a sequence at line 1 column 12"),
    ] {
        let error = BatchEvent::read(event).unwrap_err().to_string();
        assert_eq!(error, format!("not an SQS event: {problem}"), "{event}");
    }
}
