//! A deployment: a retry handler and what belongs to it, found by the handler or by its stack.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use aws_sdk_cloudformation::operation::list_stack_resources::ListStackResourcesError;
use aws_sdk_cloudformation::types::StackResourceSummary;
use aws_sdk_lambda::operation::get_function::GetFunctionOutput;
use aws_sdk_lambda::types::{EventSourceMappingConfiguration, FunctionConfiguration, FunctionResponseType};
use aws_sdk_sqs::types::QueueAttributeName;
use comeback_engine::{FunctionArn, FunctionPattern, NotAnArn, Policies, QueueArn, SettingError};
use futures_util::stream::{StreamExt as _, iter};
use serde::Serialize;

use crate::account::{Account, Failure, Or as _};
use crate::operate::function::{
    ELSEWHERE, FunctionName, InvokeSettings, STACK_TAG, find_function, get_function,
};
use crate::text::terminal::command_line;

/// Functions that are read at a time: IAM's simulator and Lambda's API throttle more.
pub(crate) const AT_A_TIME: usize = 8;

/// The handler's tag with the version of Comeback, as the template and the construct set it.
const VERSION_TAG: &str = "comeback:version";

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
    /// The one that hands the retry queue to the handler, if there is one.
    pub(crate) mapping: Option<Mapping>,
    pub(crate) retry_queue: Queue,
    pub(crate) dead_letter_queue: Queue,
    /// The flags that lead a suggested command to its account and region.
    pub(crate) place_flags: String,
}

/// Why a handler retries nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stopped {
    #[error("the handler does not start, so nothing is retried")]
    RefusesSettings,
    #[error("the handler's reserved concurrency is 0, so nothing is retried")]
    NoConcurrency,
    #[error("no enabled event source mapping feeds the handler, so nothing is retried")]
    NotFed,
}

/// What happens to the events of a function that is not on the allow-list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unlisted {
    /// The handler dead-letters them (`target_not_allowed`), paused or not, when it next receives them.
    DeadLettered,
    /// The list is empty: the handler keeps every event, and retries none.
    Kept,
}

impl Unlisted {
    /// `None` if the handler retries the function.
    pub(crate) fn of(policies: &Policies, arn: &str) -> Option<Self> {
        match policies.stack() {
            policy if policy.keeps_everything() => Some(Self::Kept),
            policy => (!policy.allows(arn)).then_some(Self::DeadLettered),
        }
    }
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

    /// The deployment that retries what is sent to a queue, if one does.
    pub(crate) async fn of_retry_queue(account: &Account, queue_arn: &str) -> Result<Option<Self>, Failure> {
        if queue_arn.parse::<QueueArn>().is_err() {
            return Ok(None);
        }
        let pages = account.lambda.list_event_source_mappings().event_source_arn(queue_arn).into_paginator();
        let mappings = pages.items().send().try_collect().await;
        for mapping in mappings.or_failure("lambda:ListEventSourceMappings", queue_arn)? {
            let is_of_queue = mapping.event_source_arn() == Some(queue_arn);
            let Some(function) = mapping.function_arn().filter(|_| is_of_queue) else { continue };
            // A mapping may outlive its handler.
            let Some(found) = find_function(account, function, None).await? else { continue };
            let GetFunctionOutput { configuration, tags, .. } = found;
            if let Some(handler) = configuration.filter(is_handler) {
                let stack = tags.and_then(|mut tags| tags.remove(STACK_TAG));
                return Ok(Some(Self::new(stack, handler.function_name().unwrap_or_default())));
            }
        }
        Ok(None)
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) url: String,
    pub(crate) arn: String,
    parsed_arn: QueueArn,
}

impl Queue {
    fn new(url: &str, arn: &str) -> Result<Self, Failure> {
        Ok(Self { url: url.to_owned(), arn: arn.to_owned(), parsed_arn: parsed(arn)? })
    }

    pub(crate) fn name(&self) -> &str {
        &self.parsed_arn.name
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

    /// Why nothing is retried, as far as the settings and the mapping show it; `None` if the handler runs.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
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

    /// That nothing is retried, and the command that names the fix. `place` are the flags of that command.
    pub(crate) fn stopped_note(&self, place: &str) -> Option<String> {
        let why = self.stopped()?;
        Some(format!("Now {why}: `comeback doctor --short{place}` names the fix."))
    }

    pub(crate) fn target_functions(&self) -> impl Iterator<Item = &str> {
        entries(self.allow_list())
    }

    /// Whether the allow-list has this function. An entry that the handler does not understand allows nothing.
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

    pub(crate) fn role(&self) -> &str {
        self.role_arn.rsplit('/').next().unwrap_or(&self.role_arn)
    }

    /// Finds the deployment of a handler, or the one of a stack if no handler is named.
    pub(crate) async fn find(
        account: &Account,
        handler: Option<&FunctionName>,
        stack: &str,
    ) -> Result<Self, Failure> {
        let names = match handler {
            Some(handler) => vec![handler.unqualified()],
            None => {
                let resources = resources(account, stack).await?.into_iter();
                let functions = resources.filter(|it| it.resource_type() == Some("AWS::Lambda::Function"));
                functions.filter_map(|it| it.physical_resource_id).collect()
            }
        };
        let mut handlers = Vec::new();
        for name in &names {
            let GetFunctionOutput { configuration, tags, concurrency, .. } =
                get_function(account, name).await?;
            let never_runs = concurrency.and_then(|it| it.reserved_concurrent_executions) == Some(0);
            let mut tags = tags.unwrap_or_default();
            if handler.is_none() {
                tags.insert(STACK_TAG.to_owned(), stack.to_owned());
            }
            handlers.extend(configuration.filter(is_handler).map(|it| (tags, it, never_runs)));
        }
        if handlers.len() > 1 {
            let names: Vec<_> = handlers.iter().filter_map(|(_, it, _)| it.function_name()).collect();
            return Err(Failure::CouldNot(format!(
                "stack {stack} in {} has {} retry handlers; choose one with --handler: {}",
                account.place,
                names.len(),
                names.join(", ")
            )));
        }
        match (handlers.pop(), handler) {
            (Some((tags, configuration, never_runs)), _) => {
                let deployment = Self::of(account, tags, &configuration).await?;
                Ok(Self { never_runs, ..deployment })
            }
            (None, Some(_)) => Err(Failure::CouldNot(format!(
                "{} in {} is not a retry handler: it lacks the variable DEAD_LETTER_QUEUE_URL or \
                 TARGET_FUNCTIONS",
                names[0], account.place
            ))),
            (None, None) => Err(Failure::CouldNot(format!(
                "stack {stack} in {} has no retry handler (a function with DEAD_LETTER_QUEUE_URL and TARGET_FUNCTIONS); \
                 {ELSEWHERE}",
                account.place
            ))),
        }
    }

    async fn of(
        account: &Account,
        mut tags: HashMap<String, String>,
        handler: &FunctionConfiguration,
    ) -> Result<Self, Failure> {
        let name = handler.function_name().unwrap_or_default().to_owned();
        let arn = handler.function_arn().unwrap_or_default();
        let logging = handler.logging_config();
        let variables = variables(handler);
        let set = |variable: &str| variables.get(variable).filter(|value| !value.is_empty());
        let mappings = Mapping::all(account, &name).await?;
        let retry_queue = match set("RETRY_QUEUE_URL") {
            Some(url) => queue(account, url).await?,
            None => {
                let mapping = mappings.first().ok_or_else(|| {
                    let why = "RETRY_QUEUE_URL is not set, and no event source mapping names a queue";
                    Failure::CouldNot(format!("the retry queue of {name} is unknown: {why}"))
                })?;
                queue_of_arn(account, &mapping.queue_arn).await?
            }
        };
        let dead = set("DEAD_LETTER_QUEUE_URL").ok_or_else(|| {
            Failure::CouldNot(format!("DEAD_LETTER_QUEUE_URL of {name} is empty: the handler does not start"))
        })?;
        Ok(Self {
            stack: tags.remove(STACK_TAG),
            version: tags.remove(VERSION_TAG),
            never_runs: false,
            handler_arn: parsed(arn)?,
            role_arn: handler.role().unwrap_or_default().to_owned(),
            timeout: Duration::from_secs(handler.timeout().unwrap_or_default().unsigned_abs().into()),
            log_group: logging
                .and_then(|it| it.log_group())
                .map_or_else(|| format!("/aws/lambda/{name}"), ToOwned::to_owned),
            log_level: logging.and_then(|it| it.application_log_level()).map(|it| it.as_str().to_owned()),
            mapping: mappings.into_iter().find(|mapping| mapping.queue_arn == retry_queue.arn),
            dead_letter_queue: queue(account, dead).await?,
            retry_queue,
            place_flags: account.place.flags.clone(),
            variables,
            handler: name,
        })
    }
}

/// A command of the AWS CLI, with the flags that lead to an account and region.
pub(crate) fn aws(place_flags: &str, command: impl Display) -> String {
    format!("aws {command}{place_flags}")
}

pub(crate) async fn resources(account: &Account, stack: &str) -> Result<Vec<StackResourceSummary>, Failure> {
    let pages = account.cloudformation.list_stack_resources().stack_name(stack).into_paginator();
    let resources: Result<Vec<_>, _> = pages.items().send().try_collect().await;
    // CloudFormation has no code of its own for it.
    let is_missing = |error: &ListStackResourcesError| {
        error.meta().message().is_some_and(|message| message.ends_with("does not exist"))
    };
    let stack = format!("{stack} in {}", account.place);
    let resources = resources.unless(is_missing, "cloudformation:ListStackResources", &stack)?;
    resources.ok_or_else(|| Failure::CouldNot(format!("no stack {stack}; {ELSEWHERE}")))
}

pub(crate) fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

pub(crate) fn variables(function: &FunctionConfiguration) -> BTreeMap<String, String> {
    let variables = function.environment().and_then(|environment| environment.variables());
    variables.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_handler(function: &FunctionConfiguration) -> bool {
    let variables = variables(function);
    ["DEAD_LETTER_QUEUE_URL", "TARGET_FUNCTIONS"].iter().all(|name| variables.contains_key(*name))
}

/// The values of a queue's attributes, in the order of their names.
pub(crate) async fn attributes<const N: usize>(
    account: &Account,
    url: &str,
    names: [QueueAttributeName; N],
) -> Result<[Option<String>; N], Failure> {
    let call = account.sqs.get_queue_attributes().queue_url(url).set_attribute_names(Some(names.to_vec()));
    let answer = call.send().await.or_failure("sqs:GetQueueAttributes", url)?;
    Ok(names.map(|name| answer.attributes()?.get(&name).cloned()))
}

pub(crate) async fn queue(account: &Account, url: &str) -> Result<Queue, Failure> {
    let [arn] = attributes(account, url, [QueueAttributeName::QueueArn]).await?;
    let arn = arn.ok_or_else(|| Failure::CouldNot(format!("SQS returned no ARN for {url}")))?;
    Queue::new(url, &arn)
}

pub(crate) async fn queue_of_arn(account: &Account, arn: &str) -> Result<Queue, Failure> {
    let QueueArn { name, account: owner, .. } = parsed(arn)?;
    let call = account.sqs.get_queue_url().queue_name(name).queue_owner_aws_account_id(owner);
    let answer = call.send().await.or_failure("sqs:GetQueueUrl", arn)?;
    Queue::new(answer.queue_url().unwrap_or_default(), arn)
}

fn parsed<T: FromStr<Err = NotAnArn>>(arn: &str) -> Result<T, Failure> {
    arn.parse().map_err(|problem| Failure::CouldNot(format!("{arn} {problem}")))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) uuid: String,
    pub(crate) queue_arn: String,
    /// `Enabled`, `Disabled`, or a state on the way to one of them.
    pub(crate) state: String,
    pub(crate) batch_size: i32,
    pub(crate) window: Duration,
    /// Whether `ReportBatchItemFailures` is on.
    pub(crate) reports_failures: bool,
    /// The most invocations of the handler at a time; `None` without a limit.
    pub(crate) maximum_concurrency: Option<i32>,
    /// `None` unless the mapping is in provisioned mode, which has no `MaximumConcurrency` of its own.
    pub(crate) maximum_pollers: Option<i32>,
}

/// Lambda's limit of concurrent invocations by one provisioned poller.
pub(crate) const INVOCATIONS_OF_A_POLLER: u16 = 10;

/// Lambda's default for a mapping that names only its fewest provisioned pollers.
const DEFAULT_MAXIMUM_POLLERS: i32 = 200;

impl Mapping {
    /// Whether it feeds the handler, or soon will.
    pub(crate) fn feeds(&self) -> bool {
        matches!(&*self.state, "Enabled" | "Enabling" | "Creating" | "Updating")
    }

    /// A function's mappings of SQS queues.
    pub(crate) async fn all(account: &Account, function: &str) -> Result<Vec<Self>, Failure> {
        let pages = account.lambda.list_event_source_mappings().function_name(function).into_paginator();
        let mappings = pages.items().send().try_collect().await;
        let mappings = mappings.or_failure("lambda:ListEventSourceMappings", function)?;
        Ok(mappings.iter().filter_map(Self::read).collect())
    }

    fn read(mapping: &EventSourceMappingConfiguration) -> Option<Self> {
        let queue_arn = mapping.event_source_arn().filter(|arn| arn.parse::<QueueArn>().is_ok())?;
        let window = mapping.maximum_batching_window_in_seconds().unwrap_or(0);
        let maximum_pollers = mapping.provisioned_poller_config().and_then(|config| {
            config.maximum_pollers().or(config.minimum_pollers().and(Some(DEFAULT_MAXIMUM_POLLERS)))
        });
        let maximum_concurrency = mapping.scaling_config().and_then(|scaling| scaling.maximum_concurrency());
        Some(Self {
            uuid: mapping.uuid()?.to_owned(),
            queue_arn: queue_arn.to_owned(),
            state: mapping.state().unwrap_or_default().to_owned(),
            batch_size: mapping.batch_size().unwrap_or(10),
            window: Duration::from_secs(window.unsigned_abs().into()),
            reports_failures: mapping
                .function_response_types()
                .contains(&FunctionResponseType::ReportBatchItemFailures),
            maximum_concurrency: maximum_concurrency
                .or_else(|| Some(maximum_pollers?.saturating_mul(INVOCATIONS_OF_A_POLLER.into()))),
            maximum_pollers,
        })
    }
}

/// How many messages a queue has, approximately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Depth {
    pub(crate) visible: u64,
    pub(crate) in_flight: u64,
    pub(crate) delayed: u64,
}

impl Depth {
    pub(crate) async fn read(account: &Account, queue: &Queue) -> Result<Self, Failure> {
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
        ];
        let counts = attributes(account, &queue.url, names).await?;
        let [Some(visible), Some(in_flight), Some(delayed)] = counts.map(|it| it?.parse().ok()) else {
            return Err(Failure::CouldNot(format!("SQS returned no message counts for {}", queue.url)));
        };
        Ok(Self { visible, in_flight, delayed })
    }

    pub(crate) const fn total(&self) -> u64 {
        self.visible + self.in_flight + self.delayed
    }
}

#[cfg(test)]
impl Queue {
    pub(crate) fn sample(name: &str) -> Self {
        let url = format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{name}");
        Self::new(&url, &format!("arn:aws:sqs:eu-west-1:123456789012:{name}")).unwrap()
    }
}

#[cfg(test)]
impl Mapping {
    pub(crate) fn sample() -> Self {
        Self {
            uuid: "6ec5b0c5-0b8f-4a36-b1a4-6b1a2e2f9d10".into(),
            queue_arn: Queue::sample("retries").arn,
            state: "Enabled".into(),
            batch_size: 10,
            window: Duration::ZERO,
            reports_failures: true,
            maximum_concurrency: Some(10),
            maximum_pollers: None,
        }
    }
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
    use aws_sdk_lambda::types::{ProvisionedPollerConfig, ScalingConfig};
    use serde_json::json;

    use super::*;

    const PLACE: &str = "arn:aws:lambda:eu-west-1:123456789012:function";

    #[test]
    fn a_handler_is_stopped_by_its_settings_its_concurrency_or_its_mapping() {
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
    fn a_deployments_name_is_quoted_in_a_command() {
        let of = |stack: Option<&str>, handler: &str| {
            let handler = handler.to_owned();
            Deployment { stack: stack.map(Into::into), handler, ..Deployment::sample() }.command("status")
        };
        assert_eq!(of(Some("comeback"), "h"), "comeback status");
        assert_eq!(of(Some("my stack"), "h"), "comeback status --stack 'my stack'");
        assert_eq!(of(None, "$h"), "comeback status --handler '$h'");
    }

    #[tokio::test]
    async fn a_mapping_that_outlives_its_handler_is_passed_over() {
        let queue = Queue::sample("retries").arn;
        let mapping = |name| json!({"EventSourceArn": queue, "FunctionArn": format!("{PLACE}:{name}")});
        let mappings = json!({"EventSourceMappings": [mapping("gone"), mapping("handler")]});
        let variables = json!({"DEAD_LETTER_QUEUE_URL": "", "TARGET_FUNCTIONS": ""});
        let handler = json!({
            "Configuration": {"FunctionName": "handler", "Environment": {"Variables": variables}},
        });
        let account = Account::answering_paths(move |path| match path {
            path if path.contains("event-source-mappings") => (200, mappings.clone()),
            path if path.ends_with("gone") => (404, json!({})),
            _ => (200, handler.clone()),
        });
        let found = DeploymentName::of_retry_queue(&account.await, &queue).await;
        assert_eq!(found, Ok(Some(DeploymentName::Handler("handler".into()))));
    }

    #[test]
    fn each_provisioned_poller_makes_ten_invocations_at_a_time() {
        let mapping =
            EventSourceMappingConfiguration::builder().uuid("1").event_source_arn(Queue::sample("q").arn);
        let limits = |mapping: EventSourceMappingConfiguration| {
            let mapping = Mapping::read(&mapping).unwrap();
            (mapping.maximum_concurrency, mapping.maximum_pollers)
        };
        assert_eq!(limits(mapping.clone().build()), (None, None));
        let scaling = ScalingConfig::builder().maximum_concurrency(7).build();
        assert_eq!(limits(mapping.clone().scaling_config(scaling).build()), (Some(7), None));
        let pollers = ProvisionedPollerConfig::builder().minimum_pollers(2).maximum_pollers(100).build();
        assert_eq!(
            limits(mapping.clone().provisioned_poller_config(pollers).build()),
            (Some(1_000), Some(100))
        );
        let fewest = ProvisionedPollerConfig::builder().minimum_pollers(2).build();
        let default = limits(mapping.provisioned_poller_config(fewest).build());
        assert_eq!(default, (Some(2_000), Some(200)), "Lambda's default");
    }
}
