use std::time::Duration;

use aws_sdk_cloudwatch::types::{Dimension, Metric, MetricDataQuery, MetricDataResult, MetricStat};
use aws_smithy_types::DateTime;
use comeback_engine::Timestamp;

use crate::{Account, Failure};

/// As long as an event may wait.
const BACK: Duration = Duration::from_secs(14 * 24 * 3_600);
const RECENT: Duration = Duration::from_secs(24 * 3_600);
const PERIOD: Duration = Duration::from_secs(3_600);
/// The most queries that `GetMetricData` takes at once.
const QUERIES: usize = 500;

/// How many records of failures Lambda dropped because it could not deliver them, by `DestinationDeliveryFailures`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::doctor) struct Dropped {
    pub(in crate::doctor) in_24_hours: u64,
    pub(in crate::doctor) in_14_days: u64,
}

/// One count for each of these functions.
pub(super) async fn dropped(
    account: &Account,
    functions: &[&str],
    now: Timestamp,
) -> Result<Vec<Dropped>, Failure> {
    let time = |time: Timestamp| DateTime::from_secs(time.as_secs() as i64);
    let start = Timestamp::from_millis(now.as_millis() - BACK.as_millis() as u64);
    let mut counts = vec![Dropped::default(); functions.len()];
    for (chunk, counts) in functions.chunks(QUERIES).zip(counts.chunks_mut(QUERIES)) {
        let queries = chunk.iter().enumerate().map(|(index, function)| query(index, function));
        let call = account.cloudwatch.get_metric_data().set_metric_data_queries(Some(queries.collect()));
        let mut pages =
            call.start_time(time(start)).end_time(time(now.saturating_add(PERIOD))).into_paginator().send();
        while let Some(page) = pages.next().await {
            let page =
                page.map_err(|error| Failure::of_call("cloudwatch:GetMetricData", "the functions", &error))?;
            for result in page.metric_data_results() {
                if let Some(count) = result.id().and_then(index_of).and_then(|index| counts.get_mut(index)) {
                    count.add(result, now);
                }
            }
        }
    }
    Ok(counts)
}

impl Dropped {
    fn add(&mut self, result: &MetricDataResult, now: Timestamp) {
        for (time, sum) in result.timestamps().iter().zip(result.values()) {
            let at = Timestamp::from_secs(u64::try_from(time.secs()).unwrap_or_default());
            self.in_14_days += *sum as u64;
            // A period counts as recent if its last moment is.
            if now.since(at.saturating_add(PERIOD)) < RECENT {
                self.in_24_hours += *sum as u64;
            }
        }
    }
}

/// An id begins with a small letter.
fn query(index: usize, function: &str) -> MetricDataQuery {
    let metric = Metric::builder()
        .namespace("AWS/Lambda")
        .metric_name("DestinationDeliveryFailures")
        .dimensions(Dimension::builder().name("FunctionName").value(function).build())
        .build();
    let stat = MetricStat::builder().metric(metric).period(PERIOD.as_secs() as i32).stat("Sum").build();
    MetricDataQuery::builder().id(format!("f{index}")).metric_stat(stat).build()
}

fn index_of(id: &str) -> Option<usize> {
    id.strip_prefix('f')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_day_is_counted_apart() {
        let now = Timestamp::from_secs(100 * 24 * 3_600);
        let hours_ago = |hours: i64| DateTime::from_secs((100 * 24 - hours) * 3_600);
        let result = MetricDataResult::builder().set_timestamps(Some([1, 24, 26].map(hours_ago).to_vec()));
        let mut count = Dropped::default();
        count.add(&result.set_values(Some(vec![1.0, 2.0, 4.0])).build(), now);
        assert_eq!(count, Dropped { in_24_hours: 3, in_14_days: 7 });
    }

    #[test]
    fn a_query_is_found_again_by_its_id() {
        for index in [0, 1, 499] {
            assert_eq!(index_of(query(index, "orders").id().unwrap_or_default()), Some(index));
        }
        assert_eq!(index_of("m1"), None);
    }
}
