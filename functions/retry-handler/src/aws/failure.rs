//! Decides what a failed call to AWS means for the message, and what an operator can do about it.

use std::borrow::Cow;
use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_lambda::error::SdkError;
use aws_sdk_lambda::operation::RequestId;
use aws_sdk_lambda::operation::invoke::InvokeError;
use comeback_delivery::{Delivered, EntryError, ErrorKind, ServiceError, Undelivered, by_entry, classify};
use comeback_engine::{CallFailure, InvokeFailure, MoveFailure};
use hyper_util::client::legacy::Error as HttpError;

/// Remedies for a call that keeps failing, by kind of error, as shown to an operator.
pub(super) struct Remedies {
    permission: &'static str,
    missing: Option<&'static str>,
    too_large: Option<String>,
}

const NO_RETRY_QUEUE: Option<&str> =
    Some("the retry queue does not exist: correct RETRY_QUEUE_URL, or unset it");

pub(super) const HIDE: Remedies = Remedies {
    permission: "allow sqs:ChangeMessageVisibility on the retry queue, and the use of its KMS key if it has one",
    missing: NO_RETRY_QUEUE,
    too_large: None,
};

const MOVE: Remedies = Remedies {
    permission: "allow sqs:SendMessage on the retry queue, and the use of its KMS key if it has one; until \
                 then every message is hidden, and SQS has room for only 120,000",
    missing: NO_RETRY_QUEUE,
    too_large: None,
};

const COUNT: Remedies = Remedies {
    permission: "allow sqs:GetQueueAttributes on the retry queue",
    missing: NO_RETRY_QUEUE,
    too_large: None,
};

const DEAD_LETTER: Remedies = Remedies {
    permission: "allow sqs:SendMessage on the dead-letter queue, and the use of its KMS key if it has one",
    missing: Some("the dead-letter queue does not exist: correct DEAD_LETTER_QUEUE_URL, or create the queue"),
    too_large: None,
};

pub(super) fn of_dead_letters(queue_url: &str) -> Remedies {
    let too_large = format!(
        "raise the dead-letter queue's limit: aws sqs set-queue-attributes --queue-url {queue_url} \
         --attributes MaximumMessageSize=1048576"
    );
    Remedies { too_large: Some(too_large), ..DEAD_LETTER }
}

const READ_PAUSES: Remedies = Remedies {
    permission: "allow ssm:GetParameter on the parameter that PAUSES names",
    missing: None,
    too_large: None,
};

const INVOKE: Remedies = Remedies {
    permission: "allow the retry handler's role lambda:InvokeFunction on the target's ARN and on ARN:*",
    missing: None,
    too_large: None,
};

const CREDENTIALS: &str = "the handler's credentials are invalid; check that its role exists and that its \
                           environment sets no keys";

pub(super) fn answers<E, R>(
    outcome: Result<Delivered<R>, Undelivered<E, R>>,
    remedies: Remedies,
) -> Vec<Result<(), CallFailure>> {
    let answer = |answer: Result<R, EntryError>| answer.map(drop).map_err(|cause| remedies.failure(cause));
    by_entry(outcome).into_iter().map(answer).collect()
}

/// Returns a result for each moved message; `Unanswered` means that SQS may have accepted the copy.
pub(super) fn of_moves<E, R>(
    outcome: Result<Delivered<R>, Undelivered<E, R>>,
) -> Vec<Result<(), MoveFailure>> {
    let failure = |cause: EntryError| {
        let may_have_arrived = match &cause {
            EntryError::Unanswered => true,
            // The error came from another call; this copy was never sent.
            EntryError::Halted(_) => false,
            _ => cause.error().is_some_and(|error| {
                error.code.is_empty() && !matches!(error.kind, ErrorKind::Refused | ErrorKind::Denied)
            }),
        };
        let failure = MOVE.failure(cause);
        if may_have_arrived { MoveFailure::Unanswered(failure.cause) } else { MoveFailure::NotSent(failure) }
    };
    by_entry(outcome).into_iter().map(|answer| answer.map(drop).map_err(failure)).collect()
}

impl Remedies {
    fn failure(&self, cause: EntryError) -> CallFailure {
        let remedy = cause.error().and_then(|error| self.of(error));
        CallFailure { cause: without_quotes(cause).to_string(), remedy }
    }

    fn of(&self, error: &ServiceError) -> Option<Cow<'static, str>> {
        match error.kind {
            ErrorKind::Missing => self.missing.map(Cow::Borrowed),
            ErrorKind::Denied if lacks_permission(error) => Some(self.permission.into()),
            ErrorKind::Denied => Some(CREDENTIALS.into()),
            _ if is_over_queues_limit(error) => self.too_large.clone().map(Cow::Owned),
            _ => None,
        }
    }
}

/// Returns true if the error means that a message exceeds its queue's `MaximumMessageSize`. SQS refuses such a message
/// with a code that says nothing about size, or refuses the whole call. `delivery` splits a refused call, so the final
/// error is about a single message.
fn is_over_queues_limit(error: &ServiceError) -> bool {
    let code = error.code.as_str();
    code.ends_with("BatchRequestTooLong")
        || code.starts_with("InvalidParameterValue") && error.message.contains("must be shorter than")
}

pub(super) fn of_count(mut error: ServiceError) -> CallFailure {
    let remedy = COUNT.of(&error);
    leave_out_quotes(&mut error);
    CallFailure { cause: error.to_string(), remedy }
}

/// Describes a failure to read the pauses. Its message is safe to log, because the request contains nothing from an
/// event.
pub(super) fn of_pauses(error: &ServiceError) -> CallFailure {
    CallFailure { cause: error.to_string(), remedy: READ_PAUSES.of(error) }
}

/// Returns a failure that suggests no remedy, because the failure is expected to be temporary.
pub(super) fn passing(cause: &str) -> CallFailure {
    CallFailure { cause: cause.into(), remedy: None }
}

/// Returns true if an error's message may quote the request, which could reveal a payload in the log. Nothing is quoted
/// if the service refused the request before parsing it, or did not respond.
fn may_quote(error: &ServiceError) -> bool {
    use ErrorKind::{Denied, Missing, Throttled};
    let unread = !error.code.is_empty() && matches!(error.kind, Denied | Missing | Throttled);
    // For a response without an error code, `classify` begins the message with the HTTP status.
    let unanswered = error.code.is_empty() && !error.message.starts_with("HTTP ");
    !unread && !unanswered
}

fn without_quotes(mut cause: EntryError) -> EntryError {
    let error = match &mut cause {
        EntryError::Refused(error) | EntryError::Exhausted(error) | EntryError::Halted(error) => Some(error),
        EntryError::Stopped(error) | EntryError::Interrupted(error) => error.as_mut(),
        _ => None,
    };
    error.into_iter().for_each(leave_out_quotes);
    cause
}

fn leave_out_quotes(error: &mut ServiceError) {
    if may_quote(error) {
        error.message = "message omitted, because it may quote the event".into();
    }
}

/// Converts an error from an `Invoke` call into a failure. Lambda may have accepted the call if the status is 504, or
/// if the error has no code and does not prove that nothing was sent.
pub(super) fn of_invoke(error: &SdkError<InvokeError>) -> InvokeFailure {
    let said = classify(error);
    let status = error.raw_response().map(|response| response.status().as_u16());
    let cause = match status {
        Some(status) if may_quote(&said) => {
            let code = if said.code.is_empty() { "no code" } else { &said.code };
            format!("{code} (HTTP {status}, request {})", error.request_id().unwrap_or("unknown"))
        }
        _ => said.to_string(),
    };
    match (said.kind, said.code.as_str()) {
        _ if status == Some(504) => InvokeFailure::Unanswered(cause),
        (ErrorKind::TooLarge, _) => InvokeFailure::TooLarge(cause),
        (_, "") if !was_not_sent(error) => InvokeFailure::Unanswered(cause),
        (ErrorKind::Missing, _) => InvokeFailure::NotFound(cause),
        (_, "InvalidRequestContentException" | "UnsupportedMediaTypeException") => {
            InvokeFailure::Refused(cause)
        }
        (kind, code) => {
            let remedy = match code {
                "" if has_no_credentials(error) => Some(CREDENTIALS.into()),
                "RecursiveInvocationException" => Some(
                    "set RecursiveLoop of the target and of the retry handler to Allow (aws lambda \
                     put-function-recursion-config)"
                        .into(),
                ),
                _ if kind == ErrorKind::Denied && code.starts_with("KMS") => Some(
                    "allow the target's role to decrypt with the function's KMS key, and enable the key"
                        .into(),
                ),
                _ => INVOKE.of(&said),
            };
            let failure = CallFailure { cause, remedy };
            if code.is_empty() { InvokeFailure::NotSent(failure) } else { InvokeFailure::Later(failure) }
        }
    }
}

/// Returns true if the request was certainly not sent.
fn was_not_sent(error: &SdkError<InvokeError>) -> bool {
    let is_connect =
        |error: &(dyn Error + 'static)| error.downcast_ref::<HttpError>().is_some_and(HttpError::is_connect);
    matches!(error, SdkError::ConstructionFailure(_))
        || has_no_credentials(error)
        || chain(error).any(is_connect)
}

fn has_no_credentials(error: &SdkError<InvokeError>) -> bool {
    chain(error).any(|error| error.is::<CredentialsError>())
}

pub(super) fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// Returns true for a missing permission, and false for an invalid or expired credential.
fn lacks_permission(error: &ServiceError) -> bool {
    let codes = ["AccessDenied", "NotAuthorized", "Kms", "KMS"];
    error.kind == ErrorKind::Denied && codes.iter().any(|code| error.code.contains(code))
}
