//! What roles may do, by IAM's simulator.

use comeback_engine::FunctionArn;
use futures_util::future::try_join_all;

use crate::account::{Account, Failure, Verdict, may};
use crate::operate::deployment::Deployment;
use crate::operate::doctor::diagnosis::seen;
use crate::operate::doctor::facts::queues::QueueSettings;

/// Something that a role must be allowed, and IAM's verdict.
#[derive(Clone, Debug)]
pub(crate) struct Right {
    pub(crate) role: String,
    pub(crate) action: &'static str,
    pub(crate) resource: String,
    pub(crate) verdict: Verdict,
}

pub(crate) type Rights = Result<Vec<Right>, Failure>;

#[derive(Clone, Debug)]
pub(crate) struct HandlerRights {
    pub(crate) take: Rights,
    pub(crate) send_again: Rights,
    pub(crate) dead_letter: Rights,
    pub(crate) log: Rights,
    /// None if the handler reads no pauses.
    pub(crate) read_pauses: Rights,
    /// None if AWS manages the keys.
    pub(crate) use_keys: Rights,
}

/// To receive from an encrypted queue, and to send to one.
const USE_KEY: [&str; 2] = ["kms:Decrypt", "kms:GenerateDataKey"];
const TAKE: [&str; 4] =
    ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"];
pub(crate) const SEND: [&str; 1] = ["sqs:SendMessage"];
/// The log stream that IAM's simulator is asked about. Lambda never creates it.
pub(crate) const SAMPLE_STREAM: &str = ":log-stream:comeback-doctor";
const LOG: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];

impl HandlerRights {
    pub(crate) async fn read(
        account: &Account,
        deployment: &Deployment,
        retry_queue: &Result<QueueSettings, Failure>,
        dead_letter_queue: &Result<QueueSettings, Failure>,
    ) -> Self {
        let role = &deployment.role_arn;
        let FunctionArn { partition, region, account: owner, .. } = &deployment.handler_arn;
        let arn = |service: &str, rest: &str| format!("arn:{partition}:{service}:{region}:{owner}:{rest}");
        let stream = arn("logs", &format!("log-group:{}{SAMPLE_STREAM}", deployment.log_group));
        let pauses =
            deployment.pauses().map(|it| arn("ssm", &format!("parameter/{}", it.trim_start_matches('/'))));
        let (retry, dead) = (&*deployment.retry_queue.arn, &*deployment.dead_letter_queue.arn);
        let (take, send_again, dead_letter, log, read_pauses, use_keys) = tokio::join!(
            ask(account, role, &TAKE, [retry]),
            ask(account, role, &SEND, [retry]),
            ask(account, role, &SEND, [dead]),
            ask(account, role, &LOG, [&*stream]),
            ask(account, role, &["ssm:GetParameter"], pauses.as_deref()),
            ask_of_keys(account, role, [retry_queue, dead_letter_queue]),
        );
        Self { take, send_again, dead_letter, log, read_pauses, use_keys }
    }
}

/// Whether a role may use the keys of queues; nothing is asked of a key that AWS manages, or that does not exist.
pub(crate) async fn ask_of_keys(
    account: &Account,
    role_arn: &str,
    queues: impl IntoIterator<Item = &Result<QueueSettings, Failure>>,
) -> Rights {
    let mut keys = Vec::new();
    for queue in queues {
        keys.extend(seen(queue)?.key.clone()?.filter(|key| key.state.is_some()));
    }
    ask(account, role_arn, &USE_KEY, keys.iter().map(|key| &*key.arn)).await
}

/// Whether a role may do each of these actions to each resource.
pub(crate) async fn ask(
    account: &Account,
    role_arn: &str,
    actions: &[&'static str],
    resources: impl IntoIterator<Item = &str>,
) -> Rights {
    let role = role_arn.rsplit('/').next().unwrap_or(role_arn);
    let asked = resources.into_iter().flat_map(|resource| actions.iter().map(move |it| (*it, resource)));
    try_join_all(asked.map(async |(action, resource)| {
        let verdict = may(account, role_arn, action, resource).await?;
        Ok(Right { role: role.to_owned(), action, resource: resource.to_owned(), verdict })
    }))
    .await
}
