//! Runs the commands in docs/attach.md and docs/remove.md.

use comeback_tests::{MiniStack, Shell, deploy_by_hand, eventually, example_target, pages};
use serde_json::json;

use crate::retries::{enable, held, successes};
use crate::world::World;

/// The stack's output `AttachCommands` contains this text where docs/attach.md has `$(attached `.
const ATTACHED: &str = r#"$(aws cloudformation describe-stacks --stack-name "comeback" --output text --query "Stacks[0].Parameters[?ParameterKey=='TargetFunctions'].ParameterValue" "#;

/// The blocks in docs/attach.md that attach a function. The first defines the names. The next three are step 1, steps 2
/// and 3 (with SAM), and steps 4 and 5. The last is steps 2 and 3 with cargo-lambda.
fn to_attach() -> [String; 5] {
    five(pages::blocks("docs/attach.md", "Attach"))
}

/// The blocks in docs/attach.md that detach a function. The first two undo steps 5 and 4. The third undoes steps 3 and
/// 2 (with SAM), and the fourth undoes step 1. The last also undoes steps 3 and 2, but with cargo-lambda.
fn to_detach() -> [String; 5] {
    five(pages::blocks("docs/attach.md", "Detach"))
}

fn five(blocks: Vec<String>) -> [String; 5] {
    <[String; 5]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not five blocks: {blocks:#?}"))
}

/// Runs the steps in docs/attach.md that change the function. They make this queue the function's failure destination.
pub(crate) fn send_failures_to(shell: &Shell, retry_queue_arn: &str, function: &str) {
    let shell = shell.clone().with("FUNCTION", function).with("RETRY_QUEUE_ARN", retry_queue_arn);
    let [_, permission, _, destination, _] = to_attach();
    shell.run(&format!("{permission}\n{destination}")).unwrap_or_else(|error| panic!("{error}"));
}

/// Asserts that an event sent to this copy of the example target is retried until it succeeds.
pub(crate) async fn is_retried(ministack: &MiniStack, function: &str) {
    ministack.invoke(function, &json!({"fail_times": 2, "error_type": "Attached"}).to_string()).await;
    let succeeded = eventually(&format!("{function} to succeed"), async || {
        successes(ministack, &format!("/aws/lambda/{function}"), "Attached").await.pop()
    })
    .await;
    assert_eq!(succeeded["attempt"], 2);
}

pub(crate) async fn function_is_attached_to_a_stack_and_detached(world: &World) {
    let (ministack, stack) = (world.ministack().await, world.comeback().await);
    let [names, permission, sam, destination, _] = to_attach();
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

    let [destination, recursion, sam, permission, _] = to_detach();
    assert_eq!(allowed(&format!("{destination}\n{recursion}\n{sam}\n{permission}")), before);
    assert_detached(&shell, "orders");
}

/// Runs the commands in docs/attach.md and docs/remove.md for a handler deployed without CloudFormation.
pub(crate) async fn functions_are_attached_to_a_handler_of_cargo_lambda(world: &World) {
    let ministack = world.by_hand().await;
    let shell = ministack.shell();
    example_target(ministack, "invoices").await;
    let retry_queue_arn = deploy_by_hand(ministack).await;
    send_failures_to(&shell, &retry_queue_arn, "invoices");
    is_retried(ministack, "invoices").await;

    example_target(ministack, "payments").await;
    let shell = shell.with("FUNCTION", "payments").with("RETRY_QUEUE_ARN", &retry_queue_arn);
    let run = |script: &str| shell.run(script).unwrap_or_else(|error| panic!("{error}"));
    let [_, permission, _, destination, cargo_lambda] = to_attach();
    run(&format!("{permission}\n{cargo_lambda}\n{destination}"));
    is_retried(ministack, "payments").await;

    let [destination, recursion, _, permission, cargo_lambda] = to_detach();
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

/// Asserts that detaching has undone everything that attaching changed about the function.
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

/// An event waits in the retry queue of a deleted stack, and the handler of another stack retries it.
pub(crate) async fn deleted_stack_leaves_its_queues_to_another(world: &World) {
    let (ministack, _) = (world.ministack().await, world.quick().await);
    let blocks = pages::blocks("docs/remove.md", "Remove Comeback").into_iter().map(|block| {
        block
            .replace("output comeback-2", "output quick")
            .replace("output comeback ", "output leaving ")
            .replace("--stack-name comeback", "--stack-name leaving")
    });
    let [output, delete_stack, drain, stop, delete_queues, delete_pauses] =
        <[String; 6]>::try_from(blocks.collect::<Vec<_>>())
            .unwrap_or_else(|blocks| panic!("not six blocks: {blocks:#?}"));

    let stack = ministack.deploy("leaving", "").await.unwrap_or_else(|error| panic!("{error}"));
    let (queue, dead_letters) = (stack.output("RetryQueueUrl"), stack.output("DeadLetterQueueUrl"));
    enable(ministack, stack.output("RetryHandlerName"), false).await;
    example_target(ministack, "leaver").await;
    send_failures_to(&ministack.shell(), stack.output("RetryQueueArn"), "leaver");
    ministack.invoke("leaver", &json!({"fail_times": 2, "error_type": "Left"}).to_string()).await;
    let waits = async || (held(ministack, queue).await == 1).then_some(());
    eventually("the failure to wait in the retry queue", waits).await;

    let shell = ministack
        .shell()
        .with("RETRY_QUEUE_URL", queue)
        .with("RETRY_QUEUE_ARN", stack.output("RetryQueueArn"))
        .with("DEAD_LETTER_QUEUE_URL", dead_letters)
        .with("PAUSES_PARAMETER", stack.output("PausesParameter"));
    let run =
        |script: &str| shell.run(&format!("{output}\n{script}")).unwrap_or_else(|error| panic!("{error}"));
    run("aws ssm put-parameter --type String --name \"$PAUSES_PARAMETER\" --value '{\"v\":1,\"pauses\":[]}'");
    let echo = "echo \"$RETRY_QUEUE_URL $DEAD_LETTER_QUEUE_URL $PAUSES_PARAMETER\"";
    let names = run(&format!("{delete_stack}\n{echo}"));
    assert_eq!(names.trim_end(), format!("{queue} {dead_letters} {}", stack.output("PausesParameter")));
    assert!(shell.run("aws cloudformation describe-stacks --stack-name leaving").is_err(), "it is gone");
    assert_eq!((held(ministack, queue).await, held(ministack, dead_letters).await), (1, 0));

    let mapping = run(&format!("{drain}\necho \"$MAPPING $ROLE\""));
    let (mapping, role) = mapping.trim_end().split_once(' ').expect("a mapping and a role");
    eventually("the event to succeed", async || {
        successes(ministack, "/aws/lambda/leaver", "Left").await.pop()
    })
    .await;
    let drained = async || (held(ministack, queue).await == 0).then_some(());
    eventually("the queue to be drained", drained).await;
    let shell = shell.with("MAPPING", mapping).with("ROLE", role);
    let all = format!("{stop}\n{delete_queues}\n{delete_pauses}");
    shell.run(&all).unwrap_or_else(|error| panic!("{error}"));
    assert!(shell.run("aws ssm get-parameter --name \"$PAUSES_PARAMETER\"").is_err(), "it is gone");
    for url in [queue, dead_letters] {
        let found = ministack.sqs.get_queue_attributes().queue_url(url).send().await;
        assert!(found.is_err(), "{url} is gone");
    }
}
