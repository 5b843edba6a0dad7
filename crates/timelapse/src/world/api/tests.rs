//! Each invariant, broken by calls that no handler makes.

use std::time::Duration;

use comeback_engine::{Attribute, DeadLetter, Policy, Settings};

use super::*;
use crate::faults::{Faults, Strikes};
use crate::invariants::Invariant;
use crate::mapping::Batch;
use crate::payload;
use crate::scenario::{Scenario, TARGET_ARN, UNLISTED_ARN};

const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST";

/// One event that has failed, its message in the handler's hands.
struct Bench {
    world: World,
    batch: Batch,
}

impl Bench {
    fn new() -> Self {
        let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() };
        let policy = Policy::new(settings).expect("a valid policy");
        let scenario = Scenario { events: 1, arrival_spread: Duration::ZERO, ..Scenario::default() };
        let mut world = World::new(scenario, &policy);
        let batch = next_batch(&mut world);
        Self { world, batch }
    }

    /// The same at its second receive, its backoff served.
    fn due() -> Self {
        let mut bench = Self::new();
        bench.hide(1);
        let Self { mut world, batch } = bench;
        world.delete_settled(batch, &[true]);
        let batch = next_batch(&mut world);
        assert_eq!((batch.records[0].receive_count, &world.broken), (2, &None));
        Self { world, batch }
    }

    fn hide(&mut self, secs: u64) {
        let visibility_timeout = Duration::from_secs(secs);
        let receipt_handle = &self.batch.records[0].receipt_handle;
        let entry = VisibilityChange { receipt_handle, visibility_timeout };
        assert_eq!(self.world.change_visibility_batch(&[&&entry]), Ok(vec![Ok(())]));
    }

    /// An envelope as it should be, around any payload.
    fn envelope(&self, payload: &str) -> String {
        let first_failure = self.world.ledger.first_failure(0).as_secs();
        format!(
            r#"{{"_retry_metadata":{{"attempt":1,"initial_timestamp":{first_failure}}},"_original_payload":{payload}}}"#
        )
    }

    fn invoke(&mut self, function_arn: &str, payload: String) {
        assert_eq!(self.world.invoke(function_arn, payload), Ok(()));
    }

    fn dead_letter(&mut self, reason: &str, body: String) {
        let value = reason.to_owned();
        let attributes = vec![Attribute { name: "Reason", data_type: "String", value }];
        let message = DeadLetter { body, attributes };
        if let Some(letters) = self.world.letters(&[&message]) {
            assert_eq!(self.world.send_message_batch(&[&letters[0]]), Ok(vec![Ok(())]));
        }
    }

    fn broken(&self) -> Option<(Invariant, Option<usize>)> {
        self.world.broken.as_ref().map(|broken| (broken.invariant, broken.event))
    }
}

/// Lets the world run until a handler's calls come.
fn next_batch(world: &mut World) -> Batch {
    loop {
        let (now, happening) = world.agenda.next_until(world.scenario.end()).expect("a batch comes");
        world.advance(now);
        match happening {
            Happening::InvocationEnds(place) => drop(world.end_invocation(place)),
            Happening::BatchEnds(place) => return world.open_batch(place),
            happening => world.happen(happening),
        }
        world.follow_up();
    }
}

fn payload() -> String {
    let mut text = String::new();
    payload::write(0, &mut text);
    text
}

fn letter(retries_made: u64, payload: &str) -> String {
    format!(r#"{{"retries_made":{retries_made},"payload":{payload}}}"#)
}

#[test]
fn what_a_handler_does_breaks_nothing() {
    let mut bench = Bench::due();
    bench.invoke(FUNCTION, bench.envelope(&payload()));
    assert_eq!((bench.broken(), bench.world.retries), (None, 1));
    bench.world.delete_settled(bench.batch, &[false]);
    assert_eq!(bench.world.broken, None, "the re-invocation carries it on");
}

#[test]
fn a_payload_that_has_changed() {
    for (sent, event) in [
        ("no JSON".to_owned(), None),
        (Bench::due().envelope(&Bench::due().envelope(&payload())), None),
        (Bench::due().envelope("null"), None),
        (Bench::due().envelope(&payload().replace("1.0", "1")), Some(0)),
        (payload(), Some(0)),
    ] {
        let mut bench = Bench::due();
        bench.invoke(FUNCTION, sent.clone());
        assert_eq!(bench.broken(), Some((Invariant::PayloadVerbatim, event)), "{sent}");
        assert_eq!(bench.world.retries, 0);
    }
    for (body, event) in [
        (letter(0, &payload().replace("1.0", "1")), Some(0)),
        (letter(0, "null"), None),
        ("of no message".to_owned(), None),
    ] {
        let mut bench = Bench::due();
        bench.dead_letter("max_age", body.clone());
        assert_eq!(bench.broken(), Some((Invariant::PayloadVerbatim, event)), "{body}");
    }
}

#[test]
fn a_function_off_the_list() {
    let mut bench = Bench::due();
    bench.invoke(UNLISTED_ARN, bench.envelope(&payload()));
    assert_eq!(bench.broken(), Some((Invariant::AllowList, Some(0))));
}

#[test]
fn a_second_copy_that_no_fault_explains() {
    let mut bench = Bench::due();
    bench.invoke(FUNCTION, bench.envelope(&payload()));
    assert_eq!(bench.broken(), None);
    bench.invoke(FUNCTION, bench.envelope(&payload()));
    assert_eq!(bench.broken(), Some((Invariant::ExplainedDuplicates, Some(0))));
}

#[test]
fn a_retry_on_the_first_receive() {
    let mut bench = Bench::new();
    bench.invoke(FUNCTION, bench.envelope(&payload()));
    assert_eq!(bench.broken(), Some((Invariant::DueTime, Some(0))));
}

#[test]
fn an_attempt_or_a_count_of_retries_that_is_wrong() {
    let mut bench = Bench::due();
    bench.invoke(FUNCTION, bench.envelope(&payload()).replace(r#""attempt":1"#, r#""attempt":2"#));
    assert_eq!(bench.broken(), Some((Invariant::AttemptsByOne, Some(0))));
    let mut bench = Bench::due();
    bench.dead_letter("max_retries", letter(1, &payload()));
    assert_eq!(bench.broken(), Some((Invariant::AttemptsByOne, Some(0))));
}

#[test]
fn a_wait_that_is_too_long() {
    let mut bench = Bench::new();
    bench.hide(2);
    assert_eq!(bench.broken(), Some((Invariant::LongestWait, Some(0))));
    // Hidden after a call that did not work, it is another bound: 2 s on the first receive.
    let mut bench = Bench::new();
    bench.world.handling_mut().mark(0, Done::Tried);
    bench.hide(2);
    assert_eq!(bench.broken(), None);
    bench.hide(3);
    assert_eq!(bench.broken(), Some((Invariant::LongestWait, Some(0))));
}

#[test]
fn a_reason_that_is_untrue_or_unknown() {
    for reason in ["max_retries", "max_age", "target_not_allowed", "malformed_record", "bad_luck", ""] {
        let mut bench = Bench::due();
        bench.dead_letter(reason, letter(0, &payload()));
        let (invariant, _) = bench.broken().expect("it is");
        assert_eq!(invariant, Invariant::TrueReasons, "{reason}");
    }
}

#[test]
fn a_message_deleted_without_a_call() {
    let mut bench = Bench::new();
    bench.world.delete_settled(bench.batch, &[false]);
    let broken = bench.world.broken.map(|broken| (broken.invariant, broken.event));
    assert_eq!(broken, Some((Invariant::NoneVanishes, Some(0))));
}

/// Two messages of one event, both to be given up, in one batch.
fn given_up_twice(faults: Faults) -> World {
    let target_functions = vec![TARGET_ARN.into()];
    let settings = Settings { target_functions, max_retries: 0, ..Settings::default() };
    let policy = Policy::new(settings).expect("a valid policy");
    let scenario = Scenario { events: 1, arrival_spread: Duration::ZERO, faults, ..Scenario::default() };
    let mut world = World::new(scenario, &policy);
    let body = next_batch(&mut world).records.remove(0).body;
    (0..2).for_each(|_| world.send(0, 0, body.clone()));
    world.follow_up();
    assert_eq!(next_batch(&mut world).records.len(), 2);
    world
}

#[test]
fn dead_letters_that_look_alike_are_told_apart_when_they_are_sent_again() {
    let message = DeadLetter {
        body: letter(0, &payload()),
        attributes: vec![Attribute { name: "Reason", data_type: "String", value: "max_retries".into() }],
    };
    let messages = [&message; 2];
    for (fault, accepted) in [(Fault::DeadLetterRefused, 0), (Fault::DeadLetterLost, 6)] {
        let mut world = given_up_twice(Faults::default().with(fault, Strikes::always(1.0)));
        let letters = world.letters(&messages).expect("they are lawful");
        let letters: Vec<&Letter<'_>> = letters.iter().collect();
        assert_eq!(letters.iter().map(|letter| letter.place).collect::<Vec<_>>(), [0, 1]);
        assert!((0..3).all(|_| world.send_message_batch(&letters).is_err()));
        assert_eq!(world.broken, None, "{fault}");
        assert_eq!(world.duplicate_dead_letters, accepted.max(2) - 2, "{fault}");
        assert_eq!(world.calls.of(Operation::SendMessageBatch), 3);
    }
    let mut world = given_up_twice(Faults::default());
    let letters = world.letters(&messages).expect("they are lawful");
    for broken in [None, Some(Invariant::ExplainedDuplicates)] {
        assert_eq!(world.send_message_batch(&[&letters[1]]), Ok(vec![Ok(())]));
        assert_eq!(world.broken.as_ref().map(|broken| broken.invariant), broken);
    }
}

/// The handler's deliveries would otherwise call again for nothing.
#[test]
fn a_refusal_of_the_queue_is_final() {
    let mut bench = Bench::new();
    let twelve_hours = Duration::from_secs(43_200 + 1);
    let receipt_handle = &bench.batch.records[0].receipt_handle;
    let entry = VisibilityChange { receipt_handle, visibility_timeout: twelve_hours };
    let answers = bench.world.change_visibility_batch(&[&&entry]).expect("the call is answered");
    assert_eq!(
        answers.iter().map(|answer| answer.as_ref().map_err(|fault| fault.kind)).collect::<Vec<_>>(),
        [Err(FaultKind::Refused)]
    );
}
