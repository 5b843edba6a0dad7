use comeback_tests::{MiniStack, Operator, Stack, eventually, log_lines};

use crate::world::World;

pub(crate) async fn status_shows_waiting_events_and_dead_letters(world: &World) {
    // The first retry is not due for hours.
    let parameters =
        "BaseBackoff=40000 MaxBackoff=43170 MaxRetries=1 Jitter=none NonRetryableErrors=Fatal Metrics=target";
    let stack = world.deploy("seen", parameters).await;
    let ministack = world.ministack().await;
    let target = stack.output("ExampleTargetName");
    let operator = Operator::of_command(ministack, "status", &stack, target);
    let status = || operator.comeback("status --stack seen --json").json(0);
    let quiet = status();
    assert_eq!(quiet["handler"], stack.output("RetryHandlerName"));
    assert_eq!(quiet["version"], env!("CARGO_PKG_VERSION"), "as the template tags it");
    assert_eq!(quiet["retry_queue"], serde_json::json!({"visible": 0, "in_flight": 0, "delayed": 0}));
    assert_eq!((&quiet["hide_up_to"], &quiet["mapping"]["state"]), (&50_000.into(), &"Enabled".into()));
    assert!(quiet["oldest_dead_letter"].is_null(), "{quiet}");

    ministack.invoke(target, r#"{"fail": true}"#).await;
    ministack.invoke(target, r#"{"fail": true, "error_type": "Fatal"}"#).await;
    let busy = eventually("one event to wait and one to be dead-lettered", async || {
        let status = status();
        (status["retry_queue"]["in_flight"] == 1 && status["dead_letters"]["visible"] == 1).then_some(status)
    })
    .await;
    let oldest = &busy["oldest_dead_letter"];
    assert!(
        oldest["is_exact"] == true && oldest["age_seconds"].as_u64().is_some_and(|age| age < 120),
        "{busy}"
    );

    the_metrics_say_the_same(ministack, &stack).await;

    let alarm = format!(
        "aws cloudwatch put-metric-alarm --alarm-name seen-dead-letters --namespace AWS/SQS --statistic Maximum --period 60 \
         --metric-name ApproximateNumberOfMessagesVisible --dimensions Name=QueueName,Value={} --evaluation-periods 1 \
         --threshold 1 --comparison-operator GreaterThanOrEqualToThreshold\n\
         aws cloudwatch set-alarm-state --alarm-name seen-dead-letters --state-value ALARM --state-reason test",
        stack.output("DeadLetterQueueArn").rsplit(':').next().expect("an ARN has fields")
    );
    ministack.shell().run(&alarm).unwrap_or_else(|error| panic!("{error}"));
    let uuid = format!(
        "aws lambda list-event-source-mappings --function-name {} --query 'EventSourceMappings[0].UUID' --output text",
        stack.output("RetryHandlerName")
    );
    let disable = format!("aws lambda update-event-source-mapping --no-enabled --uuid $({uuid})");
    ministack.shell().run(&disable).unwrap_or_else(|error| panic!("{error}"));
    let text = operator.comeback("status --stack seen").ended(3);
    for expected in [
        "Waiting       1: 1 hidden until due (limit 50,000)\n",
        "Dead-letters  1, the oldest ",
        "its mapping is Disabled: nothing is retried",
        "1 of 11 alarms in state ALARM: seen-dead-letters",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains('\x1b'), "colours only on a terminal: {text:?}");

    // MiniStack has no metrics for queues.
    let text = operator.comeback("status --history --stack seen").ended(3);
    assert!(text.contains("\nLast 3h       CloudWatch has no data\n"), "{text}");
    let history = operator.comeback("status --history --stack seen --json").json(3)["history"].clone();
    assert_eq!(
        (&history["last_24_hours"]["step_seconds"], &busy["history"]),
        (&1_800.into(), &serde_json::Value::Null)
    );

    where_it_works(&Operator::of(ministack));
    unreadable_pauses_leave_the_rest(ministack, &stack, &operator);
    let handler = stack.output("RetryHandlerName");
    let by_handler = Operator::of(ministack).comeback(&format!("status --json --handler {handler}")).json(3);
    assert_eq!(by_handler["dead_letters"], busy["dead_letters"]);
    let target = Operator::of(ministack).comeback(&format!("status --handler {target}"));
    assert!(target.stderr.contains("is not a retry handler"), "{}", target.stderr);
}

/// If the pauses are unreadable, `status` shows everything else, and names the command that replaces them.
fn unreadable_pauses_leave_the_rest(ministack: &MiniStack, stack: &Stack, operator: &Operator) {
    for value in [r#"{"v":1,"pauses":[]}"#, "by hand"] {
        let put = format!(
            "aws ssm put-parameter --overwrite --type String --name {} --value '{value}'",
            stack.output("PausesParameter")
        );
        ministack.shell().run(&put).unwrap_or_else(|error| panic!("{error}"));
    }
    let text = operator.comeback("status --stack seen").ended(3);
    for expected in [
        "Pauses        unknown: parameter ",
        "--stack seen` puts back the last readable version",
        "11 alarms",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

/// Every command prints the account and the region that it uses, even if the stack does not exist.
fn where_it_works(operator: &Operator) {
    const PLACE: &str = "eu-south-2 of account 000000000000";
    let seen = operator.comeback("status --stack seen");
    assert!(seen.stderr.starts_with(&format!("stack seen in {PLACE}\n")), "{}", seen.stderr);
    let json = operator.comeback("status --stack seen --json").json(3);
    assert_eq!((&json["account"], &json["region"]), (&"000000000000".into(), &"eu-south-2".into()));
    let missing = operator.comeback("status --stack no-such-stack --json").json(1);
    let error = missing["error"].as_str().expect("why");
    assert!(
        error.starts_with(&format!("no stack no-such-stack in {PLACE}; name the stack with --stack")),
        "{error}"
    );
    assert_eq!(missing["account"], "000000000000");
    let gone = operator.comeback("status --stack seen --profile gone");
    assert!(gone.stderr.contains("--profile: your AWS configuration has no profile gone"), "{}", gone.stderr);
    assert_eq!(gone.code, 1);
    // The profile's keys are invalid, but they take precedence over those in the environment.
    let folder = comeback_tests::scratch("profile");
    let credentials = folder.join("credentials");
    std::fs::write(&credentials, "[nobody]\naws_access_key_id = nobody\naws_secret_access_key = nobody\n")
        .expect("a scratch file can be written");
    let shell = operator.shell().clone().with("AWS_SHARED_CREDENTIALS_FILE", &credentials);
    let run = |line: &str| shell.output(&format!("{line} \"$COMEBACK\" status --stack seen"));
    let by_flag = shell.output("\"$COMEBACK\" status --stack seen --profile nobody");
    let stderr = String::from_utf8_lossy(&by_flag.stderr);
    assert!(
        !by_flag.status.success() && stderr.contains("error: sts:GetCallerIdentity on the caller in "),
        "{stderr}"
    );
    let by_keys = run("AWS_PROFILE=nobody");
    assert_eq!(by_keys.status.code(), Some(3), "keys in the environment come before AWS_PROFILE");
    assert_eq!(run("AWS_PROFILE=gone").status.code(), Some(1));
}

/// Asserts that the handler has logged the right metrics for the two events. They are read from the log because
/// MiniStack does not process the embedded metric format.
async fn the_metrics_say_the_same(ministack: &MiniStack, stack: &Stack) {
    let dead_letter = eventually("metrics of the two events", async || {
        let mut lines = log_lines(ministack, stack.handler_logs()).await;
        lines.retain(|line| line["_aws"].is_object());
        let sum = |name: &str| lines.iter().filter_map(|line| line[name].as_u64()).sum::<u64>();
        let is_all = [sum("Failures"), sum("DeadLetters"), sum("Retries")] == [2, 1, 0];
        lines.into_iter().find(|line| is_all && line["DeadLetters"] == 1)
    })
    .await;
    let target = dead_letter["Target"].as_str().expect("a target");
    assert!(target.ends_with(&format!(":function:{}", stack.output("ExampleTargetName"))), "{target}");
    assert_eq!(dead_letter["Handler"], stack.output("RetryHandlerName"));
    assert_eq!(dead_letter["Reason"], "non_retryable_error");
}
