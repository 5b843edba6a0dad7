//! MiniStack fulfils the contract of the operator's port, as the simulated account of `comeback-operate` does in that crate's
//! own tests. And the account of the command's tests against MiniStack: after each call, both are the same.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use aws_sdk_cloudwatchlogs::types::InputLogEvent;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName};
use comeback_engine::Record;
use comeback_operate::aws::Aws as _;
use comeback_operate::aws::contract::{self, Fixture};
use comeback_operate::aws::sdk::SdkAws;
use comeback_tests::{MiniStack, eventually, plain_target};
use comeback_timelapse::Depth;
use serde_json::{Value, json};

use crate::attach::{aws, policies, recursion, settings, tags};
use crate::model::{Account, Attributes, Call, Function, Queue};
use crate::world::World;

const FUNCTION: &str = "contract";
const QUEUE: &str = "contract";
const TOPIC: &str = "arn:aws:sns:eu-south-2:000000000000:on-call";

/// Retries and seconds; what is `None` is Lambda's default.
type Settings = (Option<i64>, Option<i64>);

pub(crate) async fn ministack_keeps_the_contract_of_the_port(world: &World) {
    const NAME: &str = "port";
    let ministack = world.ministack().await;
    plain_target(ministack, NAME).await;
    aws(ministack, &format!("lambda publish-version --function-name {NAME}"));
    aws(ministack, &format!("lambda create-alias --function-name {NAME} --name live --function-version 1"));
    let queue = RealQueue::new(&ministack.sqs, NAME).await;
    let port = SdkAws::new(ministack.config());
    let attributes = port.queue_attributes(&queue.url, &["QueueArn"]).await;
    let queue_arn = attributes.expect("SQS answers").expect("the queue exists")["QueueArn"].clone();
    write_log(ministack, "/port", port.now().as_millis() as i64, &["one k-1", "two k-2"]).await;
    let fixture = Fixture {
        function: NAME.into(),
        function_arn: MiniStack::function_arn(NAME),
        alias: "live".into(),
        role: NAME.into(),
        queue_arn,
        parameter: "/port".into(),
        alarm: "port-lost".into(),
        topic: TOPIC.into(),
        log_group: "/port".into(),
    };
    contract::all(&port, &fixture).await;
}

/// Writes lines of this time to a new log group.
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

pub(crate) async fn the_modelled_function_is_changed_as_ministacks(world: &World) {
    let ministack = world.ministack().await;
    plain_target(ministack, FUNCTION).await;
    aws(ministack, &format!("lambda publish-version --function-name {FUNCTION}"));
    aws(
        ministack,
        &format!("lambda create-alias --function-name {FUNCTION} --name live --function-version 1"),
    );
    let texts = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
    };
    let live = || Some("live".to_owned());
    let policy = |action: &str| {
        let statement = json!({"Effect": "Allow", "Action": action, "Resource": "*"});
        json!({"Version": "2012-10-17", "Statement": [statement]}).to_string()
    };
    let mut account = Account::<Settings>::new([(FUNCTION, Function::new())], []);
    let model = account.function(FUNCTION);
    assert_eq!(read(ministack), *model);
    for call in [
        Call::TagResource(texts(&[("a", "1"), ("b", "1")])),
        Call::TagResource(texts(&[("b", "2"), ("c", "2")])),
        Call::UntagResource(vec!["a".into(), "c".into(), "never".into()]),
        Call::UpdateFunctionConfiguration(texts(&[("A", "1"), ("B", "1")])),
        Call::UpdateFunctionConfiguration(texts(&[("B", "2")])),
        Call::PutFunctionEventInvokeConfig(None, (Some(1), Some(600))),
        Call::PutFunctionEventInvokeConfig(live(), (Some(0), Some(60))),
        Call::PutFunctionEventInvokeConfig(None, (Some(0), None)),
        Call::DeleteFunctionEventInvokeConfig(None),
        Call::DeleteFunctionEventInvokeConfig(live()),
        Call::PutFunctionRecursionConfig(true),
        Call::PutFunctionRecursionConfig(false),
        Call::PutRolePolicy("one".into(), policy("sqs:SendMessage")),
        Call::PutRolePolicy("two".into(), policy("sqs:SendMessage")),
        Call::PutRolePolicy("one".into(), policy("kms:Decrypt")),
        Call::DeleteRolePolicy("one".into()),
        Call::PutMetricAlarm("contract-lost".into(), BTreeSet::new()),
        Call::PutMetricAlarm("contract-lost".into(), BTreeSet::from([TOPIC.into()])),
        Call::DeleteAlarms("contract-lost".into()),
    ] {
        make(ministack, &call);
        model.call(call.clone());
        assert_eq!(read(ministack), *model, "after {call:?}");
    }
}

fn make(ministack: &MiniStack, call: &Call<Settings>) {
    let arn = MiniStack::function_arn(FUNCTION);
    let named = |qualifier: &Option<String>| {
        let qualifier = qualifier.iter().map(|it| format!(" --qualifier {it}")).collect::<String>();
        format!("--function-name {FUNCTION}{qualifier}")
    };
    let command = match call {
        Call::TagResource(tags) => format!("lambda tag-resource --resource {arn} --tags '{}'", json!(tags)),
        Call::UntagResource(keys) => {
            format!("lambda untag-resource --resource {arn} --tag-keys {}", keys.join(" "))
        }
        Call::UpdateFunctionConfiguration(variables) => {
            let environment = json!({ "Variables": variables });
            format!("lambda update-function-configuration {} --environment '{environment}'", named(&None))
        }
        Call::PutFunctionEventInvokeConfig(qualifier, (retries, event_age)) => {
            let given = |flag: &str, value: &Option<i64>| {
                value.iter().map(|it| format!(" --maximum-{flag} {it}")).collect::<String>()
            };
            let retries = given("retry-attempts", retries);
            let event_age = given("event-age-in-seconds", event_age);
            format!("lambda put-function-event-invoke-config {}{retries}{event_age}", named(qualifier))
        }
        Call::DeleteFunctionEventInvokeConfig(qualifier) => {
            format!("lambda delete-function-event-invoke-config {}", named(qualifier))
        }
        Call::PutFunctionRecursionConfig(allowed) => {
            let recursion = if *allowed { "Allow" } else { "Terminate" };
            format!("lambda put-function-recursion-config {} --recursive-loop {recursion}", named(&None))
        }
        Call::PutRolePolicy(name, document) => format!(
            "iam put-role-policy --role-name {FUNCTION} --policy-name {name} --policy-document '{document}'"
        ),
        Call::DeleteRolePolicy(name) => {
            format!("iam delete-role-policy --role-name {FUNCTION} --policy-name {name}")
        }
        Call::PutMetricAlarm(name, topics) => {
            let topics = topics.iter().map(|it| format!(" --alarm-actions {it}")).collect::<String>();
            format!(
                "cloudwatch put-metric-alarm --alarm-name {name}{topics} --namespace AWS/Lambda --metric-name \
                 DestinationDeliveryFailures --dimensions Name=FunctionName,Value={FUNCTION} --statistic Sum \
                 --period 60 --evaluation-periods 1 --threshold 0 --comparison-operator GreaterThanThreshold"
            )
        }
        Call::DeleteAlarms(name) => format!("cloudwatch delete-alarms --alarm-names {name}"),
    };
    drop(aws(ministack, &command));
}

fn read(ministack: &MiniStack) -> Function<Settings> {
    let of_qualifier = |qualifier: Option<&str>| {
        let settings = settings(ministack, FUNCTION, qualifier);
        // MiniStack also names Lambda's defaults.
        let number = |name: &str, default| settings[name].as_i64().filter(|it| *it != default);
        let read = (number("MaximumRetryAttempts", 2), number("MaximumEventAgeInSeconds", 21_600));
        (!settings.is_null()).then(|| (qualifier.map(ToOwned::to_owned), read))
    };
    let policy = |name: Value| {
        let name = name.as_str().expect("a name").to_owned();
        let command = format!("iam get-role-policy --role-name {FUNCTION} --policy-name {name}");
        let document = aws(ministack, &command)["PolicyDocument"].to_string();
        (name, document)
    };
    let variables = format!("lambda get-function-configuration --function-name {FUNCTION}");
    let alarms = aws(ministack, "cloudwatch describe-alarms --alarm-names contract-lost");
    let alarm = |alarm: &Value| {
        let topics = alarm["AlarmActions"].as_array().cloned().unwrap_or_default();
        let topics = topics.iter().filter_map(Value::as_str).map(ToOwned::to_owned);
        (alarm["AlarmName"].as_str().expect("a name").to_owned(), topics.collect())
    };
    Function {
        tags: texts_of(&tags(ministack, FUNCTION)),
        variables: texts_of(&aws(ministack, &variables)["Environment"]["Variables"]),
        invoke_settings: [None, Some("live")].into_iter().filter_map(of_qualifier).collect(),
        recursion_allowed: recursion(ministack, FUNCTION) == "Allow",
        policies: policies(ministack, FUNCTION).into_iter().map(policy).collect(),
        alarms: alarms["MetricAlarms"].as_array().into_iter().flatten().map(alarm).collect(),
    }
}

fn texts_of(object: &Value) -> BTreeMap<String, String> {
    let members = object.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

pub(crate) async fn the_modelled_queue_carries_messages_as_ministacks(world: &World) {
    let ministack = RealQueue::new(&world.ministack().await.sqs, QUEUE).await;
    let mut account = Account::<()>::new([], [(QUEUE, Queue::new(Duration::from_secs(600)))]);
    let model = account.queue(QUEUE);
    let attribute = |name: &str, data_type: &str, value: &str| {
        let value = MessageAttributeValue::builder().data_type(data_type).string_value(value).build();
        (name.to_owned(), value.expect("it has a type"))
    };
    let ours = vec![attribute("Reason", "String", "max_age"), attribute("RetriesMade", "Number", "7")];
    for (body, attributes) in [("ours", ours), ("plain", Vec::new())] {
        ministack.send(body, &attributes).await;
        drop(model.send(body, attributes));
    }
    // Given back at first, and then hidden for a second.
    for timeout in [0, 1] {
        let (real, modelled) = (ministack.receive().await, received_of(model));
        assert_eq!(ministack.depth().await, model.depth());
        for body in ["ours", "plain"] {
            assert_eq!(real[body].seen, modelled[body].seen);
            ministack.change_visibility(&real[body].receipt_handle, timeout).await;
            assert!(model.change_visibility(&modelled[body].receipt_handle, Duration::from_secs(timeout)));
        }
    }
    eventually("both to be back", async || (ministack.depth().await.visible == 2).then_some(())).await;
    while model.depth().in_flight > 0 {
        assert!(model.wait());
    }
    let (real, modelled) = (ministack.receive().await, received_of(model));
    assert_eq!(real["ours"].seen, modelled["ours"].seen);
    ministack.delete(&real["ours"].receipt_handle).await;
    model.delete(&modelled["ours"].receipt_handle);
    assert_eq!(ministack.depth().await, model.depth());
}

/// What a receive shows of a message: how often it was received, and its attributes.
struct Received {
    receipt_handle: String,
    seen: (u32, HashMap<String, MessageAttributeValue>),
}

/// By body.
fn received_of(queue: &mut Queue) -> HashMap<String, Received> {
    let message = |(record, attributes): (Record, Attributes)| {
        let seen = (record.receive_count, attributes.into_iter().collect());
        (record.body, Received { receipt_handle: record.receipt_handle, seen })
    };
    queue.receive(10).into_iter().map(message).collect()
}

/// A queue of MiniStack.
struct RealQueue<'m> {
    sqs: &'m Client,
    url: String,
}

impl<'m> RealQueue<'m> {
    async fn new(sqs: &'m Client, name: &str) -> Self {
        let created = sqs.create_queue().queue_name(name);
        let created = created.attributes(QueueAttributeName::VisibilityTimeout, "600").send().await;
        let url = created.expect("SQS makes a queue").queue_url.expect("a queue has a URL");
        Self { sqs, url }
    }

    async fn send(&self, body: &str, attributes: &Attributes) {
        let request = self.sqs.send_message().queue_url(&self.url).message_body(body);
        let request = request.set_message_attributes(Some(attributes.iter().cloned().collect()));
        drop(request.send().await.expect("SQS takes the message"));
    }

    /// By body.
    async fn receive(&self) -> HashMap<String, Received> {
        let count = MessageSystemAttributeName::ApproximateReceiveCount;
        let request = self.sqs.receive_message().queue_url(&self.url).max_number_of_messages(10);
        let request = request.message_attribute_names("All").message_system_attribute_names(count.clone());
        let received = request.send().await.expect("SQS answers").messages.unwrap_or_default();
        let message = |message: aws_sdk_sqs::types::Message| {
            let count = message.attributes.expect("a count was asked for")[&count].parse();
            let attributes = message.message_attributes.unwrap_or_default();
            let receipt_handle = message.receipt_handle.expect("a received message has a handle");
            let seen = (count.expect("a count"), attributes);
            (message.body.expect("a message has a body"), Received { receipt_handle, seen })
        };
        received.into_iter().map(message).collect()
    }

    async fn change_visibility(&self, receipt_handle: &str, seconds: u64) {
        let request =
            self.sqs.change_message_visibility().queue_url(&self.url).receipt_handle(receipt_handle);
        let request = request.visibility_timeout(i32::try_from(seconds).expect("a second"));
        drop(request.send().await.expect("the handle is good"));
    }

    async fn delete(&self, receipt_handle: &str) {
        let request = self.sqs.delete_message().queue_url(&self.url).receipt_handle(receipt_handle);
        drop(request.send().await.expect("the handle is good"));
    }

    async fn depth(&self) -> Depth {
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
        ];
        let request = self.sqs.get_queue_attributes().queue_url(&self.url);
        let answer = request.set_attribute_names(Some(names.to_vec())).send().await.expect("SQS answers");
        let attributes = answer.attributes.expect("the counts were asked for");
        let [visible, in_flight, delayed] = names.map(|name| attributes[&name].parse().expect("a count"));
        Depth { visible, in_flight, delayed }
    }
}
