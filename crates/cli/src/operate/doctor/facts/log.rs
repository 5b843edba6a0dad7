//! Errors in the handler's log, and failure records that Lambda dropped.

use std::time::Duration;

use aws_sdk_cloudwatch::types::{Dimension, Metric, MetricDataQuery, MetricDataResult, MetricStat};
use aws_sdk_cloudwatchlogs::operation::filter_log_events::FilterLogEventsError;
use aws_sdk_cloudwatchlogs::types::FilteredLogEvent;
use aws_smithy_types::DateTime;
use comeback_engine::Timestamp;
use serde_json::Value;
use tokio::time::timeout;

use crate::operate::account::{Account, Failure, Or as _};

const BACK: Duration = Duration::from_secs(24 * 3_600);
/// CloudWatch searches from the oldest line on, and a busy handler writes millions a day. So the newest hour is searched
/// by itself, beside the rest, and neither for longer than this.
const NEWEST: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(4);
const ERRORS: &str = r#"{ $.level = "ERROR" }"#;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedErrors {
    pub(crate) since: Timestamp,
    pub(crate) count: u64,
    pub(crate) newest: Option<LoggedError>,
    pub(crate) all_were_read: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedError {
    pub(crate) at: Timestamp,
    pub(crate) text: String,
    pub(crate) remedy: Option<String>,
}

impl LoggedErrors {
    pub(crate) async fn read(account: &Account, group: &str, now: Timestamp) -> Result<Self, Failure> {
        let before = |back: Duration| Timestamp::from_millis(now.as_millis() - back.as_millis() as u64);
        let (mut newest, mut older) = (Self::none(before(BACK)), Self::none(before(BACK)));
        // Events of the last moments too: clocks differ.
        let end = now.saturating_add(NEWEST);
        tokio::try_join!(
            newest.search(account, group, before(NEWEST), end),
            older.search(account, group, before(BACK), before(NEWEST)),
        )?;
        Ok(newest.and(older))
    }

    const fn none(since: Timestamp) -> Self {
        Self { since, count: 0, newest: None, all_were_read: false }
    }

    async fn search(
        &mut self,
        account: &Account,
        group: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<(), Failure> {
        let call = account.logs.filter_log_events().log_group_name(group).filter_pattern(ERRORS);
        let mut pages = call
            .start_time(from.as_millis() as i64)
            .end_time(to.as_millis() as i64 - 1)
            .into_paginator()
            .send();
        let all = async {
            while let Some(page) = pages.next().await {
                match page {
                    Ok(page) => page.events().iter().for_each(|event| self.add(event)),
                    // The handler has not run yet.
                    Err(error)
                        if matches!(
                            error.as_service_error(),
                            Some(FilterLogEventsError::ResourceNotFoundException(_))
                        ) =>
                    {
                        break;
                    }
                    page => drop(page.or_failure("logs:FilterLogEvents", group)?),
                }
            }
            Ok(())
        };
        match timeout(PATIENCE, all).await {
            Ok(result) => result.map(|()| self.all_were_read = true),
            Err(_) => Ok(()),
        }
    }

    /// Counts a line if it is an ERROR. Not every server filters by the pattern.
    fn add(&mut self, event: &FilteredLogEvent) {
        let Some(error) = LoggedError::of(event) else { return };
        self.count += 1;
        if self.newest.as_ref().is_none_or(|newest| newest.at <= error.at) {
            self.newest = Some(error);
        }
    }

    fn and(self, older: Self) -> Self {
        Self {
            since: self.since,
            count: self.count + older.count,
            newest: self.newest.or(older.newest),
            all_were_read: self.all_were_read && older.all_were_read,
        }
    }
}

impl LoggedError {
    fn of(event: &FilteredLogEvent) -> Option<Self> {
        let line: Value = serde_json::from_str(event.message()?).ok()?;
        let text = |name: &str| line[name].as_str().map(ToOwned::to_owned);
        let at = u64::try_from(event.timestamp()?).map(Timestamp::from_millis).ok()?;
        let said = || text("problem").or_else(|| text("message")).unwrap_or_else(|| line.to_string());
        (line["level"] == "ERROR").then(|| Self { at, text: said(), remedy: text("remedy") })
    }
}

/// As long as an event may wait.
const RETENTION: Duration = Duration::from_secs(14 * 24 * 3_600);
const RECENT: Duration = Duration::from_secs(24 * 3_600);
const PERIOD: Duration = Duration::from_secs(3_600);
/// The most queries that `GetMetricData` takes at once.
const QUERIES: usize = 500;

/// How many records of failures Lambda dropped because it could not deliver them, by `DestinationDeliveryFailures`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) in_24_hours: u64,
    pub(crate) in_14_days: u64,
}

pub(crate) async fn dropped(
    account: &Account,
    functions: &[&str],
    now: Timestamp,
) -> Result<Vec<Dropped>, Failure> {
    let time = |time: Timestamp| DateTime::from_secs(time.as_secs() as i64);
    let start = Timestamp::from_millis(now.as_millis() - RETENTION.as_millis() as u64);
    let mut counts = vec![Dropped::default(); functions.len()];
    for (chunk, counts) in functions.chunks(QUERIES).zip(counts.chunks_mut(QUERIES)) {
        let queries = chunk.iter().enumerate().map(|(index, function)| query(index, function));
        let call = account.cloudwatch.get_metric_data().set_metric_data_queries(Some(queries.collect()));
        let mut pages =
            call.start_time(time(start)).end_time(time(now.saturating_add(PERIOD))).into_paginator().send();
        while let Some(page) = pages.next().await {
            let page = page.or_failure("cloudwatch:GetMetricData", "the functions")?;
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

    fn searched(lines: &[(i64, &str)]) -> LoggedErrors {
        let mut errors = LoggedErrors::none(Timestamp::from_secs(0));
        for (at, line) in lines {
            errors.add(&FilteredLogEvent::builder().timestamp(*at).message(*line).build());
        }
        errors
    }

    #[test]
    fn only_errors_count_and_the_newest_is_kept() {
        let errors = searched(&[
            (2, r#"{"level":"ERROR","problem":"denied","remedy":"allow it"}"#),
            (1, r#"{"level":"ERROR","message":"MAX_AGE is 30 s"}"#),
            (3, r#"{"level":"WARN","problem":"throttled"}"#),
            (4, "START RequestId: 1"),
        ]);
        let newest = LoggedError {
            at: Timestamp::from_millis(2),
            text: "denied".into(),
            remedy: Some("allow it".into()),
        };
        assert_eq!((errors.count, errors.newest), (2, Some(newest)));
    }

    #[test]
    fn an_error_says_its_problem_or_its_message() {
        let text = |line: &str| searched(&[(1, line)]).newest.unwrap().text;
        assert_eq!(text(r#"{"level":"ERROR","message":"said","problem":"why"}"#), "why");
        assert_eq!(text(r#"{"level":"ERROR","message":"said"}"#), "said");
        assert_eq!(text(r#"{"level":"ERROR","n":1}"#), r#"{"level":"ERROR","n":1}"#);
    }

    #[test]
    fn the_last_hour_comes_before_the_rest() {
        let newest = searched(&[(9, r#"{"level":"ERROR","message":"new"}"#)]);
        let older = searched(&[(5, r#"{"level":"ERROR","message":"old"}"#)]);
        let both = newest.clone().and(older.clone());
        assert_eq!((both.count, both.newest.unwrap().text.as_str()), (2, "new"));
        assert_eq!(searched(&[]).and(older).newest.unwrap().text, "old");
    }

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
