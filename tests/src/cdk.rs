use std::path::Path;

use crate::{ARCHITECTURE, Shell, Stack};

/// The stack of `infra/example/app.ts`.
const EXAMPLE: &str = "ComebackExample";

/// Runs the CDK's CLI with these arguments on the example app of `infra/`, for this machine's architecture. `output`
/// is where it synthesizes to.
///
/// # Errors
///
/// All it wrote, if it fails.
pub fn cdk(shell: &Shell, output: &Path, arguments: &str) -> Result<String, String> {
    shell.clone().with("CDK_OUTPUT", output).run(&format!(
        "cd infra && npx --no-install cdk {arguments} -c architecture={ARCHITECTURE} --output \"$CDK_OUTPUT\" --no-notices"
    ))
}

/// Prepares the account for the CDK and deploys the example app with a `bootstrap` that was built before.
///
/// # Errors
///
/// What the CDK's CLI said.
pub fn deploy_example(shell: &Shell, output: &Path, bootstrap: &Path) -> Result<Stack, String> {
    let shell = shell.clone().with("BOOTSTRAP", bootstrap);
    cdk(&shell, output, "bootstrap -c bootstrap=\"$BOOTSTRAP\"")?;
    cdk(&shell, output, "deploy --require-approval never -c bootstrap=\"$BOOTSTRAP\"")?;
    Stack::deployed(&shell, EXAMPLE)
}
