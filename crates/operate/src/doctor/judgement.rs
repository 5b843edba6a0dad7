//! The judgement of a check.

use serde::Serialize;

use crate::failure::Failure;
use crate::text::Text;

/// The outcome of a check, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The check had nothing to judge.
    Skipped,
    /// Nothing is wrong.
    Ok,
    /// It works, but not as it should, or it could not be read.
    Warning,
    /// Events are lost, dead-lettered too early, or not retried.
    Broken,
}

/// The judgement of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The outcome.
    pub outcome: Outcome,
    /// The facts.
    pub found: Text,
    /// The consequence, perhaps of several lines; `None` if nothing is wrong.
    pub means: Option<Text>,
    /// The command that fixes it, or one for each line; `None` if nothing is wrong. The operator replaces words in
    /// capitals.
    pub fix: Option<Text>,
}

/// A judgement, or the failure to read its facts.
pub(crate) type Judged = Result<Judgement, Failure>;

/// A judgement that nothing is wrong.
pub(crate) fn ok(found: impl Into<Text>) -> Judgement {
    Judgement { outcome: Outcome::Ok, found: found.into(), means: None, fix: None }
}

/// A judgement of a check without a subject.
pub(crate) fn skipped(why: impl Into<Text>) -> Judgement {
    Judgement { outcome: Outcome::Skipped, ..ok(why) }
}

/// A judgement that something works, but not as it should.
pub(crate) fn warning(found: impl Into<Text>, means: impl Into<Text>, fix: impl Into<Text>) -> Judgement {
    Judgement { outcome: Outcome::Warning, ..broken(found, means, fix) }
}

/// A judgement that events are lost, dead-lettered too early, or not retried.
pub(crate) fn broken(found: impl Into<Text>, means: impl Into<Text>, fix: impl Into<Text>) -> Judgement {
    let (means, fix) = (Some(means.into()), Some(fix.into()));
    Judgement { outcome: Outcome::Broken, means, fix, ..ok(found) }
}

/// A fact, if it could be read.
pub(crate) fn seen<T>(fact: &Result<T, Failure>) -> Result<&T, Failure> {
    fact.as_ref().map_err(Clone::clone)
}

/// A judgement, or a warning if its facts could not be read. Never `ok` in that case.
pub(crate) fn or_unseen(judged: Judged) -> Judgement {
    judged.unwrap_or_else(|unseen| {
        let fix = "if that was denied, grant the permissions that docs/operate.md lists for doctor";
        let found = Text::from("not checked: ").and(unseen.text());
        Judgement { outcome: Outcome::Warning, means: None, fix: Some(fix.into()), ..ok(found) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_fact_is_a_warning_naming_its_action() {
        let denied = Failure::could_not("lambda:GetFunctionConcurrency of orders: AccessDenied");
        let judgement = or_unseen(Err(denied));
        assert_eq!(judgement.outcome, Outcome::Warning);
        let found = "not checked: lambda:GetFunctionConcurrency of orders: AccessDenied";
        assert_eq!((judgement.found.to_string(), judgement.means), (found.into(), None));
        assert_eq!(or_unseen(Ok(ok("fine"))), ok("fine"));
    }
}
