use std::path::Path;

use crate::{ARCHITECTURE, Shell, Stack};

/// Runs a script of `docs/deploy-cdk.md` that deploys the example app, for this machine's architecture, and synthesizes it
/// to `output`.
///
/// # Errors
///
/// What the script wrote, if it fails.
pub fn deploy_example(shell: &Shell, script: &str, output: &Path) -> Result<Stack, String> {
    // The CDK's CLI takes its options from such variables too.
    let shell = shell
        .clone()
        .with("CDK_CONTEXT", format!("architecture={ARCHITECTURE}"))
        .with("CDK_NOTICES", "false")
        .with("CDK_OUTPUT", output)
        .with("CDK_REQUIRE_APPROVAL", "never");
    shell.run(&format!("cd infra\n{script}"))?;
    Stack::deployed(&shell, "ComebackExample")
}
