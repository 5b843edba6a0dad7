//! An SQS queue, its message counts, and the KMS key that encrypts it.

use std::str::FromStr;
use std::time::Duration;

use comeback_engine::{BadArn, QueueArn};
use serde::Serialize;

use crate::account::Account;
use crate::failure::Failure;

/// The time that a received dead-letter stays hidden, unless a command makes it visible earlier. It is ample for
/// reading 100,000 dead-letters, which takes a few minutes. After a command is killed, its dead-letters stay hidden
/// for up to this time, so it should not be longer than necessary.
pub const HIDDEN_FOR: Duration = Duration::from_secs(15 * 60);

/// One of a deployment's SQS queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The queue's URL.
    pub url: String,
    /// The queue's ARN.
    pub arn: String,
    /// The queue's ARN, parsed.
    pub parsed_arn: QueueArn,
}

impl Queue {
    fn new(url: &str, arn: &str) -> Result<Self, Failure> {
        Ok(Self { url: url.to_owned(), arn: arn.to_owned(), parsed_arn: parsed(arn)? })
    }

    /// Finds the queue with this URL; `None` if it does not exist.
    pub async fn of_url(account: &Account, url: &str) -> Result<Option<Self>, Failure> {
        let Some(attributes) = account.aws.queue_attributes(url, &["QueueArn"]).await? else {
            return Ok(None);
        };
        let arn = attributes.get("QueueArn");
        let arn = arn.ok_or_else(|| Failure::could_not(format!("SQS returned no ARN for {url}")))?;
        Self::new(url, arn).map(Some)
    }

    /// Finds the queue with this ARN. Returns `None` if no such queue exists.
    pub async fn of_arn(account: &Account, arn: &str) -> Result<Option<Self>, Failure> {
        let url = account.aws.queue_url(arn).await?;
        url.map(|url| Self::new(&url, arn)).transpose()
    }

    /// The queue's name.
    pub fn name(&self) -> &str {
        &self.parsed_arn.name
    }
}

pub(super) fn no_queue(name: &str) -> Failure {
    let how = "create it again, or name another where the deployment is defined";
    Failure::could_not(format!("queue {name} does not exist: {how}"))
}

/// Reads a queue's attributes, in the order of `names`. An attribute that the queue lacks is `None`.
///
/// # Errors
///
/// Fails if the queue does not exist or cannot be read.
pub async fn attributes<const N: usize>(
    account: &Account,
    url: &str,
    names: [&str; N],
) -> Result<[Option<String>; N], Failure> {
    let attributes = account.aws.queue_attributes(url, &names).await?.ok_or_else(|| no_queue(url))?;
    Ok(names.map(|name| attributes.get(name).cloned()))
}

/// Parses an ARN that AWS returned; an error names the ARN.
pub fn parsed<T: FromStr<Err = BadArn>>(arn: &str) -> Result<T, Failure> {
    arn.parse().map_err(|problem| Failure::could_not(format!("{arn} {problem}")))
}

/// The approximate numbers of messages in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Depth {
    /// The number of messages that can be received now.
    pub visible: u64,
    /// The number of hidden messages.
    pub in_flight: u64,
    /// The number of messages that were sent with a delay and are not yet visible.
    pub delayed: u64,
}

impl Depth {
    /// Reads the message counts of a queue.
    ///
    /// # Errors
    ///
    /// Fails if SQS does not return the counts.
    pub async fn read(account: &Account, queue: &Queue) -> Result<Self, Failure> {
        let names = [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ];
        let counts = attributes(account, &queue.url, names).await?;
        let [Some(visible), Some(in_flight), Some(delayed)] = counts.map(|it| it?.parse().ok()) else {
            return Err(Failure::could_not(format!("SQS returned no message counts for {}", queue.url)));
        };
        Ok(Self { visible, in_flight, delayed })
    }

    /// The total number of messages: visible, hidden and delayed.
    pub const fn total(&self) -> u64 {
        self.visible + self.in_flight + self.delayed
    }
}

/// A customer-managed KMS key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomerKey {
    /// The key's ARN, or the value of the queue's attribute `KmsMasterKeyId` if the key does not exist.
    pub arn: String,
    /// The key's state, such as `Enabled`; `None` if the key does not exist.
    pub state: Option<String>,
}

impl CustomerKey {
    /// Reads the key that a queue's `KmsMasterKeyId` attribute names. Returns `None` if AWS manages the key.
    ///
    /// # Errors
    ///
    /// Fails if the key cannot be described.
    pub async fn read(account: &Account, id: Option<&str>) -> Result<Option<Self>, Failure> {
        let Some(id) = id.filter(|id| !id.is_empty() && !id.ends_with("alias/aws/sqs")) else {
            return Ok(None);
        };
        let Some(key) = account.aws.key(id).await? else {
            return Ok(Some(Self { arn: id.to_owned(), state: None }));
        };
        let arn = key.arn.filter(|_| !key.is_managed_by_aws);
        Ok(arn.map(|arn| Self { arn, state: key.state }))
    }

    /// Returns the reason why nobody can use the key, for example that it is disabled, or `None` if the key is usable.
    pub fn problem(&self) -> Option<String> {
        match self.state.as_deref() {
            Some("Enabled" | "Updating") => None,
            Some(state) => Some(format!("the key {} is {state}", self.arn)),
            None => Some(format!("there is no key {}", self.arn)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Queue {
        pub(crate) fn sample(name: &str) -> Self {
            let url = format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{name}");
            Self::new(&url, &format!("arn:aws:sqs:eu-west-1:123456789012:{name}")).unwrap()
        }
    }
}
