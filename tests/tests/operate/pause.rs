use comeback_tests::{Operator, eventually, log_lines};
use serde_json::{Value, json};

use crate::attach::aws;
use crate::world::World;

const STACK: &str = "--stack pausing";

/// On a clock that goes 60 times as fast: an event that is held is looked at every 22 minutes. The command keeps the real
/// time, so that the pause ends long before the event is due, and nothing of it is spread.
pub(crate) async fn a_paused_function_is_held_and_then_retried(world: &World) {
    let stack = world.deploy_sped_up("held", "BaseBackoff=1 MaxBackoff=1").await;
    let ministack = world.sped_up().await;
    let function = stack.output("ExampleTargetName");
    // Its faster clock finds every signature too old but the root user's.
    let operator = Operator::of(ministack);
    let pause = || {
        let arguments = "--stack held --reason 'deploy 4711' --json --yes";
        operator.comeback(&format!("pause {function} {arguments}")).json(0)
    };

    let paused = pause();
    assert_eq!((&paused["was_open"], &paused["noticed_within_seconds"]), (&json!(false), &json!(38)));
    assert_eq!(
        (&paused["pause"]["why"], &paused["pause"]["is_hard"]),
        (&json!("deploy 4711"), &json!(false))
    );
    assert_eq!(paused["pause"]["by"], "root");
    assert_eq!(pause()["was_open"], true, "a repeated pause is no other");

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
        operator.comeback(&format!("pause {function} --stack held --change --for 6h --spread 2h --yes"));
    assert!(changed.ended(0).contains("what was due comes back over 2h"));

    let said = operator.comeback(&format!("resume {function} --stack held --spread 1m --yes")).ended(0);
    assert!(said.contains("resumed; what was due comes back over 1m"), "{said}");
    // The emulator may show the first attempt's lines only with the next one's.
    eventually("the retry", async || (attempts().await.len() == 2).then_some(())).await;
    assert_eq!(attempts().await, [(json!("failed"), json!(0)), (json!("succeeded"), json!(1))]);
    let again = operator.comeback(&format!("resume {function} --stack held --json --yes")).json(3);
    assert_eq!(again["ended"], json!([]));
    let history = operator.comeback("pause --list --history --stack held --json").json(0)["history"].take();
    let history: Vec<_> =
        history.as_array().expect("a list").iter().map(|entry| entry["what"].clone()).collect();
    assert_eq!(history, ["paused", "changed", "resumed"]);
    assert!(operator.comeback("pause --list --stack held").ended(0).starts_with("nothing is paused\n"));
}

pub(crate) async fn a_hard_pause_sets_the_concurrency_and_resume_restores_it(world: &World) {
    let _alone = world.writing_pauses.lock().await;
    let (ministack, stack) = (world.ministack().await, world.pausing().await);
    let function = stack.output("ExampleTargetName");
    let of_command = |command: &str| Operator::of_command(ministack, command, stack, function);
    let (pauser, resumer) = (of_command("pause"), of_command("resume"));
    let pause =
        || pauser.comeback(&format!("pause {function} {STACK} --hard --reason restore --json --yes")).json(0);
    let resume = || resumer.comeback(&format!("resume {function} {STACK} --json --yes"));
    let reserve = |reserved: u32| {
        let to = format!("--function-name {function} --reserved-concurrent-executions {reserved}");
        drop(aws(ministack, &format!("lambda put-function-concurrency {to}")));
    };
    let reserved = || {
        let answer = aws(ministack, &format!("lambda get-function-concurrency --function-name {function}"));
        answer["ReservedConcurrentExecutions"].clone()
    };

    let paused = pause();
    assert_eq!((&paused["pause"]["is_hard"], reserved()), (&json!(true), json!(0)));
    let error = Operator::of(ministack)
        .comeback(&format!("detach {function} {STACK} --now --json --yes"))
        .json(3)["error"]
        .take();
    let error = error.as_str().expect("text");
    assert!(
        error.ends_with(&format!("end the pause first, with `comeback resume {function} {STACK}`")),
        "{error}"
    );
    let by = paused["pause"]["by"].as_str().expect("the caller's name");
    assert!(by.ends_with(&format!("pause-{function}")), "{by}");
    assert_eq!((resume().json(0)["ended"].as_array().map(Vec::len), reserved()), (Some(1), Value::Null));

    reserve(5);
    assert_eq!((&pause()["was_open"], reserved()), (&json!(false), json!(0)));
    // As if the run had been killed between the two writes.
    reserve(5);
    assert_eq!((&pause()["was_open"], reserved()), (&json!(true), json!(0)));
    assert_eq!((resume().code, reserved()), (0, json!(5)));
    assert_eq!((resume().json(3)["ended"].as_array().map(Vec::len), reserved()), (Some(0), json!(5)));

    assert_eq!(pause()["was_open"], false);
    reserve(3);
    let resumed = resume();
    assert!(resumed.stderr.contains("has set the reserved concurrency"), "{}", resumed.stderr);
    assert_eq!((&resumed.json(0)["other_concurrency"], reserved()), (&json!(3), json!(3)));
}

pub(crate) async fn two_operators_at_once_lose_neithers_pause(world: &World) {
    let _alone = world.writing_pauses.lock().await;
    let ministack = world.ministack().await;
    let function = world.pausing().await.output("ExampleTargetName");
    let operator = Operator::of(ministack);
    let both = ["first", "second"].map(|alias| {
        let create = "lambda create-alias --function-version '$LATEST'";
        drop(aws(ministack, &format!("{create} --function-name {function} --name {alias}")));
        format!("{function}:{alias}")
    });
    for _ in 0..3 {
        let at_once = |verb: &str| {
            std::thread::scope(|scope| {
                let runs: Vec<_> = both
                    .iter()
                    .map(|name| {
                        let (operator, line) = (&operator, format!("{verb} {name} {STACK} --yes"));
                        scope.spawn(move || operator.comeback(&line))
                    })
                    .collect();
                for run in runs {
                    drop(run.join().expect("no panic").ended(0));
                }
            });
        };
        let open = || {
            let listed = operator.comeback(&format!("pause --list {STACK} --json")).json(0);
            let listed = listed["pauses"].as_array().expect("a list");
            let targets = listed.iter().filter_map(|pause| pause["target"].as_str());
            both.iter().filter(|name| targets.clone().any(|it| it.ends_with(&***name))).count()
        };
        at_once("pause --reason 'two at once'");
        assert_eq!(open(), 2);
        at_once("resume");
        assert_eq!(open(), 0);
    }
    let hard = operator.comeback(&format!("pause {function} {STACK} --hard --reason why --yes"));
    assert_eq!(hard.code, 3, "{}", hard.stderr);
    assert!(hard.stderr.contains(&format!("new events of {function}:first")), "{}", hard.stderr);
    for alias in ["first", "second"] {
        drop(aws(ministack, &format!("lambda delete-alias --function-name {function} --name {alias}")));
    }
}

pub(crate) async fn what_cannot_be_paused_is_said(world: &World) {
    let _alone = world.writing_pauses.lock().await;
    let (ministack, stack) = (world.ministack().await, world.pausing().await);
    let function = stack.output("ExampleTargetName");
    let refused = |operator: &Operator, arguments: &str, code: i32, said: &str| {
        let ran = operator.comeback(&format!("{arguments} {STACK} --yes"));
        assert_eq!(ran.code, code, "{arguments}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{arguments}: {}", ran.stderr);
    };
    let all = Operator::of(ministack);
    refused(&all, "pause --reason why", 2, "<FUNCTION|--all|--list>");
    refused(&all, "pause orders", 2, "--reason <TEXT>");
    refused(&all, "pause orders --reason why --until tomorrow", 2, "must be a time such as");
    let of_function = |options: &str| format!("pause {function} --reason why {options}");
    refused(&all, &of_function("--until 2020-01-01T00:00:00Z"), 2, "which is not after its start");
    refused(&all, &of_function("--for 30d"), 2, "SQS keeps no event for longer");
    refused(&all, &format!("pause {function} --change --for 1h"), 3, "is not paused");
    refused(&all, &format!("pause {function} --change"), 2, "nothing to change: give --for");
    refused(&all, "resume orders", 3, "orders has no open pause of its own");
    refused(&all, &of_function("--hard --for 1h"), 2, "a hard pause has no planned end");
    // The stack's pattern allows any name.
    let unknown = "lambda:GetFunctionConfiguration of orders";
    refused(&all, "pause orders --reason why", 1, unknown);
    refused(&all, &format!("pause {function}:gone --reason why"), 1, "lambda:GetFunctionConfiguration of");
    refused(&all, "pause --all --reason why --hard", 2, "name it instead of --all");
    refused(&all, "pause orders:live --reason why --hard", 2, "give orders without a qualifier");
    refused(&all, &format!("pause {function} --reason {}", "y".repeat(4_100)), 2, "the parameter holds 4096");
    let elsewhere = "arn:aws:lambda:eu-south-2:999999999999:function:orders";
    refused(&all, &format!("pause {elsewhere} --reason why"), 1, "no entry of TARGET_FUNCTIONS allows");
    refused(&all, &format!("resume {elsewhere}"), 3, "orders has no open pause of its own");
    refused(&all, "resume orders --spread 15d", 2, "at most 1209600 s");
    let reader = Operator::of_command(ministack, "status", stack, "orders");
    refused(&reader, "pause orders --reason why", 1, unknown);
    let ran = all.comeback(&format!("pause orders {STACK} --reason why"));
    assert_eq!(ran.code, 4, "{}", ran.stderr);

    // A pause of everything holds a function that is resumed.
    drop(all.comeback(&format!("pause --all {STACK} --for 1h --reason why --yes")).ended(0));
    refused(&all, "resume orders", 3, "orders is still paused by another pause");
    drop(all.comeback(&format!("resume --all {STACK} --yes")).ended(0));

    // Where the parameter was garbled by hand, the command that is named brings it back.
    let of_handler =
        format!("lambda get-function-configuration --function-name {}", stack.output("RetryHandlerName"));
    let settings = aws(ministack, &of_handler);
    let name = settings["Environment"]["Variables"]["PAUSES"].as_str().expect("the parameter's name");
    drop(aws(
        ministack,
        &format!("ssm put-parameter --name {name} --overwrite --type String --value 'by hand'"),
    ));
    let listed = all.comeback(&format!("pause --list --history {STACK}"));
    assert!(listed.code == 1 && listed.stdout.contains("wrote an unreadable text"), "{}", listed.stdout);
    let (_, fix) = listed.stderr.split_once("the last that can be read: ").expect("a command");
    ministack.shell().run(fix).unwrap_or_else(|error| panic!("{error}"));
    assert!(all.comeback(&format!("pause --list {STACK}")).ended(0).starts_with("nothing is paused\n"));
}
