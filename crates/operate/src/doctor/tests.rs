//! Tests of the doctor, and facts about a healthy deployment for the tests of each check.

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::{Pauses, SQS_MESSAGE_BYTES, Timestamp};
use serde_json::json;

use crate::alarms::{Alarm, Watched};
use crate::attach::attachment::{Attachment, ListOwner};
use crate::aws::simulated::{Call, Sample, SimulatedAws};
use crate::aws::{Executions, InvokeSettings, LogGroup, Mapping, StackResource, Verdict};
use crate::change::tests::plain;
use crate::deployment::Deployment;
use crate::deployment::find::Which;
use crate::deployment::queue::Queue;
use crate::doctor::diagnosis::{Diagnosis, Examination};
use crate::doctor::facts::Facts;
use crate::doctor::facts::consumers::{Consumer, MaxAge, ReadQueue};
use crate::doctor::facts::functions::CheckedFunction;
use crate::doctor::facts::log::LoggedErrors;
use crate::doctor::facts::queues::{QueueSettings, RedrivePolicy};
use crate::doctor::judgement::{CheckOutcome, Judged};
use crate::doctor::{all_read_sqs, doctor};
use crate::failure::Failure;
use crate::function::{FunctionName, Target};
use crate::metrics::Dropped;
use crate::operator::Operator;
use crate::rights::{Right, Rights};

const HANDLER: &str = "arn:aws:lambda:eu-west-1:123456789012:function:retry-handler";
const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

pub(crate) fn healthy() -> Facts {
    let mapping = Mapping::sample();
    Facts {
        deployment: Deployment { mapping: Some(mapping.clone()), ..Deployment::sample() },
        now: Timestamp::from_secs(1_700_000_000),
        handler: Ok(target("retry-handler", HANDLER)),
        mappings: Ok(vec![mapping]),
        retry_queue: Ok(settings(Some(Queue::sample("dead").arn))),
        dead_letter_queue: Ok(settings(None)),
        errors: Ok(LoggedErrors { count: 0, newest: None, all_were_read: true }),
        log_group: Ok(Some(LogGroup { retention: None, class: Some("STANDARD".into()) })),
        executions: Ok(Executions { all: 1_000, unreserved: 1_000 }),
        alarms: Ok(vec![Alarm::sample("dead-letters", Watched::DeadLetters)]),
        pauses: Ok(Some(Ok(Pauses::default()))),
        rights: BTreeMap::from([
            ("CB030", of_handler("sqs:ReceiveMessage", "arn:retries")),
            ("CB031", of_handler("sqs:SendMessage", "arn:retries")),
            ("CB032", of_handler("sqs:SendMessage", "arn:dead")),
            ("CB033", of_handler("logs:PutLogEvents", "arn:log")),
            ("CB034", of_handler("ssm:GetParameter", "arn:pauses")),
            ("CB035", of_handler("kms:Decrypt", "arn:key")),
        ]),
        parameters: Ok(BTreeMap::new()),
        functions: vec![orders()],
        matched: Ok(()),
    }
}

impl Facts {
    /// Returns the attachment of the sample's only function, `orders`.
    pub(crate) fn attachment(&mut self) -> &mut Attachment {
        &mut self.functions[0].attachments[0]
    }

    /// Returns the settings for asynchronous invocations of the sample's only function, `orders`.
    pub(crate) fn settings(&mut self) -> &mut InvokeSettings {
        self.attachment().target.invoke_settings.entry(None).or_default()
    }

    pub(crate) fn list(&mut self, list: &str) {
        for deployment in [&mut self.functions[0].attachments[0].deployment, &mut self.deployment] {
            deployment.variables.insert("TARGET_FUNCTIONS".into(), list.into());
        }
    }
}

/// A consumer that reads the queue `orders`.
pub(crate) fn consumer() -> Consumer {
    let queue = |name: &str| Ok(ReadQueue { queue: Queue::sample(name), settings: settings(None) });
    Consumer {
        name: "orders".into(),
        arn: ORDERS.into(),
        timeout: Duration::from_secs(60),
        mapping: Mapping { queue_arn: Queue::sample("orders").arn, ..Mapping::sample() },
        queue: Ok(queue("orders")),
        max_age: MaxAge::Default,
        dead_letter_queue: Some(Ok(queue("dead"))),
        hide: Ok(vec![right("orders-role", "sqs:ChangeMessageVisibility", "arn:orders")]),
        send: Ok(vec![right("orders-role", "sqs:SendMessage", "arn:dead")]),
        place_flags: " --region eu-west-1".into(),
    }
}

#[track_caller]
pub(crate) fn assert_found(judged: Judged, outcome: CheckOutcome, words: &str) {
    let judgement = judged.unwrap();
    assert_eq!(judgement.outcome, outcome, "{judgement:?}");
    assert!(judgement.found.to_string().contains(words), "{judgement:?}");
}

/// A pause for the function `orders` that began `from` seconds after the epoch and has not ended.
pub(crate) fn pause(from: u64) -> Pauses {
    let pause = format!(
        r#"{{"v":1,"pauses":[{{"target":"{ORDERS}","from":{from},"until":null,"spread":0,"by":"ops","why":"it broke","concurrency":null}}]}}"#
    );
    Pauses::read(&pause).unwrap()
}

pub(crate) fn right(role: &str, action: &'static str, resource: &str) -> Right {
    Right { role: role.into(), action, resource: resource.into(), verdict: Verdict::Allowed }
}

fn of_handler(action: &'static str, resource: &str) -> Rights {
    Ok(vec![right("handler-role", action, resource)])
}

fn settings(dead_letter_queue: Option<String>) -> QueueSettings {
    QueueSettings {
        visibility: Duration::from_secs(1_230),
        retention: Duration::from_secs(14 * 86_400),
        largest_message: SQS_MESSAGE_BYTES,
        redrive: dead_letter_queue.map(|target_arn| RedrivePolicy { target_arn, max_receive_count: 1_000 }),
        key: Ok(None),
        allows_by_itself: false,
    }
}

fn target(name: &str, arn: &str) -> Target {
    let attached = InvokeSettings {
        retries: Some(0),
        event_age: Some(60),
        on_failure: Some(Queue::sample("retries").arn),
        on_success: None,
    };
    Target {
        name: name.into(),
        qualifier: None,
        is_qualifier_gone: false,
        arn: arn.into(),
        role_arn: format!("arn:aws:iam::123456789012:role/{name}-role"),
        runtime: Some("python3.12".into()),
        timeout: Duration::from_secs(60),
        invoke_settings: BTreeMap::from([(None, attached)]),
        unfit: None,
        recursion_allowed: true,
        log_group: format!("/aws/lambda/{name}"),
        reserved_concurrency: None,
        dead_letter: None,
        tags: BTreeMap::new(),
    }
}

fn orders() -> CheckedFunction {
    let target = target("orders", ORDERS);
    let list_owner = ListOwner::Parameter { stack: "comeback".into(), value: ORDERS.into() };
    let attachment = Attachment {
        send: Ok(vec![right("orders-role", "sqs:SendMessage", "arn:retries")]),
        invoke: of_handler("lambda:InvokeFunction", ORDERS),
        ..Attachment::unread(Deployment::sample(), target.clone(), list_owner)
    };
    CheckedFunction {
        name: "orders".into(),
        arn: ORDERS.into(),
        target: Ok(Some(target)),
        attachments: vec![attachment],
        gone: Vec::new(),
        dropped: Ok(Dropped::default()),
    }
}

fn attached() -> SimulatedAws {
    Sample { is_attached: true, ..Sample::new(Timestamp::from_secs(1_700_000_000)) }.build()
}

async fn examined(aws: &SimulatedAws, examination: &Examination) -> Diagnosis {
    let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
    doctor(&operator, examination).await.unwrap()
}

fn problems(diagnosis: &Diagnosis) -> Vec<&str> {
    let problems = diagnosis.checks.iter().filter(|finding| finding.judgement.outcome > CheckOutcome::Ok);
    problems.map(|finding| finding.check.id).collect()
}

#[tokio::test]
async fn sample_is_healthy_until_something_breaks() {
    let aws = attached();
    let strict = Examination { is_strict: true, ..Examination::default() };
    let diagnosis = examined(&aws, &strict).await;
    assert_eq!((problems(&diagnosis), diagnosis.healthy), (vec![], true));
    aws.state().mappings[0].state = "Disabled".into();
    aws.function_named(Sample::ORDERS).recursion_allowed = false;
    let diagnosis = examined(&aws, &strict).await;
    assert_eq!((problems(&diagnosis), diagnosis.healthy), (vec!["CB001", "CB107"], false));
    let value = serde_json::to_value(&diagnosis).unwrap();
    assert_eq!(value["healthy"], json!(false));
    assert_eq!(value["checks"][0]["id"], json!("CB001"));
    let fix = "aws lambda update-event-source-mapping --uuid 6ec5b0c5-0b8f-4a36-b1a4-6b1a2e2f9d10 --enabled";
    assert_eq!(value["checks"][0]["fix"], json!(fix));
}

#[tokio::test]
async fn denied_facts_are_warnings() {
    let aws = attached();
    aws.deny("iam:SimulatePrincipalPolicy");
    let diagnosis = examined(&aws, &Examination::default()).await;
    let expected = ["CB030", "CB031", "CB032", "CB033", "CB034", "CB105", "CB109"];
    assert_eq!((problems(&diagnosis), diagnosis.healthy), (expected.to_vec(), true));
}

#[tokio::test]
async fn interrupted_probe_says_that_its_event_may_have_been_sent() {
    let aws = attached();
    let example = StackResource {
        logical_id: "ExampleTarget".into(),
        physical_id: Some(Sample::ORDERS.into()),
        kind: "AWS::Lambda::Function".into(),
    };
    aws.state().stacks.get_mut(Sample::STACK).unwrap().resources.push(example);
    let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
    let interrupt = operator.interrupt.clone();
    aws.on_call(move |call: Call<'_>| {
        if call.action == "lambda:InvokeFunction" {
            interrupt.raise();
        }
        None
    });
    let failure =
        doctor(&operator, &Examination { probe: true, ..Examination::default() }).await.unwrap_err();
    assert_eq!(failure, Failure::interrupted("the probe's event may have been sent"));
}

#[tokio::test]
async fn heading_without_a_deployment_says_why_none_was_read() {
    let aws = attached();
    let reads = Mapping { function_arn: ORDERS.into(), ..Mapping::sample() };
    aws.state().mappings.push(reads);
    aws.deny("cloudformation:ListStackResources");
    let functions = vec![Sample::ORDERS.parse().unwrap()];
    let diagnosis = examined(&aws, &Examination { functions, ..Examination::default() }).await;
    let said = plain(&diagnosis);
    let expected = "a function that reads SQS itself needs no deployment, and none was read: \
                    cloudformation:ListStackResources on comeback in ";
    assert!(said.starts_with(expected) && said.contains("CB301 orders"), "{said}");
}

#[test]
fn only_functions_that_read_sqs_need_no_deployment() {
    let consumers = [consumer()];
    let named = |names: &[&str]| {
        let names: Vec<FunctionName> = names.iter().map(|name| name.parse().unwrap()).collect();
        all_read_sqs(&names, &consumers)
    };
    assert_eq!(["orders", "orders:live", &consumers[0].arn].map(|it| named(&[it])), [true; 3]);
    assert_eq!([named(&[]), named(&["orders", "invoices"])], [false; 2]);
}
