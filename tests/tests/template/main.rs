//! Tests properties of the template that no local stack can show. The tests read the template itself.
//!
//! | file | contents |
//! |---|---|
//! | `settings` | tests that the handler, docs/settings.md and the template agree on defaults, ranges and refusals |
//! | `cloudformation` | tests of the release's template for CloudFormation without SAM |
//! | `alarms` | tests that each alarm fires in the situation that it reports |
//! | `cloudwatch` | a model of how CloudWatch evaluates an alarm |
//! | `quoting` | tests that each tool parses quoted values with spaces correctly |

mod alarms;
mod cloudformation;
mod cloudwatch;
mod quoting;
mod settings;

use comeback_engine::{HANDLER_TIMEOUT, QUEUE_VISIBILITY_TIMEOUT};
use comeback_tests::{pages, template};
use serde_json::{Value, json};

fn properties(resource: &str) -> &'static Value {
    &template()["Resources"][resource]["Properties"]
}

#[test]
fn both_queues_outlive_the_stack() {
    for queue in ["RetryQueue", "DeadLetterQueue"] {
        let queue = &template()["Resources"][queue];
        assert_eq!(queue["DeletionPolicy"], "RetainExceptOnCreate");
        assert_eq!(queue["UpdateReplacePolicy"], "Retain");
    }
}

#[test]
fn both_queues_keep_large_messages_for_14_days() {
    for queue in ["RetryQueue", "DeadLetterQueue"] {
        let queue = properties(queue);
        assert_eq!(queue["MaximumMessageSize"], 1_048_576);
        assert_eq!(queue["MessageRetentionPeriod"], 14 * 24 * 3_600);
    }
}

/// SQS refuses a queue with both kinds of encryption.
#[test]
fn both_queues_are_encrypted_by_sqs_or_by_the_given_key() {
    let none = json!({"Ref": "AWS::NoValue"});
    assert_eq!(template()["Parameters"]["KmsKeyArn"]["Default"], "");
    assert_eq!(
        template()["Conditions"]["WithKey"],
        json!({"Fn::Not": [{"Fn::Equals": [{"Ref": "KmsKeyArn"}, ""]}]})
    );
    for queue in ["RetryQueue", "DeadLetterQueue"] {
        let queue = properties(queue);
        assert_eq!(queue["SqsManagedSseEnabled"], json!({"Fn::If": ["WithKey", none, true]}));
        assert_eq!(queue["KmsMasterKeyId"], json!({"Fn::If": ["WithKey", {"Ref": "KmsKeyArn"}, none]}));
        assert_eq!(queue["KmsDataKeyReusePeriodSeconds"], json!({"Fn::If": ["WithKey", 3_600, none]}));
    }
}

#[test]
fn example_may_use_the_key_that_encrypts_its_failures() {
    let statements = &properties("ExampleTargetRole")["Policies"][0]["PolicyDocument"]["Statement"];
    let use_key = json!({
        "Sid": "UseKey",
        "Effect": "Allow",
        "Action": ["kms:GenerateDataKey", "kms:Decrypt"],
        "Resource": {"Ref": "KmsKeyArn"},
        "Condition": {"StringEquals": {"kms:ViaService": {"Fn::Sub": "sqs.${AWS::Region}.amazonaws.com"}}},
    });
    assert_eq!(statements[1], json!({"Fn::If": ["WithKey", use_key, {"Ref": "AWS::NoValue"}]}));
}

#[test]
fn sqs_itself_dead_letters_after_1000_receives() {
    let redrive = &properties("RetryQueue")["RedrivePolicy"];
    let dead_letter_queue = json!({"Fn::GetAtt": ["DeadLetterQueue", "Arn"]});
    assert_eq!(redrive, &json!({"deadLetterTargetArn": dead_letter_queue, "maxReceiveCount": 1_000}));
}

#[test]
fn both_queues_refuse_requests_without_tls() {
    for (policy, queue) in
        [("RetryQueueTlsOnly", "RetryQueue"), ("DeadLetterQueueTlsOnly", "DeadLetterQueue")]
    {
        let properties = properties(policy);
        assert_eq!(properties["Queues"], json!([{"Ref": queue}]));
        let statement = json!({
            "Sid": "TlsOnly",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": {"Fn::GetAtt": [queue, "Arn"]},
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        });
        assert_eq!(properties["PolicyDocument"]["Statement"], json!([statement]));
    }
}

/// The template's timeouts match the constants in the code.
///
/// `maxReceiveCount` must be so high that, even without a handler, a message expires before SQS dead-letters it.
#[test]
fn timeouts_are_those_of_the_code() {
    let queue = properties("RetryQueue");
    let number = |value: &Value| value.as_u64().expect("a number");
    let visibility_timeout = number(&queue["VisibilityTimeout"]);
    let receives = number(&queue["RedrivePolicy"]["maxReceiveCount"]);
    assert!(receives * visibility_timeout > number(&queue["MessageRetentionPeriod"]));
    assert_eq!(visibility_timeout, QUEUE_VISIBILITY_TIMEOUT.as_secs());
    let timeout = number(&properties("RetryHandler")["Timeout"]);
    assert_eq!(timeout, HANDLER_TIMEOUT.as_secs());
    assert!(visibility_timeout >= 6 * timeout, "Lambda asks for this");
}

#[test]
fn lambda_does_not_stop_the_loop() {
    assert_eq!(template()["Globals"]["Function"]["RecursiveLoop"], "Allow");
    for function in ["RetryHandler", "ExampleTarget"] {
        let own = &properties(function)["RecursiveLoop"];
        assert!(own.is_null(), "{function} inherits the setting, and has {own}");
    }
}

#[test]
fn mapping_passes_batches_of_ten_and_keeps_failures() {
    let events = properties("RetryHandler")["Events"].as_object().expect("the handler has events");
    let mapping = events.values().next().expect("and one of them");
    assert_eq!(events.len(), 1);
    assert_eq!(
        mapping["Properties"],
        json!({
            "Queue": {"Fn::GetAtt": ["RetryQueue", "Arn"]},
            "BatchSize": 10,
            "MaximumBatchingWindowInSeconds": 0,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ScalingConfig": {"MaximumConcurrency": {"Ref": "MaximumConcurrency"}},
        })
    );
}

#[test]
fn example_leaves_its_retries_to_comeback() {
    let example = properties("ExampleTarget");
    assert_eq!(
        example["EventInvokeConfig"],
        json!({
            "MaximumRetryAttempts": 0,
            "MaximumEventAgeInSeconds": 60,
            "DestinationConfig": {
                "OnFailure": {"Type": "SQS", "Destination": {"Fn::GetAtt": ["RetryQueue", "Arn"]}}
            },
        })
    );
    assert!(
        example["AutoPublishAlias"].is_null(),
        "an alias would take the configuration away from the function"
    );
}

/// The stack has no example target if the parameter `Example` is `no`.
#[test]
fn example_is_optional() {
    let example = &template()["Parameters"]["Example"];
    assert_eq!(example["Default"], "yes");
    assert_eq!(example["AllowedValues"], json!(["yes", "no"]));
    for resource in ["ExampleTarget", "ExampleTargetRole", "ExampleTargetLogs"] {
        assert_eq!(template()["Resources"][resource]["Condition"], "WithExample", "{resource}");
    }
    assert_eq!(template()["Outputs"]["ExampleTargetName"]["Condition"], "WithExample");
}

/// The handler's role has one statement for the example target, and one for the ARNs in `TargetFunctions`.
#[test]
fn handlers_role_allows_exactly_what_it_needs() {
    let role = &properties("RetryHandlerRole")["Policies"];
    assert_eq!(role.as_array().map(Vec::len), Some(1));
    let statements = role[0]["PolicyDocument"]["Statement"].as_array().expect("the policy has statements");
    // Each entry has the condition, the actions and the resources of a statement.
    let allowed = statements.iter().map(|statement| match &statement["Fn::If"] {
        Value::Null => (None, &statement["Action"], &statement["Resource"]),
        conditional => {
            assert_eq!(conditional[2], json!({"Ref": "AWS::NoValue"}));
            (conditional[0].as_str(), &conditional[1]["Action"], &conditional[1]["Resource"])
        }
    });
    let allowed: Vec<_> = allowed.collect();
    let arn = |resource| json!({"Fn::GetAtt": [resource, "Arn"]});
    let any_qualifier = json!({"Fn::Join": [":*,", {"Fn::Split": [",", {"Ref": "TargetFunctions"}]}]});
    let given = json!({"Fn::Sub": ["${TargetFunctions},${Qualified}:*", {"Qualified": any_qualifier}]});
    let targets = json!({"Fn::Split": [",", given]});
    let example = json!([arn("ExampleTarget"), {"Fn::Sub": "${ExampleTarget.Arn}:*"}]);
    let queue = json!([
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "sqs:ChangeMessageVisibility"
    ]);
    let key = (json!(["kms:GenerateDataKey", "kms:Decrypt"]), json!({"Ref": "KmsKeyArn"}));
    let parameter = "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/comeback/${AWS::StackName}/pauses";
    let expected = [
        (None, &queue, &arn("RetryQueue")),
        (None, &json!("sqs:SendMessage"), &arn("DeadLetterQueue")),
        (None, &json!("sqs:SendMessage"), &arn("RetryQueue")),
        (Some("WithKey"), &key.0, &key.1),
        (None, &json!("ssm:GetParameter"), &json!({"Fn::Sub": parameter})),
        (Some("WithExample"), &json!("lambda:InvokeFunction"), &example),
        (Some("WithTargetFunctions"), &json!("lambda:InvokeFunction"), &targets),
        (None, &json!(["logs:CreateLogStream", "logs:PutLogEvents"]), &arn("RetryHandlerLogs")),
    ];
    assert_eq!(allowed, expected);
}

#[test]
fn handler_reads_the_parameter_of_the_output() {
    let name = json!({"Fn::Sub": "/comeback/${AWS::StackName}/pauses"});
    assert_eq!(properties("RetryHandler")["Environment"]["Variables"]["PAUSES"], name);
    assert_eq!(template()["Outputs"]["PausesParameter"]["Value"], name);
}

/// The commands in docs/deploy-cargo-lambda.md use the template's sizes, timeouts and defaults.
#[test]
fn page_of_cargo_lambda_has_the_templates_figures() {
    let page = pages::blocks("docs/deploy-cargo-lambda.md", "The stack by hand").join("\n");
    let number = |value: &Value| value.as_u64().expect("a number");
    let (retry, dead, handler) =
        (properties("RetryQueue"), properties("DeadLetterQueue"), properties("RetryHandler"));
    let default = |parameter| &template()["Parameters"][parameter]["Default"];
    for name in ["MaximumMessageSize", "MessageRetentionPeriod"] {
        assert!(page.contains(&format!("{name}={}", number(&dead[name]))), "{name}");
        assert!(page.contains(&format!(r#""{name}":"{}""#, number(&retry[name]))), "{name}");
    }
    for expected in [
        format!(r#""VisibilityTimeout":"{}""#, number(&retry["VisibilityTimeout"])),
        format!("--memory {} ", number(&handler["MemorySize"])),
        format!("--timeout {} ", number(&handler["Timeout"])),
        format!("--retention-in-days {}", number(default("LogRetentionDays"))),
        format!("--env-var HIDE_UP_TO={} ", default("HideUpTo").as_str().expect("text")),
        format!("--env-var MAXIMUM_CONCURRENCY={}\n", number(default("MaximumConcurrency"))),
        format!("--scaling-config MaximumConcurrency={}", number(default("MaximumConcurrency"))),
        "for QUEUE_URL in \"$RETRY_QUEUE_URL\" \"$DEAD_LETTER_QUEUE_URL\"; do".to_owned(),
    ] {
        assert!(page.contains(&expected), "{expected}");
    }
    let statement = &properties("RetryQueueTlsOnly")["PolicyDocument"]["Statement"][0];
    let condition = statement["Condition"].to_string().replace('"', "\\\"");
    assert!(page.contains(&condition), "{condition}");
}
