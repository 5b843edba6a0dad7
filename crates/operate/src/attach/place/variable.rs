//! The allow-list in a variable of the handler.

use std::collections::BTreeMap;

use aws_sdk_lambda::operation::get_function::GetFunctionOutput;
use aws_sdk_lambda::types::{Environment, LastUpdateStatus};

use super::{LOOKS, pause};
use crate::attach::allow_list::VARIABLE;
use crate::{Account, Failure, Interrupt};

pub(super) async fn edit(
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
