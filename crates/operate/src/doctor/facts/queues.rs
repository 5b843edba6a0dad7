//! Reads the attributes of a queue.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::account::Account;
use crate::deployment::queue::CustomerKey;
use crate::deployment::queue::Queue;
use crate::failure::Failure;

#[derive(Clone, Debug)]
pub(crate) struct QueueSettings {
    pub(crate) visibility: Duration,
    pub(crate) retention: Duration,
    /// `MaximumMessageSize`, in bytes.
    pub(crate) largest_message: usize,
    pub(crate) redrive: Option<RedrivePolicy>,
    /// The customer-managed key that encrypts the queue, or `None` if AWS manages the key.
    pub(crate) key: Result<Option<CustomerKey>, Failure>,
    /// True if the queue's own policy has an Allow statement. It may allow a role to send messages.
    pub(crate) allows_by_itself: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedrivePolicy {
    pub(crate) target_arn: String,
    pub(crate) max_receive_count: u64,
}

impl QueueSettings {
    pub(crate) async fn read(account: &Account, queue: &Queue) -> Result<Self, Failure> {
        let url = &queue.url;
        let attributes = account.aws.queue_attributes(url, &[]).await?;
        let attributes =
            attributes.ok_or_else(|| Failure::could_not(format!("queue {url} does not exist")))?;
        let key = CustomerKey::read(account, attributes.get("KmsMasterKeyId").map(String::as_str)).await;
        Self::of(&attributes, key).ok_or_else(|| {
            let what = "visibility timeout, retention or message size";
            Failure::could_not(format!("SQS returned no {what} for {}", queue.url))
        })
    }

    fn of(attributes: &BTreeMap<String, String>, key: Result<Option<CustomerKey>, Failure>) -> Option<Self> {
        let seconds = |name: &str| attributes.get(name)?.parse().ok().map(Duration::from_secs);
        let json = |name: &str| serde_json::from_str::<Value>(attributes.get(name)?).ok();
        Some(Self {
            visibility: seconds("VisibilityTimeout")?,
            retention: seconds("MessageRetentionPeriod")?,
            largest_message: attributes.get("MaximumMessageSize")?.parse().ok()?,
            redrive: json("RedrivePolicy").as_ref().and_then(RedrivePolicy::of),
            key,
            allows_by_itself: json("Policy").as_ref().is_some_and(allows),
        })
    }
}

impl RedrivePolicy {
    fn of(policy: &Value) -> Option<Self> {
        let count = &policy["maxReceiveCount"];
        // SQS returns the count as it was set: as a number or as a string.
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

    fn read(extra: &[(&str, Value)]) -> QueueSettings {
        let attributes = BTreeMap::from([
            ("VisibilityTimeout", "1230"),
            ("MessageRetentionPeriod", "345600"),
            ("MaximumMessageSize", "262144"),
        ]);
        let attributes =
            attributes.into_iter().map(|(name, value): (&str, &str)| (name.to_owned(), value.to_owned()));
        let extra = extra.iter().map(|(name, value)| ((*name).to_owned(), value.to_string()));
        let attributes = attributes.chain(extra).collect();
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
            let redrive = read(&[("RedrivePolicy", policy)]).redrive;
            assert_eq!(redrive, Some(RedrivePolicy { target_arn: "arn:dead".into(), max_receive_count: 7 }));
        }
        assert!(QueueSettings::of(&BTreeMap::new(), Ok(None)).is_none());
    }

    #[test]
    fn a_policy_that_only_denies_allows_nothing() {
        let with = |statement: Value| read(&[("Policy", json!({"Statement": statement}))]).allows_by_itself;
        assert!(!with(json!([{"Effect": "Deny"}])));
        assert!(with(json!([{"Effect": "Deny"}, {"Effect": "Allow"}])));
        assert!(with(json!({"Effect": "Allow"})));
    }
}
