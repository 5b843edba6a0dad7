use std::error::Error;

use aws_runtime::retries::classifiers::{THROTTLING_ERRORS, TRANSIENT_ERRORS};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::{ErrorKind, ServiceError};

/// Classifies an AWS SDK error.
///
/// The service's code decides if it is known, otherwise the HTTP status. Without an answer the request
/// may have arrived, and the error is transient; a request that could not be built is refused. A 4xx
/// with an unknown code is refused. A 4xx without a code comes from something between here and the
/// service and is unknown, except a 413: the request is too large, whoever says so.
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
    match metadata.and_then(|metadata| Some((metadata.code()?, metadata.message()))) {
        Some((code, message)) if !code.is_empty() => {
            let kind = kind_of_code(code).unwrap_or_else(|| match kind_of_status(error) {
                ErrorKind::Unknown => ErrorKind::Refused,
                kind => kind,
            });
            ServiceError::new(kind, code, message.unwrap_or_default())
        }
        _ => ServiceError::new(kind_without_code(error), "", causes(error)),
    }
}

/// The error of one entry of a call that was answered. An unknown code is retried.
#[cfg(any(feature = "eventbridge", feature = "firehose", feature = "kinesis"))]
pub(crate) fn entry_error(code: &str, message: Option<&str>) -> ServiceError {
    ServiceError::new(kind_of_code(code).unwrap_or(ErrorKind::Unknown), code, message.unwrap_or_default())
}

/// The HTTP status, if any, and the chain of causes.
fn causes<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> String {
    let status = error.raw_response().map(|response| format!("HTTP {}", response.status().as_u16()));
    let chain = std::iter::successors(Some(error as &(dyn Error + 'static)), |error| Error::source(*error));
    status.into_iter().chain(chain.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}

fn kind_without_code<E>(error: &SdkError<E, HttpResponse>) -> ErrorKind {
    match error {
        SdkError::ConstructionFailure(_) => ErrorKind::Refused,
        SdkError::DispatchFailure(failure) if failure.is_user() => ErrorKind::Refused,
        SdkError::ServiceError(_) => kind_of_status(error),
        // No answer, or an unreadable one: the request may have arrived.
        _ => ErrorKind::Transient,
    }
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
