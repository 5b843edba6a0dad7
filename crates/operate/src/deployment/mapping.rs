use std::time::Duration;

use aws_sdk_lambda::types::{EventSourceMappingConfiguration, FunctionResponseType};

use crate::{Account, Failure};

/// An event source mapping of the handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Lambda's id for it.
    pub uuid: String,
    /// The ARN of its queue.
    pub queue_arn: String,
    /// `Enabled`, `Disabled`, or a state on the way to one of them.
    pub state: String,
    /// The most messages of a batch.
    pub batch_size: i32,
    /// For how long it gathers a batch.
    pub window: Duration,
    /// Whether `ReportBatchItemFailures` is on.
    pub reports_failures: bool,
    /// `MaximumConcurrency`; `None` if it is not limited.
    pub maximum_concurrency: Option<i32>,
}

impl Mapping {
    /// The handler's mappings of SQS queues.
    pub(crate) async fn all(account: &Account, handler: &str) -> Result<Vec<Self>, Failure> {
        let mut pages =
            account.lambda.list_event_source_mappings().function_name(handler).into_paginator().send();
        let mut mappings = Vec::new();
        while let Some(page) = pages.next().await {
            let page =
                page.map_err(|error| Failure::of_call("lambda:ListEventSourceMappings", handler, &error))?;
            mappings.extend(page.event_source_mappings().iter().filter_map(Self::read));
        }
        Ok(mappings)
    }

    fn read(mapping: &EventSourceMappingConfiguration) -> Option<Self> {
        let queue_arn = mapping.event_source_arn().filter(|arn| arn.split(':').nth(2) == Some("sqs"))?;
        let window = mapping.maximum_batching_window_in_seconds().unwrap_or(0);
        Some(Self {
            uuid: mapping.uuid()?.to_owned(),
            queue_arn: queue_arn.to_owned(),
            state: mapping.state().unwrap_or_default().to_owned(),
            batch_size: mapping.batch_size().unwrap_or(10),
            window: Duration::from_secs(window.unsigned_abs().into()),
            reports_failures: mapping
                .function_response_types()
                .contains(&FunctionResponseType::ReportBatchItemFailures),
            maximum_concurrency: mapping.scaling_config().and_then(|scaling| scaling.maximum_concurrency()),
        })
    }
}
