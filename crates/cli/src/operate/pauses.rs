//! The pauses of a deployment: a text in an SSM parameter.

pub(crate) mod concurrency;
pub(crate) mod writing;

use std::time::Duration;

use comeback_engine::{
    Concurrency, EditError, FunctionPattern, Pause, PauseTarget, Pauses, Timestamp, longest_between_reads,
};
use serde::Serialize;

use crate::operate::account::{Account, Failure, Or as _};
use crate::operate::deployment::Deployment;
use crate::operate::function::{FunctionName, short_name};

/// After a pause with a planned end, and by default after `resume`, what was due comes back over this time.
pub(crate) const DEFAULT_SPREAD: Duration = Duration::from_secs(1_800);

/// Reads the pauses as the handler does: without a parameter nothing is paused. `None` if the handler reads no pauses.
pub(crate) async fn read(account: &Account, deployment: &Deployment) -> Result<Option<Pauses>, Failure> {
    let Some(name) = deployment.pauses() else { return Ok(None) };
    Ok(Some(read_parameter(account, name).await?.0))
}

/// The pauses in a parameter, and its version; 0 if there is no parameter.
pub(crate) async fn read_parameter(account: &Account, name: &str) -> Result<(Pauses, i64), Failure> {
    match account.ssm.get_parameter().name(name).send().await {
        Err(error) if error.as_service_error().is_some_and(|error| error.is_parameter_not_found()) => {
            Ok((Pauses::default(), 0))
        }
        answer => {
            let answer = answer.or_failure("ssm:GetParameter", name)?;
            let parameter = answer.parameter();
            let text = parameter.and_then(|parameter| parameter.value()).unwrap_or_default();
            Ok((parsed(name, text)?, parameter.map_or(0, |parameter| parameter.version())))
        }
    }
}

pub(crate) fn parsed(name: &str, text: &str) -> Result<Pauses, Failure> {
    Pauses::read(text).map_err(|garbled| Failure::CouldNot(format!("parameter {name}: {garbled}")))
}

pub(crate) fn parameter(deployment: &Deployment) -> Result<&str, Failure> {
    deployment.pauses().ok_or_else(|| {
        Failure::Undone(format!(
            "the handler {} reads no pauses: deploy the current template, or set its variable PAUSES to the name of an SSM \
             parameter and allow its role ssm:GetParameter on it",
            deployment.handler
        ))
    })
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// A pause that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OpenPause {
    /// The ARN of its function, or `*` for every function.
    pub(crate) target: String,
    pub(crate) from: Timestamp,
    pub(crate) until: Option<Timestamp>,
    pub(crate) open_seconds: u64,
    pub(crate) by: Option<String>,
    pub(crate) why: Option<String>,
    /// Its function's reserved concurrency is 0 meanwhile.
    pub(crate) is_hard: bool,
}

impl OpenPause {
    /// The pauses that are not over; `None` if the handler reads no pauses.
    pub(crate) async fn all(
        account: &Account,
        deployment: &Deployment,
        now: Timestamp,
    ) -> Result<Option<Vec<Self>>, Failure> {
        let pauses = read(account, deployment).await?;
        Ok(pauses.map(|pauses| {
            pauses.iter().filter(|pause| !pause.is_over(now)).map(|pause| Self::of(pause, now)).collect()
        }))
    }

    pub(crate) fn of(pause: &Pause, now: Timestamp) -> Self {
        Self {
            target: pause.target.to_string(),
            from: pause.from,
            until: pause.until,
            open_seconds: now.since(pause.from).as_secs(),
            by: pause.by.clone(),
            why: pause.why.clone(),
            is_hard: pause.concurrency != Concurrency::Untouched,
        }
    }

    /// `name`, `name:qualifier` or `every function`.
    pub(crate) fn name(&self) -> &str {
        if self.target == "*" { "every function" } else { short_name(&self.target) }
    }
}

/// The functions of a pause, for people.
pub(crate) fn named(function: Option<&FunctionName>) -> String {
    function.map_or_else(|| "every function".to_owned(), ToString::to_string)
}

/// How long until the handler notices a change, in whole seconds; `None` if it does not start for its settings.
pub(crate) fn noticed_within(deployment: &Deployment) -> Option<Duration> {
    let policy = deployment.policy().ok()?;
    let longest = longest_between_reads(&policy);
    Some(Duration::from_secs(longest.as_millis().div_ceil(1_000) as u64))
}

/// The target of a pause of one function, or of every function. Fails if the handler does not retry the function: a pause
/// of it would hold nothing.
pub(crate) fn target(
    deployment: &Deployment,
    function: Option<&FunctionName>,
) -> Result<PauseTarget, Failure> {
    let Some(function) = function else { return Ok(PauseTarget::All) };
    let arn = deployment.arn_of(function).to_string();
    let entries = deployment.target_functions().filter_map(|entry| entry.parse::<FunctionPattern>().ok());
    // An entry with a qualifier is about a part of the function.
    let is_part = |entry: &str| {
        function.qualifier.is_none() && entry.strip_prefix(&arn).is_some_and(|rest| rest.starts_with(':'))
    };
    if !entries.into_iter().any(|entry| entry.allows(&arn)) && !deployment.target_functions().any(is_part) {
        return Err(Failure::CouldNot(format!(
            "no entry of TARGET_FUNCTIONS allows {arn}, so the handler does not retry it; check its name, or attach it"
        )));
    }
    arn.parse().map_err(|problem| Failure::Refused(format!("{arn} {problem}")))
}
