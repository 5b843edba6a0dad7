use comeback_engine::{Action, InvocationRecord, Record, SQS_MESSAGE_BYTES, Style, Timestamp};

use crate::fakes::World;
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
        (r#"{"requestContext":{"functionArn":"f"}}"#, "missing field `requestPayload` at line 1 column 38"),
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
            "condition is Success: attach the retry queue as on-failure destination",
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
        assert_eq!(InvocationRecord::read(body).unwrap_err(), text, "{body}");
    }
}

/// One member of a record in another shape: what is still known of the rest.
#[test]
fn leaves_unknown_what_is_missing_or_of_another_shape() {
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
fn reads_the_half_of_an_error_that_is_there() {
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
fn knows_a_deleted_function() {
    let body = format!(
        r#"{{"requestContext":{{"functionArn":"{TARGET}"}},"requestPayload":7,"responseContext":{{"statusCode":404}}}}"#
    );
    assert!(InvocationRecord::read(&body).unwrap().not_found);
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

/// What a parser would make something else of.
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

/// From the record into its envelope, out of it again on the next failure, and so on to the
/// dead-letter and a redrive of that: the payload's bytes never change.
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
            let letter = world.sent.borrow()[0].body.clone();
            assert!(letter.ends_with(&format!(r#","payload":{payload}}}"#)), "{letter}");
            let redriven = received_again(letter);
            let Action::Reinvoke { envelope, .. } = decide(&redriven, &policy, after(SENT, 60_000)) else {
                panic!("{payload} is not redriven")
            };
            assert_eq!(envelope.original_payload.get(), payload);
        }
    }
}

#[test]
fn a_body_of_a_mebibyte_is_read() {
    let payload = format!("\"{}\"", "x".repeat(SQS_MESSAGE_BYTES - body("\"\"").len()));
    let body = body(&payload);
    assert_eq!(body.len(), SQS_MESSAGE_BYTES);
    assert_eq!(decided(&record(body), &policy(|_| ()), Timestamp::from_secs(0)), Seen::Defer(1));
}
