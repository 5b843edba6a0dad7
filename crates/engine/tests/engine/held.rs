//! Tests of reading the pauses, of holding messages, and of keeping messages while the pauses are unknown.

use comeback_engine::{
    BatchReport, CallFailure, Environment, HideUpTo, Outcome, PausesRead, Policies, Policy, Record,
    Timestamp, What,
};

use crate::account::{Call, World, failure};
use crate::support::*;

fn open(target: &str) -> String {
    format!(
        r#"{{"v":1,"pauses":[{{"target":"{target}","from":{},"until":null,"spread":60}}]}}"#,
        T0.as_secs()
    )
}

/// Returns a [`World`] whose reads of the pauses return these results in turn; the last result repeats.
fn reading<'w>(answers: Vec<Result<Option<String>, CallFailure>>) -> World<'w> {
    let next = std::cell::Cell::new(0);
    let answer = move || answers[next.replace(next.get() + 1).min(answers.len() - 1)].clone();
    World { read_pauses: Box::new(answer), ..World::default() }
}

fn new_environment(policy: &Policy) -> Environment {
    Environment::new(Policies::from(policy.clone())).reading_pauses()
}

fn handle<'w>(world: &'w World<'_>, records: &[Record], policy: &Policy, now: Timestamp) -> BatchReport<'w> {
    world.handle_in(&mut new_environment(policy), records, now, usize::MAX)
}

fn step(outcome: &Outcome<'_>) -> &'static str {
    outcome.step().expect("it was decided")
}

#[test]
fn a_batch_reads_pauses_before_it_decides() {
    let world = reading(vec![Ok(Some(open(ORDERS)))]);
    let records = due(3);
    let report = handle(&world, &records, &policy(|_| ()), NOW);
    let hidden = (0..3).map(|n| (format!("h-{n}"), 1_344)).collect();
    assert_eq!(*world.calls.borrow(), [Call::ReadPauses, Call::Hide(hidden)]);
    assert_eq!(kept(&report), ids(0..3));
    assert!(matches!(&report.pauses, Some(PausesRead::Known { long, .. }) if long.is_empty()));
    for outcome in &report.outcomes {
        assert_eq!((step(outcome), outcome.retry()), ("hold", Some(1)));
        assert_eq!(outcome.due(), Some(after(FIRST_RECEIVE, 1_000)), "when it was due");
        assert_eq!(outcome.visibility_timeout().map(|hidden| hidden.as_secs()), Some(1_344));
        assert_eq!((outcome.problem(), outcome.settled()), (None, false));
    }
}

#[test]
fn a_new_environment_reads_and_counts_at_once() {
    let policy = policy(|settings| settings.hide_up_to = HideUpTo::UpTo(50_000));
    let (world, records) = (reading(vec![Ok(Some(open(ORDERS)))]), due(1));
    world.handle_in(&mut new_environment(&policy), &records, NOW, usize::MAX);
    assert_eq!(world.calls.borrow()[..2], [Call::ReadPauses, Call::Count]);
    assert_eq!(world.most_in_flight.get(), 2, "both under way together");
    assert!(world.invoked.borrow().is_empty(), "no re-invocation before the pauses are known");
}

#[test]
fn read_and_count_fail_independently() {
    let policy = policy(|settings| settings.hide_up_to = HideUpTo::UpTo(50_000));
    for (read, count) in [(false, true), (true, false), (false, false)] {
        let answer = if read { Ok(None) } else { Err(failure()) };
        let count_answer = move || count.then_some((0, NOW));
        let world = World { count: Box::new(count_answer), ..reading(vec![answer]) };
        let records = due(1);
        let report = world.handle_in(&mut new_environment(&policy), &records, NOW, usize::MAX);
        assert_eq!(matches!(report.pauses, Some(PausesRead::Known { .. })), read);
        assert_eq!(report.count_failure.is_none(), count);
        assert_eq!(world.invoked.borrow().len(), usize::from(read));
        assert_eq!(report.moves.made == 1, !read && !count, "kept without pauses, and moved without room");
    }
}

#[test]
fn an_environment_reads_again_after_its_interval() {
    let reads =
        |world: &World<'_>| world.calls.borrow().iter().filter(|call| **call == Call::ReadPauses).count();
    let world = reading(vec![Ok(None), Ok(Some(open("*")))]);
    let mut environment = new_environment(&policy(|_| ()));
    assert!(world.handle_in(&mut environment, &[], NOW, usize::MAX).pauses.is_none());
    let records = due(1);
    for (millis, expected) in [(0, 1), (29_999, 1), (37_500, 2), (67_499, 2), (75_000, 3)] {
        world.handle_in(&mut environment, &records, after(NOW, millis), usize::MAX);
        assert_eq!(reads(&world), expected, "after {millis} ms");
    }
    assert_eq!(world.invoked.borrow().len(), 2, "until it saw the pause");
}

#[test]
fn messages_are_kept_while_pauses_are_unknown() {
    let policy = policy(|settings| (settings.max_retries, settings.max_age) = (3, 3_600));
    let too_old = Timestamp::from_secs(T0.as_secs() + 3_601);
    for (message, now, expected) in [
        (received_again(body("7")), NOW, "keep"),
        (received_again(body("7")), too_old, "keep"),
        (record(body("7")), FIRST_RECEIVE, "defer"),
        (received_again(body(&enveloped(3, "7"))), NOW, "dead_letter"),
        (received_again("garbage"), NOW, "dead_letter"),
        (received_again(body("7")), after(SENT, (13 * 24 + 12) * 3_600_000 + 1), "dead_letter"),
    ] {
        let world = reading(vec![Err(failure())]);
        let report = handle(&world, std::slice::from_ref(&message), &policy, now);
        assert_eq!(step(&report.outcomes[0]), expected, "{message:?}");
        assert!(matches!(report.pauses, Some(PausesRead::Unknown(_))));
        assert!(world.invoked.borrow().is_empty());
        if expected == "keep" {
            let hidden = report.outcomes[0].visibility_timeout().expect("it is hidden").as_secs();
            assert!((1..=8).contains(&hidden), "as after a refused invoke on receive 2: {hidden} s");
            assert_eq!(report.outcomes[0].event.as_ref().map(|event| &*event.origin_request_id), Some("r-1"));
        }
    }
}

#[test]
fn a_read_that_panics_is_a_failure() {
    let world = World {
        read_pauses: Box::new(|| std::panic::resume_unwind(Box::new("planned"))),
        ..reading(vec![Ok(None)])
    };
    let records = due(1);
    let report = handle(&world, &records, &policy(|_| ()), NOW);
    assert!(matches!(report.pauses, Some(PausesRead::Unknown(_))));
    assert_eq!((kept(&report), world.invoked.borrow().len()), (ids(0..1), 0));
}

/// Without room for hidden messages, a held message is moved. Each copy records when the hold ends.
#[test]
fn held_messages_may_be_moved() {
    let moving: Policy = policy(|settings| settings.hide_up_to = HideUpTo::UpTo(0));
    let world = reading(vec![Ok(Some(open("*")))]);
    let records = due(1);
    let mut environment = new_environment(&moving);
    let report = world.handle_in(&mut environment, &records, NOW, usize::MAX);
    assert!(kept(&report).is_empty() && report.moves.made == 1);
    let What::Hold { not_before, .. } = report.outcomes[0].what else { panic!("it was not moved") };
    assert_eq!(not_before, Some(after(NOW, 1_344_000)));
    let copy = world.copies.borrow()[0].clone();
    assert_eq!(copy.delay, 672);
    let mut received: Record = copy.received(NOW);
    assert_eq!(received.moved.as_ref().unwrap().not_before, Some(after(NOW, 1_344_000)));
    let later = after(NOW, 672_000);
    received.first_receive = received.first_receive.min(later);
    let again = [received];
    let report = world.handle_in(&mut environment, &again, later, usize::MAX);
    assert_eq!((step(&report.outcomes[0]), world.copies.borrow()[1].delay), ("keep", 672));
}
