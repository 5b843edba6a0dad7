mod contract;

use std::collections::BTreeSet;

use comeback_engine::Attribute;
use comeback_timelapse::Surroundings;

use super::*;
use crate::aws::{
    AttributeValue, Aws as _, EntryFailureKind, InvokeSettings, MetricStatistic, NewMessage, Receive,
    StackResource, Verdict,
};
use crate::deployment::find::Which;
use crate::operator::Operator;

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
const HOUR: Duration = Duration::from_secs(3_600);
const KEY: &str = "arn:aws:kms:eu-west-1:123456789012:key/contract";

fn sample(is_attached: bool) -> SimulatedAws {
    Sample { is_attached, ..Sample::new(NOW) }.build()
}

fn message(body: &str) -> NewMessage {
    NewMessage { body: body.into(), ..NewMessage::default() }
}

async fn receive(aws: &SimulatedAws, wait: Duration) -> Vec<aws::Received> {
    let receive = Receive { visibility: Duration::from_secs(60), wait };
    aws.receive(&queue_url(Sample::DEAD_LETTER_QUEUE), 10, receive).await.unwrap()
}

fn handle(message: &aws::Received) -> String {
    message.record.receipt_handle.clone()
}

#[tokio::test]
async fn simulated_account_keeps_the_contract() {
    let aws = SimulatedAws::new(NOW);
    {
        let state = &mut *aws.state();
        let mut function = Function::new("contract");
        function.publish("live");
        state.add_function(function);
        state.roles.insert("contract-role".into(), Role::default());
        state.add_queue("contract");
        state.mappings.push(Mapping {
            uuid: "1".into(),
            function_arn: function_arn("contract"),
            queue_arn: queue_arn("contract"),
            state: "Disabled".into(),
            batch_size: 7,
            window: Duration::ZERO,
            reports_failures: true,
            maximum_concurrency: None,
            maximum_pollers: None,
        });
        state.executions = Some(Executions { all: 1_000, unreserved: 900 });
        ["one k-1", "two k-2"].into_iter().for_each(|line| state.log("/contract", "a", line));
        let dimension = ("Of", "port");
        let count = MetricStatistic { namespace: "Contract", dimension, name: "Count", statistic: "Sum" };
        [2.0, 3.0].into_iter().for_each(|value| state.metrics.put(count, NOW, value));
        let parameters = ["Changed", "Kept"].map(|name| (name.into(), "old".into())).into();
        let (name, status) = ("contract".into(), "CREATE_COMPLETE".into());
        let stack = aws::Stack { name, status, parameters, ..aws::Stack::default() };
        let (logical_id, kind) = ("Value".into(), "AWS::SSM::Parameter".into());
        let value = StackResource { logical_id, physical_id: Some("value".into()), kind };
        state.stacks.insert("contract".into(), Stack::new(stack, vec![value]));
        let (arn, key_state) = (Some(KEY.into()), Some("Enabled".into()));
        state.keys.insert(KEY.into(), KmsKey { arn, is_managed_by_aws: false, state: key_state });
    }
    let fixture = contract::Fixture {
        function: "contract".into(),
        function_arn: function_arn("contract"),
        alias: "live".into(),
        payload: "{}".into(),
        role: "contract-role".into(),
        queue_arn: queue_arn("contract"),
        parameter: "/contract".into(),
        alarm: "contract-lost".into(),
        topic: Sample::TOPIC.into(),
        log_group: "/contract".into(),
        namespace: "Contract".into(),
        stack: "contract".into(),
        key: KEY.into(),
    };
    contract::all(&aws, &fixture).await;
}

#[test]
fn contract_has_every_call_of_the_port() {
    let (_, port) = include_str!("../../aws.rs").split_once("pub trait Aws").unwrap();
    let (port, _) = port.split_once("\n}\n").unwrap();
    let calls = port.split(" fn ").skip(1).map(|it| it.split('(').next().unwrap());
    let contract: String = include_str!("tests/contract.rs").split_whitespace().collect();
    let absent = calls.filter(|call| !contract.contains(&format!("aws.{call}(")));
    assert_eq!(absent.collect::<Vec<_>>(), [""; 0]);
}

#[tokio::test]
async fn sample_is_a_deployment_that_runs() {
    for is_attached in [false, true] {
        let account = sample(is_attached).account();
        let operator = Operator::new(account, Which::Stack(Sample::STACK.into()));
        let deployment = operator.deployment().await.unwrap();
        assert_eq!((&*deployment.handler, deployment.stopped()), (Sample::HANDLER, None));
        assert_eq!(deployment.allows(&function_arn(Sample::ORDERS)), is_attached);
        let aws = &operator.account.aws;
        let invoked = format!("{}:$LATEST", function_arn(Sample::ORDERS));
        let expected = if is_attached { Verdict::Allowed } else { Verdict::NotAllowed };
        assert_eq!(aws.may(&deployment.role_arn, "lambda:InvokeFunction", &invoked).await.unwrap(), expected);
        let orders = role_arn("orders-role");
        assert_eq!(aws.may(&orders, "sqs:SendMessage", &deployment.retry_queue.arn).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn stack_update_is_in_force_after_a_while() {
    let aws = sample(false);
    let arn = function_arn(Sample::ORDERS);
    let stack = async || aws.stack(Sample::STACK).await.unwrap().unwrap();
    aws.update_stack(&stack().await, "TargetFunctions", &arn).await.unwrap();
    assert_eq!(stack().await.status, "UPDATE_IN_PROGRESS");
    let again = aws.update_stack(&stack().await, "TargetFunctions", "").await.unwrap_err().to_string();
    assert!(again.ends_with("is in UPDATE_IN_PROGRESS state and can not be updated."), "{again}");
    let deployment = async || {
        let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
        operator.deployment().await.unwrap()
    };
    assert!(!deployment().await.allows(&arn));
    aws.sleep(Duration::from_secs(30)).await;
    assert_eq!(stack().await.status, "UPDATE_COMPLETE");
    assert!(deployment().await.allows(&arn));
}

#[tokio::test]
async fn an_old_handle_hides_but_does_not_delete() {
    let aws = sample(false);
    let url = queue_url(Sample::DEAD_LETTER_QUEUE);
    aws.queue(Sample::DEAD_LETTER_QUEUE).send(NOW, Duration::ZERO, message("m"));
    let first = receive(&aws, Duration::ZERO).await;
    aws.advance(Duration::from_secs(60));
    let second = receive(&aws, Duration::ZERO).await;
    assert_eq!((first.len(), second.len()), (1, 1));
    let old = handle(&first[0]);
    assert_eq!(aws.delete(&url, vec![old.clone()], &|_, _| ()).await, [Ok(())]);
    assert_eq!(aws.hide(&url, vec![(old.clone(), HOUR)], true, &|_, _| ()).await, [Ok(())]);
    aws.advance(Duration::from_secs(60));
    assert!(receive(&aws, Duration::ZERO).await.is_empty(), "the old handle hid it for an hour");
    let long = aws.hide(&url, vec![(old.clone(), 12 * HOUR)], true, &|_, _| ()).await;
    assert!(long[0].as_ref().is_err_and(|it| it.code == "InvalidParameterValue"), "{long:?}");
    assert_eq!(aws.hide(&url, vec![(old.clone(), Duration::ZERO)], true, &|_, _| ()).await, [Ok(())]);
    let visible = aws.hide(&url, vec![(old, HOUR)], true, &|_, _| ()).await;
    assert!(visible[0].as_ref().is_err_and(|it| it.code.ends_with("MessageNotInflight")), "{visible:?}");
    let third = receive(&aws, Duration::ZERO).await;
    assert_eq!(third.len(), 1, "a visible message is not hidden");
    assert_eq!(aws.delete(&url, vec![handle(&third[0])], &|_, _| ()).await, [Ok(())]);
    let gone = aws.hide(&url, vec![(handle(&third[0]), HOUR)], true, &|_, _| ()).await;
    assert!(gone[0].as_ref().is_err_and(|it| it.code == "InvalidParameterValue"), "{gone:?}");
    let garbled = aws.hide(&url, vec![("retries/1.1".into(), HOUR)], true, &|_, _| ()).await;
    assert!(garbled[0].as_ref().is_err_and(|it| it.code == "ReceiptHandleIsInvalid"), "{garbled:?}");
}

#[tokio::test]
async fn queue_at_its_in_flight_limit_brings_nothing() {
    let aws = sample(false);
    {
        let mut queue = aws.queue(Sample::DEAD_LETTER_QUEUE);
        queue.in_flight_limit = 2;
        for body in ["a", "b", "c"] {
            queue.send(NOW, Duration::ZERO, message(body));
        }
    }
    assert_eq!(receive(&aws, Duration::ZERO).await.len(), 2);
    assert_eq!(receive(&aws, Duration::ZERO).await, []);
    let waited = receive(&aws, Duration::from_secs(90)).await;
    assert_eq!((waited.len(), aws.time()), (2, NOW.saturating_add(Duration::from_secs(60))));
}

#[test]
fn handler_gets_the_senders_attributes() {
    let aws = sample(false);
    let code = AttributeValue { data_type: "Number".into(), value: "200".into() };
    let attributes = [("ErrorCode".to_owned(), code)].into();
    aws.queue(Sample::RETRY_QUEUE).send(NOW, Duration::ZERO, NewMessage { attributes, ..message("m") });
    let batch = Surroundings::receive(&mut *aws.state(), NOW, 10);
    let expected = Attribute { name: "ErrorCode".into(), data_type: "Number".into(), value: "200".into() };
    assert_eq!(batch.records[0].attributes, [expected]);
}

#[test]
fn too_many_receives_move_a_message_and_retention_ends_it() {
    let aws = sample(false);
    let day = 24 * HOUR;
    aws.queue(Sample::RETRY_QUEUE).send(NOW, Duration::ZERO, message("m"));
    let retries = queue_url(Sample::RETRY_QUEUE);
    let redrive = format!(
        r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":"1"}}"#,
        queue_arn(Sample::DEAD_LETTER_QUEUE)
    );
    aws.queue(Sample::RETRY_QUEUE).attributes.insert("RedrivePolicy".into(), redrive);
    assert_eq!(aws.state().receive(&retries, 10, HOUR).unwrap().len(), 1);
    aws.advance(day);
    assert_eq!(aws.state().receive(&retries, 10, HOUR).unwrap(), []);
    let moved = aws.state().receive(&queue_url(Sample::DEAD_LETTER_QUEUE), 10, HOUR).unwrap();
    assert_eq!((moved.len(), &*moved[0].record.body, moved[0].record.receive_count), (1, "m", 1));
    aws.advance(13 * day);
    let time = aws.time();
    assert_eq!(aws.queue(Sample::DEAD_LETTER_QUEUE).stored(time).count(), 0);
}

#[tokio::test]
async fn denial_is_of_one_caller_and_names_call_and_remedy() {
    let aws = sample(false);
    let other = aws.called_by("arn:aws:iam::123456789012:user/other");
    aws.deny("sqs:GetQueueAttributes");
    let url = queue_url(Sample::RETRY_QUEUE);
    let failure = aws.queue_attributes(&url, &[]).await.unwrap_err().to_string();
    assert!(failure.starts_with(&format!("sqs:GetQueueAttributes on {url}: AccessDenied: ")), "{failure}");
    assert!(failure.ends_with("; docs/operate.md lists the permissions of each command"), "{failure}");
    assert!(other.queue_attributes(&url, &[]).await.is_ok());
    aws.allow("sqs:GetQueueAttributes");
    assert!(aws.queue_attributes(&url, &[]).await.is_ok());

    aws.deny("sqs:SendMessage");
    let answers = aws.send(&url, (0..11).map(|_| message("m")).collect(), &|_, _| ()).await;
    let kinds = answers.iter().map(|it| it.as_ref().unwrap_err().kind).collect::<Vec<_>>();
    assert_eq!(kinds[..10], [EntryFailureKind::Denied; 10]);
    assert_eq!(kinds[10], EntryFailureKind::NotTried);
}

#[tokio::test]
async fn hook_gives_each_call_its_fault() {
    let aws = sample(false);
    let url = queue_url(Sample::RETRY_QUEUE);
    let faults = [
        Some(Fault::CallFails),
        Some(Fault::EntriesFail(BTreeSet::from([1]))),
        Some(Fault::AnswerLost),
        None,
    ];
    let mut faults = faults.into_iter();
    aws.on_call(move |call| {
        assert_eq!((call.action, call.entries), ("sqs:SendMessage", 2));
        faults.next().unwrap()
    });
    let mut sent = Vec::new();
    for _ in 0..4 {
        let answers = aws.send(&url, vec![message("a"), message("b")], &|_, _| ()).await;
        let time = aws.time();
        sent.push((
            answers.iter().filter(|it| it.is_ok()).count(),
            aws.queue(Sample::RETRY_QUEUE).depth(time).visible,
        ));
    }
    assert_eq!(sent, [(0, 0), (1, 1), (0, 3), (2, 5)], "entries that were accepted, and messages");
    assert_eq!(aws.calls(), 4);
}

#[tokio::test]
async fn a_caller_is_killed_between_any_two_calls() {
    for calls in 0..3 {
        let aws = sample(false);
        let url = queue_url(Sample::RETRY_QUEUE);
        let work = async {
            for body in ["a", "b"] {
                assert_eq!(aws.send(&url, vec![message(body)], &|_, _| ()).await, [Ok(())]);
            }
        };
        let ended = aws.killed_after(calls, work).await;
        let time = aws.time();
        assert_eq!(aws.queue(Sample::RETRY_QUEUE).depth(time).visible, calls);
        assert_eq!((ended.is_some(), aws.calls()), (calls == 2, calls));
        assert!(aws.queue_attributes(&url, &[]).await.is_ok(), "the next command of the same caller works");
    }
}

#[tokio::test]
async fn kill_ends_calls_at_the_same_time_and_no_later_work() {
    let aws = sample(false);
    let url = queue_url(Sample::RETRY_QUEUE);
    let send = async || aws.send(&url, vec![message("m")], &|_, _| ()).await;
    let three = async { tokio::join!(send(), send(), send()) };
    let mut faults = [None, Some(Fault::CallerKilled)].into_iter();
    aws.on_call(move |_| faults.next().flatten());
    assert!(aws.until_killed(three).await.is_none());
    assert_eq!(aws.calls(), 1);
    assert!(aws.until_killed(async { (send().await, send().await) }).await.is_some());
    assert_eq!(aws.calls(), 3);
}

#[tokio::test]
async fn destination_is_refused_until_lambda_knows_the_permission() {
    let aws = sample(false);
    aws.state().permissions_take = Duration::from_secs(5);
    let retries = queue_arn(Sample::RETRY_QUEUE);
    let settings = InvokeSettings { on_failure: Some(retries.clone()), ..InvokeSettings::default() };
    let put = async || aws.put_invoke_settings(Sample::ORDERS, None, &settings).await.unwrap();
    assert!(!put().await);
    aws.put_role_policy("orders-role", "send", &policy(&["sqs:SendMessage"], &[&retries])).await.unwrap();
    assert!(!put().await);
    aws.sleep(Duration::from_secs(5)).await;
    assert!(put().await);
    assert_eq!(aws.function_named(Sample::ORDERS).invoke_settings[&None], settings);
}

#[tokio::test]
async fn stale_revision_overwrites_no_variables() {
    let aws = sample(false);
    let read = async || aws.configuration(Sample::ORDERS, None).await.unwrap();
    let before = read().await.revision;
    aws.set_variables(Sample::ORDERS, BTreeMap::new(), before.clone()).await.unwrap();
    let failure = aws.set_variables(Sample::ORDERS, BTreeMap::new(), before).await.unwrap_err().to_string();
    assert!(failure.contains("PreconditionFailedException"), "{failure}");
}

#[tokio::test]
async fn sleeps_at_the_same_time_do_not_add_up() {
    let aws = sample(false);
    tokio::join!(aws.sleep(HOUR), aws.sleep(HOUR));
    assert_eq!(aws.time(), NOW.saturating_add(HOUR));
}

#[tokio::test]
async fn pages_of_a_log_may_be_empty() {
    let aws = sample(false);
    {
        let state = &mut *aws.state();
        (0..1_000).for_each(|_| state.log(Sample::LOG_GROUP, "s", "a"));
        state.log(Sample::LOG_GROUP, "s", "k-1");
    }
    let pattern = Some("\"k-1\"".into());
    let filter =
        aws::LogFilter { group: Sample::LOG_GROUP, pattern, since: NOW, until: Some(NOW), stream: None };
    let first = aws.log_page(&filter, None).await.unwrap().unwrap();
    assert_eq!((first.events.len(), first.next.is_some()), (0, true));
    let second = aws.log_page(&filter, first.next).await.unwrap().unwrap();
    assert_eq!((second.events.len(), second.next), (1, None));
    aws.advance(31 * 24 * HOUR);
    let late = aws::LogFilter { until: None, pattern: None, ..filter };
    assert_eq!(aws.log_page(&late, None).await.unwrap().unwrap().events, [], "after the retention");
    let rare = Some("INFREQUENT_ACCESS".into());
    aws.state().log_groups.get_mut(Sample::LOG_GROUP).unwrap().settings.class = rare;
    let failure = aws.log_page(&late, None).await.unwrap_err().to_string();
    assert!(failure.contains("InvalidOperationException"), "{failure}");
}
