//! A deployment: a retry handler and what belongs to it.

pub(crate) mod find;
pub(crate) mod mapping;
pub(crate) mod queue;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::time::Duration;

use comeback_engine::{FunctionArn, FunctionPattern, Policies, SettingError};
use futures_util::stream::{StreamExt as _, iter};

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::mapping::Mapping;
use crate::operate::deployment::queue::Queue;
use crate::operate::function::{FunctionName, InvokeSettings};
use crate::text::terminal::command_line;

/// Functions that are read at a time: IAM's simulator and Lambda's API throttle more.
pub(crate) const AT_A_TIME: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deployment {
    /// `None` if CloudFormation does not own the handler.
    pub(crate) stack: Option<String>,
    pub(crate) handler: String,
    /// The version of Comeback that was deployed, if the handler's tags have it and may be read.
    pub(crate) version: Option<String>,
    pub(crate) handler_arn: FunctionArn,
    pub(crate) role_arn: String,
    pub(crate) timeout: Duration,
    pub(crate) log_group: String,
    /// The lowest level of the lines that Lambda lets the handler write, such as `WARN`, if one is set.
    pub(crate) log_level: Option<String>,
    pub(crate) variables: BTreeMap<String, String>,
    /// Its reserved concurrency is 0.
    pub(crate) never_runs: bool,
    /// The mapping that feeds the handler from the retry queue, if there is one.
    pub(crate) mapping: Option<Mapping>,
    pub(crate) retry_queue: Queue,
    pub(crate) dead_letter_queue: Queue,
    /// The flags that lead a suggested command to its account and region.
    pub(crate) place_flags: String,
}

/// A deployment as an operator names it: by its stack, or by a handler that no stack owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeploymentName {
    Stack(String),
    Handler(String),
}

impl DeploymentName {
    pub(crate) fn new(stack: Option<String>, handler: &str) -> Self {
        stack.map_or_else(|| Self::Handler(handler.to_owned()), Self::Stack)
    }

    pub(crate) fn flag(&self) -> String {
        let (flag, name) = match self {
            Self::Stack(stack) => ("--stack", stack),
            Self::Handler(handler) => ("--handler", handler),
        };
        command_line([flag, name])
    }
}

impl Display for DeploymentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stack(stack) => write!(f, "stack {stack}"),
            Self::Handler(handler) => write!(f, "retry handler {handler}"),
        }
    }
}

impl Deployment {
    pub(crate) fn name(&self) -> DeploymentName {
        DeploymentName::new(self.stack.clone(), &self.handler)
    }

    /// One of our own commands, with the flags that find this deployment.
    pub(crate) fn command(&self, command: impl Display) -> String {
        self.command_of(&self.name(), command)
    }

    /// One of our own commands, with the flags that find another deployment of the same account and region.
    pub(crate) fn command_of(&self, other: &DeploymentName, command: impl Display) -> String {
        let place = &self.place_flags;
        match other {
            DeploymentName::Stack(stack) if stack == "comeback" => format!("comeback {command}{place}"),
            _ => format!("comeback {command} {}{place}", other.flag()),
        }
    }

    /// A command of the AWS CLI, with the flags that lead to the deployment's account and region.
    pub(crate) fn aws(&self, command: impl Display) -> String {
        aws(&self.place_flags, command)
    }

    pub(crate) fn policies(&self) -> Result<Policies, Vec<SettingError>> {
        // Lambda sets these two: the handler is never a target of its own.
        let policies = Policies::from_variables(|name| match name {
            "AWS_LAMBDA_FUNCTION_NAME" => Some(self.handler_arn.name.clone()),
            "AWS_REGION" => Some(self.handler_arn.region.clone()),
            _ => self.variables.get(name).cloned(),
        })?;
        Ok(policies.in_queue(&self.retry_queue.parsed_arn))
    }

    /// `POLICIES`, as it stands.
    pub(crate) fn policies_text(&self) -> &str {
        self.variables.get("POLICIES").map(String::as_str).unwrap_or_default()
    }

    /// `TARGET_FUNCTIONS`, as it stands.
    pub(crate) fn allow_list(&self) -> &str {
        self.variables.get("TARGET_FUNCTIONS").map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn target_functions(&self) -> impl Iterator<Item = &str> {
        entries(self.allow_list())
    }

    /// Whether the allow-list has this function. An entry that the handler cannot parse allows nothing.
    pub(crate) fn allows(&self, arn: &str) -> bool {
        self.target_functions().filter_map(|it| it.parse::<FunctionPattern>().ok()).any(|it| it.allows(arn))
    }

    /// Whether an entry of `TARGET_FUNCTIONS` is for the function, or for one of its versions or aliases.
    pub(crate) fn retries(&self, function: &FunctionArn) -> bool {
        let mut patterns = self.target_functions().filter_map(|entry| entry.parse::<FunctionPattern>().ok());
        patterns.any(|pattern| {
            let qualifier = pattern.qualifier().map(ToOwned::to_owned);
            pattern.allows(&FunctionArn { qualifier, ..function.clone() }.to_string())
        })
    }

    /// The functions that a pattern of the allow-list matches, if the retry queue is a destination of theirs.
    pub(crate) async fn matched(&self, account: &Account) -> Result<Vec<FunctionArn>, Failure> {
        if !self.target_functions().any(|entry| entry.contains('*')) {
            return Ok(Vec::new());
        }
        let functions = account.lambda.list_functions().into_paginator().items().send().try_collect().await;
        let functions = functions.or_failure("lambda:ListFunctions", "the account")?;
        let arns = functions.iter().filter_map(|function| function.function_arn()?.parse().ok());
        let arns = arns.filter(|arn: &FunctionArn| *arn != self.handler_arn && self.retries(arn));
        let leads_here = async |arn: FunctionArn| {
            let all = InvokeSettings::all(account, &arn.to_string()).await?;
            let queue = Some(self.retry_queue.arn.as_str());
            Ok::<_, Failure>(all.values().any(|it| it.on_failure.as_deref() == queue).then_some(arn))
        };
        let found: Vec<_> = iter(arns.map(leads_here)).buffered(AT_A_TIME).collect().await;
        found.into_iter().filter_map(Result::transpose).collect()
    }

    /// The ARN of a function, in the handler's account and region unless the name says otherwise.
    pub(crate) fn arn_of(&self, function: &FunctionName) -> FunctionArn {
        let place = function.place.as_ref().unwrap_or(&self.handler_arn).clone();
        FunctionArn { name: function.name.clone(), qualifier: function.qualifier.clone(), ..place }
    }

    /// The parameter that holds the pauses; `None` if the handler reads none.
    pub(crate) fn pauses(&self) -> Option<&str> {
        self.variables.get("PAUSES").map(String::as_str).filter(|name| !name.is_empty())
    }
}

/// A command of the AWS CLI, with the flags that lead to an account and region.
pub(crate) fn aws(place_flags: &str, command: impl Display) -> String {
    format!("aws {command}{place_flags}")
}

/// The entries of a comma-separated list.
pub(crate) fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

#[cfg(test)]
impl Deployment {
    /// A deployment that may retry `orders`, without its mapping.
    pub(crate) fn sample() -> Self {
        let function = |name: &str| format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}");
        let (retry_queue, dead_letter_queue) = (Queue::sample("retries"), Queue::sample("dead"));
        let variables = [
            ("DEAD_LETTER_QUEUE_URL".to_owned(), dead_letter_queue.url.clone()),
            ("TARGET_FUNCTIONS".to_owned(), function("orders")),
        ];
        Self {
            stack: Some("comeback".into()),
            handler: "retry-handler".into(),
            version: Some("0.1.0".into()),
            never_runs: false,
            handler_arn: function("retry-handler").parse().unwrap(),
            role_arn: "arn:aws:iam::123456789012:role/handler-role".into(),
            timeout: Duration::from_secs(60),
            log_group: "/aws/lambda/retry-handler".into(),
            log_level: None,
            variables: variables.into(),
            mapping: None,
            retry_queue,
            dead_letter_queue,
            place_flags: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployments_name_is_quoted_in_a_command() {
        let of = |stack: Option<&str>, handler: &str| {
            let handler = handler.to_owned();
            Deployment { stack: stack.map(Into::into), handler, ..Deployment::sample() }.command("status")
        };
        assert_eq!(of(Some("comeback"), "h"), "comeback status");
        assert_eq!(of(Some("my stack"), "h"), "comeback status --stack 'my stack'");
        assert_eq!(of(None, "$h"), "comeback status --handler '$h'");
    }
}
