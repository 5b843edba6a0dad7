use comeback_engine::{Policy, Record, Step};

use crate::fakes::{Batch, Call, World};
use crate::support::*;

/// Of a handler to which nothing is attached yet.
fn nothing_attached() -> Policy {
    policy(|settings| settings.target_functions.clear())
}

/// For how long one message is hidden.
fn hidden(record: Record) -> u64 {
    let world = World::default();
    let report = world.handle(std::slice::from_ref(&record), &nothing_attached(), NOW);
    report.outcomes[0].visibility_timeout().expect("it was hidden").as_secs()
}

#[test]
fn every_message_is_kept_and_hidden_in_one_call_whatever_it_holds() {
    let mut records = [garbage(1), due(1), first_receives(1)].concat();
    for (n, record) in records.iter_mut().enumerate() {
        (record.message_id, record.receipt_handle) = (format!("m-{n}"), format!("h-{n}"));
    }
    let world = World::default();
    let report = world.handle(&records, &nothing_attached(), NOW);
    assert_eq!(kept(&report), ids(0..3));
    let hidden: Vec<_> = (0..3).map(|n| (format!("h-{n}"), hidden(records[n].clone()))).collect();
    assert_eq!(*world.calls.borrow(), [Call::Hide(hidden)]);
    for outcome in &report.outcomes {
        assert_eq!(outcome.step.as_ref().map(Step::name), Some("keep"));
        assert_eq!((&outcome.retry, &outcome.problem, outcome.due()), (&None, &None, None));
    }
}

#[test]
fn a_message_is_kept_even_if_it_could_not_be_hidden() {
    for hide in [Batch::Fails, Batch::Panics, Batch::AnswersOnly(0)] {
        let world = World { hide: Box::new(move || hide), ..World::default() };
        let records = first_receives(2);
        let report = world.handle(&records, &nothing_attached(), NOW);
        assert_eq!(kept(&report), ids(0..2), "{hide:?}");
        assert!(report.outcomes.iter().all(|outcome| outcome.problem.is_some()), "{hide:?}");
    }
}

/// The dead-letter queue needs no target, and SQS would delete the message soon.
#[test]
fn a_message_is_dead_lettered_before_its_retention_ends() {
    let world = World::default();
    let limit = after(SENT, (13 * 24 + 12) * 3_600_000);
    for record in [record(body("7")), record("garbage")] {
        let records = [record];
        assert_eq!(kept(&world.handle(&records, &nothing_attached(), limit)), ["m-1"]);
        let report = world.handle(&records, &nothing_attached(), after(limit, 1));
        assert!(kept(&report).is_empty());
        assert_eq!(report.outcomes[0].reason().map(|reason| reason.code.name()), Some("max_age"));
    }
    let sent = world.sent.borrow();
    assert!(sent[0].body.contains(r#""payload":7"#) && sent[1].body == "garbage", "{sent:?}");
}

#[test]
fn a_thousand_receives_outlast_the_retention() {
    let received = |receive_count| Record { receive_count, ..record(body("7")) };
    let total: u64 = (1..=1_000).map(|receive_count| hidden(received(receive_count))).sum();
    assert!(total > 14 * 86_400, "{total} s");
}
