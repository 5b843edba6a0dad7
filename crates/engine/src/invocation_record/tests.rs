//! Read at once or in parts, a record says the same.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const NAMES: [&str; 12] = [
    "requestContext",
    "requestPayload",
    "timestamp",
    "responseContext",
    "responsePayload",
    "functionArn",
    "requestId",
    "condition",
    "statusCode",
    "errorType",
    "errorMessage",
    "other",
];
const VALUES: [&str; 9] =
    ["null", "404", "1E400", "true", r#""Success""#, r#""é\n""#, r#""\ud800""#, r#""""#, "{}"];
/// What a derived struct would accept for an object.
const ARRAYS: [&str; 4] = ["[]", r#"["a"]"#, r#"["a","b"]"#, r#"["a","b","c"]"#];

fn object_of(names: &'static [&'static str], value: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let member = (select(names), value).prop_map(|(name, value)| format!("\"{name}\":{value}"));
    vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(","))).boxed()
}

fn value() -> BoxedStrategy<String> {
    select(&VALUES[..]).prop_map(Into::into).boxed()
}

/// Often whole, and often with odd parts.
fn record() -> impl Strategy<Value = String> {
    let array = || select(&ARRAYS[..]).prop_map(Into::into);
    let inner = || prop_oneof![3 => object_of(&NAMES[5..], value()), 1 => value(), 2 => array()];
    let plain = object_of(&NAMES[6..8], value()).prop_map(|rest| whole(r#"{"functionArn":"a","#, &rest));
    let context = prop_oneof![3 => plain, 1 => inner(), 1 => array()];
    let rest =
        prop_oneof![4 => object_of(&NAMES[2..5], inner().boxed()), 1 => object_of(&NAMES, inner().boxed())];
    (context, value(), rest).prop_map(|(context, payload, rest)| {
        whole(&format!(r#"{{"requestContext":{context},"requestPayload":{payload},"#), &rest)
    })
}

/// An object of these first members and of those of another.
fn whole(first: &str, rest: &str) -> String {
    let rest = &rest[1..];
    if rest == "}" { format!("{}}}", first.trim_end_matches(',')) } else { format!("{first}{rest}") }
}

/// All that a record says.
fn said(wire: Plain<'_>) -> String {
    let Object(RequestContext { function_arn, request_id, condition }) = wire.request_context;
    let status = wire.response_context.map(|Object(context)| context.status_code);
    let error = wire.response_payload.map(|Object(payload)| (payload.error_type, payload.error_message));
    let (payload, timestamp) = (wire.request_payload, wire.timestamp);
    format!("{function_arn} {request_id:?} {condition:?} {payload} {timestamp:?} {status:?} {error:?}")
}

proptest! {
    #[test]
    fn what_is_read_at_once_is_what_its_parts_say(body in record()) {
        // If that fails, the parts are read, whatever they say.
        if let Ok(at_once) = object::<Plain<'_>>(&body) {
            let in_parts = object::<Odd<'_>>(&body).and_then(Odd::in_parts);
            prop_assert_eq!(Ok(said(at_once)), in_parts.map(said), "{}", body);
        }
    }
}

#[test]
fn a_record_that_lambda_writes_is_read_at_once() {
    let body = r#"{"version":"1.0","timestamp":"2026-09-14T15:46:54.145Z","requestContext":{"requestId":"r","functionArn":"arn","condition":"RetriesExhausted","approximateInvokeCount":1},"requestPayload":[1.0],"responseContext":{"statusCode":200},"responsePayload":{"errorType":"Down","errorMessage":"no"}}"#;
    assert!(object::<Plain<'_>>(body).is_ok());
    let throttled = r#"{"requestContext":{"functionArn":"arn"},"requestPayload":null}"#;
    assert!(object::<Plain<'_>>(throttled).is_ok());
}
