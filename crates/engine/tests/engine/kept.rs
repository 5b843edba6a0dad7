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

#[test]
fn a_thousand_receives_outlast_the_retention() {
    let received = |receive_count| Record { receive_count, ..record(body("7")) };
    let total: u64 = (1..=1_000).map(|receive_count| hidden(received(receive_count))).sum();
    assert!(total > 14 * 86_400, "{total} s");
}
