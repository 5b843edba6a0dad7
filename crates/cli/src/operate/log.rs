//! Searching CloudWatch Logs, and the handler's lines about messages.

use comeback_engine::Timestamp;
use serde::{Deserialize, Deserializer};

use crate::account::{Account, Failure, Or as _};

/// The longest id to search for. A request id has 36 characters; a key that a target chose may have more.
const LONGEST: usize = 256;

/// The log levels that hide lines of level INFO.
pub(crate) const HIDING_INFO: [&str; 3] = ["WARN", "ERROR", "FATAL"];

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
    /// All lines that match, in order of time. CloudWatch looks for the term, and so do we: not every server that
    /// stands in for it does.
    pub(crate) async fn run(
        &self,
        account: &Account,
        progress: &dyn Fn(usize),
    ) -> Result<Vec<LogEvent>, Failure> {
        let mut events = Vec::new();
        if !self.each(account, progress, |event| events.push(event)).await? {
            return Err(Failure::CouldNot(format!("log group {} does not exist", self.group)));
        }
        events.sort_by_key(|event| event.at);
        Ok(events)
    }

    /// Each line that matches, as it comes. Gives whether there is such a log group.
    pub(crate) async fn each(
        &self,
        account: &Account,
        progress: &dyn Fn(usize),
        mut take: impl FnMut(LogEvent),
    ) -> Result<bool, Failure> {
        let mut found = 0;
        let mut look = |event: LogEvent| {
            if event.message.contains(self.term) {
                found += 1;
                progress(found);
                take(event);
            }
        };
        let look_at = |page: Vec<LogEvent>| page.into_iter().for_each(&mut look);
        self.pages_by_pattern(account, pattern(self.term)?, look_at).await
    }

    /// Each page of lines that one of CloudWatch's filter patterns lets pass, instead of a term, as it comes: many are empty.
    /// Not every server that stands in for CloudWatch knows every pattern. Gives whether there is such a log group.
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
            "{term:?} is not a valid id: it is too long, or has a quote or a backslash"
        )));
    }
    Ok((!term.is_empty()).then(|| format!("\"{term}\"")))
}

/// A line that the handler writes about a message, as far as the commands need it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HandlerLine {
    #[serde(deserialize_with = "time")]
    pub(crate) timestamp: Option<Timestamp>,
    pub(crate) key: String,
    pub(crate) target: String,
    pub(crate) retry: u64,
    pub(crate) action: String,
    pub(crate) message_id: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) invoke_request_id: Option<String>,
    #[serde(deserialize_with = "time")]
    pub(crate) first_failure: Option<Timestamp>,
    pub(crate) error_type: Option<String>,
    /// The entry of `POLICIES` that counted for the event, by its pattern.
    pub(crate) policy: Option<String>,
    #[serde(deserialize_with = "time")]
    pub(crate) due: Option<Timestamp>,
    /// What gave the due time: `policy`, `retry_after`, `pause` or `retry_now`. Older handlers do not say it.
    pub(crate) due_by: Option<String>,
    pub(crate) delay: Option<u64>,
    #[serde(deserialize_with = "time")]
    pub(crate) not_before: Option<Timestamp>,
    #[serde(deserialize_with = "time")]
    pub(crate) retry_after: Option<Timestamp>,
    #[serde(deserialize_with = "time")]
    pub(crate) asked_at: Option<Timestamp>,
    pub(crate) asked_by: Option<String>,
    #[serde(deserialize_with = "time")]
    pub(crate) otherwise_due: Option<Timestamp>,
    pub(crate) reason: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) problem: Option<String>,
    pub(crate) remedy: Option<String>,
}

impl HandlerLine {
    /// Reads a line; `None` if it is not about an event.
    pub(crate) fn read(text: &str) -> Option<Self> {
        Self::read_any(text).filter(|line| !line.key.is_empty())
    }

    /// Reads a line that may have no key, as an older handler's.
    pub(crate) fn read_any(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|line: &Self| line.timestamp.is_some())
    }

    /// Whether one of its ids is this one. CloudWatch's own filter may let other lines pass.
    pub(crate) fn names(&self, id: &str) -> bool {
        let ids = [&self.message_id, &self.request_id, &self.invoke_request_id];
        self.key == id || ids.into_iter().any(|it| it.as_deref() == Some(id))
    }

    pub(crate) fn at(&self) -> Timestamp {
        self.timestamp.expect("BUG: a line without a time was read")
    }
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.as_deref().and_then(Timestamp::from_rfc3339))
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_term_is_quoted_and_cannot_end_its_quotes() {
        assert_eq!(pattern("a-1:b"), Ok(Some("\"a-1:b\"".into())));
        assert_eq!(pattern(""), Ok(None));
        for refused in ["a\" ?b", "a\\", "a\nb", &"a".repeat(257)] {
            assert!(matches!(pattern(refused), Err(Failure::Refused(_))), "{refused}");
        }
    }

    #[test]
    fn a_line_without_an_event_is_none() {
        for text in [
            "START RequestId: k-1",
            "{}",
            r#"{"timestamp":"2026-09-14T15:46:54.145Z","level":"INFO","action":"move","moved":3}"#,
            r#"{"key":"k-1"}"#,
            r#"{"timestamp":"yesterday","key":"k-1"}"#,
            r#"["k-1"]"#,
        ] {
            assert_eq!(HandlerLine::read(text), None, "{text}");
        }
        let line = r#"{"timestamp":"2026-09-14T15:46:54.145Z","key":"k-1","request_id":null,"invoke_request_id":"r-2","new":1}"#;
        let line = HandlerLine::read(line).unwrap();
        assert!(line.names("k-1") && line.names("r-2") && !line.names("r-1") && !line.names(""));
    }
}
