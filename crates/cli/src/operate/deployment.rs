//! A deployment: a retry handler and what belongs to it.

pub(crate) mod find;
pub(crate) mod mapping;
pub(crate) mod queue;

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::{FunctionArn, FunctionPattern, Policies, SettingError};

use crate::operate::deployment::mapping::Mapping;
use crate::operate::deployment::queue::Queue;
use crate::operate::function::FunctionName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deployment {
    /// `None` if CloudFormation does not own the handler.
    pub(crate) stack: Option<String>,
    pub(crate) handler: String,
    /// The version of Comeback that was deployed, if the handler's tags have it and may be read.
    pub(crate) version: Option<String>,
    pub(crate) handler_arn: FunctionArn,
    pub(crate) role_arn: String,
    pub(crate) timeout: Duration,
    pub(crate) log_group: String,
    /// The lowest level of the lines that Lambda lets the handler write, such as `WARN`, if one is set.
    pub(crate) log_level: Option<String>,
    pub(crate) variables: BTreeMap<String, String>,
    /// Its reserved concurrency is 0.
    pub(crate) never_runs: bool,
    /// The mapping that feeds the handler from the retry queue, if there is one.
    pub(crate) mapping: Option<Mapping>,
    pub(crate) retry_queue: Queue,
    pub(crate) dead_letter_queue: Queue,
    /// The flags that lead a suggested command to its account and region.
    pub(crate) place_flags: String,
}

impl Deployment {
    pub(crate) fn policies(&self) -> Result<Policies, Vec<SettingError>> {
        // Lambda sets these two: the handler is never a target of its own.
        let policies = Policies::from_variables(|name| match name {
            "AWS_LAMBDA_FUNCTION_NAME" => Some(self.handler_arn.name.clone()),
            "AWS_REGION" => Some(self.handler_arn.region.clone()),
            _ => self.variables.get(name).cloned(),
        })?;
        Ok(policies.in_queue(&self.retry_queue.parsed_arn))
    }

    /// `TARGET_FUNCTIONS`, as it stands.
    pub(crate) fn allow_list(&self) -> &str {
        self.variables.get("TARGET_FUNCTIONS").map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn target_functions(&self) -> impl Iterator<Item = &str> {
        entries(self.allow_list())
    }

    /// Whether an entry of `TARGET_FUNCTIONS` is for the function, or for one of its versions or aliases.
    pub(crate) fn retries(&self, function: &FunctionArn) -> bool {
        let mut patterns = self.target_functions().filter_map(|entry| entry.parse::<FunctionPattern>().ok());
        patterns.any(|pattern| {
            let qualifier = pattern.qualifier().map(ToOwned::to_owned);
            pattern.allows(&FunctionArn { qualifier, ..function.clone() }.to_string())
        })
    }

    /// The ARN of a function, in the handler's account and region unless the name says otherwise.
    pub(crate) fn arn_of(&self, function: &FunctionName) -> FunctionArn {
        let place = function.place.as_ref().unwrap_or(&self.handler_arn).clone();
        FunctionArn { name: function.name.clone(), qualifier: function.qualifier.clone(), ..place }
    }
}

/// The entries of a comma-separated list.
pub(crate) fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

#[cfg(test)]
impl Deployment {
    /// A deployment that may retry `orders`, without its mapping.
    pub(crate) fn sample() -> Self {
        let function = |name: &str| format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}");
        let (retry_queue, dead_letter_queue) = (Queue::sample("retries"), Queue::sample("dead"));
        let variables = [
            ("DEAD_LETTER_QUEUE_URL".to_owned(), dead_letter_queue.url.clone()),
            ("TARGET_FUNCTIONS".to_owned(), function("orders")),
        ];
        Self {
            stack: Some("comeback".into()),
            handler: "retry-handler".into(),
            version: Some("0.1.0".into()),
            never_runs: false,
            handler_arn: function("retry-handler").parse().unwrap(),
            role_arn: "arn:aws:iam::123456789012:role/handler-role".into(),
            timeout: Duration::from_secs(60),
            log_group: "/aws/lambda/retry-handler".into(),
            log_level: None,
            variables: variables.into(),
            mapping: None,
            retry_queue,
            dead_letter_queue,
            place_flags: String::new(),
        }
    }
}
