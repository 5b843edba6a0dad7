use comeback_tests::{
    ARCHITECTURE, MiniStack, Operator, Stack, assert_runs_under_the_emulator, enveloped_target, eventually,
    log_lines, pages, scratch,
};
use serde_json::json;

use crate::outside::{Outside, dist};
use crate::packages::World;

const FUNCTION: &str = "orders";

/// Deploys a release with the two commands in docs/deploy-sam.md.
pub(crate) async fn sam_cli_deploys_the_release_and_a_function_is_retried(_: &World) {
    let (ministack, outside) = released("release-sam").await;
    let [by_sam, _] = blocks();
    assert_eq!(pages::blocks("README.md", "With SAM"), [by_sam.as_str()], "the README has the same commands");
    outside.run_block(&by_sam).unwrap_or_else(|error| panic!("{error}"));
    retries(&ministack, "comeback").await;
}

/// Deploys without the SAM CLI, and attaches a function with the commands in the stack's output.
pub(crate) async fn aws_cli_deploys_the_release_and_its_output_attaches_a_function(_: &World) {
    let (ministack, outside) = released("release-aws").await;
    let [_, by_aws] = blocks();
    let run = |script: &str| outside.run(script).unwrap_or_else(|error| panic!("{error}"));
    run("aws s3 mb s3://release-of-comeback");
    let by_aws = format!("BUCKET=release-of-comeback\n{by_aws}");
    outside.run_block(&by_aws).unwrap_or_else(|error| panic!("{error}"));
    let stack = ministack.stack("comeback").await.unwrap_or_else(|error| panic!("{error}"));
    assert_code_of_the_release(&outside, &stack);

    enveloped_target(&ministack, FUNCTION).await;
    run(&format!("FUNCTION={FUNCTION}\n{}", stack.output("AttachCommands")));
    let destination = run(&format!(
        "aws lambda get-function-event-invoke-config --function-name {FUNCTION} --output text \
         --query DestinationConfig.OnFailure.Destination"
    ));
    assert_eq!(destination.trim(), stack.output("RetryQueueArn"));
    let stack = ministack.stack("comeback").await.unwrap_or_else(|error| panic!("{error}"));
    assert!(stack.output("AllowedTargetFunctions").ends_with(&format!(":function:{FUNCTION}")));
}

/// Deploys the release's template for CloudFormation.
pub(crate) async fn aws_cli_deploys_the_template_for_cloudformation(_: &World) {
    let (ministack, outside) = released("release-cloudformation").await;
    let blocks = pages::blocks("docs/deploy-cloudformation.md", "With the AWS CLI");
    let [block] = <[String; 1]>::try_from(blocks).unwrap_or_else(|blocks| panic!("{blocks:#?}"));
    outside.run("aws s3 mb s3://release-of-comeback").unwrap_or_else(|error| panic!("{error}"));
    let block = format!("BUCKET=release-of-comeback\n{block}");
    outside.run_block(&block).unwrap_or_else(|error| panic!("{error}"));
    let stack = ministack.stack("comeback").await.unwrap_or_else(|error| panic!("{error}"));
    assert_code_of_the_release(&outside, &stack);
}

fn assert_code_of_the_release(outside: &Outside, stack: &Stack) {
    let run = |script: &str| outside.run(script).unwrap_or_else(|error| panic!("{error}"));
    let handler = stack.output("RetryHandlerName");
    let deployed = format!(
        "aws lambda get-function --function-name {handler} --query Configuration.CodeSha256 --output text"
    );
    let code = format!("openssl dgst -sha256 -binary retry-handler-{ARCHITECTURE}.zip | base64");
    assert_eq!(run(&deployed), run(&code));
}

/// Runs the installer as docs/operate.md describes. `packaging/tests` tests what the installer refuses.
pub(crate) async fn installer_installs_the_command(_: &World) {
    let (_ministack, outside) = released("release-command").await;
    let blocks = pages::blocks("docs/operate.md", "Install the command");
    let [install] = <[String; 1]>::try_from(blocks).unwrap_or_else(|blocks| panic!("{blocks:#?}"));
    let installed = outside.run_block(&install).unwrap_or_else(|error| panic!("{error}"));
    let version = concat!("comeback ", env!("CARGO_PKG_VERSION"));
    assert!(installed.starts_with(&format!("installed {version} to ")), "{installed}");
    let simulated = outside.run("~/.local/bin/comeback simulate --events 10");
    let simulated = simulated.unwrap_or_else(|error| panic!("{error}"));
    assert!(simulated.contains("delivered"), "{simulated}");
}

pub(crate) async fn handler_runs_under_the_runtime_interface_emulator(_: &World) {
    let ministack = MiniStack::start("release-emulator").await.unwrap_or_else(|error| panic!("{error}"));
    let folder = scratch("release-emulator-code");
    let shell = ministack.shell();
    shell
        .clone()
        .with("ARCHIVE", dist().join(format!("retry-handler-{ARCHITECTURE}.zip")))
        .with("FOLDER", &folder)
        // Python ignores the file mode in the archive, which the tests in packaging/tests check.
        .run("python3 -m zipfile -e \"$ARCHIVE\" \"$FOLDER\" && chmod 755 \"$FOLDER/bootstrap\"")
        .unwrap_or_else(|error| panic!("{error}"));
    assert_runs_under_the_emulator(&shell, &folder.join("bootstrap"), "release-rie").await;
}

async fn released(name: &str) -> (MiniStack, Outside) {
    let ministack = MiniStack::start(name).await.unwrap_or_else(|error| panic!("{error}"));
    let outside = Outside::new(&ministack.shell(), &format!("{name}-outside")).await;
    (ministack, outside)
}

/// The two code blocks in docs/deploy-sam.md that deploy a release: with the SAM CLI, and with the AWS CLI.
fn blocks() -> [String; 2] {
    let blocks = pages::blocks("docs/deploy-sam.md", "Without Rust");
    <[String; 2]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not two: {blocks:#?}"))
}

/// Attaches a Python function with `comeback`, and tests that its event fails three times and then succeeds.
async fn retries(ministack: &MiniStack, name: &str) {
    let stack = ministack.stack(name).await.unwrap_or_else(|error| panic!("{error}"));
    assert!(!stack.has_output("ExampleTargetName"), "a release has no example unless it is asked for");
    enveloped_target(ministack, FUNCTION).await;
    let operator = Operator::of(ministack);
    let _ = operator.comeback(&format!("attach {FUNCTION} --stack {name} --yes")).ended(0);

    assert_healthy(ministack, &operator, &stack);
    ministack.invoke(FUNCTION, &json!({"order": "o-1", "refusals": 3}).to_string()).await;
    let attempts = eventually("the order to be taken", async || {
        let lines = log_lines(ministack, &format!("/aws/lambda/{FUNCTION}")).await;
        let attempts: Vec<_> =
            lines.iter().filter(|line| line["order"] == "o-1").map(|line| line["attempt"].clone()).collect();
        (attempts.last() == Some(&json!(3))).then_some(attempts)
    })
    .await;
    assert_eq!(attempts, [0, 1, 2, 3], "three retries, and the last succeeds");
}

/// Asserts that `comeback doctor` finds the stack healthy, apart from the shortened visibility timeout (CB011).
///
/// MiniStack ignores `RecursiveLoop` in CloudFormation, so this function first allows recursion with the AWS CLI.
fn assert_healthy(ministack: &MiniStack, operator: &Operator, stack: &Stack) {
    let handler = stack.output("RetryHandlerName");
    let allow = "aws lambda put-function-recursion-config --recursive-loop Allow --function-name";
    ministack.shell().run(&format!("{allow} {handler}")).unwrap_or_else(|error| panic!("{error}"));
    let report =
        operator.comeback(&format!("doctor {FUNCTION} --stack {} --skip CB011 --json", stack.name())).json(0);
    assert_eq!(report["healthy"], true, "{report:#}");
}
