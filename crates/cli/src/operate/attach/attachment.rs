//! A function's attachment to a deployment: what is there, and how it is read.

use aws_sdk_sqs::types::QueueAttributeName;
use comeback_engine::FunctionPattern;

use crate::operate::account::{Account, Failure, Or as _, Verdict, customer_key, may};
use crate::operate::alarms::Losses;
use crate::operate::attach::allow_list;
use crate::operate::attach::policy::{Statement, read_policy};
use crate::operate::deployment::{Deployment, Queue};
use crate::operate::function::{FunctionName, Target};

/// A function's attachment to a deployment, as far as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) target: Target,
    pub(crate) queue: Queue,
    /// The customer's key that encrypts the retry queue, if there is one.
    pub(crate) key_arn: Option<String>,
    /// Whether the function's role may send to the retry queue, and use its key.
    pub(crate) may_send: Verdict,
    pub(crate) send_policy: bool,
    /// The stack that owns the function's settings for asynchronous invocations, if one does.
    pub(crate) owner: Option<String>,
    /// Which alarm is on what Lambda loses of the function.
    pub(crate) losses: Losses,
    pub(crate) handler: Handler,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handler {
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) allow_list: String,
    /// How many bytes its environment has for Lambda, the allow-list included.
    pub(crate) environment_bytes: usize,
    pub(crate) may_invoke: Verdict,
    /// Whether its role has the policy that `attach` gives it where no template does.
    pub(crate) invoke_policy: bool,
    pub(crate) place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the parameter `TargetFunctions` of a stack, which also lets the handler invoke what it names.
    Parameter {
        stack: String,
        value: String,
    },
    Template {
        stack: String,
    },
    /// In the handler's own environment, because no stack owns the handler.
    Environment,
}

impl Attachment {
    /// Whether failures of this qualifier go to the retry queue.
    pub(crate) fn is_attached(&self, qualifier: Option<&str>) -> bool {
        let settings = self.target.invoke_settings.get(&qualifier.map(ToOwned::to_owned));
        settings.is_some_and(|settings| settings.on_failure.as_deref() == Some(&*self.queue.arn))
    }

    /// The other qualifiers of the function whose failures go to the retry queue.
    pub(crate) fn others(&self) -> impl Iterator<Item = Option<&str>> {
        let named = self.target.qualifier.as_deref();
        let all = self.target.invoke_settings.keys().map(Option::as_deref);
        all.filter(move |qualifier| *qualifier != named && self.is_attached(*qualifier))
    }

    /// The name of the inline policy that lets the function's role send.
    pub(crate) fn send_policy_name(&self) -> String {
        format!("comeback-{}", self.queue.name())
    }

    pub(crate) fn send_statements(&self) -> Vec<Statement> {
        let mut statements = vec![(vec!["sqs:SendMessage"], vec![self.queue.arn.clone()])];
        statements.extend(
            self.key_arn.iter().map(|key| (vec!["kms:GenerateDataKey", "kms:Decrypt"], vec![key.clone()])),
        );
        statements
    }

    /// The name of the inline policy that lets the handler invoke the function, where no template does.
    pub(crate) fn invoke_policy_name(&self) -> String {
        invoke_policy_name(&self.target)
    }
}

/// The name of the inline policy that lets the handler invoke a function.
pub(crate) fn invoke_policy_name(target: &Target) -> String {
    format!("invoke-{}", target.name)
}

pub(crate) fn invoke_statements(target: &Target) -> Vec<Statement> {
    let arn = &target.arn;
    vec![(vec!["lambda:InvokeFunction"], vec![arn.clone(), format!("{arn}:*")])]
}

impl Handler {
    /// Whether the allow-list has an entry that allows this function. An entry that the handler does not understand
    /// allows nothing.
    pub(crate) fn allows(&self, arn: &str) -> bool {
        let patterns =
            self.allow_list.split(',').filter_map(|entry| entry.trim().parse::<FunctionPattern>().ok());
        patterns.into_iter().any(|pattern| pattern.allows(arn))
    }
}

impl Attachment {
    pub(crate) async fn read(
        account: &Account,
        deployment: &Deployment,
        function: &FunctionName,
    ) -> Result<Self, Failure> {
        let target = Target::read(account, function).await?;
        if target.arn == deployment.handler_arn.to_string() {
            return Err(Failure::Refused(format!(
                "{function} is the retry handler itself, which is never retried"
            )));
        }
        let queue = &deployment.retry_queue;
        let key_arn = key_of(account, &queue.url).await?;
        let mut needs = vec![("sqs:SendMessage", &queue.arn)];
        needs.extend(key_arn.iter().flat_map(|key| [("kms:GenerateDataKey", key), ("kms:Decrypt", key)]));
        let mut may_send = Verdict::Allowed;
        for (action, resource) in needs {
            may_send = may_send.max(may(account, &target.role_arn, action, resource).await?);
        }
        let attachment = Self {
            may_send,
            send_policy: false,
            owner: owner(account, deployment, &target).await?,
            losses: Losses::read(account, deployment, &target.name).await?,
            handler: Handler::read(account, deployment, &target).await?,
            queue: queue.clone(),
            key_arn,
            target,
        };
        let policy = attachment.send_policy_name();
        let send_policy = read_policy(account, attachment.target.role(), &policy).await?;
        let send_policy = send_policy.has(&attachment.send_statements());
        Ok(Self { send_policy, ..attachment })
    }
}

impl Handler {
    async fn read(account: &Account, deployment: &Deployment, target: &Target) -> Result<Self, Failure> {
        let arn = target.invoked_arn();
        let place = Place::read(account, deployment).await?;
        let role = deployment.role().to_owned();
        let invoke_policy = match place {
            Place::Environment => {
                let policy = read_policy(account, &role, &invoke_policy_name(target)).await?;
                policy.has(&invoke_statements(target))
            }
            _ => false,
        };
        Ok(Self {
            name: deployment.handler.clone(),
            may_invoke: may(account, &deployment.role_arn, "lambda:InvokeFunction", &arn).await?,
            role,
            allow_list: deployment.variables.get(allow_list::VARIABLE).cloned().unwrap_or_default(),
            environment_bytes: allow_list::environment_bytes(&deployment.variables),
            invoke_policy,
            place,
        })
    }
}

impl Place {
    /// A nested stack's parameters are its parent's to set. A stack that was deleted owns nothing.
    async fn read(account: &Account, deployment: &Deployment) -> Result<Self, Failure> {
        let Some(name) = &deployment.stack else { return Ok(Self::Environment) };
        let Some(stack) = allow_list::find_stack(account, name).await? else { return Ok(Self::Environment) };
        Ok(match allow_list::parameter_value(&stack, allow_list::PARAMETER) {
            Some(value) if stack.parent_id().is_none() => {
                Self::Parameter { stack: name.clone(), value: value.to_owned() }
            }
            _ => Self::Template { stack: name.clone() },
        })
    }
}

/// The key of a queue that a customer manages. Whoever may use SQS may use the key that AWS manages for it.
async fn key_of(account: &Account, url: &str) -> Result<Option<String>, Failure> {
    let name = QueueAttributeName::KmsMasterKeyId;
    let call = account.sqs.get_queue_attributes().queue_url(url).attribute_names(name.clone());
    let answer = call.send().await.or_failure("sqs:GetQueueAttributes", url)?;
    let key = answer.attributes().and_then(|attributes| attributes.get(&name));
    let Some(key) = key.filter(|key| !key.is_empty() && !key.ends_with("alias/aws/sqs")) else {
        return Ok(None);
    };
    customer_key(account, Some(key)).await
}

/// The stack that owns the settings of the named qualifier: the function's own, or the handler's, where a CDK app
/// attached a function that it had only imported.
async fn owner(
    account: &Account,
    deployment: &Deployment,
    target: &Target,
) -> Result<Option<String>, Failure> {
    let own = target.stack();
    let handlers = deployment.stack.as_deref().filter(|stack| Some(*stack) != own);
    for stack in own.into_iter().chain(handlers) {
        let mut pages =
            account.cloudformation.list_stack_resources().stack_name(stack).into_paginator().send();
        while let Some(page) = pages.next().await {
            let page = match page {
                // The tag of a function that its stack has left behind.
                Err(error) if allow_list::is_gone(&error) => break,
                page => page.or_failure("cloudformation:ListStackResources", stack)?,
            };
            let mut ids = page
                .stack_resource_summaries()
                .iter()
                .filter(|it| it.resource_type() == Some("AWS::Lambda::EventInvokeConfig"))
                .filter_map(|it| it.physical_resource_id());
            if ids.any(|id| is_of(id, target)) {
                return Ok(Some(stack.to_owned()));
            }
        }
    }
    Ok(None)
}

/// Whether an `EventInvokeConfig` is the target's, by its physical id: `orders|live`.
fn is_of(id: &str, target: &Target) -> bool {
    id.replace('|', ":")
        .parse::<FunctionName>()
        .is_ok_and(|function| function.name == target.name && function.qualifier == target.qualifier)
}

#[cfg(test)]
mod tests {
    use crate::operate::attach::model::target;

    use super::*;

    #[test]
    fn settings_are_owned_by_function_and_qualifier() {
        let live = Target { qualifier: Some("live".into()), ..target() };
        for (id, of_latest, of_live) in [
            ("orders|$LATEST", true, false),
            ("orders:$LATEST", true, false),
            ("orders|live", false, true),
            ("arn:aws:lambda:eu-west-1:123456789012:function:orders|live", false, true),
            ("orders-eu|live", false, false),
            ("shop-OrdersEventInvokeConfig-1ABC", false, false),
        ] {
            assert_eq!((is_of(id, &target()), is_of(id, &live)), (of_latest, of_live), "{id}");
        }
    }
}
