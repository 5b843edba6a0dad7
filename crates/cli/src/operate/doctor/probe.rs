//! An event that fails once, sent and followed until it is retried.

use std::time::Duration;

use aws_sdk_lambda::operation::RequestId as _;
use aws_sdk_lambda::types::InvocationType;
use comeback_engine::{Timestamp, WaitsFor};
use comeback_operate::CommandName;
use comeback_operate::trace::logs::{Logs, Report};
use comeback_operate::trace::sentence::sentence;
use comeback_operate::trace::story::{End, Story};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::Deployment;
use crate::operate::deployment::find::resources;
use crate::operate::doctor::diagnosis::{Diagnosis, Judged, broken, ok, skipped};
use crate::terminal::coloured;

/// The example function's name in the template.
const EXAMPLE: &str = "ExampleTarget";
const EVENT: &str = r#"{"fail_times": 1}"#;
/// For cold starts, pollers, and logs that arrive late.
const SLACK: Duration = Duration::from_secs(90);
/// Nobody looks at a terminal for longer.
const LONGEST: Duration = Duration::from_secs(15 * 60);
const BETWEEN_CHECKS: Duration = Duration::from_secs(1);
/// Clocks differ.
const EARLIER: Duration = Duration::from_secs(60);

/// Sends the example function an event that fails once, and follows it in the logs until it has succeeded, was
/// dead-lettered, or is overdue. Shows each step once. Nothing is cleaned up: the event ends as any other.
pub(crate) async fn probe(account: &Account, deployment: &Deployment, now: Timestamp) -> Judged {
    let function = example(account, deployment).await?;
    let patience = match patience(deployment, &function) {
        Ok(patience) => patience,
        Err(why) => return Ok(skipped(why)),
    };
    let key = send(account, &function).await?;
    let since = now.before(EARLIER);
    let mut shown = 0;
    let mut last = None;
    let account = account.operate();
    let handler = deployment.handler.parse().ok();
    let found = comeback_operate::deployment::Deployment::find(&account, handler.as_ref(), "").await?;
    let logs = Logs { account: &account, deployment: &found, since, progress: &|_| () };
    let followed = timeout(patience, async {
        loop {
            if let Some(story) = logs.story(&key).await? {
                let steps = story.steps.iter().skip(shown);
                steps.for_each(|step| anstream::eprintln!("probe: {}", coloured(&sentence(step))));
                shown = story.steps.len();
                let end = ended(&logs, &story).await?;
                last = Some(story.end);
                if let Some(end) = end {
                    return Ok(end);
                }
            }
            sleep(BETWEEN_CHECKS).await;
        }
    })
    .await;
    let sent = Sent { function: &function, key: &key, waited: patience };
    followed.unwrap_or_else(|_| Ok(sent.not_ended(deployment, last.as_ref())))
}

/// How long the event may take, or why it is not sent.
fn patience(deployment: &Deployment, function: &str) -> Result<Duration, String> {
    let policies = deployment.policies().map_err(|_| "the handler's settings are refused (CB020)")?;
    let arn = deployment.arn_of(&function.parse()?);
    let backoff = policies.of(&format!("{arn}:$LATEST")).backoff();
    // With decorrelated jitter the first backoff is the longest: up to three times the base.
    let longest = backoff.base().saturating_mul(3).min(backoff.cap()) + SLACK;
    if longest > LONGEST {
        let seconds = longest.as_secs();
        return Err(format!("the first retry may take {seconds} s, too long to follow"));
    }
    Ok(longest)
}

/// Sends the event, and gives back its request id.
async fn send(account: &Account, function: &str) -> Result<String, Failure> {
    let call = account.lambda.invoke().function_name(function).invocation_type(InvocationType::Event);
    let answer = call.payload(EVENT.as_bytes().into()).send().await;
    let answer = answer.or_failure("lambda:InvokeFunction", function)?;
    let none = || Failure::CouldNot(format!("Lambda returned no request id for an event of {function}"));
    answer.request_id().map(ToOwned::to_owned).ok_or_else(none)
}

/// How the event ended, if it has.
async fn ended(logs: &Logs<'_>, story: &Story) -> Result<Option<Diagnosis>, Failure> {
    match &story.end {
        End::Invoked { request_id: Some(retry), .. } => {
            let invocation = logs.invocation(&story.target, retry, true).await?;
            if let Report::Unread { why } = invocation.report {
                return Err(Failure::CouldNot(why));
            }
            let succeeded = invocation.lines.iter().any(|line| {
                serde_json::from_str::<Value>(&line.line).is_ok_and(|line| line["message"] == "succeeded")
            });
            Ok(succeeded.then(|| ok(format!("{} failed once, and its retry succeeded", story.key))))
        }
        End::DeadLettered => Ok(Some(broken(
            "the event was dead-lettered",
            "failed events are not retried as configured",
            logs.deployment.command(CommandName::Trace, [&*story.key]).to_string(),
        ))),
        _ => Ok(None),
    }
}

/// The event that the probe sent.
struct Sent<'a> {
    function: &'a str,
    key: &'a str,
    waited: Duration,
}

impl Sent<'_> {
    fn not_ended(&self, deployment: &Deployment, last: Option<&End>) -> Diagnosis {
        let Self { function, key, waited } = *self;
        let (found, fix) = match last {
            None => ("its failure has not reached the handler", format!("doctor {function}")),
            Some(End::Waits(WaitsFor::Resume)) => {
                ("it is held, because its function is paused", "pause --list".into())
            }
            Some(End::Invoked { .. }) => ("its success is not in the log", format!("trace {key}")),
            Some(_) => ("it has not been retried", format!("trace {key}")),
        };
        broken(
            format!("{} s after the event was sent, {found}", waited.as_secs()),
            "failed events are not retried, or only late",
            deployment.command(fix),
        )
    }
}

/// The name of the stack's example function.
async fn example(account: &Account, deployment: &Deployment) -> Result<String, Failure> {
    let none = || {
        let what = "has no example function (ExampleTarget of template.yaml)";
        Failure::CouldNot(format!("the stack of {} {what}", deployment.handler))
    };
    let stack = deployment.stack.as_deref().ok_or_else(none)?;
    let resources = resources(account, stack).await?;
    let example = resources.into_iter().find(|resource| resource.logical_resource_id() == Some(EXAMPLE));
    example.and_then(|resource| resource.physical_resource_id).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use comeback_engine::DueBy;

    use crate::operate::doctor::diagnosis::Outcome;
    use crate::operate::doctor::sample::healthy;

    use super::*;

    #[test]
    fn an_event_that_takes_long_is_not_followed() {
        let mut deployment = healthy().deployment;
        let text = "slow BASE_BACKOFF=271";
        deployment.variables.insert("POLICIES".into(), text.into());
        assert_eq!(patience(&deployment, "example"), Ok(Duration::from_secs(120)));
        assert!(patience(&deployment, "slow").is_err());
        let mut with = |base: &str| {
            deployment.variables.insert("BASE_BACKOFF".into(), base.into());
            patience(&deployment, "example")
        };
        assert_eq!(with("270"), Ok(LONGEST));
        assert_eq!(with("271"), Err("the first retry may take 903 s, too long to follow".into()));
        assert_eq!(with("soon"), Err("the handler's settings are refused (CB020)".into()));
    }

    #[test]
    fn an_event_that_did_not_end_says_how_far_it_came() {
        let deployment = healthy().deployment;
        let at = Timestamp::from_secs(1_700_000_000);
        let invoked = End::Invoked { request_id: Some("r-1".into()), at };
        let sent = Sent { function: "example", key: "k-1", waited: Duration::from_secs(93) };
        for (last, words, fix) in [
            (
                None,
                "93 s after the event was sent, its failure has not reached the handler",
                "comeback doctor example",
            ),
            (
                Some(End::Waits(WaitsFor::Due { due: at, by: DueBy::Policy })),
                "it has not been retried",
                "comeback trace k-1",
            ),
            (Some(End::Waits(WaitsFor::Resume)), "its function is paused", "comeback pause --list"),
            (Some(invoked), "its success is not in the log", "comeback trace k-1"),
        ] {
            let diagnosis = sent.not_ended(&deployment, last.as_ref());
            assert_eq!(diagnosis.outcome, Outcome::Broken);
            assert!(diagnosis.found.contains(words), "{diagnosis:?}");
            assert_eq!(diagnosis.fix.unwrap(), fix);
        }
    }
}
