//! Simulated CloudWatch log groups, and the filter patterns that search them.

use std::collections::BTreeSet;

use comeback_engine::Timestamp;
use serde_json::Value;
use wildmatch::WildMatchPattern;

use crate::aws::{self, LogEvent, LogFilter, LogPage};

/// The number of lines that a search reads for one page.
const LINES_OF_A_PAGE: usize = 1_000;

/// A log group and its lines.
#[derive(Clone, Debug)]
pub struct LogGroup {
    /// The group's retention period and class.
    pub settings: aws::LogGroup,
    /// The lines, in the order they were written, including those older than the retention period.
    pub lines: Vec<LogEvent>,
    /// The names of the group's log streams.
    pub streams: BTreeSet<String>,
}

impl Default for LogGroup {
    fn default() -> Self {
        let settings = aws::LogGroup { retention: None, class: Some("STANDARD".into()) };
        Self { settings, lines: Vec::new(), streams: BTreeSet::new() }
    }
}

impl LogGroup {
    /// Adds a line, and creates its stream if necessary.
    pub fn write(&mut self, at: Timestamp, stream: &str, message: impl Into<String>) {
        if !self.streams.contains(stream) {
            self.streams.insert(stream.to_owned());
        }
        self.lines.push(LogEvent { at, stream: stream.to_owned(), message: message.into() });
    }

    /// Simulates `FilterLogEvents`: returns one page of matching lines, or fails with CloudWatch's error code and
    /// message.
    pub(super) fn page(
        &self,
        now: Timestamp,
        filter: &LogFilter<'_>,
        token: Option<&str>,
    ) -> Result<LogPage, String> {
        if let Some(class) = self.settings.class.as_deref().filter(|&class| class != "STANDARD") {
            return Err(format!(
                "InvalidOperationException: a log group of class {class} cannot be searched"
            ));
        }
        let refused = |why: &str| format!("InvalidParameterException: {why}");
        let pattern = Pattern::parse(filter.pattern.as_deref().unwrap_or_default());
        let pattern = pattern.ok_or_else(|| refused("Invalid filter pattern"))?;
        let from: usize = match token {
            None => 0,
            Some(token) => token.parse().map_err(|_| refused("The specified nextToken is invalid."))?,
        };
        let kept_since = self.settings.retention.map_or(filter.since, |it| filter.since.max(now.before(it)));
        let matches = |line: &&LogEvent| {
            line.at >= kept_since
                && filter.until.is_none_or(|until| line.at <= until)
                && filter.stream.is_none_or(|stream| line.stream == stream)
                && pattern.matches(&line.message)
        };
        let to = from.saturating_add(LINES_OF_A_PAGE);
        let looked_at = self.lines.iter().skip(from).take(to - from);
        let next = (to < self.lines.len()).then(|| to.to_string());
        Ok(LogPage { events: looked_at.filter(matches).cloned().collect(), next })
    }
}

/// A CloudWatch filter pattern, in one of the two forms that Comeback uses.
#[derive(Debug, PartialEq)]
enum Pattern {
    /// Matches a line that contains all of these terms.
    Terms(Vec<String>),
    /// Matches a line that is a JSON object and passes this test.
    Json(Test),
}

#[derive(Debug, PartialEq)]
enum Test {
    All(Vec<Self>),
    Any(Vec<Self>),
    Field { path: Vec<String>, is: bool, value: String },
}

impl Pattern {
    /// Parses a CloudWatch Logs filter pattern. Returns `None` if the pattern is invalid or has a form that Comeback
    /// never uses.
    fn parse(text: &str) -> Option<Self> {
        let mut rest = Rest(text.trim());
        if !rest.takes("{") {
            let mut terms = Vec::new();
            while !rest.0.is_empty() {
                terms.push(if rest.0.starts_with('"') { rest.quoted()? } else { rest.word()? });
                rest.0 = rest.0.trim_start();
            }
            return Some(Self::Terms(terms));
        }
        let test = rest.any()?;
        (rest.takes("}") && rest.0.is_empty()).then_some(Self::Json(test))
    }

    fn matches(&self, line: &str) -> bool {
        match self {
            Self::Terms(terms) => terms.iter().all(|term| line.contains(term)),
            Self::Json(test) => serde_json::from_str(line).is_ok_and(|line| test.holds(&line)),
        }
    }
}

impl Test {
    fn holds(&self, line: &Value) -> bool {
        match self {
            Self::All(tests) => tests.iter().all(|test| test.holds(line)),
            Self::Any(tests) => tests.iter().any(|test| test.holds(line)),
            Self::Field { path, is, value } => {
                let found = path.iter().try_fold(line, |line, name| line.get(name));
                let text = match found {
                    Some(Value::String(text)) => text.clone(),
                    Some(other @ (Value::Number(_) | Value::Bool(_))) => other.to_string(),
                    _ => return false,
                };
                WildMatchPattern::<'*', '\0'>::new(value).matches(&text) == *is
            }
        }
    }
}

struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn takes(&mut self, token: &str) -> bool {
        let after = self.0.trim_start().strip_prefix(token);
        self.0 = after.map_or(self.0, str::trim_start);
        after.is_some()
    }

    fn any(&mut self) -> Option<Test> {
        let mut tests = vec![self.all()?];
        while self.takes("||") {
            tests.push(self.all()?);
        }
        Some(Test::Any(tests))
    }

    fn all(&mut self) -> Option<Test> {
        let mut tests = vec![self.one()?];
        while self.takes("&&") {
            tests.push(self.one()?);
        }
        Some(Test::All(tests))
    }

    fn one(&mut self) -> Option<Test> {
        if self.takes("(") {
            let test = self.any()?;
            return self.takes(")").then_some(test);
        }
        if !self.takes("$.") {
            return None;
        }
        let path = self.word()?.split('.').map(ToOwned::to_owned).collect();
        let is = if self.takes("!=") { false } else { self.takes("=").then_some(true)? };
        let value = if self.0.starts_with('"') { self.quoted()? } else { self.word()? };
        Some(Test::Field { path, is, value })
    }

    fn quoted(&mut self) -> Option<String> {
        let (text, rest) = self.0.strip_prefix('"')?.split_once('"')?;
        self.0 = rest;
        Some(text.to_owned())
    }

    fn word(&mut self) -> Option<String> {
        let is_of_word = |it: char| it.is_ascii_alphanumeric() || "-_.*:/$".contains(it);
        let end = self.0.find(|it| !is_of_word(it)).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest;
        (!text.is_empty()).then(|| text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, line: &str) -> Option<bool> {
        Pattern::parse(pattern).map(|pattern| pattern.matches(line))
    }

    #[test]
    fn terms_must_all_be_there() {
        assert_eq!(matches("", "any"), Some(true));
        assert_eq!(matches("\"k-1\"", "event k-1 waits"), Some(true));
        assert_eq!(matches("\"k-1\" \"gone\"", "event k-1 waits"), Some(false));
        assert_eq!(matches("\"k-1", "k-1"), None);
    }

    #[test]
    fn json_patterns_test_the_fields_of_a_line() {
        let line = r#"{"action":"hold","key":"k-1","target":"arn:aws:lambda:eu-west-1:1:function:orders:live","retry":3}"#;
        let functions = r#"($.target = "*:function:orders*" || $.target = "*:function:billing*")"#;
        for (pattern, expected) in [
            (r#"{ $.action = "*" && $.key = "*" }"#.to_owned(), true),
            (format!(r#"{{ $.action = "*" && $.key = "k-1" && {functions} }}"#), true),
            (format!(r#"{{ $.key = "k-2" && {functions} }}"#), false),
            (r#"{ $.error_type = "*" }"#.to_owned(), false),
            (r#"{ $.level = "ERROR" }"#.to_owned(), false),
            (r#"{ $.retry = 3 && $.action != "deferred" }"#.to_owned(), true),
        ] {
            assert_eq!(matches(&pattern, line), Some(expected), "{pattern}");
        }
        assert_eq!(matches(r#"{ $.key = "*" }"#, "START RequestId: k-1"), Some(false));
        assert_eq!(matches(r#"{ $.key = "*" "#, line), None);
    }
}
