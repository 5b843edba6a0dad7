//! A function, and what its invocations follow.
//!
//! | file | holds |
//! |---|---|
//! | `invoke_settings` | what becomes of a failed asynchronous invocation, for one qualifier |

pub(crate) mod invoke_settings;

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_lambda::types::{FunctionConfiguration, RecursiveLoop};
use serde::Serialize;

use crate::{Account, Failure, FunctionName, InvokeSettings};

/// CloudFormation marks its functions with the name of their stack.
pub(crate) const STACK_TAG: &str = "aws:cloudformation:stack-name";

/// The facts of one function, as seen through one qualifier. None of them is judged here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// The alias or version that was named; `None` is the function itself, `$LATEST`.
    pub qualifier: Option<String>,
    /// Its ARN, unqualified.
    pub arn: String,
    /// The ARN of its execution role. A published version keeps the role that it was published with.
    pub role_arn: String,
    /// Such as `python3.12`; `None` for a container image.
    pub runtime: Option<String>,
    /// The longest that an invocation takes.
    pub timeout: Duration,
    /// The settings of each qualifier that has any; the key of the function itself is `None`.
    pub invoke_settings: BTreeMap<Option<String>, InvokeSettings>,
    /// Whether Lambda lets it take part in recursive loops for ever.
    pub recursion_allowed: bool,
    /// Its reserved concurrency; `None` if none is reserved.
    pub reserved_concurrency: Option<u32>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

impl Target {
    /// Reads the facts of a function.
    ///
    /// # Errors
    ///
    /// The function or the qualifier does not exist, or a call does not work.
    pub async fn read(account: &Account, function: &FunctionName) -> Result<Self, Failure> {
        let name = function.unqualified();
        // Tags and concurrency are the function's own, whatever its qualifier.
        let answer = account.lambda.get_function().function_name(&name).send().await;
        let answer =
            answer.map_err(|error| Failure::of_call("lambda:GetFunction", &function.to_string(), &error))?;
        if let Some(error) = answer.tags_error() {
            let of = format!("lambda:ListTags of {function}");
            return Err(Failure::CouldNot(format!("{of}: {}: {}", error.error_code, error.message)));
        }
        let configuration = match &function.qualifier {
            Some(qualifier) => qualified(account, &name, qualifier).await?,
            None => answer
                .configuration()
                .cloned()
                .ok_or_else(|| Failure::CouldNot(format!("Lambda gave no configuration of {function}")))?,
        };
        let field = |field: Option<&str>, what: &str| {
            field
                .map(ToOwned::to_owned)
                .ok_or_else(|| Failure::CouldNot(format!("Lambda gave no {what} of {function}")))
        };
        let arn = field(configuration.function_arn(), "ARN")?;
        let reserved = answer.concurrency().and_then(|it| it.reserved_concurrent_executions());
        Ok(Self {
            name: field(configuration.function_name(), "name")?,
            qualifier: function.qualifier.clone(),
            role_arn: field(configuration.role(), "role")?,
            runtime: configuration.runtime().map(|runtime| runtime.as_str().to_owned()),
            timeout: Duration::from_secs(configuration.timeout().unwrap_or_default().unsigned_abs().into()),
            invoke_settings: InvokeSettings::all(account, &name).await?,
            recursion_allowed: recursion_allowed(account, &name).await?,
            reserved_concurrency: reserved.map(i32::unsigned_abs),
            tags: answer
                .tags()
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            arn: unqualified(&arn).to_owned(),
        })
    }

    /// The ARN that a record of a failed invocation names: `$LATEST` for the function itself.
    #[must_use]
    pub fn invoked_arn(&self) -> String {
        format!("{}:{}", self.arn, self.qualifier.as_deref().unwrap_or("$LATEST"))
    }

    /// The settings of the qualifier that was named; Lambda's defaults if it has none.
    #[must_use]
    pub fn settings(&self) -> InvokeSettings {
        self.invoke_settings.get(&self.qualifier).cloned().unwrap_or_default()
    }

    /// The name of its role.
    #[must_use]
    pub fn role(&self) -> &str {
        self.role_arn.rsplit('/').next().unwrap_or(&self.role_arn)
    }

    /// The stack that made it, if CloudFormation did.
    #[must_use]
    pub fn stack(&self) -> Option<&str> {
        self.tags.get(STACK_TAG).map(String::as_str)
    }
}

/// A function's ARN without a qualifier.
fn unqualified(arn: &str) -> &str {
    arn.match_indices(':').nth(6).map_or(arn, |(end, _)| &arn[..end])
}

/// What a version, or the version of an alias, is published with: its role, its timeout, its runtime.
async fn qualified(account: &Account, name: &str, qualifier: &str) -> Result<FunctionConfiguration, Failure> {
    let call = account.lambda.get_function_configuration().function_name(name).qualifier(qualifier);
    let answer = call.send().await.map_err(|error| {
        Failure::of_call("lambda:GetFunctionConfiguration", &format!("{name}:{qualifier}"), &error)
    })?;
    Ok(FunctionConfiguration::builder()
        .set_function_name(answer.function_name)
        .set_function_arn(answer.function_arn)
        .set_role(answer.role)
        .set_runtime(answer.runtime)
        .set_timeout(answer.timeout)
        .build())
}

async fn recursion_allowed(account: &Account, name: &str) -> Result<bool, Failure> {
    let answer = account.lambda.get_function_recursion_config().function_name(name).send().await;
    let answer =
        answer.map_err(|error| Failure::of_call("lambda:GetFunctionRecursionConfig", name, &error))?;
    Ok(answer.recursive_loop() == Some(&RecursiveLoop::Allow))
}

#[cfg(test)]
mod tests {
    use super::unqualified;

    #[test]
    fn a_qualifier_is_cut_off_an_arn() {
        let arn = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
        for qualified in [arn, &format!("{arn}:live"), &format!("{arn}:$LATEST")] {
            assert_eq!(unqualified(qualified), arn);
        }
    }
}
