use std::time::Duration;

use aws_sdk_cloudwatchlogs::operation::filter_log_events::FilterLogEventsError;
use aws_sdk_cloudwatchlogs::types::FilteredLogEvent;
use comeback_engine::Timestamp;
use serde_json::Value;
use tokio::time::timeout;

use crate::{Account, Failure};

/// How far back errors are looked for.
const BACK: Duration = Duration::from_secs(24 * 3_600);
/// CloudWatch searches from the oldest line on, and a busy handler writes millions a day. So the newest hour is searched
/// by itself, beside the rest, and neither for longer than this.
const NEWEST: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(4);
const ERRORS: &str = r#"{ $.level = "ERROR" }"#;

/// The ERRORs of the handler's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::doctor) struct LoggedErrors {
    pub(in crate::doctor) since: Timestamp,
    pub(in crate::doctor) count: u64,
    pub(in crate::doctor) newest: Option<LoggedError>,
    /// Whether there was time to search all of it.
    pub(in crate::doctor) all_were_read: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::doctor) struct LoggedError {
    pub(in crate::doctor) at: Timestamp,
    pub(in crate::doctor) text: String,
    /// The handler's own advice.
    pub(in crate::doctor) remedy: Option<String>,
}

impl LoggedErrors {
    pub(super) async fn read(account: &Account, group: &str, now: Timestamp) -> Result<Self, Failure> {
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
                    Err(error) => return Err(Failure::of_call("logs:FilterLogEvents", group, &error)),
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
}
