//! What CloudWatch's metrics count.

use std::array;
use std::ops::Range;
use std::time::Duration;

use aws_sdk_cloudwatch::primitives::DateTime;
use aws_sdk_cloudwatch::types::{Dimension, Metric, MetricDataQuery, MetricStat};
use comeback_engine::{RETENTION, Timestamp};
use serde::Serialize;

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::Deployment;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// SQS writes a point each minute. Sums of five minutes cost the same call and are there sooner.
const FIVE_MINUTES: Duration = Duration::from_secs(300);

/// What CloudWatch counted in the last hour; `None` where it has no data. Its points come some minutes late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct LastHour {
    /// Messages sent to the retry queue: failures, and moves.
    pub(crate) arrived: Option<f64>,
    pub(crate) dead_lettered: Option<f64>,
    pub(crate) invocations: Option<f64>,
    pub(crate) errors: Option<f64>,
    pub(crate) throttles: Option<f64>,
    /// The age of the oldest message that was due, at most, in seconds.
    pub(crate) oldest_due_seconds: Option<f64>,
}

impl LastHour {
    pub(crate) async fn read(
        account: &Account,
        deployment: &Deployment,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let retry_queue = ("AWS/SQS", "QueueName", deployment.retry_queue.name());
        let dead_letter_queue = ("AWS/SQS", "QueueName", deployment.dead_letter_queue.name());
        let handler = ("AWS/Lambda", "FunctionName", &*deployment.handler);
        let series = [
            (retry_queue, "NumberOfMessagesSent", "Sum"),
            (dead_letter_queue, "NumberOfMessagesSent", "Sum"),
            (handler, "Invocations", "Sum"),
            (handler, "Errors", "Sum"),
            (handler, "Throttles", "Sum"),
            (retry_queue, "ApproximateAgeOfOldestMessage", "Maximum"),
        ];
        let [sent, dead, invocations, errors, throttles, ages] =
            points(account, series, FIVE_MINUTES, now.before(HOUR)..now).await?;
        let sum = |points: Points| (!points.is_empty()).then(|| points.iter().map(|(_, count)| count).sum());
        Ok(Self {
            arrived: sum(sent),
            dead_lettered: sum(dead),
            invocations: sum(invocations),
            errors: sum(errors),
            throttles: sum(throttles),
            // The last hour's most would hide that it is over.
            oldest_due_seconds: ages.first().map(|(_, age)| *age),
        })
    }
}

/// How many records of failures Lambda dropped because it could not deliver them, by `DestinationDeliveryFailures`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) in_24_hours: u64,
    /// As long as an event may wait.
    pub(crate) in_14_days: u64,
}

impl Dropped {
    pub(crate) async fn read(account: &Account, function: &str, now: Timestamp) -> Result<Self, Failure> {
        let series = [(("AWS/Lambda", "FunctionName", function), "DestinationDeliveryFailures", "Sum")];
        let [points] = points(account, series, HOUR, now.before(RETENTION)..now.saturating_add(HOUR)).await?;
        Ok(Self::of(&points, now))
    }

    fn of(points: &[(Timestamp, f64)], now: Timestamp) -> Self {
        let mut dropped = Self::default();
        for (at, sum) in points {
            dropped.in_14_days += *sum as u64;
            // A period counts as recent if its last moment is.
            if now.since(at.saturating_add(HOUR)) < DAY {
                dropped.in_24_hours += *sum as u64;
            }
        }
        dropped
    }
}

/// A point for each period, the newest first.
pub(crate) type Points = Vec<(Timestamp, f64)>;
/// Namespace, dimension and its value; metric; statistic.
pub(crate) type Series<'a> = ((&'a str, &'a str, &'a str), &'a str, &'a str);

/// Reads several series in one call.
pub(crate) async fn points<const N: usize>(
    account: &Account,
    series: [Series<'_>; N],
    period: Duration,
    time: Range<Timestamp>,
) -> Result<[Points; N], Failure> {
    // An id begins with a small letter.
    let id = |index: usize| format!("m{index}");
    let queries =
        series.iter().enumerate().map(|(index, ((namespace, dimension, value), name, statistic))| {
            let dimension = Dimension::builder().name(*dimension).value(*value).build();
            let metric =
                Metric::builder().namespace(*namespace).metric_name(*name).dimensions(dimension).build();
            let stat = MetricStat::builder().metric(metric).period(period.as_secs() as i32).stat(*statistic);
            MetricDataQuery::builder().id(id(index)).metric_stat(stat.build()).build()
        });
    let at = |time: Timestamp| DateTime::from_millis(time.as_millis() as i64);
    let call = account.cloudwatch.get_metric_data().set_metric_data_queries(Some(queries.collect()));
    let answer = call.start_time(at(time.start)).end_time(at(time.end)).send().await;
    let answer = answer.or_failure("cloudwatch:GetMetricData", series[0].0.2)?;
    Ok(array::from_fn(|index| {
        let result = answer.metric_data_results().iter().find(|it| it.id() == Some(&*id(index)));
        let points = result.into_iter().flat_map(|it| it.timestamps().iter().zip(it.values()));
        points.map(|(at, value)| (Timestamp::from_secs(at.secs().unsigned_abs()), *value)).collect()
    }))
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn the_last_day_is_counted_apart() {
        let now = Timestamp::from_secs(100 * 24 * 3_600);
        let points = [(1, 1.0), (24, 2.0), (26, 4.0)].map(|(hours, sum)| (now.before(hours * HOUR), sum));
        assert_eq!(Dropped::of(&points, now), Dropped { in_24_hours: 3, in_14_days: 7 });
    }
}
