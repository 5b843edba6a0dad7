//! Tests for moving waiting messages, that is, sending them again with a delay.

use std::time::Duration;

use comeback_engine::{
    Attribute, Environment, HideUpTo, Jitter, Move, Policies, Policy, Record, Settings, Timestamp,
};
use proptest::prelude::*;

use crate::account::{Batch, Call, Copy, Invoke, World, with_room};
use crate::support::*;

/// A policy under which every waiting message is moved.
fn moving() -> Policy {
    policy(|settings| settings.hide_up_to = HideUpTo::UpTo(0))
}

/// A message that waits 2,048 s for its 12th retry, which takes three moves.
fn long_wait() -> Record {
    Record { trace_header: Some("Root=1".into()), ..record(body(&enveloped(11, "7"))) }
}

fn only_copy(world: &World<'_>) -> Copy {
    let copies = world.copies.borrow();
    let [copy] = copies.as_slice() else { panic!("{copies:?}") };
    copy.clone()
}

#[test]
fn without_room_a_deferral_is_sent_again_and_settled() {
    let (world, record) = (World::default(), long_wait());
    let report = world.handle(std::slice::from_ref(&record), &moving(), NOW);
    let attribute =
        r#"{"message_id":"m-1","sent":1789400814200,"first_receive":1789400815000,"receives":1,"moves":1}"#;
    let expected = Copy {
        message_id: "m-1".into(),
        body: record.body.clone(),
        attribute: attribute.into(),
        delay: 683,
        trace_header: Some("Root=1".into()),
        attributes: Vec::new(),
    };
    let calls = world.calls.borrow();
    let [Call::Hide(guard), Call::SendAgain(copies)] = calls.as_slice() else { panic!("{calls:?}") };
    assert!(guard[0].0 == "h-1" && (3_660..=7_260).contains(&guard[0].1), "{guard:?}");
    assert_eq!(*copies, [expected]);
    let outcome = &report.outcomes[0];
    assert!(outcome.settled() && kept(&report).is_empty());
    assert_eq!(outcome.delay(), Some(Duration::from_secs(683)));
    assert_eq!((outcome.visibility_timeout(), outcome.problem()), (None, None));
    assert_eq!(outcome.step(), Some("defer"));
    assert_eq!((report.moves.made, report.moves.failed), (1, 0));
}

/// A copy keeps the sender's attributes, because a dead-letter repeats them if the message cannot be parsed. A copy
/// has at most ten attributes, and one of them is the handler's own.
#[test]
fn a_copy_keeps_up_to_ten_attributes() {
    let own =
        |name: &'static str| Attribute { name: name.into(), data_type: "Number".into(), value: "7".into() };
    let names = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];
    let (world, plain) = (World::default(), long_wait());
    let record = Record { attributes: names.map(own).into(), ..plain.clone() };
    world.handle(std::slice::from_ref(&record), &moving(), NOW);
    let Call::SendAgain(copies) = &world.calls.borrow()[1] else { panic!("it is not moved") };
    assert_eq!(copies[0].attributes, names[..9].iter().map(|name| own(name)).collect::<Vec<_>>());
    let copy = |record| Move { record, attribute: "{}".into(), delay: Duration::from_secs(1) }.size();
    assert_eq!(copy(&record) - copy(&plain), 9 * ("A".len() + "Number".len() + "7".len()));
}

#[test]
fn the_order_is_hide_reinvoke_dead_letter_hide_move_count() {
    let policy = policy(|settings| settings.hide_up_to = HideUpTo::UpTo(1_000));
    let mut environment = with_room(&policy, 3);
    let mut records = first_receives(2);
    records.extend(due(5).split_off(2));
    records.extend(garbage(6).split_off(5));
    let world = World { invoke: Box::new(|| Invoke::Later), ..World::default() };
    // The batch comes a minute later, so the environment may count again.
    let report = world.handle_in(&mut environment, &records, after(NOW, 60_000), usize::MAX);
    let calls = world.calls.borrow();
    let names: Vec<&str> = calls
        .iter()
        .map(|call| match call {
            Call::Hide(_) => "hide",
            Call::Invoke(..) => "invoke",
            Call::Send(_) => "dead-letter",
            Call::SendAgain(_) => "move",
            Call::Count => "count",
            Call::ReadPauses => "read",
        })
        .collect();
    assert_eq!(names, ["hide", "invoke", "invoke", "invoke", "dead-letter", "hide", "move", "count"]);
    assert_eq!(kept(&report).len(), 3, "as many as there was room for: {:?}", kept(&report));
    assert_eq!(report.moves.made, 2);
    assert_eq!(world.copies.borrow().len(), 2);
}

#[test]
fn without_room_the_cheapest_are_moved() {
    let policy = policy(|settings| settings.hide_up_to = HideUpTo::UpTo(1_000));
    let wait = |attempt, payload: &str| body(&enveloped(attempt, payload));
    let long = format!("\"{}\"", "x".repeat(4_000));
    let bodies = [
        wait(11, "1"),  // 3 moves
        wait(1, &long), // 1 move of over 4,000 bytes, which costs more than three of 500
        wait(1, "2"),   // 1 move
        wait(15, "3"),  // 37 moves
        wait(8, "4"),   // 1 move
    ];
    let records = numbered(5, 1, |n| bodies[n].clone());
    let world = World::default();
    let report = world.handle_in(&mut with_room(&policy, 2), &records, NOW, usize::MAX);
    let moved: Vec<String> = world.copies.borrow().iter().map(|copy| copy.message_id.clone()).collect();
    assert_eq!(moved, ["m-0", "m-2", "m-4"]);
    assert_eq!(kept(&report), ["m-1", "m-3"]);
}

#[test]
fn a_message_too_large_for_the_attribute_is_hidden() {
    let small = World::default();
    small.handle(&[record(body("\"\""))], &moving(), NOW);
    let Copy { body: small, attribute, .. } = only_copy(&small);
    let room = 1_048_576 - small.len() - "ComebackString".len() - attribute.len();
    for (bytes, moves) in [(room, 1), (room + 1, 0)] {
        let world = World::default();
        let records = [record(body(&format!("\"{}\"", "x".repeat(bytes))))];
        let report = world.handle(&records, &moving(), NOW);
        assert_eq!((report.moves.made, kept(&report).len()), (moves, 1 - moves), "{bytes}");
        assert_eq!(matches!(world.calls.borrow().as_slice(), [Call::Hide(_)]), moves == 0, "{bytes}");
    }
}

#[test]
fn a_message_that_could_not_be_sent_is_hidden() {
    for plan in [Batch::Fails, Batch::Panics, Batch::PanicsBeforeItsFuture, Batch::AnswersOnly(0)] {
        let world = World { send_again: Box::new(move || plan), ..World::default() };
        let records = first_receives(3);
        let report = world.handle(&records, &moving(), NOW);
        let calls = world.calls.borrow();
        let [Call::Hide(_), Call::SendAgain(_), Call::Hide(anew)] = calls.as_slice() else {
            panic!("{calls:?}")
        };
        let own = anew.iter().all(|(_, secs)| *secs == 1);
        assert_eq!(own, plan == Batch::Fails, "refused, each has its own wait: {plan:?}, {anew:?}");
        assert_eq!((kept(&report).len(), report.moves.made, report.moves.failed), (3, 0, 3), "{plan:?}");
        assert!(report.moves.problem.is_some(), "{plan:?}");
        assert!(report.outcomes.iter().all(|outcome| outcome.problem().is_none()), "{plan:?}");
    }
}

#[test]
fn a_new_environment_counts_before_it_hides() {
    let policy = policy(|settings| settings.hide_up_to = HideUpTo::UpTo(1_000));
    let world = World { count: Box::new(|| Some((960, NOW))), ..World::default() };
    let records = first_receives(5);
    let report =
        world.handle_in(&mut Environment::new(Policies::from(policy.clone())), &records, NOW, usize::MAX);
    assert!(matches!(world.calls.borrow().as_slice(), [Call::Count, Call::Hide(_), Call::SendAgain(_)]));
    assert_eq!((kept(&report).len(), report.moves.made), (2, 3), "(1,000 - 960) / 20");
}

#[test]
fn without_targets_a_copy_is_dead_lettered_by_its_first_sending() {
    let policy = policy(|settings| {
        settings.hide_up_to = HideUpTo::UpTo(0);
        settings.target_functions.clear();
    });
    let day = 86_400_000;
    let world = World::default();
    world.handle(&[record(body("7"))], &policy, NOW);
    let copy = only_copy(&world);
    for (days, step) in [(13, "keep"), (14, "dead_letter")] {
        let world = World::default();
        let copy = copy.received(after(SENT, days * day));
        let report = world.handle(std::slice::from_ref(&copy), &policy, after(SENT, days * day));
        assert_eq!(report.outcomes[0].step(), Some(step), "{days} days");
    }
}

#[test]
fn an_unanswered_move_is_hidden_for_an_hour_at_least() {
    for (wait, expected) in [(1, 3_660..=7_260), (20_000, 20_000..=20_000)] {
        let policy = policy(|settings| {
            (settings.hide_up_to, settings.jitter) = (HideUpTo::UpTo(0), Jitter::None);
            settings.base_backoff = wait;
        });
        let world = World { send_again: Box::new(|| Batch::AnswerLost), ..World::default() };
        let record = record(body("7"));
        let report = world.handle(std::slice::from_ref(&record), &policy, NOW);
        let calls = world.calls.borrow();
        let [Call::Hide(guard), Call::SendAgain(_), Call::Hide(hidden)] = calls.as_slice() else {
            panic!("{calls:?}")
        };
        assert!(expected.contains(&hidden[0].1) && hidden == guard, "{guard:?} {hidden:?}");
        let outcome = &report.outcomes[0];
        assert_eq!(outcome.visibility_timeout(), Some(Duration::from_secs(hidden[0].1)));
        assert!(!outcome.settled());
        let problem = report.moves.problem.as_ref().expect("it says why");
        assert!(
            problem.remedy.as_ref().is_some_and(|remedy| remedy.contains("one to two hours")),
            "{problem:?}"
        );
    }
}

/// An unanswered `Invoke` is not repeated for an hour, even if its message is moved several times.
#[test]
fn a_copy_carries_the_wait_after_a_failed_step() {
    let policy = moving();
    let record = received_again(body("7"));
    let world = World { invoke: Box::new(|| Invoke::AnswerLost), ..World::default() };
    let report = world.handle(std::slice::from_ref(&record), &policy, NOW);
    assert!(report.outcomes[0].problem().is_some() && report.outcomes[0].settled());
    let mut copy = only_copy(&world);
    let mut now = NOW;
    let mut hops = 0;
    loop {
        now = after(now, copy.delay * 1_000 + 100);
        let copied = copy.received(now);
        let world = World::default();
        let report = world.handle(std::slice::from_ref(&copied), &policy, now);
        hops += 1;
        if !world.invoked.borrow().is_empty() {
            break;
        }
        assert_eq!(report.outcomes[0].step(), Some("keep"));
        copy = only_copy(&world);
    }
    let waited = now.since(NOW).as_secs();
    assert!((3_600..=7_225).contains(&waited), "{waited} s");
    assert_eq!(hops, waited.div_ceil(900), "{waited} s");
}

#[test]
fn times_count_from_the_original_except_retention() {
    let day = 86_400_000;
    let policy = policy(|settings| settings.max_age = 14 * 86_400);
    // One record has its own timestamp, and the other has none. Both were moved for two days.
    let untimed = replaced(&body("7"), r#""timestamp":"2026-09-14T15:46:54.145Z","#, "");
    let attribute = |receives: u32| {
        format!(
            r#"{{"message_id":"m-0","sent":{},"first_receive":{},"receives":{receives},"moves":1}}"#,
            SENT.as_millis(),
            FIRST_RECEIVE.as_millis()
        )
    };
    for text in [untimed, body("7")] {
        let mut copy =
            Record { sent: after(SENT, 2 * day), first_receive: after(SENT, 2 * day), ..record(text) };
        copy.restore(&attribute(1)).unwrap();
        let now = after(SENT, 2 * day);
        let world = World::default();
        world.handle(std::slice::from_ref(&copy), &policy, now);
        let invoked = world.invoked.borrow();
        let t0 = format!(r#""initial_timestamp":{}"#, T0.as_secs());
        assert!(invoked[0].contains(r#""attempt":1"#) && invoked[0].contains(&t0), "{invoked:?}");
    }
    // The copy was sent only 18 hours ago, so SQS will keep it for 13 more days.
    let old = Record { sent: after(SENT, 13 * day), ..record(body(&enveloped(3, "7"))) };
    let mut copy = Record { first_receive: after(SENT, 13 * day), ..old };
    copy.restore(&attribute(1)).unwrap();
    assert_eq!(decided(&copy, &policy, after(SENT, 13 * day + day * 3 / 4)), Seen::Reinvoke(4));
}

proptest! {
    #[test]
    fn a_copy_is_due_when_its_message_was(
        attempt in 1..30u64,
        jitter in prop::sample::select(comeback_engine::Jitter::ALL.to_vec()),
        id in "[a-z0-9-]{1,36}",
        counts in prop::collection::vec(0..2_000_000u64, 1..20),
    ) {
        let settings = Settings { jitter, hide_up_to: HideUpTo::UpTo(0), max_age: 1_209_600, ..settings() };
        let policy = Policy::new(settings).unwrap();
        let mut message = Record { message_id: id, ..received_again(body(&enveloped(attempt, "7"))) };
        let due = decide(&message, &policy, FIRST_RECEIVE).due().unwrap();
        let mut now = FIRST_RECEIVE;
        for later in counts {
            let world = World::default();
            let report = world.handle(std::slice::from_ref(&message), &policy, now);
            let Some(hop) = report.outcomes[0].delay() else {
                prop_assert!(after(now, 500) > due);
                break;
            };
            prop_assert_eq!(report.outcomes[0].due(), Some(due));
            prop_assert!(now.saturating_add(hop) <= after(due, 1_000), "{} s from {}", hop.as_secs(), now);
            let copy = only_copy(&world);
            prop_assert_eq!(&copy.body, &message.body);
            now = now.saturating_add(hop.max(Duration::from_millis(later)));
            message = copy.received(now);
            let moment: Timestamp = message.sent;
            prop_assert_eq!(moment, now);
            prop_assert_eq!(message.receive_count, 3, "hops that only wait are not receives");
        }
    }
}
