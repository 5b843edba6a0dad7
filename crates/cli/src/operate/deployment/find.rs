//! Finds a deployment: by its handler, its stack or its retry queue.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_cloudformation::types::StackResourceSummary;
use aws_sdk_lambda::operation::get_function::GetFunctionOutput;
use aws_sdk_lambda::types::FunctionConfiguration;
use comeback_engine::QueueArn;

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::mapping::Mapping;
use crate::operate::deployment::queue::{Queue, parsed};
use crate::operate::deployment::{Deployment, DeploymentName};
use crate::operate::function::{
    ELSEWHERE, FunctionName, STACK_TAG, find_function, get_function, log_group, variables,
};
use crate::operate::handler_setting::is_gone;

/// The handler's tag with the version of Comeback, as the template and the construct set it.
const VERSION_TAG: &str = "comeback:version";

impl DeploymentName {
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
}

impl Deployment {
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
            Some(url) => Queue::of_url(account, url).await?,
            None => {
                let mapping = mappings.first().ok_or_else(|| {
                    let why = "RETRY_QUEUE_URL is not set, and no event source mapping names a queue";
                    Failure::CouldNot(format!("the retry queue of {name} is unknown: {why}"))
                })?;
                Queue::of_arn(account, &mapping.queue_arn).await?
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
            log_group: log_group(logging, &name),
            log_level: logging.and_then(|it| it.application_log_level()).map(|it| it.as_str().to_owned()),
            mapping: mappings.into_iter().find(|mapping| mapping.queue_arn == retry_queue.arn),
            dead_letter_queue: Queue::of_url(account, dead).await?,
            retry_queue,
            place_flags: account.place.flags.clone(),
            variables,
            handler: name,
        })
    }
}

/// What a stack consists of.
pub(crate) async fn resources(account: &Account, stack: &str) -> Result<Vec<StackResourceSummary>, Failure> {
    let pages = account.cloudformation.list_stack_resources().stack_name(stack).into_paginator();
    let resources: Result<Vec<_>, _> = pages.items().send().try_collect().await;
    let stack = format!("{stack} in {}", account.place);
    let resources = resources.unless(is_gone, "cloudformation:ListStackResources", &stack)?;
    resources.ok_or_else(|| Failure::CouldNot(format!("no stack {stack}; {ELSEWHERE}")))
}

fn is_handler(function: &FunctionConfiguration) -> bool {
    let variables = variables(function);
    ["DEAD_LETTER_QUEUE_URL", "TARGET_FUNCTIONS"].iter().all(|name| variables.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLACE: &str = "arn:aws:lambda:eu-west-1:123456789012:function";

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
}
