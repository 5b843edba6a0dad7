//! The allow-list in a parameter of the handler's stack.

use aws_sdk_cloudformation::types::{Capability, Parameter, Stack, StackEvent, StackStatus};
use aws_sdk_lambda::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;

use super::{LOOKS, pause};
use crate::{Account, Failure, Interrupt};

/// The stack's parameter that holds the allow-list.
pub(crate) const PARAMETER: &str = "TargetFunctions";

/// How many looks in a row may show the stack as it was before: a minute.
const LOOKS_UNSEEN: usize = 30;

pub(super) async fn edit(
    account: &Account,
    name: &str,
    edit: &dyn Fn(&str) -> String,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let stack = describe(account, name).await?;
    let status = status(&stack).as_str();
    if status.ends_with("_IN_PROGRESS") {
        return Err(Failure::CouldNot(format!(
            "stack {name} is {status}: somebody changes it at this moment; repeat the command when that has ended"
        )));
    }
    let list = value(&stack, PARAMETER).ok_or_else(|| {
        Failure::CouldNot(format!("stack {name} has lost its parameter {PARAMETER}; repeat the command"))
    })?;
    let edited = edit(list);
    if edited == list {
        return Ok(());
    }
    let parameters = stack.parameters().iter().filter_map(Parameter::parameter_key).map(|key| {
        let parameter = Parameter::builder().parameter_key(key);
        if key == PARAMETER { parameter.parameter_value(&edited) } else { parameter.use_previous_value(true) }
            .build()
    });
    // What the stack's last deployment acknowledged. A template of SAM is a macro, which a direct update expands.
    let mut capabilities = stack.capabilities().to_vec();
    if !capabilities.contains(&Capability::CapabilityAutoExpand) {
        capabilities.push(Capability::CapabilityAutoExpand);
    }
    let update = account.cloudformation.update_stack().stack_name(name).use_previous_template(true);
    let update = update.set_parameters(Some(parameters.collect())).set_capabilities(Some(capabilities));
    update.send().await.map_err(|error| Failure::of_call("cloudformation:UpdateStack", name, &error))?;
    updated(account, &stack, name, &edited, interrupt).await
}

/// How far an update of a stack's parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Update {
    Done,
    GoesOn,
    /// What was read may be from before the update: a stack is not seen everywhere at once as it is.
    NotSeen,
    Failed,
}

impl Update {
    /// `before` is the stack as it was. `has_begun` says that the update was seen under way.
    fn of(before: &Stack, now: &Stack, edited: &str, has_begun: bool) -> Self {
        match status(now) {
            StackStatus::UpdateComplete | StackStatus::UpdateCompleteCleanupInProgress => {
                if value(now, PARAMETER) == Some(edited) { Self::Done } else { Self::NotSeen }
            }
            other if other.as_str().ends_with("_IN_PROGRESS") => Self::GoesOn,
            _ if has_begun || now.last_updated_time() != before.last_updated_time() => Self::Failed,
            _ => Self::NotSeen,
        }
    }
}

/// Waits for the end of a stack's update.
async fn updated(
    account: &Account,
    before: &Stack,
    name: &str,
    edited: &str,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let (mut has_begun, mut not_seen) = (false, 0);
    for _ in 0..LOOKS {
        let stack = describe(account, name).await?;
        let status = status(&stack);
        match Update::of(before, &stack, edited, has_begun) {
            Update::Done => return Ok(()),
            Update::GoesOn => (has_begun, not_seen) = (true, 0),
            Update::NotSeen if not_seen == LOOKS_UNSEEN => {
                return Err(Failure::Undone(format!(
                    "stack {name} is {status}, and its {PARAMETER} is not what was written: somebody else changes it too, \
                     or AWS needs longer; repeat the command"
                )));
            }
            Update::NotSeen => not_seen += 1,
            Update::Failed => {
                let reason = reason(account, name).await?;
                return Err(Failure::Undone(format!("the update of stack {name} ended {status}: {reason}")));
            }
        }
        pause(interrupt, &format!("the update of stack {name} ({status})")).await?;
    }
    Err(Failure::Undone(format!(
        "the update of stack {name} goes on for half an hour; repeat the command later"
    )))
}

/// The first thing that went wrong in the last operation on a stack.
async fn reason(account: &Account, name: &str) -> Result<String, Failure> {
    let call = account.cloudformation.describe_stack_events().stack_name(name);
    let answer = call
        .send()
        .await
        .map_err(|error| Failure::of_call("cloudformation:DescribeStackEvents", name, &error))?;
    // The newest comes first, and the operation began when the stack itself did.
    let began = |event: &&StackEvent| {
        event.resource_status().is_some_and(|status| status.as_str() == "UPDATE_IN_PROGRESS")
            && event.physical_resource_id() == event.stack_id()
    };
    let failed =
        answer.stack_events().iter().take_while(|event| !began(event)).filter(|event| {
            event.resource_status().is_some_and(|status| status.as_str().ends_with("_FAILED"))
        });
    Ok(failed.last().map_or_else(
        || "it gives no reason".to_owned(),
        |event| {
            let resource = event.logical_resource_id().unwrap_or_default();
            format!("{resource}: {}", event.resource_status_reason().unwrap_or_default())
        },
    ))
}

async fn describe(account: &Account, name: &str) -> Result<Stack, Failure> {
    let stack = find(account, name).await?;
    stack.ok_or_else(|| Failure::CouldNot(format!("CloudFormation has no stack {name} any more")))
}

/// A stack; `None` if there is none of that name, for a tag may outlive its stack.
pub(crate) async fn find(account: &Account, name: &str) -> Result<Option<Stack>, Failure> {
    match account.cloudformation.describe_stacks().stack_name(name).send().await {
        Ok(answer) => Ok(answer.stacks.unwrap_or_default().into_iter().next()),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(Failure::of_call("cloudformation:DescribeStacks", name, &error)),
    }
}

/// Whether CloudFormation says that there is no such stack, for which it has no error of its own.
pub(crate) fn is_gone<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    let error = error.as_service_error().map(ProvideErrorMetadata::meta);
    error.is_some_and(|error| is_no_stack(error.code(), error.message()))
}

fn is_no_stack(code: Option<&str>, message: Option<&str>) -> bool {
    code == Some("ValidationError") && message.is_some_and(|message| message.contains("does not exist"))
}

fn status(stack: &Stack) -> &StackStatus {
    stack.stack_status().expect("BUG: CloudFormation's model has a status in every stack")
}

/// The value of a stack's parameter.
pub(crate) fn value<'a>(stack: &'a Stack, key: &str) -> Option<&'a str> {
    let parameter = stack.parameters().iter().find(|parameter| parameter.parameter_key() == Some(key))?;
    Some(parameter.parameter_value().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use aws_smithy_types::DateTime;

    use super::*;

    fn stack(status: StackStatus, value: &str, updated: i64) -> Stack {
        let parameter = Parameter::builder().parameter_key(PARAMETER).parameter_value(value).build();
        let stack = Stack::builder().stack_name("comeback").creation_time(DateTime::from_secs(0));
        stack
            .stack_status(status)
            .parameters(parameter)
            .last_updated_time(DateTime::from_secs(updated))
            .build()
    }

    #[test]
    fn only_what_came_after_the_update_counts() {
        use StackStatus::{
            UpdateComplete, UpdateInProgress, UpdateRollbackComplete, UpdateRollbackInProgress,
        };
        let complete = stack(UpdateComplete, "a", 1);
        let rolled_back = stack(UpdateRollbackComplete, "a", 1);
        for (before, now, has_begun, expected) in [
            (&complete, stack(UpdateComplete, "a", 1), false, Update::NotSeen),
            (&complete, stack(UpdateInProgress, "a", 2), false, Update::GoesOn),
            (&complete, stack(UpdateComplete, "a,b", 2), true, Update::Done),
            (&complete, stack(UpdateComplete, "a,b", 2), false, Update::Done),
            (&complete, stack(StackStatus::UpdateCompleteCleanupInProgress, "a,b", 2), true, Update::Done),
            (&complete, stack(UpdateComplete, "a,c", 3), true, Update::NotSeen),
            (&complete, stack(UpdateRollbackInProgress, "a", 2), true, Update::GoesOn),
            (&complete, stack(UpdateRollbackComplete, "a", 2), false, Update::Failed),
            (&rolled_back, stack(UpdateRollbackComplete, "a", 1), false, Update::NotSeen),
            (&rolled_back, stack(UpdateRollbackComplete, "a", 1), true, Update::Failed),
            (&rolled_back, stack(UpdateRollbackComplete, "a", 2), false, Update::Failed),
        ] {
            assert_eq!(Update::of(before, &now, "a,b", has_begun), expected, "{now:?}");
        }
    }

    #[test]
    fn a_stack_that_is_gone_is_no_other_error() {
        let gone = Some("Stack with id comeback does not exist");
        assert!(is_no_stack(Some("ValidationError"), gone));
        assert!(!is_no_stack(Some("ValidationError"), Some("1 validation error detected")));
        assert!(!is_no_stack(Some("AccessDenied"), gone) && !is_no_stack(None, None));
    }
}
