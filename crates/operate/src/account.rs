//! The AWS account and region that a command works in, and the identity that makes the command's calls.

use std::fmt;
use std::rc::Rc;

use comeback_engine::Timestamp;

use crate::aws::Aws;

/// An AWS account and region, and the identity that makes the calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The 12-digit account number.
    pub account: String,
    /// The AWS region, such as `eu-west-1`.
    pub region: String,
    /// The ARN of the IAM user or role session that makes the calls.
    pub caller: String,
    /// The flags to add to a suggested command so that it uses this region and profile, such as ` --region eu-west-1`.
    pub flags: String,
}

impl Place {
    /// The caller's user name or role session name: the last part of the caller's ARN.
    pub fn user(&self) -> &str {
        user_name(&self.caller)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of account {}", self.region, self.account)
    }
}

/// The user name or role session name at the end of an ARN.
pub fn user_name(arn: &str) -> &str {
    arn.rsplit(['/', ':']).next().unwrap_or(arn)
}

/// A connection to an AWS account: a client for the AWS calls, and the account, region and identity that the client
/// uses.
#[derive(Clone, Debug)]
pub struct Account {
    /// The client that makes the AWS calls, either to AWS through the SDK or to a simulated account.
    pub aws: Rc<dyn Aws>,
    /// The account, region and identity that `aws` uses.
    pub place: Place,
}

impl Account {
    /// The current time on the account's clock. A simulated account has its own clock.
    pub fn now(&self) -> Timestamp {
        self.aws.now()
    }
}
