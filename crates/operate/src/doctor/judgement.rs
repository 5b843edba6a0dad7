//! The result of a check: whether it found a problem, and how to fix the problem.

use serde::Serialize;

use crate::alarms::TopicArn;
use crate::failure::Failure;
use crate::text::{Piece, Text};

/// The placeholder for the ARN of an SNS topic in a suggested fix.
pub(crate) const TOPIC: &str = "TOPIC_ARN";

/// The possible outcomes of a check, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// The check did not apply, for example because the function is not attached.
    Skipped,
    /// No problem was found.
    Ok,
    /// The deployment works but should be improved, or the facts could not be read.
    Warning,
    /// Events are lost, dead-lettered too early, or not retried.
    Broken,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The outcome of the check.
    pub outcome: CheckOutcome,
    /// The facts found, in words.
    pub found: Text,
    /// The consequence of the problem, on one or more lines.
    pub means: Option<Text>,
    /// The commands that fix the problem, one per line, with words in capitals for the operator to replace.
    pub fix: Option<Text>,
}

impl Judgement {
    /// Returns the lines of the fix. If `topic` is given, it replaces `TOPIC_ARN`.
    pub fn fix_lines(&self, topic: Option<&TopicArn>) -> Vec<FixLine> {
        let Some(fix) = &self.fix else { return Vec::new() };
        let commands = fix.spans().iter().map(|span| &span.piece);
        let commands = commands.filter(|piece| matches!(piece, Piece::Command(..) | Piece::Shell(..)));
        let commands: Vec<String> = commands.map(ToString::to_string).collect();
        let line = |line: &str| FixLine {
            is_command: commands.iter().any(|command| line.contains(&**command)),
            lacks_topic: topic.is_none() && line.contains(TOPIC),
            text: match topic {
                Some(topic) => line.replace(TOPIC, &topic.to_string()),
                None => line.to_owned(),
            },
        };
        fix.to_string().lines().map(line).collect()
    }

    /// Returns true if the fix needs the ARN of an SNS topic.
    pub fn needs_topic(&self) -> bool {
        self.fix.as_ref().is_some_and(|fix| fix.to_string().contains(TOPIC))
    }
}

/// One line of the fix that the doctor suggests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixLine {
    /// The text of the line: a command, or an instruction in words.
    pub text: String,
    /// True for a command to copy, false for an instruction in words.
    pub is_command: bool,
    /// True if `text` still contains `TOPIC_ARN`, which the operator must replace with the ARN of an SNS topic.
    pub lacks_topic: bool,
}

/// A judgement, or the reason why the facts that it needs could not be read.
pub(crate) type Judged = Result<Judgement, Failure>;

pub(crate) fn ok(found: impl Into<Text>) -> Judgement {
    Judgement { outcome: CheckOutcome::Ok, found: found.into(), means: None, fix: None }
}

pub(crate) fn skipped(why: impl Into<Text>) -> Judgement {
    Judgement { outcome: CheckOutcome::Skipped, ..ok(why) }
}

pub(crate) fn warning(found: impl Into<Text>, means: impl Into<Text>, fix: impl Into<Text>) -> Judgement {
    Judgement { outcome: CheckOutcome::Warning, ..broken(found, means, fix) }
}

pub(crate) fn broken(found: impl Into<Text>, means: impl Into<Text>, fix: impl Into<Text>) -> Judgement {
    let (means, fix) = (Some(means.into()), Some(fix.into()));
    Judgement { outcome: CheckOutcome::Broken, means, fix, ..ok(found) }
}

/// Returns the judgement, or a warning if the facts could not be read, so that unknown facts never count as `ok`.
pub(crate) fn or_unseen(judged: Judged) -> Judgement {
    judged.unwrap_or_else(|unseen| {
        let fix = "if that was denied, grant the permissions that docs/operate.md lists for doctor";
        let found = Text::from("not checked: ").and(unseen.text());
        Judgement { outcome: CheckOutcome::Warning, means: None, fix: Some(fix.into()), ..ok(found) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::Deployment;
    use crate::text;
    use crate::text::shell;

    #[test]
    fn named_topic_fills_the_command_in() {
        let handler = Deployment::sample().handler_arn;
        let topic = TopicArn::read("arn:aws:sns:eu-west-1:123456789012:on-call", &handler).unwrap();
        let command = shell(format!("aws it --topic {}", TOPIC));
        let judgement = warning("silent", "nobody knows", text![command, "\nor ask a colleague"]);
        let lines = |topic| {
            let lines = judgement.fix_lines(topic).into_iter();
            lines.map(|line| (line.text, line.is_command, line.lacks_topic)).collect::<Vec<_>>()
        };
        let words = ("or ask a colleague".to_owned(), false, false);
        assert_eq!(lines(None), [("aws it --topic TOPIC_ARN".to_owned(), true, true), words.clone()]);
        assert_eq!(lines(Some(&topic)), [(format!("aws it --topic {topic}"), true, false), words]);
        assert!(judgement.needs_topic() && !warning("", "", "ask").needs_topic() && !ok("").needs_topic());
    }

    #[test]
    fn unread_fact_is_a_warning_naming_its_action() {
        let denied = Failure::could_not("lambda:GetFunctionConcurrency of orders: AccessDenied");
        let judgement = or_unseen(Err(denied));
        assert_eq!(judgement.outcome, CheckOutcome::Warning);
        let found = "not checked: lambda:GetFunctionConcurrency of orders: AccessDenied";
        assert_eq!((judgement.found.to_string(), judgement.means), (found.into(), None));
        assert_eq!(or_unseen(Ok(ok("fine"))), ok("fine"));
    }
}
