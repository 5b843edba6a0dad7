//! Finds a deployment: by its handler, its stack or its retry queue.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::types::StackResourceSummary;
use aws_sdk_lambda::operation::get_function::GetFunctionOutput;
use aws_sdk_lambda::types::FunctionConfiguration;

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::Deployment;
use crate::operate::deployment::mapping::Mapping;
use crate::operate::deployment::queue::{Queue, parsed};
use crate::operate::function::{ELSEWHERE, FunctionName, STACK_TAG, get_function, log_group, variables};

/// The handler's tag with the version of Comeback, as the template and the construct set it.
const VERSION_TAG: &str = "comeback:version";

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

/// Returns true if CloudFormation says that the stack does not exist. It has no error type for that.
fn is_gone(error: &impl ProvideErrorMetadata) -> bool {
    error.code() == Some("ValidationError")
        && error.message().is_some_and(|message| message.contains("does not exist"))
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudformation::error::ErrorMetadata;

    use super::*;

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
