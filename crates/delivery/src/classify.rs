use std::error::Error;
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_runtime::retries::classifiers::{THROTTLING_ERRORS, TRANSIENT_ERRORS};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::{ErrorKind, ServiceError};

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

/// A date is no pause without a clock, and is left out.
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
mod tests;
