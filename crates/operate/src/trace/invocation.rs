use comeback_engine::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::trace::search::{LogEvent, Search};
use crate::trace::story::text;
use crate::{Account, Failure};

/// What a target's log has of one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Invocation {
    /// The request's id.
    pub request_id: String,
    /// Whether it ended, and how.
    pub report: Report,
    /// The target's own lines, if they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LoggedLine>,
}

/// A line of a target's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoggedLine {
    /// When it was written.
    #[serde(serialize_with = "text")]
    pub at: Timestamp,
    /// The line.
    pub line: String,
}

/// The line that Lambda writes at the end of each invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "seen")]
pub enum Report {
    /// It was seen.
    #[serde(rename = "yes")]
    Seen {
        /// When it was written.
        #[serde(serialize_with = "text")]
        at: Timestamp,
        /// `success`, `error`, `failure` or `timeout`, where the report says so.
        status: Option<String>,
    },
    /// It was not seen: the invocation has not begun or not ended, or its log came late.
    #[serde(rename = "no")]
    NotSeen,
    /// The log cannot be read.
    #[serde(rename = "unknown")]
    Unread {
        /// Why.
        why: String,
    },
}

impl Invocation {
    /// Reads what the log of a function has of a request: its report, and with `lines` all it wrote.
    pub(crate) async fn read(
        account: &Account,
        function_arn: &str,
        request_id: &str,
        since: Timestamp,
        lines: bool,
    ) -> Result<Self, Failure> {
        let unread = |why: Failure| {
            let report = Report::Unread { why: why.to_string() };
            Self { request_id: request_id.to_owned(), report, lines: Vec::new() }
        };
        let group = match log_group(account, function_arn).await {
            Ok(group) => group,
            Err(why) => return Ok(unread(why)),
        };
        let search = Search { group: &group, term: request_id, since, stream: None };
        let events = match search.run(account, &|_| ()).await {
            Ok(events) => events,
            Err(refused @ Failure::Refused(_)) => return Err(refused),
            Err(why) => return Ok(unread(why)),
        };
        let lines = if lines { between(account, &search, events.clone()).await? } else { Vec::new() };
        Ok(Self { request_id: request_id.to_owned(), report: report(&events, request_id), lines })
    }
}

/// The lines of an invocation, those included that do not name it: an environment serves one request at a time, so all of
/// its stream from the first line that names the request to the last.
async fn between(
    account: &Account,
    search: &Search<'_>,
    named: Vec<LogEvent>,
) -> Result<Vec<LoggedLine>, Failure> {
    let (Some(first), Some(last)) = (named.first(), named.last()) else { return Ok(Vec::new()) };
    let stream = Some((first.stream.as_str(), last.at));
    let all = Search { term: "", since: first.at, stream, ..*search }.run(account, &|_| ()).await?;
    Ok(all
        .into_iter()
        .map(|event| LoggedLine { at: event.at, line: event.message.trim_end().to_owned() })
        .collect())
}

/// Lambda writes it as text, `REPORT RequestId: …`, or as JSON, `{"type":"platform.report","record":{…}}`.
fn report(events: &[LogEvent], request_id: &str) -> Report {
    let of = |event: &LogEvent| {
        if let Some(rest) = event.message.strip_prefix("REPORT RequestId: ") {
            let status = rest.split('\t').find_map(|field| field.trim().strip_prefix("Status: "));
            return rest.starts_with(request_id).then(|| status.map(ToOwned::to_owned));
        }
        let line: Value = serde_json::from_str(&event.message).ok()?;
        let is_it = line["type"] == "platform.report" && line["record"]["requestId"] == request_id;
        is_it.then(|| line["record"]["status"].as_str().map(ToOwned::to_owned))
    };
    // An invocation that Lambda itself repeated has several; the last one counts.
    let seen = events.iter().rev().find_map(|event| Some((event.at, of(event)?)));
    seen.map_or(Report::NotSeen, |(at, status)| Report::Seen { at, status })
}

async fn log_group(account: &Account, function_arn: &str) -> Result<String, Failure> {
    let call = account.lambda.get_function_configuration().function_name(function_arn);
    let answer = call.send().await;
    let answer =
        answer.map_err(|error| Failure::of_call("lambda:GetFunctionConfiguration", function_arn, &error))?;
    let named = answer.logging_config().and_then(|logging| logging.log_group());
    Ok(named
        .map_or_else(|| format!("/aws/lambda/{}", answer.function_name().unwrap_or_default()), Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, message: &str) -> LogEvent {
        LogEvent { at: Timestamp::from_secs(at), stream: "s".into(), message: message.into() }
    }

    #[test]
    fn a_report_is_read_in_both_forms_of_lambdas_log() {
        let seen = |at, status: Option<&str>| Report::Seen {
            at: Timestamp::from_secs(at),
            status: status.map(ToOwned::to_owned),
        };
        let text = "REPORT RequestId: r-1\tDuration: 2.1 ms\tBilled Duration: 3 ms\t";
        let timeout = "REPORT RequestId: r-1\tDuration: 3000.00 ms\tStatus: timeout";
        let json = r#"{"time":"…","type":"platform.report","record":{"requestId":"r-1","status":"success"}}"#;
        assert_eq!(report(&[event(7, text)], "r-1"), seen(7, None));
        assert_eq!(report(&[event(7, timeout)], "r-1"), seen(7, Some("timeout")));
        assert_eq!(report(&[event(7, json)], "r-1"), seen(7, Some("success")));
        assert_eq!(report(&[event(7, timeout), event(9, json)], "r-1"), seen(9, Some("success")));
    }

    #[test]
    fn another_requests_report_and_other_lines_are_not_taken_for_it() {
        let others = [
            event(1, "START RequestId: r-1"),
            event(2, "REPORT RequestId: r-2\tafter r-1"),
            event(3, r#"{"type":"platform.report","record":{"requestId":"r-2"},"note":"r-1"}"#),
            event(4, r#"{"type":"platform.start","record":{"requestId":"r-1"}}"#),
        ];
        assert_eq!(report(&others, "r-1"), Report::NotSeen);
    }
}
