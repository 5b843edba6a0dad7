//! A deployment of Comeback, as read from AWS.

pub mod find;
pub mod queue;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::time::Duration;

use comeback_engine::{FunctionArn, FunctionPattern, Policies, SettingError};
use futures_util::stream::{StreamExt as _, iter};
use serde::Serialize;

use crate::account::Account;
use crate::aws::{Mapping, Stack};
use crate::command::command_line;
use crate::command::{Command, CommandName};
use crate::deployment::queue::Queue;
use crate::failure::Failure;
use crate::function::{FunctionName, command_name, deployment_of_its_own, is_far};
use crate::rights::role_name;
use crate::text;
use crate::text::{Piece, Text, quoted, shell};

/// The maximum number of functions to read at once. With more, IAM's simulator and Lambda's API would throttle calls.
pub const AT_A_TIME: usize = 8;

/// A deployment of Comeback: a retry handler with its queues, its event source mapping and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// The CloudFormation stack that owns the handler, if any.
    pub stack: Option<String>,
    /// The name of the handler, which is a Lambda function.
    pub handler: String,
    /// The deployed version of Comeback, from the handler's tags; `None` if it is unknown.
    pub version: Option<String>,
    /// The handler's ARN.
    pub handler_arn: FunctionArn,
    /// The ARN of the handler's role.
    pub role_arn: String,
    /// The handler's timeout.
    pub timeout: Duration,
    /// The name of the handler's log group.
    pub log_group: String,
    /// The lowest level of log lines that Lambda keeps, such as `WARN`; `None` if no level is set.
    pub log_level: Option<String>,
    /// The handler's environment variables.
    pub variables: BTreeMap<String, String>,
    /// True if the handler's reserved concurrency is 0, so it never runs.
    pub never_runs: bool,
    /// The event source mapping that feeds the handler from the retry queue.
    pub mapping: Option<Mapping>,
    /// The queue where failed events wait for their retries.
    pub retry_queue: Queue,
    /// The queue for events that the handler no longer retries.
    pub dead_letter_queue: Queue,
    /// The flags that select the deployment's region and the operator's profile in a suggested command.
    pub place_flags: String,
}

/// The reason why the handler currently retries nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The handler does not start, because a setting is invalid.
    #[error("the handler does not start, so nothing is retried")]
    RefusesSettings,
    /// The handler's reserved concurrency is 0.
    #[error("the handler's reserved concurrency is 0, so nothing is retried")]
    NoConcurrency,
    /// The handler's event source mapping is missing or disabled.
    #[error("no enabled event source mapping feeds the handler, so nothing is retried")]
    NotFed,
}

/// The handler's treatment of events from a function that is not on the allow-list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unlisted {
    /// The handler dead-letters each event as `target_not_allowed` at the event's next receive, even during a pause.
    DeadLettered,
    /// The handler keeps the events and never retries them, because the allow-list is empty.
    Kept,
}

impl Unlisted {
    /// Returns what the handler does instead of retrying the events of the function `arn`; `None` if it retries them.
    pub fn of(policies: &Policies, arn: &str) -> Option<Self> {
        match policies.stack() {
            policy if policy.keeps_everything() => Some(Self::Kept),
            policy => (!policy.allows(arn)).then_some(Self::DeadLettered),
        }
    }
}

/// The name that selects a deployment in a command: its stack's name or, if no stack owns it, its handler's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentName {
    /// The name of the stack.
    Stack(String),
    /// The name of a handler that no stack owns.
    Handler(String),
}

impl DeploymentName {
    /// Creates the name of a deployment from its stack's name or, if it has no stack, from its handler's name.
    pub fn new(stack: Option<String>, handler: &str) -> Self {
        stack.map_or_else(|| Self::Handler(handler.to_owned()), Self::Stack)
    }

    /// The flag that selects the deployment in a command, such as `--stack shop`.
    pub fn flag(&self) -> String {
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
    /// The name that selects the deployment in a command: its stack's name or, without a stack, its handler's name.
    pub fn name(&self) -> DeploymentName {
        DeploymentName::new(self.stack.clone(), &self.handler)
    }

    /// A Comeback command with the flags that select this deployment.
    pub fn command<W: Into<String>>(&self, name: CommandName, words: impl IntoIterator<Item = W>) -> Command {
        self.command_of(&self.name(), name, words)
    }

    /// A Comeback command with the flags that select another deployment in the same account and region.
    pub fn command_of<W: Into<String>>(
        &self,
        other: &DeploymentName,
        name: CommandName,
        words: impl IntoIterator<Item = W>,
    ) -> Command {
        let place = &self.place_flags;
        match other {
            DeploymentName::Stack(stack) if stack == "comeback" => Command::new(name, words, place),
            _ => Command::new(name, words, format!(" {}{place}", other.flag())),
        }
    }

    /// Returns text that refers to a function. A user interface can show the text as a link.
    pub fn function(&self, arn: &str, shown: impl Into<String>) -> Text {
        Piece::Function { shown: shown.into(), name: command_name(arn, &self.handler_arn) }.into()
    }

    /// The commands that attach these functions, or advice for a function in another account or region.
    pub fn attach_commands<'a>(&self, arns: impl IntoIterator<Item = &'a str>) -> Text {
        let home = &self.handler_arn;
        let (far, near): (BTreeSet<&str>, BTreeSet<&str>) =
            arns.into_iter().partition(|arn| is_far(arn, home));
        let near: BTreeSet<String> = near.into_iter().map(|arn| command_name(arn, home)).collect();
        let attach = near.iter().map(|name| quoted(self.command(CommandName::Attach, [name])));
        let far = far.into_iter().map(|arn| Text::from(deployment_of_its_own(arn)));
        let commands = Text::joined(attach.chain(far), ", ");
        if near.is_empty() {
            return commands;
        }
        text![commands, " (if the function moved to another stack, see docs/attach.md)"]
    }

    /// Returns `command` as an AWS CLI command, with the flags that select the deployment's region and the operator's
    /// profile.
    pub fn aws(&self, command: impl Display) -> Text {
        shell(aws(&self.place_flags, command))
    }

    /// The retry policies, parsed from the handler's environment variables.
    ///
    /// # Errors
    ///
    /// Fails with an error for each setting that the handler refuses.
    pub fn policies(&self) -> Result<Policies, Vec<SettingError>> {
        // Lambda sets these two variables, with which the handler checks that it is not its own target.
        let policies = Policies::from_variables(|name| match name {
            "AWS_LAMBDA_FUNCTION_NAME" => Some(self.handler_arn.name.clone()),
            "AWS_REGION" => Some(self.handler_arn.region.clone()),
            _ => self.variables.get(name).cloned(),
        })?;
        Ok(policies.in_queue(&self.retry_queue.parsed_arn))
    }

    /// The handler's environment variable `POLICIES`; empty if it is not set.
    pub fn policies_text(&self) -> &str {
        self.variables.get("POLICIES").map(String::as_str).unwrap_or_default()
    }

    /// The handler's environment variable `TARGET_FUNCTIONS`; empty if it is not set.
    pub fn allow_list(&self) -> &str {
        self.variables.get("TARGET_FUNCTIONS").map(String::as_str).unwrap_or_default()
    }

    /// The reason why the handler retries nothing; `None` if its settings and event source mapping show no reason.
    pub fn stopped(&self) -> Option<Stopped> {
        if self.policies().is_err() {
            Some(Stopped::RefusesSettings)
        } else if self.never_runs {
            Some(Stopped::NoConcurrency)
        } else if self.mapping.as_ref().is_some_and(Mapping::feeds) {
            None
        } else {
            Some(Stopped::NotFed)
        }
    }

    /// A sentence with the reason from [`Self::stopped`] and the command that shows the fix.
    pub fn stopped_note(&self) -> Option<Text> {
        let why = self.stopped()?;
        let doctor = quoted(self.command(CommandName::Doctor, ["--short"]));
        Some(text![format!("Now {why}: "), doctor, " names the fix."])
    }

    /// The entries on the allow-list.
    pub fn target_functions(&self) -> impl Iterator<Item = &str> {
        entries(self.allow_list())
    }

    /// Returns true if the allow-list matches the ARN. Entries that the handler cannot parse match nothing.
    pub fn allows(&self, arn: &str) -> bool {
        self.target_functions().filter_map(|it| it.parse::<FunctionPattern>().ok()).any(|it| it.allows(arn))
    }

    /// Returns true if an entry on the allow-list matches the function or any of its versions or aliases.
    pub fn retries(&self, function: &FunctionArn) -> bool {
        let mut patterns = self.target_functions().filter_map(|entry| entry.parse::<FunctionPattern>().ok());
        patterns.any(|pattern| {
            let qualifier = pattern.qualifier().map(ToOwned::to_owned);
            pattern.allows(&FunctionArn { qualifier, ..function.clone() }.to_string())
        })
    }

    /// Returns true if an entry on the allow-list matches the function that an operator names. A name without a
    /// qualifier stands for every version and alias, so an entry for one of them is enough.
    pub fn allows_name(&self, function: &FunctionName) -> bool {
        let arn = self.arn_of(function);
        if arn.qualifier.is_none() { self.retries(&arn) } else { self.allows(&arn.to_string()) }
    }

    /// Reads the stack that owns the handler; `None` if no stack owns it, or if the stack was deleted.
    ///
    /// # Errors
    ///
    /// Fails if the stack cannot be read.
    pub async fn read_stack(&self, account: &Account) -> Result<Option<Stack>, Failure> {
        match &self.stack {
            Some(name) => account.aws.stack(name).await,
            None => Ok(None),
        }
    }

    /// Finds the functions that match the allow-list and send their failed events to the retry queue. Returns an empty
    /// list without a search if no entry on the allow-list contains a `*`.
    pub async fn matched(&self, account: &Account) -> Result<Vec<FunctionArn>, Failure> {
        if !self.target_functions().any(|entry| entry.contains('*')) {
            return Ok(Vec::new());
        }
        let functions = account.aws.functions("the account").await?;
        let arns = functions.iter().filter_map(|function| function.arn.parse().ok());
        let arns = arns.filter(|arn: &FunctionArn| *arn != self.handler_arn && self.retries(arn));
        let leads_here = async |arn: FunctionArn| {
            let all = account.aws.invoke_settings(&arn.to_string()).await?;
            let queue = Some(self.retry_queue.arn.as_str());
            Ok::<_, Failure>(all.values().any(|it| it.on_failure.as_deref() == queue).then_some(arn))
        };
        let found: Vec<_> = iter(arns.map(leads_here)).buffered(AT_A_TIME).collect().await;
        found.into_iter().filter_map(Result::transpose).collect()
    }

    /// The ARN of a function, by default in the handler's region and account.
    pub fn arn_of(&self, function: &FunctionName) -> FunctionArn {
        let place = function.place.as_ref().unwrap_or(&self.handler_arn).clone();
        FunctionArn { name: function.name.clone(), qualifier: function.qualifier.clone(), ..place }
    }

    /// The name of the SSM parameter that holds the pauses; `None` if the handler does not read pauses.
    pub fn pauses(&self) -> Option<&str> {
        self.variables.get("PAUSES").map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The name of the handler's role.
    pub fn role(&self) -> &str {
        role_name(&self.role_arn)
    }
}

/// Returns `command` as an AWS CLI command, with the flags that select a region and a profile.
pub fn aws(place_flags: &str, command: impl Display) -> String {
    format!("aws {command}{place_flags}")
}

/// The entries of a comma-separated list, trimmed and without empty ones.
pub fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Deployment {
        /// A deployment with `orders` on its allow-list and without an event source mapping.
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

    impl Mapping {
        pub(crate) fn sample() -> Self {
            Self {
                uuid: "6ec5b0c5-0b8f-4a36-b1a4-6b1a2e2f9d10".into(),
                function_arn: "arn:aws:lambda:eu-west-1:123456789012:function:retry-handler".into(),
                queue_arn: "arn:aws:sqs:eu-west-1:123456789012:retries".into(),
                state: "Enabled".into(),
                batch_size: 10,
                window: Duration::ZERO,
                reports_failures: true,
                maximum_concurrency: Some(10),
                maximum_pollers: None,
            }
        }
    }

    #[test]
    fn handler_is_stopped_for_each_reason() {
        let fed = |state: &str| {
            let mapping = Some(Mapping { state: state.into(), ..Mapping::sample() });
            Deployment { mapping, ..Deployment::sample() }
        };
        let runs = |state: &str| fed(state).stopped().is_none();
        assert_eq!(["Enabled", "Updating", "Disabled", "Disabling"].map(runs), [true, true, false, false]);
        assert_eq!(Deployment::sample().stopped(), Some(Stopped::NotFed));
        let never = Deployment { never_runs: true, ..fed("Enabled") };
        assert_eq!(never.stopped(), Some(Stopped::NoConcurrency));
        let mut refused = fed("Enabled");
        refused.variables.insert("MAX_AGE".into(), "30".into());
        assert_eq!(refused.stopped(), Some(Stopped::RefusesSettings));
    }

    #[test]
    fn a_far_function_is_not_to_be_attached() {
        let deployment = Deployment { stack: Some("shop".into()), ..Deployment::sample() };
        let arn = |region: &str| format!("arn:aws:lambda:{region}:123456789012:function:orders");
        let commands = deployment.attach_commands([&*arn("eu-west-1"), &*arn("eu-west-2")]).to_string();
        let expected = "`comeback attach orders --stack shop`, use a deployment in the account and region of \
                        arn:aws:lambda:eu-west-2:123456789012:function:orders (if";
        assert!(commands.starts_with(expected), "{commands}");
    }

    #[test]
    fn a_deployments_name_is_quoted_in_a_command() {
        let of = |stack: Option<&str>, handler: &str| {
            let handler = handler.to_owned();
            let deployment = Deployment { stack: stack.map(Into::into), handler, ..Deployment::sample() };
            deployment.command(CommandName::Status, [""; 0]).to_string()
        };
        assert_eq!(of(Some("comeback"), "h"), "comeback status");
        assert_eq!(of(Some("my stack"), "h"), "comeback status --stack 'my stack'");
        assert_eq!(of(None, "$h"), "comeback status --handler '$h'");
    }
}
