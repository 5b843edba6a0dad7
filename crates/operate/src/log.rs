//! Searches CloudWatch Logs, and reads the handler's lines about messages.

use comeback_engine::{LogLine, Timestamp};

use crate::account::Account;
use crate::aws::{LogEvent, LogFilter};
use crate::failure::Failure;

/// The maximum length of a search term, in bytes. A term may be an event key that a target function chose.
const LONGEST: usize = 256;

/// The log levels at which the handler writes no INFO lines.
pub(crate) const HIDING_INFO: [&str; 3] = ["WARN", "ERROR", "FATAL"];

impl<'a> LogFilter<'a> {
    pub(crate) fn since(group: &'a str, since: Timestamp) -> Self {
        Self { group, pattern: None, since, until: None, stream: None }
    }

    /// Selects only the lines that contain a term, or every line if the term is empty.
    pub(crate) fn containing(self, term: &str) -> Result<Self, Failure> {
        Ok(Self { pattern: pattern(term)?, ..self })
    }

    /// Passes each page of lines to `take`, and returns true if the log group exists. The caller must check each
    /// line, because some CloudWatch emulators ignore some filter patterns.
    pub(crate) async fn pages(
        &self,
        account: &Account,
        mut take: impl FnMut(Vec<LogEvent>),
    ) -> Result<bool, Failure> {
        let mut token = None;
        loop {
            let Some(page) = account.aws.log_page(self, token).await? else { return Ok(false) };
            take(page.events);
            token = page.next;
            if token.is_none() {
                return Ok(true);
            }
        }
    }
}

fn pattern(term: &str) -> Result<Option<String>, Failure> {
    if term.len() > LONGEST || term.contains(['"', '\\']) || term.chars().any(char::is_control) {
        return Err(Failure::refused(format!(
            "{term:?} is not a valid id: it is too long, or contains a quote or a backslash"
        )));
    }
    Ok((!term.is_empty()).then(|| format!("\"{term}\"")))
}

/// Parses a line of the handler's log if the line is about an event.
pub(crate) fn event_line(text: &str) -> Option<LogLine<'static>> {
    LogLine::read(text).ok().filter(|line| line.event.is_some())
}

/// Returns true if the log line is about the message, the event or the invocation with this id. CloudWatch's filter
/// also finds lines that contain the id in other fields.
pub(crate) fn names(line: &LogLine<'_>, id: &str) -> bool {
    let event = line.event.as_ref();
    let failed = event.and_then(|event| event.request_id.as_deref());
    let invoked = line.what.invoke_request_id();
    let ids = [Some(&*line.message_id), event.map(|event| &*event.key), failed, invoked];
    ids.contains(&Some(id))
}

#[cfg(test)]
pub(crate) use tests::test_line;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A log line about the first message of event `k-1`. `fields` replaces some of its fields; `null` removes a field.
    pub(crate) fn test_line(fields: serde_json::Value) -> LogLine<'static> {
        let mut line = serde_json::json!({
            "timestamp": "2026-09-14T15:46:54.145Z", "level": "INFO", "v": 1, "message_id": "m-1", "key": "k-1",
            "target": "arn:orders", "retry": 1, "request_id": "r-0", "error_type": "TargetDown",
            "first_failure": "1970-01-01T00:01:40Z",
        });
        if let (Some(known), serde_json::Value::Object(fields)) = (line.as_object_mut(), fields) {
            known.extend(fields);
            known.retain(|_, value| !value.is_null());
        }
        LogLine::read(&line.to_string()).unwrap_or_else(|why| panic!("{why:?}: {line}"))
    }

    const NOW: &str = "2026-09-14T15:46:54.145Z";

    #[test]
    fn a_term_is_quoted_and_cannot_end_its_quotes() {
        assert_eq!(pattern("a-1:b"), Ok(Some("\"a-1:b\"".into())));
        assert_eq!(pattern(""), Ok(None));
        for refused in ["a\" ?b", "a\\", "a\nb", &"a".repeat(257)] {
            assert!(matches!(pattern(refused), Err(Failure::Refused(_))), "{refused}");
        }
    }

    #[test]
    fn a_line_is_found_by_each_of_its_ids() {
        let line = test_line(json!({"action": "reinvoke", "due": NOW, "invoke_request_id": "r-1"}));
        for id in ["m-1", "k-1", "r-0", "r-1"] {
            assert!(names(&line, id), "{id}");
        }
        assert!(!names(&line, "r-2") && !names(&line, ""));
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(event_line(&text), Some(line));
        assert_eq!(event_line(&text.replace(r#""key":"k-1","#, "")), None);
        assert_eq!(event_line("START RequestId: k-1"), None);
    }
}
