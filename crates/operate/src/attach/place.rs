use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_cloudformation::types::{Capability, Parameter, Stack, StackStatus};
use aws_sdk_lambda::operation::get_function::GetFunctionOutput;
use aws_sdk_lambda::types::{Environment, LastUpdateStatus};

use crate::attach::allow_list::{self, VARIABLE};
use crate::attach::change::ListPlace;
use crate::{Account, Failure, Interrupt};

/// The stack's parameter that holds the allow-list.
pub(crate) const PARAMETER: &str = "TargetFunctions";

/// How often it is looked whether an update has ended, and how many times: half an hour.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LOOKS: usize = 900;

/// Puts a function on the allow-list, or takes it off, and waits until that is in force. The list is read anew just
/// before, so that nobody else's entry is lost.
pub(crate) async fn edit(
    account: &Account,
    place: &ListPlace,
    arn: &str,
    listed: bool,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let edit = |list: &str| if listed { allow_list::with(list, arn) } else { allow_list::without(list, arn) };
    match place {
        ListPlace::Stack(stack) => edit_parameter(account, stack, &edit, interrupt).await,
        ListPlace::Function(name) => edit_variable(account, name, &edit, interrupt).await,
    }
}

async fn edit_parameter(
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
    let list = parameter(&stack, PARAMETER).ok_or_else(|| {
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
    updated(account, name, interrupt).await
}

/// Waits for the end of a stack's update.
async fn updated(account: &Account, name: &str, interrupt: &Interrupt) -> Result<(), Failure> {
    for _ in 0..LOOKS {
        let stack = describe(account, name).await?;
        match status(&stack) {
            StackStatus::UpdateComplete | StackStatus::UpdateCompleteCleanupInProgress => return Ok(()),
            StackStatus::UpdateInProgress => pause(interrupt, &format!("the update of stack {name}")).await?,
            other if other.as_str().ends_with("_IN_PROGRESS") => {
                pause(interrupt, &format!("the rollback of stack {name}")).await?;
            }
            other => {
                let reason = reason(account, name).await?;
                return Err(Failure::Undone(format!("the update of stack {name} ended {other}: {reason}")));
            }
        }
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
    let began = |event: &&aws_sdk_cloudformation::types::StackEvent| {
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

async fn edit_variable(
    account: &Account,
    name: &str,
    edit: &dyn Fn(&str) -> String,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let handler = function(account, name).await?;
    let mut variables = variables(&handler, name)?;
    let list = variables.get(VARIABLE).cloned().unwrap_or_default();
    let edited = edit(&list);
    if edited == list {
        return Ok(());
    }
    variables.insert(VARIABLE.to_owned(), edited);
    let environment = Environment::builder().set_variables(Some(variables.into_iter().collect())).build();
    let revision = handler.configuration().and_then(|it| it.revision_id()).map(ToOwned::to_owned);
    let update = account.lambda.update_function_configuration().function_name(name).environment(environment);
    // Refused if anybody has changed the function since it was read.
    update
        .set_revision_id(revision)
        .send()
        .await
        .map_err(|error| Failure::of_call("lambda:UpdateFunctionConfiguration", name, &error))?;
    for _ in 0..LOOKS {
        let handler = function(account, name).await?;
        let update = handler.configuration().and_then(|it| it.last_update_status());
        match update {
            Some(LastUpdateStatus::InProgress) => {
                pause(interrupt, &format!("the update of function {name}")).await?;
            }
            Some(LastUpdateStatus::Failed) => {
                let reason = handler.configuration().and_then(|it| it.last_update_status_reason());
                let reason = reason.unwrap_or("Lambda gives no reason");
                return Err(Failure::Undone(format!("the update of function {name} failed: {reason}")));
            }
            _ => return Ok(()),
        }
    }
    Err(Failure::Undone(format!(
        "the update of function {name} goes on for half an hour; repeat the command later"
    )))
}

async fn pause(interrupt: &Interrupt, what: &str) -> Result<(), Failure> {
    tokio::select! {
        () = tokio::time::sleep(LOOK_EVERY) => Ok(()),
        () = interrupt.raised() => {
            Err(Failure::Interrupted(format!("{what} goes on; repeat the command when it has ended")))
        }
    }
}

pub(crate) async fn describe(account: &Account, name: &str) -> Result<Stack, Failure> {
    let answer = account.cloudformation.describe_stacks().stack_name(name).send().await;
    let answer = answer.map_err(|error| Failure::of_call("cloudformation:DescribeStacks", name, &error))?;
    let stack = answer.stacks.unwrap_or_default().into_iter().next();
    stack.ok_or_else(|| Failure::CouldNot(format!("CloudFormation gave no stack {name}")))
}

fn status(stack: &Stack) -> &StackStatus {
    stack.stack_status().expect("BUG: CloudFormation's model has a status in every stack")
}

/// The value of a stack's parameter.
pub(crate) fn parameter<'a>(stack: &'a Stack, key: &str) -> Option<&'a str> {
    let parameter = stack.parameters().iter().find(|parameter| parameter.parameter_key() == Some(key))?;
    Some(parameter.parameter_value().unwrap_or_default())
}

async fn function(account: &Account, name: &str) -> Result<GetFunctionOutput, Failure> {
    let answer = account.lambda.get_function().function_name(name).send().await;
    answer.map_err(|error| Failure::of_call("lambda:GetFunction", name, &error))
}

/// A function's variables. Where Lambda cannot decrypt them it gives none, and writing them back would remove all.
fn variables(function: &GetFunctionOutput, name: &str) -> Result<BTreeMap<String, String>, Failure> {
    let environment = function.configuration().and_then(|it| it.environment());
    if let Some(error) = environment.and_then(|environment| environment.error()) {
        let why = error.message().unwrap_or("no reason is given");
        return Err(Failure::CouldNot(format!("the environment of {name} cannot be read: {why}")));
    }
    let variables = environment.and_then(|environment| environment.variables()).into_iter().flatten();
    Ok(variables.map(|(name, value)| (name.clone(), value.clone())).collect())
}
