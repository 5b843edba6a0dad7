use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::Shell;

/// This machine's architecture, as the template names it: the one whose bootstraps run here.
pub const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86_64" };

/// Builds the functions of `template.yaml` as it ships, but for this machine's architecture.
///
/// # Errors
///
/// What `sam build` said.
pub fn build(shell: &Shell) -> Result<(), String> {
    shell.run(&format!("sam build --parameter-overrides Architecture={ARCHITECTURE}")).map(drop)
}

/// Deploys what [`build`] built under this name, with these parameters (`MaxRetries=2`).
///
/// # Errors
///
/// What `sam deploy` said.
pub fn deploy(shell: &Shell, name: &str, parameters: &str) -> Result<Stack, String> {
    shell.run(&format!(
        "sam deploy --stack-name {name} --parameter-overrides Architecture={ARCHITECTURE} {parameters}"
    ))?;
    Stack::deployed(shell, name)
}

/// MiniStack asks a role for actions of this name, which IAM has not: on AWS, the permission for one message is the
/// permission for a batch.
///
/// # Errors
///
/// What the AWS CLI said.
pub fn allow_batches(shell: &Shell, role: &str) -> Result<(), String> {
    const POLICY: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["sqs:ChangeMessageVisibilityBatch","sqs:SendMessageBatch"],"Resource":"*"}]}"#;
    shell
        .run(&format!(
            "aws iam put-role-policy --role-name {role} --policy-name ministack --policy-document '{POLICY}'"
        ))
        .map(drop)
}

/// Has a retry queue hide a message for ten seconds where the handler sets no time. Its own 1,230 s are for a handler that
/// is out for days, and no trial on the real clock can wait for them.
///
/// # Errors
///
/// What the AWS CLI said.
pub fn hide_briefly(shell: &Shell, retry_queue_url: &str) -> Result<(), String> {
    let attributes = "--attributes VisibilityTimeout=10";
    shell.run(&format!("aws sqs set-queue-attributes --queue-url {retry_queue_url} {attributes}")).map(drop)
}

/// A deployed stack, whatever deployed it.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    outputs: BTreeMap<String, String>,
    handler_logs: String,
    target_logs: String,
}

impl Stack {
    /// Reads what became of a deployment, and lets its handler work on MiniStack.
    ///
    /// # Errors
    ///
    /// What the AWS CLI said.
    pub(crate) fn deployed(shell: &Shell, name: &str) -> Result<Self, String> {
        let outputs: Vec<(String, String)> = answer(
            shell,
            &format!(
                "cloudformation describe-stacks --stack-name {name} \
                 --query 'Stacks[0].Outputs[].[OutputKey, OutputValue]'"
            ),
        )?;
        let mut stack = Self { outputs: outputs.into_iter().collect(), ..Self::default() };
        let (handler_logs, role_arn) = logs_and_role(shell, stack.output("RetryHandlerName"))?;
        allow_batches(shell, role_arn.rsplit('/').next().unwrap_or_default())?;
        stack.handler_logs = handler_logs;
        (stack.target_logs, _) = logs_and_role(shell, stack.output("ExampleTargetName"))?;
        Ok(stack)
    }

    /// One of the template's outputs.
    ///
    /// # Panics
    ///
    /// If the template has no such output.
    #[must_use]
    pub fn output(&self, key: &str) -> &str {
        self.outputs.get(key).unwrap_or_else(|| panic!("no output {key} in {:?}", self.outputs))
    }

    /// The log group of the retry handler.
    #[must_use]
    pub fn handler_logs(&self) -> &str {
        &self.handler_logs
    }

    /// The log group of the example target.
    #[must_use]
    pub fn target_logs(&self) -> &str {
        &self.target_logs
    }
}

/// A function's log group, and the ARN of its role.
fn logs_and_role(shell: &Shell, function: &str) -> Result<(String, String), String> {
    answer(
        shell,
        &format!(
            "lambda get-function-configuration --function-name {function} --query '[LoggingConfig.LogGroup, Role]'"
        ),
    )
}

/// What the AWS CLI answers to a command.
fn answer<T: DeserializeOwned>(shell: &Shell, command: &str) -> Result<T, String> {
    let answer = shell.run(&format!("aws {command} --output json"))?;
    serde_json::from_str(&answer).map_err(|error| format!("{error}: {answer}"))
}
