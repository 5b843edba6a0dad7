//! Simulated CloudWatch metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::Timestamp;

use crate::aws::{MetricQuery, MetricStatistic};

/// The key of a metric: its namespace, dimension name, dimension value, and name.
type Key = [String; 4];

/// The data points for all metrics.
#[derive(Clone, Debug, Default)]
pub struct Metrics(BTreeMap<Key, Vec<(Timestamp, f64)>>);

impl Metrics {
    /// Adds a data point to the metric in `series`. The statistic in `series` is ignored.
    pub fn put(&mut self, series: MetricStatistic<'_>, at: Timestamp, value: f64) {
        self.0.entry(key(series)).or_default().push((at, value));
    }

    /// Adds `n` to a metric's sum for the minute that contains `at`.
    pub(super) fn count(&mut self, series: MetricStatistic<'_>, at: Timestamp, n: f64) {
        let minute = begin(at, Duration::from_secs(60));
        let points = self.0.entry(key(series)).or_default();
        match points.last_mut().filter(|(last, _)| *last == minute) {
            Some((_, sum)) => *sum += n,
            None => points.push((minute, n)),
        }
    }

    /// Simulates `GetMetricData`: returns the data points for each series, newest first, without empty periods.
    pub(super) fn points(&self, query: &MetricQuery<'_>) -> Vec<Vec<(Timestamp, f64)>> {
        let of = |series: &MetricStatistic<'_>| {
            let mut periods: BTreeMap<Timestamp, Vec<f64>> = BTreeMap::new();
            let values = self.0.get(&key(*series)).into_iter().flatten();
            for (at, value) in values.filter(|(at, _)| (query.since..query.until).contains(at)) {
                periods.entry(begin(*at, query.period)).or_default().push(*value);
            }
            periods.into_iter().rev().map(|(at, values)| (at, statistic(series.statistic, &values))).collect()
        };
        query.series.iter().map(of).collect()
    }
}

fn key(MetricStatistic { namespace, dimension: (dimension, value), name, .. }: MetricStatistic<'_>) -> Key {
    [namespace, dimension, value, name].map(ToOwned::to_owned)
}

fn begin(at: Timestamp, period: Duration) -> Timestamp {
    let period = period.as_secs().max(1);
    Timestamp::from_secs(at.as_secs() / period * period)
}

fn statistic(name: &str, values: &[f64]) -> f64 {
    match name {
        "Sum" => values.iter().sum(),
        "Maximum" => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        other => panic!("BUG: no statistic {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_summed_up_by_period_and_the_newest_comes_first() {
        let mut metrics = Metrics::default();
        let series = |statistic| MetricStatistic {
            namespace: "AWS/SQS",
            dimension: ("QueueName", "retries"),
            name: "NumberOfMessagesSent",
            statistic,
        };
        for (seconds, value) in [(10, 1.0), (250, 2.0), (310, 4.0), (900, 8.0)] {
            metrics.put(series("Sum"), Timestamp::from_secs(seconds), value);
        }
        let query = MetricQuery {
            series: vec![series("Sum"), series("Maximum")],
            period: Duration::from_secs(300),
            since: Timestamp::from_secs(0),
            until: Timestamp::from_secs(900),
        };
        let at = Timestamp::from_secs;
        let expected = [vec![(at(300), 4.0), (at(0), 3.0)], vec![(at(300), 4.0), (at(0), 2.0)]];
        assert_eq!(metrics.points(&query), expected);
    }
}
