//! The function of the command's tests against MiniStack's: after each call, both are the same.

use std::collections::{BTreeMap, BTreeSet};

use comeback_tests::{MiniStack, plain_target};
use serde_json::{Value, json};

use crate::attach::{aws, policies, recursion, settings, tags};
use crate::model::{Call, Function};
use crate::world::World;

const FUNCTION: &str = "contract";
const TOPIC: &str = "arn:aws:sns:eu-south-2:000000000000:on-call";

/// Retries and seconds; what is `None` is Lambda's default.
type Settings = (Option<i64>, Option<i64>);

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
    let mut model: Function<Settings> = Function::new();
    assert_eq!(read(ministack), model);
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
        assert_eq!(read(ministack), model, "after {call:?}");
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
