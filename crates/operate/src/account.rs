//! The AWS account, region and identity that a command uses.

use std::fmt;
use std::rc::Rc;

use comeback_engine::Timestamp;

use crate::aws::Aws;

/// An AWS account and region, and the identity that makes the calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The 12-digit AWS account ID.
    pub account: String,
    /// The AWS region, such as `eu-west-1`.
    pub region: String,
    /// The ARN of the IAM user or role session that makes the calls.
    pub caller: String,
    /// Flags that make a suggested command use this region and profile, such as ` --region eu-west-1`.
    pub flags: String,
}

impl Place {
    /// The caller's user name or role session name.
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

/// A client for AWS calls, and the account, region and identity that it uses.
#[derive(Clone, Debug)]
pub struct Account {
    /// The AWS SDK or a simulated account.
    pub aws: Rc<dyn Aws>,
    /// The account, region and identity that `aws` uses.
    pub place: Place,
}

impl Account {
    /// The current time; a simulated account has its own clock.
    pub fn now(&self) -> Timestamp {
        self.aws.now()
    }
}
