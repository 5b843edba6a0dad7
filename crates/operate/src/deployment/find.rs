use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_lambda::types::FunctionConfiguration;
use aws_sdk_sqs::types::QueueAttributeName;

use crate::target::STACK_TAG;
use crate::{Account, Deployment, Failure, FunctionName, Mapping, Queue};

impl Deployment {
    /// Finds the deployment of a handler, or the one of a stack if no handler is named.
    ///
    /// # Errors
    ///
    /// There is none, or more than one, or it cannot be read.
    pub async fn find(
        account: &Account,
        handler: Option<&FunctionName>,
        stack: &str,
    ) -> Result<Self, Failure> {
        match handler {
            Some(handler) => Self::by_handler(account, handler).await,
            None => Self::by_stack(account, stack).await,
        }
    }

    async fn by_handler(account: &Account, handler: &FunctionName) -> Result<Self, Failure> {
        let name = handler.unqualified();
        let answer = account.lambda.get_function().function_name(&name).send().await;
        let answer = answer.map_err(|error| Failure::of_call("lambda:GetFunction", &name, &error))?;
        let stack = answer.tags().and_then(|tags| tags.get(STACK_TAG)).cloned();
        let configuration = answer.configuration().filter(|it| is_handler(&variables(it))).ok_or_else(|| {
            Failure::CouldNot(format!(
                "{name} is no retry handler: its environment lacks DEAD_LETTER_QUEUE_URL or TARGET_FUNCTIONS"
            ))
        })?;
        Self::of(account, stack, configuration).await
    }

    async fn by_stack(account: &Account, stack: &str) -> Result<Self, Failure> {
        let mut handlers = Vec::new();
        for function in functions_of(account, stack).await? {
            let answer = account.lambda.get_function().function_name(&function).send().await;
            let answer = answer.map_err(|error| Failure::of_call("lambda:GetFunction", &function, &error))?;
            handlers.extend(answer.configuration().filter(|it| is_handler(&variables(it))).cloned());
        }
        match handlers.as_slice() {
            [handler] => Self::of(account, Some(stack.to_owned()), handler).await,
            [] => Err(Failure::CouldNot(format!(
                "stack {stack} has no retry handler (a function with DEAD_LETTER_QUEUE_URL and TARGET_FUNCTIONS); name \
                 the stack with --stack, or the handler with --handler"
            ))),
            several => {
                let names: Vec<_> = several.iter().filter_map(|it| it.function_name()).collect();
                Err(Failure::CouldNot(format!(
                    "stack {stack} has {} retry handlers; choose one with --handler: {}",
                    names.len(),
                    names.join(", ")
                )))
            }
        }
    }

    async fn of(
        account: &Account,
        stack: Option<String>,
        handler: &FunctionConfiguration,
    ) -> Result<Self, Failure> {
        let name = handler.function_name().unwrap_or_default().to_owned();
        let variables = variables(handler);
        let set = |variable: &str| variables.get(variable).filter(|value| !value.is_empty());
        let mappings = Mapping::all(account, &name).await?;
        let retry_queue = match set("RETRY_QUEUE_URL") {
            Some(url) => queue(account, url).await?,
            None => {
                let mapping = mappings.first().ok_or_else(|| {
                    let what = "RETRY_QUEUE_URL is not set, and no event source mapping names a queue";
                    Failure::CouldNot(format!("the retry queue of {name} is not known: {what}"))
                })?;
                queue_of_arn(account, &mapping.queue_arn).await?
            }
        };
        let dead = set("DEAD_LETTER_QUEUE_URL").ok_or_else(|| {
            Failure::CouldNot(format!("DEAD_LETTER_QUEUE_URL of {name} is empty: the handler does not start"))
        })?;
        Ok(Self {
            stack,
            handler_arn: handler.function_arn().unwrap_or_default().to_owned(),
            role_arn: handler.role().unwrap_or_default().to_owned(),
            timeout: Duration::from_secs(handler.timeout().unwrap_or_default().unsigned_abs().into()),
            log_group: handler
                .logging_config()
                .and_then(|logging| logging.log_group())
                .map_or_else(|| format!("/aws/lambda/{name}"), ToOwned::to_owned),
            log_level: handler
                .logging_config()
                .and_then(|logging| logging.application_log_level())
                .map(|level| level.as_str().to_owned()),
            mapping: mappings.into_iter().find(|mapping| mapping.queue_arn == retry_queue.arn),
            dead_letter_queue: queue(account, dead).await?,
            retry_queue,
            variables,
            handler: name,
        })
    }
}

/// The names of a stack's functions.
async fn functions_of(account: &Account, stack: &str) -> Result<Vec<String>, Failure> {
    let mut pages = account.cloudformation.list_stack_resources().stack_name(stack).into_paginator().send();
    let mut functions = Vec::new();
    while let Some(page) = pages.next().await {
        let page =
            page.map_err(|error| Failure::of_call("cloudformation:ListStackResources", stack, &error))?;
        let of_lambda = page
            .stack_resource_summaries()
            .iter()
            .filter(|it| it.resource_type() == Some("AWS::Lambda::Function"));
        functions.extend(of_lambda.filter_map(|it| it.physical_resource_id()).map(ToOwned::to_owned));
    }
    Ok(functions)
}

fn variables(function: &FunctionConfiguration) -> BTreeMap<String, String> {
    let variables = function.environment().and_then(|environment| environment.variables());
    variables.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_handler(variables: &BTreeMap<String, String>) -> bool {
    ["DEAD_LETTER_QUEUE_URL", "TARGET_FUNCTIONS"].iter().all(|name| variables.contains_key(*name))
}

async fn queue(account: &Account, url: &str) -> Result<Queue, Failure> {
    let call =
        account.sqs.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::QueueArn);
    let answer =
        call.send().await.map_err(|error| Failure::of_call("sqs:GetQueueAttributes", url, &error))?;
    let arn = answer.attributes().and_then(|attributes| attributes.get(&QueueAttributeName::QueueArn));
    let arn = arn.ok_or_else(|| Failure::CouldNot(format!("SQS did not name the ARN of {url}")))?;
    Ok(Queue { url: url.to_owned(), arn: arn.clone() })
}

async fn queue_of_arn(account: &Account, arn: &str) -> Result<Queue, Failure> {
    let mut fields = arn.split(':').skip(4);
    let (owner, name) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    let call = account.sqs.get_queue_url().queue_name(name).queue_owner_aws_account_id(owner);
    let answer = call.send().await.map_err(|error| Failure::of_call("sqs:GetQueueUrl", arn, &error))?;
    let url = answer.queue_url().unwrap_or_default().to_owned();
    Ok(Queue { url, arn: arn.to_owned() })
}
