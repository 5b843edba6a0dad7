//! Two functions in one stack have policies of their own, and one of the policies changes while an event is waiting.

use comeback_tests::{MiniStack, Stack, dead_letter, eventually, example_target, log_lines};
use serde_json::{Value, json};

use crate::attach::send_failures_to;
use crate::world::World;

pub(crate) async fn policies_of_the_template_change_while_an_event_waits(world: &World) {
    let ministack = world.ministack().await;
    world.built().await;
    let any = MiniStack::function_arn("*");
    let policies = "export MAX_RETRIES=0; ruled-* BACKOFFS=20 JITTER=none";
    let parameters = format!("TargetFunctions={any} FunctionPolicies={}", policies.replace(' ', "\t"));
    let stack = ministack.deploy("ruled", &parameters).await.unwrap_or_else(|error| panic!("{error}"));
    example_target(ministack, "export").await;
    send_failures_to(&ministack.shell(), stack.output("RetryQueueArn"), "export");

    ministack.invoke("export", r#"{"fail": true}"#).await;
    let exported = dead_lettered(ministack, &stack, "export").await;
    assert_eq!((&exported["reason"], &exported["retries_made"]), (&json!("max_retries"), &json!(0)));

    let ruled = stack.output("ExampleTargetName");
    let waits = waiting(ministack, &stack, ruled).await;
    assert_eq!((&waits["policy"], &waits["delay"]), (&json!("ruled-*"), &json!(20)));
    update(
        ministack,
        &stack,
        &format!(
            "--use-previous-template --parameters ParameterKey=TargetFunctions,UsePreviousValue=true \
             ParameterKey=Architecture,UsePreviousValue=true \
             'ParameterKey=FunctionPolicies,ParameterValue={policies} MAX_RETRIES=0'"
        ),
    );
    let dead_letter = dead_lettered(ministack, &stack, ruled).await;
    assert_eq!(dead_letter["reason"], "max_retries");
}

/// Invokes a function with a failing event. Returns the log line for a wait of at least ten seconds.
pub(crate) async fn waiting(ministack: &MiniStack, stack: &Stack, function: &str) -> Value {
    ministack.invoke(function, r#"{"fail": true, "error_type": "Ruled"}"#).await;
    eventually(&format!("an event of {function} to wait"), async || {
        let waits = |line: &Value| {
            let is_long = line["delay"].as_u64().is_some_and(|delay| delay >= 10);
            line["action"] == "defer" && line["error_type"] == "Ruled" && is_long
        };
        log_lines(ministack, stack.handler_logs()).await.into_iter().find(waits)
    })
    .await
}

pub(crate) async fn dead_lettered(ministack: &MiniStack, stack: &Stack, function: &str) -> Value {
    let dead_letter = dead_letter(ministack, stack.output("DeadLetterQueueUrl"), function, |dead_letter| {
        dead_letter
            .attributes
            .get("TargetFunction")
            .is_some_and(|target| target.ends_with(&format!(":{function}")))
    })
    .await;
    serde_json::from_str(&dead_letter.body).expect("the body is JSON")
}

/// Updates a stack with these arguments for the AWS CLI, and waits until the update is complete.
pub(crate) fn update(ministack: &MiniStack, stack: &Stack, arguments: &str) {
    let name = stack.name();
    ministack
        .shell()
        .run(&format!(
            "aws cloudformation update-stack --stack-name {name} --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND {arguments}\n\
             aws cloudformation wait stack-update-complete --stack-name {name}"
        ))
        .unwrap_or_else(|error| panic!("{error}"));
}
