//! The outcome of a check.

use std::fmt::Display;

use serde::Serialize;

use crate::account::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Skipped,
    Ok,
    /// It works, but not as it should; or it could not be read.
    Warning,
    /// Events are lost, dead-lettered too early, or not retried.
    Broken,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Diagnosis {
    pub(crate) outcome: Outcome,
    pub(crate) found: String,
    /// What follows from that; `None` if nothing is wrong.
    pub(crate) means: Option<String>,
    pub(crate) fix: Option<String>,
}

/// A diagnosis, or why what it is about could not be read.
pub(crate) type Judged = Result<Diagnosis, Failure>;

pub(crate) fn ok(found: impl Display) -> Diagnosis {
    Diagnosis { outcome: Outcome::Ok, found: found.to_string(), means: None, fix: None }
}

pub(crate) fn skipped(why: impl Display) -> Diagnosis {
    Diagnosis { outcome: Outcome::Skipped, ..ok(why) }
}

pub(crate) fn warning(found: impl Display, means: impl Display, fix: impl Display) -> Diagnosis {
    Diagnosis { outcome: Outcome::Warning, ..broken(found, means, fix) }
}

pub(crate) fn broken(found: impl Display, means: impl Display, fix: impl Display) -> Diagnosis {
    let (means, fix) = (Some(means.to_string()), Some(fix.to_string()));
    Diagnosis { outcome: Outcome::Broken, means, fix, ..ok(found) }
}

/// A fact, if it could be read.
pub(crate) fn seen<T>(fact: &Result<T, Failure>) -> Result<&T, Failure> {
    fact.as_ref().map_err(Clone::clone)
}

/// What could not be read is a warning, never `ok`.
pub(crate) fn or_unseen(judged: Judged) -> Diagnosis {
    judged.unwrap_or_else(|unseen| {
        let fix = "if that was denied, grant the permissions that docs/operate.md lists for doctor";
        let found = format!("not checked: {unseen}");
        Diagnosis { outcome: Outcome::Warning, means: None, fix: Some(fix.into()), ..ok(found) }
    })
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn what_was_not_seen_is_a_warning_that_names_the_action() {
        let denied = Failure::CouldNot("lambda:GetFunctionConcurrency of orders: AccessDenied".into());
        let verdict = or_unseen(Err(denied));
        assert_eq!(verdict.outcome, Outcome::Warning);
        let found = "not checked: lambda:GetFunctionConcurrency of orders: AccessDenied";
        assert_eq!((&*verdict.found, verdict.means), (found, None));
        assert_eq!(or_unseen(Ok(ok("fine"))), ok("fine"));
    }
}
