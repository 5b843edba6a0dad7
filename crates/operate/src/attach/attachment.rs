//! The facts needed to plan how to attach or detach a function.

use std::collections::{BTreeMap, BTreeSet};

use comeback_engine::FunctionArn;

use crate::account::Account;
use crate::alarms::Losses;
use crate::attach::grant::Grant;
use crate::aws::{InvokeSettings, Stack};
use crate::deployment::queue::{CustomerKey, attributes};
use crate::deployment::{Deployment, DeploymentName};
use crate::failure::{Failure, seen};
use crate::function::{FunctionName, Target};
use crate::handler_setting::{TARGET_FUNCTIONS, TARGET_FUNCTIONS_PARAMETER, list_with, parameter_value};
use crate::rights::{INVOKE, Rights, SEND, USE_KEY, ask, ask_of_keys};

/// Facts about one function. `detach` uses none of `send`, `use_key` and `invoke`, so it works even if they cannot be
/// read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) target: Target,
    /// True if the function was deleted or never existed.
    pub(crate) is_gone: bool,
    pub(crate) deployment: Deployment,
    /// The other deployments that retry the function's failed events, by the function's qualifier. The key is `None`
    /// for the unqualified function.
    pub(crate) elsewhere: BTreeMap<Option<String>, DeploymentName>,
    /// The customer-managed KMS key of the retry queue; `None` if AWS manages the key.
    pub(crate) key: Result<Option<CustomerKey>, Failure>,
    /// The permissions that the function's role needs to send to the retry queue.
    pub(crate) send: Rights,
    /// The permissions that the function's role needs to use the retry queue's key; empty if AWS manages the key.
    pub(crate) use_key: Rights,
    /// True if `attach` has granted the function's role permission to send to the retry queue.
    pub(crate) send_policy: bool,
    /// The permissions that the handler's role needs to invoke the function.
    pub(crate) invoke: Rights,
    /// True if `attach` has granted the handler's role permission to invoke the function. `attach` does this only if
    /// no stack owns the handler.
    pub(crate) invoke_policy: bool,
    /// The total size, in characters, of the handler role's inline policies once `attach` has added a permission to
    /// invoke the function. It is 0 if `attach` does not add that permission.
    pub(crate) invoke_characters: usize,
    /// The stack that owns the function's settings for asynchronous invocations.
    pub(crate) owner: Option<String>,
    pub(crate) losses: Losses,
    pub(crate) list_owner: ListOwner,
}

/// Where the allow-list, `TARGET_FUNCTIONS`, is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListOwner {
    /// A stack's parameter `TargetFunctions`. It sets the allow-list and the handler's permission to invoke functions.
    Parameter { stack: String, value: String },
    /// A stack's template, if the stack has no parameter `TargetFunctions`.
    Template { stack: String },
    /// The environment variables of a handler that no stack owns.
    Environment,
}

impl Attachment {
    /// Reads how a function is attached to a deployment, or what a deleted function left in the deployment.
    ///
    /// Fails if the function is the handler itself, or is outside the deployment's account or region.
    pub(crate) async fn read(
        account: &Account,
        deployment: Deployment,
        function: &FunctionName,
    ) -> Result<Self, Failure> {
        is_beside(&deployment, function)?;
        let found = Target::find(account, function).await?;
        let is_gone = found.is_none();
        let target = found.unwrap_or_else(|| gone(&deployment.arn_of(function)));
        if target.arn == deployment.handler_arn.to_string() {
            return Err(Failure::refused(format!(
                "{function} is the retry handler itself, which is never retried"
            )));
        }
        let (mut key, mut owner, mut elsewhere) = (Ok(None), None, BTreeMap::new());
        if !is_gone {
            let [id] = attributes(account, &deployment.retry_queue.url, ["KmsMasterKeyId"]).await?;
            elsewhere = self::elsewhere(account, &deployment, &target).await?;
            key = CustomerKey::read(account, id.as_deref()).await;
            owner = self::owner(account, &deployment, &elsewhere, &target).await?;
        }
        let losses = Losses::read(account, &deployment, &target.name).await?;
        let list_owner = ListOwner::of(&deployment, deployment.read_stack(account).await?.as_ref());
        let mut attachment =
            Self { is_gone, key, owner, elsewhere, losses, ..Self::unread(deployment, target, list_owner) };
        if !is_gone {
            let role_arn = Ok(attachment.target.role_arn.clone());
            attachment.ask(account, &role_arn).await;
            attachment.send_policy = attachment.sending().is_given(account).await?;
        }
        if attachment.list_owner == ListOwner::Environment {
            attachment.invoke_policy = attachment.invoking().is_given(account).await?;
            if matches!(attachment.allow_invoking(), Ok(Some(_))) {
                attachment.invoke_characters = attachment.invoking().characters_after(account).await?;
            }
        }
        Ok(attachment)
    }

    /// Returns the attachment with the functions in `listed` added to the allow-list.
    pub(crate) fn beside(mut self, listed: &[String]) -> Self {
        for arn in listed {
            let list = list_with(self.deployment.allow_list(), arn);
            self.deployment.variables.insert(TARGET_FUNCTIONS.into(), list);
            if let ListOwner::Parameter { value, .. } = &mut self.list_owner {
                *value = list_with(value, arn);
            }
        }
        self
    }

    /// An attachment with default values for all facts that are read from AWS.
    pub(crate) fn unread(deployment: Deployment, target: Target, list_owner: ListOwner) -> Self {
        Self {
            is_gone: false,
            elsewhere: BTreeMap::new(),
            key: Ok(None),
            send: Ok(Vec::new()),
            use_key: Ok(Vec::new()),
            send_policy: false,
            invoke: Ok(Vec::new()),
            invoke_policy: false,
            invoke_characters: 0,
            owner: None,
            losses: Losses::default(),
            list_owner,
            deployment,
            target,
        }
    }

    /// Asks IAM's simulator about the permissions of the function's role, `role_arn`, and of the handler's role.
    pub(crate) async fn ask(&mut self, account: &Account, role_arn: &Result<String, Failure>) {
        let (queue, arn) = (&*self.deployment.retry_queue.arn, self.target.invoked_arn());
        (self.send, self.use_key, self.invoke) = tokio::join!(
            async { ask(account, seen(role_arn)?, SEND, [queue]).await },
            async { ask_of_keys(account, seen(role_arn)?, [self.key.clone()]).await },
            ask(account, &self.deployment.role_arn, INVOKE, [&*arn]),
        );
    }

    /// The function's attached qualifiers; `None` stands for the unqualified function.
    pub(crate) fn attached(&self) -> impl Iterator<Item = Option<&str>> {
        let goes_there =
            |it: &InvokeSettings| it.on_failure.as_ref() == Some(&self.deployment.retry_queue.arn);
        let all = self.target.invoke_settings.iter().filter(move |(_, settings)| goes_there(settings));
        all.map(|(qualifier, _)| qualifier.as_deref())
    }

    /// The function's attached qualifiers, except the qualifier that the operator named.
    pub(crate) fn other_qualifiers(&self) -> impl Iterator<Item = Option<&str>> {
        self.attached().filter(|it| *it != self.target.qualifier.as_deref())
    }

    /// Returns true if the function is attached with the operator's qualifier or, if the operator named none, without a
    /// qualifier.
    pub(crate) fn is_attached(&self) -> bool {
        self.attached().any(|it| it == self.target.qualifier.as_deref())
    }

    /// The other deployment, if any, that retries the failed events of the function, alias or version that the
    /// operator named.
    pub(crate) fn other(&self) -> Option<&DeploymentName> {
        self.elsewhere.get(&self.target.qualifier)
    }

    /// The function's name with its qualifier, as an operator would write it.
    pub(crate) fn name(&self) -> String {
        self.target.named(self.target.qualifier.as_deref())
    }

    /// The message saying that Lambda has no such function, alias or version.
    pub(crate) fn missing(&self) -> String {
        if self.is_gone {
            return format!("Lambda has no function {}", self.target.name);
        }
        format!("Lambda has no alias or version {}", self.name())
    }

    pub(crate) fn sending(&self) -> Grant {
        let queue = &self.deployment.retry_queue;
        let key = self.key.iter().flatten();
        let key = key.map(|key| (USE_KEY.to_vec(), vec![key.arn.clone()]));
        let send = (SEND.to_vec(), vec![queue.arn.clone()]);
        let (role, policy) = (self.target.role().to_owned(), format!("comeback-{}", queue.name()));
        Grant { role, policy, statements: std::iter::once(send).chain(key).collect() }
    }

    pub(crate) fn invoking(&self) -> Grant {
        let Target { name, arn, .. } = &self.target;
        let (role, policy) = (self.deployment.role().to_owned(), format!("invoke-{name}"));
        let statements = vec![(INVOKE.to_vec(), vec![arn.clone(), format!("{arn}:*")])];
        Grant { role, policy, statements }
    }
}

impl ListOwner {
    /// Determines where a deployment's allow-list is set. Only the parent stack can set a nested stack's parameters.
    pub(crate) fn of(deployment: &Deployment, stack: Option<&Stack>) -> Self {
        let (Some(name), Some(stack)) = (&deployment.stack, stack) else { return Self::Environment };
        match parameter_value(stack, TARGET_FUNCTIONS_PARAMETER).filter(|_| stack.parent.is_none()) {
            Some(value) => Self::Parameter { stack: name.clone(), value: value.to_owned() },
            None => Self::Template { stack: name.clone() },
        }
    }
}

/// Fails if `function` is the ARN of a function outside the deployment's account or region.
fn is_beside(deployment: &Deployment, function: &FunctionName) -> Result<(), Failure> {
    let Some(place) = &function.place else { return Ok(()) };
    let handler = &deployment.handler_arn;
    let what = if place.region != handler.region {
        format!("in region {}, but the deployment is in {}", place.region, handler.region)
    } else if place.account != handler.account {
        format!("in account {}, but the deployment is in {}", place.account, handler.account)
    } else {
        return Ok(());
    };
    Err(Failure::refused(format!(
        "{function} is {what}; a deployment retries only functions in its own account and region: use one \
         there, with --region or --profile"
    )))
}

/// Builds the target for a deleted function. Only the function's ARN is known.
pub(crate) fn gone(arn: &FunctionArn) -> Target {
    Target {
        name: arn.name.clone(),
        qualifier: arn.qualifier.clone(),
        is_qualifier_gone: arn.qualifier.is_some(),
        arn: arn.unqualified().to_string(),
        ..Target::default()
    }
}

async fn elsewhere(
    account: &Account,
    deployment: &Deployment,
    target: &Target,
) -> Result<BTreeMap<Option<String>, DeploymentName>, Failure> {
    let mut found = BTreeMap::new();
    for (qualifier, settings) in &target.invoke_settings {
        if let Some(other) = other_than(account, deployment, settings).await? {
            found.insert(qualifier.clone(), other);
        }
    }
    Ok(found)
}

/// Finds another deployment, not `deployment`, that receives the failed events of a function with these settings.
pub(crate) async fn other_than(
    account: &Account,
    deployment: &Deployment,
    settings: &InvokeSettings,
) -> Result<Option<DeploymentName>, Failure> {
    match settings.on_failure.as_deref().filter(|arn| *arn != deployment.retry_queue.arn) {
        Some(queue) => DeploymentName::of_retry_queue(account, queue).await,
        None => Ok(None),
    }
}

/// Finds the stack that owns the target's settings for asynchronous invocations.
///
/// If a CDK app imported the function to attach it, the owner is the stack of a Comeback deployment.
async fn owner(
    account: &Account,
    deployment: &Deployment,
    elsewhere: &BTreeMap<Option<String>, DeploymentName>,
    target: &Target,
) -> Result<Option<String>, Failure> {
    let others = elsewhere.values().filter_map(|other| match other {
        DeploymentName::Stack(stack) => Some(&**stack),
        DeploymentName::Handler(_) => None,
    });
    let stacks: BTreeSet<&str> =
        target.stack().into_iter().chain(deployment.stack.as_deref()).chain(others).collect();
    for stack in stacks {
        // The stack may not exist, because a function keeps its stack's tag after the stack is deleted.
        let resources = account.aws.stack_resources(stack, stack).await?;
        let is_owned = resources.into_iter().flatten().any(|it| {
            it.kind == "AWS::Lambda::EventInvokeConfig" && it.physical_id.is_some_and(|id| is_of(&id, target))
        });
        if is_owned {
            return Ok(Some(stack.to_owned()));
        }
    }
    Ok(None)
}

/// Returns true if the physical id of an `EventInvokeConfig`, such as `orders|live`, names the target.
fn is_of(id: &str, target: &Target) -> bool {
    id.replace('|', ":")
        .parse::<FunctionName>()
        .is_ok_and(|function| function.name == target.name && function.qualifier == target.qualifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_elsewhere_is_named_with_its_place() {
        let refused = |region: &str, account: &str| {
            let arn = format!("arn:aws:lambda:{region}:{account}:function:orders");
            is_beside(&Deployment::sample(), &arn.parse().unwrap()).err().map(|it| it.to_string())
        };
        assert_eq!(refused("eu-west-1", "123456789012"), None);
        let region = refused("eu-west-2", "123456789012").unwrap();
        assert!(
            region.starts_with("orders is in region eu-west-2, but the deployment is in eu-west-1; "),
            "{region}"
        );
        let account = refused("eu-west-1", "999999999999").unwrap();
        assert!(
            account.starts_with("orders is in account 999999999999, but the deployment is in 123"),
            "{account}"
        );
    }

    #[test]
    fn settings_are_owned_by_function_and_qualifier() {
        let live = Target { qualifier: Some("live".into()), ..Target::sample() };
        for (id, of_latest, of_live) in [
            ("orders|$LATEST", true, false),
            ("orders:$LATEST", true, false),
            ("orders|live", false, true),
            ("arn:aws:lambda:eu-west-1:123456789012:function:orders|live", false, true),
            ("orders-eu|live", false, false),
            ("shop-OrdersEventInvokeConfig-1ABC", false, false),
        ] {
            assert_eq!((is_of(id, &Target::sample()), is_of(id, &live)), (of_latest, of_live), "{id}");
        }
    }
}
