use aws_sdk_kms::types::KeyManagerType;
use aws_sdk_sqs::types::QueueAttributeName;
use comeback_engine::Timestamp;

use crate::attach::facts::{Attachment, Handler, Place, invoke_policy_name, invoke_statements};
use crate::attach::leaving::{Leaving, Log, Waiting};
use crate::attach::losses::Losses;
use crate::attach::place::parameter;
use crate::attach::policy::Policy;
use crate::attach::{allow_list, kept};
use crate::status::Depth;
use crate::trace::line::HandlerLine;
use crate::trace::search::{LogEvent, Search};
use crate::{Account, Deployment, Failure, FunctionName, InvokeSettings, Target, Verdict, may};

/// How long an event may wait, in milliseconds: SQS's longest retention.
const RETENTION_MILLIS: u64 = 14 * 86_400_000;

impl Attachment {
    /// Reads what is there.
    ///
    /// # Errors
    ///
    /// The function is the retry handler itself, or a call does not work.
    pub async fn read(
        account: &Account,
        deployment: &Deployment,
        function: &FunctionName,
    ) -> Result<Self, Failure> {
        let target = Target::read(account, function).await?;
        if target.arn == deployment.handler_arn {
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
            queue_arn: queue.arn.clone(),
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
        let Some(stack) = parameter::find(account, name).await? else { return Ok(Self::Environment) };
        Ok(match parameter::value(&stack, parameter::PARAMETER) {
            Some(value) if stack.parent_id().is_none() => {
                Self::Parameter { stack: name.clone(), value: value.to_owned() }
            }
            _ => Self::Template { stack: name.clone() },
        })
    }
}

impl Leaving {
    /// Reads whether the events of a function have left the retry queue, as far as it matters. `progress` hears how many
    /// lines of the log were read.
    ///
    /// # Errors
    ///
    /// A call that does not work.
    pub async fn read(
        account: &Account,
        deployment: &Deployment,
        attachment: &Attachment,
        at_once: bool,
        now: Timestamp,
        progress: &dyn Fn(usize),
    ) -> Result<Self, Failure> {
        let target = &attachment.target;
        let sharing = match attachment.send_policy {
            true => sharing(account, attachment).await?,
            false => Vec::new(),
        };
        let leaving = Self {
            now,
            at_once,
            timeout: target.timeout,
            queue: Depth::read(account, &deployment.retry_queue).await?,
            is_consumed: deployment.mapping.as_ref().is_some_and(|mapping| mapping.state == "Enabled"),
            log: Log::Unread,
            sharing,
        };
        if !leaving.needs_log(kept::detached(&target.tags)) {
            return Ok(leaving);
        }
        if let Some(log) = Log::hidden(deployment.log_level.as_deref()) {
            return Ok(Self { log, ..leaving });
        }
        let since = Timestamp::from_millis(now.as_millis().saturating_sub(RETENTION_MILLIS));
        let search = Search { group: &deployment.log_group, term: &target.arn, since, stream: None };
        let mut log = Waiting::default();
        let of_target = |line: &HandlerLine| {
            line.target
                .strip_prefix(&*target.arn)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        let see = |event: LogEvent| {
            if let Some(line) = HandlerLine::read_any(&event.message).filter(of_target) {
                log.see(&line);
            }
        };
        let is_there = search.each(account, progress, see).await?;
        Ok(Self { log: if is_there { Log::Read(log) } else { Log::Missing }, ..leaving })
    }
}

/// The key of a queue that a customer manages. Whoever may use SQS may use the key that AWS manages for it.
async fn key_of(account: &Account, url: &str) -> Result<Option<String>, Failure> {
    let name = QueueAttributeName::KmsMasterKeyId;
    let call = account.sqs.get_queue_attributes().queue_url(url).attribute_names(name.clone());
    let answer =
        call.send().await.map_err(|error| Failure::of_call("sqs:GetQueueAttributes", url, &error))?;
    let key = answer.attributes().and_then(|attributes| attributes.get(&name));
    let Some(key) = key.filter(|key| !key.is_empty() && !key.ends_with("alias/aws/sqs")) else {
        return Ok(None);
    };
    let answer = account.kms.describe_key().key_id(key).send().await;
    let answer = answer.map_err(|error| Failure::of_call("kms:DescribeKey", key, &error))?;
    let key = answer.key_metadata().filter(|key| key.key_manager() != Some(&KeyManagerType::Aws));
    Ok(key.and_then(|key| key.arn()).map(ToOwned::to_owned))
}

/// An inline policy of a role; an empty one if it has none of that name.
pub(crate) async fn read_policy(account: &Account, role: &str, name: &str) -> Result<Policy, Failure> {
    let answer = account.iam.get_role_policy().role_name(role).policy_name(name).send().await;
    match answer {
        Ok(answer) => Policy::read(answer.policy_document()).map_err(|error| {
            Failure::CouldNot(format!("the policy {name} of role {role} cannot be read: {error}"))
        }),
        Err(error) if error.as_service_error().is_some_and(|error| error.is_no_such_entity_exception()) => {
            Ok(Policy::default())
        }
        Err(error) => Err(Failure::of_call("iam:GetRolePolicy", role, &error)),
    }
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
                Err(error) if parameter::is_gone(&error) => break,
                page => page
                    .map_err(|error| Failure::of_call("cloudformation:ListStackResources", stack, &error))?,
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

/// The other functions that fail to the retry queue by the same role.
async fn sharing(account: &Account, attachment: &Attachment) -> Result<Vec<String>, Failure> {
    let target = &attachment.target;
    let mut pages = account.lambda.list_functions().into_paginator().items().send();
    let mut sharing = Vec::new();
    while let Some(function) = pages.next().await {
        let function =
            function.map_err(|error| Failure::of_call("lambda:ListFunctions", "this region", &error))?;
        let name = function.function_name().unwrap_or_default();
        if function.role() != Some(&target.role_arn) || name == target.name {
            continue;
        }
        let settings = InvokeSettings::all(account, name).await?;
        if settings.values().any(|it| it.on_failure.as_deref() == Some(&attachment.queue_arn)) {
            sharing.push(name.to_owned());
        }
    }
    Ok(sharing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::tests::target;

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
