use std::time::Duration;

use comeback_tests::{MiniStack, Shell, deploy_by_hand, eventually, example_target, pages};
use serde_json::json;

use crate::retries::successes;
use crate::world::World;

/// `attached`, as the stack's own output spells it out.
const ATTACHED: &str = r#"$(aws cloudformation describe-stacks --stack-name "comeback" --output text --query "Stacks[0].Parameters[?ParameterKey=='TargetFunctions'].ParameterValue" "#;

/// The blocks that attach a function, in their order.
struct Attach {
    /// The stack's names.
    names: String,
    /// Step 1, on the function's side.
    permission: String,
    /// Steps 2 and 3, on the handler's side, if it was deployed with SAM …
    sam: String,
    /// … or with cargo-lambda.
    cargo_lambda: String,
    /// Steps 4 and 5, on the function's side again.
    destination: String,
}

impl Attach {
    fn read() -> Self {
        let blocks = pages::blocks("docs/attach.md", "Attach");
        let [names, permission, sam, destination, cargo_lambda] =
            <[String; 5]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not five blocks: {blocks:#?}"));
        Self { names, permission, sam, cargo_lambda, destination }
    }
}

/// The blocks that detach a function, in their order.
struct Detach {
    /// Step 5, on the function's side.
    destination: String,
    /// Step 4.
    recursion: String,
    /// Steps 3 and 2, on the handler's side, if it was deployed with SAM …
    sam: String,
    /// … or with cargo-lambda.
    cargo_lambda: String,
    /// Step 1, on the function's side again.
    permission: String,
}

impl Detach {
    fn read() -> Self {
        let blocks = pages::blocks("docs/attach.md", "Detach");
        let [destination, recursion, sam, permission, cargo_lambda] =
            <[String; 5]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not five blocks: {blocks:#?}"));
        Self { destination, recursion, sam, cargo_lambda, permission }
    }
}

/// The steps on the function's side: its failures go to this queue, and Lambda does not stop its retries.
pub(crate) fn send_failures_to(shell: &Shell, retry_queue_arn: &str, function: &str) {
    let shell = shell.clone().with("FUNCTION", function).with("RETRY_QUEUE_ARN", retry_queue_arn);
    let Attach { permission, destination, .. } = Attach::read();
    shell.run(&format!("{permission}\n{destination}")).unwrap_or_else(|error| panic!("{error}"));
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

pub(crate) async fn a_function_is_attached_and_detached_to_a_stack_of_sam(world: &World) {
    let (ministack, stack) = (world.ministack().await, world.comeback().await);
    let Attach { names, permission, sam, destination, .. } = Attach::read();
    let with_names = format!("{permission}\n{sam}\n{destination}")
        .replace("$RETRY_QUEUE_ARN", stack.output("RetryQueueArn"))
        .replace(
            "${RETRY_QUEUE_ARN##*:}",
            stack.output("RetryQueueArn").rsplit(':').next().unwrap_or_default(),
        )
        .replace("$(attached ", ATTACHED);
    assert_eq!(stack.output("AttachCommands").trim_end(), with_names, "the output and the page agree");

    example_target(ministack, "orders").await;
    let shell = ministack.shell();
    let allowed = |script: &str| {
        let printed = shell.run(&format!("{names}\n{script}\noutput AllowedTargetFunctions"));
        let printed = printed.unwrap_or_else(|error| panic!("{error}"));
        printed.trim_end().lines().last().expect("the list was printed last").to_owned()
    };
    let before = stack.output("AllowedTargetFunctions");
    let both = format!("{before},{}", MiniStack::function_arn("orders"));
    assert_eq!(allowed(&format!("{permission}\n{sam}\n{destination}")), both);
    is_retried(ministack, "orders").await;

    let Detach { destination, recursion, sam, permission, .. } = Detach::read();
    assert_eq!(allowed(&format!("{destination}\n{recursion}\n{sam}\n{permission}")), before);
    assert_detached(&shell, "orders");
}

/// The commands of the two pages that need no CloudFormation, for a first function and another one.
pub(crate) async fn functions_are_attached_and_detached_to_a_handler_of_cargo_lambda(world: &World) {
    world.built().await;
    let ministack = world.by_hand().await;
    let shell = ministack.shell();
    example_target(ministack, "invoices").await;
    let retry_queue_arn = deploy_by_hand(&shell);
    send_failures_to(&shell, &retry_queue_arn, "invoices");
    is_retried(ministack, "invoices").await;

    example_target(ministack, "payments").await;
    let shell = shell.with("FUNCTION", "payments").with("RETRY_QUEUE_ARN", &retry_queue_arn);
    let run = |script: &str| shell.run(script).unwrap_or_else(|error| panic!("{error}"));
    let Attach { permission, cargo_lambda, destination, .. } = Attach::read();
    run(&format!("{permission}\n{cargo_lambda}\n{destination}"));
    is_retried(ministack, "payments").await;

    let Detach { destination, recursion, cargo_lambda, permission, .. } = Detach::read();
    run(&format!("{destination}\n{recursion}\n{cargo_lambda}\n{permission}"));
    assert_detached(&shell, "payments");
    let left =
        run("aws lambda get-function-configuration --function-name comeback-retry-handler --output text \
         --query Environment.Variables.TARGET_FUNCTIONS\n\
         aws iam list-role-policies --role-name comeback-retry-handler --output text --query PolicyNames");
    let invoices = MiniStack::function_arn("invoices");
    assert_eq!(left, format!("{invoices}\nretry-handler\tinvoke-invoices\n"));

    let remove = pages::blocks("docs/deploy-cargo-lambda.md", "Remove it");
    run(&remove.join("\n"));
    for gone in [
        "aws lambda get-function --function-name comeback-retry-handler",
        "aws iam get-role --role-name comeback-retry-handler",
    ] {
        assert!(shell.run(gone).is_err(), "{gone}");
    }
}

/// Nothing of the five steps is left on the function's side.
fn assert_detached(shell: &Shell, function: &str) {
    let shell = shell.clone().with("FUNCTION", function);
    let refused = shell.run("aws lambda get-function-event-invoke-config --function-name \"$FUNCTION\"");
    assert!(
        refused.is_err_and(|error| error.contains("ResourceNotFoundException")),
        "no failure destination"
    );
    let left = shell.run(
        "aws lambda get-function-recursion-config --function-name \"$FUNCTION\" --output text --query RecursiveLoop\n\
         aws iam list-role-policies --role-name \"$FUNCTION\" --output text --query PolicyNames",
    );
    assert_eq!(left.as_deref().map(str::trim_end), Ok("Terminate"), "and the role's policy is gone");
}
