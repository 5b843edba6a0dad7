//! Tests that messages are parsed correctly, and that payloads are kept byte for byte.

use comeback_engine::{
    Action, Attribute, Envelope, FailedEvent, InvocationRecord, ReasonCode, Record, Style, Timestamp,
};

use crate::account::World;
use crate::support::*;

#[test]
fn reads_a_whole_record() {
    let body = body(r#"{"order": 7}"#);
    let record = InvocationRecord::read(&body).unwrap();
    assert_eq!(record.function_arn, TARGET);
    assert_eq!(record.request_id.as_deref(), Some("r-1"));
    assert_eq!(record.timestamp, Some(after(T0, 145)));
    assert_eq!(record.request_payload.get(), r#"{"order": 7}"#);
    assert!(!record.not_found);
    let error = record.error.unwrap();
    assert_eq!(error.error_type.unwrap().get(), r#""Timeout""#);
    assert_eq!(error.message.unwrap().get(), r#""too slow""#);
}

#[test]
fn needs_only_a_function_and_a_payload() {
    let body = r#"{"requestContext":{"functionArn":"f"},"requestPayload":null}"#;
    let record = InvocationRecord::read(body).unwrap();
    assert_eq!((&*record.function_arn, record.request_payload.get()), ("f", "null"));
    assert_eq!((record.request_id, record.timestamp, record.not_found), (None, None, false));
    assert!(record.error.is_none());
}

#[test]
fn says_what_is_missing() {
    for (body, text) in [
        ("", "not a JSON object"),
        ("null", "not a JSON object"),
        (r#"[{},{"functionArn":"f"},7]"#, "not a JSON object"),
        ("{", "EOF while parsing an object at line 1 column 1"),
        (r#"{"requestPayload":7}"#, "missing field `requestContext` at line 1 column 20"),
        (
            r#"{"requestContext":{"functionArn":"f"}}"#,
            "it has no requestPayload, so the event is lost; Lambda may omit one that is too large",
        ),
        // No event is lost here, so the alarm for lost events must not count these records.
        (
            r#"{"requestContext":{"functionArn":"f","condition":"Success"}}"#,
            "condition is Success; make the retry queue the on-failure destination instead",
        ),
        (
            r#"{"requestContext":{"stage":"prod"},"body":"an event of API Gateway"}"#,
            "missing field `requestPayload` at line 1 column 68",
        ),
        (
            r#"{"requestContext":{},"requestPayload":7}"#,
            "requestContext: missing field `functionArn` at line 1 column 2",
        ),
        (r#"{"requestContext":["f"],"requestPayload":7}"#, "requestContext: not a JSON object"),
        (
            r#"{"requestContext":{"functionArn":null},"requestPayload":7}"#,
            "requestContext: wrong type, expected a string at line 1 column 19",
        ),
        (
            r#"{"requestContext":{"functionArn":"f","condition":"Success"},"requestPayload":7}"#,
            "condition is Success; make the retry queue the on-failure destination instead",
        ),
        (
            r#"{"requestContext":{"functionArn":"f"},"requestPayload":7}}"#,
            "trailing characters at line 1 column 58",
        ),
        (
            r#"{"requestContext":{"functionArn":"f"},"requestPayload":7,"requestPayload":8}"#,
            "duplicate field `requestPayload` at line 1 column 73",
        ),
    ] {
        let reason = InvocationRecord::read(body).unwrap_err();
        assert_eq!(reason.detail, text, "{body}");
        let is_lost = text.starts_with("it has no requestPayload");
        assert_eq!(reason.code == ReasonCode::PayloadLost, is_lost, "{body}");
    }
}

fn json_text(body: &str) -> String {
    serde_json::Value::from(body).to_string()
}

fn mapping_record(batch: &str) -> String {
    format!(
        r#"{{"requestContext":{{"functionArn":"f","condition":"RetryAttemptsExhausted"}},"version":"1.0",{batch}}}"#
    )
}

fn in_sns(message: &str) -> String {
    let message = json_text(message);
    format!(r#"{{"Type":"Notification","TopicArn":"arn:aws:sns:eu-west-1:1:failures","Message":{message}}}"#)
}

fn from_rule(detail: &str) -> String {
    format!(
        r#"{{"version":"0","detail-type":"Lambda Function Invocation Result - Failure","source":"lambda","detail":{detail}}}"#
    )
}

#[test]
fn other_messages_are_named_with_the_fix() {
    let kinesis = mapping_record(
        r#""KinesisBatchInfo":{"shardId":"s","streamArn":"arn:aws:kinesis:eu-west-1:1:stream/orders"}"#,
    );
    let other = "Give that mapping another failure destination";
    for (body, expected) in [
        (
            kinesis.clone(),
            format!("the failure record of a Kinesis mapping, which has no payload by design; its records are in arn:aws:kinesis:eu-west-1:1:stream/orders until they expire (KinesisBatchInfo says which). {other}"),
        ),
        (
            mapping_record(r#""DDBStreamBatchInfo":{"streamArn":"a table"}"#),
            format!("the failure record of a DynamoDB mapping, which has no payload by design; its records are in their source until they expire (DDBStreamBatchInfo says which). {other}"),
        ),
        (
            mapping_record(r#""KafkaBatchInfo":{"eventSourceArn":"arn:aws:kafka:x","recordsInfo":{}}"#),
            format!("the failure record of a Kafka mapping, which has no payload by design; its records are in arn:aws:kafka:x until they expire (KafkaBatchInfo says which). {other}"),
        ),
        (
            in_sns(&body("7")),
            "a failure record in an SNS notification; turn on raw message delivery for the subscription to \
             arn:aws:sns:eu-west-1:1:failures".into(),
        ),
        (
            in_sns("hello"),
            "an SNS notification from arn:aws:sns:eu-west-1:1:failures whose Message is not a failure record: \
             not a JSON object".into(),
        ),
        (
            in_sns(&kinesis).replace("Notification", "SubscriptionConfirmation"),
            "an SNS subscription confirmation for arn:aws:sns:eu-west-1:1:failures, not a failure record"
                .into(),
        ),
        (
            from_rule(&body("7")),
            "a failure record in an EventBridge event; set the InputPath of the rule's target to $.detail".into(),
        ),
        (
            from_rule(r#"{"state":"pending"}"#),
            "an EventBridge event whose detail is not a failure record: missing field `requestContext` at \
             line 1 column 19".into(),
        ),
        (
            r#"{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}"#.into(),
            "s3:TestEvent: a bucket's notifications go to this queue, which is for failure records only".into(),
        ),
        (r#"{"Records":[{"eventSource":"aws:s3"}]}"#.into(), "an event of aws:s3, without a failure record".into()),
        (r#"{"Records":[{"EventSource":"aws:sns"}]}"#.into(), "an event of aws:sns, without a failure record".into()),
        (enveloped(1, "7"), "an event in its envelope, without its failure record".into()),
        (r#"{"Event":7,"Type":"Notification","Records":[{"eventSource":"aws:a b"}]}"#.into(),
            "missing field `requestContext` at line 1 column 71".into()),
    ] {
        assert_eq!(detail(&record(body.clone()), &policy(|_| ()), SENT), expected, "{body}");
    }
    let wrapped = detail(&record(in_sns(&kinesis)), &policy(|_| ()), SENT);
    let named = "not a failure record: the failure record of a Kinesis mapping, which has no";
    assert!(wrapped.contains(named), "{wrapped}");
}

#[test]
fn a_functions_own_dead_letter_is_named() {
    let own =
        |name: &'static str| Attribute { name: name.into(), data_type: "String".into(), value: "200".into() };
    let message =
        |names: [&'static str; 2]| Record { attributes: names.map(own).into(), ..record(r#"{"order":7}"#) };
    let of = |names| detail(&message(names), &policy(|_| ()), SENT);
    assert_eq!(
        of(["RequestID", "ErrorCode"]),
        "an event from a function's own dead-letter queue (DeadLetterConfig), which does not name the \
         function; make the retry queue the function's on-failure destination instead"
    );
    assert_eq!(of(["RequestID", "Other"]), "missing field `requestContext` at line 1 column 11");
}

/// If one member of a record has an unexpected shape, the other members are still read.
#[test]
fn missing_or_odd_members_stay_unknown() {
    let whole = body("7");
    let context =
        r#""responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"}"#;
    let response = r#""responsePayload":{"errorType":"Timeout","errorMessage":"too slow"}"#;
    let timestamp = r#""timestamp":"2026-09-14T15:46:54.145Z""#;
    for (from, to) in [
        (context, r#""responseContext":null"#),
        (context, r#""responseContext":[]"#),
        (context, r#""responseContext":[404]"#),
        (context, r#""responseContext":404"#),
        (context, r#""responseContext":{"statusCode":null}"#),
        (context, r#""responseContext":{"statusCode":500}"#),
        (context, r#""responseContext":{"statusCode":4040}"#),
        (context, r#""responseContext":{"statusCode":"404"}"#),
        (context, r#""responseContext":{"statusCode":404,"statusCode":404}"#),
        (context, r#""other":1"#),
        (response, r#""responsePayload":null"#),
        (response, r#""responsePayload":"text""#),
        (response, r#""responsePayload":["Timeout","too slow"]"#),
        (response, r#""responsePayload":{}"#),
        (response, r#""responsePayload":{"errorType":"A","errorType":"B"}"#),
        (response, r#""responsePayload":{"\ud800":1,"errorType":"A"}"#),
        (response, r#""other":1"#),
        (timestamp, r#""timestamp":1789400814"#),
        (timestamp, r#""timestamp":null"#),
        (timestamp, r#""timestamp":["2026-09-14T15:46:54.145Z"]"#),
        (timestamp, r#""timestamp":"14 September""#),
        (timestamp, r#""timestamp":"\ud800""#),
        (timestamp, r#""other":1"#),
        (r#""requestId":"r-1""#, r#""requestId":["r-1"]"#),
        (r#""condition":"RetriesExhausted""#, r#""condition":{"new":true}"#),
        (r#""approximateInvokeCount":1"#, r#""approximateInvokeCount":"many""#),
        (r#""version":"1.0""#, r#""version":[2,0]"#),
    ] {
        let body = replaced(&whole, from, to);
        let record = InvocationRecord::read(&body).unwrap();
        assert_eq!((&*record.function_arn, record.request_payload.get()), (TARGET, "7"), "{to}");
        assert!(!record.not_found, "{to}");
        assert_eq!(record.timestamp.is_none(), from == timestamp, "{to}");
        assert_eq!(record.error.is_none(), from == response, "{to}");
        let first = Record { receive_count: 1, ..self::record(body.clone()) };
        assert_eq!(decided(&first, &policy(|_| ()), SENT), Seen::Defer(1), "{to}");
    }
}

#[test]
fn reads_half_an_error() {
    let response = r#"{"errorType":"Timeout","errorMessage":"too slow"}"#;
    for (payload, error_type, message) in [
        (r#"{"errorType":"A"}"#, Some(r#""A""#), None),
        (r#"{"errorMessage":"\ud800 half"}"#, None, Some(r#""\ud800 half""#)),
        (r#"{"errorType":null,"errorMessage":{"a": 1}}"#, Some("null"), Some(r#"{"a": 1}"#)),
    ] {
        let body = replaced(&body("7"), response, payload);
        let error = InvocationRecord::read(&body).unwrap().error.unwrap();
        assert_eq!(error.error_type.map(|raw| raw.get()), error_type);
        assert_eq!(error.message.map(|raw| raw.get()), message);
    }
}

#[test]
fn an_escaped_arn_is_the_arn() {
    let body = replaced(&body("7"), "arn:aws", r"\u0061rn:aws");
    assert_eq!(InvocationRecord::read(&body).unwrap().function_arn, TARGET);
    assert_eq!(decided(&record(body), &policy(|_| ()), SENT), Seen::Defer(1));
}

#[test]
fn deeply_nested_payloads_are_payloads() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let record = received_again(body(&deep));
    assert_eq!(decided(&record, &policy(|_| ()), long_after(SENT)), Seen::Reinvoke(1));
}

/// Payloads whose bytes a JSON parser would change.
const VERBATIM: [&str; 16] = [
    "null",
    "7",
    "1.0",
    "-0.0",
    "1E400",
    "123456789012345678901234567890",
    r#""text""#,
    r#""\u0041\/\ud800 \ud83d\ude00 \u0000""#,
    "\"é\u{7f}\u{2028}\"",
    "[]",
    "[ 1 ,\n2\t]",
    "{}",
    "{ }",
    r#"{ "a" : 1 , "a" : 2 }"#,
    r#"{"\ud800":1.10,"_original_payload":{"_retry_metadata":1}}"#,
    r#"{"attempt":1,"nested":{"_retry_metadata":{"attempt":1}}}"#,
];

/// Neither a retry nor a redrive changes the payload's bytes.
#[test]
fn payload_bytes_are_kept_to_the_end() {
    for style in Style::ALL {
        for payload in VERBATIM {
            let policy = policy(|settings| {
                settings.envelope = style;
                settings.max_retries = 3;
            });
            let mut event = payload.to_owned();
            for attempt in 1..=3 {
                let record = received_again(body(&event));
                let Action::Reinvoke { envelope, .. } = decide(&record, &policy, after(SENT, 60_000)) else {
                    panic!("{payload} is not re-invoked")
                };
                assert_eq!(envelope.metadata.attempt, attempt, "{payload}");
                assert_eq!(envelope.original_payload.get(), payload);
                event = envelope.seal(style);
                assert!(style == Style::Inline || event.contains(payload));
            }
            let world = World::default();
            world.handle(&[received_again(body(&event))], &policy, after(SENT, 60_000));
            let dead_letter = world.sent.borrow()[0].body.clone();
            assert!(dead_letter.ends_with(&format!(r#","payload":{payload}}}"#)), "{dead_letter}");
            let redriven = received_again(dead_letter);
            let Action::Reinvoke { envelope, .. } = decide(&redriven, &policy, after(SENT, 60_000)) else {
                panic!("{payload} is not redriven")
            };
            assert_eq!(envelope.original_payload.get(), payload);
        }
    }
}

fn read(record: &Record) -> FailedEvent<'_> {
    FailedEvent::read(record).expect("the test's message is an event")
}

fn reinvoked(record: &Record) -> Envelope<'_> {
    match decide(record, &policy(|_| ()), after(SENT, 60_000)) {
        Action::Reinvoke { envelope, .. } => envelope,
        other => panic!("not re-invoked: {other:?}"),
    }
}

#[test]
fn a_failure_of_attempt_k_is_followed_by_retry_k_plus_one() {
    for payload in [
        enveloped(4, r#"{"order": 7}"#),
        format!(
            r#"{{"order": 7,"_retry_metadata":{{"attempt":4,"initial_timestamp":{},"origin_request_id":"r-0","style":"inline"}}}}"#,
            T0.as_secs()
        ),
    ] {
        let record = received_again(body(&payload));
        assert_eq!((read(&record).retry, read(&record).retries_made()), (5, 4));
        assert_eq!(
            read(&record).request_id.as_deref(),
            Some("r-1"),
            "the attempt that failed, not the first"
        );
        let Envelope { metadata, original_payload } = reinvoked(&record);
        assert_eq!(metadata.attempt, 5);
        assert_eq!(metadata.initial_timestamp, T0.as_secs());
        assert_eq!(metadata.origin_request_id.as_deref(), Some("r-0"));
        assert_eq!(original_payload.get(), r#"{"order": 7}"#);
    }
}

#[test]
fn the_first_available_id_is_the_key() {
    let in_envelope = replaced(&enveloped(1, "7"), r#","origin_request_id":"r-0""#, "");
    let mut cases = vec![(body(&in_envelope), "r-1")];
    for id in ["", r#""requestId":null,"#, r#""requestId":"","#, r#""requestId":7,"#] {
        cases.push((replaced(&body("7"), r#""requestId":"r-1","#, id), "m-1"));
    }
    for id in ["null", "7", r#""""#, r#""\ud800""#] {
        cases.push((replaced(&dead_letter("7"), r#""r-0""#, id), "m-1"));
    }
    for (body, expected) in cases {
        let record = record(body);
        assert_eq!(read(&record).origin_request_id, expected, "{}", record.body);
    }
}

fn first_failure(body: String) -> Timestamp {
    read(&record(body)).first_failure
}

#[test]
fn a_first_failure_is_never_after_the_sending() {
    let timestamp = "2026-09-14T15:46:54.145Z";
    let at = |text| first_failure(replaced(&body("7"), timestamp, text));
    assert_eq!(at("2026-09-14T15:46:50.999Z"), Timestamp::from_secs(T0.as_secs() - 4));
    assert_eq!(at("2026-09-14T15:46:55.000Z"), T0);
    assert_eq!(at("2999-01-01T00:00:00Z"), T0);
    assert_eq!(at("some day"), T0);
    assert_eq!(first_failure(replaced(&body("7"), &format!(r#""timestamp":"{timestamp}","#), "")), T0);
}

#[test]
fn an_envelopes_first_failure_is_never_after_the_sending() {
    let at = |secs: &str| first_failure(body(&replaced(&enveloped(1, "7"), "1789400814", secs)));
    assert_eq!(at("1789400000"), Timestamp::from_secs(1_789_400_000));
    assert_eq!(at("0"), Timestamp::from_secs(0));
    assert_eq!(at("1789400815"), T0);
    assert_eq!(at("18446744073709551615"), T0);
}

fn dead_letter(payload: &str) -> String {
    format!(
        r#"{{"reason":"non_retryable_error","detail":"","function_arn":"{TARGET}","retries_made":9,"initial_timestamp":1,"dead_lettered_at":2,"origin_request_id":"r-0","error":{{"type":"Fatal","message":null}},"payload":{payload}}}"#
    )
}

#[test]
fn a_redriven_dead_letter_starts_anew() {
    let policy = policy(|settings| settings.non_retryable_errors = vec!["Fatal".into()]);
    let first = record(dead_letter(r#"{"n": 1E400}"#));
    assert_eq!(decided(&first, &policy, SENT), Seen::Defer(1));
    let again = Record { receive_count: 2, ..first };
    let Envelope { metadata, original_payload } = reinvoked(&again);
    assert_eq!(metadata.attempt, 1);
    assert_eq!(metadata.initial_timestamp, SENT.as_secs());
    assert_eq!(metadata.origin_request_id.as_deref(), Some("r-0"));
    assert_eq!(original_payload.get(), r#"{"n": 1E400}"#);
    let elsewhere = record(replaced(&dead_letter("7"), "orders", "payments"));
    assert_eq!(decided(&elsewhere, &policy, SENT), Seen::DeadLetter("target_not_allowed"));
}

#[test]
fn a_redriven_payload_is_never_enveloped_twice() {
    let written_by_hand = received_again(dead_letter(&enveloped(3, "7")));
    assert_eq!(reinvoked(&written_by_hand).metadata.attempt, 1);
    assert_eq!(reinvoked(&written_by_hand).original_payload.get(), "7");
    assert_eq!(read(&written_by_hand).request_id, None, "no attempt of its new life has failed");
    let malformed = record(dead_letter(r#"{"_retry_metadata":{}}"#));
    assert_eq!(decided(&malformed, &policy(|_| ()), SENT), Seen::DeadLetter("malformed_envelope"));
}

/// SQS itself dead-lettered the record, and an operator moved it back to the retry queue.
#[test]
fn a_redriven_record_starts_anew() {
    let policy = policy(|settings| settings.non_retryable_errors = vec!["Timeout".into()]);
    let written = Timestamp::from_millis(T0.as_millis() + 145);
    let redriven = |payload: &str, millis| {
        let sent = after(written, millis);
        Record { sent, first_receive: sent, ..record(body(payload)) }
    };
    let payload = enveloped(9, r#"{"n": 1E400}"#);
    let in_time = redriven(&payload, 86_400_000);
    assert_eq!(decided(&in_time, &policy, in_time.sent), Seen::DeadLetter("non_retryable_error"));
    let late = redriven(&payload, 86_400_001);
    assert_eq!(decided(&late, &policy, late.sent), Seen::Defer(1));
    let event = read(&late);
    assert_eq!((event.retry, event.first_failure.as_secs()), (1, late.sent.as_secs()));
    assert_eq!((event.origin_request_id.as_str(), event.payload.get()), ("r-0", r#"{"n": 1E400}"#));
    assert_eq!(read(&redriven("7", 86_400_001)).origin_request_id, "r-1");
    let deleted = replaced(&late.body, r#""statusCode":200"#, r#""statusCode":404"#);
    let deleted = Record { body: deleted, ..late.clone() };
    assert_eq!(decided(&deleted, &policy, late.sent), Seen::Defer(1), "the function may be back");
    let malformed = redriven(r#"{"_retry_metadata":1}"#, 86_400_001);
    assert_eq!(decided(&malformed, &policy, malformed.sent), Seen::DeadLetter("malformed_envelope"));
    let elsewhere = Record { body: replaced(&late.body, "orders", "payments"), ..late };
    assert_eq!(decided(&elsewhere, &policy, elsewhere.sent), Seen::DeadLetter("target_not_allowed"));
}

#[test]
fn only_our_own_dead_letters_are_redriven() {
    let dead_letter = dead_letter("7");
    for other in [
        replaced(&dead_letter, "non_retryable_error", "because"),
        replaced(&dead_letter, r#""dead_lettered_at":2,"#, ""),
        replaced(&dead_letter, r#""origin_request_id":"r-0","#, ""),
        replaced(&dead_letter, r#""function_arn""#, r#""function""#),
        replaced(&dead_letter, r#","payload":7"#, ""),
        format!("[{dead_letter}]"),
    ] {
        assert_eq!(decided(&record(&*other), &policy(|_| ()), SENT), Seen::DeadLetter("malformed_record"));
    }
}
