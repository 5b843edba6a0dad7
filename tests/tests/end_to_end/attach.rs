use std::time::Duration;

use comeback_tests::{MiniStack, Shell, eventually, example_target, readme};
use serde_json::json;

use crate::retries::successes;
use crate::world::World;

/// `output AllowedTargetFunctions`, as the stack's own output spells it out.
const ALLOWED: &str = r#"$(aws cloudformation describe-stacks --stack-name "comeback" --output text --query "Stacks[0].Outputs[?OutputKey=='AllowedTargetFunctions'].OutputValue")"#;

/// The blocks of the README's section, in their order.
pub(crate) struct Steps {
    /// The stack's names.
    names: String,
    /// 1 to 3, on the function's side.
    function: String,
    /// 4 and 5, on the handler's side: a handler deployed with SAM …
    sam: String,
    /// … or with cargo-lambda.
    pub(crate) cargo_lambda: String,
}

impl Steps {
    pub(crate) fn read() -> Self {
        let blocks = readme::blocks("README.md", "Attach your own function");
        let [names, function, sam, cargo_lambda] =
            <[String; 4]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not four blocks: {blocks:#?}"));
        Self { names, function, sam, cargo_lambda }
    }
}

/// Steps 1 to 3: `function` fails to this queue, and its loop is not cut.
pub(crate) fn send_failures_to(shell: &Shell, retry_queue_arn: &str, function: &str) {
    let shell = shell.clone().with("FUNCTION", function).with("RETRY_QUEUE_ARN", retry_queue_arn);
    shell.run(&Steps::read().function).unwrap_or_else(|error| panic!("{error}"));
}

/// An example target of this name is retried until it succeeds.
pub(crate) async fn is_retried(ministack: &MiniStack, function: &str) {
    ministack.invoke(function, &json!({"fail_times": 2, "error_type": "Attached"}).to_string()).await;
    let succeeded = eventually(&format!("{function} to succeed"), Duration::from_secs(90), async || {
        successes(ministack, &format!("/aws/lambda/{function}"), "Attached").await.pop()
    })
    .await;
    assert_eq!(succeeded["attempt"], 2);
}

pub(crate) async fn the_five_steps_of_the_readme_attach_a_function(world: &World) {
    let (ministack, stack) = (world.ministack().await, world.comeback().await);
    let Steps { names, function, sam, .. } = Steps::read();
    let with_names = format!("{function}\n{sam}")
        .replace("$RETRY_QUEUE_ARN", stack.output("RetryQueueArn"))
        .replace(
            "${RETRY_QUEUE_ARN##*:}",
            stack.output("RetryQueueArn").rsplit(':').next().unwrap_or_default(),
        )
        .replace("$(output AllowedTargetFunctions)", ALLOWED);
    assert_eq!(stack.output("AttachCommands").trim_end(), with_names, "the output and the README agree");

    example_target(ministack, "orders").await;
    let said = ministack.shell().run(&format!("{names}\n{function}\n{sam}\noutput AllowedTargetFunctions"));
    let said = said.unwrap_or_else(|error| panic!("{error}"));
    let allowed = format!("{},{}", stack.output("AllowedTargetFunctions"), MiniStack::function_arn("orders"));
    assert_eq!(said.trim_end().lines().last(), Some(&*allowed), "what was allowed stays allowed");
    is_retried(ministack, "orders").await;
}

/// The README's commands for SAM: the stack was deployed with the first block, plus this machine's architecture.
pub(crate) async fn the_example_of_the_readme_can_be_watched(world: &World) {
    let (ministack, _) = (world.ministack().await, world.comeback().await);
    let blocks = readme::blocks("README.md", "Deploy with SAM");
    let [deploy, invoke, logs] =
        <[String; 3]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not three blocks: {blocks:#?}"));
    assert_eq!(deploy, "sam build\nsam deploy");
    ministack.shell().run(&invoke).unwrap_or_else(|error| panic!("{error}"));
    eventually("the logs to tell of a success", Duration::from_secs(90), async || {
        let logs = ministack.shell().run(&logs).unwrap_or_else(|error| panic!("{error}"));
        logs.contains("succeeded").then_some(())
    })
    .await;
}
