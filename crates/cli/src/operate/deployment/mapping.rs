//! An event source mapping: what feeds a function from a queue.

use std::time::Duration;

use aws_sdk_lambda::types::{EventSourceMappingConfiguration, FunctionResponseType};
use comeback_engine::QueueArn;

use crate::account::{Account, Failure, Or as _};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) uuid: String,
    pub(crate) queue_arn: String,
    /// `Enabled`, `Disabled`, or a state on the way to one of them.
    pub(crate) state: String,
    pub(crate) batch_size: i32,
    pub(crate) window: Duration,
    /// Whether `ReportBatchItemFailures` is on.
    pub(crate) reports_failures: bool,
    /// The most invocations of the handler at a time; `None` without a limit.
    pub(crate) maximum_concurrency: Option<i32>,
    /// `None` unless the mapping is in provisioned mode, which has no `MaximumConcurrency` of its own.
    pub(crate) maximum_pollers: Option<i32>,
}

/// Lambda's limit of concurrent invocations by one provisioned poller.
pub(crate) const INVOCATIONS_OF_A_POLLER: u16 = 10;

/// Lambda's default for a mapping that names only its fewest provisioned pollers.
const DEFAULT_MAXIMUM_POLLERS: i32 = 200;

impl Mapping {
    /// A function's mappings of SQS queues.
    pub(crate) async fn all(account: &Account, function: &str) -> Result<Vec<Self>, Failure> {
        let pages = account.lambda.list_event_source_mappings().function_name(function).into_paginator();
        let mappings = pages.items().send().try_collect().await;
        let mappings = mappings.or_failure("lambda:ListEventSourceMappings", function)?;
        Ok(mappings.iter().filter_map(Self::read).collect())
    }

    fn read(mapping: &EventSourceMappingConfiguration) -> Option<Self> {
        let queue_arn = mapping.event_source_arn().filter(|arn| arn.parse::<QueueArn>().is_ok())?;
        let window = mapping.maximum_batching_window_in_seconds().unwrap_or(0);
        let maximum_pollers = mapping.provisioned_poller_config().and_then(|config| {
            config.maximum_pollers().or(config.minimum_pollers().and(Some(DEFAULT_MAXIMUM_POLLERS)))
        });
        let maximum_concurrency = mapping.scaling_config().and_then(|scaling| scaling.maximum_concurrency());
        Some(Self {
            uuid: mapping.uuid()?.to_owned(),
            queue_arn: queue_arn.to_owned(),
            state: mapping.state().unwrap_or_default().to_owned(),
            batch_size: mapping.batch_size().unwrap_or(10),
            window: Duration::from_secs(window.unsigned_abs().into()),
            reports_failures: mapping
                .function_response_types()
                .contains(&FunctionResponseType::ReportBatchItemFailures),
            maximum_concurrency: maximum_concurrency
                .or_else(|| Some(maximum_pollers?.saturating_mul(INVOCATIONS_OF_A_POLLER.into()))),
            maximum_pollers,
        })
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_lambda::types::{ProvisionedPollerConfig, ScalingConfig};

    use super::*;
    use crate::operate::deployment::queue::Queue;

    #[test]
    fn each_provisioned_poller_makes_ten_invocations_at_a_time() {
        let mapping =
            EventSourceMappingConfiguration::builder().uuid("1").event_source_arn(Queue::sample("q").arn);
        let limits = |mapping: EventSourceMappingConfiguration| {
            let mapping = Mapping::read(&mapping).unwrap();
            (mapping.maximum_concurrency, mapping.maximum_pollers)
        };
        assert_eq!(limits(mapping.clone().build()), (None, None));
        let scaling = ScalingConfig::builder().maximum_concurrency(7).build();
        assert_eq!(limits(mapping.clone().scaling_config(scaling).build()), (Some(7), None));
        let pollers = ProvisionedPollerConfig::builder().minimum_pollers(2).maximum_pollers(100).build();
        assert_eq!(
            limits(mapping.clone().provisioned_poller_config(pollers).build()),
            (Some(1_000), Some(100))
        );
        let fewest = ProvisionedPollerConfig::builder().minimum_pollers(2).build();
        let default = limits(mapping.provisioned_poller_config(fewest).build());
        assert_eq!(default, (Some(2_000), Some(200)), "Lambda's default");
    }
}
