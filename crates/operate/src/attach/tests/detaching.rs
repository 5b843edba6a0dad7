//! A function is detached.

use std::time::Duration;

use super::{ARN, all, attachment, left};
use crate::InvokeSettings;
use crate::attach::facts::{Attachment, Place};
use crate::attach::kept;
use crate::attach::leaving::{Leaving, Log};
use crate::attach::plan::AttachPlan;
use crate::status::Depth;

#[test]
fn events_that_wait_keep_the_allow_list_unless_they_may_be_given_up() {
    let mut detached = all(&attachment(), &attachment().attach().unwrap());
    detached = all(&detached, &detached.detach(&left()).unwrap());
    let later = Leaving { now: left().now.saturating_add(Duration::from_secs(600)), ..left() };
    let waiting =
        Leaving { queue: Depth { in_flight: 3, ..Depth::default() }, log: Log::Unread, ..later.clone() };
    let (changes, left) = waiting.detach_of(&detached);
    assert!(
        changes == 0
            && left.is_some_and(|left| left.ends_with("may still wait: the handler's log was not read"))
    );
    let at_once = Leaving { at_once: true, ..waiting };
    let plan = detached.detach(&at_once).unwrap();
    assert_eq!(all(&detached, &plan), attachment());
    assert_eq!(
        plan.notes,
        ["events of orders that still wait go to the dead-letter queue as target_not_allowed"]
    );
    assert_eq!(plan.left, None);
}

impl Leaving {
    fn detach_of(&self, attachment: &Attachment) -> (usize, Option<String>) {
        let plan = attachment.detach(self).unwrap();
        (plan.changes.len(), plan.left)
    }
}

#[test]
fn a_role_that_others_share_keeps_its_permission() {
    let mut detached = all(&attachment(), &attachment().attach().unwrap());
    let leaving = Leaving { at_once: true, sharing: vec!["invoices".into()], ..left() };
    let plan = detached.detach(&leaving).unwrap();
    assert!(plan.notes.iter().any(|note| {
        note.contains("role orders-role keeps its permission to send, for these functions: invoices")
    }));
    detached = all(&detached, &plan);
    assert!(detached.send_policy && !detached.handler.allows(ARN));
}

#[test]
fn what_was_never_attached_is_not_detached() {
    assert_eq!(attachment().detach(&left()).unwrap(), AttachPlan::default());
    // A pattern is not the function's own.
    let pattern = format!("{ARN}*");
    let mut allowed = attachment();
    allowed.handler.allow_list.clone_from(&pattern);
    allowed.handler.place = Place::Parameter { stack: "comeback".into(), value: pattern };
    assert_eq!(allowed.detach(&left()).unwrap(), AttachPlan::default());
}

#[test]
fn what_was_attached_by_hand_gets_lambdas_defaults() {
    let mut by_hand = all(&attachment(), &attachment().attach().unwrap());
    by_hand.target.tags.clear();
    let plan = by_hand.detach(&left()).unwrap();
    assert_eq!(plan.notes.len(), 1);
    let detached = all(&by_hand, &plan);
    assert_eq!(detached.target.settings(), InvokeSettings::default());
    assert!(detached.target.tags.contains_key(kept::DETACHED));
}

#[test]
fn what_is_under_way_may_still_send_even_if_what_waits_is_given_up() {
    let attached = all(&attachment(), &attachment().attach().unwrap());
    let at_once = Leaving { at_once: true, ..left() };
    let plan = attached.detach(&at_once).unwrap();
    let until = left().now.saturating_add(Duration::from_secs(3 + 120));
    let kept = format!(
        "role orders-role keeps its permission to send until {until}, for invocations that are under way"
    );
    assert_eq!(plan.left.as_ref(), Some(&kept));
    let detached = all(&attached, &plan);
    assert!(detached.send_policy && !detached.is_attached(None) && !detached.handler.allows(ARN));
    assert_eq!(at_once.detach_of(&detached), (0, Some(kept)), "too early");
    let last = detached.detach(&Leaving { now: until, ..at_once }).unwrap();
    assert_eq!((&last.left, all(&detached, &last)), (&None, attachment()));
}

#[test]
fn a_plan_agrees_with_a_later_one_that_does_the_same() {
    let attached = all(&attachment(), &attachment().attach().unwrap());
    let first = attached.detach(&left()).unwrap();
    let later = Leaving { now: left().now.saturating_add(Duration::from_secs(60)), ..left() };
    assert!(first.agrees_with(&attached.detach(&later).unwrap()));
    let other = Attachment { send_policy: false, ..attachment() };
    assert!(!first.agrees_with(&other.detach(&later).unwrap()));
    assert!(!first.agrees_with(&attached.detach(&Leaving { at_once: true, ..left() }).unwrap()));
}
