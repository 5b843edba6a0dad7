use std::collections::BTreeMap;

use serde_json::Value;

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
    let outputs = shell.run(&format!(
        "aws cloudformation describe-stacks --stack-name {name} --query 'Stacks[0].Outputs' --output json"
    ))?;
    let outputs: Vec<BTreeMap<String, Value>> =
        serde_json::from_str(&outputs).map_err(|error| format!("{error}: {outputs}"))?;
    let text = |output: &BTreeMap<String, Value>, key| output[key].as_str().unwrap_or_default().to_owned();
    let outputs =
        outputs.iter().map(|output| (text(output, "OutputKey"), text(output, "OutputValue"))).collect();
    let stack = Stack { name: name.to_owned(), outputs };
    allow_batches(shell, stack.output("RetryHandlerRoleName"))?;
    Ok(stack)
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

/// A deployed stack.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Its name.
    pub name: String,
    outputs: BTreeMap<String, String>,
}

impl Stack {
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
    pub fn handler_logs(&self) -> String {
        format!("/aws/lambda/{}-retry-handler", self.name)
    }

    /// The log group of the example target.
    #[must_use]
    pub fn target_logs(&self) -> String {
        format!("/aws/lambda/{}-example-target", self.name)
    }
}
