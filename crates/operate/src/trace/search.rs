use comeback_engine::Timestamp;

use crate::{Account, Failure};

/// The longest id that is searched for. A request id has 36 characters; a key that a target chose may have more.
const LONGEST: usize = 256;

/// A search in a log group for the lines that hold a term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search<'a> {
    pub(crate) group: &'a str,
    /// Empty: every line.
    pub(crate) term: &'a str,
    pub(crate) since: Timestamp,
    /// This stream, until then.
    pub(crate) stream: Option<(&'a str, Timestamp)>,
}

/// A line of a log.
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
            return Err(Failure::CouldNot(format!("there is no log group {}", self.group)));
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
        let mut call = account
            .logs
            .filter_log_events()
            .log_group_name(self.group)
            .start_time(signed(self.since))
            .set_filter_pattern(pattern(self.term)?);
        if let Some((stream, until)) = self.stream {
            call = call.log_stream_names(stream).end_time(signed(until));
        }
        let mut pages = call.into_paginator().send();
        let mut found = 0;
        while let Some(page) = pages.next().await {
            let page = match page {
                Err(error)
                    if error.as_service_error().is_some_and(|it| it.is_resource_not_found_exception()) =>
                {
                    return Ok(false);
                }
                page => page.map_err(|error| Failure::of_call("logs:FilterLogEvents", self.group, &error))?,
            };
            let matching = page.events().iter().filter_map(|event| {
                let message = event.message().filter(|message| message.contains(self.term))?;
                let at = Timestamp::from_millis(u64::try_from(event.timestamp()?).ok()?);
                Some(LogEvent {
                    at,
                    stream: event.log_stream_name()?.to_owned(),
                    message: message.to_owned(),
                })
            });
            for event in matching {
                found += 1;
                take(event);
            }
            progress(found);
        }
        Ok(true)
    }
}

/// CloudWatch's pattern for a term.
fn pattern(term: &str) -> Result<Option<String>, Failure> {
    if term.len() > LONGEST || term.contains(['"', '\\']) || term.chars().any(char::is_control) {
        return Err(Failure::Refused(format!(
            "{term:?} can be no id: it is too long, or has a quote or a backslash"
        )));
    }
    Ok((!term.is_empty()).then(|| format!("\"{term}\"")))
}

fn signed(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
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
}
