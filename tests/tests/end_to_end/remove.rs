use std::time::Duration;

use comeback_tests::{deploy, eventually, example_target, pages};
use serde_json::json;

use crate::attach::send_failures_to;
use crate::retries::{enable, held, successes};
use crate::world::World;

/// An event waits in the queue of a stack that is deleted, and the handler of another stack retries it.
pub(crate) async fn a_deleted_stack_leaves_its_queues_and_another_drains_them(world: &World) {
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

    let stack = deploy(&ministack.shell(), "leaving", "").unwrap_or_else(|error| panic!("{error}"));
    let (queue, dead_letters) = (stack.output("RetryQueueUrl"), stack.output("DeadLetterQueueUrl"));
    enable(ministack, stack.output("RetryHandlerName"), false).await;
    example_target(ministack, "leaver").await;
    send_failures_to(&ministack.shell(), stack.output("RetryQueueArn"), "leaver");
    ministack.invoke("leaver", &json!({"fail_times": 2, "error_type": "Left"}).to_string()).await;
    let limit = Duration::from_secs(90);
    let waits = async || (held(ministack, queue).await == 1).then_some(());
    eventually("the failure to wait in the retry queue", limit, waits).await;

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
    eventually("the event to succeed", limit, async || {
        successes(ministack, "/aws/lambda/leaver", "Left").await.pop()
    })
    .await;
    let drained = async || (held(ministack, queue).await == 0).then_some(());
    eventually("the queue to be drained", limit, drained).await;
    let shell = shell.with("MAPPING", mapping).with("ROLE", role);
    let all = format!("{stop}\n{delete_queues}\n{delete_pauses}");
    shell.run(&all).unwrap_or_else(|error| panic!("{error}"));
    assert!(shell.run("aws ssm get-parameter --name \"$PAUSES_PARAMETER\"").is_err(), "it is gone");
    for url in [queue, dead_letters] {
        let found = ministack.sqs.get_queue_attributes().queue_url(url).send().await;
        assert!(found.is_err(), "{url} is gone");
    }
}
