use comeback_engine::Record;

use crate::fakes::{Invoke, World, failure};
use crate::support::*;

fn a_mixed_batch() -> Vec<Record> {
    let mut records = [first_receives(3), due(3), garbage(3)].concat();
    for (n, record) in records.iter_mut().enumerate() {
        record.message_id = format!("m-{n}");
    }
    records
}

#[test]
fn past_the_deadline_nothing_is_called_and_all_is_kept() {
    let world = World::default();
    let records = a_mixed_batch();
    let report = world.handle_until(&records, &policy(|_| ()), NOW, 0);
    assert!(world.calls.borrow().is_empty());
    assert_eq!(kept(&report), ids(0..9));
    for outcome in &report.outcomes {
        assert_eq!(problem(outcome), "not started: too close to the function's deadline");
    }
}

#[test]
fn a_deadline_in_the_middle_lets_no_further_call_start() {
    // Whole, the batch costs one visibility call, three invokes and one call of dead-letters.
    for (calls, settled) in [(1, 0), (2, 1), (3, 2), (4, 3), (5, 6)] {
        let world = World::default();
        let records = a_mixed_batch();
        let report = world.handle_until(&records, &policy(|_| ()), NOW, calls);
        assert_eq!(world.calls.borrow().len(), calls);
        assert_eq!(kept(&report).len(), 9 - settled, "after {calls} calls");
        assert_eq!(world.invoked.borrow().len() + world.sent.borrow().len(), settled);
    }
}

#[test]
fn what_failed_just_before_the_deadline_is_kept_though_it_cannot_be_hidden() {
    let world = World { invoke: Box::new(|| Invoke::Later), ..World::default() };
    let records = due(1);
    let report = world.handle_until(&records, &policy(|_| ()), NOW, 1);
    assert_eq!((kept(&report), report.outcomes[0].hidden_for), (ids(0..1), None));
    assert_eq!(report.outcomes[0].problem, Some(failure()));
}

#[test]
fn the_queues_are_given_the_deadline_of_the_batch() {
    // One visibility call, three invokes, one call of dead-letters.
    for (calls, passed) in
        [(1, vec![true]), (2, vec![false]), (5, vec![false, true]), (6, vec![false, false])]
    {
        let world = World::default();
        world.handle_until(&a_mixed_batch(), &policy(|_| ()), NOW, calls);
        assert_eq!(*world.passed.borrow(), passed, "after {calls} calls");
    }
}
