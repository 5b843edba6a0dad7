//! Tests only that the stack's alarms and dashboard deploy, because MiniStack does not evaluate alarm expressions.

use std::collections::BTreeSet;

use comeback_tests::{Operator, Shell, eventually, pages};
use serde_json::Value;

use crate::world::World;

const SUBSCRIBE: &str = r#"
ARN=$(aws sqs get-queue-attributes --queue-url "$PAGER" --attribute-names QueueArn --query Attributes.QueueArn --output text)
POLICY='{\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"sqs:SendMessage\",\"Resource\":\"*\"}]}'
aws sqs set-queue-attributes --queue-url "$PAGER" --attributes "{\"Policy\":\"$POLICY\"}"
aws sns subscribe --topic-arn "$TOPIC_ARN" --protocol sqs --notification-endpoint "$ARN"
"#;

pub(crate) async fn alarms_notify_the_topic_and_are_on_the_dashboard(world: &World) {
    let ministack = world.ministack().await;
    let shell = ministack.shell();
    let topic = run(&shell, "aws sns create-topic --name on-call --query TopicArn --output text");
    let pager = run(&shell, "aws sqs create-queue --queue-name pager --query QueueUrl --output text");
    let topic = topic.trim();
    let stack = world.deploy("watched", &format!("AlarmTopicArn={topic} Dashboard=on")).await;
    let target = stack.output("ExampleTargetName");
    let shell = shell.with("TOPIC_ARN", topic).with("PAGER", pager.trim()).with("FUNCTION", target);
    run(&shell, SUBSCRIBE);

    let operator = Operator::of_command(ministack, "status", &stack, target);
    let status = || operator.comeback("status --stack watched --json").json(0);
    let alarms = status()["alarms"].as_array().expect("a list").clone();
    assert!(alarms.iter().all(|alarm| alarm["notifies"] == true && alarm["state"] != "ALARM"), "{alarms:?}");
    let names: BTreeSet<&str> = alarms.iter().map(|alarm| alarm["name"].as_str().expect("text")).collect();
    assert_eq!(names.len(), 10, "{names:?}");

    for name in &names {
        let set =
            format!("aws cloudwatch set-alarm-state --alarm-name {name} --state-reason test --state-value");
        run(&shell, &format!("{set} ALARM"));
        let raised = format!("1 of 10 alarms in state ALARM: {name}");
        assert!(operator.comeback("status --stack watched").ended(0).contains(&raised), "{raised}");
        run(&shell, &format!("{set} OK"));
    }
    let heard = eventually("all of it to be heard", async || {
        let queue = ministack.sqs.get_queue_attributes().queue_url(pager.trim());
        let count =
            queue.attribute_names("ApproximateNumberOfMessages".into()).send().await.expect("SQS answers");
        let count = count.attributes()?.values().next()?.parse::<usize>().ok()?;
        (count >= 2 * names.len()).then_some(count)
    })
    .await;
    assert_eq!(heard, 2 * names.len());

    assert_eq!(on_dashboard(&shell), names.iter().map(ToString::to_string).collect());
    run(&shell, &pages::blocks("docs/alarms.md", "An alarm for each function").join("\n"));
    run(&shell, "aws cloudwatch delete-alarms --alarm-names comeback-lost-anywhere");
}

fn on_dashboard(shell: &Shell) -> BTreeSet<String> {
    let body = run(
        shell,
        "aws cloudwatch get-dashboard --query DashboardBody --output text --dashboard-name \"$(aws cloudformation \
         describe-stack-resource --stack-name watched --logical-resource-id RetryDashboard \
         --query StackResourceDetail.PhysicalResourceId --output text)\"",
    );
    assert!(!body.contains("${"), "{body}");
    let body: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    let widgets = body["widgets"].as_array().expect("a list");
    let alarms = widgets.iter().filter(|widget| widget["type"] == "alarm").flat_map(|widget| {
        widget["properties"]["alarms"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|arn| arn.as_str().expect("text"))
    });
    alarms.map(|arn| arn.rsplit(':').next().expect("an ARN has fields").to_owned()).collect()
}

fn run(shell: &Shell, script: &str) -> String {
    shell.run(script).unwrap_or_else(|error| panic!("{error}"))
}
