//! Asks IAM's policy simulator which actions the roles may perform.

use std::collections::BTreeMap;

use comeback_engine::FunctionArn;
use futures_util::future::{join_all, try_join_all};

use crate::account::Account;
use crate::aws::Verdict;
use crate::deployment::Deployment;
use crate::doctor::facts::queues::QueueSettings;
use crate::doctor::judgement::seen;
use crate::doctor::needs::{Need, OF_HANDLER, Resource};
use crate::failure::Failure;

/// An action of a role on a resource, with the verdict of IAM's simulator.
#[derive(Clone, Debug)]
pub(crate) struct Right {
    pub(crate) role: String,
    pub(crate) action: &'static str,
    pub(crate) resource: String,
    pub(crate) verdict: Verdict,
}

pub(crate) type Rights = Result<Vec<Right>, Failure>;

/// The permissions of the handler's role, by check number. A check's list is empty if the handler does not need the
/// permission: it reads no pauses, or AWS manages the queues' keys.
pub(crate) type HandlerRights = BTreeMap<&'static str, Rights>;

/// The suffix of the ARN of a made-up log stream. Questions to IAM's simulator name this stream in place of all streams
/// in a log group. Lambda never creates a stream with this name.
pub(crate) const SAMPLE_STREAM: &str = ":log-stream:comeback-doctor";

/// Asks IAM's simulator about every permission that the handler's role needs.
pub(crate) async fn of_handler(
    account: &Account,
    deployment: &Deployment,
    queues: [&Result<QueueSettings, Failure>; 2],
) -> HandlerRights {
    let FunctionArn { partition, region, account: owner, .. } = &deployment.handler_arn;
    let arn = |service: &str, rest: &str| format!("arn:{partition}:{service}:{region}:{owner}:{rest}");
    let pauses = |name: &str| arn("ssm", &format!("parameter/{}", name.trim_start_matches('/')));
    let read = OF_HANDLER.iter().map(async |need| {
        let resource = match need.on {
            Resource::Queue => Some(deployment.retry_queue.arn.clone()),
            Resource::DeadLetterQueue => Some(deployment.dead_letter_queue.arn.clone()),
            Resource::LogStreams => {
                Some(arn("logs", &format!("log-group:{}{SAMPLE_STREAM}", deployment.log_group)))
            }
            Resource::Pauses => deployment.pauses().map(pauses),
            Resource::Keys => {
                return (need.check, ask_of_keys(account, &deployment.role_arn, need, queues).await);
            }
            Resource::Function => None,
        };
        (need.check, ask(account, &deployment.role_arn, need, resource.as_deref()).await)
    });
    join_all(read).await.into_iter().collect()
}

/// Asks IAM's simulator about permissions on the queues' customer-managed keys. Ignores keys that AWS manages, and keys
/// that do not exist.
pub(crate) async fn ask_of_keys(
    account: &Account,
    role_arn: &str,
    need: &Need,
    queues: impl IntoIterator<Item = &Result<QueueSettings, Failure>>,
) -> Rights {
    let mut keys = Vec::new();
    for queue in queues {
        keys.extend(seen(queue)?.key.clone()?.filter(|key| key.state.is_some()));
    }
    ask(account, role_arn, need, keys.iter().map(|key| &*key.arn)).await
}

/// Asks IAM's simulator about each action of `need` on each of the resources.
pub(crate) async fn ask(
    account: &Account,
    role_arn: &str,
    need: &Need,
    resources: impl IntoIterator<Item = &str>,
) -> Rights {
    let role = role_arn.rsplit('/').next().unwrap_or(role_arn);
    let actions = need.actions.iter();
    let asked = resources.into_iter().flat_map(|resource| actions.clone().map(move |it| (*it, resource)));
    try_join_all(asked.map(async |(action, resource)| {
        let verdict = account.aws.may(role_arn, action, resource).await?;
        Ok(Right { role: role.to_owned(), action, resource: resource.to_owned(), verdict })
    }))
    .await
}
