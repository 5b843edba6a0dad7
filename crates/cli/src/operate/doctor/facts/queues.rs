//! The queues' attributes, and what roles may do with them.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName;
use comeback_engine::FunctionArn;
use futures_util::future::join_all;
use serde_json::Value;

use crate::operate::account::{Account, Failure, Or as _, Verdict, customer_key, may};
use crate::operate::deployment::{Deployment, Queue};
use crate::operate::doctor::diagnosis::seen;

#[derive(Clone, Debug)]
pub(crate) struct QueueSettings {
    pub(crate) visibility: Duration,
    pub(crate) retention: Duration,
    pub(crate) redrive: Option<Redrive>,
    /// The ARN of the key that encrypts it, if it is not one that AWS manages: using that takes no permission.
    pub(crate) key: Result<Option<String>, Failure>,
    /// Whether the queue's own policy allows anything at all: then a role may send by it.
    pub(crate) allows_by_itself: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redrive {
    pub(crate) target_arn: String,
    pub(crate) max_receive_count: u64,
}

impl QueueSettings {
    pub(crate) async fn read(account: &Account, queue: &Queue) -> Result<Self, Failure> {
        let call =
            account.sqs.get_queue_attributes().queue_url(&queue.url).attribute_names(QueueAttributeName::All);
        let answer = call.send().await.or_failure("sqs:GetQueueAttributes", &queue.url)?;
        let attributes = answer.attributes().cloned().unwrap_or_default();
        let key = match attributes.get(&QueueAttributeName::KmsMasterKeyId) {
            Some(id) if !id.is_empty() => customer_key(account, id).await,
            _ => Ok(None),
        };
        Self::of(&attributes, key).ok_or_else(|| {
            Failure::CouldNot(format!("SQS gave no visibility timeout or retention of {}", queue.url))
        })
    }

    fn of(
        attributes: &HashMap<QueueAttributeName, String>,
        key: Result<Option<String>, Failure>,
    ) -> Option<Self> {
        let seconds = |name: QueueAttributeName| attributes.get(&name)?.parse().ok().map(Duration::from_secs);
        let json = |name: QueueAttributeName| serde_json::from_str::<Value>(attributes.get(&name)?).ok();
        Some(Self {
            visibility: seconds(QueueAttributeName::VisibilityTimeout)?,
            retention: seconds(QueueAttributeName::MessageRetentionPeriod)?,
            redrive: json(QueueAttributeName::RedrivePolicy).as_ref().and_then(Redrive::of),
            key,
            allows_by_itself: json(QueueAttributeName::Policy).as_ref().is_some_and(allows),
        })
    }
}

impl Redrive {
    fn of(policy: &Value) -> Option<Self> {
        let count = &policy["maxReceiveCount"];
        // SQS takes the count as a number and as a string, and gives it back as it was.
        let max_receive_count = count.as_u64().or_else(|| count.as_str()?.parse().ok())?;
        Some(Self { target_arn: policy["deadLetterTargetArn"].as_str()?.to_owned(), max_receive_count })
    }
}

fn allows(policy: &Value) -> bool {
    let is_allow = |statement: &Value| statement["Effect"] == "Allow";
    match &policy["Statement"] {
        Value::Array(statements) => statements.iter().any(is_allow),
        statement => is_allow(statement),
    }
}

/// Something that a role must be allowed, and IAM's answer.
#[derive(Clone, Debug)]
pub(crate) struct Right {
    pub(crate) action: &'static str,
    pub(crate) resource: String,
    pub(crate) answer: Result<Verdict, Failure>,
}

#[derive(Clone, Debug)]
pub(crate) struct HandlerRights {
    pub(crate) take: Vec<Right>,
    pub(crate) send_again: Vec<Right>,
    pub(crate) dead_letter: Vec<Right>,
    pub(crate) log: Vec<Right>,
    pub(crate) read_pauses: Vec<Right>,
    /// None if AWS manages the keys.
    pub(crate) use_keys: Result<Vec<Right>, Failure>,
}

/// To receive from an encrypted queue, and to send to one.
const USE_KEY: [&str; 2] = ["kms:Decrypt", "kms:GenerateDataKey"];
const TAKE: [&str; 4] =
    ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"];
const SEND: [&str; 1] = ["sqs:SendMessage"];
const LOG: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];

impl HandlerRights {
    pub(crate) async fn read(
        account: &Account,
        deployment: &Deployment,
        retry_queue: &Result<QueueSettings, Failure>,
        dead_letter_queue: &Result<QueueSettings, Failure>,
    ) -> Self {
        let role = &deployment.role_arn;
        let place = |service: &str| {
            let FunctionArn { partition, region, account, .. } = &deployment.handler_arn;
            format!("arn:{partition}:{service}:{region}:{account}")
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
pub(crate) async fn ask_to_send(account: &Account, role_arn: &str, queue_arn: &str) -> Vec<Right> {
    ask(account, role_arn, &SEND, queue_arn).await
}

/// Whether the handler's role may invoke a function, by its ARN and by the one that its records name.
pub(crate) async fn ask_to_invoke(
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
pub(crate) async fn ask_of_key(
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(extra: &[(QueueAttributeName, Value)]) -> QueueSettings {
        let mut attributes = HashMap::from([
            (QueueAttributeName::VisibilityTimeout, "1230".to_owned()),
            (QueueAttributeName::MessageRetentionPeriod, "345600".to_owned()),
        ]);
        attributes.extend(extra.iter().map(|(name, value)| (name.clone(), value.to_string())));
        QueueSettings::of(&attributes, Ok(None)).unwrap()
    }

    #[test]
    fn attributes_are_read() {
        let plain = read(&[]);
        assert_eq!((plain.visibility.as_secs(), plain.retention.as_secs()), (1_230, 345_600));
        assert_eq!((plain.redrive, plain.allows_by_itself), (None, false));
        for count in [json!(7), json!("7")] {
            let policy = json!({"deadLetterTargetArn": "arn:dead", "maxReceiveCount": count});
            let redrive = read(&[(QueueAttributeName::RedrivePolicy, policy)]).redrive;
            assert_eq!(redrive, Some(Redrive { target_arn: "arn:dead".into(), max_receive_count: 7 }));
        }
        assert!(QueueSettings::of(&HashMap::new(), Ok(None)).is_none());
    }

    #[test]
    fn a_policy_that_only_denies_allows_nothing() {
        let with = |statement: Value| {
            read(&[(QueueAttributeName::Policy, json!({"Statement": statement}))]).allows_by_itself
        };
        assert!(!with(json!([{"Effect": "Deny"}])));
        assert!(with(json!([{"Effect": "Deny"}, {"Effect": "Allow"}])));
        assert!(with(json!({"Effect": "Allow"})));
    }
}
