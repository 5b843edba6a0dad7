//! The outcome of a check.

use serde::Serialize;

use crate::operate::account::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Skipped,
    Ok,
    /// It works, but not as it should; or it could not be read.
    Warning,
    /// Events are lost, given up too early, or not retried.
    Broken,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnosis {
    pub(crate) outcome: Outcome,
    pub(crate) found: String,
    /// For a warning and for something broken.
    pub(crate) remedy: Option<Remedy>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remedy {
    pub(crate) means: String,
    pub(crate) fix: String,
}

/// A verdict, or why what it is about could not be read.
pub(crate) type Judged = Result<Diagnosis, Failure>;

pub(crate) fn ok(found: impl Into<String>) -> Diagnosis {
    Diagnosis { outcome: Outcome::Ok, found: found.into(), remedy: None }
}

pub(crate) fn skipped(why: impl Into<String>) -> Diagnosis {
    Diagnosis { outcome: Outcome::Skipped, found: why.into(), remedy: None }
}

pub(crate) fn warning(
    found: impl Into<String>,
    means: impl Into<String>,
    fix: impl Into<String>,
) -> Diagnosis {
    with_remedy(Outcome::Warning, found, means, fix)
}

pub(crate) fn broken(
    found: impl Into<String>,
    means: impl Into<String>,
    fix: impl Into<String>,
) -> Diagnosis {
    with_remedy(Outcome::Broken, found, means, fix)
}

pub(crate) fn with_remedy(
    outcome: Outcome,
    found: impl Into<String>,
    means: impl Into<String>,
    fix: impl Into<String>,
) -> Diagnosis {
    let remedy = Remedy { means: means.into(), fix: fix.into() };
    Diagnosis { outcome, found: found.into(), remedy: Some(remedy) }
}

/// A fact, if it could be read.
pub(crate) fn seen<T>(fact: &Result<T, Failure>) -> Result<&T, Failure> {
    fact.as_ref().map_err(Clone::clone)
}

/// What could not be read is a warning, never `ok`.
pub(crate) fn or_unseen(judged: Judged) -> Diagnosis {
    judged.unwrap_or_else(|unseen| {
        warning(
            format!("not looked at: {unseen}"),
            "whether it is as it should be is not known",
            "see to it that the call works, with the permissions that docs/operate.md lists for doctor",
        )
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
        assert!(verdict.found.contains("lambda:GetFunctionConcurrency of orders"), "{}", verdict.found);
        assert_eq!(or_unseen(Ok(ok("fine"))), ok("fine"));
    }
}
