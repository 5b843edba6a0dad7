//! Plans where something else has a part in a function: another deployment, or another function with the same role. And
//! plans where the function itself is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::account::{Failure, Verdict};
use crate::operate::attach::attachment::{Attachment, Place, gone};
use crate::operate::attach::change::{AttachPlan, Change};
use crate::operate::attach::kept;
use crate::operate::attach::leaving::Leaving;
use crate::operate::attach::plans::{all, attachment, left, set_list};
use crate::operate::deployment::DeploymentName;
use crate::operate::deployment::queue::Queue;
use crate::operate::function::{InvokeSettings, Target};

/// The plan of `comeback attach` without `--move`.
fn attached(it: &Attachment) -> Attachment {
    all(it, &it.attach(false).unwrap())
}

/// The function of `target` as stack billing finds it, with nothing of its own.
fn billing(target: Target) -> Attachment {
    let mut it = Attachment { target, ..attachment() };
    it.deployment.stack = Some("billing".into());
    it.deployment.retry_queue = Queue::sample("billing-retries");
    it.place = Place::Parameter { stack: "billing".into(), value: String::new() };
    it.deployment.place_flags = " --profile ops".into();
    it.elsewhere = BTreeMap::from([(None, DeploymentName::Stack("comeback".into()))]);
    it
}

/// The same deployment, when another has the function's failures.
fn after_move(it: Attachment, target: Target) -> Attachment {
    Attachment { target, elsewhere: BTreeMap::from([(None, DeploymentName::Stack("billing".into()))]), ..it }
}

#[test]
fn a_function_of_another_deployment_is_taken_over_only_on_request() {
    let it = billing(attached(&attachment()).target);
    let Err(Failure::Undone(refused)) = it.attach(false) else { panic!("it was attached") };
    let named = "orders is attached to stack comeback, not to stack billing; to move it here";
    assert!(
        refused.starts_with(named) && refused.ends_with("`comeback detach orders --profile ops`"),
        "{refused}"
    );
    let there =
        "it is attached to stack comeback; to detach it there: `comeback detach orders --profile ops`";
    assert_eq!(it.detach(&left()).unwrap().notes, [there]);
    assert!(attachment().attach(true).unwrap().agrees_with(&attachment().attach(false).unwrap()));
}

#[test]
fn a_move_keeps_the_settings_that_were_there_before_the_first_deployment() {
    let mut before = attachment();
    let own = InvokeSettings { retries: Some(1), ..InvokeSettings::default() };
    before.target.invoke_settings.insert(None, own);
    let first = attached(&before);
    let arriving = billing(first.target.clone());
    let plan = arriving.attach(true).unwrap();
    assert!(
        plan.notes[0].ends_with("When none is left there, run: comeback detach orders --profile ops"),
        "{:?}",
        plan.notes
    );
    let second = Attachment { elsewhere: BTreeMap::new(), ..all(&arriving, &plan) };
    assert!(second.is_attached() && second.target.tags.contains_key(kept::MOVED));
    assert_eq!(second.attach(false).unwrap().changes, [], "it is attached like any other");

    // The first deployment lets its last events go, and leaves what the second needs.
    let left_behind = after_move(first, second.target.clone());
    let ended = all(&left_behind, &left_behind.detach(&left()).unwrap());
    let later = Leaving { now: left().now.saturating_add(Duration::from_secs(3_600)), ..left() };
    let ended = all(&ended, &ended.detach(&later).unwrap());
    assert!(!ended.send_policy && !ended.deployment.allows(&ended.target.arn));
    let mut expected = second.target.clone();
    expected.tags.remove(kept::MOVED);
    assert_eq!(ended.target, expected);
    assert_eq!(ended.detach(&later).unwrap().changes, []);

    let second = Attachment { target: ended.target, ..second };
    let second = all(&second, &second.detach(&left()).unwrap());
    let second = all(&second, &second.detach(&later).unwrap());
    assert_eq!(second.target, before.target, "as it was before either");
}

#[test]
fn a_role_that_others_need_does_not_keep_detach_from_ending() {
    let shared = Leaving { sharing: vec!["invoices".into()], ..left() };
    let before = attached(&attachment());
    let before = all(&before, &before.detach(&shared).unwrap());
    let shared = Leaving { now: shared.now.saturating_add(Duration::from_secs(3_600)), ..shared };
    let plan = before.detach(&shared).unwrap();
    assert!(plan.notes.iter().any(|note| note.contains("keeps its permission to send")), "{:?}", plan.notes);
    let detached = all(&before, &plan);
    assert!(detached.send_policy);
    let again = detached.detach(&shared).unwrap();
    assert_eq!((again.changes, again.left), (vec![], None));
}

#[test]
fn what_a_deleted_function_left_is_cleared_away() {
    let before = attached(&attachment());
    let arn = before.deployment.arn_of(&"orders".parse().unwrap());
    let deleted = Attachment {
        target: gone(&arn),
        is_gone: true,
        may_send: Verdict::NotAllowed,
        send_policy: false,
        ..before
    };
    let plan = deleted.detach(&left()).unwrap();
    assert!(matches!(plan.changes[..], [Change::List(_, false)]), "{:?}", plan.changes);
    assert_eq!(plan.notes[0], "Lambda has no function orders");
    assert!(plan.notes[1].contains("comeback dead redrive --retarget ARN"), "{:?}", plan.notes);
    assert!(plan.notes[2].contains("if no other function uses that role: aws iam"), "{:?}", plan.notes);
    let again = all(&deleted, &plan).detach(&left()).unwrap();
    let expected =
        AttachPlan { changes: vec![], notes: vec!["Lambda has no function orders".into()], ..again.clone() };
    assert_eq!((&again, again.left.is_none()), (&expected, true));
    assert!(again.is_about_nothing() && !plan.is_about_nothing(), "a typo is told from it");
    assert!(matches!(deleted.attach(false), Err(Failure::CouldNot(_))));
}

#[test]
fn a_deleted_alias_is_detached_and_never_attached() {
    let mut before = attachment();
    before.target.qualifier = Some("live".into());
    let own = InvokeSettings { retries: Some(1), ..InvokeSettings::default() };
    before.target.invoke_settings.insert(Some("live".into()), own);
    let mut deleted = attached(&before);
    deleted.target.is_qualifier_gone = true;
    let plan = deleted.detach(&left()).unwrap();
    assert_eq!(plan.notes, ["Lambda has no alias or version orders:live"]);
    assert!(plan.changes.contains(&Change::Settings(InvokeSettings::default())), "{:?}", plan.changes);
    let later = Leaving { now: left().now.saturating_add(Duration::from_secs(3_600)), ..left() };
    let ended = all(&deleted, &plan);
    let ended = all(&ended, &ended.detach(&later).unwrap());
    assert!(
        ended.target.tags.is_empty() && !ended.send_policy && !ended.deployment.allows(&ended.target.arn)
    );
    assert!(matches!(deleted.attach(false), Err(Failure::CouldNot(_))));
}

#[test]
fn a_handler_that_was_changed_by_hand_is_said() {
    let mut it = attachment();
    let arn = it.target.arn.clone();
    set_list(&mut it.deployment, arn.clone());
    let deleted = Attachment { is_gone: true, ..it };
    let note = format!("the handler still allows {arn}, but parameter TargetFunctions of stack comeback");
    let notes = deleted.detach(&left()).unwrap().notes;
    assert!(notes.iter().any(|it| it.starts_with(&note)), "{notes:?}");
}
