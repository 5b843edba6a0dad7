//! What the template promises and no local stack would miss: read from the template itself.

use std::collections::BTreeSet;

use comeback_tests::template;
use serde_json::{Value, json};

fn properties(resource: &str) -> &'static Value {
    &template()["Resources"][resource]["Properties"]
}

#[test]
fn both_queues_keep_what_they_hold_for_14_days_encrypted() {
    for queue in ["RetryQueue", "DeadLetterQueue"] {
        let queue = properties(queue);
        assert_eq!(queue["MessageRetentionPeriod"], 14 * 24 * 3_600);
        assert_eq!(queue["SqsManagedSseEnabled"], true);
    }
}

#[test]
fn sqs_itself_dead_letters_as_late_as_it_can() {
    let redrive = &properties("RetryQueue")["RedrivePolicy"];
    let dead_letter_queue = json!({"Fn::GetAtt": ["DeadLetterQueue", "Arn"]});
    assert_eq!(redrive, &json!({"deadLetterTargetArn": dead_letter_queue, "maxReceiveCount": 1_000}));
}

#[test]
fn both_queues_refuse_what_does_not_come_over_tls() {
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

#[test]
fn the_queue_hides_a_message_for_six_times_the_handlers_timeout() {
    assert_eq!(properties("RetryHandler")["Timeout"], 30);
    assert_eq!(properties("RetryQueue")["VisibilityTimeout"], 6 * 30);
}

#[test]
fn lambda_does_not_stop_the_loop() {
    assert_eq!(template()["Globals"]["Function"]["RecursiveLoop"], "Allow");
    for function in ["RetryHandler", "ExampleTarget"] {
        let own = &properties(function)["RecursiveLoop"];
        assert!(own.is_null(), "{function} has what all functions have, not {own}");
    }
}

#[test]
fn the_mapping_passes_ten_at_once_and_keeps_what_failed() {
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
            "ScalingConfig": {"MaximumConcurrency": 10},
        })
    );
}

#[test]
fn the_example_leaves_its_retries_to_comeback() {
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

/// With the default, and with ARNs of one's own; the end-to-end tests see what a deployment makes of it.
#[test]
fn the_handlers_role_allows_exactly_what_it_does() {
    let role = &properties("RetryHandlerRole")["Policies"];
    assert_eq!(role.as_array().map(Vec::len), Some(1));
    let statements = role[0]["PolicyDocument"]["Statement"].as_array().expect("the policy has statements");
    let allowed: Vec<_> =
        statements.iter().map(|statement| (&statement["Action"], &statement["Resource"])).collect();
    let arn = |resource| json!({"Fn::GetAtt": [resource, "Arn"]});
    let any_qualifier = json!({"Fn::Join": [":*,", {"Fn::Split": [",", {"Ref": "TargetFunctions"}]}]});
    let given = json!({"Fn::Sub": ["${TargetFunctions},${Qualified}:*", {"Qualified": any_qualifier}]});
    let example = json!([arn("ExampleTarget"), {"Fn::Sub": "${ExampleTarget.Arn}:*"}]);
    let targets = json!({"Fn::If": ["OnlyTheExample", example, {"Fn::Split": [",", given]}]});
    let queue = json!([
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "sqs:ChangeMessageVisibility"
    ]);
    let expected = [
        (&queue, &arn("RetryQueue")),
        (&json!("sqs:SendMessage"), &arn("DeadLetterQueue")),
        (&json!("lambda:InvokeFunction"), &targets),
        (&json!(["logs:CreateLogStream", "logs:PutLogEvents"]), &arn("RetryHandlerLogs")),
    ];
    assert_eq!(allowed, expected);
}

#[test]
fn every_variable_of_the_policy_is_a_parameter() {
    let variables = &properties("RetryHandler")["Environment"]["Variables"];
    for (variable, parameter) in [
        ("MAX_AGE", "MaxAge"),
        ("MAX_RETRIES", "MaxRetries"),
        ("BASE_BACKOFF", "BaseBackoff"),
        ("MAX_BACKOFF", "MaxBackoff"),
        ("JITTER", "Jitter"),
        ("ENVELOPE", "Envelope"),
        ("NON_RETRYABLE_ERRORS", "NonRetryableErrors"),
    ] {
        assert_eq!(variables[variable], json!({"Ref": parameter}));
        assert!(template()["Parameters"][parameter].get("Default").is_some(), "{parameter} has a default");
    }
    let names = variables.as_object().expect("variables").keys().map(String::as_str).collect::<BTreeSet<_>>();
    let others = ["RETRY_QUEUE_URL", "DEAD_LETTER_QUEUE_URL", "TARGET_FUNCTIONS"];
    assert_eq!(names.len(), 7 + others.len());
    assert!(others.iter().all(|other| names.contains(other)), "{names:?}");
}
