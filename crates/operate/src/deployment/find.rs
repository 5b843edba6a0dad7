//! Finds a deployment by its handler, its stack or its retry queue.

use std::fmt;

use comeback_engine::QueueArn;

use crate::account::Account;
use crate::aws::{Configuration, Function, StackResource};
use crate::deployment::queue::{Queue, no_queue, parsed};
use crate::deployment::{Deployment, DeploymentName};
use crate::failure::Failure;
use crate::function::{ELSEWHERE, FunctionName, STACK_TAG, get_function, log_group};

/// The key of the handler's tag that holds Comeback's version.
const VERSION_TAG: &str = "comeback:version";

/// The operator's choice of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The deployment of the retry handler with this name.
    Handler(FunctionName),
    /// The deployment that this CloudFormation stack created.
    Stack(String),
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(handler) => write!(f, "handler {handler}"),
            Self::Stack(stack) => write!(f, "stack {stack}"),
        }
    }
}

impl DeploymentName {
    /// The deployment whose handler receives messages from this queue; `None` if no retry handler does.
    pub async fn of_retry_queue(account: &Account, queue_arn: &str) -> Result<Option<Self>, Failure> {
        if queue_arn.parse::<QueueArn>().is_err() {
            return Ok(None);
        }
        for mapping in account.aws.mappings_of_queue(queue_arn).await? {
            if mapping.queue_arn != queue_arn || mapping.function_arn.is_empty() {
                continue;
            }
            // The handler may be deleted while its mapping still exists.
            let Some(found) = account.aws.function(&mapping.function_arn, None).await? else { continue };
            let Function { configuration, mut tags, .. } = found;
            if is_handler(&configuration) {
                return Ok(Some(Self::new(tags.remove(STACK_TAG), &configuration.name)));
            }
        }
        Ok(None)
    }
}

impl Deployment {
    /// Finds a deployment by its handler or by its stack.
    pub async fn find(account: &Account, which: &Which) -> Result<Self, Failure> {
        let names = match which {
            Which::Handler(handler) => vec![handler.unqualified()],
            Which::Stack(stack) => {
                let resources = resources(account, stack).await?.into_iter();
                let functions = resources.filter(|it| it.kind == "AWS::Lambda::Function");
                functions.filter_map(|it| it.physical_id).collect()
            }
        };
        let mut handlers = Vec::new();
        for name in &names {
            let mut function = get_function(account, name).await?;
            if let Which::Stack(stack) = which {
                function.tags.insert(STACK_TAG.to_owned(), stack.clone());
            }
            if is_handler(&function.configuration) {
                handlers.push(function);
            }
        }
        if handlers.len() > 1 {
            let names: Vec<_> = handlers.iter().map(|it| &*it.configuration.name).collect();
            return Err(Failure::could_not(format!(
                "{which} in {} has {} retry handlers; choose one with --handler: {}",
                account.place,
                names.len(),
                names.join(", ")
            )));
        }
        match (handlers.pop(), which) {
            (Some(handler), _) => Self::of(account, handler).await,
            (None, Which::Handler(_)) => Err(Failure::could_not(format!(
                "{} in {} is not a retry handler: it lacks the variable DEAD_LETTER_QUEUE_URL or \
                 TARGET_FUNCTIONS",
                names[0], account.place
            ))),
            (None, Which::Stack(_)) => Err(Failure::could_not(format!(
                "{which} in {} has no retry handler (a function with DEAD_LETTER_QUEUE_URL and TARGET_FUNCTIONS); \
                 {ELSEWHERE}",
                account.place
            ))),
        }
    }

    async fn of(account: &Account, handler: Function) -> Result<Self, Failure> {
        let Function { configuration: handler, mut tags, reserved_concurrency, .. } = handler;
        let queue = async |url: &str| Queue::of_url(account, url).await?.ok_or_else(|| no_queue(url));
        let set = |variable: &str| handler.variables.get(variable).filter(|value| !value.is_empty());
        let name = &handler.name;
        let mappings = account.aws.mappings_of_function(name).await?;
        let retry_queue = match set("RETRY_QUEUE_URL") {
            Some(url) => queue(url).await?,
            None => {
                let mapping = mappings.first().ok_or_else(|| {
                    let why = "RETRY_QUEUE_URL is not set, and no event source mapping names a queue";
                    Failure::could_not(format!("the retry queue of {name} is unknown: {why}"))
                })?;
                let arn = &mapping.queue_arn;
                Queue::of_arn(account, arn).await?.ok_or_else(|| no_queue(arn))?
            }
        };
        let dead = set("DEAD_LETTER_QUEUE_URL").ok_or_else(|| {
            Failure::could_not(format!(
                "DEAD_LETTER_QUEUE_URL of {name} is empty: the handler does not start"
            ))
        })?;
        Ok(Self {
            stack: tags.remove(STACK_TAG),
            version: tags.remove(VERSION_TAG),
            never_runs: reserved_concurrency == Some(0),
            handler_arn: parsed(&handler.arn)?,
            log_group: log_group(&handler),
            mapping: mappings.into_iter().find(|mapping| mapping.queue_arn == retry_queue.arn),
            dead_letter_queue: queue(dead).await?,
            retry_queue,
            place_flags: account.place.flags.clone(),
            role_arn: handler.role_arn,
            timeout: handler.timeout,
            log_level: handler.log_level,
            variables: handler.variables,
            handler: handler.name,
        })
    }
}

/// Reads the resources of a CloudFormation stack.
///
/// # Errors
///
/// Fails if the stack does not exist or cannot be read.
pub async fn resources(account: &Account, stack: &str) -> Result<Vec<StackResource>, Failure> {
    let of = format!("{stack} in {}", account.place);
    let resources = account.aws.stack_resources(stack, &of).await?;
    resources.ok_or_else(|| Failure::could_not(format!("no stack {of}; {ELSEWHERE}")))
}

fn is_handler(function: &Configuration) -> bool {
    ["DEAD_LETTER_QUEUE_URL", "TARGET_FUNCTIONS"].iter().all(|name| function.variables.contains_key(*name))
}
