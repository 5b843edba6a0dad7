//! Reads CloudWatch metrics of queues and functions.

use std::ops::Range;
use std::time::Duration;

use comeback_engine::{RETENTION, Timestamp};
use serde::Serialize;

use crate::account::Account;
use crate::aws::{MetricQuery, MetricStatistic};
use crate::deployment::Deployment;
use crate::failure::Failure;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// The period of the data points. Five-minute sums are available sooner than one-minute sums, and cost no more.
const FIVE_MINUTES: Duration = Duration::from_secs(300);

/// Metrics of the last hour, with `None` where CloudWatch has no data. CloudWatch is a few minutes behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LastHour {
    /// Messages sent to the retry queue: failed events, redriven dead-letters, and copies of moved messages.
    pub arrived: Option<f64>,
    /// Messages sent to the dead-letter queue.
    pub dead_lettered: Option<f64>,
    /// Invocations of the handler.
    pub invocations: Option<f64>,
    /// Invocations of the handler that ended in an error.
    pub errors: Option<f64>,
    /// Invocations of the handler that Lambda throttled.
    pub throttles: Option<f64>,
    /// The greatest age, in seconds, that a due message reached in the latest five minutes.
    pub oldest_due_seconds: Option<f64>,
}

impl LastHour {
    /// Reads the metrics for the hour before `now`.
    ///
    /// # Errors
    ///
    /// Fails if CloudWatch cannot be read.
    pub async fn read(account: &Account, deployment: &Deployment, now: Timestamp) -> Result<Self, Failure> {
        let retry_queue = ("AWS/SQS", "QueueName", deployment.retry_queue.name());
        let dead_letter_queue = ("AWS/SQS", "QueueName", deployment.dead_letter_queue.name());
        let handler = ("AWS/Lambda", "FunctionName", &*deployment.handler);
        let series = [
            series(retry_queue, "NumberOfMessagesSent", "Sum"),
            series(dead_letter_queue, "NumberOfMessagesSent", "Sum"),
            series(handler, "Invocations", "Sum"),
            series(handler, "Errors", "Sum"),
            series(handler, "Throttles", "Sum"),
            series(retry_queue, "ApproximateAgeOfOldestMessage", "Maximum"),
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
            // The maximum over the whole hour would still show a delay that is over.
            oldest_due_seconds: ages.first().map(|(_, age)| *age),
        })
    }
}

/// The number of a function's failed events that Lambda could not send to the failure destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The number of failed events that Lambda dropped in the last 24 hours.
    pub in_24_hours: u64,
    /// The number of failed events that Lambda dropped in the last 14 days. No event can wait longer than that.
    pub in_14_days: u64,
}

impl Dropped {
    /// Reads the number of a function's failed events that Lambda dropped.
    ///
    /// # Errors
    ///
    /// Fails if CloudWatch cannot be read.
    pub async fn read(account: &Account, function: &str, now: Timestamp) -> Result<Self, Failure> {
        let series = [series(("AWS/Lambda", "FunctionName", function), "DestinationDeliveryFailures", "Sum")];
        let [points] = points(account, series, HOUR, now.before(RETENTION)..now.saturating_add(HOUR)).await?;
        Ok(Self::of(&points, now))
    }

    fn of(points: &[(Timestamp, f64)], now: Timestamp) -> Self {
        let mut dropped = Self::default();
        for (at, sum) in points {
            dropped.in_14_days += *sum as u64;
            // A period counts if it ended within the last day.
            if now.since(at.saturating_add(HOUR)) < DAY {
                dropped.in_24_hours += *sum as u64;
            }
        }
        dropped
    }
}

/// Data points for a metric, newest first, each with the start of its period.
pub type Points = Vec<(Timestamp, f64)>;
pub(crate) const fn series<'a>(
    (namespace, dimension, value): (&'a str, &'a str, &'a str),
    name: &'a str,
    statistic: &'a str,
) -> MetricStatistic<'a> {
    MetricStatistic { namespace, dimension: (dimension, value), name, statistic }
}

pub(crate) async fn points<const N: usize>(
    account: &Account,
    series: [MetricStatistic<'_>; N],
    period: Duration,
    time: Range<Timestamp>,
) -> Result<[Points; N], Failure> {
    let of = series[0].dimension.1;
    let query = MetricQuery { series: series.to_vec(), period, since: time.start, until: time.end };
    let points = account.aws.metrics(query, of).await?;
    Ok(points.try_into().expect("BUG: an answer for each series"))
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
