//! A deployment of Comeback, whatever deployed it.
//!
//! | file | holds |
//! |---|---|
//! | `find` | by its handler, or by its stack |
//! | `mapping` | the event source mapping that feeds the handler |

mod find;
pub(crate) mod mapping;

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::{Policy, SettingError};

use crate::Mapping;

/// A retry handler and what belongs to it.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// The stack it belongs to; `None` if CloudFormation does not own the handler.
    pub stack: Option<String>,
    /// The handler's name.
    pub handler: String,
    /// The handler's ARN, unqualified.
    pub handler_arn: String,
    /// The ARN of the handler's role.
    pub role_arn: String,
    /// The handler's timeout.
    pub timeout: Duration,
    /// The log group that the handler writes to.
    pub log_group: String,
    /// The lowest level of the lines that Lambda lets the handler write, such as `WARN`, if one is set.
    pub log_level: Option<String>,
    /// The handler's environment.
    pub variables: BTreeMap<String, String>,
    /// What feeds the handler; `None` if nothing does.
    pub mapping: Option<Mapping>,
    /// Where failed events wait.
    pub retry_queue: Queue,
    /// Where events go that are given up.
    pub dead_letter_queue: Queue,
}

/// A queue, by both of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// What SQS's calls take.
    pub url: String,
    /// What policies, mappings and destinations name.
    pub arn: String,
}

impl Deployment {
    /// The handler's policy, as the handler itself reads it.
    ///
    /// # Errors
    ///
    /// Every setting that the handler refuses: it does not start.
    pub fn policy(&self) -> Result<Policy, Vec<SettingError>> {
        // Lambda sets these two: the handler is never a target of its own.
        Policy::from_variables(|name| match name {
            "AWS_LAMBDA_FUNCTION_NAME" => Some(self.handler_arn.split(':').nth(6)?.to_owned()),
            "AWS_REGION" => Some(self.handler_arn.split(':').nth(3)?.to_owned()),
            _ => self.variables.get(name).cloned(),
        })
    }

    /// The entries of `TARGET_FUNCTIONS`, as they stand.
    pub fn target_functions(&self) -> impl Iterator<Item = &str> {
        let list = self.variables.get("TARGET_FUNCTIONS").map(String::as_str).unwrap_or_default();
        list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
    }

    /// The name of the parameter that holds the pauses; `None` if the handler reads none.
    #[must_use]
    pub fn pauses(&self) -> Option<&str> {
        self.variables.get("PAUSES").map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The name of the handler's role.
    #[must_use]
    pub fn role(&self) -> &str {
        self.role_arn.rsplit('/').next().unwrap_or(&self.role_arn)
    }
}

impl Queue {
    /// The last field of its ARN.
    #[must_use]
    pub fn name(&self) -> &str {
        self.arn.rsplit(':').next().unwrap_or(&self.arn)
    }
}
