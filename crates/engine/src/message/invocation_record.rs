use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Timestamp;
use crate::message::json::{Object, non_empty_string, object, present, text};

/// What Lambda writes to an asynchronous function's failure destination.
///
/// Lenient: only `requestContext.functionArn` and `requestPayload` must be there. Whatever else is
/// missing or of another shape is left unknown, never an error. Nothing is copied.
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
    /// What the function failed with; unknown if it was throttled or never ran.
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

/// A record, and in what form its three objects are read.
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

/// As Lambda writes it: all is read at once.
type Plain<'a> =
    Wire<'a, Object<RequestContext<'a>>, Object<ResponseContext<'a>>, Object<ResponsePayload<'a>>>;
/// Any other: each part is read by itself.
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
    /// Whatever is wrong with what the function answered leaves only that unknown.
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
    /// Says what is missing if the body is no invocation record; or that it is the record of a
    /// success, as a queue attached as on-success destination gets it. Retrying that would run a
    /// function again that has done its work.
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
