//! The result of a check: whether it found a problem, and how to fix the problem.

use serde::Serialize;

use crate::alarms::TopicArn;
use crate::failure::Failure;
use crate::text::{Text, Tone};

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

impl CheckOutcome {
    /// The word for the outcome, padded to the width of the longest.
    pub(super) fn mark(self) -> Text {
        match self {
            Self::Ok => Text::toned(Tone::Good, "ok     "),
            Self::Skipped => "skipped".into(),
            Self::Warning => Text::toned(Tone::Warning, "WARNING"),
            Self::Broken => Text::toned(Tone::Bad, "BROKEN "),
        }
    }
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
    /// Returns the lines of the fix with `topic` in place of `TOPIC_ARN`. Without a topic, the lines that need one are
    /// left out.
    pub fn fix_lines(&self, topic: Option<&TopicArn>) -> Vec<Text> {
        let mut lines: Vec<Text> = self.fix.iter().flat_map(Text::lines).collect();
        match topic {
            Some(topic) => lines.iter_mut().for_each(|line| line.replace(TOPIC, &topic.to_string())),
            None => lines.retain(|line| !line.to_string().contains(TOPIC)),
        }
        lines
    }

    /// Returns true if the fix needs the ARN of an SNS topic.
    pub fn needs_topic(&self) -> bool {
        self.fix.as_ref().is_some_and(|fix| fix.to_string().contains(TOPIC))
    }
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
        let words = Text::from("or ask a colleague");
        assert_eq!(judgement.fix_lines(None), std::slice::from_ref(&words));
        let filled = shell(format!("aws it --topic {topic}")).and("");
        assert_eq!(judgement.fix_lines(Some(&topic)), [filled, words]);
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
