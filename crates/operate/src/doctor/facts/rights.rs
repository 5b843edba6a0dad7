//! The permissions that the handler's role needs, and the verdicts of IAM's policy simulator on them.

use std::collections::BTreeMap;

use comeback_engine::FunctionArn;
use futures_util::future::join_all;

use crate::account::Account;
use crate::deployment::Deployment;
use crate::doctor::facts::queues::QueueSettings;
use crate::doctor::judgement::CheckOutcome;
use crate::failure::{Failure, seen};
use crate::rights::{Rights, SEND, USE_KEY, ask, ask_of_keys};

/// A permission that the handler's role needs, and the consequence if the permission is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// The number of the check that judges the permission.
    pub(crate) check: &'static str,
    /// The IAM actions that the role must be allowed to perform.
    pub(crate) actions: &'static [&'static str],
    /// The resource on which the role performs the actions.
    pub(crate) on: Resource,
    /// The outcome of the check if the permission is missing.
    pub(crate) without: CheckOutcome,
    /// The consequence for events if the permission is missing.
    pub(crate) means: &'static str,
}

/// A resource on which the handler's role needs a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    RetryQueue,
    DeadLetterQueue,
    /// The streams of the handler's log group.
    LogStreams,
    /// The SSM parameter that holds the pauses.
    Pauses,
    /// The customer-managed KMS keys that encrypt the queues.
    Keys,
}

const TAKE: &[&str] =
    &["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"];

const fn need(
    check: &'static str,
    actions: &'static [&'static str],
    on: Resource,
    without: CheckOutcome,
    means: &'static str,
) -> Need {
    Need { check, actions, on, without, means }
}

/// The permissions that the handler's role needs, regardless of which functions the handler retries.
#[rustfmt::skip]
pub(crate) const OF_HANDLER: [Need; 6] = [
    need("CB030", TAKE, Resource::RetryQueue, CheckOutcome::Broken,
        "nothing is retried: the handler cannot receive, hide or delete messages"),
    need("CB031", SEND, Resource::RetryQueue, CheckOutcome::Warning,
        "past HIDE_UP_TO the handler hides every message instead, and SQS has room for only 120,000"),
    need("CB032", SEND, Resource::DeadLetterQueue, CheckOutcome::Broken,
        "dead-letters stay in the retry queue, and are deleted after 14 days"),
    need("CB033", &["logs:CreateLogStream", "logs:PutLogEvents"], Resource::LogStreams, CheckOutcome::Warning,
        "nobody sees what the handler decides, and no event can be traced"),
    need("CB034", &["ssm:GetParameter"], Resource::Pauses, CheckOutcome::Broken,
        "the handler does not know what is paused, so it holds every event that is due"),
    need("CB035", USE_KEY, Resource::Keys, CheckOutcome::Broken,
        "the handler can neither receive nor send messages that the key encrypts"),
];

/// The permissions of the handler's role, by check number. A check's list is empty if the handler does not need the
/// permission, because it reads no pauses or because AWS manages the queues' keys.
pub(crate) type HandlerRights = BTreeMap<&'static str, Rights>;

/// The suffix of the ARN of a made-up log stream. Calls to IAM's simulator name this stream in place of all streams in
/// a log group. Lambda never creates a stream with this name.
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
            Resource::RetryQueue => Some(deployment.retry_queue.arn.clone()),
            Resource::DeadLetterQueue => Some(deployment.dead_letter_queue.arn.clone()),
            Resource::LogStreams => {
                Some(arn("logs", &format!("log-group:{}{SAMPLE_STREAM}", deployment.log_group)))
            }
            Resource::Pauses => deployment.pauses().map(pauses),
            Resource::Keys => {
                let keys = queues.map(|queue| seen(queue)?.key.clone());
                return (need.check, ask_of_keys(account, &deployment.role_arn, keys).await);
            }
        };
        (need.check, ask(account, &deployment.role_arn, need.actions, resource.as_deref()).await)
    });
    join_all(read).await.into_iter().collect()
}
