//! Reads the errors in the handler's log.

use std::time::Duration;

use comeback_engine::{LogLevel, LogLine, Timestamp};
use serde_json::Value;

use crate::account::Account;
use crate::aws::{LogEvent, LogFilter};
use crate::failure::Failure;

pub(crate) const BACK: Duration = Duration::from_secs(24 * 3_600);
/// The newest hour of the log is searched separately, because a search of a busy day may stop before reaching it.
const NEWEST: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(4);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoggedErrors {
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
        let lines = LogFilter::since(group, now.before(NEWEST)).containing("ERROR")?;
        let just_before = Some(now.before(NEWEST + Duration::from_millis(1)));
        let before = LogFilter { since: now.before(BACK), until: just_before, ..lines.clone() };
        let (newest, older) =
            tokio::try_join!(Self::search(account, &lines), Self::search(account, &before))?;
        Ok(newest.and(older))
    }

    /// Searches the handler's log for errors. Stops after `PATIENCE`.
    async fn search(account: &Account, lines: &LogFilter<'_>) -> Result<Self, Failure> {
        let mut errors = Self::default();
        let all = lines.pages(account, |page| page.iter().for_each(|event| errors.add(event)));
        let all_were_read = tokio::select! {
            biased;
            read = all => read.map(|_| true)?,
            () = account.aws.sleep(PATIENCE) => false,
        };
        Ok(Self { all_were_read, ..errors })
    }

    /// Counts a log event if its level is ERROR.
    fn add(&mut self, event: &LogEvent) {
        let said = match LogLine::read(&event.message) {
            Ok(line) => of_message(&line),
            Err(_) => of_handler(&event.message),
        };
        let Some((text, remedy)) = said else { return };
        self.count += 1;
        if self.newest.as_ref().is_none_or(|newest| newest.at <= event.at) {
            self.newest = Some(LoggedError { at: event.at, text, remedy });
        }
    }

    fn and(self, older: Self) -> Self {
        Self {
            count: self.count + older.count,
            newest: self.newest.or(older.newest),
            all_were_read: self.all_were_read && older.all_were_read,
        }
    }
}

/// Returns the problem and remedy if the line is an error about a message.
fn of_message(line: &LogLine<'_>) -> Option<(String, Option<String>)> {
    let failure = line.what.failure().filter(|_| line.level == LogLevel::Error)?;
    Some((failure.cause.clone(), failure.remedy.as_deref().map(Into::into)))
}

/// Returns the problem and remedy if the line is an error about the handler itself.
fn of_handler(text: &str) -> Option<(String, Option<String>)> {
    let line: Value = serde_json::from_str(text).ok()?;
    let field = |name: &str| line[name].as_str().map(ToOwned::to_owned);
    let said = field("problem").or_else(|| field("message")).unwrap_or_else(|| line.to_string());
    (line["level"] == "ERROR").then(|| (said, field("remedy")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::log::test_line;

    fn searched(lines: &[(u64, &str)]) -> LoggedErrors {
        let mut errors = LoggedErrors::default();
        for (at, line) in lines {
            let at = Timestamp::from_millis(*at);
            errors.add(&LogEvent { at, stream: "s".into(), message: (*line).into() });
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
        let kept =
            json!({"level": "ERROR", "action": "keep", "cause": "refused", "problem": "p", "remedy": "r"});
        let text = serde_json::to_string(&test_line(kept)).unwrap();
        let of_message =
            LoggedError { at: Timestamp::from_millis(1), text: "p".into(), remedy: Some("r".into()) };
        assert_eq!(searched(&[(1, &text)]).newest, Some(of_message));
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
