//! The Lambda handler, which turns each event from Lambda into a response.

use std::sync::Once;
use std::time::Duration;

use aws_lambda_events::sqs::SqsBatchResponse;
use comeback_engine::{
    BatchEvent, Environment, HANDLER_TIMEOUT, INVOKE_RESERVE, QueueArn, RESERVE, Timestamp,
};
use lambda_runtime::{Error, LambdaEvent};
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use crate::aws::AwsClients;
use crate::clock;
use crate::config::{Config, QueueId};
use crate::log;

/// A deadline at least this far in the past or in the future is implausible.
const FAR: Duration = Duration::from_secs(86_400);

#[derive(Debug)]
pub(crate) struct Handler {
    config: Config,
    aws: AwsClients,
    environment: Mutex<Environment>,
    deadline_is_unknown: Once,
}

impl Handler {
    pub(crate) fn new(config: Config, aws: AwsClients) -> Self {
        let mut environment = Environment::new(config.policies.clone());
        if config.pauses.is_some() {
            environment = environment.reading_pauses();
        }
        Self { config, aws, environment: Mutex::new(environment), deadline_is_unknown: Once::new() }
    }

    /// Handles an event from Lambda, and returns the ids of the messages that SQS must keep.
    ///
    /// # Errors
    ///
    /// Fails only if the event is not a batch. After an error, SQS delivers the whole batch again, including settled
    /// messages.
    pub(crate) async fn handle(&self, event: LambdaEvent<Box<RawValue>>) -> Result<SqsBatchResponse, Error> {
        let batch = BatchEvent::read(event.payload.get())?;
        let now = clock::now();
        let left = self.time_left(Timestamp::from_millis(event.context.deadline), now);
        if left <= RESERVE {
            tracing::error!(
                left_ms = left.as_millis(),
                remedy = "set the function's timeout to 60 s",
                "no time left for any call; the whole batch is kept"
            );
        }
        Ok(self.batch(batch, now, left).await)
    }

    /// Returns the time left until the function's timeout, but at most [`HANDLER_TIMEOUT`]. A message that is hidden
    /// before its `Invoke` call may become visible once `HANDLER_TIMEOUT` has passed.
    ///
    /// An implausible deadline, such as the one in 1970 that `cargo lambda watch` passes, is ignored.
    fn time_left(&self, deadline: Timestamp, now: Timestamp) -> Duration {
        if deadline.since(now).max(now.since(deadline)) < FAR {
            return deadline.since(now).min(HANDLER_TIMEOUT);
        }
        self.deadline_is_unknown.call_once(|| {
            tracing::warn!(%deadline, "implausible deadline; assuming {} s", HANDLER_TIMEOUT.as_secs());
        });
        HANDLER_TIMEOUT
    }

    /// Handles a batch from the retry queue, and returns the messages that SQS must keep.
    async fn batch(&self, batch: BatchEvent, now: Timestamp, left: Duration) -> SqsBatchResponse {
        let retry_queue_url = match self.retry_queue_url(batch.queue_arn.as_deref()) {
            Ok(url) => url,
            Err(problem) => {
                tracing::error!("{problem}; the whole batch is kept");
                return kept(batch.message_ids());
            }
        };
        // The async runtime's own clock. Its timers follow this clock, and tests can pause it.
        let clock = tokio::time::Instant::now;
        let invokes_end = clock() + left.saturating_sub(INVOKE_RESERVE);
        let account = self.aws.account(&retry_queue_url, &self.config.dead_letter_queue_url, invokes_end);
        let deadline = clock() + left.saturating_sub(RESERVE);
        let past_deadline = || clock() >= deadline;
        log::unreadable(&batch);
        let mut environment = self.environment.lock().await;
        let report = environment.handle(&batch, now, &past_deadline, &account).await;
        log::report(&report, clock::now());
        if let Some(metrics) = &self.config.metrics {
            log::lines(&metrics.lines(environment.policies().stack(), &report, now));
        }
        kept(report.batch_item_failures())
    }

    /// Returns the URL of the queue that the batch came from, or of the configured retry queue if `arn` is `None`.
    /// Fails if the queue cannot be the retry queue.
    fn retry_queue_url(&self, arn: Option<&str>) -> Result<String, String> {
        let source: Option<QueueArn> = arn.and_then(|arn| arn.parse().ok());
        let queue = source.as_ref().map(QueueId::of);
        if queue.is_some() && queue == QueueId::from_url(&self.config.dead_letter_queue_url) {
            return Err("the batch came from the dead-letter queue (DEAD_LETTER_QUEUE_URL)".into());
        }
        if source.as_ref().is_some_and(QueueArn::is_fifo) {
            return Err("the batch came from a FIFO queue; the retry queue must be a standard queue".into());
        }
        let configured = self.config.retry_queue_url.as_deref();
        let unknown = || match arn {
            Some(arn) => format!("eventSourceARN {arn:?} is not a queue's ARN"),
            None => "eventSourceARN is missing, and RETRY_QUEUE_URL is not set".into(),
        };
        if let (Some(url), Some(arn)) = (configured, arn)
            && QueueId::from_url(url) != queue
        {
            // A receipt handle works only on its own queue.
            tracing::warn!("the batch came from {arn}, not from the retry queue (RETRY_QUEUE_URL)");
            return source.as_ref().map(QueueArn::url).ok_or_else(unknown);
        }
        configured.map(Into::into).or_else(|| source.as_ref().map(QueueArn::url)).ok_or_else(unknown)
    }
}

fn kept<'a>(ids: impl Iterator<Item = &'a str>) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    response.set_failures(ids);
    response
}

#[cfg(test)]
mod tests;
