//! Finding one event's life in the logs. The handler's log is the only index there is.

use std::collections::BTreeSet;

use comeback_engine::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::operate::account::{Account, Failure, Or as _};
use crate::operate::deployment::Deployment;
use crate::operate::log::{HandlerLine, LogEvent, Search};
use crate::operate::trace::story::{End, Story};

/// One event's life, as far as the logs show it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Trace {
    #[serde(flatten)]
    pub(crate) story: Story,
    /// What the target's log has of its invocations, in their order: of the last one, or of all with `logs`.
    pub(crate) invocations: Vec<Invocation>,
}

impl Trace {
    /// Finds an event by its key, or by the request id of one of its invocations, in what was logged since then.
    /// `progress` hears how many lines were found so far.
    pub(crate) async fn find(
        account: &Account,
        deployment: &Deployment,
        id: &str,
        since: Timestamp,
        logs: bool,
        progress: &dyn Fn(usize),
    ) -> Result<Self, Failure> {
        let story = story(account, deployment, id, since, progress).await?;
        let story = story.ok_or_else(|| unknown(deployment, id, since))?;
        let asked: Vec<String> = match (&story.end, logs) {
            (_, true) => story.request_ids().map(ToOwned::to_owned).collect(),
            (End::Invoked { request_id: Some(id), .. }, false) => vec![id.clone()],
            (_, false) => Vec::new(),
        };
        let mut invocations = Vec::new();
        for request_id in asked {
            invocations.push(Invocation::read(account, &story.target, &request_id, since, logs).await?);
        }
        Ok(Self { story, invocations })
    }
}

/// What the handler's log says of the event that an id belongs to; `None` if no line names the id.
pub(crate) async fn story(
    account: &Account,
    deployment: &Deployment,
    id: &str,
    since: Timestamp,
    progress: &dyn Fn(usize),
) -> Result<Option<Story>, Failure> {
    Ok(Story::of(lines_of(account, deployment, id, since, progress).await?))
}

/// The lines of the event that an id belongs to. A key is one of the request ids, or the id of a message.
async fn lines_of(
    account: &Account,
    deployment: &Deployment,
    id: &str,
    since: Timestamp,
    progress: &dyn Fn(usize),
) -> Result<Vec<HandlerLine>, Failure> {
    let search = async |term: &str| {
        let found = Search { group: &deployment.log_group, term, since, until: None, stream: None };
        let events = found.run(account, progress).await?;
        let lines = events.iter().filter_map(|event| HandlerLine::read(&event.message));
        Ok::<_, Failure>(lines.collect::<Vec<_>>())
    };
    let named: Vec<HandlerLine> = search(id).await?.into_iter().filter(|line| line.names(id)).collect();
    let keys: BTreeSet<&str> = named.iter().map(|line| line.key.as_str()).collect();
    match keys.into_iter().collect::<Vec<_>>().as_slice() {
        [] => Ok(Vec::new()),
        [key] if *key == id => Ok(named),
        [key] => Ok(search(key).await?.into_iter().filter(|line| line.key == *key).collect()),
        several => Err(Failure::CouldNot(format!("{id} names several events: {}", several.join(", ")))),
    }
}

fn unknown(deployment: &Deployment, id: &str, since: Timestamp) -> Failure {
    Failure::CouldNot(format!(
        "no line of {} names {id} since {since}: an event is logged when its first failure reaches the retry queue, which \
         takes some seconds, or a minute if its function is throttled",
        deployment.log_group
    ))
}

/// What a target's log has of one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Invocation {
    pub(crate) request_id: String,
    pub(crate) report: Report,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines: Vec<LoggedLine>,
}

/// A line of a target's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LoggedLine {
    pub(crate) at: Timestamp,
    pub(crate) line: String,
}

/// The line that Lambda writes at the end of each invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "seen")]
pub(crate) enum Report {
    #[serde(rename = "yes")]
    Seen {
        at: Timestamp,
        /// `success`, `error`, `failure` or `timeout`, where the report says so.
        status: Option<String>,
    },
    /// It was not seen: the invocation has not begun or not ended, or its log came late.
    #[serde(rename = "no")]
    NotSeen,
    #[serde(rename = "unknown")]
    Unread { why: String },
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
        let search = Search { group: &group, term: request_id, since, until: None, stream: None };
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
    let (until, stream) = (Some(last.at), Some(&*first.stream));
    let all = Search { term: "", since: first.at, until, stream, ..*search }.run(account, &|_| ()).await?;
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
    let answer = call.send().await.or_failure("lambda:GetFunctionConfiguration", function_arn)?;
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
