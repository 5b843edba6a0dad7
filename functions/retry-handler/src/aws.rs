//! The handler's account on the AWS SDK. The only file that names it.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_lambda::error::SdkError;
use aws_sdk_lambda::operation::RequestId;
use aws_sdk_lambda::operation::invoke::InvokeError;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use aws_sdk_sqs::types::MessageAttributeValue;
use comeback_delivery::sqs::{Message, Sender, Visibility, VisibilityChanger};
use comeback_delivery::{
    Cause, Delivered, ErrorKind, Retries, ServiceError, Undelivered, by_entry, classify,
};
use comeback_engine::{
    Account, Attribute, CALL_TIMEOUT, CallFailure, DeadLetter, InvokeFailure, SqsBatchCalls, VisibilityChange,
};

const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(2_500);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// The two clients, built once.
#[derive(Debug)]
pub(crate) struct Aws {
    sqs: aws_sdk_sqs::Client,
    lambda: aws_sdk_lambda::Client,
}

impl Aws {
    pub(crate) async fn connect() -> Self {
        Self::new(&aws_config::load_defaults(BehaviorVersion::latest()).await)
    }

    fn new(shared: &SdkConfig) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .operation_attempt_timeout(ATTEMPT_TIMEOUT)
            // The SDK has no default.
            .operation_timeout(CALL_TIMEOUT)
            .build();
        // One layer retries: the deliveries to SQS their own calls, and the queue itself an invoke,
        // whose late answer may have been a yes. The SDK's own retries are off.
        let sqs = aws_sdk_sqs::config::Builder::from(shared)
            .timeout_config(timeouts.clone())
            .retry_config(RetryConfig::disabled());
        let lambda = aws_sdk_lambda::config::Builder::from(shared)
            .timeout_config(timeouts)
            .retry_config(RetryConfig::disabled());
        Self {
            sqs: aws_sdk_sqs::Client::from_conf(sqs.build()),
            lambda: aws_sdk_lambda::Client::from_conf(lambda.build()),
        }
    }

    /// The account for one batch, which came from that retry queue.
    pub(crate) fn account(&self, retry_queue_url: &str, dead_letter_queue_url: &str) -> AwsAccount<'_> {
        let retries = Retries::of(SqsBatchCalls::ceilings());
        AwsAccount {
            lambda: &self.lambda,
            retry_queue: VisibilityChanger::new(self.sqs.clone(), retry_queue_url).retries(retries.clone()),
            dead_letter_queue: Sender::new(self.sqs.clone(), dead_letter_queue_url).retries(retries),
        }
    }
}

/// The account as one batch sees it: its retry queue, the functions and the dead-letter queue.
#[derive(Debug)]
pub(crate) struct AwsAccount<'c> {
    lambda: &'c aws_sdk_lambda::Client,
    retry_queue: VisibilityChanger,
    dead_letter_queue: Sender,
}

impl Account for AwsAccount<'_> {
    async fn change_visibility(
        &self,
        changes: &[VisibilityChange<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        let changes = changes.iter().map(|change| Visibility {
            receipt_handle: change.receipt_handle.into(),
            timeout: change.visibility_timeout,
        });
        let outcome = self.retry_queue.send_until(changes, past_deadline).await;
        answers(outcome, "allow sqs:ChangeMessageVisibility on the retry queue")
    }

    async fn invoke(&self, function_arn: &str, payload: String) -> Result<(), InvokeFailure> {
        let call = self
            .lambda
            .invoke()
            .function_name(function_arn)
            .invocation_type(InvocationType::Event)
            .payload(Blob::new(payload));
        match call.send().await {
            Ok(answer) if answer.status_code() == 202 => Ok(()),
            Ok(answer) => {
                let cause = format!("Invoke answered {}, not 202", answer.status_code());
                Err(InvokeFailure::Later(CallFailure { cause, remedy: None }))
            }
            Err(error) => Err(invoke_failure(&error)),
        }
    }

    async fn send_dead_letters(
        &self,
        letters: &[&DeadLetter],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        let messages = letters.iter().copied().map(message);
        let outcome = self.dead_letter_queue.send_until(messages, past_deadline).await;
        answers(
            outcome,
            "allow sqs:SendMessage on the dead-letter queue, and the use of its KMS key if it has one",
        )
    }
}

fn message(DeadLetter { body, attributes }: &DeadLetter) -> Message {
    let attributes = attributes.iter().map(|attribute| (attribute.name.into(), value(attribute)));
    Message { attributes: attributes.collect(), ..Message::new(body) }
}

fn value(attribute: &Attribute) -> MessageAttributeValue {
    MessageAttributeValue::builder()
        .data_type(attribute.data_type)
        .string_value(&attribute.value)
        .build()
        .expect("BUG: the data type is set")
}

fn answers<E>(
    outcome: Result<Delivered, Undelivered<E>>,
    remedy: &'static str,
) -> Vec<Result<(), CallFailure>> {
    let answer = |outcome: Result<(), Cause>| {
        outcome.map_err(|cause| {
            let lacks_permission = cause.error().is_some_and(lacks_permission);
            CallFailure { cause: cause.to_string(), remedy: lacks_permission.then_some(remedy) }
        })
    };
    by_entry(outcome).into_iter().map(answer).collect()
}

/// What follows from an `Invoke` that was not accepted. Only an error that can never pass is final; an
/// unknown one is tried again.
fn invoke_failure(error: &SdkError<InvokeError>) -> InvokeFailure {
    let service_error = classify(error);
    // Lambda's message about a payload quotes it, and this text is logged.
    let without_message = || {
        let code = if service_error.code.is_empty() { "no code" } else { &service_error.code };
        format!("{code} (request {})", error.request_id().unwrap_or("unknown"))
    };
    match (service_error.kind, service_error.code.as_str()) {
        (ErrorKind::Missing, _) => InvokeFailure::NotFound(service_error.to_string()),
        (ErrorKind::TooLarge, _) => InvokeFailure::TooLarge(without_message()),
        (_, "InvalidRequestContentException" | "UnsupportedMediaTypeException") => {
            InvokeFailure::Refused(without_message())
        }
        _ => InvokeFailure::Later(CallFailure {
            cause: service_error.to_string(),
            remedy: invoke_remedy(&service_error),
        }),
    }
}

/// Denied because a permission is missing, and not because a credential is invalid or has expired.
fn lacks_permission(error: &ServiceError) -> bool {
    let codes = ["AccessDenied", "Kms"];
    error.kind == ErrorKind::Denied && codes.iter().any(|code| error.code.starts_with(code))
}

/// What an operator can do about it. Until then the message waits, and loses no retry.
fn invoke_remedy(error: &ServiceError) -> Option<&'static str> {
    match (error.kind, error.code.as_str()) {
        (_, "RecursiveInvocationException") => Some(
            "set the recursion configuration of the target and of the retry handler to Allow \
             (aws lambda put-function-recursion-config)",
        ),
        (ErrorKind::Denied, code) if code.starts_with("KMS") => {
            Some("let the target's role decrypt with its KMS key, and the key be enabled")
        }
        _ if lacks_permission(error) => {
            Some("allow lambda:InvokeFunction on the target's ARN and on ARN:* to the retry handler's role")
        }
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
