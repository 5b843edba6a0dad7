//! Attaching and detaching functions that share a role, a stack or an alias with others.

use comeback_tests::{MiniStack, Operator, eventually, example_target, plain_target};
use serde_json::{Value, json};

use crate::attach::{
    STACK, aws, detached_long_ago, parameter, patiently, policies, recursion, settings, tags,
};
use crate::world::World;

/// Repeats `detach` until the command leaves nothing to be done later, and returns the last output.
async fn detached(operator: &Operator, arguments: &str) -> String {
    eventually(&format!("{arguments} to end"), async || {
        let ran = patiently(operator, arguments).await;
        (ran.code == 0).then_some(ran.stdout)
    })
    .await
}

/// Attaches three existing functions and one missing function, with one plan and one update of the stack.
pub(crate) async fn several_functions_are_attached_at_once(world: &World) {
    const THREE: [&str; 3] = ["several-orders", "several-invoices", "several-refunds"];
    let ministack = world.ministack().await;
    let _stack = world.deploy("several", "").await;
    for function in THREE {
        example_target(ministack, function).await;
    }
    let operator = Operator::of(ministack);
    let updates = || {
        let events = aws(ministack, "cloudformation describe-stack-events --stack-name several");
        let is_begun = |event: &&Value| {
            event["ResourceStatus"] == "UPDATE_IN_PROGRESS" && event["LogicalResourceId"] == "several"
        };
        events["StackEvents"].as_array().map_or(0, |events| events.iter().filter(is_begun).count())
    };
    let listed = || {
        let stack = aws(ministack, "cloudformation describe-stacks --stack-name several");
        let parameters = stack["Stacks"][0]["Parameters"].as_array().cloned().unwrap_or_default();
        parameters
            .into_iter()
            .find(|it| it["ParameterKey"] == "TargetFunctions")
            .expect("it has one")
            .to_string()
    };
    let before = updates();
    let all = format!("{} no-such-function {} {}", THREE[0], THREE[1], THREE[2]);
    let dry = operator.comeback(&format!("attach {all} --stack several --dry-run"));
    assert_eq!(dry.code, 3, "{}{}", dry.stdout, dry.stderr);
    for function in THREE {
        assert!(dry.stdout.contains(&format!("attach {function}:\n")), "{}", dry.stdout);
        assert!(!listed().contains(&MiniStack::function_arn(function)), "{function}");
    }
    let attached = operator.comeback(&format!("attach {all} --stack several --yes"));
    let failed =
        "1 of 4 functions failed:\n  no-such-function: no-such-function cannot be attached: Lambda has no";
    assert!(attached.code == 3 && attached.stderr.contains(failed), "{}", attached.stderr);
    for function in THREE {
        assert!(listed().contains(&MiniStack::function_arn(function)), "{function}");
        assert!(
            !settings(ministack, function, None)["DestinationConfig"]["OnFailure"].is_null(),
            "{function}"
        );
    }
    assert!(updates() == before + 1, "one update of the stack: {before}, {}", updates());
    let again =
        operator.comeback(&format!("attach {} --stack several --json --yes", THREE.join(" "))).json(0);
    let done = |function: &Value| (&function["done"], &function["differences"]) == (&json!(true), &json!([]));
    assert!(
        again["functions"].as_array().is_some_and(|all| all.len() == 3 && all.iter().all(done)),
        "{again}"
    );

    for function in THREE {
        detached_long_ago(ministack, function);
    }
    let detach = format!("detach {} --stack several --now --yes", THREE.join(" "));
    let ran = operator.comeback(&detach);
    assert!(ran.code == 0 || ran.code == 3, "{}{}", ran.stdout, ran.stderr);
    for function in THREE {
        assert!(
            settings(ministack, function, None)["DestinationConfig"]["OnFailure"].is_null(),
            "{function}"
        );
    }
}

pub(crate) async fn a_function_is_moved_to_another_stack(world: &World) {
    const FUNCTION: &str = "attached-moved";
    let (ministack, pausing) = (world.ministack().await, world.pausing().await);
    let attaching = world.attaching().await;
    example_target(ministack, FUNCTION).await;
    let first = Operator::of(ministack);
    drop(patiently(&first, &format!("attach {FUNCTION} {STACK} --yes")).await.ended(0));

    let second = Operator::of_command(ministack, "attach", pausing, FUNCTION);
    let attach = format!("attach {FUNCTION} --stack pausing --json --yes");
    let refused = second.comeback(&attach);
    let named = format!("{FUNCTION} is attached to stack attaching, not to stack pausing");
    assert!(refused.code == 3 && refused.stderr.contains(&named), "{}", refused.stderr);
    drop(second.comeback(&format!("{attach} --move")).json(0));
    let destination = |function| {
        settings(ministack, function, None)["DestinationConfig"]["OnFailure"]["Destination"].clone()
    };
    assert_eq!(destination(FUNCTION), pausing.output("RetryQueueArn"));
    assert_eq!(tags(ministack, FUNCTION)["comeback:on-failure"], "none", "what was there before either");

    let checked = first.comeback(&format!("doctor {FUNCTION} {STACK} --only CB102 --json")).json(0);
    let found = checked["checks"][0]["found"].as_str().expect("text");
    assert!(
        found.starts_with("it is moving to stack pausing: its failures have not come here since 20"),
        "{found}"
    );

    let left = Operator::of_command(ministack, "detach", attaching, FUNCTION);
    aws(
        ministack,
        &format!(
            "lambda tag-resource --resource {} --tags '{{\"comeback:moved\":\"2020-01-01T00:00:00.000Z\"}}'",
            MiniStack::function_arn(FUNCTION)
        ),
    );
    drop(detached(&left, &format!("detach {FUNCTION} {STACK} --yes")).await);
    assert!(!parameter(ministack).contains(&MiniStack::function_arn(FUNCTION)));
    assert_eq!(destination(FUNCTION), pausing.output("RetryQueueArn"), "the second stack's");
    assert_eq!((policies(ministack, FUNCTION).len(), recursion(ministack, FUNCTION)), (1, json!("Allow")));

    // Other tests make the pauses of this stack unreadable for a while.
    let detach = format!("detach {FUNCTION} --stack pausing --now --yes");
    let is_refused = async || (first.comeback(&detach).code == 3).then_some(());
    eventually("the function to be left for later", is_refused).await;
    detached_long_ago(ministack, FUNCTION);
    drop(detached(&first, &detach).await);
    assert_eq!(settings(ministack, FUNCTION, None), Value::Null);
    assert_eq!((policies(ministack, FUNCTION).len(), tags(ministack, FUNCTION)), (0, json!({})));
}

pub(crate) async fn detach_ends_with_a_shared_role_or_a_deleted_function(world: &World) {
    const ONE: &str = "attached-sharing";
    const TWO: &str = "attached-deleted";
    let (ministack, stack) = (world.ministack().await, world.attaching().await);
    plain_target(ministack, ONE).await;
    plain_target(ministack, TWO).await;
    let role = aws(ministack, &format!("iam get-role --role-name {ONE}"))["Role"]["Arn"].clone();
    aws(ministack, &format!("lambda update-function-configuration --function-name {TWO} --role {role}"));
    let chief = Operator::of(ministack);
    for function in [ONE, TWO] {
        drop(patiently(&chief, &format!("attach {function} {STACK} --yes")).await.ended(0));
    }

    let detacher = Operator::of_command(ministack, "detach", stack, ONE);
    let detach = format!("detach {ONE} {STACK} --yes");
    drop(detacher.comeback(&detach).ended(3));
    let checked = chief.comeback(&format!("doctor {ONE} {STACK} --only CB102 --json")).json(0);
    assert_eq!(checked["checks"][0]["outcome"], "warning");
    let found = checked["checks"][0]["found"].as_str().expect("text");
    assert!(found.starts_with("it is being detached: its failures have not come here since 20"), "{found}");
    detached_long_ago(ministack, ONE);
    let said = detached(&detacher, &detach).await;
    assert!(said.contains(&format!("permission to send, because these functions use it: {TWO}")), "{said}");
    assert_eq!(policies(ministack, ONE).len(), 1, "it is the other's too");
    let said = detacher.comeback(&detach).ended(0);
    assert_eq!(said, format!("{ONE} is not attached; nothing to change\n"));

    aws(ministack, &format!("lambda delete-function --function-name {TWO}"));
    let checked = chief.comeback(&format!("doctor {TWO} {STACK} --only CB101 --json")).json(3);
    let detach = format!("detach {TWO} {STACK}");
    assert_eq!(checked["checks"][0]["fix"], format!("comeback {detach}"));
    let detacher = Operator::of_command(ministack, "detach", stack, TWO);
    let said = patiently(&detacher, &format!("{detach} --yes")).await.ended(0);
    assert!(said.contains(&format!("Lambda has no function {TWO}")), "{said}");
    assert!(!parameter(ministack).contains(&MiniStack::function_arn(TWO)));
}
