//! Settings of the handler, in a stack's parameters or in the handler's environment. `attach` edits the allow-list there.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_cloudformation::types::{Capability, Parameter, Stack, StackEvent, StackStatus};
use aws_sdk_lambda::error::ProvideErrorMetadata;
use aws_sdk_lambda::types::{Environment, FunctionConfiguration, LastUpdateStatus};

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::entries;
use crate::operate::function::{get_function, is_same_function};
use crate::operate::session::Interrupt;

/// A variable of the handler, and the stack's parameter that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandlerSetting {
    pub(crate) variable: &'static str,
    pub(crate) parameter: &'static str,
}

pub(crate) const TARGET_FUNCTIONS: HandlerSetting =
    HandlerSetting { variable: "TARGET_FUNCTIONS", parameter: "TargetFunctions" };
pub(crate) const POLICIES: HandlerSetting =
    HandlerSetting { variable: "POLICIES", parameter: "FunctionPolicies" };

/// CloudFormation's limit of a parameter's value.
pub(crate) const PARAMETER_BYTES: usize = 4_096;
/// Lambda's limit of a function's variables, measured as one JSON object.
pub(crate) const ENVIRONMENT_BYTES: usize = 4_096;

/// Where a setting is edited: a stack's parameter, or a variable of a handler that no stack owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingPlace {
    Stack(String),
    Function(String),
}

/// An allow-list with one more entry; as it is, if it has that entry.
pub(crate) fn list_with(list: &str, arn: &str) -> String {
    if entries(list).any(|entry| entry == arn) {
        return list.to_owned();
    }
    entries(list).chain([arn]).collect::<Vec<_>>().join(",")
}

/// An allow-list without the entries that name this function, whatever their qualifier. Patterns stay.
pub(crate) fn list_without(list: &str, arn: &str) -> String {
    entries(list).filter(|entry| !is_same_function(entry, arn)).collect::<Vec<_>>().join(",")
}

/// Whether an entry of an allow-list names this function alone.
pub(crate) fn list_has(list: &str, arn: &str) -> bool {
    entries(list).any(|entry| is_same_function(entry, arn))
}

/// The variables' size, as Lambda counts it.
pub(crate) fn environment_bytes(variables: &BTreeMap<String, String>) -> usize {
    serde_json::json!(variables).to_string().len()
}

/// An update is checked this often, for half an hour.
const CHECK_EVERY: Duration = Duration::from_secs(2);
const MOST_CHECKS: usize = 900;
/// Checks in a row that may show the stack as it was before: a minute.
const CHECKS_UNSEEN: usize = 30;

/// Edits the allow-list, and waits until that is in force. Reads it again first, so that no entry of somebody else is lost.
pub(crate) async fn edit(
    account: &Account,
    place: &SettingPlace,
    edit: &dyn Fn(&str) -> String,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    match place {
        SettingPlace::Stack(stack) => edit_parameter(account, stack, edit, interrupt).await,
        SettingPlace::Function(name) => edit_variable(account, name, edit, interrupt).await,
    }
}

/// Waits until `check` no longer gives what is under way.
async fn ended(
    interrupt: &Interrupt,
    mut check: impl AsyncFnMut() -> Result<Option<String>, Failure>,
) -> Result<(), Failure> {
    let mut update = String::new();
    for _ in 0..MOST_CHECKS {
        let Some(under_way) = check().await? else { return Ok(()) };
        update = under_way;
        tokio::select! {
            () = tokio::time::sleep(CHECK_EVERY) => {}
            () = interrupt.raised() => {
                let what = format!("{update} is still being updated; run the command again when that has ended");
                return Err(Failure::Interrupted(what));
            }
        }
    }
    Err(Failure::Undone(format!("{update} has been updating for half an hour; run the command again later")))
}

async fn edit_parameter(
    account: &Account,
    name: &str,
    edit: &dyn Fn(&str) -> String,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let HandlerSetting { parameter, .. } = TARGET_FUNCTIONS;
    let stack = describe(account, name).await?;
    let status = status(&stack).as_str();
    if status.ends_with("_IN_PROGRESS") {
        return Err(Failure::CouldNot(format!(
            "stack {name} is {status}: somebody is changing it; run the command again when that has ended"
        )));
    }
    let value = parameter_value(&stack, parameter).ok_or_else(|| {
        Failure::CouldNot(format!("stack {name} no longer has parameter {parameter}; run the command again"))
    })?;
    let edited = edit(value);
    if edited == value {
        return Ok(());
    }
    check_is_whole(name, &edited)?;
    let parameters = stack.parameters().iter().filter_map(Parameter::parameter_key).map(|key| {
        let built = Parameter::builder().parameter_key(key);
        if key == parameter { built.parameter_value(&edited) } else { built.use_previous_value(true) }.build()
    });
    // Those of the last deployment. A SAM template is a macro, which a direct update must be allowed to expand.
    let mut capabilities = stack.capabilities().to_vec();
    if !capabilities.contains(&Capability::CapabilityAutoExpand) {
        capabilities.push(Capability::CapabilityAutoExpand);
    }
    let update = account.cloudformation.update_stack().stack_name(name).use_previous_template(true);
    let update = update.set_parameters(Some(parameters.collect())).set_capabilities(Some(capabilities));
    update.send().await.or_failure("cloudformation:UpdateStack", name)?;
    StackUpdate { account, before: &stack, name, edited: &edited }.ended(interrupt).await
}

/// Fails if an allow-list has lost a character: CloudFormation gives back `?` for those that are not ASCII. No entry has one.
fn check_is_whole(name: &str, list: &str) -> Result<(), Failure> {
    if list.is_ascii() && !list.contains('?') {
        return Ok(());
    }
    Err(Failure::CouldNot(format!(
        "CloudFormation returned {} as {list:?} for stack {name}, which may have lost characters; deploy the \
         stack with the right value",
        TARGET_FUNCTIONS.parameter
    )))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Update {
    Done,
    GoesOn,
    /// CloudFormation may have answered from before the update: it is eventually consistent.
    NotSeen,
    Failed,
}

impl Update {
    fn of(before: &Stack, now: &Stack, edited: &str, has_begun: bool) -> Self {
        match status(now) {
            StackStatus::UpdateComplete => {
                if parameter_value(now, TARGET_FUNCTIONS.parameter) == Some(edited) {
                    Self::Done
                } else {
                    Self::NotSeen
                }
            }
            // CloudFormation takes the next update only after it has cleaned up.
            other if other.as_str().ends_with("_IN_PROGRESS") => Self::GoesOn,
            _ if has_begun || now.last_updated_time() != before.last_updated_time() => Self::Failed,
            _ => Self::NotSeen,
        }
    }
}

/// An update of a stack's allow-list that has been asked for.
struct StackUpdate<'a> {
    account: &'a Account,
    name: &'a str,
    before: &'a Stack,
    edited: &'a str,
}

impl StackUpdate<'_> {
    async fn ended(&self, interrupt: &Interrupt) -> Result<(), Failure> {
        let Self { account, name, before, edited } = *self;
        let (mut has_begun, mut not_seen) = (false, 0);
        let check = async || {
            let stack = describe(account, name).await?;
            let status = status(&stack);
            match Update::of(before, &stack, edited, has_begun) {
                Update::Done => return Ok(None),
                Update::GoesOn => (has_begun, not_seen) = (true, 0),
                Update::NotSeen if not_seen == CHECKS_UNSEEN => {
                    return Err(Failure::Undone(format!(
                        "stack {name} is {status}, and its {} is not what was written: somebody else is \
                         changing it too, or AWS needs longer; run the command again",
                        TARGET_FUNCTIONS.parameter
                    )));
                }
                Update::NotSeen => not_seen += 1,
                Update::Failed => {
                    let reason = reason(account, name).await?;
                    return Err(Failure::Undone(format!(
                        "the update of stack {name} ended {status}: {reason}"
                    )));
                }
            }
            Ok(Some(format!("stack {name} ({status})")))
        };
        ended(interrupt, check).await
    }
}

/// The first failure of the last operation on a stack.
async fn reason(account: &Account, name: &str) -> Result<String, Failure> {
    let call = account.cloudformation.describe_stack_events().stack_name(name);
    let answer = call.send().await.or_failure("cloudformation:DescribeStackEvents", name)?;
    // The newest comes first, and the operation began when the stack itself did.
    let began = |event: &&StackEvent| {
        event.resource_status().is_some_and(|status| status.as_str() == "UPDATE_IN_PROGRESS")
            && event.physical_resource_id() == event.stack_id()
    };
    let failed = |event: &&StackEvent| {
        event.resource_status().is_some_and(|status| status.as_str().ends_with("_FAILED"))
    };
    let events = answer.stack_events().iter().take_while(|event| !began(event));
    let Some(first) = events.filter(failed).last() else { return Ok("no reason given".to_owned()) };
    let resource = first.logical_resource_id().unwrap_or_default();
    Ok(format!("{resource}: {}", first.resource_status_reason().unwrap_or_default()))
}

async fn describe(account: &Account, name: &str) -> Result<Stack, Failure> {
    let stack = find_stack(account, name).await?;
    stack.ok_or_else(|| Failure::CouldNot(format!("stack {name} no longer exists")))
}

/// A stack; `None` if it does not exist: a tag may outlive its stack.
pub(crate) async fn find_stack(account: &Account, name: &str) -> Result<Option<Stack>, Failure> {
    let answer = account.cloudformation.describe_stacks().stack_name(name).send().await;
    let answer = answer.unless(is_gone, "cloudformation:DescribeStacks", name)?;
    Ok(answer.and_then(|it| it.stacks?.into_iter().next()))
}

/// Whether CloudFormation says that the stack does not exist. It has no error type for that.
pub(crate) fn is_gone(error: &impl ProvideErrorMetadata) -> bool {
    error.code() == Some("ValidationError")
        && error.message().is_some_and(|message| message.contains("does not exist"))
}

fn status(stack: &Stack) -> &StackStatus {
    stack.stack_status().expect("BUG: CloudFormation's model has a status in every stack")
}

pub(crate) fn parameter_value<'a>(stack: &'a Stack, key: &str) -> Option<&'a str> {
    let parameter = stack.parameters().iter().find(|parameter| parameter.parameter_key() == Some(key))?;
    Some(parameter.parameter_value().unwrap_or_default())
}

async fn edit_variable(
    account: &Account,
    name: &str,
    edit: &dyn Fn(&str) -> String,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let handler = configuration(account, name).await?;
    // If Lambda cannot decrypt the variables it returns none, and writing those back would remove all.
    let environment = handler.environment();
    if let Some(error) = environment.and_then(|environment| environment.error()) {
        let why = error.message().unwrap_or("no reason is given");
        return Err(Failure::CouldNot(format!("the environment of {name} is unreadable: {why}")));
    }
    let mut variables = environment.and_then(|it| it.variables().cloned()).unwrap_or_default();
    let value = variables.get(TARGET_FUNCTIONS.variable).map(String::as_str).unwrap_or_default();
    let edited = edit(value);
    if edited == value {
        return Ok(());
    }
    // It stays when it is empty: without the variable, the handler would not start.
    variables.insert(TARGET_FUNCTIONS.variable.to_owned(), edited);
    let environment = Environment::builder().set_variables(Some(variables)).build();
    let update = account.lambda.update_function_configuration().function_name(name).environment(environment);
    // Refused if anybody has changed the function since it was read.
    let update = update.set_revision_id(handler.revision_id).send().await;
    update.or_failure("lambda:UpdateFunctionConfiguration", name)?;
    let check = async || {
        let handler = configuration(account, name).await?;
        match handler.last_update_status() {
            Some(LastUpdateStatus::InProgress) => Ok(Some(format!("function {name}"))),
            Some(LastUpdateStatus::Failed) => {
                let reason = handler.last_update_status_reason().unwrap_or("no reason given");
                Err(Failure::Undone(format!("the update of function {name} failed: {reason}")))
            }
            _ => Ok(None),
        }
    };
    ended(interrupt, check).await
}

async fn configuration(account: &Account, name: &str) -> Result<FunctionConfiguration, Failure> {
    let configuration = get_function(account, name).await?.configuration;
    configuration.ok_or_else(|| Failure::CouldNot(format!("Lambda returned no configuration for {name}")))
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudformation::error::ErrorMetadata;
    use aws_smithy_types::DateTime;

    use super::*;

    #[test]
    fn an_environment_is_measured_as_lambda_does() {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), String::new())]);
        assert_eq!(environment_bytes(&variables), r#"{"A":"1","B":""}"#.len());
    }

    #[test]
    fn a_list_that_may_have_lost_characters_is_not_written_back() {
        assert!(check_is_whole("s", "arn:aws:lambda:eu-west-1:123456789012:function:shop-*").is_ok());
        for lost in ["arn:aws:lambda:eu-west-1:123456789012:function:sh?p", "caf\u{e9}"] {
            assert!(check_is_whole("s", lost).is_err(), "{lost}");
        }
    }

    #[test]
    fn an_entry_is_added_once_and_removed_with_its_qualifiers() {
        for (list, with_f, without_f) in [
            ("", "f", ""),
            ("f", "f", ""),
            ("g", "g,f", "g"),
            ("g, f ,h", "g, f ,h", "g,h"),
            ("f:live,g", "f:live,g,f", "g"),
            ("ff,f-*", "ff,f-*,f", "ff,f-*"),
            (",g,", "g,f", "g"),
        ] {
            assert_eq!(list_with(list, "f"), with_f, "{list:?}");
            assert_eq!(list_without(list, "f"), without_f, "{list:?}");
            let has = list.contains("f:live") || list_with(list, "f") == list;
            assert_eq!(list_has(list, "f"), has, "{list:?}");
            assert!(!list_has(&list_without(list, "f"), "f"));
        }
    }

    fn stack(status: StackStatus, value: &str, updated: i64) -> Stack {
        let parameter =
            Parameter::builder().parameter_key(TARGET_FUNCTIONS.parameter).parameter_value(value).build();
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
            (&complete, stack(StackStatus::UpdateCompleteCleanupInProgress, "a,b", 2), true, Update::GoesOn),
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
        let is_gone = |code: &str, message: &str| {
            is_gone(&ErrorMetadata::builder().code(code).message(message).build())
        };
        let gone = "Stack with id comeback does not exist";
        assert!(is_gone("ValidationError", gone));
        assert!(!is_gone("ValidationError", "1 validation error detected"));
        assert!(!is_gone("AccessDenied", gone) && !super::is_gone(&ErrorMetadata::builder().build()));
    }
}
