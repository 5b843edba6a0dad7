//! A key of the customer's own, with which a queue is encrypted.

use crate::account::Account;
use crate::failure::Failure;

/// A key of the customer's own that encrypts a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomerKey {
    /// Its ARN; its id if it does not exist.
    pub arn: String,
    /// Such as `Enabled`; `None` if it does not exist.
    pub state: Option<String>,
}

impl CustomerKey {
    /// Describes a queue's key by its `KmsMasterKeyId`; `None` if AWS manages it: whoever may use SQS may use that one.
    ///
    /// # Errors
    ///
    /// If the key cannot be described.
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

    /// The reason why nobody can use it, whatever their permissions; `None` if they can.
    pub fn problem(&self) -> Option<String> {
        match self.state.as_deref() {
            Some("Enabled" | "Updating") => None,
            Some(state) => Some(format!("the key {} is {state}", self.arn)),
            None => Some(format!("there is no key {}", self.arn)),
        }
    }
}
