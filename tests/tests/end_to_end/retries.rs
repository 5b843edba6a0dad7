use std::collections::HashSet;
use std::time::Duration;

use aws_sdk_lambda::types::EventSourceMappingConfiguration;
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use comeback_tests::{MiniStack, Stack, dead_letter, eventually, log_lines, plain_target, scratch};
use comeback_timelapse::Depth;
use serde_json::{Value, json};

use crate::attach::send_failures_to;
use crate::world::World;

const LIMIT: Duration = Duration::from_secs(90);

/// With every setting as shipped.
pub(crate) async fn fails_three_times_and_succeeds_on_the_fourth(world: &World) {
    succeeds_on_the_fourth(world.ministack().await, world.comeback().await).await;
}

/// The example target of this stack fails three times, and is retried with one idempotency key until it succeeds.
pub(crate) async fn succeeds_on_the_fourth(ministack: &MiniStack, stack: &Stack) {
    let event = json!({"fail_times": 3, "error_type": "ThreeTimes"});
    ministack.invoke(stack.output("ExampleTargetName"), &event.to_string()).await;
    let succeeded = eventually("the fourth invocation", LIMIT, async || {
        successes(ministack, stack.target_logs(), "ThreeTimes").await.pop()
    })
    .await;
    assert_eq!(succeeded["attempt"], 3);
    let failed = failures(ministack, stack.target_logs(), "ThreeTimes").await;
    assert_eq!(failed.iter().map(|line| &line["attempt"]).collect::<Vec<_>>(), [0, 1, 2]);
    // MiniStack's records lack the first invocation's request id, so attempt 0 has a key of its own here.
    let keys: HashSet<_> = failed[1..].iter().chain([&succeeded]).map(key).collect();
    assert_eq!(keys.len(), 1, "attempts 1, 2 and 3 share one idempotency key: {keys:?}");
}

pub(crate) async fn is_not_harmed_by_a_message_that_is_no_json(world: &World) {
    let (ministack, stack) = (world.ministack().await, world.comeback().await);
    let function_arn = MiniStack::function_arn(stack.output("ExampleTargetName"));
    let mates = ["mate-0", "mate-1", "mate-2"];
    let mut bodies = mates.map(|request_id| {
        let payload = json!({"fail_times": 1});
        json!({"requestContext": {"functionArn": function_arn, "requestId": request_id}, "requestPayload": payload})
            .to_string()
    });
    let bodies = [&mut bodies[..], &mut ["this is no JSON".to_owned()]].concat();
    let entries = bodies.iter().enumerate().map(|(index, body)| {
        let entry = SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(body);
        entry.build().expect("an entry with an id and a body is whole")
    });
    let batch = ministack.sqs.send_message_batch().queue_url(stack.output("RetryQueueUrl"));
    batch.set_entries(Some(entries.collect())).send().await.expect("SQS takes the batch");

    let letter =
        dead_letter(ministack, stack.output("DeadLetterQueueUrl"), "the message that is no JSON", |letter| {
            letter.body == "this is no JSON"
        })
        .await;
    assert_eq!(letter.attributes["Reason"], "malformed_record");
    eventually("every batch-mate to be retried", LIMIT, async || {
        let lines = log_lines(ministack, stack.target_logs()).await;
        let retried: Vec<_> = lines.iter().filter(|line| line["attempt"] == 1).map(key).collect();
        mates.iter().all(|mate| retried.contains(&json!(mate))).then_some(())
    })
    .await;
}

pub(crate) async fn loses_nothing_while_the_handler_is_stopped(world: &World) {
    const EVENTS: usize = 5;
    let (ministack, stack) = (world.ministack().await, world.quick().await);
    let handler = stack.output("RetryHandlerName");

    enable(ministack, handler, false).await;
    let event = json!({"fail_times": 2, "error_type": "Stopped"}).to_string();
    for _ in 0..EVENTS {
        ministack.invoke(stack.output("ExampleTargetName"), &event).await;
    }
    eventually("the failures to wait in the retry queue", LIMIT, async || {
        (depth(ministack, stack.output("RetryQueueUrl")).await.visible >= EVENTS).then_some(())
    })
    .await;
    let failed = failures(ministack, stack.target_logs(), "Stopped").await;
    assert!(failed.iter().all(|line| line["attempt"] == 0), "nothing is retried while stopped: {failed:?}");

    enable(ministack, handler, true).await;
    let succeeded = eventually("every event to succeed", LIMIT, async || {
        let succeeded = successes(ministack, stack.target_logs(), "Stopped").await;
        (succeeded.len() == EVENTS).then_some(succeeded)
    })
    .await;
    assert!(succeeded.iter().all(|line| line["attempt"] == 2), "{succeeded:?}");
}

pub(crate) async fn inline_style_needs_no_change_in_the_target(world: &World) {
    let (ministack, stack) = (world.ministack().await, world.quick().await);
    plain_target(ministack, "plain").await;
    send_failures_to(&ministack.shell(), stack.output("RetryQueueArn"), "plain");
    let ledger = scratch("inline").join("ledger");
    let event =
        json!({"order": 7, "refusals": 2, "ledger": ledger, "amount": 1.5, "lines": [{"sku": "a"}, null]});
    ministack.invoke("plain", &event.to_string()).await;
    let received = eventually("the order to be taken", LIMIT, async || {
        let lines = log_lines(ministack, "/aws/lambda/plain").await;
        let received = lines.iter().filter_map(|line| line.get("received").cloned()).collect::<Vec<_>>();
        lines.iter().any(|line| line["taken"] == 7).then_some(received)
    })
    .await;
    for (attempt, mut received) in received.into_iter().enumerate() {
        let metadata = received.as_object_mut().and_then(|members| members.remove("_retry_metadata"));
        assert_eq!(received, event, "attempt {attempt} brings every member of the original");
        match metadata {
            Some(metadata) => {
                assert_eq!((&metadata["attempt"], &metadata["style"]), (&json!(attempt), &json!("inline")))
            }
            None => assert_eq!(attempt, 0, "a retry says which it is"),
        }
    }
}

/// The lines on which the example target says that it failed with this error.
async fn failures(ministack: &MiniStack, group: &str, error_type: &str) -> Vec<Value> {
    let lines = log_lines(ministack, group).await;
    lines.into_iter().filter(|line| line["error_type"] == error_type).collect()
}

/// The lines on which the example target says that it succeeded with an event that had failed with this error.
pub(crate) async fn successes(ministack: &MiniStack, group: &str, error_type: &str) -> Vec<Value> {
    let keys: Vec<_> = failures(ministack, group, error_type).await.iter().map(key).collect();
    let lines = log_lines(ministack, group).await;
    lines.into_iter().filter(|line| line["message"] == "succeeded" && keys.contains(&key(line))).collect()
}

fn key(line: &Value) -> Value {
    line["idempotency_key"].clone()
}

/// Messages of a queue, whatever they wait for.
pub(crate) async fn held(ministack: &MiniStack, queue_url: &str) -> usize {
    let Depth { visible, in_flight, delayed } = depth(ministack, queue_url).await;
    visible + in_flight + delayed
}

/// In one call: between two, a message can turn from hidden to visible and be in neither answer.
pub(crate) async fn depth(ministack: &MiniStack, queue_url: &str) -> Depth {
    let names = [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        QueueAttributeName::ApproximateNumberOfMessagesDelayed,
    ];
    let attributes = ministack.sqs.get_queue_attributes().queue_url(queue_url);
    let attributes = attributes.set_attribute_names(Some(names.to_vec())).send().await;
    let attributes = attributes.expect("SQS answers").attributes.unwrap_or_default();
    let count = |name: &_| attributes.get(name).and_then(|count| count.parse().ok());
    let [visible, in_flight, delayed] = names.map(|name| count(&name).unwrap_or_else(|| panic!("no {name}")));
    Depth { visible, in_flight, delayed }
}

/// Has the retry handler poll its queue, or not.
pub(crate) async fn enable(ministack: &MiniStack, handler: &str, enabled: bool) {
    let mapping = mapping(ministack, handler).await.uuid.expect("a mapping has a UUID");
    let change = ministack.lambda.update_event_source_mapping().uuid(mapping).enabled(enabled);
    change.send().await.expect("Lambda changes the mapping");
}

/// What brings the retry handler its messages.
pub(crate) async fn mapping(ministack: &MiniStack, handler: &str) -> EventSourceMappingConfiguration {
    let mappings = ministack.lambda.list_event_source_mappings().function_name(handler).send().await;
    mappings.expect("Lambda answers").event_source_mappings.unwrap_or_default().remove(0)
}
