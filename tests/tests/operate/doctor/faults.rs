/// A fault: the script that injects it into a healthy stack, and the finding that `doctor` must report.
pub(super) struct Fault {
    pub(super) check: &'static str,
    pub(super) plant: &'static str,
    pub(super) arguments: &'static str,
    pub(super) outcome: &'static str,
    /// Text that the finding must contain. It may begin with the name of the finding's subject.
    pub(super) found: &'static str,
    pub(super) undo: Undo,
}

pub(super) enum Undo {
    /// The fault is fixed by the command that `doctor` suggests.
    Fix,
    /// The fault is fixed by the command that `doctor` suggests, followed by this script.
    FixAnd(&'static str),
    /// The fault is fixed by this script, because the command that `doctor` suggests contains a placeholder.
    By(&'static str),
}

const fn broken(check: &'static str, plant: &'static str, found: &'static str, undo: Undo) -> Fault {
    Fault { check, plant, arguments: "", outcome: "broken", found, undo }
}

const fn warning(check: &'static str, plant: &'static str, found: &'static str, undo: Undo) -> Fault {
    Fault { check, plant, arguments: "", outcome: "warning", found, undo }
}

/// Returns the fault with an added argument that makes `doctor` check `checked-consumer`, a function that reads from
/// its own SQS queue.
const fn of_consumer(fault: Fault) -> Fault {
    Fault { arguments: "checked-consumer", ..fault }
}

use Undo::{By, Fix, FixAnd};

pub(super) const FAULTS: &[Fault] = &[
    broken("CB001", "mapping --no-enabled", "is Disabled", Fix),
    broken(
        "CB001",
        "aws lambda delete-event-source-mapping --uuid \"$(uuid)\"",
        "no event source mapping",
        Fix,
    ),
    broken(
        "CB002",
        "aws lambda create-event-source-mapping --function-name \"$HANDLER\" --event-source-arn \"$DEAD_ARN\" --no-enabled",
        "also feeds the handler",
        Fix,
    ),
    broken("CB003", "mapping --function-response-types '[]'", "is off", Fix),
    warning("CB004", "mapping --batch-size 5", "batch size is 5", Fix),
    warning("CB005", "mapping --maximum-batching-window-in-seconds 5", "5 s", Fix),
    broken(
        "CB006",
        "mapping --scaling-config MaximumConcurrency=20",
        "is 20, but the handler assumes 10",
        Fix,
    ),
    broken("CB006", "mapping --scaling-config '{}'", "no MaximumConcurrency", Fix),
    broken(
        "CB010",
        "variable DEAD_LETTER_QUEUE_URL \"$RETRY_URL\"",
        "is both",
        By("variable DEAD_LETTER_QUEUE_URL \"$DEAD_URL\""),
    ),
    broken(
        "CB010",
        "variable DEAD_LETTER_QUEUE_URL \"$(aws sqs create-queue --queue-name checked.fifo --attributes FifoQueue=true \
         --query QueueUrl --output text)\"",
        "checked.fifo is a FIFO queue",
        By("variable DEAD_LETTER_QUEUE_URL \"$DEAD_URL\""),
    ),
    broken("CB011", "queue \"$RETRY_URL\" VisibilityTimeout=30", "under 6 times the handler's timeout", Fix),
    broken("CB012", "redrive \"$DEAD_ARN\" 5", "5 receives", Fix),
    warning("CB012", "queue \"$RETRY_URL\" RedrivePolicy=", "no redrive policy", Fix),
    broken(
        "CB013",
        "aws sqs create-queue --queue-name checked-other\nredrive \"${DEAD_ARN%:*}:checked-other\" 1000",
        "SQS redrives to arn:aws:sqs",
        Fix,
    ),
    broken(
        "CB014",
        "queue \"$RETRY_URL\" MessageRetentionPeriod=345600",
        "the retry queue keeps messages for 4d",
        Fix,
    ),
    warning("CB014", "queue \"$DEAD_URL\" MessageRetentionPeriod=345600", "the dead-letter queue keeps", Fix),
    broken(
        "CB015",
        "queue \"$DEAD_URL\" MaximumMessageSize=262144",
        "the dead-letter queue accepts at most 262144 bytes",
        Fix,
    ),
    broken("CB020", "variable MAX_AGE 30", "MAX_AGE is 30 s", By("variable MAX_AGE 86400")),
    warning("CB021", "handler --timeout 30", "30 s", Fix),
    broken(
        "CB022",
        "aws lambda put-function-recursion-config --function-name \"$HANDLER\" --recursive-loop Terminate",
        "Terminate",
        Fix,
    ),
    broken(
        "CB023",
        "aws lambda put-function-concurrency --function-name \"$HANDLER\" --reserved-concurrent-executions 0",
        "reserved concurrency is 0",
        Fix,
    ),
    warning(
        "CB024",
        "aws logs create-log-stream --log-group-name \"$LOGS\" --log-stream-name planted\n\
         aws logs put-log-events --log-group-name \"$LOGS\" --log-stream-name planted --log-events \
         \"timestamp=$(date +%s000),message='{\\\"level\\\":\\\"ERROR\\\",\\\"problem\\\":\\\"it was planted\\\"}'\"",
        "1 ERROR in the last 24 h; the latest, at ",
        By("aws logs delete-log-stream --log-group-name \"$LOGS\" --log-stream-name planted"),
    ),
    warning(
        "CB025",
        "mapping --scaling-config MaximumConcurrency=600",
        "takes up to 600, which leaves ",
        By("mapping --scaling-config MaximumConcurrency=10"),
    ),
    warning(
        "CB026",
        "aws logs delete-log-group --log-group-name \"$LOGS\"\n\
         aws logs create-log-group --log-group-name \"$LOGS\" --log-group-class INFREQUENT_ACCESS",
        "is of class INFREQUENT_ACCESS",
        By("aws logs delete-log-group --log-group-name \"$LOGS\"\n\
            aws logs create-log-group --log-group-name \"$LOGS\""),
    ),
    broken("CB030", "without TakeFromTheRetryQueue", "sqs:ChangeMessageVisibility", FixAnd("restored CB030")),
    warning("CB031", "without Move", "sqs:SendMessage", FixAnd("restored CB031")),
    broken("CB032", "without DeadLetter", "sqs:SendMessage", FixAnd("restored CB032")),
    broken(
        "CB032",
        "aws iam put-role-policy --role-name \"$ROLE\" --policy-name planted --policy-document \
         '{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Deny\",\"Action\":\"sqs:*\",\"Resource\":\"*\"}]}'",
        "a policy denies sqs:SendMessage",
        By("aws iam delete-role-policy --role-name \"$ROLE\" --policy-name planted"),
    ),
    warning("CB033", "without Log", "logs:PutLogEvents", FixAnd("restored CB033")),
    broken("CB034", "without ReadPauses", "ssm:GetParameter", FixAnd("restored CB034")),
    warning(
        "CB035",
        "queue \"$DEAD_URL\" KmsMasterKeyId=\"$(new_key)\"",
        "the key's own policy may",
        FixAnd(
            "queue \"$DEAD_URL\" SqsManagedSseEnabled=true; queue \"$DEAD_URL\" KmsMasterKeyId=; restored CB035",
        ),
    ),
    broken(
        "CB035",
        "queue \"$DEAD_URL\" KmsMasterKeyId=\"$(disabled_key)\"",
        " is Disabled",
        FixAnd("queue \"$DEAD_URL\" SqsManagedSseEnabled=true; queue \"$DEAD_URL\" KmsMasterKeyId="),
    ),
    // The fix creates the alarm that the next two faults break.
    warning(
        "CB040",
        "aws cloudwatch delete-alarms --alarm-names $(aws cloudwatch describe-alarms --alarm-name-prefix checked- \
         --query 'MetricAlarms[].AlarmName' --output text)",
        "neither queue nor the handler",
        Fix,
    ),
    warning(
        "CB041",
        "aws cloudwatch set-alarm-state --alarm-name \"$ALARM\" --state-value ALARM --state-reason planted",
        "in state ALARM: ",
        By("aws cloudwatch set-alarm-state --alarm-name \"$ALARM\" --state-value OK --state-reason planted"),
    ),
    warning(
        "CB042",
        "aws cloudwatch disable-alarm-actions --alarm-names \"$ALARM\"",
        "alarms notify nobody: ",
        Fix,
    ),
    warning("CB050", "paused 172800", "by ops: planted", By("aws ssm delete-parameter --name \"$PAUSES\"")),
    warning(
        "CB051",
        "aws ssm put-parameter --name \"$PAUSES\" --type String --overwrite --value \
         \"{\\\"v\\\":1,\\\"pauses\\\":[],\\\"mail\\\":\\\"$(printf %3100s x)\\\"}\"",
        "of at most 4096 bytes",
        By("aws ssm delete-parameter --name \"$PAUSES\""),
    ),
    warning(
        "CB100",
        "variable TARGET_FUNCTIONS ''",
        "no function is attached",
        By("variable TARGET_FUNCTIONS \"$TARGETS\""),
    ),
    broken(
        "CB101",
        "variable TARGET_FUNCTIONS \"$TARGETS,${FUNCTION_ARN}-gone\"",
        "checked-orders-gone: the function does not exist",
        Fix,
    ),
    broken(
        "CB102",
        "aws lambda delete-function-event-invoke-config --function-name \"$FUNCTION\"",
        "on failure: not set → arn:aws:sqs:",
        Fix,
    ),
    // Only an alias of the function has this fault.
    warning(
        "CB103",
        "aws lambda create-alias --function-name \"$FUNCTION\" --name live --function-version '$LATEST'\n\
         attached 1 60 \"$RETRY_ARN\" --qualifier live",
        "checked-orders:live: retries: 1 → 0",
        By("aws lambda delete-function-event-invoke-config --function-name \"$FUNCTION\" --qualifier live\n\
            aws lambda delete-alias --function-name \"$FUNCTION\" --name live"),
    ),
    warning("CB104", "attached 0 3600 \"$RETRY_ARN\"", "event age: 3600s → 60s", Fix),
    broken(
        "CB105",
        "aws iam delete-role-policy --role-name \"$FUNCTION\" --policy-name send",
        "sqs:SendMessage",
        Fix,
    ),
    warning(
        "CB106",
        "queue \"$RETRY_URL\" KmsMasterKeyId=\"$(new_key)\"",
        "no policy of checked-orders allows kms:GenerateDataKey",
        FixAnd("queue \"$RETRY_URL\" SqsManagedSseEnabled=true; queue \"$RETRY_URL\" KmsMasterKeyId="),
    ),
    broken(
        "CB107",
        "aws lambda put-function-recursion-config --function-name \"$FUNCTION\" --recursive-loop Terminate",
        "Terminate",
        Fix,
    ),
    Fault {
        arguments: "checked-orders",
        ..broken(
            "CB108",
            "variable TARGET_FUNCTIONS \"${TARGETS%,*}\"",
            "does not allow",
            By("variable TARGET_FUNCTIONS \"$TARGETS\""),
        )
    },
    broken(
        "CB109",
        "without ReinvokeTargets",
        "lambda:InvokeFunction",
        FixAnd("restored \"CB109-$FUNCTION\""),
    ),
    broken(
        "CB110",
        "aws lambda put-function-concurrency --function-name \"$FUNCTION\" --reserved-concurrent-executions 0",
        "reserved concurrency is 0",
        Fix,
    ),
    // This fault gets a separate function, because the function's metric cannot be removed.
    Fault {
        arguments: "checked-unlucky",
        ..broken(
            "CB111",
            "aws cloudwatch put-metric-data --namespace AWS/Lambda --metric-name DestinationDeliveryFailures --value 3 \
             --dimensions FunctionName=checked-unlucky",
            "is 3 in the last 24 h",
            By("true"),
        )
    },
    warning(
        "CB112",
        "variable TARGET_FUNCTIONS \"$FUNCTION_ARN\"; variable NON_RETRYABLE_ERRORS com.acme.Refused",
        "no error of python3.12 can match com.acme.Refused",
        FixAnd("variable TARGET_FUNCTIONS \"$TARGETS\""),
    ),
    warning(
        "CB113",
        "variable POLICIES 'checked-ordres MAX_AGE=2h'",
        "matches checked-ordres",
        By("variable POLICIES ''"),
    ),
    warning(
        "CB115",
        "aws lambda update-function-configuration --function-name \"$FUNCTION\" --dead-letter-config TargetArn=\"$DEAD_ARN\"",
        "its DeadLetterConfig names",
        Fix,
    ),
    Fault {
        arguments: "--probe",
        ..broken(
            "CB201",
            "variable NON_RETRYABLE_ERRORS '*'",
            "the event was dead-lettered",
            By("variable NON_RETRYABLE_ERRORS ''"),
        )
    },
    of_consumer(broken(
        "CB301",
        "aws lambda update-event-source-mapping --uuid \"$(consumer_uuid)\" --function-response-types '[]'",
        "is off",
        Fix,
    )),
    of_consumer(broken(
        "CB302",
        "queue \"$(consumed)\" VisibilityTimeout=30",
        "is 30 s, shorter than the function's timeout of 60 s",
        Fix,
    )),
    of_consumer(broken(
        "CB303",
        "queue \"$(consumed)\" MessageRetentionPeriod=86400",
        "keeps messages for 24h; max_age is 2d (its variable MAX_AGE)",
        Fix,
    )),
    of_consumer(warning(
        "CB304",
        "queue \"$(consumed)\" \
         '{\"RedrivePolicy\":\"{\\\"deadLetterTargetArn\\\":\\\"'\"$(consumed_arn -dead)\"'\\\",\\\"maxReceiveCount\\\":\\\"5\\\"}\"}'",
        "after 5 receives",
        Fix,
    )),
    of_consumer(broken(
        "CB305",
        "aws iam delete-role-policy --role-name \"$CONSUMER\" --policy-name ChangeMessageVisibility",
        "sqs:ChangeMessageVisibility",
        Fix,
    )),
    of_consumer(broken(
        "CB306",
        "aws iam delete-role-policy --role-name \"$CONSUMER\" --policy-name SendMessage",
        "sqs:SendMessage",
        Fix,
    )),
    of_consumer(broken(
        "CB306",
        "consumer_variables \"$(consumed -dead)-lost\"",
        "-dead-lost does not exist",
        By("consumer_variables \"$(consumed -dead)\""),
    )),
    of_consumer(broken(
        "CB306",
        "consumer_variables \"$CONSUMER-dead\"",
        "is not the URL of a queue",
        By("consumer_variables \"$(consumed -dead)\""),
    )),
];
