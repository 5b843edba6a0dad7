//! Whatever is there, and wherever a run is killed.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::{ARN, OTHER, QUEUE, TOPIC, all, allowed, attachment, left, perform};
use crate::attach::allow_list;
use crate::attach::facts::{Attachment, Place};
use crate::attach::leaving::Leaving;
use crate::attach::losses::Losses;
use crate::attach::plan::AttachPlan;
use crate::{InvokeSettings, Target};

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
        (watched, watched_by_others) in any::<(bool, bool)>(),
        tell in proptest::option::of(prop_oneof![Just(BTreeSet::new()), Just(BTreeSet::from([TOPIC.to_owned()]))]),
        list in prop_oneof![Just(""), Just(OTHER), Just("arn:aws:lambda:eu-west-1:123456789012:function:or*")],
    ) -> Attachment {
        let mut it = attachment();
        it.target = Target { qualifier, invoke_settings: settings, recursion_allowed, ..it.target };
        it.target.invoke_settings.retain(|_, settings| *settings != InvokeSettings::default());
        it.losses = Losses { ours: watched, others: watched_by_others, tell, ..it.losses };
        it.send_policy = send_policy;
        it.may_send = allowed(sends || send_policy);
        let list = if listed { allow_list::with(list, ARN) } else { list.to_owned() };
        let handler = &mut it.handler;
        handler.allow_list = list.clone();
        handler.may_invoke = allowed(if in_stack { handler.allows(ARN) } else { invokes });
        handler.invoke_policy = !in_stack && invokes;
        handler.place = if in_stack {
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
    it.losses.ours = false;
    it.handler.invoke_policy = false;
    it.handler.allow_list = allow_list::without(&it.handler.allow_list, ARN);
    it.handler.may_invoke = allowed(false);
    if let Place::Parameter { value, .. } = &mut it.handler.place {
        value.clone_from(&it.handler.allow_list);
        it.handler.may_invoke = allowed(it.handler.allows(ARN));
    }
    it
}

proptest! {
    #[test]
    fn attaching_is_done_once_wherever_it_was_killed(before in any_attachment(), killed in 0_usize..8) {
        let plan = before.attach().unwrap();
        let after = all(&before, &plan);
        prop_assert_eq!(after.attach().unwrap().changes, []);
        prop_assert!(after.is_attached(after.target.qualifier.as_deref()) && after.may_send.is_allowed());
        prop_assert!(after.handler.allows(ARN) && after.handler.may_invoke.is_allowed());
        let halfway = perform(&before, &plan, killed);
        prop_assert_eq!(all(&halfway, &halfway.attach().unwrap()), after);
    }

    #[test]
    fn a_failure_reaches_the_queue_only_once_it_can_be_retried(before in any_attachment(), killed in 0_usize..8) {
        let named = before.target.qualifier.clone();
        prop_assume!(!before.is_attached(named.as_deref()));
        let halfway = perform(&before, &before.attach().unwrap(), killed);
        if halfway.is_attached(named.as_deref()) {
            prop_assert!(halfway.may_send.is_allowed() && halfway.handler.allows(ARN));
            prop_assert!(halfway.handler.may_invoke.is_allowed() && halfway.target.recursion_allowed);
        }
    }

    #[test]
    fn detaching_brings_back_what_was_there_wherever_it_was_killed(
        before in any_attachment().prop_map(never_attached), killed in 0_usize..8, killed_again in 0_usize..8,
    ) {
        let attached = all(&before, &before.attach().unwrap());
        let first = attached.detach(&left()).unwrap();
        let halfway = perform(&attached, &first, killed);
        let mut detached = all(&halfway, &halfway.detach(&left()).unwrap());
        prop_assert!(!detached.is_attached(detached.target.qualifier.as_deref()));
        prop_assert!(detached.handler.allows(ARN), "what waits can still be retried");
        // Some time later everything has left.
        let mut later = left();
        later.now = later.now.saturating_add(Duration::from_secs(3_600));
        let last = detached.detach(&later).unwrap();
        prop_assert_eq!(&last.left, &None);
        detached = perform(&detached, &last, killed_again);
        detached = all(&detached, &detached.detach(&later).unwrap());
        prop_assert_eq!(&detached.detach(&later).unwrap(), &AttachPlan::default());
        prop_assert_eq!(detached, before);
    }

    #[test]
    fn another_qualifier_keeps_what_it_needs(before in any_attachment(), at_once in any::<bool>()) {
        let attached = all(&before, &before.attach().unwrap());
        let mut other = attached.clone();
        other.target.qualifier = Some("9".into());
        let both = all(&other, &other.attach().unwrap());
        let one = all(&both, &both.detach(&Leaving { at_once, ..left() }).unwrap());
        prop_assert!(!one.is_attached(Some("9")) && one.is_attached(before.target.qualifier.as_deref()));
        prop_assert!(one.may_send.is_allowed() && one.handler.may_invoke.is_allowed());
        prop_assert!(one.handler.allows(ARN) && one.target.recursion_allowed);
        prop_assert_eq!(one.losses, attached.losses);
    }
}
