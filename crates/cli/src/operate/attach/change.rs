//! The changes of a plan: the settings they differ in, and the calls that make them.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_lambda::error::ProvideErrorMetadata;
use aws_sdk_lambda::types::{DestinationConfig, OnFailure, OnSuccess, RecursiveLoop};
use comeback_backoff::{Backoff, Delays, Jitter, retry};
use serde::Serialize;

use crate::operate::account::{Account, Failure, Or as _};
use crate::operate::alarms;
use crate::operate::attach::allow_list::ListPlace;
use crate::operate::attach::policy::{delete_policy, put_policy, read_policy};
use crate::operate::attach::{allow_list, kept};
use crate::operate::function::{InvokeSettings, short_name};
use crate::operate::session::Interrupt;

/// One change to the account. Making it twice does no more than making it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Keep {
        arn: String,
        tags: Vec<(String, String)>,
    },
    Forget {
        arn: String,
        tags: Vec<(String, String)>,
    },
    Allow {
        role: String,
        policy: String,
        statements: Vec<(Vec<&'static str>, Vec<String>)>,
    },
    /// Removes statements from an inline policy of a role, and the policy if it is then empty.
    Withdraw {
        role: String,
        policy: String,
        statements: Vec<(Vec<&'static str>, Vec<String>)>,
    },
    List {
        place: ListPlace,
        arn: String,
        listed: bool,
    },
    Recursion {
        function: String,
        allowed: bool,
    },
    /// Makes an alarm on the function's events that Lambda loses on their way to the retry queue.
    Watch {
        function: String,
        alarm: String,
        /// The actions of the alarm: ARNs of topics, usually.
        tell: BTreeSet<String>,
    },
    Unwatch {
        function: String,
        alarm: String,
    },
    /// Replaces the settings of a qualifier's asynchronous invocations.
    Settings {
        function: String,
        qualifier: Option<String>,
        from: InvokeSettings,
        /// If all are default, the settings are removed.
        to: InvokeSettings,
    },
}

/// One setting of one resource, before and after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    pub(crate) resource: String,
    pub(crate) setting: String,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

impl Change {
    pub(crate) fn differences(&self) -> Vec<Difference> {
        let one = |resource: String, setting: &str, from: Option<String>, to: Option<String>| {
            vec![Difference { resource, setting: setting.to_owned(), from, to }]
        };
        match self {
            Self::Keep { arn, tags } => tags
                .iter()
                .flat_map(|(key, value)| one(function(arn), &format!("tag {key}"), None, Some(value.clone())))
                .collect(),
            Self::Forget { arn, tags } => tags
                .iter()
                .flat_map(|(key, value)| one(function(arn), &format!("tag {key}"), Some(value.clone()), None))
                .collect(),
            Self::Allow { role, policy, statements } => {
                let actions: Vec<_> = statements.iter().flat_map(|(actions, _)| actions).copied().collect();
                one(format!("role {role}"), &format!("policy {policy}"), None, Some(actions.join(", ")))
            }
            Self::Withdraw { role, policy, .. } => {
                let setting = format!("policy {policy}");
                one(format!("role {role}"), &setting, Some("allowed".to_owned()), None)
            }
            Self::List { place, arn, listed } => {
                let (resource, setting) = match place {
                    ListPlace::Stack(stack) => (format!("stack {stack}"), "TargetFunctions"),
                    ListPlace::Function(name) => (format!("function {name}"), "TARGET_FUNCTIONS"),
                };
                let (absent, present) = (None, Some(arn.clone()));
                let (from, to) = if *listed { (absent, present) } else { (present, absent) };
                one(resource, setting, from, to)
            }
            Self::Recursion { function, allowed } => {
                let name = |allowed| Some(kept::recursion(allowed).to_owned());
                one(format!("function {function}"), "recursive loops", name(!allowed), name(*allowed))
            }
            Self::Watch { function, alarm, tell } => {
                let tell = tell.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                let tells = if tell.is_empty() { "tells nobody".to_owned() } else { format!("tells {tell}") };
                one(format!("function {function}"), &format!("alarm {alarm}"), None, Some(tells))
            }
            Self::Unwatch { function, alarm } => {
                let there = Some("there".to_owned());
                one(format!("function {function}"), &format!("alarm {alarm}"), there, None)
            }
            Self::Settings { function, qualifier, from, to } => {
                let qualified = qualifier.iter().fold(function.clone(), |name, it| format!("{name}:{it}"));
                settings(&format!("function {qualified}"), from, to)
            }
        }
    }
}

fn function(arn: &str) -> String {
    format!("function {}", short_name(arn))
}

fn settings(resource: &str, from: &InvokeSettings, to: &InvokeSettings) -> Vec<Difference> {
    let number = |number: Option<i32>, unit: &str| number.map(|number| format!("{number}{unit}"));
    [
        ("on failure", from.on_failure.clone(), to.on_failure.clone()),
        ("retries", number(from.retries, ""), number(to.retries, "")),
        ("event age", number(from.event_age, "s"), number(to.event_age, "s")),
        ("on success", from.on_success.clone(), to.on_success.clone()),
    ]
    .into_iter()
    .filter(|(_, from, to)| from != to)
    .map(|(setting, from, to)| Difference {
        resource: resource.to_owned(),
        setting: setting.to_owned(),
        from,
        to,
    })
    .collect()
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AttachPlan {
    pub(crate) changes: Vec<Change>,
    pub(crate) notes: Vec<String>,
    pub(crate) left: Option<String>,
}

impl AttachPlan {
    /// Whether another plan makes the same changes, apart from the time that `detach` keeps.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let timeless = |plan: &Self| {
            let mut changes = plan.changes.clone();
            for change in &mut changes {
                if let Change::Keep { tags, .. } = change {
                    tags.iter_mut()
                        .filter(|(key, _)| key == kept::DETACHED)
                        .for_each(|(_, time)| time.clear());
                }
            }
            changes
        };
        timeless(self) == timeless(other)
    }
}

/// A new permission takes a few seconds to reach every part of AWS.
const RETRIES: u64 = 9;
const LONGEST_WAIT: Duration = Duration::from_secs(8);

impl AttachPlan {
    /// Makes the changes, one after the other. Calls `done` after each.
    pub(crate) async fn perform(
        &self,
        account: &Account,
        interrupt: &Interrupt,
        done: &dyn Fn(&Change),
    ) -> Result<(), Failure> {
        for (made, change) in self.changes.iter().enumerate() {
            if interrupt.is_raised() {
                let all = self.changes.len();
                let what = format!("{made} of {all} changes were made; repeat the command for the others");
                return Err(Failure::Interrupted(what));
            }
            change.make(account, interrupt).await?;
            done(change);
        }
        Ok(())
    }
}

/// Plans again until nothing is left to change, because what was just changed is not seen everywhere at once. Gives the
/// last plan, whatever it says.
pub(crate) async fn settled(
    plan: impl AsyncFn() -> Result<AttachPlan, Failure>,
) -> Result<AttachPlan, Failure> {
    for delay in delays() {
        let again = plan().await?;
        if again.changes.is_empty() {
            return Ok(again);
        }
        tokio::time::sleep(delay).await;
    }
    plan().await
}

/// A minute in all.
fn delays() -> Delays {
    let backoff = Backoff::exponential(Duration::from_secs(1), LONGEST_WAIT);
    let backoff = backoff.and_then(|backoff| backoff.with_jitter(Jitter::None));
    backoff.expect("BUG: constants in order").with_retries(RETRIES).seeded(0)
}

impl Change {
    async fn make(&self, account: &Account, interrupt: &Interrupt) -> Result<(), Failure> {
        match self {
            Self::Keep { arn, tags } => {
                let call = account.lambda.tag_resource().resource(arn);
                let call = tags.iter().fold(call, |call, (key, value)| call.tags(key, value));
                call.send().await.or_failure("lambda:TagResource", arn)?;
            }
            Self::Forget { arn, tags } => {
                let keys = tags.iter().map(|(key, _)| key.clone()).collect();
                let call = account.lambda.untag_resource().resource(arn).set_tag_keys(Some(keys));
                call.send().await.or_failure("lambda:UntagResource", arn)?;
            }
            Self::Allow { role, policy, statements } => {
                let there = read_policy(account, role, policy).await?;
                put_policy(account, role, policy, &there.with(statements)).await?;
            }
            Self::Withdraw { role, policy, statements } => {
                let left = read_policy(account, role, policy).await?.without(statements);
                if left.is_empty() {
                    delete_policy(account, role, policy).await?;
                } else {
                    put_policy(account, role, policy, &left).await?;
                }
            }
            Self::List { place, arn, listed } => {
                allow_list::edit(account, place, arn, *listed, interrupt).await?
            }
            Self::Recursion { function, allowed } => {
                let setting = if *allowed { RecursiveLoop::Allow } else { RecursiveLoop::Terminate };
                let call = account.lambda.put_function_recursion_config().function_name(function);
                call.recursive_loop(setting)
                    .send()
                    .await
                    .or_failure("lambda:PutFunctionRecursionConfig", function)?;
            }
            Self::Watch { function, alarm, tell } => alarms::watch(account, function, alarm, tell).await?,
            Self::Unwatch { alarm, .. } => alarms::unwatch(account, alarm).await?,
            Self::Settings { function, qualifier, to, .. } if *to == InvokeSettings::default() => {
                remove_settings(account, function, qualifier.as_ref()).await?;
            }
            Self::Settings { function, qualifier, to, .. } => {
                put_settings(account, function, qualifier.as_ref(), to).await?;
            }
        }
        Ok(())
    }
}

/// Removes the settings, unless they are gone.
async fn remove_settings(
    account: &Account,
    function: &str,
    qualifier: Option<&String>,
) -> Result<(), Failure> {
    let call = account.lambda.delete_function_event_invoke_config().function_name(function);
    match call.set_qualifier(qualifier.cloned()).send().await {
        Err(error)
            if error.as_service_error().is_some_and(|error| error.is_resource_not_found_exception()) =>
        {
            Ok(())
        }
        answer => answer.map(drop).or_failure("lambda:DeleteFunctionEventInvokeConfig", function),
    }
}

/// Names every setting there is, because the call replaces all of them. Lambda refuses a destination as long as it does not
/// know that the function may send there.
async fn put_settings(
    account: &Account,
    function: &str,
    qualifier: Option<&String>,
    to: &InvokeSettings,
) -> Result<(), Failure> {
    let on_failure = to.on_failure.as_ref().map(|arn| OnFailure::builder().destination(arn).build());
    let on_success = to.on_success.as_ref().map(|arn| OnSuccess::builder().destination(arn).build());
    let destinations =
        DestinationConfig::builder().set_on_failure(on_failure).set_on_success(on_success).build();
    let call = account
        .lambda
        .put_function_event_invoke_config()
        .function_name(function)
        .set_qualifier(qualifier.cloned())
        .set_maximum_retry_attempts(to.retries)
        .set_maximum_event_age_in_seconds(to.event_age)
        .destination_config(destinations);
    let put = retry(|| call.clone().send(), delays()).when(|error| {
        let error = error.as_service_error().map(ProvideErrorMetadata::meta);
        error.is_some_and(|error| is_not_permitted_yet(error.code(), error.message()))
    });
    put.sleep(tokio::time::sleep)
        .await
        .map_err(|given_up| given_up.error)
        .or_failure("lambda:PutFunctionEventInvokeConfig", function)
        .map(drop)
}

/// "The function's execution role does not have permissions to call SendMessage on …"
fn is_not_permitted_yet(code: Option<&str>, message: Option<&str>) -> bool {
    code == Some("InvalidParameterValueException")
        && message.is_some_and(|message| message.contains("does not have permissions"))
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_permission_that_has_not_spread_yet_is_waited_for() {
        let refused =
            "The function's execution role does not have permissions to call SendMessage on arn:aws:sqs:q";
        assert!(is_not_permitted_yet(Some("InvalidParameterValueException"), Some(refused)));
        assert!(!is_not_permitted_yet(Some("InvalidParameterValueException"), Some("Invalid queue ARN")));
        assert!(!is_not_permitted_yet(Some("AccessDeniedException"), Some(refused)));
        assert!(!is_not_permitted_yet(None, None));
    }
}
