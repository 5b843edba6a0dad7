use comeback_tests::{MiniStack, Operator, deploy_by_hand, example_target};
use serde_json::{Value, json};

use crate::attach::{aws, detached_long_ago, is_retried, policies, recursion, settings, tags};
use crate::world::World;

/// If the handler was deployed with cargo-lambda, `attach` changes the allow-list in the handler's environment.
pub(crate) async fn a_handler_without_a_stack_is_changed_itself(world: &World) {
    const HANDLER: &str = "comeback-retry-handler";
    let ministack = world.by_hand().await;
    example_target(ministack, "invoices").await;
    let retry_queue_arn = deploy_by_hand(ministack).await;
    let operator = Operator::of(ministack);
    let comeback = |command: &str| operator.comeback(&format!("{command} --handler {HANDLER} --json --yes"));
    let variables = || {
        let query = "--query Environment.Variables";
        aws(ministack, &format!("lambda get-function-configuration --function-name {HANDLER} {query}"))
    };
    let before = variables();
    drop(comeback("attach invoices").json(0));
    assert_eq!(variables(), before, "the handler knew of it");
    assert_eq!(
        settings(ministack, "invoices", None)["DestinationConfig"]["OnFailure"]["Destination"],
        retry_queue_arn
    );

    example_target(ministack, "payments").await;
    let attached = comeback("attach payments").json(0)["functions"][0].take();
    assert_eq!((&attached["function"], &attached["done"]), (&json!("payments"), &json!(true)));
    let (invoices, payments) = (MiniStack::function_arn("invoices"), MiniStack::function_arn("payments"));
    let mut both = before.clone();
    both["TARGET_FUNCTIONS"] = json!(format!("{invoices},{payments}"));
    assert_eq!(variables(), both, "every other variable is as it was");
    assert!(policies(ministack, HANDLER).contains(&json!("invoke-payments")));
    is_retried(ministack, "payments").await;

    drop(comeback("detach payments").json(3));
    detached_long_ago(ministack, "payments");
    let waits = comeback("detach payments");
    assert!([0, 3].contains(&waits.code), "{}", waits.stderr);
    drop(comeback("detach payments --now").json(0));
    assert_eq!(variables(), before);
    let mut left = policies(ministack, HANDLER);
    left.sort_by_key(ToString::to_string);
    assert_eq!(left, ["invoke-invoices", "retry-handler"]);
    assert_eq!((policies(ministack, "payments").len(), tags(ministack, "payments")), (0, json!({})));
    assert_eq!(recursion(ministack, "payments"), "Terminate");
}

/// `attach` does not change a stack that lacks the parameter `TargetFunctions`, such as the stack of a CDK app.
pub(crate) async fn a_stack_without_the_parameter_is_left_alone(world: &World) {
    const FUNCTION: &str = "attached-of-an-app";
    world.built().await;
    let ministack = world.ministack().await;
    example_target(ministack, FUNCTION).await;
    let template = json!({
        "Resources": {
            "Retries": {"Type": "AWS::SQS::Queue"},
            "DeadLetters": {"Type": "AWS::SQS::Queue"},
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
            }}},
            "Handler": {"Type": "AWS::Lambda::Function", "Properties": {
                "Runtime": "python3.12",
                "Handler": "index.handler",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Code": {"ZipFile": "def handler(event, context): pass"},
                "Environment": {"Variables": {
                    "RETRY_QUEUE_URL": {"Ref": "Retries"},
                    "DEAD_LETTER_QUEUE_URL": {"Ref": "DeadLetters"},
                    "TARGET_FUNCTIONS": "",
                }},
            }},
        },
    });
    let create = "aws cloudformation create-stack --stack-name app --capabilities CAPABILITY_IAM --template-body \"$TEMPLATE\"\n\
        aws cloudformation wait stack-create-complete --stack-name app";
    let created = ministack.shell().with("TEMPLATE", template.to_string()).run(create);
    created.unwrap_or_else(|error| panic!("{error}"));

    let operator = Operator::of(ministack);
    let refused = operator.comeback(&format!("attach {FUNCTION} --stack app --yes"));
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    let arn = MiniStack::function_arn(FUNCTION);
    let line = format!("`retries.attach(lambda.Function.fromFunctionArn(this, '{FUNCTION}', '{arn}'))`");
    assert!(refused.stderr.contains(&line), "{}", refused.stderr);
    assert_eq!(settings(ministack, FUNCTION, None), Value::Null);
    assert_eq!((policies(ministack, FUNCTION).len(), tags(ministack, FUNCTION)), (0, json!({})));

    // The handler has no environment variable `PAUSES` either.
    for command in ["pause --all --reason maintenance", "retry --all"] {
        let unread = operator.comeback(&format!("{command} --stack app --yes"));
        assert_eq!(unread.code, 3, "{}", unread.stderr);
        let remedy = "set its variable PAUSES to an SSM parameter's name";
        assert!(unread.stderr.contains(remedy), "{}", unread.stderr);
    }
}

pub(crate) async fn settings_that_a_stack_owns_are_left_alone(world: &World) {
    let (ministack, stack) = (world.ministack().await, world.attaching().await);
    let (operator, example) = (Operator::of(ministack), stack.output("ExampleTargetName"));
    let command = |verb: &str| operator.comeback(&format!("{verb} {example} --stack attaching --yes"));
    // Attaching sets the recursion setting, which MiniStack ignores in the template.
    drop(command("attach").ended(0));
    let before =
        aws(ministack, &format!("lambda list-function-event-invoke-configs --function-name {example}"));
    let refused = command("detach --now");
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("stack attaching owns the asynchronous invocation settings"),
        "{}",
        refused.stderr
    );
    let after =
        aws(ministack, &format!("lambda list-function-event-invoke-configs --function-name {example}"));
    assert_eq!(after, before);
}
