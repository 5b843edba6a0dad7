//! Reads and edits the pauses of a deployment.

pub mod edits;
pub(crate) mod history;
pub mod in_force;
pub mod listing;
pub(crate) mod parameter;
pub(crate) mod repair;
pub mod requests;

use std::collections::BTreeSet;
use std::time::Duration;

use comeback_engine::{Pause, PauseTarget, Pauses, Timestamp, longest_between_reads, short_name};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::numbers::counted;
use crate::text::Text;

/// The default spread of a pause: the time over which the held events are retried after the pause ends.
pub const DEFAULT_SPREAD: Duration = Duration::from_secs(1_800);

/// A note on past pauses that were dropped because the SSM parameter was full.
pub(crate) fn forgotten_note(forgotten: &[Pause]) -> Option<Text> {
    let last = forgotten.iter().filter_map(|pause| pause.until).max()?;
    let names: BTreeSet<String> =
        forgotten.iter().map(|pause| target_name(&pause.target.to_string()).to_owned()).collect();
    let note = format!(
        "the parameter was full, so {} of {} were dropped, the last of which ended at {last}; their time \
         counts towards MAX_AGE again",
        counted(forgotten.len() as u64, "ended pause", "ended pauses"),
        names.into_iter().collect::<Vec<_>>().join(", "),
    );
    Some(note.into())
}

/// Validates a string for the SSM parameter, which cannot store `{{`.
pub fn read_text(text: &str) -> Result<String, String> {
    if text.contains("{{") {
        return Err("must not contain {{, which SSM does not store".into());
    }
    Ok(text.to_owned())
}

/// The target's name as shown to operators: `name`, `name:qualifier` or `every function`.
pub(crate) fn target_name(target: &str) -> &str {
    if target == "*" { "every function" } else { short_name(target) }
}

/// Returns true if the pause is active and covers the target. For [`PauseTarget::All`], a pause of any function
/// counts.
pub(crate) fn holds(pause: &Pause, target: &PauseTarget, now: Timestamp) -> bool {
    let is_held = match target {
        PauseTarget::All => true,
        PauseTarget::Functions(function) => pause.target.covers(&function.to_string()),
    };
    is_held && pause.is_active(now)
}

/// A pause that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenPause {
    /// The pause, as it is stored in the SSM parameter.
    pub pause: Pause,
    /// The seconds since the pause began.
    pub open_seconds: u64,
}

impl OpenPause {
    /// The pauses that have not ended by `now`.
    pub fn all_of(pauses: &Pauses, now: Timestamp) -> Vec<Self> {
        pauses.iter().filter(|pause| !pause.is_over(now)).map(|pause| Self::of(pause, now)).collect()
    }

    /// A pause as it is at `now`.
    pub fn of(pause: &Pause, now: Timestamp) -> Self {
        Self { pause: pause.clone(), open_seconds: now.since(pause.from).as_secs() }
    }

    /// The target, as shown to operators: `name`, `name:qualifier` or `every function`.
    pub fn name(&self) -> String {
        target_name(&self.pause.target.to_string()).to_owned()
    }
}

impl Serialize for OpenPause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Pause { target, from, until, spread, by, why } = &self.pause;
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("target", &target.to_string())?;
        members.serialize_entry("from", from)?;
        members.serialize_entry("until", until)?;
        members.serialize_entry("open_seconds", &self.open_seconds)?;
        members.serialize_entry("spread_seconds", &spread.as_secs())?;
        members.serialize_entry("by", by)?;
        members.serialize_entry("why", why)?;
        members.end()
    }
}

/// Returns the function's name as the operator typed it, or "every function" if the operator named none.
pub(crate) fn named(function: Option<&FunctionName>) -> String {
    function.map_or_else(|| "every function".to_owned(), ToString::to_string)
}

/// The longest time before the handler reads a change to the SSM parameter, or `None` if the handler refuses its
/// settings.
pub(crate) fn noticed_within(deployment: &Deployment) -> Option<Duration> {
    let policies = deployment.policies().ok()?;
    let longest = longest_between_reads(policies.stack().settings().maximum_concurrency);
    Some(Duration::from_secs(longest.as_millis().div_ceil(1_000) as u64))
}

pub(crate) fn target(
    deployment: &Deployment,
    function: Option<&FunctionName>,
) -> Result<PauseTarget, Failure> {
    let Some(function) = function else { return Ok(PauseTarget::All) };
    let arn = deployment.arn_of(function).to_string();
    arn.parse().map_err(|problem| Failure::refused(format!("{arn} {problem}")))
}

/// Returns the target of a new pause or retry request, or fails if the function is not on the allow-list.
pub(crate) fn retried_target(
    deployment: &Deployment,
    function: Option<&FunctionName>,
) -> Result<PauseTarget, Failure> {
    let target = target(deployment, function)?;
    if function.is_none_or(|function| deployment.allows_name(function)) {
        return Ok(target);
    }
    Err(Failure::could_not(format!(
        "TARGET_FUNCTIONS does not allow {target}, so the handler does not retry it; check the name, or attach \
         the function"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_ssm_would_not_store_is_refused() {
        assert!(read_text("deploy {{ssm:x}}").is_err() && read_text("deploy {x}").is_ok());
    }

    #[test]
    fn a_name_is_allowed_if_an_alias_of_it_is() {
        let arn = |name: &str| format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}");
        let mut deployment = Deployment::sample();
        for entry in ["orders:live", "ord*:live"] {
            deployment.variables.insert("TARGET_FUNCTIONS".into(), arn(entry));
            let target = |name: &str| {
                let target = retried_target(&deployment, Some(&name.parse().unwrap()));
                target.map(|target| target.to_string()).map_err(|refused| refused.to_string())
            };
            assert_eq!(target("orders"), Ok(arn("orders")), "{entry}");
            assert_eq!(target("orders:live"), Ok(arn("orders:live")), "{entry}");
            for refused in ["orders:dev", "billing"] {
                let expected = format!("TARGET_FUNCTIONS does not allow {}, so", arn(refused));
                assert!(target(refused).is_err_and(|it| it.starts_with(&expected)), "{entry}: {refused}");
            }
        }
    }
}
