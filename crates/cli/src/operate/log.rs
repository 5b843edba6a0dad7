//! Searching CloudWatch Logs.

use comeback_engine::Timestamp;

use crate::account::{Account, Failure, Or as _};

/// The longest id to search for. A request id has 36 characters; a key that a target chose may have more.
const LONGEST: usize = 256;

/// A search in a log group for the lines that hold a term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search<'a> {
    pub(crate) group: &'a str,
    /// Empty: every line.
    pub(crate) term: &'a str,
    pub(crate) since: Timestamp,
    /// The time of the last line; `None`: no end.
    pub(crate) until: Option<Timestamp>,
    pub(crate) stream: Option<&'a str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogEvent {
    pub(crate) at: Timestamp,
    pub(crate) stream: String,
    pub(crate) message: String,
}

impl Search<'_> {
    /// Each line that matches, as it comes. Returns whether there is such a log group.
    pub(crate) async fn each(
        &self,
        account: &Account,
        progress: &dyn Fn(usize),
        mut take: impl FnMut(LogEvent),
    ) -> Result<bool, Failure> {
        let mut found = 0;
        let take_page = |page: Vec<LogEvent>| {
            for event in page.into_iter().filter(|event| event.message.contains(self.term)) {
                found += 1;
                progress(found);
                take(event);
            }
        };
        self.pages_by_pattern(account, pattern(self.term)?, take_page).await
    }

    /// Each page of lines that one of CloudWatch's filter patterns lets pass, instead of a term, as it comes: many are empty.
    /// Not every server that stands in for CloudWatch knows every pattern. Returns whether there is such a log group.
    pub(crate) async fn pages_by_pattern(
        &self,
        account: &Account,
        pattern: Option<String>,
        mut take: impl FnMut(Vec<LogEvent>),
    ) -> Result<bool, Failure> {
        let time = |time: Timestamp| time.as_millis() as i64;
        let call = account
            .logs
            .filter_log_events()
            .log_group_name(self.group)
            .set_log_stream_names(self.stream.map(|stream| vec![stream.to_owned()]))
            .start_time(time(self.since))
            .set_end_time(self.until.map(time))
            .set_filter_pattern(pattern);
        let mut pages = call.into_paginator().send();
        while let Some(page) = pages.next().await {
            let page = match page {
                Err(error)
                    if error.as_service_error().is_some_and(|it| it.is_resource_not_found_exception()) =>
                {
                    return Ok(false);
                }
                page => page.or_failure("logs:FilterLogEvents", self.group)?,
            };
            let events = page.events.unwrap_or_default().into_iter().filter_map(|event| {
                let at = Timestamp::from_millis(u64::try_from(event.timestamp?).ok()?);
                Some(LogEvent { at, stream: event.log_stream_name?, message: event.message? })
            });
            take(events.collect());
        }
        Ok(true)
    }
}

fn pattern(term: &str) -> Result<Option<String>, Failure> {
    if term.len() > LONGEST || term.contains(['"', '\\']) || term.chars().any(char::is_control) {
        return Err(Failure::Refused(format!(
            "{term:?} is not a valid id: it is too long, or contains a quote or a backslash"
        )));
    }
    Ok((!term.is_empty()).then(|| format!("\"{term}\"")))
}

#[cfg(test)]
pub(crate) mod tests {
    use comeback_engine::LogLine;
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-09-14T15:46:54.145Z";

    /// A line about the first message of event `k-1`, with these fields besides or instead.
    pub(crate) fn test_line(fields: Value) -> LogLine<'static> {
        let mut line = json!({
            "timestamp": NOW, "level": "INFO", "v": 1, "message_id": "m-1", "key": "k-1", "target": "arn:orders",
            "retry": 1, "request_id": "r-0", "error_type": "TargetDown", "first_failure": "1970-01-01T00:01:40Z",
        });
        let known = line.as_object_mut().unwrap();
        known.extend(fields.as_object().unwrap().clone());
        known.retain(|_, value| !value.is_null());
        LogLine::read(&line.to_string()).unwrap_or_else(|why| panic!("{why:?}: {line}"))
    }

    #[test]
    fn a_term_is_quoted_and_cannot_end_its_quotes() {
        assert_eq!(pattern("a-1:b"), Ok(Some("\"a-1:b\"".into())));
        assert_eq!(pattern(""), Ok(None));
        for refused in ["a\" ?b", "a\\", "a\nb", &"a".repeat(257)] {
            assert!(matches!(pattern(refused), Err(Failure::Refused(_))), "{refused}");
        }
    }
}
