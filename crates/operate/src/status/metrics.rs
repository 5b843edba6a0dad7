use std::collections::BTreeMap;

use aws_sdk_cloudwatch::primitives::DateTime;
use aws_sdk_cloudwatch::types::{Dimension, Metric, MetricDataQuery, MetricStat};
use comeback_engine::Timestamp;
use serde::Serialize;

use crate::{Account, Deployment, Failure};

const HOUR_MILLIS: u64 = 3_600_000;
/// SQS writes a point each minute. Sums of five minutes cost the same call and are there sooner.
const PERIOD_SECONDS: i32 = 300;

/// What CloudWatch counted in the last hour; `None` where it has no data. Its points come some minutes late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LastHour {
    /// Messages sent to the retry queue: failures, and moves.
    pub arrived: Option<f64>,
    /// Messages sent to the dead-letter queue.
    pub dead_lettered: Option<f64>,
    /// Invocations of the handler.
    pub invocations: Option<f64>,
    /// Errors of the handler.
    pub errors: Option<f64>,
    /// Throttled invocations of the handler.
    pub throttles: Option<f64>,
    /// The age of the oldest message that was due, at most, in seconds.
    pub oldest_due_seconds: Option<f64>,
}

impl LastHour {
    pub(super) async fn read(
        account: &Account,
        deployment: &Deployment,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let retry_queue = ("AWS/SQS", "QueueName", deployment.retry_queue.name());
        let dead_letter_queue = ("AWS/SQS", "QueueName", deployment.dead_letter_queue.name());
        let handler = ("AWS/Lambda", "FunctionName", deployment.handler.as_str());
        let queries = [
            query("arrived", retry_queue, "NumberOfMessagesSent", "Sum"),
            query("dead_lettered", dead_letter_queue, "NumberOfMessagesSent", "Sum"),
            query("invocations", handler, "Invocations", "Sum"),
            query("errors", handler, "Errors", "Sum"),
            query("throttles", handler, "Throttles", "Sum"),
            query("oldest_due", retry_queue, "ApproximateAgeOfOldestMessage", "Maximum"),
        ];
        let millis = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let call = account
            .cloudwatch
            .get_metric_data()
            .start_time(DateTime::from_millis(millis.saturating_sub_unsigned(HOUR_MILLIS)))
            .end_time(DateTime::from_millis(millis))
            .set_metric_data_queries(Some(queries.to_vec()));
        let answer = call.send().await;
        let answer = answer
            .map_err(|error| Failure::of_call("cloudwatch:GetMetricData", &deployment.handler, &error))?;
        let points: BTreeMap<&str, &[f64]> =
            answer.metric_data_results().iter().filter_map(|it| Some((it.id()?, it.values()))).collect();
        let of = |id: &str| points.get(id).copied().filter(|values| !values.is_empty());
        let sum = |id: &str| of(id).map(|values| values.iter().sum());
        Ok(Self {
            arrived: sum("arrived"),
            dead_lettered: sum("dead_lettered"),
            invocations: sum("invocations"),
            errors: sum("errors"),
            throttles: sum("throttles"),
            // The last hour's most would hide that it is over: CloudWatch gives the newest first.
            oldest_due_seconds: of("oldest_due").and_then(|values| values.first().copied()),
        })
    }
}

fn query(id: &str, of: (&str, &str, &str), metric: &str, statistic: &str) -> MetricDataQuery {
    let (namespace, dimension, value) = of;
    let dimension = Dimension::builder().name(dimension).value(value).build();
    let metric = Metric::builder().namespace(namespace).metric_name(metric).dimensions(dimension).build();
    let metric = MetricStat::builder().metric(metric).period(PERIOD_SECONDS).stat(statistic).build();
    MetricDataQuery::builder().id(id).metric_stat(metric).build()
}
