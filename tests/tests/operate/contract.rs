//! Tests that MiniStack fulfils the contract of `comeback-operate`'s port to AWS, as the simulated account does.

#[path = "../../../crates/operate/src/aws/simulated/tests/contract.rs"]
#[expect(clippy::unwrap_used, reason = "it is a test, and a unit test of another crate too")]
mod port;

use aws_sdk_cloudwatchlogs::types::InputLogEvent;
use aws_sdk_sqs::types::QueueAttributeName;
use comeback_operate::aws::sdk::SdkAws;
use comeback_operate::aws::{self, Aws as _};
use comeback_tests::{MiniStack, plain_target};

use crate::attach;
use crate::world::World;

/// The template of a stack whose resource has one of two parameters as its value.
const TEMPLATE: &str = r#"{"Parameters": {"Changed": {"Type": "String"}, "Kept": {"Type": "String"}},
    "Resources": {"Value": {"Type": "AWS::SSM::Parameter",
                            "Properties": {"Type": "String", "Value": {"Ref": "Changed"}}}}}"#;
const TOPIC: &str = "arn:aws:sns:eu-south-2:000000000000:on-call";

pub(crate) async fn ministack_keeps_the_contract_of_the_port(world: &World) {
    const NAME: &str = "port";
    let ministack = world.ministack().await;
    plain_target(ministack, NAME).await;
    attach::aws(ministack, &format!("lambda publish-version --function-name {NAME}"));
    attach::aws(
        ministack,
        &format!("lambda create-alias --function-name {NAME} --name live --function-version 1"),
    );
    let aws = SdkAws::new(ministack.config());
    let queue = ministack.sqs.create_queue().queue_name(NAME);
    let queue = queue.attributes(QueueAttributeName::VisibilityTimeout, "600").send().await;
    let url = queue.expect("SQS makes a queue").queue_url.expect("a queue has a URL");
    let attributes = aws.queue_attributes(&url, &["QueueArn"]).await;
    let queue_arn = attributes.expect("SQS answers").expect("the queue exists")["QueueArn"].clone();
    attach::aws(
        ministack,
        &format!(
            "lambda create-event-source-mapping --function-name {NAME} --event-source-arn {queue_arn} --batch-size 7 \
             --function-response-types ReportBatchItemFailures --no-enabled"
        ),
    );
    attach::aws(
        ministack,
        "cloudwatch put-metric-data --namespace Port \
         --metric-data 'MetricName=Count,Dimensions=[{Name=Of,Value=port}],Values=[2,3]'",
    );
    attach::aws(
        ministack,
        &format!(
            "cloudformation create-stack --stack-name {NAME} --template-body '{TEMPLATE}' --parameters \
             ParameterKey=Changed,ParameterValue=old ParameterKey=Kept,ParameterValue=old"
        ),
    );
    attach::aws(ministack, &format!("cloudformation wait stack-create-complete --stack-name {NAME}"));
    let key = attach::aws(ministack, "kms create-key")["KeyMetadata"]["Arn"].clone();
    write_log(ministack, "/port", aws.now().as_millis() as i64, &["one k-1", "two k-2"]).await;
    let fixture = port::Fixture {
        function: NAME.into(),
        function_arn: MiniStack::function_arn(NAME),
        alias: "live".into(),
        payload: r#"{"order": "port", "ledger": "/dev/null", "refusals": -1}"#.into(),
        role: NAME.into(),
        queue_arn,
        parameter: "/port".into(),
        alarm: "port-lost".into(),
        topic: TOPIC.into(),
        log_group: "/port".into(),
        namespace: "Port".into(),
        stack: NAME.into(),
        key: key.as_str().expect("a key has an ARN").into(),
    };
    port::all(&aws, &fixture).await;
}

async fn write_log(ministack: &MiniStack, group: &str, millis: i64, lines: &[&str]) {
    let logs = &ministack.logs;
    logs.create_log_group().log_group_name(group).send().await.expect("a log group");
    logs.create_log_stream().log_group_name(group).log_stream_name("a").send().await.expect("a log stream");
    let line = |line: &&str| {
        InputLogEvent::builder().timestamp(millis).message(*line).build().expect("both are set")
    };
    let put = logs.put_log_events().log_group_name(group).log_stream_name("a");
    put.set_log_events(Some(lines.iter().map(line).collect())).send().await.expect("CloudWatch takes them");
}
