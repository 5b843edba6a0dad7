//! What the adapters share: how their senders wait, and from an AWS SDK error to a [`ServiceError`].
//!
//! An adapter sends through the caller's own client, and switches the SDK's retries off call by call: a client made
//! anew, with retries off, would open connections of its own.

use std::error::Error;
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_runtime::retries::classifiers::{THROTTLING_ERRORS, TRANSIENT_ERRORS};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

#[cfg(any(feature = "eventbridge", feature = "firehose", feature = "kinesis"))]
use crate::Answer;
use crate::{ErrorKind, ServiceError};

/// How the adapters' senders wait.
pub type TokioSleep = fn(Duration) -> tokio::time::Sleep;

/// Classifies an AWS SDK error.
///
/// The service's code decides if it is known, otherwise the HTTP status. Without an answer the request
/// may have arrived, and the error is transient; a request that could not be built is refused, and one that
/// could not be signed, because there are no credentials, is denied. A 4xx
/// with an unknown code is refused. A 4xx without a code comes from something between here and the
/// service and is unknown, except a 413: the request is too large, whoever says so.
///
/// The pause that the answer asks for (`Retry-After` in seconds, or AWS's `x-amz-retry-after` in milliseconds) is in
/// [`ServiceError::retry_after`].
///
/// Sources: the codes that AWS SDKs retry (`aws-runtime`), and the services' API references ("Common
/// errors", and the errors of each batch operation).
///
/// ```
/// # use aws_smithy_runtime_api::client::{orchestrator::HttpResponse, result::SdkError};
/// # use aws_smithy_types::error::ErrorMetadata;
/// use comeback_delivery::{ErrorKind, classify};
///
/// # let error: SdkError<ErrorMetadata, HttpResponse> = SdkError::timeout_error("5 s are over");
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

/// A date is ignored, because there is no clock to compare it with.
fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let number = |name| response.headers().get(name)?.trim().parse::<u32>().ok();
    let millis = number("x-amz-retry-after").map(|millis| Duration::from_millis(millis.into()));
    millis.or_else(|| number("retry-after").map(|seconds| Duration::from_secs(seconds.into())))
}

/// The error of one entry of a call that was answered. An unknown code is retried.
#[cfg(any(feature = "eventbridge", feature = "firehose", feature = "kinesis"))]
pub(crate) fn entry_error(code: &str, message: Option<&str>) -> ServiceError {
    ServiceError::new(kind_of_code(code).unwrap_or(ErrorKind::Unknown), code, message.unwrap_or_default())
}

/// The answer for an entry with this result. The service's counts of failures are ignored; the entry's
/// own result decides: an error code is a failure, an id is a success, and neither is no answer.
#[cfg(any(feature = "eventbridge", feature = "firehose", feature = "kinesis"))]
pub(crate) fn answer<R>(receipt: Option<R>, code: Option<&str>, message: Option<&str>) -> Answer<R> {
    match (code, receipt) {
        (Some(code), _) => Err(entry_error(code, message)),
        (None, Some(receipt)) => Ok(receipt),
        (None, None) => Err(ServiceError::no_answer()),
    }
}

/// The HTTP status, if any, and the chain of causes.
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
        // No answer, or an unreadable one: the request may have arrived.
        _ => ErrorKind::Transient,
    }
}

/// Whether there are none, or what names them is wrong. That they were not answered for in time may pass.
fn has_no_credentials<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> bool {
    chain(error).any(|error| match error.downcast_ref() {
        Some(CredentialsError::CredentialsNotLoaded(_) | CredentialsError::InvalidConfiguration(_)) => true,
        Some(_) => false,
        None => error.to_string().contains(NO_AUTH_SCHEME),
    })
}

/// Of the SDK's own error, which has no public type, for a client without any provider of credentials.
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
        // An unreadable success counts as no answer.
        Some(200..300 | 408 | 500..) => ErrorKind::Transient,
        _ => ErrorKind::Unknown,
    }
}

/// The kind of a service's error code, if the code is known.
pub(crate) fn kind_of_code(code: &str) -> Option<ErrorKind> {
    // SQS's older codes come with this prefix and without it.
    let code = code.strip_prefix("AWS.SimpleQueueService.").unwrap_or(code);
    if code.get(..3).is_some_and(|prefix| prefix.eq_ignore_ascii_case("kms")) {
        return Some(kind_of_kms(code));
    }
    if THROTTLING_ERRORS.contains(&code) {
        return Some(ErrorKind::Throttled);
    }
    if TRANSIENT_ERRORS.contains(&code) {
        return Some(ErrorKind::Transient);
    }
    let kind = match code {
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
        "IncompleteSignature"
        | "InvalidClientTokenId"
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
    };
    Some(kind)
}

/// Services pass on the errors of KMS, each in a spelling of its own. A missing or disabled key is for
/// an operator to correct; the queue or table itself is there, so it is not `Missing`.
fn kind_of_kms(code: &str) -> ErrorKind {
    if code.contains("Throttl") { ErrorKind::Throttled } else { ErrorKind::Denied }
}

#[cfg(all(
    test,
    feature = "dynamodb",
    feature = "eventbridge",
    feature = "firehose",
    feature = "kinesis",
    feature = "sqs"
))]
mod tests {
    //! Errors as the SDK's own clients make them of HTTP answers.

    use aws_smithy_http_client::test_util::infallible_client_fn;
    use aws_smithy_runtime_api::client::http::SharedHttpClient;
    use aws_smithy_runtime_api::client::result::ConnectorError;
    use aws_smithy_types::error::ErrorMetadata;

    use super::*;

    const QUEUE: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders";

    type Bare = SdkError<ErrorMetadata, HttpResponse>;

    fn answering(status: u16, code: &'static str, body: &'static str) -> SharedHttpClient {
        infallible_client_fn(move |_| {
            let answer = http::Response::builder().status(status);
            let answer = if code.is_empty() { answer } else { answer.header("x-amzn-errortype", code) };
            answer.body(body).expect("a status and a header")
        })
    }

    /// A client of this SDK crate whose every call gets this answer.
    macro_rules! client {
        ($sdk:ident, $status:expr, $code:expr, $body:expr) => {{
            let credentials = $sdk::config::Credentials::new("id", "key", None, None, "test");
            $sdk::Client::from_conf(
                $sdk::Config::builder()
                    .behavior_version($sdk::config::BehaviorVersion::latest())
                    .region($sdk::config::Region::new("eu-west-1"))
                    .credentials_provider(credentials)
                    .retry_config($sdk::config::retry::RetryConfig::disabled())
                    .http_client(answering($status, $code, $body))
                    .build(),
            )
        }};
    }

    const BODY: &str = r#"{"message": "no"}"#;

    async fn sqs(status: u16, code: &'static str, body: &'static str) -> ServiceError {
        use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry as Entry;
        let client = client!(aws_sdk_sqs, status, code, body);
        let entry = Entry::builder().id("0").receipt_handle("handle").build().expect("both are set");
        let call = client.delete_message_batch().queue_url(QUEUE).entries(entry);
        classify(&call.send().await.expect_err("an error"))
    }

    async fn dynamodb(status: u16, code: &'static str) -> ServiceError {
        let client = client!(aws_sdk_dynamodb, status, code, BODY);
        classify(&client.batch_write_item().request_items("t", vec![]).send().await.expect_err("an error"))
    }

    async fn kinesis(status: u16, code: &'static str) -> ServiceError {
        let client = client!(aws_sdk_kinesis, status, code, BODY);
        classify(
            &client
                .put_records()
                .stream_name("s")
                .set_records(Some(vec![]))
                .send()
                .await
                .expect_err("an error"),
        )
    }

    async fn firehose(status: u16, code: &'static str) -> ServiceError {
        let client = client!(aws_sdk_firehose, status, code, BODY);
        let call = client.put_record_batch().delivery_stream_name("s").set_records(Some(vec![]));
        classify(&call.send().await.expect_err("an error"))
    }

    async fn eventbridge(status: u16, code: &'static str) -> ServiceError {
        let client = client!(aws_sdk_eventbridge, status, code, BODY);
        classify(&client.put_events().set_entries(Some(vec![])).send().await.expect_err("an error"))
    }

    async fn lambda(status: u16, code: &'static str) -> ServiceError {
        let client = client!(aws_sdk_lambda, status, code, BODY);
        classify(&client.invoke().function_name("orders").send().await.expect_err("an error"))
    }

    #[tokio::test]
    async fn throttles_of_each_service() {
        for error in [
            sqs(403, "RequestThrottled", BODY).await,
            sqs(400, "ThrottlingException", BODY).await,
            sqs(400, "KMS.ThrottlingException", BODY).await,
            sqs(400, "KmsThrottled", BODY).await,
            sqs(503, "SlowDown", BODY).await,
            dynamodb(400, "ProvisionedThroughputExceededException").await,
            dynamodb(400, "RequestLimitExceeded").await,
            dynamodb(400, "ThrottlingException").await,
            kinesis(400, "ProvisionedThroughputExceededException").await,
            kinesis(400, "KMSThrottlingException").await,
            kinesis(400, "LimitExceededException").await,
            firehose(400, "LimitExceededException").await,
            eventbridge(400, "ThrottlingException").await,
            lambda(429, "TooManyRequestsException").await,
            lambda(502, "EC2ThrottledException").await,
            sqs(429, "", "").await,
        ] {
            assert_eq!(error.kind, ErrorKind::Throttled, "{error}");
            assert!(error.kind.is_retriable());
        }
    }

    #[tokio::test]
    async fn what_passes() {
        for error in [
            sqs(500, "InternalError", BODY).await,
            sqs(503, "", "<html>").await,
            sqs(408, "", "").await,
            sqs(400, "RequestTimeout", BODY).await,
            dynamodb(500, "InternalServerError").await,
            dynamodb(400, "ReplicatedWriteConflictException").await,
            kinesis(500, "InternalFailureException").await,
            firehose(503, "ServiceUnavailableException").await,
            eventbridge(500, "InternalException").await,
            lambda(500, "ServiceException").await,
            lambda(502, "ENILimitReachedException").await,
            // Answered with success, but the answer cannot be read.
            sqs(200, "", "{").await,
        ] {
            assert_eq!(error.kind, ErrorKind::Transient, "{error}");
        }
    }

    #[tokio::test]
    async fn what_an_operator_must_mend() {
        for error in [
            sqs(403, "AccessDeniedException", BODY).await,
            sqs(403, "AccessDenied", BODY).await,
            sqs(403, "InvalidClientTokenId", BODY).await,
            sqs(400, "KMS.AccessDeniedException", BODY).await,
            kinesis(400, "KMSAccessDeniedException").await,
            // The key is not there; the stream and the function are.
            kinesis(400, "KMSNotFoundException").await,
            lambda(502, "KMSNotFoundException").await,
            lambda(502, "KMSDisabledException").await,
            dynamodb(400, "UnrecognizedClientException").await,
            firehose(400, "ExpiredTokenException").await,
            eventbridge(403, "AccessDeniedException").await,
            lambda(403, "AccessDeniedException").await,
        ] {
            assert_eq!(error.kind, ErrorKind::Denied, "{error}");
            assert!(!error.kind.is_retriable());
        }
    }

    #[tokio::test]
    async fn what_does_not_exist() {
        for error in [
            sqs(400, "AWS.SimpleQueueService.NonExistentQueue", BODY).await,
            sqs(400, "com.amazonaws.sqs#QueueDoesNotExist", BODY).await,
            dynamodb(400, "ResourceNotFoundException").await,
            kinesis(400, "ResourceNotFoundException").await,
            firehose(400, "ResourceNotFoundException").await,
            lambda(404, "ResourceNotFoundException").await,
        ] {
            assert_eq!(error.kind, ErrorKind::Missing, "{error}");
        }
    }

    #[tokio::test]
    async fn what_is_over_a_limit() {
        for error in [
            sqs(400, "AWS.SimpleQueueService.BatchRequestTooLong", BODY).await,
            sqs(413, "", "").await,
            eventbridge(413, "RequestEntityTooLargeException").await,
            lambda(413, "RequestTooLargeException").await,
            lambda(413, "SerializedRequestEntityTooLargeException").await,
        ] {
            assert_eq!(error.kind, ErrorKind::TooLarge, "{error}");
        }
    }

    #[tokio::test]
    async fn a_4xx_with_a_code_is_refused_and_one_without_comes_from_nobody_knows_where() {
        for error in [
            sqs(400, "AWS.SimpleQueueService.EmptyBatchRequest", BODY).await,
            dynamodb(400, "ValidationException").await,
            dynamodb(400, "ItemCollectionSizeLimitExceededException").await,
            kinesis(400, "InvalidArgumentException").await,
            firehose(400, "InvalidSourceException").await,
            lambda(400, "InvalidRequestContentException").await,
            lambda(415, "UnsupportedMediaTypeException").await,
            lambda(400, "RecursiveInvocationException").await,
            lambda(418, "SomethingNewException").await,
        ] {
            assert_eq!(error.kind, ErrorKind::Refused, "{error}");
        }
        for error in [
            sqs(404, "", "").await,
            sqs(400, "", r#"{"__type": "", "message": "no"}"#).await,
            sqs(403, "", "<html>").await,
            lambda(404, "").await,
        ] {
            assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Unknown, ""), "{error}");
        }
    }

    #[test]
    fn what_was_never_sent_is_refused_and_what_may_have_arrived_passes() {
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
    async fn an_error_says_what_the_service_said_or_why_it_did_not_answer() {
        let error = sqs(403, "AccessDeniedException", r#"{"message": "not you"}"#).await;
        assert_eq!(error.to_string(), "AccessDeniedException: not you");
        let error = sqs(403, "AccessDeniedException", "").await;
        assert_eq!(error.to_string(), "AccessDeniedException: no message");
        assert_eq!(sqs(404, "", "").await.to_string(), "HTTP 404: service error: unhandled error: Error");
        let unreadable = "HTTP 200: service error: unhandled error: failed to parse JSON: \
            expected object key or end object, found: None";
        assert_eq!(sqs(200, "", "{").await.to_string(), unreadable);
        let error = classify(&Bare::dispatch_failure(ConnectorError::io("connection reset".into())));
        assert_eq!(error.to_string(), "dispatch failure: io error: connection reset");
    }

    #[test]
    fn an_entrys_code_nobody_knows_is_retried() {
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
            assert_eq!(entry_error(code, None), ServiceError::new(kind, code, ""));
        }
    }

    /// Without a request: no credentials, none that can be had, or none in time.
    #[tokio::test]
    async fn no_credentials_are_denied_and_late_ones_may_come() {
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

        let config = || {
            aws_sdk_sqs::Config::builder()
                .behavior_version(aws_sdk_sqs::config::BehaviorVersion::latest())
                .region(aws_sdk_sqs::config::Region::new("eu-west-1"))
                .http_client(infallible_client_fn(|_| -> http::Response<&str> {
                    panic!("no request is sent")
                }))
        };
        let kind = async |config: aws_sdk_sqs::config::Builder| {
            let client = aws_sdk_sqs::Client::from_conf(config.build());
            let call = client.send_message().queue_url(QUEUE).message_body("one");
            classify(&call.send().await.expect_err("not sent"))
        };
        let none = kind(config()).await;
        assert_eq!(none.kind, ErrorKind::Denied, "{none}");
        for (failure, expected) in [
            (Failing(|| CredentialsError::not_loaded("none")), ErrorKind::Denied),
            (Failing(|| CredentialsError::invalid_configuration("a typo")), ErrorKind::Denied),
            (Failing(|| CredentialsError::provider_timed_out(Duration::from_secs(5))), ErrorKind::Transient),
            (Failing(|| CredentialsError::provider_error("a 500")), ErrorKind::Transient),
        ] {
            let error = kind(config().credentials_provider(failure)).await;
            assert_eq!(error.kind, expected, "{error}");
        }
    }

    #[tokio::test]
    async fn the_pause_that_a_service_asks_for_is_read() {
        for (header, value, millis) in [
            ("retry-after", "7", Some(7_000)),
            ("x-amz-retry-after", "250", Some(250)),
            ("retry-after", "Sun, 22 Nov 2026 08:00:00 GMT", None),
            ("retry-after", "-1", None),
            ("other", "7", None),
        ] {
            let answer = move |_| {
                http::Response::builder().status(503).header(header, value).body("").expect("a header")
            };
            let config = aws_sdk_sqs::Config::builder()
                .behavior_version(aws_sdk_sqs::config::BehaviorVersion::latest())
                .region(aws_sdk_sqs::config::Region::new("eu-west-1"))
                .credentials_provider(aws_sdk_sqs::config::Credentials::for_tests())
                .retry_config(aws_sdk_sqs::config::retry::RetryConfig::disabled())
                .http_client(infallible_client_fn(answer));
            let client = aws_sdk_sqs::Client::from_conf(config.build());
            let error =
                client.send_message().queue_url(QUEUE).message_body("one").send().await.expect_err("a 503");
            assert_eq!(classify(&error).retry_after, millis.map(Duration::from_millis), "{header}: {value}");
        }
    }
}
