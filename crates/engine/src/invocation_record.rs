use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Timestamp;
use crate::json::{Object, non_empty_string, object, present, text};

/// Lambda's record of a failed asynchronous invocation, as it writes it to the failure destination.
///
/// Lenient: only `requestContext.functionArn` and `requestPayload` are required. Anything else that is missing or has
/// another shape is left unknown. Nothing is copied.
#[derive(Clone, Debug)]
pub struct InvocationRecord<'a> {
    /// The function that failed, with its qualifier.
    pub function_arn: Cow<'a, str>,
    /// The id of the invocation that failed.
    pub request_id: Option<String>,
    /// When the record was written.
    pub timestamp: Option<Timestamp>,
    /// The event, byte for byte; in its envelope if this was a retry.
    pub request_payload: &'a RawValue,
    /// The target does not exist (any more).
    pub not_found: bool,
    /// The function's error; unknown if it was throttled or never ran.
    pub error: Option<InvocationError<'a>>,
}

/// The members of an error's `responsePayload`, as they stand.
#[derive(Clone, Copy, Debug)]
pub struct InvocationError<'a> {
    /// `errorType`.
    pub error_type: Option<&'a RawValue>,
    /// `errorMessage`.
    pub message: Option<&'a RawValue>,
}

/// A record, generic over the form in which its three objects are read.
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

/// As Lambda writes it: read at once.
type Plain<'a> =
    Wire<'a, Object<RequestContext<'a>>, Object<ResponseContext<'a>>, Object<ResponsePayload<'a>>>;
/// Anything else: each part is read by itself.
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponsePayload<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    error_type: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error_message: Option<&'a RawValue>,
}

impl<'a> Odd<'a> {
    /// An odd answer of the function leaves only that answer unknown.
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

impl<'a> InvocationRecord<'a> {
    /// Reads a message's body.
    ///
    /// # Errors
    ///
    /// The body is not an invocation record: what is missing. Or it is the record of a success, from a queue attached as
    /// on-success destination: retrying it would run a function again that has done its work.
    pub fn read(body: &'a str) -> Result<Self, String> {
        let wire = match object::<Plain<'a>>(body) {
            Ok(plain) => plain,
            Err(_) => object::<Odd<'a>>(body)?.in_parts()?,
        };
        let Object(context) = wire.request_context;
        if context.condition.is_some_and(|condition| condition.get() == r#""Success""#) {
            return Err("condition is Success: attach the retry queue as on-failure destination".into());
        }
        let not_found =
            wire.response_context.is_some_and(|Object(context)| context.status_code.get() == "404");
        let error = wire
            .response_payload
            .map(|Object(payload)| InvocationError {
                error_type: payload.error_type,
                message: payload.error_message,
            })
            .filter(|error| error.error_type.is_some() || error.message.is_some());
        Ok(Self {
            function_arn: context.function_arn,
            request_id: context.request_id.and_then(non_empty_string),
            timestamp: wire.timestamp.and_then(text).and_then(|time| Timestamp::from_rfc3339(&time)),
            request_payload: wire.request_payload,
            not_found,
            error,
        })
    }
}

#[cfg(test)]
mod tests;
