//! The queues' attributes.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::Value;

use crate::account::{Account, CustomerKey, Failure, Or as _};
use crate::operate::deployment::queue::Queue;

#[derive(Clone, Debug)]
pub(crate) struct QueueSettings {
    pub(crate) visibility: Duration,
    pub(crate) retention: Duration,
    /// `MaximumMessageSize`, in bytes.
    pub(crate) largest_message: usize,
    pub(crate) redrive: Option<Redrive>,
    /// The key that encrypts it, if it is not one that AWS manages: using that takes no permission.
    pub(crate) key: Result<Option<CustomerKey>, Failure>,
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
        let key = CustomerKey::read(account, attributes.get(&QueueAttributeName::KmsMasterKeyId)).await;
        Self::of(&attributes, key).ok_or_else(|| {
            let what = "visibility timeout, retention or message size";
            Failure::CouldNot(format!("SQS returned no {what} for {}", queue.url))
        })
    }

    fn of(
        attributes: &HashMap<QueueAttributeName, String>,
        key: Result<Option<CustomerKey>, Failure>,
    ) -> Option<Self> {
        let seconds = |name: QueueAttributeName| attributes.get(&name)?.parse().ok().map(Duration::from_secs);
        let json = |name: QueueAttributeName| serde_json::from_str::<Value>(attributes.get(&name)?).ok();
        Some(Self {
            visibility: seconds(QueueAttributeName::VisibilityTimeout)?,
            retention: seconds(QueueAttributeName::MessageRetentionPeriod)?,
            largest_message: attributes.get(&QueueAttributeName::MaximumMessageSize)?.parse().ok()?,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(extra: &[(QueueAttributeName, Value)]) -> QueueSettings {
        let mut attributes = HashMap::from([
            (QueueAttributeName::VisibilityTimeout, "1230".to_owned()),
            (QueueAttributeName::MessageRetentionPeriod, "345600".to_owned()),
            (QueueAttributeName::MaximumMessageSize, "262144".to_owned()),
        ]);
        attributes.extend(extra.iter().map(|(name, value)| (name.clone(), value.to_string())));
        QueueSettings::of(&attributes, Ok(None)).unwrap()
    }

    #[test]
    fn attributes_are_read() {
        let plain = read(&[]);
        assert_eq!((plain.visibility.as_secs(), plain.retention.as_secs()), (1_230, 345_600));
        assert_eq!(plain.largest_message, 262_144);
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
