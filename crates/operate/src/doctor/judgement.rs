//! The judgement that a check makes from the facts.

use serde::Serialize;

use crate::failure::Failure;
use crate::text::Text;

/// The outcome of a check, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The check did not apply, for example because the function is not attached.
    Skipped,
    /// No problem was found.
    Ok,
    /// The deployment works, but not as it should, or the facts could not be read.
    Warning,
    /// Events are lost, dead-lettered too early, or not retried.
    Broken,
}

/// The result of a check: its outcome, with the facts and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The seriousness of the result.
    pub outcome: Outcome,
    /// The facts found, in words.
    pub found: Text,
    /// The consequence of the problem, on one or more lines. `None` if nothing is wrong.
    pub means: Option<Text>,
    /// The commands that fix the problem, one on each line. The operator replaces the words in capitals. `None` if
    /// nothing is wrong.
    pub fix: Option<Text>,
}

/// A judgement, or the failure to read the facts that it needs.
pub(crate) type Judged = Result<Judgement, Failure>;

/// A judgement with outcome [`Outcome::Ok`].
pub(crate) fn ok(found: impl Into<Text>) -> Judgement {
    Judgement { outcome: Outcome::Ok, found: found.into(), means: None, fix: None }
}

/// A judgement with outcome [`Outcome::Skipped`], and the reason why the check did not apply.
pub(crate) fn skipped(why: impl Into<Text>) -> Judgement {
    Judgement { outcome: Outcome::Skipped, ..ok(why) }
}

/// A judgement with outcome [`Outcome::Warning`].
pub(crate) fn warning(found: impl Into<Text>, means: impl Into<Text>, fix: impl Into<Text>) -> Judgement {
    Judgement { outcome: Outcome::Warning, ..broken(found, means, fix) }
}

/// A judgement with outcome [`Outcome::Broken`].
pub(crate) fn broken(found: impl Into<Text>, means: impl Into<Text>, fix: impl Into<Text>) -> Judgement {
    let (means, fix) = (Some(means.into()), Some(fix.into()));
    Judgement { outcome: Outcome::Broken, means, fix, ..ok(found) }
}

/// Borrows a fact, or clones the failure to read it.
pub(crate) fn seen<T>(fact: &Result<T, Failure>) -> Result<&T, Failure> {
    fact.as_ref().map_err(Clone::clone)
}

/// Turns a failure to read the facts into a warning, so that an unread fact never counts as `ok`.
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
