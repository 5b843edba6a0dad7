use std::fs;

use comeback_tests::{cdk, dead_letter, root, scratch};
use serde_json::{Value, json};

use crate::limits::is_given_up_after;
use crate::retries::succeeds_on_the_fourth;
use crate::world::World;

/// `maxRetries` of `infra/example/app.ts`.
const MAX_RETRIES: u64 = 4;

pub(crate) async fn the_cdk_example_succeeds_on_the_fourth_invocation(world: &World) {
    succeeds_on_the_fourth(world.ministack().await, world.cdk_example().await).await;
}

pub(crate) async fn the_cdk_example_gives_up_with_all_that_is_known(world: &World) {
    is_given_up_after(MAX_RETRIES, world.ministack().await, world.cdk_example().await).await;
}

/// The Python function counts its attempts by the key that the inline style adds.
pub(crate) async fn the_cdk_example_retries_a_function_that_reads_the_envelope_inline(world: &World) {
    let (ministack, stack) = (world.ministack().await, world.cdk_example().await);
    let event = json!({"fail_times": MAX_RETRIES + 1, "order": 9});
    ministack.invoke(stack.output("OrdersName"), &event.to_string()).await;
    let letter = dead_letter(ministack, stack.output("DeadLetterQueueUrl"), "the order given up", |letter| {
        letter.attributes.get("ErrorType").is_some_and(|error| error == "RuntimeError")
    })
    .await;
    let body: Value = serde_json::from_str(&letter.body).expect("the body is JSON");
    assert_eq!((&body["reason"], &body["payload"]), (&json!("max_retries"), &event));
    assert_eq!(body["error"]["message"], format!("attempt {MAX_RETRIES} was asked to fail"));
}

/// Out of the same source and by the same tool as `sam build` does: the same bytes.
pub(crate) async fn the_construct_builds_the_handler_of_the_checkout(world: &World) {
    world.built().await;
    let output = scratch("cdk-build");
    cdk(&world.ministack().await.shell(), &output, "synth --quiet").unwrap_or_else(|error| panic!("{error}"));
    let built = fs::read(root().join(".aws-sam/build/RetryHandler/bootstrap")).expect("sam built one");
    let assets = fs::read_dir(output).expect("the CDK synthesized").flatten();
    let bootstraps: Vec<_> =
        assets.filter_map(|asset| fs::read(asset.path().join("bootstrap")).ok()).collect();
    assert_eq!(bootstraps.len(), 2, "the handler's and the example target's");
    assert!(bootstraps.contains(&built));
}
