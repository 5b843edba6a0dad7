//! The facts that the checks judge.

pub(crate) mod consumers;
pub(crate) mod functions;
pub(crate) mod log;
pub(crate) mod queues;
pub(crate) mod rights;

use std::collections::BTreeMap;

use crate::aws::{Executions, LogGroup};
use crate::pauses::parameter::read_parameter;
use comeback_engine::{FunctionArn, GarbledPauses, Pauses, Timestamp};

use crate::account::Account;
use crate::alarms::Alarm;
use crate::attach::attachment::{Attachment, ListOwner};
use crate::aws::Mapping;
use crate::deployment::Deployment;
use crate::doctor::facts::consumers::Consumer;
use crate::doctor::facts::functions::CheckedFunction;
use crate::doctor::facts::log::LoggedErrors;
use crate::doctor::facts::queues::QueueSettings;
use crate::doctor::facts::rights::HandlerRights;
use crate::failure::{Failure, seen};
use crate::function::{FunctionName, Target, get_function};
use crate::handler_setting::{TARGET_FUNCTIONS_PARAMETER, list_has};

/// The facts that the checks judge, or the errors from reading them.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) deployment: Deployment,
    pub(crate) now: Timestamp,
    pub(crate) handler: Result<Target, Failure>,
    pub(crate) mappings: Result<Vec<Mapping>, Failure>,
    pub(crate) retry_queue: Result<QueueSettings, Failure>,
    pub(crate) dead_letter_queue: Result<QueueSettings, Failure>,
    pub(crate) errors: Result<LoggedErrors, Failure>,
    /// The handler's log group; `None` if it does not exist yet.
    pub(crate) log_group: Result<Option<LogGroup>, Failure>,
    pub(crate) executions: Result<Executions, Failure>,
    pub(crate) alarms: Result<Vec<Alarm>, Failure>,
    /// The pauses, or what is wrong with the parameter's text; `None` if the handler reads no pauses.
    pub(crate) pauses: Result<Option<Result<Pauses, GarbledPauses>>, Failure>,
    pub(crate) rights: HandlerRights,
    /// The parameters of the stack that owns the deployment; empty if no stack owns it.
    pub(crate) parameters: Result<BTreeMap<String, String>, Failure>,
    pub(crate) functions: Vec<CheckedFunction>,
    /// The result of listing the functions that match the allow-list's patterns.
    pub(crate) matched: Result<(), Failure>,
}

async fn handler(account: &Account, deployment: &Deployment) -> Result<Target, Failure> {
    let name = deployment.handler_arn.to_string();
    let name: FunctionName = name.parse().expect("BUG: a function's ARN names it");
    Target::of(account, &name, get_function(account, &name.unqualified()).await?).await
}

async fn executions(account: &Account) -> Result<Executions, Failure> {
    let executions = account.aws.executions().await?;
    executions.ok_or_else(|| Failure::could_not("Lambda returned no limits for the account"))
}

/// The allow-list from the stack's parameters, or an empty string if it is unknown.
fn stacks_list(parameters: &Result<BTreeMap<String, String>, Failure>) -> &str {
    let list = parameters.as_ref().ok().and_then(|parameters| parameters.get(TARGET_FUNCTIONS_PARAMETER));
    list.map(String::as_str).unwrap_or_default()
}

impl Facts {
    /// The flags that select the deployment's region and the operator's profile in a suggested command.
    pub(crate) fn place_flags(&self) -> &str {
        &self.deployment.place_flags
    }

    pub(crate) fn stack_names(&self, arn: &FunctionArn) -> bool {
        list_has(stacks_list(&self.parameters), &arn.unqualified().to_string())
    }

    /// Removes functions from the facts if they read from SQS directly and are neither attached nor on the allow-list.
    pub(crate) fn leave_out(&mut self, consumers: &[Consumer]) {
        let mut functions = std::mem::take(&mut self.functions);
        functions.retain(|function| {
            let is_listed = || function.arn.parse().is_ok_and(|arn| self.deployment.retries(&arn));
            let is_attached = function.attachments.iter().any(Attachment::is_attached);
            !consumers.iter().any(|consumer| consumer.arn == function.arn) || is_attached || is_listed()
        });
        self.functions = functions;
    }

    pub(crate) async fn read(
        account: &Account,
        deployment: Deployment,
        named: &[FunctionName],
        now: Timestamp,
    ) -> Self {
        let (retry_queue, dead_letter_queue, stack) = tokio::join!(
            QueueSettings::read(account, &deployment.retry_queue),
            QueueSettings::read(account, &deployment.dead_letter_queue),
            deployment.read_stack(account),
        );
        let list_owner = &ListOwner::of(&deployment, stack.as_ref().ok().and_then(Option::as_ref));
        let parameters = stack.map(|stack| stack.map(|stack| stack.parameters).unwrap_or_default());
        // The stack's list is needed too, because somebody may have changed the handler's list by hand.
        let listed = stacks_list(&parameters);
        let key = &seen(&retry_queue).and_then(|queue| queue.key.clone());
        // The queues come first: which permissions to check depends on their keys.
        let (handler, mappings, errors, log_group, executions, alarms, pauses, rights, (functions, matched)) = tokio::join!(
            handler(account, &deployment),
            account.aws.mappings_of_function(&deployment.handler),
            LoggedErrors::read(account, &deployment.log_group, now),
            account.aws.log_group(&deployment.log_group),
            executions(account),
            Alarm::all(account, &deployment),
            read_parameter(account, &deployment),
            rights::of_handler(account, &deployment, [&retry_queue, &dead_letter_queue]),
            functions::read(account, &deployment, key, list_owner, named, listed, now),
        );
        Self {
            deployment,
            now,
            handler,
            mappings,
            retry_queue,
            dead_letter_queue,
            errors,
            log_group,
            executions,
            alarms,
            pauses,
            rights,
            parameters,
            functions,
            matched,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::aws::InvokeSettings;
    use crate::doctor::tests::{consumer, healthy};

    #[test]
    fn a_consumer_is_left_out_unless_it_is_attached_or_listed() {
        let consumers = [consumer()];
        let mut facts = healthy();
        facts.leave_out(&consumers);
        assert_eq!(facts.functions.len(), 1, "it is attached too");
        *facts.settings() = InvokeSettings::default();
        facts.leave_out(&consumers);
        assert_eq!(facts.functions.len(), 1, "the list has it");
        facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), String::new());
        facts.leave_out(&consumers);
        assert!(facts.functions.is_empty());
    }
}
