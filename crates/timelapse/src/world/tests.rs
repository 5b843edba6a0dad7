//! Calls that no handler makes: each breaks an invariant.

use std::time::Duration;

use comeback_engine::{Attribute, DeadLetter, Policy, Settings, Timestamp};

use super::*;
use crate::aws::target::TARGET_ARN;
use crate::check::pauses::Known;
use crate::faults::dice::Dice;
use crate::faults::mix::{Faults, Strikes};
use crate::faults::records::UNLISTED_ARN;
use crate::operators::OperatorPause;
use crate::scenario::{START, Scenario};
use crate::world::batch::Batch;
use crate::world::happening::Happened;

mod moves;

const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST";

/// The event of a scenario that has only one.
const EVENT: EventNumber = EventNumber(0);

/// One event that has failed; the handler has its message.
struct Fixture {
    world: World,
    batch: Batch,
}

impl Fixture {
    fn new() -> Self {
        let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() };
        let policy = Policy::new(settings).expect("a valid policy");
        let scenario = Scenario { events: 1, arrival_spread: Duration::ZERO, ..Scenario::default() };
        let mut world = World::new(scenario, &policy);
        let batch = next_batch(&mut world);
        Self { world, batch }
    }

    /// The same at the message's second receive, after its backoff.
    fn due() -> Self {
        let mut fixture = Self::new();
        fixture.hide(1);
        let Self { mut world, batch } = fixture;
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

    /// A correct envelope around any payload.
    fn envelope(&self, payload: &str) -> String {
        let first_failure = self.world.ledger.first_failure(EVENT).as_secs();
        format!(
            r#"{{"_retry_metadata":{{"attempt":1,"initial_timestamp":{first_failure}}},"_original_payload":{payload}}}"#
        )
    }

    fn invoke(&mut self, function_arn: &str, payload: String) {
        let answer = self.world.invoke(function_arn, payload);
        assert!(answer.is_ok(), "{answer:?}");
    }

    /// Without an answer.
    fn invoke_again(&mut self) {
        let answer = self.world.invoke(FUNCTION, self.envelope(&payload()));
        assert_eq!(answer, Err(InvokeFailure::Unanswered("no answer in time".into())));
    }

    fn dead_letter(&mut self, reason: &str, body: String) {
        let value = reason.to_owned();
        let attributes = vec![Attribute { name: "Reason", data_type: "String", value }];
        let dead_letter = DeadLetter { body, attributes };
        if let Some(checked) = self.world.check_dead_letters(&[&dead_letter]) {
            assert_eq!(self.world.send_message_batch(&[&checked[0]]), Ok(vec![Ok(())]));
        }
    }

    fn broken(&self) -> Option<(Invariant, Option<EventNumber>)> {
        self.world.broken.as_ref().map(|broken| (broken.invariant, broken.event))
    }
}

/// Lets the world run until a handler's calls come.
fn next_batch(world: &mut World) -> Batch {
    loop {
        if let Happened::BatchOpened(batch) = world.next().expect("a batch comes") {
            return *batch;
        }
        world.follow_up();
    }
}

fn payload() -> String {
    let mut text = String::new();
    EVENT.write_payload(0, &mut text);
    text
}

fn dead_letter_body(retries_made: u64, payload: &str) -> String {
    format!(r#"{{"retries_made":{retries_made},"payload":{payload}}}"#)
}

#[test]
fn what_a_handler_does_breaks_nothing() {
    let mut fixture = Fixture::due();
    fixture.invoke(FUNCTION, fixture.envelope(&payload()));
    assert_eq!((fixture.broken(), fixture.world.retries), (None, 1));
    fixture.world.delete_settled(fixture.batch, &[false]);
    assert_eq!(fixture.world.broken, None, "the re-invocation carries it on");
}

#[test]
fn a_payload_that_has_changed() {
    for (sent, event) in [
        ("no JSON".to_owned(), None),
        (Fixture::due().envelope(&Fixture::due().envelope(&payload())), None),
        (Fixture::due().envelope("null"), None),
        (Fixture::due().envelope(&payload().replace("1.0", "1")), Some(EVENT)),
        (payload(), Some(EVENT)),
    ] {
        let mut fixture = Fixture::due();
        fixture.invoke(FUNCTION, sent.clone());
        assert_eq!(fixture.broken(), Some((Invariant::PayloadVerbatim, event)), "{sent}");
        assert_eq!(fixture.world.retries, 0);
    }
    for (body, event) in [
        (dead_letter_body(0, &payload().replace("1.0", "1")), Some(EVENT)),
        (dead_letter_body(0, "null"), None),
        ("of no message".to_owned(), None),
    ] {
        let mut fixture = Fixture::due();
        fixture.dead_letter("max_age", body.clone());
        assert_eq!(fixture.broken(), Some((Invariant::PayloadVerbatim, event)), "{body}");
    }
}

#[test]
fn a_function_off_the_list() {
    let mut fixture = Fixture::due();
    fixture.invoke(UNLISTED_ARN, fixture.envelope(&payload()));
    assert_eq!(fixture.broken(), Some((Invariant::AllowList, Some(EVENT))));
}

#[test]
fn a_function_that_is_paused_or_may_be() {
    let hour = Duration::from_secs(3_600);
    let pause = OperatorPause::of_all(Duration::ZERO, hour, hour);
    let invoked = |known: Known, reads: bool, tried_ago: Option<u64>| {
        let mut fixture = Fixture::due();
        let tried = tried_ago.map(|ago| Timestamp::from_millis(fixture.batch.started.as_millis() - ago));
        fixture.world.bounds.known = known;
        fixture.world.scenario.pauses.extend(reads.then(|| pause.clone()));
        fixture.world.handling_mut().tried_to_read = tried;
        fixture.invoke(FUNCTION, fixture.envelope(&payload()));
        fixture.broken()
    };
    let broken = Some((Invariant::PausedNotInvoked, Some(EVENT)));
    assert_eq!(invoked(Known::at(std::slice::from_ref(&pause), START), true, Some(0)), broken);
    assert_eq!(invoked(Known::Nothing, true, Some(0)), broken);
    assert_eq!(invoked(Known::none(), true, Some(47_500)), None, "37.5 s, and clocks that are 10 s apart");
    assert_eq!(invoked(Known::none(), true, Some(47_501)), broken, "it should have tried to read");
    assert_eq!((invoked(Known::none(), true, None), invoked(Known::none(), false, None)), (broken, None));
}

#[test]
fn a_second_copy_that_no_fault_explains() {
    let mut fixture = Fixture::due();
    fixture.invoke(FUNCTION, fixture.envelope(&payload()));
    assert_eq!(fixture.broken(), None);
    fixture.invoke(FUNCTION, fixture.envelope(&payload()));
    assert_eq!(fixture.broken(), Some((Invariant::ExplainedDuplicates, Some(EVENT))));
}

/// A message that was re-invoked without an answer, then hidden.
fn unanswered(fault: Fault, hidden_for: u64) -> Fixture {
    let mut fixture = Fixture::due();
    fixture.world.dice = Dice::new(1, START, &Faults::default().with(fault, Strikes::always(1.0)));
    fixture.invoke_again();
    fixture.hide(hidden_for);
    fixture
}

#[test]
fn an_unanswered_invoke_that_is_hidden_or_repeated_too_early() {
    let broken = Some((Invariant::SpacedInvokes, Some(EVENT)));
    for fault in [Fault::InvokeTimedOut, Fault::InvokeAnswerLost] {
        assert_eq!(unanswered(fault, 3_599).broken(), broken, "{fault}");
        for (after, broken) in [(3_600, None), (3_599, broken)] {
            let mut fixture = unanswered(fault, 3_600);
            assert_eq!(fixture.broken(), None, "{fault}");
            fixture.world.now = fixture.world.now.saturating_add(Duration::from_secs(after));
            fixture.invoke_again();
            assert_eq!(fixture.broken(), broken, "{fault}, after {after} s");
        }
    }
}

#[test]
fn a_retry_on_the_first_receive() {
    let mut fixture = Fixture::new();
    fixture.invoke(FUNCTION, fixture.envelope(&payload()));
    assert_eq!(fixture.broken(), Some((Invariant::DueTime, Some(EVENT))));
}

#[test]
fn an_attempt_or_a_count_of_retries_that_is_wrong() {
    let mut fixture = Fixture::due();
    fixture.invoke(FUNCTION, fixture.envelope(&payload()).replace(r#""attempt":1"#, r#""attempt":2"#));
    assert_eq!(fixture.broken(), Some((Invariant::AttemptsByOne, Some(EVENT))));
    let mut fixture = Fixture::due();
    fixture.dead_letter("max_retries", dead_letter_body(1, &payload()));
    assert_eq!(fixture.broken(), Some((Invariant::AttemptsByOne, Some(EVENT))));
}

#[test]
fn a_wait_that_is_too_long() {
    let mut fixture = Fixture::new();
    fixture.hide(2);
    assert_eq!(fixture.broken(), Some((Invariant::LongestWait, Some(EVENT))));
    // After a call that failed, the bound is another one: 2 s on the first receive.
    let mut fixture = Fixture::new();
    fixture.world.handling_mut().mark(Position(0), Done::Tried);
    fixture.hide(2);
    assert_eq!(fixture.broken(), None);
    fixture.hide(3);
    assert_eq!(fixture.broken(), Some((Invariant::LongestWait, Some(EVENT))));
}

#[test]
fn a_reason_that_is_untrue_or_unknown() {
    for reason in ["max_retries", "max_age", "target_not_allowed", "malformed_record", "bad_luck", ""] {
        let mut fixture = Fixture::due();
        fixture.dead_letter(reason, dead_letter_body(0, &payload()));
        let (invariant, _) = fixture.broken().expect("it is");
        assert_eq!(invariant, Invariant::TrueReasons, "{reason}");
    }
}

#[test]
fn a_message_deleted_without_a_call() {
    let mut fixture = Fixture::new();
    fixture.world.delete_settled(fixture.batch, &[false]);
    let broken = fixture.world.broken.map(|broken| (broken.invariant, broken.event));
    assert_eq!(broken, Some((Invariant::LeavesForAReason, Some(EVENT))));
}

/// Two messages of one event in one batch, both to be given up.
fn given_up_twice(faults: Faults) -> World {
    let target_functions = vec![TARGET_ARN.into()];
    let settings = Settings { target_functions, max_retries: 0, ..Settings::default() };
    let policy = Policy::new(settings).expect("a valid policy");
    let scenario = Scenario { events: 1, arrival_spread: Duration::ZERO, faults, ..Scenario::default() };
    let mut world = World::new(scenario, &policy);
    let body = next_batch(&mut world).records.remove(0).body;
    (0..2).for_each(|_| world.send(Attempt { event: EVENT, number: 0 }, body.clone(), None));
    world.follow_up();
    assert_eq!(next_batch(&mut world).records.len(), 2);
    world
}

#[test]
fn identical_dead_letters_stay_apart_when_they_are_sent_again() {
    let dead_letter = DeadLetter {
        body: dead_letter_body(0, &payload()),
        attributes: vec![Attribute { name: "Reason", data_type: "String", value: "max_retries".into() }],
    };
    let dead_letters = [&dead_letter; 2];
    for (fault, accepted) in [(Fault::DeadLetterRefused, 0), (Fault::DeadLetterLost, 6)] {
        let mut world = given_up_twice(Faults::default().with(fault, Strikes::always(1.0)));
        let checked = world.check_dead_letters(&dead_letters).expect("they break nothing");
        let checked: Vec<&CheckedDeadLetter<'_>> = checked.iter().collect();
        let positions: Vec<Position> = checked.iter().map(|checked| checked.position).collect();
        assert_eq!(positions, [Position(0), Position(1)]);
        assert!((0..3).all(|_| world.send_message_batch(&checked).is_err()));
        assert_eq!(world.broken, None, "{fault}");
        assert_eq!(world.duplicate_dead_letters, accepted.max(2) - 2, "{fault}");
        assert_eq!(world.calls.of(ApiCall::SendMessageBatch), 3);
    }
    let mut world = given_up_twice(Faults::default());
    let checked = world.check_dead_letters(&dead_letters).expect("they break nothing");
    for broken in [None, Some(Invariant::ExplainedDuplicates)] {
        assert_eq!(world.send_message_batch(&[&checked[1]]), Ok(vec![Ok(())]));
        assert_eq!(world.broken.as_ref().map(|broken| broken.invariant), broken);
    }
}

/// The handler's deliveries would otherwise call again for nothing.
#[test]
fn a_refusal_of_the_queue_is_final() {
    let mut fixture = Fixture::new();
    let twelve_hours = Duration::from_secs(43_200 + 1);
    let receipt_handle = &fixture.batch.records[0].receipt_handle;
    let entry = VisibilityChange { receipt_handle, visibility_timeout: twelve_hours };
    let answers = fixture.world.change_visibility_batch(&[&&entry]).expect("the call is answered");
    assert_eq!(
        answers.iter().map(|answer| answer.as_ref().map_err(|error| error.kind)).collect::<Vec<_>>(),
        [Err(ErrorKind::Refused)]
    );
}
