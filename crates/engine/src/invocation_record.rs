//! Parses Lambda's record of a failed asynchronous invocation.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dead_letter::{InvocationError, Reason, ReasonCode};
use crate::json::{Object, id, lossy_text, object, present};
use crate::time::Timestamp;

/// Lambda's record of a failed asynchronous invocation.
///
/// Only `requestContext.functionArn` and `requestPayload` are required. Any other member that is missing or malformed
/// is `None`.
#[derive(Clone, Debug)]
pub struct InvocationRecord<'a> {
    /// The ARN of the function that failed, with its qualifier.
    pub function_arn: Cow<'a, str>,
    /// The id of the invocation that failed; `None` if it is missing.
    pub request_id: Option<String>,
    /// When Lambda wrote the record; `None` if the time is missing or unreadable.
    pub timestamp: Option<Timestamp>,
    /// The event that the function was invoked with, byte for byte. On a retry, this includes the envelope.
    pub request_payload: &'a RawValue,
    /// True if the record says that the target function does not exist.
    pub not_found: bool,
    /// The error that the function returned; `None` if the function was throttled or never ran.
    pub error: Option<InvocationError<'a>>,
}

/// The JSON structure of a record.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a, Context, Response, Payload> {
    request_context: Context,
    #[serde(borrow)]
    request_payload: &'a RawValue,
    #[serde(borrow, default, deserialize_with = "present")]
    timestamp: Option<&'a RawValue>,
    #[serde(default = "Option::default")]
    response_context: Option<Response>,
    #[serde(default = "Option::default")]
    response_payload: Option<Payload>,
}

/// A record in the shape that Lambda writes, parsed in one pass.
type Plain<'a> =
    Wire<'a, Object<RequestContext<'a>>, Object<ResponseContext<'a>>, Object<InvocationError<'a>>>;
/// A record that does not have Lambda's usual shape, with its nested objects as raw JSON.
type Odd<'a> = Wire<'a, &'a RawValue, &'a RawValue, &'a RawValue>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestContext<'a> {
    #[serde(borrow)]
    function_arn: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "present")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    condition: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseContext<'a> {
    #[serde(borrow)]
    status_code: &'a RawValue,
}

impl<'a> Odd<'a> {
    /// Parses the record's nested objects one by one; a malformed response becomes `None`.
    fn in_parts(self) -> Result<Plain<'a>, String> {
        let context =
            object(self.request_context.get()).map_err(|error| format!("requestContext: {error}"))?;
        Ok(Wire {
            request_context: Object(context),
            request_payload: self.request_payload,
            timestamp: self.timestamp,
            response_context: self.response_context.and_then(|raw| object(raw.get()).ok()).map(Object),
            response_payload: self.response_payload.and_then(|raw| object(raw.get()).ok()).map(Object),
        })
    }
}

const ON_SUCCESS: &str = "condition is Success; make the retry queue the on-failure destination instead";
const LOST: &str = "it has no requestPayload, so the event is lost; Lambda may omit one that is too large";

fn why_unreadable(body: &str, error: String) -> Reason {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct WithoutPayload<'a> {
        #[serde(borrow)]
        request_context: Object<RequestContext<'a>>,
    }
    if !error.starts_with("missing field `requestPayload`") {
        return malformed(error);
    }
    match object::<WithoutPayload<'_>>(body) {
        Ok(WithoutPayload { request_context: Object(context) }) if context.is_of_a_success() => {
            malformed(ON_SUCCESS)
        }
        // The alarm *lost payload* counts this reason, so only a failure record without a payload may have it.
        Ok(_) => Reason::new(ReasonCode::PayloadLost, LOST),
        Err(_) => malformed(error),
    }
}

fn malformed(detail: impl Into<String>) -> Reason {
    Reason::new(ReasonCode::MalformedRecord, detail)
}

impl RequestContext<'_> {
    fn is_of_a_success(&self) -> bool {
        self.condition.is_some_and(|condition| condition.get() == r#""Success""#)
    }
}

impl<'a> InvocationRecord<'a> {
    /// Parses the body of a message as an invocation record.
    ///
    /// # Errors
    ///
    /// Fails if the body is not an invocation record, or is the record of a successful invocation.
    pub fn read(body: &'a str) -> Result<Self, Reason> {
        let wire = match object::<Plain<'a>>(body) {
            Ok(plain) => plain,
            Err(_) => {
                let odd = object::<Odd<'a>>(body).map_err(|error| why_unreadable(body, error))?;
                odd.in_parts().map_err(malformed)?
            }
        };
        let Object(context) = wire.request_context;
        if context.is_of_a_success() {
            return Err(malformed(ON_SUCCESS));
        }
        let not_found =
            wire.response_context.is_some_and(|Object(context)| context.status_code.get() == "404");
        let error = wire
            .response_payload
            .map(|Object(error)| error)
            .filter(|error| error.error_type.is_some() || error.message.is_some());
        Ok(Self {
            function_arn: context.function_arn,
            request_id: context.request_id.and_then(id),
            timestamp: wire.timestamp.and_then(lossy_text).and_then(|time| Timestamp::from_rfc3339(&time)),
            request_payload: wire.request_payload,
            not_found,
            error,
        })
    }
}

#[cfg(test)]
mod tests {
    //! Tests that a record gives the same result whether it is parsed in one pass or in parts.

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
    /// JSON arrays that a derived `Deserialize` would accept in place of an object.
    const ARRAYS: [&str; 4] = ["[]", r#"["a"]"#, r#"["a","b"]"#, r#"["a","b","c"]"#];

    fn object_of(names: &'static [&'static str], value: BoxedStrategy<String>) -> BoxedStrategy<String> {
        let member = (select(names), value).prop_map(|(name, value)| format!("\"{name}\":{value}"));
        vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(","))).boxed()
    }

    fn value() -> BoxedStrategy<String> {
        select(&VALUES[..]).prop_map(Into::into).boxed()
    }

    fn record() -> impl Strategy<Value = String> {
        let array = || select(&ARRAYS[..]).prop_map(Into::into);
        let inner = || prop_oneof![3 => object_of(&NAMES[5..], value()), 1 => value(), 2 => array()];
        let plain = object_of(&NAMES[6..8], value()).prop_map(|rest| whole(r#"{"functionArn":"a","#, &rest));
        let context = prop_oneof![3 => plain, 1 => inner(), 1 => array()];
        let rest = prop_oneof![4 => object_of(&NAMES[2..5], inner().boxed()), 1 => object_of(&NAMES, inner().boxed())];
        (context, value(), rest).prop_map(|(context, payload, rest)| {
            whole(&format!(r#"{{"requestContext":{context},"requestPayload":{payload},"#), &rest)
        })
    }

    /// Joins two JSON objects into one: `first`, which lacks its closing brace, and `rest`.
    fn whole(first: &str, rest: &str) -> String {
        let rest = &rest[1..];
        if rest == "}" { format!("{}}}", first.trim_end_matches(',')) } else { format!("{first}{rest}") }
    }

    fn said(wire: Plain<'_>) -> String {
        let Object(RequestContext { function_arn, request_id, condition }) = wire.request_context;
        let status = wire.response_context.map(|Object(context)| context.status_code);
        let error = wire.response_payload.map(|Object(payload)| (payload.error_type, payload.message));
        let (payload, timestamp) = (wire.request_payload, wire.timestamp);
        format!("{function_arn} {request_id:?} {condition:?} {payload} {timestamp:?} {status:?} {error:?}")
    }

    proptest! {
        #[test]
        fn both_ways_of_reading_agree(body in record()) {
            // A record that cannot be parsed in one pass is always parsed in parts, so there is nothing to compare.
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
}
