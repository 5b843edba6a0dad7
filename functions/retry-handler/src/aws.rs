//! The handler's access to AWS: the SDK clients, built once, and the engine's `Account` for one batch.

mod failure;
mod settings;
mod transport;

use std::cell::Cell;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_lambda::operation::RequestId;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName};
use aws_sdk_ssm::operation::get_parameter::GetParameterError;
use aws_smithy_types::base64;
use comeback_delivery::sqs::{Message, Sender, Visibility, VisibilityChanger};
use comeback_delivery::{Retries, classify};
use comeback_engine::{
    Account, Attribute, CALL_TIMEOUT, COUNT_TIMEOUT, CallFailure, DeadLetter, DeadLettered, INVOKE_TIMEOUT,
    InFlightCount, InvokeFailure, Move, MoveFailure, PAUSES_TIMEOUT, Record, SqsBatchCalls, VisibilityChange,
};
use tokio::time::{Instant, timeout, timeout_at};

use crate::clock::now;
pub(crate) use settings::SdkSettings;

/// Timeout of a single attempt to call SQS.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(2_500);

/// HTTP header that makes an invocation part of an X-Ray trace.
const TRACE_HEADER: &str = "x-amzn-trace-id";

#[derive(Debug)]
pub(crate) struct AwsClients {
    sqs: aws_sdk_sqs::Client,
    lambda: aws_sdk_lambda::Client,
    pauses: Option<PausesParameter>,
}

impl AwsClients {
    /// Builds the clients; `pauses` is the name of the pauses parameter.
    ///
    /// # Errors
    ///
    /// Fails if a file of trusted certificates contains no certificate.
    pub(crate) fn connect(settings: &SdkSettings, pauses: Option<&str>) -> Result<Self, String> {
        let http_client = transport::http_client(transport::trusted(&settings.trusted)?);
        Ok(Self::new(&settings.sdk_config(http_client), pauses))
    }

    fn new(shared: &SdkConfig, pauses: Option<&str>) -> Self {
        // The SDK's own retries are off, so that each call is retried in one layer only. `comeback_delivery` retries
        // calls to SQS. A failed `Invoke` is repeated only after the next receive of its message, because an unanswered
        // `Invoke` may have succeeded.
        let once = RetryConfig::disabled;
        let within = |timeout| TimeoutConfig::builder().operation_timeout(timeout);
        let sqs = aws_sdk_sqs::config::Builder::from(shared)
            .timeout_config(within(CALL_TIMEOUT).operation_attempt_timeout(ATTEMPT_TIMEOUT).build())
            .retry_config(once());
        let lambda = aws_sdk_lambda::config::Builder::from(shared)
            .timeout_config(within(INVOKE_TIMEOUT).build())
            .retry_config(once());
        let reading = |name: &str| {
            // The timeout is short: the batch waits for this call, and the pauses will soon be read again.
            let ssm = aws_sdk_ssm::config::Builder::from(shared)
                .timeout_config(within(PAUSES_TIMEOUT).build())
                .retry_config(once());
            PausesParameter { ssm: aws_sdk_ssm::Client::from_conf(ssm.build()), name: name.into() }
        };
        Self {
            sqs: aws_sdk_sqs::Client::from_conf(sqs.build()),
            lambda: aws_sdk_lambda::Client::from_conf(lambda.build()),
            pauses: pauses.map(reading),
        }
    }

    /// Creates the [`AwsAccount`] for one batch, which stops waiting for `Invoke` calls at `invokes_end`.
    pub(crate) fn account(
        &self,
        retry_queue_url: &str,
        dead_letter_queue_url: &str,
        invokes_end: Instant,
    ) -> AwsAccount<'_> {
        let retries = Retries::of(SqsBatchCalls::ceilings());
        let left = invokes_end.saturating_duration_since(Instant::now());
        AwsAccount {
            aws: self,
            // If there is no time for an `Invoke`, the calls that hide messages have no limit of their own.
            first_hiding_ends: Cell::new(Some(invokes_end - left / 2).filter(|_| !left.is_zero())),
            invokes_end,
            retry_queue_url: retry_queue_url.into(),
            dead_letter_queue_url: dead_letter_queue_url.into(),
            hide: VisibilityChanger::new(self.sqs.clone(), retry_queue_url).retries(retries.clone()),
            // The call that sends a copy is not retried: if SQS's answer is lost, SQS may have accepted the copy, and
            // a retry would send a second one.
            retry_queue: Sender::new(self.sqs.clone(), retry_queue_url).retries(Retries::none()),
            dead_letter_queue: Sender::new(self.sqs.clone(), dead_letter_queue_url).retries(retries),
        }
    }
}

#[derive(Debug)]
pub(crate) struct AwsAccount<'c> {
    aws: &'c AwsClients,
    /// Time after which the first round of hiding starts no further calls, to leave time for the `Invoke` calls. `None`
    /// if there is no time for an `Invoke`. The first round takes the value, so later rounds find `None`.
    first_hiding_ends: Cell<Option<Instant>>,
    invokes_end: Instant,
    retry_queue_url: String,
    dead_letter_queue_url: String,
    hide: VisibilityChanger,
    retry_queue: Sender,
    dead_letter_queue: Sender,
}

impl Account for AwsAccount<'_> {
    async fn change_visibility(
        &self,
        changes: &[VisibilityChange<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        let changes = changes.iter().map(|change| Visibility {
            receipt_handle: change.record.receipt_handle.clone(),
            timeout: change.visibility_timeout,
        });
        // SQS may ask the handler to wait before it repeats a call. There must still be time for the calls that follow.
        let ends = self.first_hiding_ends.take();
        let may_start = || !past_deadline() && ends.is_none_or(|ends| Instant::now() < ends);
        let outcome = self.hide.send_while(changes, may_start).await;
        failure::answers(outcome, failure::HIDE)
    }

    async fn invoke(
        &self,
        record: &Record,
        function_arn: &str,
        payload: String,
    ) -> Result<Option<String>, InvokeFailure> {
        let trace = record.trace().map(ToOwned::to_owned);
        let call = self
            .aws
            .lambda
            .invoke()
            .function_name(function_arn)
            .invocation_type(InvocationType::Event)
            .payload(Blob::new(payload))
            .customize()
            // Without this header, the SDK would send the trace of the handler's own invocation.
            .mutate_request(move |request| {
                if let Some(trace) = &trace {
                    request.headers_mut().insert(TRACE_HEADER, trace.clone());
                }
            });
        if Instant::now() >= self.invokes_end {
            return Err(InvokeFailure::NotSent(failure::passing(
                "not started: too close to the function's deadline",
            )));
        }
        match timeout_at(self.invokes_end, call.send()).await {
            Ok(Ok(answer)) if answer.status_code() == 202 => Ok(answer.request_id().map(Into::into)),
            Ok(Ok(answer)) => {
                let cause = format!("Invoke answered {}, not 202", answer.status_code());
                Err(InvokeFailure::Unanswered(cause))
            }
            Ok(Err(error)) => Err(failure::of_invoke(&error)),
            Err(_) => Err(InvokeFailure::Unanswered("no answer before the function's deadline".into())),
        }
    }

    async fn send_dead_letters(
        &self,
        dead_lettered: &[DeadLettered<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), CallFailure>> {
        let messages = dead_lettered.iter().map(|dead_lettered| message(dead_lettered.dead_letter));
        let outcome = self.dead_letter_queue.send_while(messages, || !past_deadline()).await;
        failure::answers(outcome, failure::of_dead_letters(&self.dead_letter_queue_url))
    }

    async fn send_again(
        &self,
        moves: &[Move<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> Vec<Result<(), MoveFailure>> {
        let outcome = self.retry_queue.send_while(moves.iter().map(copy), || !past_deadline()).await;
        failure::of_moves(outcome)
    }

    async fn read_pauses(&self) -> Result<Option<String>, CallFailure> {
        let Some(PausesParameter { ssm, name }) = &self.aws.pauses else { return Ok(None) };
        match timeout(PAUSES_TIMEOUT, ssm.get_parameter().name(name).send()).await {
            Ok(Ok(answer)) => match answer.parameter.and_then(|parameter| parameter.value) {
                Some(text) => Ok(Some(text)),
                None => Err(failure::passing("the parameter that PAUSES names has no value")),
            },
            Ok(Err(error)) => match error.as_service_error() {
                // The parameter does not exist until something is first paused.
                Some(GetParameterError::ParameterNotFound(_)) => Ok(None),
                _ => Err(failure::of_pauses(&classify(&error))),
            },
            Err(_) => Err(failure::passing("the parameter that PAUSES names was not read within a second")),
        }
    }

    async fn count_in_flight(&self) -> Result<InFlightCount, CallFailure> {
        let name = QueueAttributeName::ApproximateNumberOfMessagesNotVisible;
        let call = self.aws.sqs.get_queue_attributes().queue_url(&self.retry_queue_url);
        let count = match timeout(COUNT_TIMEOUT, call.attribute_names(name.clone()).send()).await {
            Ok(Err(error)) => return Err(failure::of_count(classify(&error))),
            Ok(Ok(answer)) => answer.attributes().and_then(|attributes| attributes.get(&name)?.parse().ok()),
            Err(_) => None,
        };
        count
            .map(|in_flight| InFlightCount { in_flight, at: now() })
            .ok_or_else(|| failure::passing("no count of the messages in flight within a second"))
    }
}

#[derive(Debug)]
struct PausesParameter {
    ssm: aws_sdk_ssm::Client,
    name: String,
}

fn message(DeadLetter { body, attributes }: &DeadLetter) -> Message {
    Message { attributes: attributes.iter().map(attribute).collect(), ..Message::new(body) }
}

fn copy(moved: &Move<'_>) -> Message {
    let attributes = moved.attributes().iter().map(attribute).collect();
    let trace_header = moved.record.trace_header.clone();
    Message { attributes, trace_header, ..Message::new(&moved.record.body) }.delayed(moved.delay)
}

fn attribute(it: &Attribute) -> (String, MessageAttributeValue) {
    let value = MessageAttributeValue::builder().data_type(&*it.data_type);
    let value = if it.is_binary() {
        // Lambda encodes binary values in Base64. A value that is not Base64 is sent unchanged, so that the dead-letter
        // can still be sent.
        let bytes = base64::decode(&it.value).unwrap_or_else(|_| it.value.clone().into());
        value.binary_value(Blob::new(bytes))
    } else {
        value.string_value(&it.value)
    };
    (it.name.to_string(), value.build().expect("BUG: the data type is set"))
}

#[cfg(test)]
pub(crate) mod tests;
