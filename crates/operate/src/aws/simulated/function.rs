//! Simulated Lambda functions.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::aws::simulated::{ACCOUNT, REGION};
use crate::aws::{Configuration, InvokeSettings, MOST_TAGS};
use crate::handler_setting::ENVIRONMENT_BYTES;

/// A Lambda function with its settings and its pending invocations.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// The configuration of the unqualified function.
    pub configuration: Configuration,
    /// The configurations of the function's versions and aliases.
    pub qualifiers: BTreeMap<String, Configuration>,
    /// The function's tags, by key.
    pub tags: BTreeMap<String, String>,
    /// The function's reserved concurrency; `None` if none is reserved.
    pub reserved_concurrency: Option<u32>,
    /// The settings for asynchronous invocations, by qualifier (`None` for the unqualified function).
    pub invoke_settings: BTreeMap<Option<String>, InvokeSettings>,
    /// True if recursive loops are allowed.
    pub recursion_allowed: bool,
    /// The asynchronous invocations that Lambda has accepted but not started, oldest first.
    pub invocations: Vec<Invocation>,
}

/// An asynchronous invocation that Lambda has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The request id that Lambda returned to the caller.
    pub request_id: String,
    /// The payload that the caller passed.
    pub payload: String,
}

impl Function {
    /// Creates a function with the role `NAME-role` and Lambda's defaults.
    pub fn new(name: &str) -> Self {
        let configuration = Configuration {
            name: name.to_owned(),
            arn: function_arn(name),
            role_arn: role_arn(&format!("{name}-role")),
            runtime: Some("provided.al2023".into()),
            timeout: Duration::from_secs(60),
            revision: Some("1".into()),
            ..Configuration::default()
        };
        Self { configuration, ..Self::default() }
    }

    /// Adds an alias or version with the function's current configuration.
    pub fn publish(&mut self, qualifier: &str) {
        let arn = format!("{}:{qualifier}", self.configuration.arn);
        self.qualifiers.insert(qualifier.to_owned(), Configuration { arn, ..self.configuration.clone() });
    }

    /// Returns the configuration of the function, or of the version or alias with this qualifier. Returns `None` if the
    /// function has no such version or alias.
    pub(super) fn configuration(&self, qualifier: Option<&str>) -> Option<Configuration> {
        match qualifier {
            None => Some(self.configuration.clone()),
            Some("$LATEST") => Some(Configuration {
                arn: format!("{}:$LATEST", self.configuration.arn),
                ..self.configuration.clone()
            }),
            Some(qualifier) => self.qualifiers.get(qualifier).cloned(),
        }
    }

    /// Simulates `UpdateFunctionConfiguration`: replaces the variables at once, or fails with Lambda's error code and
    /// message.
    pub(super) fn set_variables(
        &mut self,
        variables: BTreeMap<String, String>,
        revision: Option<String>,
    ) -> Result<(), String> {
        if revision.is_some() && revision != self.configuration.revision {
            return Err("PreconditionFailedException: The Revision Id provided does not match the latest Revision Id. \
                        Call the GetFunction API to retrieve the latest Revision Id"
                .into());
        }
        if serde_json::json!(variables).to_string().len() > ENVIRONMENT_BYTES {
            return Err(
                "InvalidParameterValueException: Lambda was unable to configure your environment variables \
                        because the environment variables you have provided exceeded the 4KB limit."
                    .into(),
            );
        }
        let number =
            self.configuration.revision.as_ref().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0) + 1;
        self.configuration.revision = Some(number.to_string());
        self.configuration.variables = variables;
        Ok(())
    }

    /// Simulates `TagResource`: adds tags to the function, or fails with Lambda's error code and message.
    pub(super) fn tag(&mut self, tags: BTreeMap<String, String>) -> Result<(), String> {
        let mut all = self.tags.clone();
        all.extend(tags);
        if all.len() > MOST_TAGS {
            return Err("InvalidParameterValueException: The number of tags exceeds the limit".into());
        }
        self.tags = all;
        Ok(())
    }

    /// Fails with Lambda's error code and message if `PutFunctionEventInvokeConfig` would refuse the settings.
    pub(super) fn check(settings: &InvokeSettings) -> Result<(), String> {
        let retries = settings.retries.is_none_or(|retries| (0..=2).contains(&retries));
        let event_age = settings.event_age.is_none_or(|seconds| (60..=21_600).contains(&seconds));
        if retries && event_age {
            return Ok(());
        }
        Err("ValidationException: MaximumRetryAttempts is 0 to 2, and MaximumEventAgeInSeconds is 60 to 21600".into())
    }
}

/// The ARN of a function in the simulated account.
pub fn function_arn(name: &str) -> String {
    format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}")
}

/// The ARN of a role in the simulated account.
pub fn role_arn(name: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT}:role/{name}")
}

/// The IAM action that a function's role must be allowed to perform before Lambda can send to a destination.
pub(super) fn action_of(destination: &str) -> &'static str {
    match destination.split(':').nth(2) {
        Some("sns") => "sns:Publish",
        Some("lambda") => "lambda:InvokeFunction",
        Some("events") => "events:PutEvents",
        Some("s3") => "s3:PutObject",
        _ => "sqs:SendMessage",
    }
}
