use std::time::Duration;

use aws_sdk_lambda::error::ProvideErrorMetadata;
use aws_sdk_lambda::types::{DestinationConfig, OnFailure, OnSuccess, RecursiveLoop};
use comeback_backoff::{Backoff, Delays, Jitter, retry};

use crate::attach::change::Change;
use crate::attach::plan::AttachPlan;
use crate::attach::policy::Policy;
use crate::attach::read::read_policy;
use crate::attach::{losses, place};
use crate::{Account, Failure, Interrupt, InvokeSettings};

/// A new permission takes a few seconds to reach every part of AWS.
const RETRIES: u64 = 9;
const LONGEST_WAIT: Duration = Duration::from_secs(8);

impl AttachPlan {
    /// Makes the changes, one after the other. Calls `done` after each.
    ///
    /// # Errors
    ///
    /// A call that did not work; [`Failure::Interrupted`] between two changes. What is left is done by planning again.
    pub async fn perform(
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
///
/// # Errors
///
/// That of planning.
pub async fn settled(plan: impl AsyncFn() -> Result<AttachPlan, Failure>) -> Result<AttachPlan, Failure> {
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
                call.send().await.map_err(|error| Failure::of_call("lambda:TagResource", arn, &error))?;
            }
            Self::Forget { arn, tags } => {
                let keys = tags.iter().map(|(key, _)| key.clone()).collect();
                let call = account.lambda.untag_resource().resource(arn).set_tag_keys(Some(keys));
                call.send().await.map_err(|error| Failure::of_call("lambda:UntagResource", arn, &error))?;
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
            Self::List { place, arn, listed } => place::edit(account, place, arn, *listed, interrupt).await?,
            Self::Recursion { function, allowed } => {
                let setting = if *allowed { RecursiveLoop::Allow } else { RecursiveLoop::Terminate };
                let call = account.lambda.put_function_recursion_config().function_name(function);
                call.recursive_loop(setting).send().await.map_err(|error| {
                    Failure::of_call("lambda:PutFunctionRecursionConfig", function, &error)
                })?;
            }
            Self::Watch { function, alarm, tell } => losses::watch(account, function, alarm, tell).await?,
            Self::Unwatch { alarm, .. } => losses::unwatch(account, alarm).await?,
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

async fn put_policy(account: &Account, role: &str, name: &str, policy: &Policy) -> Result<(), Failure> {
    let call = account.iam.put_role_policy().role_name(role).policy_name(name);
    let answer = call.policy_document(policy.write()).send().await;
    answer.map(drop).map_err(|error| Failure::of_call("iam:PutRolePolicy", role, &error))
}

/// A policy that is gone already is no failure.
async fn delete_policy(account: &Account, role: &str, policy: &str) -> Result<(), Failure> {
    let answer = account.iam.delete_role_policy().role_name(role).policy_name(policy).send().await;
    match answer {
        Err(error) if error.as_service_error().is_some_and(|error| error.is_no_such_entity_exception()) => {
            Ok(())
        }
        answer => answer.map(drop).map_err(|error| Failure::of_call("iam:DeleteRolePolicy", role, &error)),
    }
}

/// Settings that are gone already are no failure.
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
        answer => answer
            .map(drop)
            .map_err(|error| Failure::of_call("lambda:DeleteFunctionEventInvokeConfig", function, &error)),
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
    put.sleep(tokio::time::sleep).await.map(drop).map_err(|given_up| {
        Failure::of_call("lambda:PutFunctionEventInvokeConfig", function, &given_up.error)
    })
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
