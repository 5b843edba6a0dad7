//! The engine's ports on the AWS SDK. The only file that names it.

use std::cell::RefCell;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_lambda::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_lambda::operation::RequestId;
use aws_sdk_lambda::operation::invoke::InvokeError;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry, MessageAttributeValue,
    SendMessageBatchRequestEntry,
};
use comeback_backoff::{ladder, retry};
use comeback_engine::{
    Attribute, CALL_TIMEOUT, CallFailure, DeadLetter, DeadLetterQueue, InvokeFailure, RetryQueue, Target,
    VisibilityChange,
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
        // One layer retries: `SqsBatchCalls` what SQS refused, and the queue itself an invoke, whose
        // late answer may have been a yes. The SDK's own retries are off.
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

    pub(crate) fn queue<'a>(&'a self, url: &'a str) -> SqsQueue<'a> {
        SqsQueue { client: &self.sqs, url }
    }

    pub(crate) fn functions(&self) -> Functions<'_> {
        Functions { client: &self.lambda }
    }
}

/// A queue: the retry queue or the dead-letter queue.
pub(crate) struct SqsQueue<'a> {
    client: &'a aws_sdk_sqs::Client,
    url: &'a str,
}

impl RetryQueue for SqsQueue<'_> {
    async fn change_visibility(&self, entries: &[VisibilityChange<'_>]) -> Vec<Result<(), CallFailure>> {
        every_entry(entries.len(), |asked| self.change_visibility_once(entries, asked)).await
    }
}

impl DeadLetterQueue for SqsQueue<'_> {
    async fn send(&self, messages: &[DeadLetter]) -> Vec<Result<(), CallFailure>> {
        every_entry(messages.len(), |asked| self.send_once(messages, asked)).await
    }
}

impl SqsQueue<'_> {
    async fn change_visibility_once(
        &self,
        entries: &[VisibilityChange<'_>],
        asked: Vec<usize>,
    ) -> Vec<(usize, Answer)> {
        let request = asked.iter().map(|&index| {
            let VisibilityChange { receipt_handle, visibility_timeout } = entries[index];
            let seconds = i32::try_from(visibility_timeout.as_secs()).expect("BUG: over 12 hours");
            ChangeMessageVisibilityBatchRequestEntry::builder()
                .id(index.to_string())
                .receipt_handle(receipt_handle)
                .visibility_timeout(seconds)
                .build()
                .expect("BUG: id and receipt handle are set")
        });
        let call = self.client.change_message_visibility_batch().queue_url(self.url);
        match call.set_entries(Some(request.collect())).send().await {
            Ok(answer) => by_entry(answer.successful.iter().map(|entry| entry.id()), &answer.failed),
            Err(error) => for_all(asked, &error, "allow sqs:ChangeMessageVisibility on the retry queue"),
        }
    }

    async fn send_once(&self, messages: &[DeadLetter], asked: Vec<usize>) -> Vec<(usize, Answer)> {
        let request = asked.iter().map(|&index| {
            let DeadLetter { body, attributes } = &messages[index];
            let attributes = attributes.iter().map(|a| (a.name.into(), attribute(a))).collect();
            SendMessageBatchRequestEntry::builder()
                .id(index.to_string())
                .message_body(body)
                .set_message_attributes(Some(attributes))
                .build()
                .expect("BUG: id and body are set")
        });
        let call = self.client.send_message_batch().queue_url(self.url);
        match call.set_entries(Some(request.collect())).send().await {
            Ok(answer) => by_entry(answer.successful.iter().map(|entry| entry.id()), &answer.failed),
            Err(error) => for_all(asked, &error, "allow sqs:SendMessage on the dead-letter queue"),
        }
    }
}

fn attribute(attribute: &Attribute) -> MessageAttributeValue {
    MessageAttributeValue::builder()
        .data_type(attribute.data_type)
        .string_value(&attribute.value)
        .build()
        .expect("BUG: the data type is set")
}

ladder! {
    /// The waits between the calls of one SQS batch: the only layer that retries them.
    SqsBatchCalls: 100ms, 300ms, 1s
}

/// What SQS said of one entry.
type Answer = Result<(), Refusal>;

#[derive(Clone)]
struct Refusal {
    failure: CallFailure,
    /// Calling again may help.
    passing: bool,
}

/// Calls once for every entry, and again for those it may help, until the ladder or the time ends.
async fn every_entry<C: Future<Output = Vec<(usize, Answer)>>>(
    entries: usize,
    call: impl Fn(Vec<usize>) -> C,
) -> Vec<Result<(), CallFailure>> {
    let failure = CallFailure { cause: "SQS gave no answer for this entry".into(), remedy: None };
    let answers = RefCell::new(vec![Err(Refusal { failure, passing: true }); entries]);
    let open = || -> Vec<usize> {
        let is_open = |answer: &Answer| answer.as_ref().is_err_and(|refusal| refusal.passing);
        answers.borrow().iter().enumerate().filter(|(_, answer)| is_open(answer)).map(|(i, _)| i).collect()
    };
    let round = async || {
        for (index, answer) in call(open()).await {
            if let Some(slot) = answers.borrow_mut().get_mut(index) {
                *slot = answer;
            }
        }
        if open().is_empty() { Ok(()) } else { Err(()) }
    };
    let rounds = retry(SqsBatchCalls::ceilings(), |()| true, round).sleeping(tokio::time::sleep);
    // How the rounds ended is in the answers: each is noted as it comes.
    let _: Result<_, _> = tokio::time::timeout(CALL_TIMEOUT, rounds).await;
    answers.into_inner().into_iter().map(|answer| answer.map_err(|refusal| refusal.failure)).collect()
}

/// The answer of a batch call, by entry; the entries' ids are their indices.
fn by_entry<'a>(
    done: impl Iterator<Item = &'a str>,
    failed: &[BatchResultErrorEntry],
) -> Vec<(usize, Answer)> {
    let refused = failed.iter().map(|entry| {
        let cause = format!("{}: {}", entry.code(), entry.message().unwrap_or("no message"));
        let failure = CallFailure { cause, remedy: None };
        (entry.id(), Err(Refusal { failure, passing: !entry.sender_fault() }))
    });
    let answers = done.map(|id| (id, Ok(()))).chain(refused);
    answers.filter_map(|(id, answer)| Some((id.parse().ok()?, answer))).collect()
}

/// The answer of a batch call that failed whole.
fn for_all<E>(asked: Vec<usize>, error: &SdkError<E>, remedy: &'static str) -> Vec<(usize, Answer)>
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let denied = error.as_service_error().is_some_and(is_access_denied);
    let failure = CallFailure { cause: describe(error), remedy: denied.then_some(remedy) };
    let refusal = Refusal { failure, passing: !denied };
    asked.into_iter().map(|index| (index, Err(refusal.clone()))).collect()
}

/// The functions that may be re-invoked.
pub(crate) struct Functions<'a> {
    client: &'a aws_sdk_lambda::Client,
}

impl Target for Functions<'_> {
    async fn invoke(&self, function_arn: &str, payload: String) -> Result<(), InvokeFailure> {
        let call = self
            .client
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
}

/// What follows from an `Invoke` that was not accepted. Only what can never work is final; what
/// nobody knows is tried again.
fn invoke_failure(error: &SdkError<InvokeError>) -> InvokeFailure {
    match error.as_service_error() {
        Some(InvokeError::ResourceNotFoundException(_)) => InvokeFailure::NotFound(describe(error)),
        Some(
            InvokeError::RequestTooLargeException(_)
            | InvokeError::SerializedRequestEntityTooLargeException(_),
        ) => InvokeFailure::TooLarge(without_message(error)),
        Some(
            InvokeError::InvalidRequestContentException(_) | InvokeError::UnsupportedMediaTypeException(_),
        ) => InvokeFailure::Refused(without_message(error)),
        service => {
            let remedy = service.and_then(invoke_remedy);
            InvokeFailure::Later(CallFailure { cause: describe(error), remedy })
        }
    }
}

/// Lambda's message about a payload quotes it, and what is said here is logged.
fn without_message(error: &SdkError<InvokeError>) -> String {
    let code = error.as_service_error().and_then(ProvideErrorMetadata::code).unwrap_or("no code");
    format!("{code} (request {})", error.request_id().unwrap_or("unknown"))
}

/// What an operator can mend. Until then the message waits, and loses no retry.
fn invoke_remedy(error: &InvokeError) -> Option<&'static str> {
    match error {
        InvokeError::RecursiveInvocationException(_) => Some(
            "set the recursion configuration of the target and of the retry handler to Allow \
             (aws lambda put-function-recursion-config)",
        ),
        InvokeError::KmsAccessDeniedException(_)
        | InvokeError::KmsDisabledException(_)
        | InvokeError::KmsInvalidStateException(_)
        | InvokeError::KmsNotFoundException(_) => {
            Some("let the target's role decrypt with its KMS key, and the key be enabled")
        }
        other if is_access_denied(other) => {
            Some("allow lambda:InvokeFunction on the target's ARN and on ARN:* to the retry handler's role")
        }
        _ => None,
    }
}

fn is_access_denied(error: &impl ProvideErrorMetadata) -> bool {
    error.code().is_some_and(|code| code.starts_with("AccessDenied"))
}

/// `Code: message` where the service answered; else the chain of causes.
fn describe<E>(error: &SdkError<E>) -> String
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    match error.as_service_error().map(|service| (service.code(), service.message())) {
        Some((Some(code), message)) => format!("{code}: {}", message.unwrap_or("no message")),
        _ => DisplayErrorContext(error).to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
