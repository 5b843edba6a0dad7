//! Finds an event in the handler's log, and its invocations in its targets' logs. The handler's log is the only index.

use std::collections::BTreeSet;

use comeback_engine::{FunctionArn, LogLine, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::account::{Account, Failure, Or as _};
use crate::clock::now;
use crate::operate::deployment::{Deployment, Unlisted};
use crate::operate::function;
use crate::operate::log::{LogEvent, Search, event_line, names};
use crate::operate::pauses::in_force::InForce;
use crate::operate::pauses::noticed_within;
use crate::operate::pauses::parameter::read_pauses;
use crate::operate::trace::story::{End, LoggedLine, Story};

/// One event's life, as far as the logs show it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Trace {
    #[serde(flatten)]
    pub(crate) story: Story,
    /// What the target's log has of its invocations, in their order: of the last one, or of all with `logs`.
    pub(crate) invocations: Vec<Invocation>,
    /// Whether its function is paused now; `None` if that is not known, or if the event does not wait.
    pub(crate) pause: Option<InForce>,
    /// Why that is not known of an event that waits.
    pub(crate) pause_unknown: Option<String>,
    /// What happens to it, if its function is not on the allow-list; `None` also if it does not wait.
    pub(crate) not_allowed: Option<Unlisted>,
    /// The handler. Suggested commands name functions of its account and region without an ARN.
    #[serde(skip)]
    pub(crate) home: FunctionArn,
}

/// The logs of a deployment: the handler's, and its targets'.
pub(crate) struct Logs<'a> {
    pub(crate) account: &'a Account,
    pub(crate) deployment: &'a Deployment,
    pub(crate) since: Timestamp,
    /// Called with the number of lines found so far.
    pub(crate) progress: &'a dyn Fn(usize),
}

impl Trace {
    /// Finds an event by its key, or by the request id of one of its invocations. With `all_lines`, all that its
    /// invocations wrote is read too.
    pub(crate) async fn find(logs: &Logs<'_>, id: &str, all_lines: bool) -> Result<Self, Failure> {
        let Logs { account, deployment, since, .. } = *logs;
        let story = logs.story(id).await?.ok_or_else(|| {
            Failure::CouldNot(format!(
                "no line in {} since {since} has {id}, so Comeback knows of no failure: the event succeeded at once, \
                 or failed just now (its first failure is logged after some seconds, or a minute if its function is \
                 throttled)",
                deployment.log_group
            ))
        })?;
        let asked: Vec<String> = match (&story.end, all_lines) {
            (_, true) => story.request_ids().map(ToOwned::to_owned).collect(),
            (End::Invoked { request_id: Some(id), .. }, false) => vec![id.clone()],
            (_, false) => Vec::new(),
        };
        let mut invocations = Vec::new();
        for request_id in asked {
            let target = story.targets.get(&request_id).unwrap_or(&story.target);
            invocations.push(logs.invocation(target, &request_id, all_lines).await?);
        }
        let waits = matches!(story.end, End::Waiting { .. } | End::Held | End::Kept);
        let pause =
            if waits { in_force(account, deployment, &story.target).await.map(Some) } else { Ok(None) };
        // The log is known even if the pauses cannot be read.
        let pause_unknown = pause.as_ref().err().map(ToString::to_string);
        let policies = deployment.policies().ok().filter(|_| waits);
        let not_allowed = policies.and_then(|policies| Unlisted::of(&policies, &story.target));
        let (pause, home) = (pause.unwrap_or_default(), deployment.handler_arn.clone());
        Ok(Self { story, invocations, pause, pause_unknown, not_allowed, home })
    }

    /// The invocation with this request id, if its log was read.
    pub(crate) fn invocation(&self, request_id: Option<&str>) -> Option<&Invocation> {
        self.invocations.iter().find(|invocation| Some(&*invocation.request_id) == request_id)
    }
}

async fn in_force(account: &Account, deployment: &Deployment, target: &str) -> Result<InForce, Failure> {
    let pauses = read_pauses(account, deployment).await?.unwrap_or_default();
    Ok(InForce::of(&pauses, target, noticed_within(deployment).unwrap_or_default(), now()))
}

impl Logs<'_> {
    /// What the handler's log says of the event that an id belongs to: its key, one of its request ids, or the id of a
    /// message. `None` if no line names the id.
    pub(crate) async fn story(&self, id: &str) -> Result<Option<Story>, Failure> {
        let Self { account, deployment, since, progress } = *self;
        let search = async |term: &str| {
            let found = Search { group: &deployment.log_group, term, since, until: None, stream: None };
            let events = found.run(account, progress).await?.into_iter();
            let lines = events.filter_map(|event| Some((event_line(&event.message)?, event)));
            Ok::<_, Failure>(lines.collect::<Vec<_>>())
        };
        let mut lines = search(id).await?;
        lines.retain(|(line, _)| names(line, id));
        let key_of = |line: &LogLine<'_>| line.event.as_ref().map(|event| event.key.to_string());
        let keys: BTreeSet<String> = lines.iter().filter_map(|(line, _)| key_of(line)).collect();
        if keys.len() > 1 {
            let keys = keys.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Failure::CouldNot(format!("{id} matches several events: {keys}")));
        }
        if let Some(key) = keys.first().filter(|key| *key != id) {
            lines = search(key).await?;
            lines.retain(|(line, _)| key_of(line).as_ref() == Some(key));
        }
        let (lines, events): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        let events = events.into_iter().map(|LogEvent { at, message, .. }| LoggedLine { at, line: message });
        Ok(Story::of(lines).map(|story| Story { lines: events.collect(), ..story }))
    }

    /// Reads what the log of a function has of a request: its report, and with `lines` all it wrote.
    pub(crate) async fn invocation(
        &self,
        function_arn: &str,
        request_id: &str,
        lines: bool,
    ) -> Result<Invocation, Failure> {
        let Self { account, since, .. } = *self;
        let request_id = request_id.to_owned();
        let found = async {
            let group = log_group(account, function_arn).await?;
            let search = Search { group: &group, term: &request_id, since, until: None, stream: None };
            let events = search.run(account, &|_| ()).await?;
            Ok::<_, Failure>((group, events))
        };
        let (group, events) = match found.await {
            Ok(found) => found,
            Err(refused @ Failure::Refused(_)) => return Err(refused),
            Err(why) => {
                let report = Report::Unread { why: why.to_string() };
                return Ok(Invocation { request_id, report, lines: Vec::new() });
            }
        };
        let mut logged = Vec::new();
        if let (true, Some(first), Some(last)) = (lines, events.first(), events.last()) {
            // Some lines do not name the request. But an environment serves one at a time, so all of its stream belongs
            // to it, from the first line that names it to the last.
            let (until, stream) = (Some(last.at), Some(&*first.stream));
            let all = Search { group: &group, term: "", since: first.at, until, stream };
            for LogEvent { at, message, .. } in all.run(account, &|_| ()).await? {
                logged.push(LoggedLine { at, line: message.trim_end().to_owned() });
            }
        }
        Ok(Invocation { report: report(&events, &request_id), request_id, lines: logged })
    }
}

/// What a target's log has of one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Invocation {
    pub(crate) request_id: String,
    pub(crate) report: Report,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines: Vec<LoggedLine>,
}

/// The line that Lambda writes at the end of each invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "seen")]
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

impl Report {
    /// Whether the invocation ended without an error, as far as is known.
    pub(crate) fn is_success(&self) -> bool {
        matches!(self, Self::Seen { status, .. } if status.as_deref().is_none_or(|status| status == "success"))
    }
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
    Ok(function::log_group(answer.logging_config(), answer.function_name().unwrap_or_default()))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::operate::trace::story::{Step, What};

    pub(crate) fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(1_789_400_000 + second)
    }

    pub(crate) fn trace(steps: Vec<(u64, What)>, end: End, invocations: Vec<Invocation>) -> Trace {
        let steps = steps.into_iter().map(|(second, what)| Step { at: at(second), what }).collect();
        let (key, target, first_failure) = ("k-1".into(), "arn:f".into(), Some(at(0)));
        let targets = BTreeMap::new();
        let story = Story { key, target, targets, first_failure, steps, end, copies: 0, lines: Vec::new() };
        let home = "arn:aws:lambda:eu-west-1:123456789012:function:handler".parse().unwrap();
        Trace { story, invocations, pause: None, pause_unknown: None, not_allowed: None, home }
    }

    pub(crate) fn invoked(retry: u64) -> What {
        What::Invoked {
            retry,
            request_id: Some(format!("r-{retry}")),
            late_ms: Some(1_500),
            early: None,
            policy: Some("orders-*".into()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_that_cannot_be_read_name_the_fix() {
        let account = Account::answering(|operation, _| match operation {
            "GetParameter" => json!({"Parameter": {"Value": "garbled", "Version": 2}}),
            "GetParameterHistory" => {
                json!({"Parameters": [{"Value": r#"{"v":1,"pauses":[]}"#, "Version": 1}]})
            }
            other => panic!("{other} is not expected"),
        });
        let mut deployment = Deployment::sample();
        deployment.variables.insert("PAUSES".into(), "p".into());
        let failure = in_force(&account.await, &deployment, "arn:orders").await.unwrap_err().to_string();
        assert!(failure.contains("restore version 1, the last readable one: aws ssm"), "{failure}");
    }

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
