//! An account, and an operator's place in it.

use std::fmt;
use std::rc::Rc;

use comeback_engine::Timestamp;

use crate::aws::Aws;

/// An account and a region, and the identity that an operator has there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The account's number.
    pub account: String,
    /// The region.
    pub region: String,
    /// The caller's ARN.
    pub caller: String,
    /// The flags that direct a suggested command there, such as ` --region eu-west-1`.
    pub flags: String,
}

impl Place {
    /// The caller's name: the last part of the ARN of a user, or of a role's session.
    pub fn user(&self) -> &str {
        user_name(&self.caller)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of account {}", self.region, self.account)
    }
}

/// The last part of the ARN of a user or of a role's session.
pub fn user_name(arn: &str) -> &str {
    arn.rsplit(['/', ':']).next().unwrap_or(arn)
}

/// An account, and the operator's place in it.
#[derive(Clone, Debug)]
pub struct Account {
    /// The AWS calls.
    pub aws: Rc<dyn Aws>,
    /// The place they go to.
    pub place: Place,
}

impl Account {
    /// The account's current time.
    pub fn now(&self) -> Timestamp {
        self.aws.now()
    }
}
