use std::collections::HashSet;

use aws_sdk_lambda::types::EventSourceMappingConfiguration;
use aws_sdk_sqs::types::QueueAttributeName;
use comeback_tests::{MiniStack, dead_letter, eventually, log_lines};
use comeback_timelapse::Depth;
use serde_json::{Value, json};

use crate::world::World;

/// All retries have the same idempotency key.
pub(crate) async fn succeeds_on_the_fourth_invocation(world: &World) {
    let (ministack, stack) = (world.ministack().await, world.comeback().await);
    let event = json!({"fail_times": 3, "error_type": "ThreeTimes"});
    ministack.invoke(stack.output("ExampleTargetName"), &event.to_string()).await;
    let succeeded = eventually("the fourth invocation", async || {
        successes(ministack, stack.target_logs(), "ThreeTimes").await.pop()
    })
    .await;
    assert_eq!(succeeded["attempt"], 3);
    let failed = failures(ministack, stack.target_logs(), "ThreeTimes").await;
    assert_eq!(failed.iter().map(|line| &line["attempt"]).collect::<Vec<_>>(), [0, 1, 2]);
    let keys: HashSet<_> = failed[1..].iter().chain([&succeeded]).map(key).collect();
    assert_eq!(keys.len(), 1, "{keys:?}");
}

pub(crate) async fn dead_letters_after_max_retries(world: &World) {
    let (ministack, stack) = (world.ministack().await, world.quick().await);
    let event = json!({"fail": true, "error_type": "OrderRefused", "amount": 1.5, "text": "\u{e9}\"\\", "nothing": null});
    let function = stack.output("ExampleTargetName");
    ministack.invoke(function, &event.to_string()).await;
    let dead_letter = dead_letter(
        ministack,
        stack.output("DeadLetterQueueUrl"),
        "the dead-lettered event",
        |dead_letter| dead_letter.attributes.get("ErrorType").is_some_and(|error| error == "OrderRefused"),
    )
    .await;
    let body: Value = serde_json::from_str(&dead_letter.body).expect("the body is JSON");
    let function_arn = MiniStack::function_arn(function);
    assert_eq!(body["reason"], "max_retries");
    assert_eq!(body["retries_made"], 2);
    assert_eq!(body["function_arn"], function_arn);
    assert_eq!(body["error"], json!({"type": "OrderRefused", "message": "attempt 2 was asked to fail"}));
    assert_eq!(body["payload"], event);
    assert!(body["dead_lettered_at"].as_u64() >= body["initial_timestamp"].as_u64(), "{body}");
    for (name, value) in [("Reason", "max_retries"), ("RetriesMade", "2"), ("TargetFunction", &function_arn)]
    {
        assert_eq!(dead_letter.attributes[name], value, "{name}");
    }
}

async fn failures(ministack: &MiniStack, group: &str, error_type: &str) -> Vec<Value> {
    let lines = log_lines(ministack, group).await;
    lines.into_iter().filter(|line| line["error_type"] == error_type).collect()
}

/// Returns the example target's log lines about the success of events that had failed with this error.
pub(crate) async fn successes(ministack: &MiniStack, group: &str, error_type: &str) -> Vec<Value> {
    let keys: Vec<_> = failures(ministack, group, error_type).await.iter().map(key).collect();
    let lines = log_lines(ministack, group).await;
    lines.into_iter().filter(|line| line["message"] == "succeeded" && keys.contains(&key(line))).collect()
}

fn key(line: &Value) -> Value {
    line["idempotency_key"].clone()
}

pub(crate) async fn held(ministack: &MiniStack, queue_url: &str) -> usize {
    let Depth { visible, in_flight, delayed } = depth(ministack, queue_url).await;
    visible + in_flight + delayed
}

/// Counts the visible, hidden and delayed messages in a queue. One call returns all three counts, so a message that
/// changes state is not missed.
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

pub(crate) async fn enable(ministack: &MiniStack, handler: &str, enabled: bool) {
    let mapping = mapping(ministack, handler).await.uuid.expect("a mapping has a UUID");
    let change = ministack.lambda.update_event_source_mapping().uuid(mapping).enabled(enabled);
    change.send().await.expect("Lambda changes the mapping");
}

pub(crate) async fn mapping(ministack: &MiniStack, handler: &str) -> EventSourceMappingConfiguration {
    let mappings = ministack.lambda.list_event_source_mappings().function_name(handler).send().await;
    mappings.expect("Lambda answers").event_source_mappings.unwrap_or_default().remove(0)
}
