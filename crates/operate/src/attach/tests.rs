//! Tests of plans, and of the account's state after some or all of a plan's steps have been performed.

mod moves;
mod several;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use comeback_engine::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use crate::attach::attachment::{Attachment, ListOwner};
use crate::attach::leaving::Leaving;
use crate::attach::step::{FunctionPlan, Step};
use crate::attach::{AttachPlan, Route, RouteFailures, kept};
use crate::aws::simulated::{Function, Sample, SimulatedAws, function_arn, policy, queue_arn};
use crate::aws::{InvokeSettings, KmsKey, MetricAlarm, Verdict, WatchedMetric};
use crate::change::tests::plain;
use crate::change::{Answer as _, Change, Performed, Plan as _};
use crate::deployment::find::Which;
use crate::deployment::queue::CustomerKey;
use crate::failure::Failure;
use crate::function::STACK_TAG;
use crate::handler_setting::{ENVIRONMENT_BYTES, SettingPlace, TARGET_FUNCTIONS, list_with};
use crate::operator::Operator;
use crate::rights::Right;

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
const HOUR: Duration = Duration::from_secs(3_600);
const ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
const OTHER: &str = "arn:aws:lambda:eu-west-1:123456789012:function:invoices";
const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:retries";
const FAILED: &str = "arn:aws:sns:eu-west-1:123456789012:failed";
const DONE: &str = "arn:aws:sqs:eu-west-1:123456789012:done";

fn sample() -> SimulatedAws {
    Sample::new(NOW).build()
}

fn operator(aws: &SimulatedAws) -> Operator {
    let which = match aws.state().stacks.contains_key(Sample::STACK) {
        true => Which::Stack(Sample::STACK.into()),
        false => Which::Handler(Sample::HANDLER.parse().unwrap()),
    };
    Operator::new(aws.account(), which)
}

async fn read(aws: &SimulatedAws, function: &str) -> Attachment {
    let operator = operator(aws);
    let deployment = operator.deployment().await.unwrap();
    Attachment::read(&operator.account, deployment, &function.parse().unwrap()).await.unwrap()
}

/// Returns the attachment state of the function `orders`, which is not attached.
pub(super) async fn attachment() -> Attachment {
    read(&sample(), "orders").await
}

/// Evidence that none of a function's events are left in the retry queue.
fn left() -> Leaving {
    Leaving { now: Timestamp::from_secs(2_000_000_000), at_once: false, waiting: None, sharing: Vec::new() }
}

fn to_attach(functions: &[&str]) -> RouteFailures {
    let functions = functions.iter().map(|function| function.parse().unwrap()).collect();
    RouteFailures { functions, route: Route::Attach { may_move: false } }
}

fn to_detach(functions: &[&str]) -> RouteFailures {
    RouteFailures { route: Route::Detach { at_once: false }, ..to_attach(functions) }
}

async fn carry_out(aws: &SimulatedAws, change: &RouteFailures) -> (AttachPlan, Result<(), Failure>) {
    carry_out_by(&operator(aws), change).await
}

async fn carry_out_by(operator: &Operator, change: &RouteFailures) -> (AttachPlan, Result<(), Failure>) {
    let plan = change.plan(operator).await.unwrap_or_else(|failure| panic!("{failure}"));
    if plan.question().is_none() {
        let end = plan.end();
        return (plan, end);
    }
    match change.perform(operator, &plan).await {
        Ok(Performed::Done(_, end)) => (plan, end),
        other => panic!("{other:?}"),
    }
}

async fn attach(aws: &SimulatedAws, function: &str) -> AttachPlan {
    let (plan, end) = carry_out(aws, &to_attach(&[function])).await;
    assert_eq!(end, Ok(()));
    plan
}

/// Detaches a function in two runs an hour apart, and returns the second plan.
async fn detach(aws: &SimulatedAws, function: &str) -> AttachPlan {
    let (_, end) = carry_out(aws, &to_detach(&[function])).await;
    assert!(matches!(end, Err(Failure::Undone(_))), "{end:?}");
    aws.advance(HOUR);
    let (plan, end) = carry_out(aws, &to_detach(&[function])).await;
    assert_eq!(end, Ok(()));
    plan
}

fn notes(plan: &AttachPlan) -> Vec<String> {
    let notes = serde_json::to_value(plan).unwrap()["functions"][0]["notes"].take();
    serde_json::from_value(notes).unwrap()
}

fn texts(plan: &FunctionPlan) -> Vec<String> {
    plan.notes.iter().map(ToString::to_string).collect()
}

/// All settings that `attach` and `detach` may change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Snapshot {
    tags: BTreeMap<String, String>,
    invoke_settings: BTreeMap<Option<String>, InvokeSettings>,
    recursion_allowed: bool,
    policies: BTreeMap<String, BTreeMap<String, String>>,
    alarms: BTreeMap<String, Vec<String>>,
    variables: BTreeMap<String, String>,
    parameter: Option<String>,
}

fn snapshot(aws: &SimulatedAws) -> Snapshot {
    let state = aws.state();
    let orders = &state.functions["orders"];
    Snapshot {
        tags: orders.tags.clone(),
        invoke_settings: orders.invoke_settings.clone(),
        recursion_allowed: orders.recursion_allowed,
        policies: state.roles.iter().map(|(name, role)| (name.clone(), role.policies.clone())).collect(),
        alarms: state.alarms.values().map(|alarm| (alarm.name.clone(), alarm.actions.clone())).collect(),
        variables: state.functions[Sample::HANDLER].configuration.variables.clone(),
        parameter: state.stacks.get(Sample::STACK).map(|it| it.stack.parameters["TargetFunctions"].clone()),
    }
}

#[tokio::test]
async fn plain_function_is_attached_in_a_safe_order() {
    let aws = sample();
    let plan = to_attach(&["orders"]).plan(&operator(&aws)).await.unwrap();
    let description =
        "note: after this, 3785 of the 4096 bytes for the handler's environment variables are free";
    let expected = format!(
        "attach orders:
  function orders
    + tag comeback:retries: default
    + tag comeback:event-age: default
    + tag comeback:on-failure: none
    + tag comeback:recursion: Terminate
  role orders-role
    + policy comeback-retries: sqs:SendMessage
  stack comeback
    + TargetFunctions: {ARN}
  function orders
    ~ recursive loops: Terminate → Allow
    + alarm retries-lost-orders: notifies {topic}
    + on failure: {QUEUE}
    + retries: 0
    + event age: 60s

{description}
",
        topic = Sample::TOPIC
    );
    assert_eq!(plain(&plan), expected);
    assert_eq!(plan.question().map(|it| it.text).as_deref(), Some("attach orders?"));
    let value = serde_json::to_value(&plan).unwrap();
    let function = &value["functions"][0];
    assert_eq!(
        function["differences"][7],
        json!({"resource": "function orders", "setting": "alarm retries-lost-orders", "from": null,
               "to": format!("notifies {}", Sample::TOPIC)}),
    );
    assert_eq!(
        (&function["function"], &function["left"], &function["done"], &function["failure"]),
        (&json!("orders"), &json!(null), &json!(false), &json!(null))
    );
}

#[tokio::test]
async fn attached_function_is_detached_once_its_events_have_left() {
    let aws = sample();
    let before = snapshot(&aws);
    let change = to_attach(&["orders"]);
    let plan = change.plan(&operator(&aws)).await.unwrap();
    let Ok(Performed::Done(attached, Ok(()))) = change.perform(&operator(&aws), &plan).await else {
        panic!("it is attached")
    };
    assert_eq!(plain(&attached), "Done. The changes were made and verified.\n");
    assert_eq!(serde_json::to_value(&attached).unwrap()["functions"][0]["done"], true);
    let again = change.plan(&operator(&aws)).await.unwrap();
    assert_eq!((again.question(), again.end()), (None, Ok(())));
    assert_eq!(plain(&again), "orders is attached; nothing to change\n");

    let change = to_detach(&["orders"]);
    let plan = change.plan(&operator(&aws)).await.unwrap();
    let Ok(Performed::Done(detached, Err(Failure::Undone(why)))) =
        change.perform(&operator(&aws), &plan).await
    else {
        panic!("invocations may be running")
    };
    assert_eq!(plain(&detached), "Not finished. The changes so far were made and verified.\n");
    let said = "orders: not finished: the allow-list entry, the permissions and the recursion setting stay for events that may \
                still wait: running invocations may still fail until 2023-11-14T22:16:50.000Z, and events that wait then may take \
                longer; run the command again later, or use --now: the allow-list will be empty, so waiting events of \
                orders are kept until another function is attached, then dead-lettered as target_not_allowed";
    assert_eq!(why.to_string(), said);
    let early = change.plan(&operator(&aws)).await.unwrap();
    assert_eq!((early.question(), early.end().unwrap_err().to_string()), (None, said.to_owned()));
    assert!(aws.state().functions[Sample::HANDLER].configuration.variables["TARGET_FUNCTIONS"].contains(ARN));

    aws.advance(HOUR);
    assert_eq!(carry_out(&aws, &change).await.1, Ok(()));
    assert_eq!(snapshot(&aws), before);
    let again = change.plan(&operator(&aws)).await.unwrap();
    assert_eq!((plain(&again), again.end()), ("orders is not attached; nothing to change\n".into(), Ok(())));
}

#[tokio::test]
async fn new_permission_is_waited_for() {
    let aws = sample();
    aws.state().permissions_take = Duration::from_secs(40);
    attach(&aws, "orders").await;
    let aws = sample();
    aws.state().permissions_take = HOUR;
    let end = carry_out(&aws, &to_attach(&["orders"])).await.1.unwrap_err().to_string();
    let said =
        "lambda:PutFunctionEventInvokeConfig on orders: Lambda still says that role orders-role may not send";
    assert!(end.starts_with(said), "{end}");
}

#[tokio::test]
async fn attach_adds_lost_event_alarm_once() {
    let base = attachment().await;
    let watch = |topics: Option<&[&str]>, ours, is_silent, others| {
        let mut it = base.clone();
        it.losses.topics = topics.map(|all| all.iter().map(ToString::to_string).collect());
        (it.losses.ours, it.losses.is_silent, it.losses.others) = (ours, is_silent, others);
        let differences = it.attach(false).unwrap().differences();
        differences.into_iter().find(|it| it.setting.starts_with("alarm ")).map(|it| (it.from, it.to))
    };
    let nobody = || Some("notifies nobody".to_owned());
    let topic = || Some(format!("notifies {}", Sample::TOPIC));
    assert_eq!(watch(Some(&[Sample::TOPIC]), false, false, false), Some((None, topic())));
    assert_eq!(watch(Some(&[]), false, false, false), Some((None, nobody())));
    assert_eq!(watch(Some(&[Sample::TOPIC]), false, false, true), None, "the construct has made one");
    assert_eq!(watch(None, false, false, false), None, "the deployment has no alarms");
    assert_eq!(watch(Some(&[Sample::TOPIC]), true, true, false), Some((nobody(), topic())));
    assert_eq!(watch(Some(&[]), true, true, false), None, "there is no topic");
    assert_eq!(watch(Some(&[Sample::TOPIC]), true, false, false), None, "somebody chose another topic");
}

fn encrypted() -> SimulatedAws {
    let aws = sample();
    aws.queue(Sample::RETRY_QUEUE).attributes.insert("KmsMasterKeyId".into(), "k-1".into());
    let key = KmsKey { arn: Some("arn:key".into()), is_managed_by_aws: false, state: Some("Enabled".into()) };
    aws.state().keys.insert("k-1".into(), key);
    aws
}

#[tokio::test]
async fn customers_key_is_allowed_too() {
    let aws = encrypted();
    let before = snapshot(&aws);
    let plan = attach(&aws, "orders").await;
    let note = "role orders-role can use key arn:key only if the key's own policy allows that";
    assert!(notes(&plan)[0].starts_with(note), "{:?}", notes(&plan));
    let role = aws.state().roles["orders-role"].clone();
    assert_eq!(role.may("kms:Decrypt", "arn:key"), Verdict::Allowed);
    assert_eq!(role.may("kms:GenerateDataKey", "arn:key"), Verdict::Allowed);
    assert_eq!(notes(&attach(&aws, "orders").await), [""; 0]);
    detach(&aws, "orders").await;
    assert_eq!(snapshot(&aws), before);
}

#[tokio::test]
async fn unreadable_key_does_not_block_detach() {
    let aws = encrypted();
    attach(&aws, "orders").await;
    aws.deny("kms:DescribeKey");
    let refused = to_attach(&["orders"]).plan(&operator(&aws)).await.unwrap_err().to_string();
    assert!(refused.starts_with("kms:DescribeKey on k-1: "), "{refused}");
    let notes = notes(&detach(&aws, "orders").await);
    assert!(notes[0].contains("which is unreadable: kms:DescribeKey on k-1: "), "{notes:?}");
    assert!(!snapshot(&aws).invoke_settings.contains_key(&None));
}

#[tokio::test]
async fn obstacles_are_named_with_the_remedy() {
    let base = attachment().await;
    let owned_by = |list_owner: ListOwner| Attachment { list_owner, ..base.clone() };
    let mut full = base.clone();
    full.deployment.variables.insert("FILL".into(), "x".repeat(ENVIRONMENT_BYTES));
    let long = vec![OTHER; 80].join(",");
    let mut stopped = base.clone();
    stopped.deployment.variables.insert("BASE_BACKOFF".into(), "soon".into());
    let key = CustomerKey { arn: "arn:key".into(), state: Some("Disabled".into()) };
    let may = |action: &'static str, resource: &str, verdict| {
        Ok(vec![Right { role: "a-role".into(), action, resource: resource.into(), verdict }])
    };
    let cases = [
        (stopped, "handler retry-handler does not start, so it would retry nothing: BASE_BACKOFF is"),
        (
            Attachment { owner: Some("shop".into()), ..base.clone() },
            "stack shop owns the asynchronous invocation settings",
        ),
        (
            Attachment { use_key: may("kms:Decrypt", "arn:key", Verdict::Denied), ..base.clone() },
            "a policy denies arn:aws:iam::123456789012:role/orders-role kms:Decrypt on arn:key; remove",
        ),
        (
            Attachment { key: Ok(Some(key)), ..base.clone() },
            "failed events: the key arn:key is Disabled; `comeback doctor --only CB035` names the fix",
        ),
        (
            owned_by(ListOwner::Template { stack: "app".into() }),
            "retries.attach(lambda.Function.fromFunctionArn(this, 'orders'",
        ),
        (
            owned_by(ListOwner::Parameter { stack: "comeback".into(), value: ARN.into() }),
            "changed its role by hand; `comeback doctor orders --only CB109` names the fix",
        ),
        (
            owned_by(ListOwner::Parameter { stack: "comeback".into(), value: long }),
            "of 4096 bytes, the handler's environment",
        ),
        (full.clone(), "function:shop-*"),
        (Attachment { list_owner: ListOwner::Environment, ..full }, "one pattern"),
        (
            Attachment { list_owner: ListOwner::Environment, invoke_characters: 10_241, ..base.clone() },
            "its inline policies would take 10241 of 10240 characters",
        ),
        (
            Attachment { invoke: may("lambda:InvokeFunction", ARN, Verdict::Denied), ..base.clone() },
            "denies the handler's role handler-role lambda:InvokeFunction",
        ),
    ];
    for (attachment, said) in cases {
        let Err(Failure::Undone(text)) = attachment.attach(false) else { panic!("{said}") };
        assert!(text.to_string().contains(said), "{text}");
    }
}

#[tokio::test]
async fn handler_changed_by_hand_gets_the_list_of_its_stack() {
    let aws = sample();
    attach(&aws, "orders").await;
    let list = |text: &str| {
        let variables = &mut aws.function_named(Sample::HANDLER).configuration.variables;
        variables.insert("TARGET_FUNCTIONS".into(), text.into());
    };
    list("");
    let plan = read(&aws, "orders").await.attach(false).unwrap();
    assert_eq!(plan.steps, [Step::List(SettingPlace::Function(Sample::HANDLER.into()), true)]);
    attach(&aws, "orders").await;
    assert!(read(&aws, "orders").await.deployment.allows(ARN));

    let mut attachment = read(&aws, "orders").await;
    attachment.list_owner = ListOwner::Parameter { stack: "comeback".into(), value: String::new() };
    attachment.is_gone = true;
    let notes = texts(&attachment.detach(&left()).unwrap());
    let note = format!("the handler still allows {ARN}, but parameter TargetFunctions of stack comeback");
    assert!(notes.iter().any(|it| it.starts_with(&note)), "{notes:?}");
}

#[tokio::test]
async fn unfit_or_owned_function_is_left_alone() {
    let aws = sample();
    attach(&aws, "orders").await;
    let attached = read(&aws, "orders").await;
    let mut unfit = attached.clone();
    unfit.target.unfit = Some("is durable");
    assert_eq!(unfit.attach(false), Err(Failure::refused("orders is durable")));
    assert!(unfit.detach(&left()).is_ok(), "it may be detached");
    let owned = Attachment { owner: Some("shop".into()), ..attached };
    assert_eq!(owned.attach(false).unwrap().steps, [], "nothing is to be changed");
    assert!(matches!(owned.detach(&left()), Err(Failure::Undone(_))));
}

#[tokio::test]
async fn settings_that_do_not_fit_in_a_tag_are_printed() {
    let mut before = attachment().await;
    let on_failure = format!("{OTHER}:$LATEST");
    let settings = InvokeSettings { on_failure: Some(on_failure.clone()), ..InvokeSettings::default() };
    before.target.invoke_settings.insert(None, settings);
    let plan = before.attach(false).unwrap();
    let kept = plan.differences().into_iter().filter(|it| it.setting.starts_with("tag "));
    assert_eq!(kept.count(), 3);
    let note = format!("comeback:on-failure = {on_failure} does not fit in a tag");
    assert!(plan.notes.len() == 2 && texts(&plan)[0].starts_with(&note), "{:?}", texts(&plan));

    before.target.tags = (0..48).map(|n| (format!("tag-{n}"), String::new())).collect();
    before.target.tags.insert(STACK_TAG.into(), "shop".into());
    let plan = before.attach(false).unwrap();
    assert!(!matches!(plan.steps[0], Step::Keep { .. }), "{:?}", plan.steps[0]);
    assert_eq!(plan.notes.len(), 6, "four settings, the stack, and the room left");
}

#[tokio::test]
async fn our_own_settings_are_not_kept_as_earlier_ones() {
    let aws = sample();
    attach(&aws, "orders").await;
    let attached = snapshot(&aws);
    aws.function_named("orders").invoke_settings.get_mut(&None).unwrap().retries = Some(1);
    attach(&aws, "orders").await;
    assert_eq!(snapshot(&aws), attached);
}

#[tokio::test]
async fn waiting_events_keep_the_allow_list_entry() {
    let aws = sample();
    let before = snapshot(&aws);
    attach(&aws, "orders").await;
    carry_out(&aws, &to_detach(&["orders"])).await.1.unwrap_err();
    aws.advance(HOUR);
    let line = json!({
        "timestamp": aws.time(), "level": "INFO", "v": 1, "message_id": "m-1", "key": "k-1", "target": format!("{ARN}:$LATEST"),
        "retry": 1, "request_id": "r-0", "error_type": "E", "first_failure": "1970-01-01T00:01:40Z", "action": "defer",
        "due": "2030-01-01T00:00:00.000Z", "due_by": "policy", "delay": 60,
    });
    aws.state().log(Sample::LOG_GROUP, "a", line.to_string());
    let end = carry_out(&aws, &to_detach(&["orders"])).await.1.unwrap_err().to_string();
    assert!(end.contains("may still wait: 1 of its events is waiting, the last until 2030-"), "{end}");
    let now = RouteFailures { route: Route::Detach { at_once: true }, ..to_detach(&["orders"]) };
    let (plan, end) = carry_out(&aws, &now).await;
    assert_eq!((snapshot(&aws), end), (before, Ok(())));
    let kept = "the allow-list will be empty, so waiting events of orders are kept until another function is \
                attached, then dead-lettered as target_not_allowed";
    assert_eq!(notes(&plan), [kept]);
}

#[tokio::test]
async fn effect_of_now_is_shown_before_and_after() {
    let gone = "waiting events of orders will be dead-lettered as target_not_allowed";
    let stays = "waiting events of orders are still retried, because it is still on the allow-list";
    let aws = sample();
    attach(&aws, "orders").await;
    for (others, effect) in [(OTHER.to_owned(), gone), (format!("{ARN}*"), stays)] {
        let mut attached = read(&aws, "orders").await;
        let list = list_with(&others, ARN);
        attached.deployment.variables.insert(TARGET_FUNCTIONS.into(), list.clone());
        attached.list_owner = ListOwner::Parameter { stack: "comeback".into(), value: list };
        let waits = attached.detach(&left()).unwrap();
        assert!(waits.left.is_some());
        assert_eq!(waits.effect_of_now.as_deref(), Some(effect));
        let at_once = attached.detach(&Leaving { at_once: true, ..left() }).unwrap();
        assert_eq!((&*texts(&at_once)[0], at_once.effect_of_now), (effect, None));
    }
}

#[tokio::test]
async fn running_invocations_may_still_send_even_with_now() {
    let aws = sample();
    let before = snapshot(&aws);
    attach(&aws, "orders").await;
    let now = RouteFailures { route: Route::Detach { at_once: true }, ..to_detach(&["orders"]) };
    let end = carry_out(&aws, &now).await.1.unwrap_err().to_string();
    let said = "orders: not finished: role orders-role keeps its permission to send until 20";
    assert!(end.starts_with(said), "{end}");
    let attachment = read(&aws, "orders").await;
    assert!(attachment.send_policy && !attachment.is_attached() && !attachment.deployment.allows(ARN));
    assert_eq!(now.plan(&operator(&aws)).await.unwrap().question(), None, "too early");
    aws.advance(HOUR);
    assert_eq!(carry_out(&aws, &now).await.1, Ok(()));
    assert_eq!(snapshot(&aws), before);
}

#[tokio::test]
async fn function_that_was_never_attached_is_not_detached() {
    let mut attachment = attachment().await;
    let nothing = |it: &Attachment| {
        let plan = it.detach(&left()).unwrap();
        plan.steps.is_empty() && plan.notes.is_empty() && plan.left.is_none()
    };
    assert!(nothing(&attachment));
    // A pattern that matches the function is not the function's own entry.
    let pattern = format!("{ARN}*");
    attachment.deployment.variables.insert(TARGET_FUNCTIONS.into(), pattern.clone());
    attachment.list_owner = ListOwner::Parameter { stack: "comeback".into(), value: pattern };
    assert!(nothing(&attachment));
}

#[tokio::test]
async fn function_that_was_attached_by_hand_gets_lambdas_defaults() {
    let aws = sample();
    attach(&aws, "orders").await;
    aws.function_named("orders").tags.clear();
    let (plan, _) = carry_out(&aws, &to_detach(&["orders"])).await;
    assert_eq!(notes(&plan).len(), 1);
    let after = snapshot(&aws);
    assert_eq!(after.invoke_settings, BTreeMap::new());
    assert!(after.tags.contains_key(kept::DETACHED));
}

#[tokio::test]
async fn policy_of_the_function_is_named() {
    let base = attachment().await;
    let notes = |policies: &str| {
        let mut it = base.clone();
        it.deployment.variables.insert("POLICIES".into(), policies.into());
        texts(&it.attach(false).unwrap())[1..].to_vec()
    };
    assert_eq!(notes(""), [""; 0]);
    let entry = "the entry \"o* MAX_AGE=2h\" of POLICIES applies to orders";
    assert_eq!(notes("orders:live MAX_AGE=1h; o* MAX_AGE=2h; orders JITTER=none"), [entry]);
    let none = "no entry of POLICIES matches orders, so it has the stack's policy";
    assert_eq!(notes("invoices MAX_AGE=2h"), [none]);
}

#[tokio::test]
async fn dead_letter_queue_of_the_function_is_named() {
    let mut it = attachment().await;
    it.target.dead_letter = Some("arn:aws:sqs:eu-west-1:123456789012:own".into());
    let notes = texts(&it.attach(false).unwrap());
    let note = "orders also has its own dead-letter queue, arn:aws:sqs:eu-west-1:123456789012:own, and Lambda \
                sends every failed attempt there";
    assert!(notes[0].starts_with(note) && notes[0].ends_with("--dead-letter-config TargetArn="), "{notes:?}");
}

#[tokio::test]
async fn destination_outside_the_account_needs_an_answer() {
    let question = async |arn: &str| {
        let aws = sample();
        let policies = policy(&["sns:Publish"], &[arn]);
        aws.state().roles.get_mut("orders-role").unwrap().policies.insert("own".into(), policies);
        let settings = InvokeSettings { on_failure: Some(arn.into()), ..InvokeSettings::default() };
        aws.function_named("orders").invoke_settings.insert(None, settings);
        attach(&aws, "orders").await;
        let question = to_detach(&["orders"]).plan(&operator(&aws)).await.unwrap().question().unwrap();
        (question.text, question.in_person)
    };
    assert_eq!(question(FAILED).await, ("detach orders?".to_owned(), false));
    let outside = "arn:aws:sns:eu-west-1:999999999999:failed";
    let asked = format!(
        "failures of orders will go to {outside}, which may be outside account 123456789012: detach orders?"
    );
    assert_eq!(question(outside).await, (asked, true));
}

prop_compose! {
    fn any_settings()(
        retries in 0..3,
        event_age in proptest::option::of(60..21_601),
        on_failure in proptest::option::of(prop_oneof![Just(QUEUE), Just(FAILED)]),
        on_success in proptest::option::of(Just(DONE)),
    ) -> InvokeSettings {
        let text = |text: Option<&str>| text.map(ToOwned::to_owned);
        InvokeSettings { retries: Some(retries), event_age, on_failure: text(on_failure), on_success: text(on_success) }
    }
}

#[derive(Clone, Debug)]
struct Facts {
    settings: BTreeMap<Option<String>, InvokeSettings>,
    recursion_allowed: bool,
    may_send: bool,
    in_stack: bool,
    list: &'static str,
    has_alarms: bool,
    notifies: bool,
    is_watched_by_others: bool,
}

prop_compose! {
    fn any_facts()(
        settings in proptest::collection::btree_map(
            prop_oneof![Just(None), Just(Some("live".to_owned())), Just(Some("7".to_owned()))], any_settings(), 0..3,
        ),
        (recursion_allowed, may_send, in_stack) in any::<(bool, bool, bool)>(),
        list in prop_oneof![
            Just(""), Just(OTHER), Just(ARN), Just("arn:aws:lambda:eu-west-1:123456789012:function:or*"),
        ],
        (has_alarms, notifies, is_watched_by_others) in any::<(bool, bool, bool)>(),
    ) -> Facts {
        Facts { settings, recursion_allowed, may_send, in_stack, list, has_alarms, notifies, is_watched_by_others }
    }
}

impl Facts {
    /// Removes from these facts everything that an earlier `attach` might have left behind.
    fn never_attached(mut self) -> Self {
        self.settings.retain(|_, settings| settings.on_failure.as_deref() != Some(QUEUE));
        if self.list == ARN {
            self.list = "";
        }
        self
    }

    fn build(&self) -> SimulatedAws {
        let aws = sample();
        let state = &mut *aws.state();
        let orders = state.functions.get_mut("orders").unwrap();
        ["live", "7", "9"].iter().for_each(|qualifier| orders.publish(qualifier));
        orders.invoke_settings.clone_from(&self.settings);
        orders.recursion_allowed = self.recursion_allowed;
        let role = state.roles.get_mut("orders-role").unwrap();
        role.policies.insert("own".into(), policy(&["sqs:SendMessage", "sns:Publish"], &[DONE, FAILED]));
        if self.may_send {
            role.policies.insert("queues".into(), policy(&["sqs:*"], &[QUEUE]));
        }
        Sample::redeploy(state, "TargetFunctions", |_| self.list.into());
        if !self.in_stack {
            state.stacks.clear();
            state.functions.get_mut(Sample::HANDLER).unwrap().tags.remove(STACK_TAG);
        }
        if !self.notifies {
            state.alarms.get_mut("dead-letters").unwrap().actions.clear();
        }
        if !self.has_alarms {
            state.alarms.clear();
        }
        if self.is_watched_by_others {
            let dimensions = BTreeMap::from([("FunctionName".to_owned(), "orders".to_owned())]);
            let (namespace, name) = ("AWS/Lambda".into(), "DestinationDeliveryFailures".into());
            let metrics = vec![WatchedMetric { namespace, name, dimensions }];
            let alarm = MetricAlarm { name: "shop-OrdersLost".into(), metrics, ..MetricAlarm::default() };
            state.alarms.insert(alarm.name.clone(), alarm);
        }
        aws.clone()
    }
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test);
}

fn function(qualifier: Option<&str>) -> String {
    qualifier.map_or_else(|| "orders".into(), |qualifier| format!("orders:{qualifier}"))
}

/// Attaches the function `name`, but kills the command if the changes are not complete after `calls` calls to AWS.
async fn attach_killed(aws: &SimulatedAws, name: &str, calls: u64) {
    let change = to_attach(&[name]);
    let plan = change.plan(&operator(aws)).await.unwrap();
    if plan.question().is_some() {
        drop(aws.killed_after(calls, change.perform(&operator(aws), &plan)).await);
    }
    // Waits for the stack's update, because CloudFormation refuses a second update during the first.
    aws.advance(Duration::from_secs(60));
}

async fn detach_killed(aws: &SimulatedAws, name: &str, calls: u64) {
    let change = to_detach(&[name]);
    let plan = change.plan(&operator(aws)).await.unwrap();
    if plan.question().is_some() {
        drop(aws.killed_after(calls, change.perform(&operator(aws), &plan)).await);
    }
    aws.advance(Duration::from_secs(60));
}

const QUALIFIERS: [Option<&str>; 2] = [None, Some("live")];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn killed_attach_can_be_completed(facts in any_facts(), which in 0..2_usize, killed in 12_u64..60) {
        run(async {
            let name = function(QUALIFIERS[which]);
            let [whole, halfway] = [facts.build(), facts.build()];
            attach(&whole, &name).await;
            let attached = read(&whole, &name).await;
            assert!(attached.is_attached() && attached.allow_sending() == Ok(None));
            assert!(attached.deployment.allows(ARN) && attached.allow_invoking() == Ok(None));
            assert_eq!(attached.attach(false).unwrap().steps, []);
            attach_killed(&halfway, &name, killed).await;
            attach(&halfway, &name).await;
            assert_eq!(snapshot(&halfway), snapshot(&whole));
        });
    }

    #[test]
    fn failure_reaches_the_queue_only_once_it_can_be_retried(
        facts in any_facts(), which in 0..2_usize, killed in 12_u64..40,
    ) {
        run(async {
            let (aws, name) = (facts.build(), function(QUALIFIERS[which]));
            if !read(&aws, &name).await.is_attached() {
                attach_killed(&aws, &name, killed).await;
                let halfway = read(&aws, &name).await;
                if halfway.is_attached() {
                    assert!(halfway.allow_sending() == Ok(None) && halfway.deployment.allows(ARN));
                    assert!(halfway.allow_invoking() == Ok(None) && halfway.target.recursion_allowed);
                }
            }
        });
    }

    #[test]
    fn killed_detach_can_be_completed(
        facts in any_facts().prop_map(Facts::never_attached), which in 0..2_usize,
        killed in 12_u64..40, killed_again in 12_u64..40,
    ) {
        run(async {
            let (aws, name) = (facts.build(), function(QUALIFIERS[which]));
            let before = snapshot(&aws);
            attach(&aws, &name).await;
            detach_killed(&aws, &name, killed).await;
            carry_out(&aws, &to_detach(&[&name])).await.1.unwrap_err();
            let detached = read(&aws, &name).await;
            assert!(!detached.is_attached());
            assert!(detached.deployment.allows(ARN), "waiting events can still be retried");
            aws.advance(HOUR);
            detach_killed(&aws, &name, killed_again).await;
            assert_eq!(carry_out(&aws, &to_detach(&[&name])).await.1, Ok(()));
            assert_eq!(snapshot(&aws), before);
        });
    }

    #[test]
    fn another_qualifier_keeps_its_part(facts in any_facts(), which in 0..2_usize, at_once in any::<bool>()) {
        run(async {
            let (aws, name) = (facts.build(), function(QUALIFIERS[which]));
            attach(&aws, &name).await;
            let alarms = snapshot(&aws).alarms;
            attach(&aws, "orders:9").await;
            let change = RouteFailures { route: Route::Detach { at_once }, ..to_detach(&["orders:9"]) };
            assert_eq!(carry_out(&aws, &change).await.1, Ok(()));
            let one = read(&aws, &name).await;
            assert!(one.is_attached() && one.attached().all(|it| it != Some("9")));
            assert!(one.allow_sending() == Ok(None) && one.allow_invoking() == Ok(None));
            assert!(one.deployment.allows(ARN) && one.target.recursion_allowed);
            assert_eq!(snapshot(&aws).alarms, alarms);
        });
    }
}
