//! The handler's settings, as environment variables or stack parameters, and edits to the allow-list.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::account::Account;
use crate::aws::{Configuration, Stack, UpdateStatus};
use crate::deployment::entries;
use crate::failure::Failure;
use crate::function::{get_function, is_same_function};
use crate::interrupt::Interrupt;

/// The environment variable that holds the allow-list.
pub const TARGET_FUNCTIONS: &str = "TARGET_FUNCTIONS";
/// The stack parameter that sets [`TARGET_FUNCTIONS`].
pub const TARGET_FUNCTIONS_PARAMETER: &str = "TargetFunctions";
/// The environment variable that holds the retry policies for individual functions.
pub const POLICIES: &str = "POLICIES";

/// The stack parameter that sets an environment variable: `MaxAge` for `MAX_AGE`.
pub fn parameter_of(variable: &str) -> String {
    if variable == POLICIES {
        return "FunctionPolicies".to_owned();
    }
    let word = |word: &str| word[..1].to_owned() + &word[1..].to_lowercase();
    variable.split('_').filter(|it| !it.is_empty()).map(word).collect()
}

/// CloudFormation's limit on the size of a parameter's value, in bytes.
pub const PARAMETER_BYTES: usize = 4_096;
/// Lambda's limit on a function's environment variables: the size, in bytes, of a JSON object that contains them all.
pub const ENVIRONMENT_BYTES: usize = 4_096;

/// Where the allow-list is edited: a parameter of the handler's stack, or an environment variable if no stack owns the
/// handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingPlace {
    /// A parameter of this stack.
    Stack(String),
    /// An environment variable of this function.
    Function(String),
}

/// Returns an allow-list with an entry added, or the list unchanged if it already contains the entry.
pub fn list_with(list: &str, arn: &str) -> String {
    if entries(list).any(|entry| entry == arn) {
        return list.to_owned();
    }
    entries(list).chain([arn]).collect::<Vec<_>>().join(",")
}

/// Returns the allow-list `list` without the entries that name the function `arn`, with or without a qualifier.
/// Patterns are kept.
pub fn list_without(list: &str, arn: &str) -> String {
    entries(list).filter(|entry| !is_same_function(entry, arn)).collect::<Vec<_>>().join(",")
}

/// Returns true if an entry on the allow-list names this function, with or without a qualifier. Patterns do not
/// count.
pub fn list_has(list: &str, arn: &str) -> bool {
    entries(list).any(|entry| is_same_function(entry, arn))
}

/// Returns the size of the environment variables as a JSON object, in bytes.
pub fn environment_bytes(variables: &BTreeMap<String, String>) -> usize {
    serde_json::json!(variables).to_string().len()
}

/// The interval between checks for the end of an update.
const CHECK_EVERY: Duration = Duration::from_secs(2);
const MOST_CHECKS: usize = 900;
/// The maximum number of consecutive checks that find no sign of the update.
const CHECKS_UNSEEN: usize = 30;

/// Reads the allow-list, edits it, and waits until the edit has taken effect.
pub async fn edit(
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

/// Waits until `check` returns `None`, which means that no update is in progress.
async fn ended(
    account: &Account,
    interrupt: &Interrupt,
    mut check: impl AsyncFnMut() -> Result<Option<String>, Failure>,
) -> Result<(), Failure> {
    let mut update = String::new();
    for _ in 0..MOST_CHECKS {
        let Some(under_way) = check().await? else { return Ok(()) };
        update = under_way;
        tokio::select! {
            () = account.aws.sleep(CHECK_EVERY) => {}
            () = interrupt.raised() => {
                let what = format!("{update} is still being updated; run the command again when that has ended");
                return Err(Failure::interrupted(what));
            }
        }
    }
    Err(Failure::undone(format!("{update} has been updating for half an hour; run the command again later")))
}

async fn edit_parameter(
    account: &Account,
    name: &str,
    edit: &dyn Fn(&str) -> String,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let parameter = TARGET_FUNCTIONS_PARAMETER;
    let stack = describe(account, name).await?;
    let status = &stack.status;
    if status.ends_with("_IN_PROGRESS") {
        return Err(Failure::could_not(format!(
            "stack {name} is {status}: somebody is changing it; run the command again when that has ended"
        )));
    }
    let value = parameter_value(&stack, parameter).ok_or_else(|| {
        Failure::could_not(format!("stack {name} no longer has parameter {parameter}; run the command again"))
    })?;
    let edited = edit(value);
    if edited == value {
        return Ok(());
    }
    check_is_whole(name, &edited)?;
    account.aws.update_stack(&stack, parameter, &edited).await?;
    let (before, mut has_begun, mut not_seen) = (stack, false, 0);
    let check = async || {
        let stack = describe(account, name).await?;
        let status = &stack.status;
        match Update::of(&before, &stack, &edited, has_begun) {
            Update::Done => return Ok(None),
            Update::GoesOn => (has_begun, not_seen) = (true, 0),
            Update::NotSeen if not_seen == CHECKS_UNSEEN => {
                return Err(Failure::undone(format!(
                    "stack {name} is {status}, and its {parameter} is not what was written: somebody else is \
                     changing it too, or AWS needs longer; run the command again"
                )));
            }
            Update::NotSeen => not_seen += 1,
            Update::Failed => {
                let reason = reason(account, name).await?;
                return Err(Failure::undone(format!("the update of stack {name} ended {status}: {reason}")));
            }
        }
        Ok(Some(format!("stack {name} ({status})")))
    };
    ended(account, interrupt, check).await
}

/// Fails if an allow-list might have lost characters. CloudFormation returns `?` for each non-ASCII character.
fn check_is_whole(name: &str, list: &str) -> Result<(), Failure> {
    if list.is_ascii() && !list.contains('?') {
        return Ok(());
    }
    Err(Failure::could_not(format!(
        "CloudFormation returned {TARGET_FUNCTIONS_PARAMETER} as {list:?} for stack {name}, which may have lost \
         characters; deploy the stack with the right value"
    )))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Update {
    Done,
    GoesOn,
    /// The stack does not show the update yet, because CloudFormation is eventually consistent.
    NotSeen,
    Failed,
}

impl Update {
    fn of(before: &Stack, now: &Stack, edited: &str, has_begun: bool) -> Self {
        match &*now.status {
            "UPDATE_COMPLETE" => {
                if parameter_value(now, TARGET_FUNCTIONS_PARAMETER) == Some(edited) {
                    Self::Done
                } else {
                    Self::NotSeen
                }
            }
            // CloudFormation accepts another update only once it has cleaned up this one.
            other if other.ends_with("_IN_PROGRESS") => Self::GoesOn,
            _ if has_begun || now.updated != before.updated => Self::Failed,
            _ => Self::NotSeen,
        }
    }
}

/// Returns the resource that failed first in the stack's latest update, and the reason.
async fn reason(account: &Account, name: &str) -> Result<String, Failure> {
    let newest_first = account.aws.stack_events(name).await?;
    let of_update = newest_first.iter().take_while(|event| !event.begins_update());
    let failed = of_update.filter(|event| event.status.ends_with("_FAILED"));
    let Some(first) = failed.last() else { return Ok("no reason given".to_owned()) };
    Ok(format!("{}: {}", first.logical_id, first.reason.as_deref().unwrap_or_default()))
}

async fn describe(account: &Account, name: &str) -> Result<Stack, Failure> {
    let stack = account.aws.stack(name).await?;
    stack.ok_or_else(|| Failure::could_not(format!("stack {name} no longer exists")))
}

/// The value of a stack's parameter, if the stack has it.
pub fn parameter_value<'a>(stack: &'a Stack, key: &str) -> Option<&'a str> {
    stack.parameters.get(key).map(String::as_str)
}

async fn edit_variable(
    account: &Account,
    name: &str,
    edit: &dyn Fn(&str) -> String,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let handler = configuration(account, name).await?;
    // If Lambda cannot decrypt the variables, it returns none. Writing that back would remove them all.
    if let Some(why) = handler.variables_error {
        return Err(Failure::could_not(format!("the environment of {name} is unreadable: {why}")));
    }
    let mut variables = handler.variables;
    let value = variables.get(TARGET_FUNCTIONS).map(String::as_str).unwrap_or_default();
    let edited = edit(value);
    if edited == value {
        return Ok(());
    }
    // An empty list is written too, because the handler does not start without the variable.
    variables.insert(TARGET_FUNCTIONS.to_owned(), edited);
    // With the revision, Lambda refuses the write if the function has changed since it was read.
    account.aws.set_variables(name, variables, handler.revision).await?;
    let check = async || match configuration(account, name).await?.update {
        UpdateStatus::InProgress => Ok(Some(format!("function {name}"))),
        UpdateStatus::Failed(reason) => {
            Err(Failure::undone(format!("the update of function {name} failed: {reason}")))
        }
        UpdateStatus::Done => Ok(None),
    };
    ended(account, interrupt, check).await
}

async fn configuration(account: &Account, name: &str) -> Result<Configuration, Failure> {
    Ok(get_function(account, name).await?.configuration)
}

#[cfg(test)]
mod tests {
    use comeback_engine::Timestamp;

    use super::*;
    use crate::aws::StackEvent;
    use crate::aws::simulated::Sample;

    #[test]
    fn an_environment_is_measured_as_lambda_does() {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), String::new())]);
        assert_eq!(environment_bytes(&variables), r#"{"A":"1","B":""}"#.len());
    }

    #[test]
    fn damaged_list_is_not_written_back() {
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

    #[tokio::test]
    async fn first_failure_of_the_latest_update_is_the_reason() {
        let aws = Sample::new(Timestamp::from_secs(1_700_000_000)).build();
        let put = |logical_id: &str, status: &str, reason: &str| {
            let event = StackEvent {
                logical_id: logical_id.into(),
                is_of_stack: logical_id == Sample::STACK,
                status: status.into(),
                reason: Some(reason.into()),
            };
            aws.state().stacks.get_mut(Sample::STACK).unwrap().events.insert(0, event);
        };
        put("Alarm", "UPDATE_FAILED", "of an earlier update");
        put(Sample::STACK, "UPDATE_IN_PROGRESS", "User Initiated");
        let reason = async || reason(&aws.account(), Sample::STACK).await.unwrap();
        assert_eq!(reason().await, "no reason given");
        for (logical_id, status, why) in [
            ("Nested", "UPDATE_IN_PROGRESS", ""),
            ("Role", "UPDATE_FAILED", "denied"),
            ("Handler", "UPDATE_FAILED", "Resource update cancelled"),
            (
                Sample::STACK,
                "UPDATE_ROLLBACK_IN_PROGRESS",
                "The following resource(s) failed to update: [Role]",
            ),
        ] {
            put(logical_id, status, why);
        }
        assert_eq!(reason().await, "Role: denied");
    }

    fn stack(status: &str, value: &str, updated: i64) -> Stack {
        Stack {
            status: status.into(),
            parameters: BTreeMap::from([(TARGET_FUNCTIONS_PARAMETER.to_owned(), value.to_owned())]),
            updated: Some(updated),
            ..Stack::default()
        }
    }

    #[test]
    fn only_states_after_the_update_count() {
        let complete = stack("UPDATE_COMPLETE", "a", 1);
        let rolled_back = stack("UPDATE_ROLLBACK_COMPLETE", "a", 1);
        for (before, now, has_begun, expected) in [
            (&complete, stack("UPDATE_COMPLETE", "a", 1), false, Update::NotSeen),
            (&complete, stack("UPDATE_IN_PROGRESS", "a", 2), false, Update::GoesOn),
            (&complete, stack("UPDATE_COMPLETE", "a,b", 2), true, Update::Done),
            (&complete, stack("UPDATE_COMPLETE", "a,b", 2), false, Update::Done),
            (&complete, stack("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "a,b", 2), true, Update::GoesOn),
            (&complete, stack("UPDATE_COMPLETE", "a,c", 3), true, Update::NotSeen),
            (&complete, stack("UPDATE_ROLLBACK_IN_PROGRESS", "a", 2), true, Update::GoesOn),
            (&complete, stack("UPDATE_ROLLBACK_COMPLETE", "a", 2), false, Update::Failed),
            (&rolled_back, stack("UPDATE_ROLLBACK_COMPLETE", "a", 1), false, Update::NotSeen),
            (&rolled_back, stack("UPDATE_ROLLBACK_COMPLETE", "a", 1), true, Update::Failed),
            (&rolled_back, stack("UPDATE_ROLLBACK_COMPLETE", "a", 2), false, Update::Failed),
        ] {
            assert_eq!(Update::of(before, &now, "a,b", has_begun), expected, "{now:?}");
        }
    }
}
