//! The doctor's probe: sends an event that fails once, and follows it until its retry succeeds.

use std::time::Duration;

use crate::command::CommandName;
use crate::operator::Operator;
use crate::text;
use crate::trace::logs::{InvocationReport, Logs};
use crate::trace::sentence::sentence;
use crate::trace::story::{Story, StoryEnd};
use serde_json::Value;

use crate::account::Account;
use crate::deployment::Deployment;
use crate::deployment::find::resources;
use crate::doctor::judgement::{Judged, Judgement, broken, ok, skipped};
use crate::failure::Failure;

/// The logical id of the example function in `template.yaml`.
const EXAMPLE: &str = "ExampleTarget";
const EVENT: &str = r#"{"fail_times": 1}"#;
/// Extra time for cold starts, pollers, and log lines that arrive late.
const SLACK: Duration = Duration::from_secs(90);
/// The probe is skipped if the event's retry might take longer than this.
const LONGEST: Duration = Duration::from_secs(15 * 60);
const BETWEEN_CHECKS: Duration = Duration::from_secs(1);
/// The search of the log starts this long before the event was sent, because clocks may differ.
const EARLIER: Duration = Duration::from_secs(60);

/// Sends the example function an event that fails once, and reports each step to the operator.
pub(crate) async fn probe(operator: &Operator, deployment: &Deployment) -> Judged {
    let account = &operator.account;
    let function = example(account, deployment).await?;
    let patience = match patience(deployment, &function) {
        Ok(patience) => patience,
        Err(why) => return Ok(skipped(why)),
    };
    let sent_at = operator.now();
    let key = account.aws.invoke_async(&function, EVENT).await?;
    let (end, since) = (sent_at.saturating_add(patience), sent_at.before(EARLIER));
    let logs = Logs { account, deployment, since, progress: &|_| () };
    let (mut shown, mut last) = (0, None);
    while operator.now() < end {
        if let Some(story) = logs.story(&key).await? {
            let steps = story.steps.iter().skip(shown);
            steps.for_each(|step| operator.follow.remark(&text!["probe: ", sentence(step)]));
            shown = story.steps.len();
            if let Some(end) = ended(&logs, &story).await? {
                return Ok(end);
            }
            last = Some(story.end);
        }
        account.aws.sleep(BETWEEN_CHECKS).await;
    }
    Ok(not_ended(deployment, &function, &key, patience, last.as_ref()))
}

/// Returns the time within which the event's retry must succeed, or the reason not to send the event.
fn patience(deployment: &Deployment, function: &str) -> Result<Duration, String> {
    let policies = deployment.policies().map_err(|_| "the handler's settings are refused (CB020)")?;
    let arn = deployment.arn_of(&function.parse()?);
    let backoff = policies.of(&format!("{arn}:$LATEST")).backoff();
    // Decorrelated jitter allows the longest first backoff of all: up to three times the base.
    let longest = backoff.base().saturating_mul(3).min(backoff.cap()) + SLACK;
    if longest > LONGEST {
        let seconds = longest.as_secs();
        return Err(format!("the first retry may take {seconds} s, too long to follow"));
    }
    Ok(longest)
}

/// Returns the judgement if the probe's event has succeeded or been dead-lettered, or `None` if neither has happened
/// yet.
async fn ended(logs: &Logs<'_>, story: &Story) -> Result<Option<Judgement>, Failure> {
    match &story.end {
        StoryEnd::Invoked { request_id: Some(retry), .. } => {
            let invocation = logs.invocation(&story.target, retry, true).await?;
            if let InvocationReport::Unread { why } = invocation.report {
                return Err(Failure::could_not(why));
            }
            let succeeded = invocation.lines.iter().any(|line| {
                serde_json::from_str::<Value>(&line.line).is_ok_and(|line| line["message"] == "succeeded")
            });
            Ok(succeeded.then(|| ok(format!("{} failed once, and its retry succeeded", story.key))))
        }
        StoryEnd::DeadLettered => Ok(Some(broken(
            "the event was dead-lettered",
            "failed events are not retried as configured",
            logs.deployment.command(CommandName::Trace, [&*story.key]),
        ))),
        _ => Ok(None),
    }
}

/// Judges a probe that ran out of time. `last` is the last step that its event reached.
fn not_ended(
    deployment: &Deployment,
    function: &str,
    key: &str,
    waited: Duration,
    last: Option<&StoryEnd>,
) -> Judgement {
    let (found, name, word) = match last {
        None => ("its failure has not reached the handler", CommandName::Doctor, function),
        Some(StoryEnd::Held) => ("it is held, because its function is paused", CommandName::Pause, "--list"),
        Some(StoryEnd::Invoked { .. }) => ("its success is not in the log", CommandName::Trace, key),
        Some(_) => ("it has not been retried", CommandName::Trace, key),
    };
    broken(
        format!("{} s after the event was sent, {found}", waited.as_secs()),
        "failed events are not retried, or only late",
        deployment.command(name, [word]),
    )
}

async fn example(account: &Account, deployment: &Deployment) -> Result<String, Failure> {
    let none = || {
        let what = "has no example function (ExampleTarget of template.yaml)";
        Failure::could_not(format!("the stack of {} {what}", deployment.handler))
    };
    let stack = deployment.stack.as_deref().ok_or_else(none)?;
    let resources = resources(account, stack).await?;
    let example = resources.into_iter().find(|resource| resource.logical_id == EXAMPLE);
    example.and_then(|resource| resource.physical_id).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use comeback_engine::Timestamp;

    use crate::doctor::judgement::CheckOutcome;
    use crate::doctor::tests::healthy;

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
    fn unfinished_event_says_how_far_it_came() {
        let deployment = healthy().deployment;
        let at = Timestamp::from_secs(1_700_000_000);
        let invoked = StoryEnd::Invoked { request_id: Some("r-1".into()), at };
        let waited = Duration::from_secs(93);
        for (last, words, fix) in [
            (
                None,
                "93 s after the event was sent, its failure has not reached the handler",
                "comeback doctor example",
            ),
            (Some(StoryEnd::Waiting { due: at }), "it has not been retried", "comeback trace k-1"),
            (Some(StoryEnd::Held), "its function is paused", "comeback pause --list"),
            (Some(invoked), "its success is not in the log", "comeback trace k-1"),
        ] {
            let judgement = not_ended(&deployment, "example", "k-1", waited, last.as_ref());
            assert_eq!(judgement.outcome, CheckOutcome::Broken);
            assert!(judgement.found.to_string().contains(words), "{judgement:?}");
            assert_eq!(judgement.fix.unwrap().to_string(), fix);
        }
    }
}
