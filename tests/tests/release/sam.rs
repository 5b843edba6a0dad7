use std::time::Duration;

use comeback_tests::{
    ARCHITECTURE, MiniStack, Operator, Stack, enveloped_target, eventually, hide_briefly, log_lines, pages,
};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::outside::Outside;

const FUNCTION: &str = "orders";
const LIMIT: Duration = Duration::from_secs(120);

/// The two lines of the page, and nothing of the repository but the release.
#[test]
fn the_sam_cli_deploys_the_release_and_a_python_function_is_retried_until_it_succeeds() {
    Runtime::new().expect("the operating system gives us threads").block_on(async {
        let ministack = MiniStack::start("release-sam").await.unwrap_or_else(|error| panic!("{error}"));
        let outside = Outside::new(&ministack.shell(), "release-sam-outside").await;
        let [by_sam, _] = blocks();
        assert_eq!(
            pages::blocks("README.md", "With SAM"),
            [by_sam.as_str()],
            "the README has the same commands"
        );
        outside.run_block(&by_sam).unwrap_or_else(|error| panic!("{error}"));
        retries(&ministack, "comeback").await;
    });
}

/// As the AWS CLI does it, for those who have no SAM CLI. The stack prints how to attach a function without the command.
#[test]
fn the_aws_cli_deploys_the_release_and_its_output_attaches_a_function() {
    Runtime::new().expect("the operating system gives us threads").block_on(async {
        let ministack = MiniStack::start("release-aws").await.unwrap_or_else(|error| panic!("{error}"));
        let outside = Outside::new(&ministack.shell(), "release-aws-outside").await;
        let [_, by_aws] = blocks();
        outside.run("aws s3 mb s3://release-of-comeback").unwrap_or_else(|error| panic!("{error}"));
        let by_aws = format!("BUCKET=release-of-comeback\n{by_aws}");
        outside.run_block(&by_aws).unwrap_or_else(|error| panic!("{error}"));
        let stack = Stack::deployed(&ministack.shell(), "comeback").unwrap_or_else(|error| panic!("{error}"));
        let handler = stack.output("RetryHandlerName");
        let deployed =
            format!("aws lambda get-function --function-name {handler} --query Configuration.CodeSha256");
        let code = format!("openssl dgst -sha256 -binary retry-handler-{ARCHITECTURE}.zip | base64");
        let [deployed, code] = [format!("{deployed} --output text"), code].map(|it| outside.run(&it));
        assert_eq!(deployed, code, "the deployed code is that of the release");

        enveloped_target(&ministack, FUNCTION).await;
        let attach = format!("FUNCTION={FUNCTION}\n{}", stack.output("AttachCommands"));
        outside.run(&attach).unwrap_or_else(|error| panic!("{error}"));
        let destination = format!(
            "aws lambda get-function-event-invoke-config --function-name {FUNCTION} --output text \
             --query DestinationConfig.OnFailure.Destination"
        );
        let destination = outside.run(&destination).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(destination.trim(), stack.output("RetryQueueArn"));
        let stack = Stack::deployed(&ministack.shell(), "comeback").unwrap_or_else(|error| panic!("{error}"));
        assert!(stack.output("AllowedTargetFunctions").ends_with(&format!(":function:{FUNCTION}")));
    });
}

/// The page's commands: by the SAM CLI, and by the AWS CLI.
fn blocks() -> [String; 2] {
    let blocks = pages::blocks("docs/deploy-sam.md", "Without Rust");
    <[String; 2]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not two: {blocks:#?}"))
}

/// A Python function is attached by the command, fails three times, and succeeds on the fourth invocation.
async fn retries(ministack: &MiniStack, name: &str) {
    let shell = ministack.shell();
    let stack = Stack::deployed(&shell, name).unwrap_or_else(|error| panic!("{error}"));
    assert!(!stack.has_output("ExampleTargetName"), "a release has no example unless it is asked for");
    enveloped_target(ministack, FUNCTION).await;
    let operator = Operator::of(ministack);
    let _ = operator.comeback(&format!("attach {FUNCTION} --stack {name} --yes")).ended(0);

    assert_healthy(ministack, &operator, &stack);
    hide_briefly(&shell, stack.output("RetryQueueUrl")).unwrap_or_else(|error| panic!("{error}"));
    ministack.invoke(FUNCTION, &json!({"order": "o-1", "refusals": 3}).to_string()).await;
    let attempts = eventually("the order to be taken", LIMIT, async || {
        let lines = log_lines(ministack, &format!("/aws/lambda/{FUNCTION}")).await;
        let attempts: Vec<_> =
            lines.iter().filter(|line| line["order"] == "o-1").map(|line| line["attempt"].clone()).collect();
        (attempts.last() == Some(&json!(3))).then_some(attempts)
    })
    .await;
    assert_eq!(attempts, [0, 1, 2, 3], "three retries, and the last succeeds");
}

/// MiniStack ignores `RecursiveLoop` in CloudFormation.
fn assert_healthy(ministack: &MiniStack, operator: &Operator, stack: &Stack) {
    let handler = stack.output("RetryHandlerName");
    let allow = "aws lambda put-function-recursion-config --recursive-loop Allow --function-name";
    ministack.shell().run(&format!("{allow} {handler}")).unwrap_or_else(|error| panic!("{error}"));
    let report = operator.comeback(&format!("doctor {FUNCTION} --stack {} --json", stack.name())).json(0);
    assert_eq!(report["healthy"], true, "{report:#}");
}
