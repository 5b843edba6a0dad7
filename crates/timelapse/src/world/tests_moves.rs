//! Moves that no handler makes.

use comeback_engine::{BatchReport, Move, Moves, Outcome, Record, Step, Timestamp};

use super::*;

impl Fixture {
    /// Sends the message again, as the handler has it after a change.
    fn send_again(&mut self, delay: u64, change: impl FnOnce(&mut Record)) -> Vec<Answer> {
        let mut record = self.batch.records[0].clone();
        change(&mut record);
        let attribute = r#"{"message_id":"m-0","sent":0,"first_receive":0,"receives":1,"moves":1}"#.into();
        let copy = Move { record: &record, attribute, delay: Duration::from_secs(delay) };
        self.world.send_again_batch(&[&&copy]).expect("the call is answered")
    }

    fn broken_invariant(&self) -> Option<Invariant> {
        self.broken().map(|(invariant, _)| invariant)
    }
}

#[test]
fn a_move_that_ends_with_its_backoff_breaks_nothing() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.send_again(1, |_| {}), [Ok(())]);
    fixture.world.delete_settled(fixture.batch, &[false]);
    assert_eq!((&fixture.world.broken, fixture.world.moves), (&None, 1));
    assert_eq!((fixture.world.queue.len(), fixture.world.queue.delayed()), (1, 1));
}

#[test]
fn another_body_or_a_second_copy_or_too_long_a_delay() {
    for (delay, body, times, invariant) in [
        (1, "{}", 1, Invariant::PayloadVerbatim),
        (1, "", 2, Invariant::ExplainedDuplicates),
        // The backoff of the first retry has one second.
        (2, "", 1, Invariant::LongestWait),
    ] {
        let mut fixture = Fixture::new();
        for _ in 0..times {
            fixture.send_again(delay, |record| {
                if !body.is_empty() {
                    record.body = body.into();
                }
            });
        }
        assert_eq!(fixture.broken_invariant(), Some(invariant));
    }
}

#[test]
fn more_hops_than_a_wait_takes() {
    let mut fixture = Fixture::due();
    // After a failed call the wait is over an hour away at most, but not in steps of a second.
    fixture.world.handling_mut().mark(Position(0), Done::Tried);
    fixture.send_again(1, |_| {});
    assert_eq!(fixture.broken(), None);
    let mut world = fixture.world;
    world.delete_settled(fixture.batch, &[false]);
    let batch = next_batch(&mut world);
    let mut fixture = Fixture { world, batch };
    fixture.world.handling_mut().mark(Position(0), Done::Nothing);
    fixture.send_again(1, |_| {});
    let mut world = fixture.world;
    world.delete_settled(fixture.batch, &[false]);
    let batch = next_batch(&mut world);
    let mut fixture = Fixture { world, batch };
    fixture.send_again(1, |_| {});
    assert_eq!(fixture.broken_invariant(), Some(Invariant::FewestHops));
}

#[test]
fn a_copy_that_may_be_on_its_way_and_its_message_back_within_the_hour() {
    let mut fixture = Fixture::new();
    fixture.send_again(1, |_| {});
    fixture.world.handling_mut().mark_copied(Position(0));
    fixture.hide(3_600);
    assert_eq!(fixture.broken(), None);
    fixture.hide(3_599);
    assert_eq!(fixture.broken_invariant(), Some(Invariant::SpacedInvokes));
}

#[test]
fn a_hop_that_ends_after_its_due_time() {
    let hop = |late_ms: u64| {
        let mut fixture = Fixture::new();
        let due = fixture.batch.clock.saturating_add(Duration::from_millis(10_000 - late_ms));
        let message_id = fixture.batch.records[0].message_id.clone();
        let outcome = Outcome {
            message_id: &message_id,
            retry: None,
            step: Some(Step::Defer { due, visibility_timeout: Duration::from_secs(10) }),
            invoke_request_id: None,
            problem: None,
            hidden_for: None,
            moved: Some(Duration::from_secs(10)),
            is_copy: false,
            trace: None,
            is_first_receive: false,
        };
        let report = BatchReport {
            outcomes: vec![outcome],
            moves: Moves::default(),
            look_failure: None,
            pauses: None,
        };
        fixture.world.check_hops(&fixture.batch, &report);
        fixture.broken_invariant()
    };
    assert_eq!((hop(1_000), hop(1_001)), (None, Some(Invariant::HopsEndInTime)));
}

#[test]
fn a_message_that_expires_though_it_was_seen() {
    let expired = |hours: u64| {
        let mut fixture = Fixture::new();
        fixture.hide(1);
        let Fixture { mut world, batch } = fixture;
        let received = batch.messages[0].received;
        world.delete_settled(batch, &[true]);
        let end = world.now.saturating_add(Duration::from_secs(hours * 3_600));
        let tracked = world.queue.carried_mut(&received).expect("it is there");
        tracked.decided = Timestamp::from_millis(end.as_millis() - hours * 3_600_000);
        world.advance(end);
        world.queue.expire_now(&received);
        world.follow_up();
        world.broken.map(|broken| broken.invariant)
    };
    assert_eq!((expired(12), expired(11)), (None, Some(Invariant::NoneExpires)));
}
