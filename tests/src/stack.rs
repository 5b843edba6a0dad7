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
    name: String,
    outputs: BTreeMap<String, String>,
    handler_logs: String,
    target_logs: String,
}

impl Stack {
    /// Reads what became of a deployment.
    ///
    /// # Errors
    ///
    /// What the AWS CLI said.
    pub fn deployed(shell: &Shell, name: &str) -> Result<Self, String> {
        let outputs: Vec<(String, String)> = answer(
            shell,
            &format!(
                "cloudformation describe-stacks --stack-name {name} \
                 --query 'Stacks[0].Outputs[].[OutputKey, OutputValue]'"
            ),
        )?;
        let mut stack =
            Self { name: name.to_owned(), outputs: outputs.into_iter().collect(), ..Self::default() };
        stack.handler_logs = logs(shell, stack.output("RetryHandlerName"))?;
        if stack.has_output("ExampleTargetName") {
            stack.target_logs = logs(shell, stack.output("ExampleTargetName"))?;
        }
        Ok(stack)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
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

    /// Whether the stack has this output: some depend on its parameters.
    #[must_use]
    pub fn has_output(&self, key: &str) -> bool {
        self.outputs.contains_key(key)
    }

    /// The log group of the retry handler.
    #[must_use]
    pub fn handler_logs(&self) -> &str {
        &self.handler_logs
    }

    /// The log group of the example target; empty if the stack has none.
    #[must_use]
    pub fn target_logs(&self) -> &str {
        &self.target_logs
    }
}

/// A function's log group.
fn logs(shell: &Shell, function: &str) -> Result<String, String> {
    let query = "--query LoggingConfig.LogGroup";
    answer(shell, &format!("lambda get-function-configuration --function-name {function} {query}"))
}

/// What the AWS CLI answers to a command.
fn answer<T: DeserializeOwned>(shell: &Shell, command: &str) -> Result<T, String> {
    let answer = shell.run(&format!("aws {command} --output json"))?;
    serde_json::from_str(&answer).map_err(|error| format!("{error}: {answer}"))
}
