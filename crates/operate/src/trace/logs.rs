//! Searches the handler's log for an event, and the targets' logs for the event's invocations.

use std::collections::BTreeSet;

use comeback_engine::{LogLine, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::account::Account;
use crate::aws::{LogEvent, LogFilter};
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::function;
use crate::log::{event_line, names};
use crate::trace::story::{LoggedLine, Story};

pub(crate) struct Logs<'a> {
    pub(crate) account: &'a Account,
    pub(crate) deployment: &'a Deployment,
    pub(crate) since: Timestamp,
    /// Called with the number of lines found so far in the handler's log.
    pub(crate) progress: &'a dyn Fn(usize),
}

impl Logs<'_> {
    /// Finds the handler's lines about an event by its key, or by the id of an invocation or a message. Fails if `id`
    /// belongs to several events.
    pub(crate) async fn story(&self, id: &str) -> Result<Option<Story>, Failure> {
        let Self { account, deployment, since, progress } = *self;
        let search = async |term: &str| {
            let all = LogFilter::since(&deployment.log_group, since);
            let events = search(account, all, term, progress).await?.into_iter();
            let lines = events.filter_map(|event| Some((event_line(&event.message)?, event)));
            Ok::<_, Failure>(lines.collect::<Vec<_>>())
        };
        let mut lines = search(id).await?;
        lines.retain(|(line, _)| names(line, id));
        let key_of = |line: &LogLine<'_>| line.event.as_ref().map(|event| event.key.to_string());
        let keys: BTreeSet<String> = lines.iter().filter_map(|(line, _)| key_of(line)).collect();
        if keys.len() > 1 {
            let keys = keys.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Failure::could_not(format!("{id} matches several events: {keys}")));
        }
        if let Some(key) = keys.first().filter(|key| *key != id) {
            lines = search(key).await?;
            lines.retain(|(line, _)| key_of(line).as_ref() == Some(key));
        }
        let (lines, events): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        let events = events.into_iter().map(|LogEvent { at, message, .. }| LoggedLine { at, line: message });
        Ok(Story::of(lines).map(|story| Story { lines: events.collect(), ..story }))
    }

    /// Reads Lambda's report on one invocation and, if `lines` is true, everything that the function wrote. Fails
    /// only if `request_id` is not a valid search term.
    pub(crate) async fn invocation(
        &self,
        function_arn: &str,
        request_id: &str,
        lines: bool,
    ) -> Result<LoggedInvocation, Failure> {
        let Self { account, since, .. } = *self;
        let request_id = request_id.to_owned();
        let found = async {
            let configuration = account.aws.configuration(function_arn, None).await?;
            let group = function::log_group(&configuration);
            let events = search(account, LogFilter::since(&group, since), &request_id, &|_| ()).await?;
            let mut logged = Vec::new();
            if let (true, Some(first), Some(last)) = (lines, events.first(), events.last()) {
                // An execution environment serves one request at a time, in its own log stream. Lines between two that
                // name the request belong to it.
                let (until, stream) = (Some(last.at), Some(&*first.stream));
                let all = LogFilter { until, stream, ..LogFilter::since(&group, first.at) };
                for LogEvent { at, message, .. } in search(account, all, "", &|_| ()).await? {
                    logged.push(LoggedLine { at, line: message.trim_end().to_owned() });
                }
            }
            Ok::<_, Failure>((events, logged))
        };
        let (events, logged) = match found.await {
            Ok(found) => found,
            Err(refused @ Failure::Refused(_)) => return Err(refused),
            Err(why) => {
                let report = InvocationReport::Unread { why: why.to_string() };
                return Ok(LoggedInvocation { request_id, report, lines: Vec::new() });
            }
        };
        Ok(LoggedInvocation { report: report(&events, &request_id), request_id, lines: logged })
    }
}

/// The log of one invocation of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoggedInvocation {
    /// The request id of the invocation.
    pub request_id: String,
    /// Lambda's report at the end of the invocation.
    pub report: InvocationReport,
    /// The lines that the function wrote, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LoggedLine>,
}

/// The REPORT line that Lambda writes at the end of an invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "seen")]
pub enum InvocationReport {
    /// The log of the function contains the invocation's `REPORT` line.
    #[serde(rename = "yes")]
    Seen {
        /// The time when Lambda wrote the report.
        at: Timestamp,
        /// The status of the invocation (`success`, `error`, `failure` or `timeout`), if the report has one.
        status: Option<String>,
    },
    /// The log contains no `REPORT` line for the invocation. The invocation might not have ended, or the line might not
    /// have arrived.
    #[serde(rename = "no")]
    NotSeen,
    /// The log could not be read.
    #[serde(rename = "unknown")]
    Unread {
        /// The reason why the log could not be read, for the operator.
        why: String,
    },
}

impl InvocationReport {
    /// Returns true if Lambda's `REPORT` line for the invocation shows no error.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Seen { status, .. } if status.as_deref().is_none_or(|status| status == "success"))
    }
}

/// Finds Lambda's report on an invocation. The report is either text (`REPORT RequestId: …`) or JSON
/// (`{"type":"platform.report",…}`).
fn report(events: &[LogEvent], request_id: &str) -> InvocationReport {
    let of = |event: &LogEvent| {
        if let Some(rest) = event.message.strip_prefix("REPORT RequestId: ") {
            let status = rest.split('\t').find_map(|field| field.trim().strip_prefix("Status: "));
            return rest.starts_with(request_id).then(|| status.map(ToOwned::to_owned));
        }
        let line: Value = serde_json::from_str(&event.message).ok()?;
        let is_it = line["type"] == "platform.report" && line["record"]["requestId"] == request_id;
        is_it.then(|| line["record"]["status"].as_str().map(ToOwned::to_owned))
    };
    // If Lambda itself repeated an invocation, the log has several reports, and the last one counts.
    let seen = events.iter().rev().find_map(|event| Some((event.at, of(event)?)));
    seen.map_or(InvocationReport::NotSeen, |(at, status)| InvocationReport::Seen { at, status })
}

/// Finds all lines that contain a term, ordered by time. Filters the lines again, because some CloudWatch emulators
/// ignore the term.
async fn search(
    account: &Account,
    lines: LogFilter<'_>,
    term: &str,
    progress: &dyn Fn(usize),
) -> Result<Vec<LogEvent>, Failure> {
    let mut found = Vec::new();
    let take = |page: Vec<LogEvent>| {
        for event in page.into_iter().filter(|event| event.message.contains(term)) {
            found.push(event);
            progress(found.len());
        }
    };
    let lines = lines.containing(term)?;
    if !lines.pages(account, take).await? {
        return Err(Failure::could_not(format!("log group {} does not exist", lines.group)));
    }
    found.sort_by_key(|event| event.at);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, message: &str) -> LogEvent {
        LogEvent { at: Timestamp::from_secs(at), stream: "s".into(), message: message.into() }
    }

    #[test]
    fn a_report_is_read_in_both_forms_of_lambdas_log() {
        let seen = |at, status: Option<&str>| InvocationReport::Seen {
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
    fn only_the_requests_own_report_counts() {
        let others = [
            event(1, "START RequestId: r-1"),
            event(2, "REPORT RequestId: r-2\tafter r-1"),
            event(3, r#"{"type":"platform.report","record":{"requestId":"r-2"},"note":"r-1"}"#),
            event(4, r#"{"type":"platform.start","record":{"requestId":"r-1"}}"#),
        ];
        assert_eq!(report(&others, "r-1"), InvocationReport::NotSeen);
    }
}
