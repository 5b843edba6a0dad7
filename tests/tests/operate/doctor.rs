//! Tests `comeback doctor` on a healthy stack, and on that stack with one fault after another.

mod faults;

use std::collections::BTreeSet;

use comeback_tests::{MiniStack, Operator, Ran, Shell, Stack, plain_target};
use serde_json::Value;

use crate::world::World;
use faults::{FAULTS, Fault, Undo};

const FUNCTION: &str = "checked-orders";
/// Name of a function that is not attached, and of the SQS queue that the function receives messages from.
const CONSUMER: &str = "checked-consumer";

const FUNCTIONS: &str = include_str!("doctor/functions.sh");

/// A script that makes the stack healthy. It allows recursive loops, because MiniStack ignores `RecursiveLoop` in
/// templates. It restores the queue's visibility timeout, which tests shorten.
const MADE_HEALTHY: &str = r#"
for function in "$HANDLER" "$EXAMPLE" "$FUNCTION"; do
  aws lambda put-function-recursion-config --function-name "$function" --recursive-loop Allow >/dev/null
done
queue "$RETRY_URL" VisibilityTimeout=1230
may_send
attached 0 60 "$RETRY_ARN"
aws sqs create-queue --queue-name "$CONSUMER" --attributes VisibilityTimeout=360,MessageRetentionPeriod=172800
aws sqs create-queue --queue-name "$CONSUMER-dead"
aws lambda update-function-configuration --function-name "$CONSUMER" --timeout 60
consumer_variables "$(consumed -dead)"
aws lambda create-event-source-mapping --function-name "$CONSUMER" --event-source-arn "$(consumed_arn)" --no-enabled \
  --function-response-types ReportBatchItemFailures
consumer_may ChangeMessageVisibility "$(consumed_arn)"
consumer_may SendMessage "$(consumed_arn -dead)"
"#;

pub(crate) async fn doctor_finds_each_fault_and_none_on_a_healthy_stack(world: &World) {
    let ministack = world.ministack().await;
    let function_arn = MiniStack::function_arn(FUNCTION);
    plain_target(ministack, FUNCTION).await;
    plain_target(ministack, "checked-unlucky").await;
    plain_target(ministack, CONSUMER).await;
    let create_topic = "aws sns create-topic --name checked --query TopicArn --output text";
    let topic = ministack.shell().run(create_topic).unwrap_or_else(|error| panic!("{error}"));
    let parameters = format!("TargetFunctions={function_arn} AlarmTopicArn={}", topic.trim());
    let stack = world.deploy("checked", &parameters).await;
    let ward = Ward::new(ministack, &stack, topic.trim());
    ward.run(MADE_HEALTHY);

    ward.assert_healthy();
    says_it_in_words(&ward);
    refuses_and_names_what_is_missing(&ward, ministack, &stack);
    let lister = Operator::of_command(ministack, "attach --list", &stack, FUNCTION);
    finds_the_functions_of_a_pattern(&ward, &lister);

    let missed: Vec<String> = FAULTS.iter().filter_map(|fault| ward.finds(fault).err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    let planted: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.check).collect();
    let [of_all, of_consumer] = [ward.doctor("").json(0), accepts_what_reads_sqs(ministack, &stack)];
    let checks = [&of_all, &of_consumer].map(|all| all["checks"].as_array().expect("a list")).into_iter();
    let numbers = checks.flatten().map(|check| check["id"].as_str().expect("text"));
    assert_eq!(planted, numbers.collect(), "each check has a fault");
    ward.assert_healthy();

    let prober = Operator::of_command(ministack, "doctor --probe", &stack, FUNCTION);
    let probed = prober.comeback("doctor --stack checked --only CB201 --probe");
    assert!(probed.stderr.contains("retry 1 invoked"), "{}", probed.stderr);
    assert!(probed.ended(0).contains("failed once, and its retry succeeded"));
}

struct Ward {
    shell: Shell,
    /// An operator with only the permissions that `docs/operate.md` lists for `doctor`.
    operator: Operator,
    /// An operator with all permissions, for faults that make `doctor` read a queue outside the stack.
    chief: Operator,
}

impl Ward {
    fn new(ministack: &MiniStack, stack: &Stack, topic: &str) -> Self {
        let run = |script: &str| ministack.shell().run(script).unwrap_or_else(|error| panic!("{error}"));
        let role = stack.output("RetryHandlerRoleName");
        let policy = format!(
            "aws iam get-role-policy --role-name {role} --policy-name retry-handler --query PolicyDocument --output json"
        );
        let name = |arn: &str| arn.rsplit(':').next().expect("it is there").to_owned();
        let targets = stack.output("AllowedTargetFunctions");
        let chief = Operator::of(ministack);
        let shell = chief
            .shell()
            .clone()
            .with("HANDLER", stack.output("RetryHandlerName"))
            .with("ROLE", role)
            .with("POLICY", run(&policy))
            .with("RETRY_URL", stack.output("RetryQueueUrl"))
            .with("RETRY_ARN", stack.output("RetryQueueArn"))
            .with("DEAD_URL", stack.output("DeadLetterQueueUrl"))
            .with("DEAD_ARN", stack.output("DeadLetterQueueArn"))
            .with("ALARM", format!("{}-not-empty", name(stack.output("DeadLetterQueueArn"))))
            .with("PAUSES", stack.output("PausesParameter"))
            .with("LOGS", stack.handler_logs())
            .with("EXAMPLE", stack.output("ExampleTargetName"))
            .with("FUNCTION", FUNCTION)
            .with("CONSUMER", CONSUMER)
            .with("FUNCTION_ARN", MiniStack::function_arn(FUNCTION))
            .with("TARGETS", targets)
            .with("TOPIC_ARN", topic);
        let operator = Operator::of_command(ministack, "doctor", stack, FUNCTION);
        Self { shell, operator, chief }
    }

    fn run(&self, script: &str) {
        self.runs(script).unwrap_or_else(|error| panic!("{error}"));
    }

    fn runs(&self, script: &str) -> Result<String, String> {
        let output = self.shell.output(&format!("{FUNCTIONS}\n{script}"));
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        if output.status.success() { Ok(stdout) } else { Err(format!("$ {script}\n{stdout}{stderr}")) }
    }

    fn doctor(&self, arguments: &str) -> Ran {
        self.operator.comeback(&format!("doctor --stack checked --json {arguments}"))
    }

    fn unhealthy(&self, report: &Value) -> Vec<String> {
        let checks = report["checks"].as_array().expect("a list").iter();
        let found =
            checks.filter(|check| !["ok", "skipped"].contains(&check["outcome"].as_str().expect("text")));
        found
            .inspect(|check| println!("{check:#}"))
            .map(|check| check["id"].as_str().expect("text").to_owned())
            .collect()
    }

    fn assert_healthy(&self) {
        let report = self.doctor("--strict");
        let report: Value =
            serde_json::from_str(&report.stdout).unwrap_or_else(|_| panic!("{}", report.stderr));
        assert_eq!(self.unhealthy(&report), [""; 0]);
        assert_eq!(report["healthy"], true);
    }

    /// Injects a fault, checks that `doctor` finds it, and undoes the fault.
    fn finds(&self, fault: &Fault) -> Result<(), String> {
        let of_fault = |error: String| format!("{}, {}: {error}", fault.check, fault.plant);
        self.runs(fault.plant).map_err(of_fault)?;
        let arguments = format!("doctor --stack checked --json {} --only {}", fault.arguments, fault.check);
        let ran = self.chief.comeback(&arguments);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        let is_it = |check: &&Value| {
            let has = |name: &str| check[name].as_str().is_some_and(|text| !text.is_empty());
            let [about, found] = ["about", "found"].map(|name| check[name].as_str().unwrap_or_default());
            let is_said = format!("{about}: {found}").contains(fault.found);
            check["outcome"] == fault.outcome && is_said && has("means") && has("fix")
        };
        let found = report["checks"].as_array().and_then(|checks| checks.iter().find(is_it));
        let fix = found.and_then(|check| check["fix"].as_str()).map(with_topic).unwrap_or_default();
        let undone = match fault.undo {
            Undo::Fix => self.runs(&fix),
            Undo::FixAnd(script) => self.runs(&format!("{fix}\n{script}")),
            Undo::By(script) => self.runs(script),
        };
        undone.map_err(of_fault)?;
        let code = if fault.outcome == "broken" { 3 } else { 0 };
        if found.is_some() && ran.code == code {
            return Ok(());
        }
        Err(of_fault(format!("exit {}, {}{report:#}", ran.code, ran.stderr)))
    }
}

/// Asserts that `doctor` reports the same checks for a function that reads an SQS queue, whether or not the stack
/// exists. Returns the report made without a stack.
fn accepts_what_reads_sqs(ministack: &MiniStack, stack: &Stack) -> Value {
    let operator = Operator::of_command(ministack, "doctor", stack, CONSUMER);
    let of_deployment = operator.comeback(&format!("doctor {CONSUMER} --stack checked --json")).json(0);
    let alone =
        operator.comeback(&format!("doctor {CONSUMER} --stack no-such-stack --json --strict")).json(0);
    let about = |report: &Value| -> Vec<Value> {
        let checks = report["checks"].as_array().expect("a list").iter();
        checks.filter(|check| check["about"] == CONSUMER).cloned().collect()
    };
    assert_eq!(about(&of_deployment), about(&alone), "it is not asked to be attached");
    assert_eq!(alone["checks"].as_array().map(Vec::len), Some(6));
    alone
}

fn with_topic(fix: &str) -> String {
    fix.replace("TOPIC_ARN", "\"$TOPIC_ARN\"")
}

fn says_it_in_words(ward: &Ward) {
    ward.run("mapping --batch-size 5");
    let text = ward.operator.comeback("doctor --stack checked --skip CB001").ended(0);
    for expected in [
        " of stack checked\n\nevent source mapping\nok      CB002: ",
        "\nWARNING CB004: the mapping's batch size is 5\n        means: smaller batches",
        "\n        fix:   aws lambda update-event-source-mapping --uuid ",
        "CB102 checked-orders: its failures go to the retry queue: ",
        " skipped, 1 warning, 0 broken\n",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
    assert!(!text.contains('\x1b') && !text.contains("CB001"), "{text}");
    let short = ward.operator.comeback("doctor checked-orders --stack checked --short").ended(0);
    let lines: Vec<&str> = short.lines().filter(|line| line.contains("CB")).collect();
    assert!(matches!(lines[..], [line] if line.starts_with("WARNING CB004: ")), "{short}");
    let strict = ward.operator.comeback("doctor --stack checked --only CB004 --strict");
    assert!(strict.stderr.contains("0 of 1 check"), "{}", strict.stderr);
    assert_eq!(strict.code, 3);
    ward.run("mapping --batch-size 10");
}

fn refuses_and_names_what_is_missing(ward: &Ward, ministack: &MiniStack, stack: &Stack) {
    let unknown = ward.doctor("--only CB999");
    assert!(unknown.stderr.contains("\"CB999\" is not a check"), "{}", unknown.stderr);
    assert_eq!(unknown.code, 2);
    let no_stack = ward.operator.comeback("doctor --stack no-such-stack");
    assert!(no_stack.stderr.contains("cloudformation:ListStackResources"), "{}", no_stack.stderr);
    assert_eq!(no_stack.code, 1);
    // This user may inspect the deployment and read pauses and logs. (On MiniStack, everybody may read CloudWatch's
    // alarms and metrics.)
    let stranger = Operator::of_command(ministack, "trace", stack, FUNCTION);
    let report = stranger.comeback("doctor --stack checked --json").json(0);
    for (check, action) in [
        ("CB022", "lambda:ListFunctionEventInvokeConfigs"),
        ("CB030", "iam:SimulatePrincipalPolicy"),
        ("CB101", "lambda:ListFunctionEventInvokeConfigs"),
    ] {
        let found = report["checks"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|it| it["id"] == check)
            .expect("it is there");
        assert_eq!(found["outcome"], "warning", "{found:#}");
        assert!(found["found"].as_str().expect("text").contains(action), "{found:#}");
    }
    assert_eq!(stranger.comeback("doctor --stack checked --strict").code, 3);
}

fn finds_the_functions_of_a_pattern(ward: &Ward, lister: &Operator) {
    ward.run("variable TARGET_FUNCTIONS \"$(echo \"$FUNCTION_ARN\" | sed 's/orders$/*/')\"");
    let report = ward.doctor("--only CB100,CB108").json(0);
    let found = report["checks"][0]["found"].as_str().expect("text");
    assert!(found.contains(FUNCTION) && !found.contains("retry-handler"), "{report:#}");
    let list = lister.comeback("attach --list --stack checked --json").json(0);
    let functions = list["functions"].as_array().expect("a list").iter();
    let names: Vec<&str> = functions.filter_map(|it| it["function"].as_str()).collect();
    assert!(names.contains(&FUNCTION), "{list:#}");
    assert_eq!(list["patterns"].as_array().map(Vec::len), Some(1), "{list:#}");
    ward.run("variable TARGET_FUNCTIONS \"$TARGETS\"");
}
