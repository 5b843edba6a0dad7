//! What the checks look at, read once and concurrently. Each fact is there, or is the failure to read it.

pub(crate) mod consumers;
pub(crate) mod functions;
pub(crate) mod log;
pub(crate) mod queues;
pub(crate) mod rights;

use std::collections::BTreeMap;

use comeback_engine::{FunctionArn, GarbledPauses, Pauses, Timestamp};
use comeback_operate::aws::ParameterVersion;
use comeback_operate::pauses::history::newest_readable;
use comeback_operate::pauses::parameter::read_parameter;

use crate::account::{Account, Failure, Or as _};
use crate::operate::alarms::Alarm;
use crate::operate::deployment::Deployment;
use crate::operate::deployment::mapping::Mapping;
use crate::operate::doctor::facts::consumers::Consumer;
use crate::operate::doctor::facts::functions::{Destination, Function};
use crate::operate::doctor::facts::log::LoggedErrors;
use crate::operate::doctor::facts::queues::QueueSettings;
use crate::operate::doctor::facts::rights::HandlerRights;
use crate::operate::function::{FunctionName, Target};
use crate::operate::handler_setting::{TARGET_FUNCTIONS, find_stack, list_has};

#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) deployment: Deployment,
    pub(crate) now: Timestamp,
    pub(crate) handler: Result<Target, Failure>,
    pub(crate) mappings: Result<Vec<Mapping>, Failure>,
    pub(crate) retry_queue: Result<QueueSettings, Failure>,
    pub(crate) dead_letter_queue: Result<QueueSettings, Failure>,
    pub(crate) errors: Result<LoggedErrors, Failure>,
    pub(crate) executions: Result<Executions, Failure>,
    pub(crate) alarms: Result<Vec<Alarm>, Failure>,
    pub(crate) pauses: Result<Option<Pauses>, Failure>,
    pub(crate) unreadable_pauses: Option<UnreadablePauses>,
    pub(crate) rights: HandlerRights,
    /// The parameters of the deployment's stack with their values; empty without a stack.
    pub(crate) parameters: Result<BTreeMap<String, String>, Failure>,
    pub(crate) functions: Vec<Function>,
    /// Whether the functions that the allow-list's patterns match could be found.
    pub(crate) matched: Result<(), Failure>,
}

/// The functions that the account may run at a time in this region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executions {
    pub(crate) all: u64,
    /// What all functions without reserved concurrency share.
    pub(crate) unreserved: u64,
}

impl Executions {
    async fn read(account: &Account) -> Result<Self, Failure> {
        let answer = account.lambda.get_account_settings().send().await;
        let answer = answer.or_failure("lambda:GetAccountSettings", "the account")?;
        let limits = answer.account_limit().map(|limit| {
            let all = limit.concurrent_executions();
            [all, limit.unreserved_concurrent_executions().unwrap_or(all)].map(|it| it.unsigned_abs().into())
        });
        let [all, unreserved] =
            limits.ok_or_else(|| Failure::CouldNot("Lambda returned no limits for the account".into()))?;
        Ok(Self { all, unreserved })
    }
}

/// A pauses parameter that the handler cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreadablePauses {
    pub(crate) parameter: String,
    pub(crate) problem: String,
    /// A later version of Comeback wrote it.
    pub(crate) is_newer: bool,
    /// The newest readable version; `None` if SSM keeps no readable one.
    pub(crate) last_readable: Option<i64>,
}

impl UnreadablePauses {
    /// `None` if the text is readable.
    pub(crate) async fn read(account: &Account, parameter: &str) -> Result<Option<Self>, Failure> {
        Ok(Self::of(parameter, &account.operate().aws.parameter_history(parameter).await?))
    }

    fn of(parameter: &str, versions: &[ParameterVersion]) -> Option<Self> {
        let problem = Pauses::read(&versions.last()?.text).err()?;
        Some(Self {
            parameter: parameter.to_owned(),
            is_newer: matches!(problem, GarbledPauses::Newer(_)),
            problem: problem.to_string(),
            last_readable: newest_readable(versions),
        })
    }
}

/// The pauses; `None` if the handler reads none.
async fn read_pauses(account: &Account, deployment: &Deployment) -> Result<Option<Pauses>, Failure> {
    let Some(name) = deployment.pauses() else { return Ok(None) };
    Ok(Some(read_parameter(&account.operate(), name).await?.0))
}

async fn parameters(account: &Account, deployment: &Deployment) -> Result<BTreeMap<String, String>, Failure> {
    let Some(stack) = &deployment.stack else { return Ok(BTreeMap::new()) };
    let stack = find_stack(account, stack).await?;
    let parameters = stack.and_then(|it| it.parameters).unwrap_or_default().into_iter();
    Ok(parameters.filter_map(|it| Some((it.parameter_key?, it.parameter_value?))).collect())
}

/// The allow-list as the stack's parameter has it; empty without one.
fn stacks_list(parameters: &Result<BTreeMap<String, String>, Failure>) -> &str {
    let list = parameters.as_ref().ok().and_then(|parameters| parameters.get(TARGET_FUNCTIONS.parameter));
    list.map(String::as_str).unwrap_or_default()
}

impl Facts {
    /// Whether the stack's own allow-list names this function.
    pub(crate) fn stack_names(&self, arn: &FunctionArn) -> bool {
        list_has(stacks_list(&self.parameters), &arn.unqualified().to_string())
    }

    /// Leaves out functions that read SQS themselves, unless they are attached too, or meant to be.
    pub(crate) fn leave_out(&mut self, consumers: &[Consumer]) {
        let mut functions = std::mem::take(&mut self.functions);
        functions.retain(|function| {
            let is_listed = || function.arn.parse().is_ok_and(|arn| self.deployment.retries(&arn));
            let is_attached = function.entrances.iter().any(|entrance| entrance.is_attached(self));
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
        let of_handler = &deployment.handler_arn.to_string().parse().expect("BUG: a function's ARN names it");
        let (retry_queue, dead_letter_queue, parameters) = tokio::join!(
            QueueSettings::read(account, &deployment.retry_queue),
            QueueSettings::read(account, &deployment.dead_letter_queue),
            parameters(account, &deployment),
        );
        // Somebody may have taken a function off the handler's own list by hand.
        let listed = stacks_list(&parameters);
        let destination = Destination { account, deployment: &deployment, retry_queue: &retry_queue };
        // Their rights to the queues' keys need the queues.
        let (handler, mappings, errors, executions, alarms, pauses, rights, (functions, matched)) = tokio::join!(
            Target::read(account, of_handler),
            Mapping::all(account, &deployment.handler),
            LoggedErrors::read(account, &deployment.log_group, now),
            Executions::read(account),
            Alarm::all(account, &deployment),
            read_pauses(account, &deployment),
            HandlerRights::read(account, &deployment, &retry_queue, &dead_letter_queue),
            functions::read(destination, named, listed, now),
        );
        let unreadable_pauses = match deployment.pauses().filter(|_| pauses.is_err()) {
            Some(parameter) => UnreadablePauses::read(account, parameter).await.ok().flatten(),
            None => None,
        };
        Self {
            unreadable_pauses,
            deployment,
            now,
            handler,
            mappings,
            retry_queue,
            dead_letter_queue,
            errors,
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
    use super::*;
    use crate::operate::doctor::sample::{consumer, healthy};
    use crate::operate::function::InvokeSettings;

    #[test]
    fn a_consumer_is_left_out_unless_it_is_attached_or_listed() {
        let consumers = [consumer()];
        let mut facts = healthy();
        facts.leave_out(&consumers);
        assert_eq!(facts.functions.len(), 1, "it is attached too");
        facts.functions[0].entrances[0].settings = InvokeSettings::default();
        facts.leave_out(&consumers);
        assert_eq!(facts.functions.len(), 1, "the list has it");
        facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), String::new());
        facts.leave_out(&consumers);
        assert!(facts.functions.is_empty());
    }
    #[test]
    fn the_newest_readable_version_is_found() {
        let of = |texts: &[&str]| {
            let version = |(text, number): (&&str, i64)| {
                let text = (*text).to_owned();
                ParameterVersion { number, text, at: None, by: None }
            };
            let versions: Vec<ParameterVersion> = texts.iter().zip(7..).map(version).collect();
            UnreadablePauses::of("/pauses", &versions).map(|it| it.last_readable)
        };
        let readable = r#"{"v":1,"pauses":[]}"#;
        assert_eq!(of(&[readable, readable, "by hand", "{}"]), Some(Some(8)));
        assert_eq!(of(&["by hand"]), Some(None));
        assert_eq!([of(&["by hand", readable]), of(&[])], [None, None]);
    }
}
