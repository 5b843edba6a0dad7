//! Code shared by the adapters: the sleep function, and the mapping from AWS SDK errors to [`ServiceError`].
//!
//! Senders do their own retries, so an adapter switches off the SDK's retries for each call. A second client without
//! retries would need its own connections.

use std::error::Error;
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_runtime::retries::classifiers::{THROTTLING_ERRORS, TRANSIENT_ERRORS};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

#[cfg(any(feature = "eventbridge", feature = "firehose", feature = "kinesis"))]
use crate::operation::EntryAnswer;
use crate::operation::{ErrorKind, ServiceError};

/// Type of `tokio::time::sleep`, the sleep function that the adapters' senders use.
pub type TokioSleep = fn(Duration) -> tokio::time::Sleep;

/// Sends a call once, with the client's own retries switched off.
macro_rules! send_once {
    ($sdk:ident, $call:expr) => {{
        let once = $sdk::config::retry::RetryConfig::disabled();
        let call = $call.customize().config_override($sdk::Config::builder().retry_config(once));
        call.send().await.map_err(|error| $crate::classify(&error))
    }};
}
pub(crate) use send_once;

/// Converts an AWS SDK error into a [`ServiceError`]. Its kind decides whether the sender retries.
///
/// The kind follows from the service's error code or, if that is unknown, from this table:
///
/// | error | kind |
/// |---|---|
/// | no response | transient, because the request may have arrived |
/// | a request that could not be built | refused |
/// | a request that could not be signed for lack of credentials | denied |
/// | status 429 | throttled |
/// | status 413 | too large |
/// | status 408 or 5xx, or an unreadable success | transient |
/// | any other status, with an unknown code | refused |
/// | any other status, without a code | unknown, because the response may not be the service's |
///
/// [`ServiceError::retry_after`] is the pause that the response requests: `Retry-After` in seconds, or AWS's
/// `x-amz-retry-after` in milliseconds.
///
/// Sources: the codes that AWS SDKs retry (`aws-runtime`), and the services' API references ("Common
/// errors", and the errors of each batch operation).
///
/// ```
/// # use aws_smithy_runtime_api::client::{orchestrator::HttpResponse, result::SdkError};
/// # use aws_smithy_types::error::ErrorMetadata;
/// use comeback_delivery::{ErrorKind, classify};
///
/// # let error: SdkError<ErrorMetadata, HttpResponse> = SdkError::timeout_error("no response within 5 s");
/// let error = classify(&error);
/// assert_eq!(error.kind, ErrorKind::Transient);
/// assert!(error.kind.is_retriable());
/// ```
pub fn classify<E>(error: &SdkError<E, HttpResponse>) -> ServiceError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let metadata = error.as_service_error().map(ProvideErrorMetadata::meta);
    let said = match metadata.and_then(|metadata| Some((metadata.code()?, metadata.message()))) {
        Some((code, message)) if !code.is_empty() => {
            let kind = kind_of_code(code).unwrap_or_else(|| match kind_of_status(error) {
                ErrorKind::Unknown => ErrorKind::Refused,
                kind => kind,
            });
            ServiceError::new(kind, code, message.unwrap_or_default())
        }
        _ => ServiceError::new(kind_without_code(error), "", causes(error)),
    };
    said.with_retry_after(error.raw_response().and_then(retry_after))
}

/// Returns the pause that a response's headers request; a date in `Retry-After` is ignored.
fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let number = |name| response.headers().get(name)?.trim().parse::<u32>().ok();
    let millis = number("x-amz-retry-after").map(|millis| Duration::from_millis(millis.into()));
    millis.or_else(|| number("retry-after").map(|seconds| Duration::from_secs(seconds.into())))
}

/// Builds the answer for one entry from its receipt or error code; an entry with neither counts as unanswered.
#[cfg(any(feature = "eventbridge", feature = "firehose", feature = "kinesis"))]
pub(crate) fn answer<R>(receipt: Option<R>, code: Option<&str>, message: Option<&str>) -> EntryAnswer<R> {
    match (code, receipt) {
        (Some(code), _) => {
            let kind = kind_of_code(code).unwrap_or(ErrorKind::Unknown);
            Err(ServiceError::new(kind, code, message.unwrap_or_default()))
        }
        (None, Some(receipt)) => Ok(receipt),
        (None, None) => Err(ServiceError::no_answer()),
    }
}

fn causes<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> String {
    let status = error.raw_response().map(|response| format!("HTTP {}", response.status().as_u16()));
    status.into_iter().chain(chain(error).map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}

fn kind_without_code<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> ErrorKind {
    match error {
        SdkError::ConstructionFailure(_) => ErrorKind::Refused,
        SdkError::DispatchFailure(failure) if failure.is_user() => ErrorKind::Refused,
        _ if has_no_credentials(error) => ErrorKind::Denied,
        SdkError::ServiceError(_) => kind_of_status(error),
        // The response is missing or unreadable, so the request may have arrived.
        _ => ErrorKind::Transient,
    }
}

/// Returns true if credentials are missing or wrongly configured, but not if the credentials provider timed out.
fn has_no_credentials<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> bool {
    chain(error).any(|error| match error.downcast_ref() {
        Some(CredentialsError::CredentialsNotLoaded(_) | CredentialsError::InvalidConfiguration(_)) => true,
        Some(_) => false,
        None => error.to_string().contains(NO_AUTH_SCHEME),
    })
}

/// Text of the SDK's error for a client without a credentials provider. The error has no public type.
const NO_AUTH_SCHEME: &str = "failed to select an auth scheme";

fn chain<E: Error + 'static>(
    error: &SdkError<E, HttpResponse>,
) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |error| (*error).source())
}

fn kind_of_status<E>(error: &SdkError<E, HttpResponse>) -> ErrorKind {
    match error.raw_response().map(|response| response.status().as_u16()) {
        Some(429) => ErrorKind::Throttled,
        Some(413) => ErrorKind::TooLarge,
        // A success with an unreadable body counts as no answer.
        Some(200..300 | 408 | 500..) => ErrorKind::Transient,
        _ => ErrorKind::Unknown,
    }
}

pub(crate) fn kind_of_code(code: &str) -> Option<ErrorKind> {
    // SQS's older codes come with or without this prefix.
    let code = code.strip_prefix("AWS.SimpleQueueService.").unwrap_or(code);
    let is_of_kms = code.get(..3).is_some_and(|prefix| prefix.eq_ignore_ascii_case("kms"));
    Some(match code {
        // An operator must correct a missing or disabled KMS key; the queue or table itself is not missing.
        _ if is_of_kms && !code.contains("Throttl") => ErrorKind::Denied,
        _ if is_of_kms || THROTTLING_ERRORS.contains(&code) => ErrorKind::Throttled,
        _ if TRANSIENT_ERRORS.contains(&code) => ErrorKind::Transient,
        "InternalError"
        | "InternalException"
        | "InternalFailure"
        | "InternalFailureException"
        | "InternalServerError"
        | "ReplicatedWriteConflictException"
        | "ServiceUnavailable"
        | "ServiceUnavailableException" => ErrorKind::Transient,
        "BatchRequestTooLong"
        | "RequestEntityTooLarge"
        | "RequestEntityTooLargeException"
        | "RequestTooLargeException"
        | "SerializedRequestEntityTooLargeException" => ErrorKind::TooLarge,
        "NonExistentQueue" | "QueueDoesNotExist" | "ResourceNotFoundException" => ErrorKind::Missing,
        // `InvalidKMSResourceException` affects a whole Firehose stream. `OperationDisabledException` affects
        // EventBridge in a whole region.
        "IncompleteSignature"
        | "InvalidClientTokenId"
        | "InvalidKMSResourceException"
        | "OperationDisabledException"
        | "InvalidSignatureException"
        | "MissingAuthenticationToken"
        | "OptInRequired"
        | "SignatureDoesNotMatch"
        | "UnrecognizedClientException" => ErrorKind::Denied,
        "InvalidAccountIdException"
        | "InvalidArgument"
        | "InvalidMessageContents"
        | "MalformedDetail"
        | "RedactionFailure"
        | "ValidationException" => ErrorKind::Refused,
        _ if ["AccessDenied", "ExpiredToken", "NotAuthorized"].iter().any(|it| code.starts_with(it)) => {
            ErrorKind::Denied
        }
        _ => return None,
    })
}

#[cfg(all(test, feature = "eventbridge", feature = "sqs"))]
mod tests {
    //! Tests of the errors that the SDK's SQS client returns for HTTP responses.

    use aws_sdk_sqs::config::{BehaviorVersion, Builder, Credentials, Region};
    use aws_smithy_http_client::test_util::infallible_client_fn;
    use aws_smithy_runtime_api::client::result::ConnectorError;
    use aws_smithy_types::error::ErrorMetadata;

    use super::*;

    type Bare = SdkError<ErrorMetadata, HttpResponse>;

    const BODY: &str = r#"{"message": "no"}"#;

    fn config() -> Builder {
        Builder::new().behavior_version(BehaviorVersion::latest()).region(Region::new("eu-west-1"))
    }

    async fn failed(config: Builder) -> ServiceError {
        let call = aws_sdk_sqs::Client::from_conf(config.build()).send_message().message_body("one");
        let call = call.queue_url("https://sqs.eu-west-1.amazonaws.com/123456789012/orders");
        classify(&call.send().await.expect_err("an error"))
    }

    /// Returns the error for a call that gets this HTTP response.
    async fn answered(status: u16, headers: &[(&'static str, &str)], body: &'static str) -> ServiceError {
        let answer = http::Response::builder().status(status);
        let answer = headers.iter().fold(answer, |answer, (name, value)| answer.header(*name, *value));
        let (answer, _) = answer.body(()).expect("a status and headers").into_parts();
        let once = aws_sdk_sqs::config::retry::RetryConfig::disabled();
        let config = config().credentials_provider(Credentials::for_tests()).retry_config(once);
        let answer = move |_| http::Response::from_parts(answer.clone(), body);
        failed(config.http_client(infallible_client_fn(answer))).await
    }

    async fn coded(status: u16, code: &str) -> ServiceError {
        answered(status, &[("x-amzn-errortype", code)], BODY).await
    }

    /// Error codes of SQS, DynamoDB, Kinesis, Firehose, EventBridge and Lambda, by kind, each with its HTTP status.
    const CODES: [(ErrorKind, &[(u16, &str)]); 6] = [
        (
            ErrorKind::Throttled,
            &[
                (403, "RequestThrottled"),
                (400, "ThrottlingException"),
                (400, "KMS.ThrottlingException"),
                (400, "KMSThrottlingException"),
                (400, "KmsThrottled"),
                (503, "SlowDown"),
                (400, "ProvisionedThroughputExceededException"),
                (400, "RequestLimitExceeded"),
                (400, "LimitExceededException"),
                (429, "TooManyRequestsException"),
                (502, "EC2ThrottledException"),
            ],
        ),
        (
            ErrorKind::Transient,
            &[
                (500, "InternalError"),
                (400, "RequestTimeout"),
                (500, "InternalServerError"),
                (400, "ReplicatedWriteConflictException"),
                (500, "InternalFailureException"),
                (503, "ServiceUnavailableException"),
                (500, "InternalException"),
                (500, "ServiceException"),
                (502, "ENILimitReachedException"),
            ],
        ),
        (
            ErrorKind::Denied,
            &[
                (403, "AccessDeniedException"),
                (403, "AccessDenied"),
                (403, "InvalidClientTokenId"),
                (400, "KMS.AccessDeniedException"),
                (400, "KMSAccessDeniedException"),
                // The KMS key is missing; the stream or function exists.
                (400, "KMSNotFoundException"),
                (502, "KMSDisabledException"),
                (400, "InvalidKMSResourceException"),
                (400, "OperationDisabledException"),
                (400, "UnrecognizedClientException"),
                (400, "ExpiredTokenException"),
            ],
        ),
        (
            ErrorKind::Missing,
            &[
                (400, "AWS.SimpleQueueService.NonExistentQueue"),
                (400, "com.amazonaws.sqs#QueueDoesNotExist"),
                (404, "ResourceNotFoundException"),
            ],
        ),
        (
            ErrorKind::TooLarge,
            &[
                (400, "AWS.SimpleQueueService.BatchRequestTooLong"),
                (413, "RequestEntityTooLargeException"),
                (413, "RequestTooLargeException"),
                (413, "SerializedRequestEntityTooLargeException"),
            ],
        ),
        (
            ErrorKind::Refused,
            &[
                (400, "AWS.SimpleQueueService.EmptyBatchRequest"),
                (400, "ValidationException"),
                (400, "ItemCollectionSizeLimitExceededException"),
                (400, "InvalidArgumentException"),
                (415, "UnsupportedMediaTypeException"),
                (418, "SomethingNewException"),
            ],
        ),
    ];

    #[tokio::test]
    async fn a_code_decides() {
        for (kind, answers) in CODES {
            for &(status, code) in answers {
                assert_eq!(coded(status, code).await.kind, kind, "{status} {code}");
            }
        }
    }

    #[tokio::test]
    async fn without_a_code_the_status_decides() {
        for (status, body, kind) in [
            (429, "", ErrorKind::Throttled),
            (503, "<html>", ErrorKind::Transient),
            (408, "", ErrorKind::Transient),
            // A success with an unreadable body.
            (200, "{", ErrorKind::Transient),
            (413, "", ErrorKind::TooLarge),
            (404, "", ErrorKind::Unknown),
            (400, r#"{"__type": "", "message": "no"}"#, ErrorKind::Unknown),
            (403, "<html>", ErrorKind::Unknown),
        ] {
            let error = answered(status, &[], body).await;
            assert_eq!((error.kind, error.code.as_str()), (kind, ""), "{status} {body}");
        }
    }

    #[test]
    fn unsent_is_refused_and_unanswered_is_transient() {
        let dispatch = |error| Bare::dispatch_failure(error);
        for (error, kind) in [
            (Bare::construction_failure("no region"), ErrorKind::Refused),
            (dispatch(ConnectorError::user("no such scheme".into())), ErrorKind::Refused),
            (dispatch(ConnectorError::io("connection reset".into())), ErrorKind::Transient),
            (dispatch(ConnectorError::timeout("3.1 s are over".into())), ErrorKind::Transient),
            (dispatch(ConnectorError::other("unclear".into(), None)), ErrorKind::Transient),
            (Bare::timeout_error("5 s are over"), ErrorKind::Transient),
        ] {
            assert_eq!(classify(&error).kind, kind, "{error:?}");
        }
    }

    #[tokio::test]
    async fn error_text_is_the_services_or_its_cause() {
        let denied = [("x-amzn-errortype", "AccessDeniedException")];
        for (status, headers, body, text) in [
            (403, &denied[..], r#"{"message": "not you"}"#, "AccessDeniedException: not you"),
            (403, &denied[..], "", "AccessDeniedException: no message"),
            (404, &[], "", "HTTP 404: service error: unhandled error: Error"),
            (
                200,
                &[],
                "{",
                "HTTP 200: service error: unhandled error: failed to parse JSON: \
                 expected object key or end object, found: None",
            ),
        ] {
            assert_eq!(answered(status, headers, body).await.to_string(), text);
        }
        let error = classify(&Bare::dispatch_failure(ConnectorError::io("connection reset".into())));
        assert_eq!(error.to_string(), "dispatch failure: io error: connection reset");
    }

    #[test]
    fn unknown_entry_code_is_retried() {
        for (code, kind) in [
            ("ProvisionedThroughputExceededException", ErrorKind::Throttled),
            ("ThrottlingException", ErrorKind::Throttled),
            ("InternalFailure", ErrorKind::Transient),
            ("ServiceUnavailableException", ErrorKind::Transient),
            ("NotAuthorizedForSourceException", ErrorKind::Denied),
            ("NotAuthorizedForDetailTypeException", ErrorKind::Denied),
            ("MalformedDetail", ErrorKind::Refused),
            ("InvalidArgument", ErrorKind::Refused),
            ("InvalidAccountIdException", ErrorKind::Refused),
            ("RedactionFailure", ErrorKind::Refused),
            ("SomethingNew", ErrorKind::Unknown),
            ("", ErrorKind::Unknown),
        ] {
            assert_eq!(answer(Some(()), Some(code), None), Err(ServiceError::new(kind, code, "")));
        }
    }

    #[tokio::test]
    async fn missing_credentials_are_denied_and_slow_ones_retried() {
        use aws_credential_types::provider::{ProvideCredentials, future};

        #[derive(Debug)]
        struct Failing(fn() -> CredentialsError);

        impl ProvideCredentials for Failing {
            fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
            where
                Self: 'a,
            {
                future::ProvideCredentials::ready(Err((self.0)()))
            }
        }

        let no_request = |_| -> http::Response<&str> { panic!("no request is sent") };
        let config = || config().http_client(infallible_client_fn(no_request));
        let none = failed(config()).await;
        assert_eq!(none.kind, ErrorKind::Denied, "{none}");
        for (failure, expected) in [
            (Failing(|| CredentialsError::not_loaded("none")), ErrorKind::Denied),
            (Failing(|| CredentialsError::invalid_configuration("a typo")), ErrorKind::Denied),
            (Failing(|| CredentialsError::provider_timed_out(Duration::from_secs(5))), ErrorKind::Transient),
            (Failing(|| CredentialsError::provider_error("a 500")), ErrorKind::Transient),
        ] {
            let error = failed(config().credentials_provider(failure)).await;
            assert_eq!(error.kind, expected, "{error}");
        }
    }

    #[tokio::test]
    async fn requested_pause_is_read() {
        for (header, value, millis) in [
            ("retry-after", "7", Some(7_000)),
            ("x-amz-retry-after", "250", Some(250)),
            ("retry-after", "Sun, 22 Nov 2026 08:00:00 GMT", None),
            ("retry-after", "-1", None),
            ("other", "7", None),
        ] {
            let error = answered(503, &[(header, value)], "").await;
            assert_eq!(error.retry_after, millis.map(Duration::from_millis), "{header}: {value}");
        }
    }
}
