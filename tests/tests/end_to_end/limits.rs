use std::time::Duration;

use comeback_tests::{MiniStack, Shell, Stack, dead_letter, eventually, log_lines, plain_target, scratch};
use serde_json::{Value, json};

use crate::attach::send_failures_to;
use crate::world::World;

pub(crate) async fn gives_up_after_max_retries_with_all_that_is_known(world: &World) {
    is_given_up_after(2, world.ministack().await, world.quick().await).await;
}

/// An event that fails this stack's example target always is dead-lettered after so many retries, whole.
pub(crate) async fn is_given_up_after(retries: u64, ministack: &MiniStack, stack: &Stack) {
    let event =
        json!({"fail": true, "error_type": "GivenUp", "amount": 1.5, "text": "\u{e9}\"\\", "nothing": null});
    let function = stack.output("ExampleTargetName");
    ministack.invoke(function, &event.to_string()).await;
    let letter = dead_letter(ministack, stack.output("DeadLetterQueueUrl"), "the event given up", |letter| {
        letter.attributes.get("ErrorType").is_some_and(|error| error == "GivenUp")
    })
    .await;
    let body: Value = serde_json::from_str(&letter.body).expect("the body is JSON");
    let function_arn = MiniStack::function_arn(function);
    assert_eq!(body["reason"], "max_retries");
    assert_eq!(body["retries_made"], retries);
    assert_eq!(body["function_arn"], function_arn);
    let message = format!("attempt {retries} was asked to fail");
    assert_eq!(body["error"], json!({"type": "GivenUp", "message": message}));
    assert_eq!(body["payload"], event);
    assert!(body["dead_lettered_at"].as_u64() >= body["initial_timestamp"].as_u64(), "{body}");
    let attributes =
        [("Reason", "max_retries"), ("RetriesMade", &retries.to_string()), ("TargetFunction", &function_arn)];
    for (name, value) in attributes {
        assert_eq!(letter.attributes[name], value, "{name}");
    }
}

pub(crate) async fn never_invokes_a_function_outside_the_allow_list(world: &World) {
    let (ministack, stack) = (world.ministack().await, world.comeback().await);
    plain_target(ministack, "stranger").await;
    send_failures_to(&ministack.shell(), stack.output("RetryQueueArn"), "stranger");
    let event = json!({"order": 8, "refusals": 1, "ledger": scratch("strange").join("ledger")});
    ministack.invoke("stranger", &event.to_string()).await;
    let letter =
        dead_letter(ministack, stack.output("DeadLetterQueueUrl"), "the stranger's event", |letter| {
            letter.body.contains("function:stranger")
        })
        .await;
    let body: Value = serde_json::from_str(&letter.body).expect("the body is JSON");
    assert_eq!((&body["reason"], &body["payload"]), (&json!("target_not_allowed"), &event));
    let invoked = eventually("the stranger's log", Duration::from_secs(30), async || {
        let lines = log_lines(ministack, "/aws/lambda/stranger").await;
        let invoked = lines.iter().filter(|line| line.get("received").is_some()).count();
        (invoked > 0).then_some(invoked)
    })
    .await;
    assert_eq!(invoked, 1, "only its own first invocation");
}

pub(crate) async fn the_handlers_role_allows_exactly_what_it_does(world: &World) {
    let stack = world.quick().await;
    let example = MiniStack::function_arn(stack.output("ExampleTargetName"));
    let shell = world.ministack().await.shell().with("ROLE", stack.output("RetryHandlerRoleName"));
    let iam = |command: &str| iam(&shell, command);
    assert_eq!(iam("list-attached-role-policies --role-name $ROLE")["AttachedPolicies"], json!([]));
    assert_eq!(iam("list-role-policies --role-name $ROLE")["PolicyNames"], json!(["retry-handler"]));
    let policy = iam("get-role-policy --role-name $ROLE --policy-name retry-handler");
    let queue = stack.output("RetryQueueArn");
    let dead_letter_queue = queue.replace("RetryQueue", "DeadLetterQueue");
    let statements = policy["PolicyDocument"]["Statement"].as_array().expect("a policy has statements");
    let mut allowed = Vec::new();
    for statement in statements {
        assert_eq!(statement["Effect"], "Allow");
        assert_eq!(
            statement.as_object().map(serde_json::Map::len),
            Some(4),
            "Sid, Effect, Action, Resource: {statement}"
        );
        allowed.push((listed(&statement["Action"]), listed(&statement["Resource"])));
    }
    assert_eq!(allowed[1].0, ["sqs:SendMessage"]);
    // A queue's name ends in characters of CloudFormation's choice.
    let dead_letter_queue = dead_letter_queue.rsplit_once('-').expect("a generated name").0;
    assert!(allowed[1].1[0].starts_with(dead_letter_queue) && allowed[1].1.len() == 1, "{allowed:?}");
    allowed.remove(1);
    let logs = MiniStack::function_arn("").replace("lambda", "logs").replace("function:", "log-group:")
        + stack.handler_logs()
        + ":*";
    let parameter = MiniStack::function_arn("").replace("lambda", "ssm").replace("function:", "parameter")
        + stack.output("PausesParameter");
    let expected = [
        (
            &[
                "sqs:ReceiveMessage",
                "sqs:DeleteMessage",
                "sqs:GetQueueAttributes",
                "sqs:ChangeMessageVisibility",
            ][..],
            vec![queue.to_owned()],
        ),
        (&["sqs:SendMessage"], vec![queue.to_owned()]),
        (&["ssm:GetParameter"], vec![parameter]),
        (&["lambda:InvokeFunction"], vec![example.clone(), example + ":*"]),
        (&["lambda:InvokeFunction"], vec![MiniStack::function_arn("*"), MiniStack::function_arn("*:*")]),
        (&["logs:CreateLogStream", "logs:PutLogEvents"], vec![logs]),
    ];
    let expected =
        expected.map(|(actions, resources)| (actions.iter().map(ToString::to_string).collect(), resources));
    assert_eq!(allowed, expected);
}

pub(crate) async fn a_refused_parameter_fails_the_deployment(world: &World) {
    world.comeback().await;
    let shell = world.ministack().await.shell();
    for refused in [
        "MaxAge=59",
        "MaxAge=1209601",
        "MaxRetries=-1",
        "MaxRetries=10001",
        "BaseBackoff=0",
        "BaseBackoff=43171",
        "MaxBackoff=0",
        "MaxBackoff=43171",
        "Jitter=some",
        "Envelope=bare",
        "HideUpTo=55001",
        "MaximumConcurrency=1",
        "Example=maybe",
        "Alarms=yes",
        "AlarmTopicArn=on-call",
        "AlarmTopicArn=arn:aws:sns:eu-west-1:123456789012:on-call.fifo",
        "Dashboard=maybe",
        "TargetFunctions=orders",
        r"TargetFunctions=arn:aws:lambda:eu-west-1:123456789012:function:orders:\$latest",
    ] {
        let (name, value) = refused.split_once('=').expect("a name and a value");
        let error = shell
            .run(&format!(
                "aws cloudformation create-change-set --stack-name refused --change-set-name refused \
                 --change-set-type CREATE --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND \
                 --template-body file://template.yaml --parameters ParameterKey={name},ParameterValue={value}"
            ))
            .expect_err(refused);
        assert!(error.contains("ValidationError") && error.contains(name), "{refused}: {error}");
    }
}

pub(crate) fn iam(shell: &Shell, command: &str) -> Value {
    let answer =
        shell.run(&format!("aws iam {command} --output json")).unwrap_or_else(|error| panic!("{error}"));
    serde_json::from_str(&answer).expect("the CLI prints JSON")
}

/// IAM takes one for a list of one.
fn listed(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect(),
        value => value.as_str().map(str::to_owned).into_iter().collect(),
    }
}
