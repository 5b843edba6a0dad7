use futures_util::future::join_all;

use crate::doctor::diagnosis::seen;
use crate::doctor::facts::queue::QueueSettings;
use crate::{Account, Deployment, Failure, Verdict, may};

/// Something that a role must be allowed, and IAM's answer.
#[derive(Clone, Debug)]
pub(in crate::doctor) struct Right {
    pub(in crate::doctor) action: &'static str,
    pub(in crate::doctor) resource: String,
    pub(in crate::doctor) answer: Result<Verdict, Failure>,
}

/// What the handler's role must be allowed.
#[derive(Clone, Debug)]
pub(in crate::doctor) struct HandlerRights {
    pub(in crate::doctor) take: Vec<Right>,
    pub(in crate::doctor) send_again: Vec<Right>,
    pub(in crate::doctor) dead_letter: Vec<Right>,
    pub(in crate::doctor) log: Vec<Right>,
    pub(in crate::doctor) read_pauses: Vec<Right>,
    /// None if AWS manages the keys.
    pub(in crate::doctor) use_keys: Result<Vec<Right>, Failure>,
}

/// To receive from an encrypted queue, and to send to one.
const USE_KEY: [&str; 2] = ["kms:Decrypt", "kms:GenerateDataKey"];
const TAKE: [&str; 4] =
    ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"];
const SEND: [&str; 1] = ["sqs:SendMessage"];
const LOG: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];

impl HandlerRights {
    pub(super) async fn read(
        account: &Account,
        deployment: &Deployment,
        retry_queue: &Result<QueueSettings, Failure>,
        dead_letter_queue: &Result<QueueSettings, Failure>,
    ) -> Self {
        let role = &deployment.role_arn;
        let place = |service: &str| {
            let fields: Vec<&str> = deployment.handler_arn.split(':').collect();
            format!("arn:{}:{service}:{}:{}", fields[1], fields[3], fields[4])
        };
        let stream = format!("{}:log-group:{}:log-stream:any", place("logs"), deployment.log_group);
        let pauses = deployment
            .pauses()
            .map(|name| format!("{}:parameter/{}", place("ssm"), name.trim_start_matches('/')));
        let (retry, dead) = (&deployment.retry_queue.arn, &deployment.dead_letter_queue.arn);
        let (take, send_again, dead_letter, log, read_pauses, of_retries, of_dead) = tokio::join!(
            ask(account, role, &TAKE, retry),
            ask(account, role, &SEND, retry),
            ask(account, role, &SEND, dead),
            ask(account, role, &LOG, &stream),
            async {
                match &pauses {
                    Some(parameter) => ask(account, role, &["ssm:GetParameter"], parameter).await,
                    None => Vec::new(),
                }
            },
            ask_of_key(account, role, retry_queue),
            ask_of_key(account, role, dead_letter_queue),
        );
        let use_keys = of_retries.and_then(|of_retries| Ok([of_retries, of_dead?].concat()));
        Self { take, send_again, dead_letter, log, read_pauses, use_keys }
    }
}

/// Whether a function's role may send to the retry queue.
pub(super) async fn ask_to_send(account: &Account, role_arn: &str, queue_arn: &str) -> Vec<Right> {
    ask(account, role_arn, &SEND, queue_arn).await
}

/// Whether the handler's role may invoke a function, by its ARN and by the one that its records name.
pub(super) async fn ask_to_invoke(
    account: &Account,
    role_arn: &str,
    arn: &str,
    invoked_arn: &str,
) -> Vec<Right> {
    let (plain, qualified) = tokio::join!(
        ask(account, role_arn, &["lambda:InvokeFunction"], arn),
        ask(account, role_arn, &["lambda:InvokeFunction"], invoked_arn),
    );
    [plain, qualified].concat()
}

/// Whether a role may use the key of a queue; nothing is asked if AWS manages it.
pub(super) async fn ask_of_key(
    account: &Account,
    role_arn: &str,
    queue: &Result<QueueSettings, Failure>,
) -> Result<Vec<Right>, Failure> {
    match seen(queue)?.key.clone()? {
        Some(key) => Ok(ask(account, role_arn, &USE_KEY, &key).await),
        None => Ok(Vec::new()),
    }
}

async fn ask(account: &Account, role_arn: &str, actions: &[&'static str], resource: &str) -> Vec<Right> {
    join_all(actions.iter().map(async |action| Right {
        action,
        resource: resource.to_owned(),
        answer: may(account, role_arn, action, resource).await,
    }))
    .await
}
