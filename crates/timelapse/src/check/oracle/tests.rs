//! Most of these tests make calls that the real handler never makes, because the calls break an invariant.

use comeback_engine::{Attribute, DeadLetter, Policy, Settings};

use super::super::Invariant;
use super::super::history::Origin;
use super::*;
use crate::TARGET_ARN;
use crate::faults::records::UNLISTED_ARN;
use crate::operators::MakeOperators;

const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST";
const EVENT: EventNumber = EventNumber(0);
const FIRST: Attempt = Attempt { event: EVENT, number: 0, anew: None };
const ORIGIN: Origin = Origin { attempt: FIRST, flaw: None, written: Some(START), asked: None, error: None };

fn at(seconds: u64) -> Timestamp {
    START.saturating_add(Duration::from_secs(seconds))
}

/// An event whose first invocation has failed, and a handler that has received the event's message.
struct Fixture {
    oracle: Oracle,
    carried: Carried,
    reads: Reads,
    sent: Timestamp,
}

impl Fixture {
    fn new() -> Self {
        Self::reading_pauses(None)
    }

    /// Creates a run with one event, which has failed once. If there are operators, the handler reads pauses.
    fn reading_pauses(operators: Option<MakeOperators>) -> Self {
        let settings =
            Settings { base_backoff: 1, target_functions: vec![TARGET_ARN.into()], ..Settings::default() };
        let policy = Policy::new(settings).expect("a valid policy");
        let mut oracle =
            Oracle::new(&Scenario { events: 1, operators, ..Scenario::default() }, &policy.into());
        oracle.arrived(EVENT, START);
        let carried = Carried { history: oracle.sent(EVENT, START), origin: ORIGIN };
        oracle.invocation_ended(EVENT, false, START);
        let reads = oracle.environment_made();
        let mut fixture = Self { oracle, carried, reads, sent: START };
        fixture.receive(1, at(0));
        fixture
    }

    /// Creates a run in which the handler receives the event's message a second time, after the backoff.
    fn due() -> Self {
        let mut fixture = Self::new();
        fixture.hide(1);
        fixture.receive(2, at(2));
        fixture
    }

    fn receive(&mut self, receive_count: u32, now: Timestamp) {
        self.deliver(receive_count, now, 1);
    }

    /// Begins a batch that delivers the event's message `times` times.
    fn deliver(&mut self, receive_count: u32, now: Timestamp, times: usize) {
        let record = Record {
            message_id: "m-0".into(),
            receipt_handle: String::new(),
            body: String::new(),
            receive_count,
            sent: self.sent,
            first_receive: START,
            moved: None,
            trace_header: None,
            attributes: Vec::new(),
        };
        let reads = self.reads.clone();
        let start = Start { received_at: now, clock: now, can_act: true, reads, policies: 0 };
        self.oracle.started(start, std::iter::repeat_n((self.carried.clone(), &record), times), now);
    }

    fn hide(&mut self, seconds: u64) {
        let now = self.oracle.batch().start.clock;
        let timeout = Duration::from_secs(seconds);
        self.oracle.hides(0, timeout);
        self.oracle.hidden(0, now.saturating_add(timeout));
    }

    /// Simulates a refused request to hide the message before a re-invocation.
    fn guard(&mut self) {
        self.oracle.hides(0, Duration::from_secs(3_660));
    }

    fn invoke(&mut self, function_arn: &str, payload: &str) {
        self.guard();
        self.oracle.reinvokes(0, function_arn, payload);
        self.oracle.reinvoked(0, at(2));
    }

    fn invoke_unanswered(&mut self, accepted: bool, now: Timestamp) {
        self.guard();
        self.oracle.reinvokes(0, FUNCTION, &envelope(&payload()));
        if accepted {
            self.oracle.reinvoked(0, now);
        }
        self.oracle.invoke_unanswered(0, accepted, now);
    }

    fn dead_letter(&mut self, reason: &str, body: String) {
        let value = reason.to_owned();
        let attributes = vec![Attribute { name: "Reason".into(), data_type: "String".into(), value }];
        self.oracle.dead_letters(0, &DeadLetter { body, attributes }, None);
        self.oracle.dead_lettered(0);
    }

    /// Moves the message, and returns the copy.
    fn send_again(&mut self, seconds: u64, now: Timestamp) -> Carried {
        let delay = Duration::from_secs(seconds);
        self.guard();
        self.oracle.moves(0, delay, false);
        Carried { history: self.oracle.moved(0, delay, now), origin: ORIGIN }
    }

    fn broken(&self) -> Option<Invariant> {
        self.oracle.broken.as_ref().map(|broken| broken.invariant)
    }
}

fn payload() -> String {
    let mut text = String::new();
    EVENT.write_payload(0, &mut text);
    text
}

fn envelope(payload: &str) -> String {
    let first_failure = START.as_secs();
    format!(
        r#"{{"_retry_metadata":{{"attempt":1,"initial_timestamp":{first_failure}}},"_original_payload":{payload}}}"#
    )
}

fn dead_letter_body(retries_made: u64, payload: &str) -> String {
    format!(r#"{{"retries_made":{retries_made},"payload":{payload}}}"#)
}

#[test]
fn a_retry_of_a_due_message_breaks_nothing() {
    let mut fixture = Fixture::due();
    fixture.invoke(FUNCTION, &envelope(&payload()));
    fixture.oracle.deleted(&fixture.carried, true, at(2));
    assert_eq!(fixture.broken(), None, "the re-invocation carries it on");
}

#[test]
fn a_changed_payload() {
    let changed = payload().replace("1.0", "1");
    let nested = envelope(&envelope(&payload()));
    for sent in ["no JSON".into(), nested, envelope("null"), envelope(&changed), payload()] {
        let mut fixture = Fixture::due();
        fixture.invoke(FUNCTION, &sent);
        assert_eq!(fixture.broken(), Some(Invariant::PayloadVerbatim), "{sent}");
    }
    for body in [dead_letter_body(0, &changed), dead_letter_body(0, "null"), "of no message".into()] {
        let mut fixture = Fixture::due();
        fixture.dead_letter("max_age", body.clone());
        assert_eq!(fixture.broken(), Some(Invariant::PayloadVerbatim), "{body}");
    }
}

#[test]
fn a_function_off_the_list() {
    let mut fixture = Fixture::due();
    fixture.invoke(UNLISTED_ARN, &envelope(&payload()));
    assert_eq!(fixture.broken(), Some(Invariant::AllowList));
}

#[test]
fn a_function_that_is_or_may_be_paused() {
    let from = at(3_600).as_secs();
    let pause = format!(r#"{{"target":"*","from":{from},"until":null,"spread":3600}}"#);
    let text = format!(r#"{{"v":1,"pauses":[{pause}]}}"#);
    // The handler knows the parameter's value as of `read`. It retries the message `tried_ago` milliseconds after its
    // last attempt to read the parameter.
    let invoked = |read: Option<Timestamp>, tried_ago: u64| {
        let mut fixture = Fixture::reading_pauses(Some(MakeOperators::new(|_| unreachable!("nobody acts"))));
        fixture.oracle.pauses_written(&text, at(3_600));
        fixture.hide(1);
        fixture.oracle.read_pauses(read, Timestamp::from_millis(at(3_700).as_millis() - tried_ago));
        fixture.reads = fixture.oracle.finished();
        fixture.receive(2, at(3_700));
        fixture.invoke(FUNCTION, &envelope(&payload()));
        fixture.broken()
    };
    let broken = Some(Invariant::PausedNotInvoked);
    assert_eq!(invoked(Some(at(3_600)), 0), broken);
    assert_eq!(invoked(None, 0), broken);
    assert_eq!(invoked(Some(START), 47_500), None, "37.5 s, and clocks that are 10 s apart");
    assert_eq!(invoked(Some(START), 47_501), broken, "it should have tried to read");
}

#[test]
fn a_second_retry_that_no_fault_explains() {
    let mut fixture = Fixture::due();
    fixture.invoke(FUNCTION, &envelope(&payload()));
    assert_eq!(fixture.broken(), None);
    fixture.invoke(FUNCTION, &envelope(&payload()));
    assert_eq!(fixture.broken(), Some(Invariant::ExplainedDuplicates));
}

#[test]
fn a_call_without_hiding_first() {
    for hidden_for in [None, Some(1), Some(3_659)] {
        let mut invoked = Fixture::due();
        hidden_for.into_iter().for_each(|seconds| invoked.oracle.hides(0, Duration::from_secs(seconds)));
        invoked.oracle.broken = None;
        invoked.oracle.reinvokes(0, FUNCTION, &envelope(&payload()));
        assert_eq!(invoked.broken(), Some(Invariant::SpacedInvokes), "{hidden_for:?}");
    }
    let mut moved = Fixture::new();
    moved.oracle.moves(0, Duration::from_secs(1), false);
    assert_eq!(moved.broken(), Some(Invariant::SpacedInvokes));
}

#[test]
fn an_invoke_within_the_hiding_of_the_one_before() {
    for (after, broken) in [(3_662, None), (3_661, Some(Invariant::SpacedInvokes))] {
        let mut fixture = Fixture::due();
        fixture.hide(3_660);
        fixture.invoke(FUNCTION, &envelope(&payload()));
        fixture.oracle.kept_after_all();
        fixture.reads = fixture.oracle.finished();
        fixture.receive(3, at(after));
        fixture.guard();
        fixture.oracle.reinvokes(0, FUNCTION, &envelope(&payload()));
        fixture.oracle.reinvoked(0, at(after));
        assert_eq!(fixture.broken(), broken, "after {after} s");
    }
}

#[test]
fn message_delivered_twice_is_kept_once() {
    let mut fixture = Fixture::new();
    fixture.hide(1);
    fixture.deliver(2, at(2), 2);
    fixture.invoke(FUNCTION, &envelope(&payload()));
    fixture.oracle.kept_after_all();
    assert_eq!(fixture.carried.history.borrow().excuses, 1);
}

#[test]
fn a_refused_call_that_stays_hidden_for_hours() {
    for (hidden_anew, broken) in [(None, Some(Invariant::LongestWait)), (Some(4), None)] {
        let mut fixture = Fixture::due();
        fixture.guard();
        fixture.oracle.reinvokes(0, FUNCTION, &envelope(&payload()));
        hidden_anew.into_iter().for_each(|seconds| fixture.hide(seconds));
        fixture.oracle.finished();
        assert_eq!(fixture.broken(), broken, "{hidden_anew:?}");
    }
}

#[test]
fn a_call_whose_message_is_hidden_for_too_long() {
    let mut fixture = Fixture::due();
    fixture.hide(7_261);
    fixture.oracle.reinvokes(0, FUNCTION, &envelope(&payload()));
    assert_eq!(fixture.broken(), Some(Invariant::LongestWait));
}

#[test]
fn a_long_hiding_without_a_call() {
    let too_long = Some(Invariant::LongestWait);
    for (lives, hidden_for, broken) in
        [(true, 3_660, too_long), (false, 7_260, None), (false, 7_261, too_long)]
    {
        let mut fixture = Fixture::due();
        fixture.hide(hidden_for);
        fixture.oracle.batch_mut().start.can_act = lives;
        fixture.oracle.finished();
        assert_eq!(fixture.broken(), broken, "lives: {lives}, hidden for {hidden_for} s");
    }
}

#[test]
fn an_unanswered_invoke_shown_or_repeated_too_early() {
    let broken = Some(Invariant::SpacedInvokes);
    for accepted in [false, true] {
        let unanswered = |hidden_for| {
            let mut fixture = Fixture::due();
            fixture.invoke_unanswered(accepted, at(2));
            fixture.hide(hidden_for);
            fixture
        };
        assert_eq!(unanswered(3_599).broken(), broken, "{accepted}");
        for (after, broken) in [(3_600, None), (3_599, broken)] {
            let mut fixture = unanswered(3_600);
            assert_eq!(fixture.broken(), None, "{accepted}");
            fixture.invoke_unanswered(accepted, at(2 + after));
            assert_eq!(fixture.broken(), broken, "{accepted}, after {after} s");
        }
    }
}

#[test]
fn a_wrong_attempt_or_count_of_retries() {
    let mut fixture = Fixture::due();
    fixture.invoke(FUNCTION, &envelope(&payload()).replace(r#""attempt":1"#, r#""attempt":2"#));
    assert_eq!(fixture.broken(), Some(Invariant::AttemptsByOne));
    let mut fixture = Fixture::due();
    fixture.dead_letter("max_retries", dead_letter_body(1, &payload()));
    assert_eq!(fixture.broken(), Some(Invariant::AttemptsByOne));
}

/// An old copy without its message attribute counts as redriven and gets retry 1; the other copies get retry 4.
#[test]
fn a_chain_restarts_only_in_an_old_copy_without_its_attribute() {
    let day = 86_400;
    for (sent, forgotten, right) in [(day + 1, true, 1), (day + 1, false, 4), (day, true, 4)] {
        for attempt in [1, 4] {
            let mut fixture = Fixture::new();
            fixture.carried.origin.attempt.number = 3;
            fixture.sent = at(sent);
            if forgotten {
                fixture.carried.history.borrow_mut().forget(at(sent));
            }
            fixture.receive(2, at(day));
            let since = if right == 1 { at(sent) } else { START }.as_secs();
            let metadata = format!(r#""attempt":{attempt},"initial_timestamp":{since}"#);
            let first = format!(r#""attempt":1,"initial_timestamp":{}"#, START.as_secs());
            fixture.guard();
            fixture.oracle.reinvokes(0, FUNCTION, &envelope(&payload()).replace(&first, &metadata));
            let by_one = fixture.broken() != Some(Invariant::AttemptsByOne);
            assert_eq!(by_one, attempt == right, "{attempt} instead of {right}, sent at {sent} s");
        }
    }
}

#[test]
fn too_long_a_wait() {
    let mut fixture = Fixture::new();
    fixture.hide(2);
    assert_eq!(fixture.broken(), Some(Invariant::LongestWait));
    // After a failed call, the bound is different: 4 s on the second receive.
    let mut fixture = Fixture::due();
    fixture.guard();
    fixture.oracle.reinvokes(0, FUNCTION, &envelope(&payload()));
    fixture.hide(4);
    assert_eq!(fixture.broken(), None);
    fixture.hide(5);
    assert_eq!(fixture.broken(), Some(Invariant::LongestWait));
}

#[test]
fn an_untrue_or_unknown_reason() {
    for reason in ["max_retries", "max_age", "target_not_allowed", "malformed_record", "bad_luck", ""] {
        let mut fixture = Fixture::due();
        fixture.dead_letter(reason, dead_letter_body(0, &payload()));
        assert_eq!(fixture.broken(), Some(Invariant::TrueReasons), "{reason}");
    }
}

#[test]
fn a_message_deleted_without_a_call() {
    let mut fixture = Fixture::new();
    fixture.oracle.deleted(&fixture.carried, true, at(2));
    assert_eq!(fixture.broken(), Some(Invariant::LeavesForAReason));
}

#[test]
fn a_move_that_ends_with_its_backoff_breaks_nothing() {
    let mut fixture = Fixture::new();
    fixture.send_again(1, at(0));
    fixture.oracle.deleted(&fixture.carried, true, at(2));
    assert_eq!(fixture.broken(), None);
}

/// The original must not be hidden for too long, because a crash may leave only the original.
#[test]
fn a_moved_original_hidden_too_long() {
    for (hidden_for, broken) in [(7_260, None), (7_261, Some(Invariant::LongestWait))] {
        let mut fixture = Fixture::new();
        fixture.oracle.hides(0, Duration::from_secs(hidden_for));
        fixture.oracle.moves(0, Duration::from_secs(1), false);
        assert_eq!(fixture.broken(), broken, "{hidden_for} s");
    }
}

/// If the deletion of a moved message is lost, the message comes back while its copy is still delayed.
#[test]
fn a_moved_original_shown_or_invoked_too_early() {
    let moved = || {
        let mut fixture = Fixture::new();
        fixture.hide(3_661);
        fixture.oracle.moves(0, Duration::from_secs(1), false);
        fixture.oracle.moved(0, Duration::from_secs(1), at(0));
        assert_eq!(fixture.broken(), None);
        fixture
    };
    for is_answered in [true, false] {
        let mut shown = moved();
        if !is_answered {
            shown.oracle.move_unanswered(0);
        }
        shown.hide(3_660);
        assert_eq!(shown.broken(), Some(Invariant::SpacedInvokes), "answered: {is_answered}");
    }
    for (after, broken) in [(3_661, None), (3_660, Some(Invariant::SpacedInvokes))] {
        let mut fixture = moved();
        fixture.oracle.kept_after_all();
        fixture.reads = fixture.oracle.finished();
        fixture.receive(2, at(after));
        fixture.guard();
        fixture.oracle.reinvokes(0, FUNCTION, &envelope(&payload()));
        fixture.oracle.reinvoked(0, at(after));
        assert_eq!(fixture.broken(), broken, "after {after} s");
    }
}

#[test]
fn another_body_or_a_second_copy_or_too_long_a_delay() {
    let mut fixture = Fixture::new();
    fixture.guard();
    fixture.oracle.moves(0, Duration::from_secs(1), true);
    assert_eq!(fixture.broken(), Some(Invariant::PayloadVerbatim));
    let mut fixture = Fixture::new();
    fixture.send_again(1, at(0));
    fixture.send_again(1, at(0));
    assert_eq!(fixture.broken(), Some(Invariant::ExplainedDuplicates));
    // The backoff of the first retry is one second.
    let mut fixture = Fixture::new();
    fixture.send_again(2, at(0));
    assert_eq!(fixture.broken(), Some(Invariant::LongestWait));
}

#[test]
fn more_hops_than_a_wait_takes() {
    let mut fixture = Fixture::due();
    // After a failed call, the wait may be longer, but must not be split into moves that last a second each.
    fixture.guard();
    fixture.oracle.reinvokes(0, FUNCTION, &envelope(&payload()));
    fixture.carried = fixture.send_again(1, at(2));
    for (now, broken) in [(3, None), (4, Some(Invariant::FewestHops))] {
        fixture.receive(2, at(now));
        fixture.carried = fixture.send_again(1, at(now));
        assert_eq!(fixture.broken(), broken, "at {now} s");
    }
}

#[test]
fn a_message_back_within_the_hour_of_a_lost_copy() {
    let mut fixture = Fixture::new();
    fixture.send_again(1, at(0));
    fixture.oracle.move_unanswered(0);
    fixture.hide(3_660);
    assert_eq!(fixture.broken(), None);
    fixture.hide(3_659);
    assert_eq!(fixture.broken(), Some(Invariant::SpacedInvokes));
}

#[test]
fn a_hop_that_ends_after_its_due_time() {
    let hop = |late_ms: u64| {
        let mut fixture = Fixture::new();
        let due = START.saturating_add(Duration::from_millis(10_000 - late_ms));
        fixture.oracle.hop_reported(0, Duration::from_secs(10), due);
        fixture.broken()
    };
    assert_eq!((hop(1_000), hop(1_001)), (None, Some(Invariant::HopsEndInTime)));
}

#[test]
fn a_message_that_is_removed_though_it_was_seen() {
    let removed = |removal, hours: u64, cut: bool| {
        let Fixture { mut oracle, carried, .. } = Fixture::new();
        if cut {
            carried.cut_retention();
        }
        oracle.removed(&carried, removal, at(hours * 3_600));
        oracle.broken.map(|broken| broken.invariant)
    };
    for (removal, broken) in
        [(Removal::Expired, Invariant::NoneExpires), (Removal::ReceivedTooOften, Invariant::FewReceives)]
    {
        assert_eq!((removed(removal, 12, false), removed(removal, 11, true)), (None, None));
        assert_eq!(removed(removal, 11, false), Some(broken));
    }
}

#[test]
fn a_line_with_a_handle_after_a_call_or_without_a_hiding() {
    let line = |seconds| {
        let mut fixture = Fixture::new();
        fixture.hide(1);
        fixture.oracle.may_be_recalled(0, START.saturating_add(Duration::from_secs(seconds)));
        fixture.broken()
    };
    assert_eq!((line(0), line(1)), (None, Some(Invariant::SpacedInvokes)));
    let mut moved = Fixture::new();
    moved.hide(3_661);
    moved.oracle.moves(0, Duration::from_secs(1), false);
    moved.oracle.moved(0, Duration::from_secs(1), at(0));
    moved.oracle.may_be_recalled(0, at(0));
    assert_eq!(moved.broken(), Some(Invariant::SpacedInvokes));
}

#[test]
fn a_recall_that_shows_a_message_within_the_hour_of_a_call() {
    let recalled = |until| {
        let mut fixture = Fixture::due();
        fixture.invoke_unanswered(false, at(2));
        fixture.hide(3_600);
        fixture.oracle.recalled(&fixture.carried, at(3_602), at(until), at(5));
        fixture.broken()
    };
    assert_eq!((recalled(3_602), recalled(3_601)), (None, Some(Invariant::RecallsShorten)));
}

#[test]
fn a_gone_message_settled_again() {
    for (excuse, broken) in [(true, None), (false, Some(Invariant::ExplainedDuplicates))] {
        let mut fixture = Fixture::due();
        fixture.invoke(FUNCTION, &envelope(&payload()));
        if excuse {
            fixture.carried.excuse();
        }
        fixture.oracle.deleted(&fixture.carried, true, at(2));
        fixture.invoke(FUNCTION, &envelope(&payload()));
        assert_eq!(fixture.broken(), broken, "{excuse}");
    }
}
