use comeback_tests::{
    MiniStack, Operator, Ran, Stack, eventually, example_target, log_lines, pages, scratch,
};
use serde_json::{Value, json};

use crate::world::World;

pub(crate) const STACK: &str = "--stack attaching";

/// Runs an AWS CLI command and returns its output as JSON, or `Null` if it prints nothing.
pub(crate) fn aws(ministack: &MiniStack, command: &str) -> Value {
    let answer = ministack.shell().run(&format!("aws {command} --output json"));
    let answer = answer.unwrap_or_else(|error| panic!("{error}"));
    serde_json::from_str(&answer).unwrap_or(Value::Null)
}

/// Returns Lambda's settings for asynchronous invocations of a function or one of its aliases. Returns `Null` if none
/// of these settings exist.
pub(crate) fn settings(ministack: &MiniStack, function: &str, qualifier: Option<&str>) -> Value {
    let configs =
        aws(ministack, &format!("lambda list-function-event-invoke-configs --function-name {function}"));
    let arn = qualifier.iter().fold(MiniStack::function_arn(function), |arn, it| format!("{arn}:{it}"));
    let configs = configs["FunctionEventInvokeConfigs"].as_array().cloned().unwrap_or_default();
    configs.into_iter().find(|config| config["FunctionArn"] == arn).unwrap_or_default()
}

pub(crate) fn policies(ministack: &MiniStack, role: &str) -> Vec<Value> {
    let policies = aws(ministack, &format!("iam list-role-policies --role-name {role}"));
    policies["PolicyNames"].as_array().cloned().unwrap_or_default()
}

pub(crate) fn tags(ministack: &MiniStack, function: &str) -> Value {
    let arn = MiniStack::function_arn(function);
    aws(ministack, &format!("lambda list-tags --resource {arn}"))["Tags"].clone()
}

pub(crate) fn parameter(ministack: &MiniStack) -> String {
    value_of(ministack, "TargetFunctions")
}

/// Value of a parameter in the stack that the tests attach functions to.
pub(crate) fn value_of(ministack: &MiniStack, parameter: &str) -> String {
    let query =
        format!("--query \"Stacks[0].Parameters[?ParameterKey=='{parameter}'].ParameterValue | [0]\"");
    let value = aws(ministack, &format!("cloudformation describe-stacks --stack-name attaching {query}"));
    value.as_str().unwrap_or_default().to_owned()
}

/// Backdates a function's detachment, so that `detach` assumes that none of its events are still on their way to the
/// queue.
pub(crate) fn detached_long_ago(ministack: &MiniStack, function: &str) {
    let arn = MiniStack::function_arn(function);
    aws(
        ministack,
        &format!(
            "lambda tag-resource --resource {arn} --tags '{{\"comeback:detached\":\"2020-01-01T00:00:00.000Z\"}}'"
        ),
    );
}

/// Asserts that an event sent to `function`, a copy of the example target, is retried until it succeeds.
pub(crate) async fn is_retried(ministack: &MiniStack, function: &str) {
    ministack.invoke(function, &json!({"fail_times": 2, "error_type": "Attached"}).to_string()).await;
    let succeeded = eventually(&format!("{function} to succeed"), async || {
        let lines = log_lines(ministack, &format!("/aws/lambda/{function}")).await;
        lines.into_iter().find(|line| line["message"] == "succeeded")
    })
    .await;
    assert_eq!(succeeded["attempt"], 2);
}

fn differences(report: &Value) -> Vec<String> {
    let all = report["differences"].as_array().expect("a list of differences");
    all.iter()
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap_or("-").to_owned();
            format!("{}: {} -> {}", text("setting"), text("from"), text("to"))
        })
        .collect()
}

/// Runs a `comeback` command. Runs it again if it failed because another test was changing the shared stack.
pub(crate) async fn patiently(operator: &Operator, arguments: &str) -> Ran {
    eventually("the stack to be changed by nobody else", async || {
        let ran = operator.comeback(arguments);
        let is_disturbed = ran.code == 1 && ran.stderr.contains("_IN_PROGRESS")
            || ran.code == 3 && ran.stderr.contains("somebody else is changing it too");
        (!is_disturbed).then_some(ran)
    })
    .await
}

/// Gives a function settings other than Lambda's defaults, and returns these settings.
fn with_settings_of_its_own(ministack: &MiniStack, stack: &Stack, function: &str) -> Value {
    drop(aws(ministack, "sqs create-queue --queue-name attached-orders-done"));
    let (place, _) = stack.output("RetryQueueArn").rsplit_once(':').expect("an ARN has colons");
    let done_arn = format!("{place}:attached-orders-done");
    aws(
        ministack,
        &format!(
            "lambda put-function-event-invoke-config --function-name {function} --maximum-retry-attempts 1 \
             --maximum-event-age-in-seconds 600 --destination-config OnSuccess={{Destination={done_arn}}}"
        ),
    );
    settings(ministack, function, None)
}

/// Returns the alarms for a function's lost events, without the members that differ between functions.
fn lost(ministack: &MiniStack, function: &str) -> Vec<Value> {
    let alarms = aws(ministack, "cloudwatch describe-alarms");
    let mut alarms = alarms["MetricAlarms"].as_array().cloned().unwrap_or_default();
    alarms.retain(|alarm| {
        let on = &alarm["Dimensions"][0];
        alarm["MetricName"] == "DestinationDeliveryFailures" && on["Value"] == function
    });
    for alarm in &mut alarms {
        let alarm = alarm.as_object_mut().expect("an object");
        let description =
            alarm["AlarmDescription"].as_str().unwrap_or_default().replace(function, "FUNCTION");
        alarm["AlarmDescription"] = description.into();
        let own = ["AlarmName", "AlarmArn", "Dimensions"];
        alarm.retain(|key, _| !own.contains(&key.as_str()) && !key.ends_with("Timestamp"));
    }
    alarms
}

fn watches_what_is_lost_as_the_template_does(ministack: &MiniStack, stack: &Stack, function: &str) {
    let (ours, templates) = (lost(ministack, function), lost(ministack, stack.output("ExampleTargetName")));
    assert_eq!((ours.len(), ours), (1, templates));
}

/// Runs the commands in docs/attach.md, with only the permissions that docs/operate.md lists for them.
pub(crate) async fn a_function_is_attached_retried_and_detached(world: &World) {
    const FUNCTION: &str = "attached-orders";
    let (ministack, stack) = (world.ministack().await, world.attaching().await);
    let [attach, detach] =
        <[String; 2]>::try_from(pages::blocks("docs/attach.md", "With the command")).expect("two blocks");
    let [dry_run, attach] = attach.lines().collect::<Vec<_>>()[..] else { panic!("two commands: {attach}") };
    let of_page = |line: &str| {
        let arguments = line.strip_prefix("comeback ").unwrap_or_else(|| panic!("{line}"));
        format!("{} {STACK}", arguments.replace(" orders", &format!(" {FUNCTION}")))
    };
    example_target(ministack, FUNCTION).await;
    let before = with_settings_of_its_own(ministack, stack, FUNCTION);
    let attacher = Operator::of_command(ministack, "attach", stack, FUNCTION);

    let shown = attacher.comeback(&of_page(dry_run)).ended(0);
    assert!(shown.contains("comeback:retries") && shown.contains("recursive loops"), "{shown}");
    assert_eq!(settings(ministack, FUNCTION, None), before, "a dry run changes nothing");
    assert_eq!((policies(ministack, FUNCTION).len(), tags(ministack, FUNCTION)), (0, json!({})));

    let said = patiently(&attacher, &of_page(attach)).await.ended(0);
    assert!(said.ends_with("Done. The changes were made and verified.\n"), "{said}");
    let arn = MiniStack::function_arn(FUNCTION);
    assert!(parameter(ministack).contains(&arn));
    let attached = settings(ministack, FUNCTION, None);
    assert_eq!(attached["DestinationConfig"]["OnFailure"]["Destination"], stack.output("RetryQueueArn"));
    assert_eq!(
        attached["DestinationConfig"]["OnSuccess"], before["DestinationConfig"]["OnSuccess"],
        "successes go where they went"
    );
    assert_eq!(
        (&attached["MaximumRetryAttempts"], &attached["MaximumEventAgeInSeconds"]),
        (&json!(0), &json!(60))
    );
    watches_what_is_lost_as_the_template_does(ministack, stack, FUNCTION);
    let again =
        attacher.comeback(&format!("attach {FUNCTION} {STACK} --json --yes")).json(0)["functions"][0].take();
    assert_eq!((&again["differences"], &again["done"]), (&json!([]), &json!(true)));
    is_retried(ministack, FUNCTION).await;

    let detacher = Operator::of_command(ministack, "detach", stack, FUNCTION);
    let detached = detacher.comeback(&format!("{} --json", of_page(&detach))).json(3)["functions"][0].take();
    assert_eq!(detached["done"], false, "something is left for later");
    let expected = ["retries: 0 -> 1", "event age: 60s -> 600s"];
    assert!(expected.iter().all(|it| differences(&detached).contains(&(*it).to_owned())), "{detached:#}");
    let restored = settings(ministack, FUNCTION, None);
    for setting in ["MaximumRetryAttempts", "MaximumEventAgeInSeconds"] {
        assert_eq!(restored[setting], before[setting]);
    }
    assert_eq!(restored["DestinationConfig"]["OnFailure"]["Destination"], Value::Null);
    assert_eq!(restored["DestinationConfig"]["OnSuccess"], before["DestinationConfig"]["OnSuccess"]);
    let early = detacher.comeback(&of_page(&detach));
    assert!(early.stderr.contains("running invocations may still fail until"), "{}", early.stderr);
    assert_eq!(early.code, 3);
    assert!(early.stderr.contains("not finished: "), "{}", early.stderr);
    assert!(parameter(ministack).contains(&arn), "what waits is still retried");

    detached_long_ago(ministack, FUNCTION);
    eventually("its events to have left", async || {
        (patiently(&detacher, &of_page(&detach)).await.code == 0).then_some(())
    })
    .await;
    assert!(!parameter(ministack).contains(&arn));
    assert_eq!(lost(ministack, FUNCTION), [Value::Null; 0]);
    assert_eq!((policies(ministack, FUNCTION).len(), tags(ministack, FUNCTION)), (0, json!({})));
    assert_eq!(recursion(ministack, FUNCTION), "Terminate");
    let said = detacher.comeback(&of_page(&detach)).ended(0);
    assert_eq!(said, format!("{FUNCTION} is not attached; nothing to change\n"));
}

pub(crate) fn recursion(ministack: &MiniStack, function: &str) -> Value {
    aws(ministack, &format!("lambda get-function-recursion-config --function-name {function}"))["RecursiveLoop"].clone()
}

pub(crate) async fn an_alias_is_attached_beside_its_function(world: &World) {
    const FUNCTION: &str = "attached-alias";
    let (ministack, stack) = (world.ministack().await, world.attaching().await);
    example_target(ministack, FUNCTION).await;
    aws(ministack, &format!("lambda publish-version --function-name {FUNCTION}"));
    aws(
        ministack,
        &format!("lambda create-alias --function-name {FUNCTION} --name live --function-version 1"),
    );
    let of_command = |verb: &str| Operator::of_command(ministack, verb, stack, FUNCTION);
    let (attacher, detacher) = (of_command("attach"), of_command("detach"));
    let comeback = async |command: &str, function: &str, code: i32| {
        let operator = if command.starts_with("attach") { &attacher } else { &detacher };
        patiently(operator, &format!("{command} {function} {STACK} --json --yes")).await.json(code)["functions"][0].take()
    };
    let live = format!("{FUNCTION}:live");
    drop(comeback("attach", &live, 0).await);
    assert_eq!(settings(ministack, FUNCTION, None), Value::Null, "only the alias is attached");
    assert_eq!(settings(ministack, FUNCTION, Some("live"))["MaximumRetryAttempts"], 0);
    drop(comeback("attach", FUNCTION, 0).await);
    let kept = tags(ministack, FUNCTION);
    assert_eq!(
        (&kept["comeback:live:retries"], &kept["comeback:retries"]),
        (&json!("default"), &json!("default"))
    );

    let detached = comeback("detach --now", FUNCTION, 0).await;
    assert_eq!(
        detached["notes"],
        json!([format!("{live} stays attached, so the handler keeps retrying the function")])
    );
    assert_eq!(settings(ministack, FUNCTION, None), Value::Null);
    assert_eq!(settings(ministack, FUNCTION, Some("live"))["MaximumRetryAttempts"], 0);
    assert!(parameter(ministack).contains(&MiniStack::function_arn(FUNCTION)));
    assert_eq!((policies(ministack, FUNCTION).len(), recursion(ministack, FUNCTION)), (1, json!("Allow")));

    let detached = comeback("detach --now", &live, 3).await;
    let dead_lettered = format!("waiting events of {FUNCTION} will be dead-lettered as target_not_allowed");
    assert_eq!(detached["notes"], json!([dead_lettered]));
    assert!(
        detached["left"].as_str().is_some_and(|it| it.contains("keeps its permission to send")),
        "{detached:#}"
    );
    assert_eq!(policies(ministack, FUNCTION).len(), 1, "invocations under way may still send");
    detached_long_ago(ministack, FUNCTION);
    drop(comeback("detach --now", &live, 0).await);
    assert!(!parameter(ministack).contains(&MiniStack::function_arn(FUNCTION)));
    assert_eq!((policies(ministack, FUNCTION).len(), tags(ministack, FUNCTION)), (0, json!({})));
}

/// Kills `attach` after its first, second or third change, and then repeats the command.
pub(crate) async fn killed_attach_is_resumed_by_repeating_it(world: &World) {
    let (ministack, _) = (world.ministack().await, world.attaching().await);
    let operator = Operator::of(ministack);
    for (made, change) in
        ["tag comeback:recursion", "policy comeback-", "TargetFunctions"].into_iter().enumerate()
    {
        let function = format!("attached-{made}");
        example_target(ministack, &function).await;
        let log = scratch(&format!("attach-killed-{made}")).join("attach.log");
        let command = format!("exec \"$COMEBACK\" attach {function} {STACK} --yes >/dev/null");
        let start = || operator.shell().start(&command, &log).expect("a shell starts");
        let mut run = start();
        eventually(&format!("the change of {change}"), async || {
            // Starts again if another trial was changing the stack.
            if run.log().contains("_IN_PROGRESS") {
                run = start();
            }
            run.log().contains(change).then_some(())
        })
        .await;
        drop(run);
        let unfinished = tags(ministack, &function);
        assert_eq!(unfinished["comeback:retries"], "default");
        let resumed = patiently(&operator, &format!("attach {function} {STACK} --json --yes")).await;
        assert_eq!(resumed.json(0)["functions"][0]["done"], true);
        assert_eq!(tags(ministack, &function), unfinished, "the settings of before are still those");
        assert_eq!(settings(ministack, &function, None)["MaximumRetryAttempts"], 0);
    }
    is_retried(ministack, "attached-0").await;
}

pub(crate) async fn attach_reports_denied_and_unconfirmed_changes(world: &World) {
    const FUNCTION: &str = "attached-denied";
    let (ministack, stack) = (world.ministack().await, world.attaching().await);
    example_target(ministack, FUNCTION).await;
    let said = |operator: Operator, arguments: &str, code: i32| {
        let ran = operator.comeback(&format!("{arguments} {STACK}"));
        assert_eq!(ran.code, code, "{}", ran.stderr);
        ran.stderr
    };
    let not_asked = said(Operator::of(ministack), &format!("attach {FUNCTION}"), 4);
    assert!(not_asked.contains("pass --yes"), "{not_asked}");
    let denied = said(
        Operator::of_command(ministack, "waiting", stack, FUNCTION),
        &format!("attach {FUNCTION} --yes"),
        1,
    );
    assert!(
        denied.contains("lambda:ListTags") || denied.contains("lambda:ListFunctionEventInvokeConfigs"),
        "{denied}"
    );
    assert_eq!(settings(ministack, FUNCTION, None), Value::Null);
    let handler = stack.output("RetryHandlerName");
    let itself = said(Operator::of(ministack), &format!("attach {handler} --yes"), 2);
    assert!(itself.contains("is the retry handler itself"), "{itself}");
    let missing = said(Operator::of(ministack), "attach no-such-function --yes", 1);
    assert!(missing.contains("Lambda has no function no-such-function"), "{missing}");
}

/// `detach` keeps a function on the allow-list while the handler's log shows that one of its events is waiting.
pub(crate) async fn detach_finds_waiting_events_in_the_log(world: &World) {
    const FUNCTION: &str = "attached-waiting";
    let stack = world.deploy("waiting", "BaseBackoff=600 MaxBackoff=600 Jitter=none").await;
    let ministack = world.ministack().await;
    example_target(ministack, FUNCTION).await;
    let detacher = Operator::of_command(ministack, "detach", &stack, FUNCTION);
    let attach = format!("attach {FUNCTION} --stack waiting --yes");
    drop(Operator::of_command(ministack, "attach", &stack, FUNCTION).comeback(&attach).ended(0));
    ministack.invoke(FUNCTION, r#"{"fail_times": 1, "error_type": "Waiting"}"#).await;
    eventually("the event to wait", async || {
        let lines = log_lines(ministack, stack.handler_logs()).await;
        lines.into_iter().find(|line| line["action"] == "defer")
    })
    .await;
    let detach = |flag: &str| detacher.comeback(&format!("detach {FUNCTION} --stack waiting --yes {flag}"));
    drop(detach("").ended(3));
    detached_long_ago(ministack, FUNCTION);
    let waits = detach("");
    assert_eq!(waits.code, 3, "{}{}", waits.stdout, waits.stderr);
    assert!(waits.stderr.contains("1 of its events is waiting, the last until 20"), "{}", waits.stderr);
    let detached = detach("--now");
    assert!(detached.stderr.contains("will be dead-lettered as target_not_allowed"), "{}", detached.stderr);
    drop(detached.ended(0));
    assert_eq!(tags(ministack, FUNCTION), json!({}));
}
