//! A function is attached.

use std::collections::BTreeSet;

use super::{ARN, OTHER, QUEUE, TOPIC, all, attachment, left};
use crate::attach::change::Change;
use crate::attach::facts::{Attachment, Handler, Place};
use crate::attach::losses::Losses;
use crate::{Failure, InvokeSettings, Verdict};

#[test]
fn a_plain_function_takes_five_changes_in_the_safe_order() {
    let plan = attachment().attach().unwrap();
    let differences: Vec<_> = plan.changes.iter().flat_map(Change::differences).collect();
    let lines: Vec<String> = differences
        .iter()
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
    assert_eq!((plan.notes.len(), plan.left), (0, None));
}

#[test]
fn what_lambda_loses_is_watched_as_the_deployments_alarms_are_unless_it_is_already() {
    let losses = |tell: Option<BTreeSet<String>>, others| {
        let attachment = attachment();
        Attachment { losses: Losses { tell, others, ..attachment.losses.clone() }, ..attachment }
    };
    let topic = || Some(BTreeSet::from([TOPIC.to_owned()]));
    let watch = |attachment: Attachment| {
        let plan = attachment.attach().unwrap();
        let differences = plan.changes.iter().flat_map(Change::differences);
        differences.filter(|it| it.setting.starts_with("alarm ")).map(|it| it.to).next()
    };
    assert_eq!(watch(losses(topic(), false)), Some(Some(format!("tells {TOPIC}"))));
    assert_eq!(watch(losses(Some(BTreeSet::new()), false)), Some(Some("tells nobody".to_owned())));
    assert_eq!(watch(losses(topic(), true)), None, "the construct has made one");
    assert_eq!(watch(losses(None, false)), None, "the deployment has no alarms");
}

#[test]
fn a_customers_key_is_allowed_too() {
    let plan = Attachment { key_arn: Some("arn:key".into()), ..attachment() }.attach().unwrap();
    let allowed = plan.changes.iter().find_map(|change| match change {
        Change::Allow { statements, .. } => Some(statements.clone()),
        _ => None,
    });
    let expected = vec![
        (vec!["sqs:SendMessage"], vec![QUEUE.to_owned()]),
        (vec!["kms:GenerateDataKey", "kms:Decrypt"], vec!["arn:key".to_owned()]),
    ];
    assert_eq!(allowed, Some(expected));
}

/// What stands in the way of attaching, and a part of what is said.
#[test]
fn what_stands_in_the_way_is_said_with_what_to_do() {
    let in_place =
        |place: Place| Attachment { handler: Handler { place, ..attachment().handler }, ..attachment() };
    let full = |handler: Handler| Attachment { handler, ..attachment() };
    let long = vec![OTHER; 80].join(",");
    let cases = [
        (Attachment { owner: Some("shop".into()), ..attachment() }, "stack shop owns the settings"),
        (
            Attachment { may_send: Verdict::Denied, ..attachment() },
            "a policy denies arn:aws:iam::123456789012:role/orders-role to send",
        ),
        (
            in_place(Place::Template { stack: "app".into() }),
            "retries.attach(lambda.Function.fromFunctionArn(this, 'orders'",
        ),
        (
            in_place(Place::Parameter { stack: "comeback".into(), value: ARN.into() }),
            "deploy the stack again",
        ),
        (
            in_place(Place::Parameter { stack: "comeback".into(), value: long }),
            "of 4096, the handler's environment",
        ),
        (full(Handler { environment_bytes: 4_096, ..attachment().handler }), "function:shop-*"),
        (
            full(Handler { environment_bytes: 4_096, place: Place::Environment, ..attachment().handler }),
            "one pattern",
        ),
        (
            full(Handler { may_invoke: Verdict::Denied, ..attachment().handler }),
            "denies the role handler-role",
        ),
    ];
    for (attachment, said) in cases {
        let Err(Failure::Undone(text)) = attachment.attach() else { panic!("{said}") };
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn an_owned_function_is_left_alone_unless_nothing_is_to_be_changed() {
    let attached = all(&attachment(), &attachment().attach().unwrap());
    let owned = Attachment { owner: Some("shop".into()), ..attached };
    assert_eq!(owned.attach().unwrap().changes, []);
    assert!(matches!(owned.detach(&left()), Err(Failure::Undone(_))));
}

#[test]
fn what_fits_no_tag_is_printed() {
    let on_failure = format!("{OTHER}:$LATEST");
    let settings = InvokeSettings { on_failure: Some(on_failure.clone()), ..InvokeSettings::default() };
    let mut before = attachment();
    before.target.invoke_settings.insert(None, settings);
    let plan = before.attach().unwrap();
    let kept: Vec<_> =
        plan.changes.iter().flat_map(Change::differences).filter(|it| it.setting.contains("tag")).collect();
    assert_eq!(kept.len(), 3);
    let note = format!("comeback:on-failure = {on_failure} fits no tag");
    assert!(plan.notes.len() == 1 && plan.notes[0].starts_with(&note), "{:?}", plan.notes);

    before.target.tags = (0..48).map(|n| (format!("tag-{n}"), String::new())).collect();
    before.target.tags.insert(crate::target::STACK_TAG.into(), "shop".into());
    let plan = before.attach().unwrap();
    assert!(!matches!(plan.changes[0], Change::Keep { .. }), "{:?}", plan.changes[0]);
    assert_eq!(plan.notes.len(), 5, "four settings, and the stack");
}

#[test]
fn settings_of_before_are_not_overwritten_by_ours() {
    let attached = all(&attachment(), &attachment().attach().unwrap());
    let mut changed = attached.clone();
    changed.target.invoke_settings.get_mut(&None).unwrap().retries = Some(1);
    let again = all(&changed, &changed.attach().unwrap());
    assert_eq!(again, attached);
}
