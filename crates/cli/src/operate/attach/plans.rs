//! Plans, and what is there once each change was made, or some were.

mod neighbours;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_kms::types::KeyState;
use comeback_engine::Timestamp;
use proptest::prelude::*;

use crate::account::{CustomerKey, Failure, Verdict};
use crate::operate::alarms::Losses;
use crate::operate::attach::attachment::{Attachment, Place};
use crate::operate::attach::change::{AttachPlan, Change};
use crate::operate::attach::grant::Grant;
use crate::operate::attach::kept;
use crate::operate::attach::leaving::Leaving;
use crate::operate::deployment::Deployment;
use crate::operate::deployment::queue::Queue;
use crate::operate::function::{InvokeSettings, Target};
use crate::operate::handler_setting::{
    ENVIRONMENT_BYTES, SettingPlace, TARGET_FUNCTIONS, list_with, list_without,
};
use crate::operate::model::{Account, Call, Function};

const FUNCTION: &str = "orders";
const HANDLER: &str = "retry-handler";
const ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
const OTHER: &str = "arn:aws:lambda:eu-west-1:123456789012:function:invoices";
const ALARM: &str = "comeback-retries-lost-orders";
const TOPIC: &str = "arn:aws:sns:eu-west-1:123456789012:on-call";
const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:comeback-retries";

pub(crate) fn target() -> Target {
    Target {
        name: "orders".into(),
        qualifier: None,
        is_qualifier_gone: false,
        arn: ARN.into(),
        role_arn: "arn:aws:iam::123456789012:role/orders-role".into(),
        runtime: Some("python3.12".into()),
        timeout: Duration::from_secs(3),
        invoke_settings: BTreeMap::new(),
        unfit: None,
        recursion_allowed: false,
        reserved_concurrency: None,
        dead_letter: None,
        tags: BTreeMap::new(),
    }
}

/// Nothing of it is attached to a stack of SAM.
pub(crate) fn attachment() -> Attachment {
    let mut deployment =
        Deployment { retry_queue: Queue::sample("comeback-retries"), ..Deployment::sample() };
    set_list(&mut deployment, String::new());
    Attachment {
        target: target(),
        is_gone: false,
        deployment,
        elsewhere: BTreeMap::new(),
        key: Ok(None),
        may_send: Verdict::NotAllowed,
        denied: Vec::new(),
        send_policy: false,
        may_invoke: Verdict::NotAllowed,
        invoke_policy: false,
        invoke_characters: 0,
        owner: None,
        losses: Losses { alarm: ALARM.into(), ours: false, is_silent: false, others: false, topics: None },
        place: Place::Parameter { stack: "comeback".into(), value: String::new() },
    }
}

pub(crate) fn set_list(deployment: &mut Deployment, list: String) {
    deployment.variables.insert(TARGET_FUNCTIONS.variable.into(), list);
}

/// Everything has left the queue, and `now` is long after anything else.
pub(crate) fn left() -> Leaving {
    Leaving { now: Timestamp::from_secs(2_000_000_000), at_once: false, waiting: None, sharing: Vec::new() }
}

fn allowed(is_allowed: bool) -> Verdict {
    if is_allowed { Verdict::Allowed } else { Verdict::NotAllowed }
}

/// The function and the handler, as AWS keeps them.
fn kept_by_aws(it: &Attachment) -> Account<InvokeSettings> {
    let given = |is_given: bool, grant: Grant| is_given.then(|| (grant.policy, String::new()));
    let topics = if it.losses.is_silent { BTreeSet::new() } else { BTreeSet::from([TOPIC.to_owned()]) };
    let function = Function {
        tags: it.target.tags.clone(),
        invoke_settings: it.target.invoke_settings.clone(),
        recursion_allowed: it.target.recursion_allowed,
        policies: given(it.send_policy, it.sending()).into_iter().collect(),
        alarms: it.losses.ours.then(|| (it.losses.alarm.clone(), topics)).into_iter().collect(),
        ..Function::new()
    };
    let handler = Function {
        variables: it.deployment.variables.clone(),
        policies: given(it.invoke_policy, it.invoking()).into_iter().collect(),
        ..Function::new()
    };
    Account::new([(FUNCTION, function), (HANDLER, handler)], [])
}

/// Makes a change to what is there.
fn make(it: &mut Attachment, change: &Change) {
    let mut account = kept_by_aws(it);
    let function = account.function(FUNCTION);
    let qualifier = it.target.qualifier.clone();
    match change.clone() {
        Change::Keep(tags) => function.call(Call::TagResource(tags.into_iter().collect())),
        Change::Mark(key) => {
            function.call(Call::TagResource(BTreeMap::from([(key.to_owned(), left().now.to_string())])));
        }
        Change::Forget(tags) => {
            function.call(Call::UntagResource(tags.into_iter().map(|(key, _)| key).collect()));
        }
        Change::Allow(grant) | Change::Withdraw(grant) => {
            let is_given = matches!(change, Change::Allow(_));
            let of_handler = grant.role == it.deployment.role();
            let (name, may) =
                if of_handler { (HANDLER, &mut it.may_invoke) } else { (FUNCTION, &mut it.may_send) };
            *may = allowed(is_given);
            account.function(name).call(if is_given {
                Call::PutRolePolicy(grant.policy, String::new())
            } else {
                Call::DeleteRolePolicy(grant.policy)
            });
        }
        Change::List(place, listed) => {
            let edit = |list: &str| if listed { list_with(list, ARN) } else { list_without(list, ARN) };
            let list = edit(it.deployment.allow_list());
            set_list(&mut it.deployment, list);
            // A stack updates its handler and the handler's role.
            if let (SettingPlace::Stack(_), Place::Parameter { value, .. }) = (place, &mut it.place) {
                *value = edit(value);
                it.may_invoke = allowed(it.deployment.allows(ARN));
            }
            account
                .function(HANDLER)
                .call(Call::UpdateFunctionConfiguration(it.deployment.variables.clone()));
        }
        Change::Watch { alarm, .. } => function.call(Call::PutMetricAlarm(alarm.name, alarm.topics)),
        Change::Unwatch(alarm) => function.call(Call::DeleteAlarms(alarm)),
        Change::Recursion(allowed) => function.call(Call::PutFunctionRecursionConfig(allowed)),
        Change::Settings(to) if to == InvokeSettings::default() => {
            function.call(Call::DeleteFunctionEventInvokeConfig(qualifier));
        }
        Change::Settings(to) => function.call(Call::PutFunctionEventInvokeConfig(qualifier, to)),
    }
    let handler = account.function(HANDLER);
    it.invoke_policy = handler.policies.contains_key(&it.invoking().policy);
    it.deployment.variables = handler.variables.clone();
    let function = account.function(FUNCTION);
    it.send_policy = function.policies.contains_key(&it.sending().policy);
    let alarm = function.alarms.get(&it.losses.alarm);
    (it.losses.ours, it.losses.is_silent) = (alarm.is_some(), alarm.is_some_and(BTreeSet::is_empty));
    it.target.recursion_allowed = function.recursion_allowed;
    (it.target.tags, it.target.invoke_settings) = (function.tags.clone(), function.invoke_settings.clone());
}

fn perform(attachment: &Attachment, plan: &AttachPlan, changes: usize) -> Attachment {
    let mut after = attachment.clone();
    plan.changes.iter().take(changes).for_each(|change| make(&mut after, change));
    after
}

pub(crate) fn all(attachment: &Attachment, plan: &AttachPlan) -> Attachment {
    perform(attachment, plan, usize::MAX)
}

fn is_empty(plan: &AttachPlan) -> bool {
    plan.changes.is_empty() && plan.notes.is_empty() && plan.left.is_none()
}

#[test]
fn a_plain_function_takes_five_changes_in_the_safe_order() {
    let plan = attachment().attach(false).unwrap();
    let lines: Vec<String> = plan
        .differences()
        .map(|it| {
            let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
            format!("{} | {} | {} | {}", it.resource, it.setting, text(&it.from), text(&it.to))
        })
        .collect();
    assert_eq!(
        lines,
        [
            "function orders | tag comeback:retries | - | default",
            "function orders | tag comeback:event-age | - | default",
            "function orders | tag comeback:on-failure | - | none",
            "function orders | tag comeback:recursion | - | Terminate",
            "role orders-role | policy comeback-comeback-retries | - | sqs:SendMessage",
            &format!("stack comeback | TargetFunctions | - | {ARN}"),
            "function orders | recursive loops | Terminate | Allow",
            &format!("function orders | on failure | - | {QUEUE}"),
            "function orders | retries | - | 0",
            "function orders | event age | - | 60s",
        ]
    );
    assert_eq!((plan.notes.len(), plan.left), (1, None), "the room left");
}

#[test]
fn what_lambda_loses_is_watched_as_the_deployments_alarms_are_unless_it_is_already() {
    let losses = |topics: Option<BTreeSet<String>>, others| {
        let attachment = attachment();
        Attachment { losses: Losses { topics, others, ..attachment.losses.clone() }, ..attachment }
    };
    let topic = || Some(BTreeSet::from([TOPIC.to_owned()]));
    let watch = |attachment: Attachment| {
        let plan = attachment.attach(false).unwrap();
        plan.differences().find(|it| it.setting.starts_with("alarm ")).map(|it| it.to)
    };
    assert_eq!(watch(losses(topic(), false)), Some(Some(format!("notifies {TOPIC}"))));
    assert_eq!(watch(losses(Some(BTreeSet::new()), false)), Some(Some("notifies nobody".to_owned())));
    assert_eq!(watch(losses(topic(), true)), None, "the construct has made one");
    assert_eq!(watch(losses(None, false)), None, "the deployment has no alarms");
}

#[test]
fn an_alarm_of_ours_that_notifies_nobody_gets_the_topics_of_the_deployments_alarms() {
    let changed = |is_silent, topics: &[&str]| {
        let mut it = attachment();
        let topics = topics.iter().map(ToString::to_string).collect();
        it.losses = Losses { ours: true, is_silent, topics: Some(topics), ..it.losses };
        let plan = it.attach(false).unwrap();
        plan.differences().find(|it| it.setting.starts_with("alarm ")).map(|it| (it.from, it.to))
    };
    let set = (Some("notifies nobody".to_owned()), Some(format!("notifies {TOPIC}")));
    assert_eq!(changed(true, &[TOPIC]), Some(set));
    assert_eq!(changed(true, &[]), None, "there is no topic");
    assert_eq!(changed(false, &[TOPIC]), None, "whatever it does, somebody chose that");
}

#[test]
fn a_customers_key_is_allowed_too() {
    let mut attachment = attachment();
    attachment.key = Ok(Some(CustomerKey { arn: "arn:key".into(), state: Some(KeyState::Enabled) }));
    let plan = attachment.attach(false).unwrap();
    let allowed = plan.changes.iter().find_map(|change| match change {
        Change::Allow(grant) => Some(grant.statements.clone()),
        _ => None,
    });
    let expected = vec![
        (vec!["sqs:SendMessage"], vec![QUEUE.to_owned()]),
        (vec!["kms:GenerateDataKey", "kms:Decrypt"], vec!["arn:key".to_owned()]),
    ];
    assert_eq!(allowed, Some(expected));
    let note = "role orders-role can use key arn:key only if the key's own policy allows that";
    assert!(plan.notes.len() == 2 && plan.notes[0].starts_with(note), "{:?}", plan.notes);
    assert_eq!(all(&attachment, &plan).attach(false).unwrap().notes, [""; 0]);
}

#[test]
fn a_key_that_cannot_be_described_does_not_block_detach() {
    let denied = Failure::CouldNot("kms:DescribeKey on k: denied".into());
    let before = all(&attachment(), &attachment().attach(false).unwrap());
    let unread = Attachment { key: Err(denied.clone()), ..before };
    assert_eq!(unread.attach(false), Err(denied));
    let detached = all(&unread, &unread.detach(&left()).unwrap());
    let later = Leaving { now: left().now.saturating_add(Duration::from_secs(600)), ..left() };
    let plan = detached.detach(&later).unwrap();
    assert!(plan.notes[0].ends_with("which is unreadable: kms:DescribeKey on k: denied"), "{:?}", plan.notes);
    assert!(!all(&detached, &plan).send_policy);
}

/// What stands in the way of attaching, and a part of what is said.
#[test]
fn what_stands_in_the_way_is_said_with_what_to_do() {
    let in_place = |place: Place| Attachment { place, ..attachment() };
    let mut full = attachment();
    full.deployment.variables.insert("FILL".into(), "x".repeat(ENVIRONMENT_BYTES));
    let long = vec![OTHER; 80].join(",");
    let mut stopped = attachment();
    stopped.deployment.variables.insert("BASE_BACKOFF".into(), "soon".into());
    let cases = [
        (stopped, "handler retry-handler does not start, so it would retry nothing: BASE_BACKOFF is"),
        (
            Attachment { owner: Some("shop".into()), ..attachment() },
            "stack shop owns the asynchronous \
             invocation settings",
        ),
        (
            Attachment {
                may_send: Verdict::Denied,
                denied: vec!["kms:Decrypt on arn:key".into()],
                ..attachment()
            },
            "a policy denies arn:aws:iam::123456789012:role/orders-role kms:Decrypt on arn:key; remove",
        ),
        (
            Attachment {
                key: Ok(Some(CustomerKey { arn: "arn:key".into(), state: Some(KeyState::Disabled) })),
                ..attachment()
            },
            "failed events: the key arn:key is Disabled; `comeback doctor",
        ),
        (
            in_place(Place::Template { stack: "app".into() }),
            "retries.attach(lambda.Function.fromFunctionArn(this, 'orders'",
        ),
        (
            in_place(Place::Parameter { stack: "comeback".into(), value: ARN.into() }),
            "changed its role by hand; `comeback doctor orders --only CB109` names the fix",
        ),
        (
            in_place(Place::Parameter { stack: "comeback".into(), value: long }),
            "of 4096 bytes, the handler's environment",
        ),
        (full.clone(), "function:shop-*"),
        (Attachment { place: Place::Environment, ..full }, "one pattern"),
        (
            Attachment { place: Place::Environment, invoke_characters: 10_241, ..attachment() },
            "its inline policies would take 10241 of 10240 characters",
        ),
        (
            Attachment { may_invoke: Verdict::Denied, ..attachment() },
            "denies the handler's role handler-role lambda:InvokeFunction",
        ),
    ];
    for (attachment, said) in cases {
        let Err(Failure::Undone(text)) = attachment.attach(false) else { panic!("{said}") };
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn a_handler_whose_allow_list_was_changed_by_hand_gets_what_its_stack_says() {
    let mut it = all(&attachment(), &attachment().attach(false).unwrap());
    set_list(&mut it.deployment, String::new());
    let plan = it.attach(false).unwrap();
    let handler = SettingPlace::Function("retry-handler".into());
    assert_eq!(plan.changes, [Change::List(handler, true)]);
    assert!(all(&it, &plan).deployment.allows(ARN));
}

#[test]
fn a_function_that_cannot_be_retried_is_detached_but_never_attached() {
    let mut attached = all(&attachment(), &attachment().attach(false).unwrap());
    attached.target.unfit = Some("is durable");
    assert_eq!(attached.attach(false), Err(Failure::Refused("orders is durable".into())));
    assert!(!all(&attached, &attached.detach(&left()).unwrap()).is_attached());
}

#[test]
fn an_owned_function_is_left_alone_unless_nothing_is_to_be_changed() {
    let attached = all(&attachment(), &attachment().attach(false).unwrap());
    let owned = Attachment { owner: Some("shop".into()), ..attached };
    assert_eq!(owned.attach(false).unwrap().changes, []);
    assert!(matches!(owned.detach(&left()), Err(Failure::Undone(_))));
}

#[test]
fn what_fits_no_tag_is_printed() {
    let on_failure = format!("{OTHER}:$LATEST");
    let settings = InvokeSettings { on_failure: Some(on_failure.clone()), ..InvokeSettings::default() };
    let mut before = attachment();
    before.target.invoke_settings.insert(None, settings);
    let plan = before.attach(false).unwrap();
    let kept: Vec<_> = plan.differences().filter(|it| it.setting.contains("tag")).collect();
    assert_eq!(kept.len(), 3);
    let note = format!("comeback:on-failure = {on_failure} does not fit in a tag");
    assert!(plan.notes.len() == 2 && plan.notes[0].starts_with(&note), "{:?}", plan.notes);

    before.target.tags = (0..48).map(|n| (format!("tag-{n}"), String::new())).collect();
    before.target.tags.insert(crate::operate::function::STACK_TAG.into(), "shop".into());
    let plan = before.attach(false).unwrap();
    assert!(!matches!(plan.changes[0], Change::Keep { .. }), "{:?}", plan.changes[0]);
    assert_eq!(plan.notes.len(), 6, "four settings, the stack, and the room left");
}

#[test]
fn settings_of_before_are_not_overwritten_by_ours() {
    let attached = all(&attachment(), &attachment().attach(false).unwrap());
    let mut changed = attached.clone();
    changed.target.invoke_settings.get_mut(&None).unwrap().retries = Some(1);
    let again = all(&changed, &changed.attach(false).unwrap());
    assert_eq!(again, attached);
}

#[test]
fn events_that_wait_keep_the_allow_list_unless_they_may_be_dead_lettered() {
    let mut detached = all(&attachment(), &attachment().attach(false).unwrap());
    detached = all(&detached, &detached.detach(&left()).unwrap());
    let later = Leaving { now: left().now.saturating_add(Duration::from_secs(600)), ..left() };
    let waiting = Leaving { waiting: Some("3 of its events are waiting".into()), ..later };
    let (changes, left) = waiting.detach_of(&detached);
    assert!(
        changes == 0
            && left.is_some_and(|left| left.ends_with(
                "may still wait: 3 of its events are \
         waiting"
            ))
    );
    let at_once = Leaving { at_once: true, ..waiting };
    let plan = detached.detach(&at_once).unwrap();
    assert_eq!(all(&detached, &plan), attachment());
    let kept = "the allow-list will be empty, so waiting events of orders are kept until another function is \
                attached, then dead-lettered as target_not_allowed";
    assert_eq!(plan.notes, [kept]);
    assert_eq!(plan.left, None);
}

#[test]
fn the_price_of_now_is_said_before_and_after() {
    let gone = "waiting events of orders will be dead-lettered as target_not_allowed";
    let stays = "waiting events of orders are still retried, because it is still on the allow-list";
    for (others, price) in [(OTHER.to_owned(), gone), (format!("{ARN}*"), stays)] {
        let mut before = attachment();
        set_list(&mut before.deployment, others.clone());
        before.place = Place::Parameter { stack: "comeback".into(), value: others };
        let attached = all(&before, &before.attach(false).unwrap());
        let refused = attached.detach(&left()).unwrap();
        assert!(refused.left.is_some());
        assert_eq!(refused.price_of_now.as_deref(), Some(price));
        let at_once = attached.detach(&Leaving { at_once: true, ..left() }).unwrap();
        assert_eq!((&*at_once.notes[0], at_once.price_of_now), (price, None));
    }
}

impl Leaving {
    fn detach_of(&self, attachment: &Attachment) -> (usize, Option<String>) {
        let plan = attachment.detach(self).unwrap();
        (plan.changes.len(), plan.left)
    }
}

#[test]
fn a_role_that_others_share_keeps_its_permission() {
    let mut detached = all(&attachment(), &attachment().attach(false).unwrap());
    let leaving = Leaving { at_once: true, sharing: vec!["invoices".into()], ..left() };
    let plan = detached.detach(&leaving).unwrap();
    assert!(plan.notes.iter().any(|note| {
        note.contains(
            "role orders-role keeps its permission to send, because these functions use it: invoices",
        )
    }));
    detached = all(&detached, &plan);
    assert!(detached.send_policy && !detached.deployment.allows(ARN));
}

#[test]
fn what_was_never_attached_is_not_detached() {
    assert!(is_empty(&attachment().detach(&left()).unwrap()));
    // A pattern is not the function's own.
    let pattern = format!("{ARN}*");
    let mut allowed = attachment();
    set_list(&mut allowed.deployment, pattern.clone());
    allowed.place = Place::Parameter { stack: "comeback".into(), value: pattern };
    assert!(is_empty(&allowed.detach(&left()).unwrap()));
}

#[test]
fn what_was_attached_by_hand_gets_lambdas_defaults() {
    let mut by_hand = all(&attachment(), &attachment().attach(false).unwrap());
    by_hand.target.tags.clear();
    let plan = by_hand.detach(&left()).unwrap();
    assert_eq!(plan.notes.len(), 1);
    let detached = all(&by_hand, &plan);
    assert_eq!(detached.target.settings(), InvokeSettings::default());
    assert!(detached.target.tags.contains_key(kept::DETACHED));
}

#[test]
fn what_is_under_way_may_still_send_even_if_what_waits_is_dead_lettered() {
    let attached = all(&attachment(), &attachment().attach(false).unwrap());
    let at_once = Leaving { at_once: true, ..left() };
    let plan = attached.detach(&at_once).unwrap();
    let until = left().now.saturating_add(Duration::from_secs(3 + 120));
    let kept =
        format!("role orders-role keeps its permission to send until {until}, for running invocations");
    assert_eq!(plan.left.as_ref(), Some(&kept));
    let detached = all(&attached, &plan);
    assert!(detached.send_policy && !detached.is_attached() && !detached.deployment.allows(ARN));
    assert_eq!(at_once.detach_of(&detached), (0, Some(kept)), "too early");
    let last = detached.detach(&Leaving { now: until, ..at_once }).unwrap();
    assert_eq!((&last.left, all(&detached, &last)), (&None, attachment()));
}

#[test]
fn a_plan_agrees_with_a_later_one_that_does_the_same() {
    let attached = all(&attachment(), &attachment().attach(false).unwrap());
    let first = attached.detach(&left()).unwrap();
    let later = Leaving { now: left().now.saturating_add(Duration::from_secs(60)), ..left() };
    assert!(first.agrees_with(&attached.detach(&later).unwrap()));
    let other = Attachment { send_policy: false, ..attachment() };
    assert!(!first.agrees_with(&other.detach(&later).unwrap()));
    assert!(!first.agrees_with(&attached.detach(&Leaving { at_once: true, ..left() }).unwrap()));
}

prop_compose! {
    fn any_settings()(
        retries in proptest::option::of(0..3),
        event_age in proptest::option::of(60..21_601),
        on_failure in proptest::option::of(prop_oneof![Just(QUEUE), Just("arn:aws:sns:eu-west-1:123456789012:failed")]),
        on_success in proptest::option::of(Just("arn:aws:sqs:eu-west-1:123456789012:done")),
    ) -> InvokeSettings {
        let text = |text: Option<&str>| text.map(ToOwned::to_owned);
        InvokeSettings { retries, event_age, on_failure: text(on_failure), on_success: text(on_success) }
    }
}

prop_compose! {
    /// Any combination of facts that hold together, where nothing stands in the way.
    fn any_attachment()(
        qualifier in proptest::option::of(Just("live".to_owned())),
        settings in proptest::collection::btree_map(
            prop_oneof![Just(None), Just(Some("live".to_owned())), Just(Some("7".to_owned()))], any_settings(), 0..3,
        ),
        recursion_allowed in any::<bool>(),
        (sends, send_policy, listed, invokes) in any::<(bool, bool, bool, bool)>(),
        in_stack in any::<bool>(),
        (watched, watched_by_others, silent) in any::<(bool, bool, bool)>(),
        topics in proptest::option::of(prop_oneof![Just(BTreeSet::new()), Just(BTreeSet::from([TOPIC.to_owned()]))]),
        list in prop_oneof![Just(""), Just(OTHER), Just("arn:aws:lambda:eu-west-1:123456789012:function:or*")],
    ) -> Attachment {
        let mut it = attachment();
        it.target = Target { qualifier, invoke_settings: settings, recursion_allowed, ..it.target };
        it.target.invoke_settings.retain(|_, settings| *settings != InvokeSettings::default());
        it.losses = Losses {
            ours: watched, is_silent: watched && silent, others: watched_by_others, topics, ..it.losses
        };
        it.send_policy = send_policy;
        it.may_send = allowed(sends || send_policy);
        let list = if listed { list_with(list, ARN) } else { list.to_owned() };
        set_list(&mut it.deployment, list.clone());
        it.may_invoke = allowed(if in_stack { it.deployment.allows(ARN) } else { invokes });
        it.invoke_policy = !in_stack && invokes;
        it.place = if in_stack {
            Place::Parameter { stack: "comeback".into(), value: list }
        } else {
            Place::Environment
        };
        it
    }
}

/// What was attached by hand has no settings of before.
fn never_attached(mut it: Attachment) -> Attachment {
    it.target.invoke_settings.retain(|_, settings| settings.on_failure.as_deref() != Some(QUEUE));
    it.send_policy = false;
    (it.losses.ours, it.losses.is_silent) = (false, false);
    it.invoke_policy = false;
    let list = list_without(it.deployment.allow_list(), ARN);
    it.may_invoke = allowed(false);
    set_list(&mut it.deployment, list.clone());
    if let Place::Parameter { value, .. } = &mut it.place {
        *value = list;
        it.may_invoke = allowed(it.deployment.allows(ARN));
    }
    it
}

proptest! {
    #[test]
    fn attaching_is_done_once_wherever_it_was_killed(before in any_attachment(), killed in 0_usize..9) {
        let plan = before.attach(false).unwrap();
        let after = all(&before, &plan);
        prop_assert_eq!(after.attach(false).unwrap().changes, []);
        prop_assert!(after.is_attached() && after.may_send.is_allowed());
        prop_assert!(after.deployment.allows(ARN) && after.may_invoke.is_allowed());
        let halfway = perform(&before, &plan, killed);
        prop_assert_eq!(all(&halfway, &halfway.attach(false).unwrap()), after);
    }

    #[test]
    fn a_failure_reaches_the_queue_only_once_it_can_be_retried(before in any_attachment(), killed in 0_usize..8) {
        prop_assume!(!before.is_attached());
        let halfway = perform(&before, &before.attach(false).unwrap(), killed);
        if halfway.is_attached() {
            prop_assert!(halfway.may_send.is_allowed() && halfway.deployment.allows(ARN));
            prop_assert!(halfway.may_invoke.is_allowed() && halfway.target.recursion_allowed);
        }
    }

    #[test]
    fn detaching_brings_back_what_was_there_wherever_it_was_killed(
        before in any_attachment().prop_map(never_attached), killed in 0_usize..8, killed_again in 0_usize..8,
    ) {
        let attached = all(&before, &before.attach(false).unwrap());
        let first = attached.detach(&left()).unwrap();
        let halfway = perform(&attached, &first, killed);
        let mut detached = all(&halfway, &halfway.detach(&left()).unwrap());
        prop_assert!(!detached.is_attached());
        prop_assert!(detached.deployment.allows(ARN), "what waits can still be retried");
        // Some time later everything has left.
        let mut later = left();
        later.now = later.now.saturating_add(Duration::from_secs(3_600));
        let last = detached.detach(&later).unwrap();
        prop_assert_eq!(&last.left, &None);
        detached = perform(&detached, &last, killed_again);
        detached = all(&detached, &detached.detach(&later).unwrap());
        prop_assert!(is_empty(&detached.detach(&later).unwrap()));
        prop_assert_eq!(detached, before);
    }

    #[test]
    fn another_qualifier_keeps_what_it_needs(before in any_attachment(), at_once in any::<bool>()) {
        let attached = all(&before, &before.attach(false).unwrap());
        let mut other = attached.clone();
        other.target.qualifier = Some("9".into());
        let both = all(&other, &other.attach(false).unwrap());
        let one = all(&both, &both.detach(&Leaving { at_once, ..left() }).unwrap());
        prop_assert!(!one.is_attached() && one.attached().any(|it| it == before.target.qualifier.as_deref()));
        prop_assert!(one.may_send.is_allowed() && one.may_invoke.is_allowed());
        prop_assert!(one.deployment.allows(ARN) && one.target.recursion_allowed);
        prop_assert_eq!(one.losses, attached.losses);
    }
}

#[test]
fn the_entry_of_policies_that_counts_is_named() {
    let notes = |policies: &str| {
        let mut it = attachment();
        it.deployment.variables.insert("POLICIES".into(), policies.into());
        let plan = it.attach(false).unwrap();
        let again = all(&it, &plan).attach(false).unwrap();
        assert_eq!((again.changes, again.notes), (vec![], vec![]), "nothing to say a second time");
        plan.notes[1..].to_vec()
    };
    assert_eq!(notes(""), [""; 0]);
    let entry = "the entry \"o* MAX_AGE=2h\" of POLICIES applies to orders";
    assert_eq!(notes("orders:live MAX_AGE=1h; o* MAX_AGE=2h; orders JITTER=none"), [entry]);
    let none = "no entry of POLICIES matches orders, so it has the stack's policy";
    assert_eq!(notes("invoices MAX_AGE=2h"), [none]);
}

#[test]
fn a_dead_letter_queue_of_the_functions_own_is_named() {
    let mut it = attachment();
    it.target.dead_letter = Some("arn:aws:sqs:eu-west-1:123456789012:own".into());
    let notes = it.attach(false).unwrap().notes;
    let note = "orders also has its own dead-letter queue, arn:aws:sqs:eu-west-1:123456789012:own, and Lambda \
                sends every failed attempt there";
    assert!(notes[0].starts_with(note) && notes[0].ends_with("--dead-letter-config TargetArn="), "{notes:?}");
}

#[test]
fn a_destination_outside_the_account_is_asked_about() {
    let question = |arn: &str| {
        let mut before = attachment();
        let settings = InvokeSettings { on_failure: Some(arn.into()), ..InvokeSettings::default() };
        before.target.invoke_settings.insert(None, settings);
        let attached = all(&before, &before.attach(false).unwrap());
        attached.detach(&left()).unwrap().question
    };
    assert_eq!(question("arn:aws:sns:eu-west-1:123456789012:failed"), None);
    let asked = question("arn:aws:sns:eu-west-1:999999999999:failed").unwrap();
    assert!(
        asked.ends_with("999999999999:failed, which may be outside account 123456789012: continue?"),
        "{asked}"
    );
}
