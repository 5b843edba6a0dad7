//! The permissions that the handler's role needs, and whether it has them according to IAM's policy simulator.

use std::collections::BTreeMap;

use comeback_engine::FunctionArn;
use futures_util::future::join_all;

use crate::account::Account;
use crate::deployment::Deployment;
use crate::doctor::facts::queues::QueueSettings;
use crate::doctor::judgement::CheckOutcome;
use crate::failure::{Failure, seen};
use crate::rights::{Rights, SEND, USE_KEY, ask, ask_of_keys};

/// A permission that the handler's role needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) check: &'static str,
    pub(crate) actions: &'static [&'static str],
    pub(crate) on: Resource,
    /// The outcome of the check if the permission is missing.
    pub(crate) without: CheckOutcome,
    /// The problem that a missing permission causes.
    pub(crate) means: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    RetryQueue,
    DeadLetterQueue,
    LogStreams,
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

/// The permissions that the handler needs, regardless of its allow-list.
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

/// The handler's permissions, by check number. If a check requires no permission, its list is empty.
pub(crate) type HandlerRights = BTreeMap<&'static str, Rights>;

/// A made-up log stream that stands for all streams of a log group in calls to IAM's policy simulator.
pub(crate) const SAMPLE_STREAM: &str = ":log-stream:comeback-doctor";

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
