use comeback_tests::{MiniStack, Operator, Stack, eventually, log_lines};
use serde_json::{Value, json};

use crate::attach::aws;
use crate::world::World;

const STACK: &str = "--stack pausing";

/// On the server's fast clock, the handler checks a held event every 22 seconds instead of every 22 minutes. `comeback`
/// runs in real time, so the pause ends long before the event is due. The event is then retried without a spread.
pub(crate) async fn a_paused_function_is_held_and_then_retried(world: &World) {
    let stack = world.deploy_sped_up("held", "BaseBackoff=1 MaxBackoff=1").await;
    let ministack = world.sped_up().await;
    let function = stack.output("ExampleTargetName");
    // On the fast clock, MiniStack rejects the signature of every user except root as too old.
    let operator = Operator::of(ministack);
    let pause = || {
        let arguments = "--stack held --reason 'deploy 4711' --json --yes";
        operator.comeback(&format!("pause {function} {arguments}")).json(0)
    };

    let paused = pause();
    assert_eq!((&paused["before"], &paused["noticed_within_seconds"]), (&Value::Null, &json!(38)));
    assert_eq!((&paused["pause"]["why"], &paused["pause"]["by"]), (&json!("deploy 4711"), &json!("root")));
    let again = pause();
    assert_eq!(again["before"], again["pause"], "a repeated pause changes nothing");

    ministack.invoke(function, r#"{"fail_times": 1, "error_type": "Held"}"#).await;
    eventually("the event to be held", async || {
        let lines = log_lines(ministack, stack.handler_logs()).await;
        lines.into_iter().find(|line| line["action"] == "hold")
    })
    .await;
    let attempts = async || {
        let lines = log_lines(ministack, stack.target_logs()).await;
        let ran =
            lines.into_iter().filter(|line| line["message"] == "failed" || line["message"] == "succeeded");
        ran.map(|line| (line["message"].clone(), line["attempt"].clone())).collect::<Vec<_>>()
    };
    let listed = operator.comeback("pause --list --stack held").ended(0);
    assert!(listed.contains("deploy 4711") && listed.contains("resume"), "{listed}");
    let listed = operator.comeback("pause --list --stack held --json").json(0)["pauses"].take();
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["by"]), (Some(1), &json!("root")));
    let changed =
        operator.comeback(&format!("pause {function} --stack held --for 6h --spread 2h --yes")).ended(0);
    assert!(
        changed
            .contains("until resumed; events then return over 30m (deploy 4711)\n  will be paused until 20"),
        "{changed}"
    );
    assert!(changed.contains("events then return over 2h (deploy 4711)\n"), "{changed}");

    let said = operator.comeback(&format!("resume {function} --stack held --spread 1m --yes")).ended(0);
    assert!(said.contains("resumed; due events return over 1m"), "{said}");
    // MiniStack may show the log lines of the first attempt only together with those of the second.
    eventually("the retry", async || (attempts().await.len() == 2).then_some(())).await;
    assert_eq!(attempts().await, [(json!("failed"), json!(0)), (json!("succeeded"), json!(1))]);
    let again = operator.comeback(&format!("resume {function} --stack held --json --yes")).json(3);
    assert_eq!(again["ended"], json!([]));
    let history = operator.comeback("pause --list --history --stack held --json").json(0)["history"].take();
    let history: Vec<_> =
        history.as_array().expect("a list").iter().map(|entry| entry["what"].clone()).collect();
    assert_eq!(history, ["paused", "changed", "resumed"]);
    let recorded = operator.comeback("history --stack held --json").json(0)["changes"].take();
    let recorded = recorded.as_array().expect("a list").iter();
    let recorded: Vec<_> =
        recorded.map(|change| json!([change["what"], change["by"], change["why"]])).collect();
    let paused = json!(["pause", "root", "deploy 4711"]);
    assert_eq!(recorded, [json!(["resume", "root", null]), paused.clone(), paused]);
    assert!(operator.comeback("pause --list --stack held").ended(0).starts_with("nothing is paused\n"));
}

fn pauses_parameter(ministack: &MiniStack, stack: &Stack) -> String {
    let of_handler =
        format!("lambda get-function-configuration --function-name {}", stack.output("RetryHandlerName"));
    let settings = aws(ministack, &of_handler);
    settings["Environment"]["Variables"]["PAUSES"].as_str().expect("the parameter's name").to_owned()
}

pub(crate) async fn pause_reports_what_it_cannot_do(world: &World) {
    let (ministack, stack) = (world.ministack().await, world.pausing().await);
    let function = stack.output("ExampleTargetName");
    let refused = |operator: &Operator, arguments: &str, code: i32, said: &str| {
        let ran = operator.comeback(&format!("{arguments} {STACK} --yes"));
        assert_eq!(ran.code, code, "{arguments}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{arguments}: {}", ran.stderr);
    };
    let all = Operator::of(ministack);
    refused(&all, "pause --reason why", 2, "<FUNCTION|--all|--list>");
    refused(&all, &format!("pause {function}"), 2, "is not paused; a new pause needs --reason");
    refused(&all, &format!("pause {function} --reason {{{{why"), 2, "must not contain {{");
    refused(&all, "pause orders --reason why --until tomorrow", 2, "must be a time such as");
    let of_function = |options: &str| format!("pause {function} --reason why {options}");
    refused(&all, &of_function("--until 2020-01-01T00:00:00Z"), 2, "not after its start");
    refused(&all, &of_function("--for 30d"), 2, "SQS keeps no message longer");
    refused(&all, "resume orders", 3, "orders is not paused");
    // The stack's `TargetFunctions` is a pattern that allows any name.
    let unknown = ":function:orders: ResourceNotFoundException: Function not found";
    refused(&all, "pause orders --reason why", 1, unknown);
    refused(&all, &format!("pause {function}:gone --reason why"), 1, "lambda:GetFunctionConfiguration on");
    refused(&all, &format!("pause {function} --reason {}", "y".repeat(4_100)), 3, "the parameter holds 4096");
    let elsewhere = "arn:aws:lambda:eu-south-2:999999999999:function:orders";
    refused(&all, &format!("pause {elsewhere} --reason why"), 1, "TARGET_FUNCTIONS does not allow");
    refused(&all, &format!("resume {elsewhere}"), 3, "orders is not paused");
    refused(&all, "resume orders --spread 15d", 2, "at most 1209600 s");
    let reader = Operator::of_command(ministack, "status", stack, "orders");
    let denied = ":function:orders: AccessDeniedException";
    refused(&reader, "pause orders --reason why", 1, denied);
    let ran = all.comeback(&format!("pause {function} {STACK} --reason why"));
    assert_eq!(ran.code, 4, "{}", ran.stderr);

    // A pause of everything also holds a function that was resumed.
    drop(all.comeback(&format!("pause --all {STACK} --for 1h --reason why --yes")).ended(0));
    refused(&all, "resume orders", 3, "orders is still covered by another pause");
    drop(all.comeback(&format!("resume --all {STACK} --yes")).ended(0));

    // An operator overwrites the parameter with unreadable text. The command that the error suggests then puts back the
    // pauses.
    let name = pauses_parameter(ministack, stack);
    drop(aws(
        ministack,
        &format!("ssm put-parameter --name {name} --overwrite --type String --value 'by hand'"),
    ));
    let listed = all.comeback(&format!("pause --list --history {STACK}"));
    assert!(listed.code == 1 && listed.stdout.contains("wrote an unreadable text"), "{}", listed.stdout);
    let fix = format!("`comeback resume --all {STACK}` puts back the last readable version");
    assert!(listed.stderr.contains(&fix), "{}", listed.stderr);
    let resumed = all.comeback(&format!("resume --all {STACK} --yes")).ended(0);
    assert!(resumed.contains("the unreadable pauses were replaced with version "), "{resumed}");
    assert!(all.comeback(&format!("pause --list {STACK}")).ended(0).starts_with("nothing is paused\n"));
}
