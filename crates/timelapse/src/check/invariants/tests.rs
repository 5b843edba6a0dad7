//! Tests each check at its limit: the last call that the check allows, and the first call that it refuses.

use std::sync::LazyLock;

use comeback_engine::{HideUpTo, Jitter, Policy, Settings};
use comeback_envelope::Metadata;

use super::super::handling::SeenMessage;
use super::super::history::{After, Attempt, Origin};
use super::super::oracle::calls::{dead_lettered_for, hidden_within, retried};
use super::super::oracle::{most_in_flight, write};
use super::super::pauses::{KnownPauses, WrittenValues, between_reads};
use super::*;
use crate::Scenario;
use crate::TARGET_ARN;
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::faults::mix::{Faults, Strikes};

/// Returns the time this many seconds after the first failure.
fn at(secs: f64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000 + (secs * 1_000.0).round() as u64)
}

/// Returns settings under which waits range from one second to the longest backoff that is allowed.
fn long_waits() -> Settings {
    Settings { max_retries: 185, base_backoff: 1, max_backoff: 43_170, ..Settings::default() }
}

fn policy(settings: Settings) -> Policy {
    let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..settings };
    Policy::new(settings).expect("a valid policy")
}

fn hourly() -> Policy {
    policy(Settings { max_age: 3_600, max_retries: 5, ..long_waits() })
}

const THIRD: Attempt = Attempt { event: EventNumber(7), number: 3, anew: None };

/// Returns a message whose next retry, retry 4, has a backoff ceiling of 8 s.
fn seen(receive_count: u32) -> SeenMessage {
    SeenMessage {
        origin: Origin { attempt: THIRD, flaw: None, written: None, asked: None, error: None },
        held_until: None,
        receive_count,
        first_sent: at(0.0),
        first_receive: at(10.0),
        sent: at(9.0),
        bytes: 700,
        not_before: at(9.0),
    }
}

static NONE: LazyLock<KnownPauses> = LazyLock::new(KnownPauses::no_pauses);

fn handling<'a>(policy: &'a Policy, seen: &'a SeenMessage, now: Timestamp) -> Handling<'a> {
    let between_reads = between_reads(policy.settings().maximum_concurrency);
    Handling { seen, now, first_failure: at(0.0), known: &NONE, policy, between_reads }
}

fn deferred(handling: &Handling<'_>, hidden_for: Duration) -> Result<Timestamp, Broken> {
    longest_wait(handling, hidden_for, handling.latest_due()).map(|()| handling.not_before(hidden_for))
}

fn hidden_after_call(handling: &Handling<'_>, after: After, hidden_for: Duration) -> Result<(), Broken> {
    hidden_within(handling, hidden_for, &handling.after_call(after, hidden_for))
}

fn invariant<T: std::fmt::Debug>(checked: Result<T, Broken>) -> Invariant {
    let broken = checked.unwrap_err();
    assert_eq!(broken.event, Some(EventNumber(7)));
    broken.invariant
}

const RIGHT: Metadata = Metadata { attempt: 4, initial_timestamp: 1_767_225_600, origin_request_id: None };

#[test]
fn attempts_rise_by_one() {
    let check = |attempt| retried(&handling(&hourly(), &seen(2), at(20.0)), &Metadata { attempt, ..RIGHT });
    assert_eq!(check(4), Ok(()));
    for attempt in [1, 3, 5] {
        assert_eq!(invariant(check(attempt)), Invariant::AttemptsByOne);
    }
}

#[test]
fn retries_end_with_max_retries() {
    let check = |max_retries| {
        let policy = policy(Settings { max_retries, ..long_waits() });
        retried(&handling(&policy, &seen(2), at(20.0)), &RIGHT)
    };
    assert_eq!(check(4), Ok(()));
    assert_eq!(invariant(check(3)), Invariant::MaxRetries);
}

#[test]
fn no_retry_after_max_age() {
    let check = |now, first| {
        retried(&Handling { first_failure: at(first), ..handling(&hourly(), &seen(2), at(now)) }, &RIGHT)
    };
    assert_eq!(check(3_600.0, 0.0), Ok(()));
    assert_eq!(check(3_600.0, 0.9), Ok(()), "envelopes carry whole seconds");
    assert_eq!(invariant(check(3_600.001, 0.9)), Invariant::MaxAge);
    let later = &Metadata { initial_timestamp: RIGHT.initial_timestamp + 1, ..RIGHT };
    let reset = retried(&handling(&hourly(), &seen(2), at(20.0)), later);
    assert_eq!(invariant(reset), Invariant::MaxAge);
}

#[test]
fn payload_is_too_large_if_its_next_record_would_be() {
    let largest = 1_048_576 - 64 * 1_024;
    let checked = |bytes| {
        let seen = SeenMessage { bytes, ..seen(2) };
        let dead_lettered =
            dead_lettered_for(&handling(&hourly(), &seen, at(20.0)), Some(ReasonCode::PayloadTooLarge), None);
        let reinvoked = retried(&handling(&hourly(), &seen, at(20.0)), &RIGHT);
        (dead_lettered.map_err(|broken| broken.invariant), reinvoked.map_err(|broken| broken.invariant))
    };
    assert_eq!(checked(largest - 256), (Err(Invariant::TrueReasons), Ok(())));
    assert_eq!(checked(largest), (Ok(()), Ok(())), "it depends on the envelope");
    assert_eq!(checked(largest + 257), (Ok(()), Err(Invariant::NoneVanishes)));
}

#[test]
fn no_retry_before_the_shortest_wait() {
    for (jitter, earliest) in
        [(Jitter::Full, 1.0), (Jitter::Equal, 4.0), (Jitter::None, 8.0), (Jitter::Decorrelated, 1.0)]
    {
        let policy = policy(Settings { jitter, ..long_waits() });
        let check = |now| retried(&handling(&policy, &seen(2), at(now)), &RIGHT);
        assert_eq!(check(10.0 + earliest - 0.499), Ok(()), "{jitter}");
        assert_eq!(invariant(check(10.0 + earliest - 0.5)), Invariant::DueTime, "{jitter}");
    }
    // The one-hour wait is cut to end a minute before MAX_AGE.
    let slow = Settings { jitter: Jitter::None, base_backoff: 3_600, max_age: 3_600, ..long_waits() };
    let check = |now| retried(&handling(&policy(slow.clone()), &seen(2), at(now)), &RIGHT);
    assert_eq!(check(3_540.0), Ok(()));
    assert_eq!(invariant(check(3_539.5)), Invariant::DueTime);
    // With less than two minutes left, the wait is not cut.
    let late = SeenMessage { first_receive: at(3_490.0), ..seen(2) };
    let check = |now| retried(&handling(&hourly(), &late, at(now)), &RIGHT);
    assert_eq!(check(3_491.0), Ok(()));
    assert_eq!(invariant(check(3_490.5)), Invariant::DueTime);
}

#[test]
fn a_first_receive_has_served_no_backoff() {
    for (receive_count, is_first) in [(0, true), (1, true), (2, false)] {
        let checked = retried(&handling(&hourly(), &seen(receive_count), at(500.0)), &RIGHT);
        assert_eq!(checked.is_err_and(|broken| broken.invariant == Invariant::DueTime), is_first);
    }
}

#[test]
fn no_retry_before_its_hiding_ends() {
    let not_before = deferred(&handling(&hourly(), &seen(1), at(10.1)), Duration::from_secs(8)).unwrap();
    assert_eq!(not_before, at(17.0), "a second less than from the receive on: it was rounded up");
    let later = deferred(&handling(&hourly(), &seen(2), at(12.0)), Duration::from_secs(6)).unwrap();
    assert_eq!(later, at(17.0));
    let hidden = SeenMessage { not_before, ..seen(2) };
    let check = |now| retried(&handling(&hourly(), &hidden, at(now)), &RIGHT);
    assert_eq!(check(16.501), Ok(()));
    assert_eq!(invariant(check(16.5)), Invariant::DueTime);
    // Within the last minute before MAX_AGE, a later check may cut a wait that the first check did not cut.
    let hidden = SeenMessage { not_before: at(3_590.0), ..seen(2) };
    let check = |now| retried(&handling(&hourly(), &hidden, at(now)), &RIGHT);
    assert_eq!(check(3_540.0), Ok(()));
    assert_eq!(invariant(check(3_539.5)), Invariant::DueTime);
}

#[test]
fn no_wait_over_its_ceiling() {
    let check = |seen: SeenMessage, now, secs| {
        deferred(&handling(&hourly(), &seen, at(now)), Duration::from_secs(secs))
    };
    assert!(check(seen(1), 500.0, 8).is_ok(), "a first receive, by its count, at any time");
    assert_eq!(invariant(check(seen(1), 10.0, 9)), Invariant::LongestWait);
    assert!(check(seen(2), 12.0, 7).is_ok(), "from the first receive, rounded up to whole seconds");
    assert_eq!(invariant(check(seen(2), 12.1, 7)), Invariant::LongestWait);
    assert_eq!(invariant(check(seen(2), 18.0, 8)), Invariant::LongestWait, "counted from now");
    let behind = check(seen(2), 5.0, 13);
    assert!(behind.is_ok(), "a clock that is behind SQS's counts more to the same moment");
    let decorrelated = policy(Settings { jitter: Jitter::Decorrelated, ..long_waits() });
    let check = |secs| deferred(&handling(&decorrelated, &seen(1), at(10.0)), Duration::from_secs(secs));
    assert!(check(81).is_ok());
    assert_eq!(invariant(check(82)), Invariant::LongestWait);
}

/// The ceiling of the wait is 8 s, but the last retry is due earlier, 60 s before the event reaches `MAX_AGE`.
#[test]
fn no_wait_past_the_last_retry() {
    let late = SeenMessage { first_receive: at(3_535.0), ..seen(2) };
    let check = |hidden_for| {
        deferred(&handling(&hourly(), &late, at(3_536.0)), Duration::from_secs(hidden_for)).map(|_| ())
    };
    assert_eq!(check(5), Ok(()));
    assert_eq!(invariant(check(6)), Invariant::LongestWait);
}

fn asked_for(wait: Duration, written: Option<Timestamp>) -> Origin {
    Origin { attempt: THIRD, flaw: None, written, asked: Some(wait), error: None }
}

fn asked(seen: SeenMessage) -> SeenMessage {
    SeenMessage { origin: asked_for(Duration::from_secs(600), Some(at(9.0))), ..seen }
}

#[test]
fn requested_wait_ends_at_most_a_tenth_late() {
    let check = |seen: SeenMessage, now, until: f64| {
        deferred(&handling(&hourly(), &asked(seen), at(now)), Duration::from_secs_f64(until - now))
    };
    for receive_count in [1, 2] {
        assert!(check(seen(receive_count), 10.0, 670.0).is_ok(), "rounded up");
        assert_eq!(invariant(check(seen(receive_count), 10.0, 671.0)), Invariant::LongestWait);
    }
    let reinvoked = |now| retried(&handling(&hourly(), &asked(seen(2)), at(now)), &RIGHT);
    assert_eq!(reinvoked(608.501), Ok(()));
    assert_eq!(invariant(reinvoked(608.5)), Invariant::DueTime);
    let without_its_time = asked_for(Duration::from_secs(600), None).window(at(9.5));
    assert_eq!(without_its_time, Some(at(609.5)..=at(669.5)));
    let off = policy(Settings { directives: false, ..long_waits() });
    let drawn = deferred(&handling(&off, &asked(seen(2)), at(10.0)), Duration::from_secs(600));
    assert_eq!(invariant(drawn), Invariant::LongestWait);
}

#[test]
fn requested_wait_leaves_time_for_a_last_retry() {
    let check = |policy: &Policy, now, secs| {
        deferred(&handling(policy, &asked(seen(2)), at(now)), Duration::from_secs(secs))
    };
    let short = policy(Settings { max_age: 500, ..long_waits() });
    assert!(check(&short, 10.0, 441).is_ok(), "50 s before the end, rounded up");
    assert_eq!(invariant(check(&short, 10.0, 442)), Invariant::LongestWait);
    let check = |now| retried(&handling(&short, &asked(seen(2)), at(now)), &RIGHT);
    assert_eq!(check(450.0), Ok(()));
    assert_eq!(invariant(check(449.5)), Invariant::DueTime);
    // SQS would delete the message before an endless wait ends, so the wait is cut.
    let fortnight = policy(Settings { max_age: 1_209_600, ..long_waits() });
    let check = |now| {
        let seen = SeenMessage { origin: asked_for(Duration::MAX, None), ..seen(2) };
        retried(&handling(&fortnight, &seen, at(now)), &RIGHT)
    };
    let last = 9.0 + 13.5 * 86_400.0 - 60.0;
    assert_eq!(check(last), Ok(()));
    assert_eq!(invariant(check(last - 0.5)), Invariant::DueTime);
}

#[test]
fn no_wait_over_twelve_hours() {
    let longest = policy(Settings { base_backoff: 43_170, max_age: 1_209_600, ..long_waits() });
    for (receive_count, most) in [(1, 43_170), (2, 41_940)] {
        let check =
            |secs| deferred(&handling(&longest, &seen(receive_count), at(10.0)), Duration::from_secs(secs));
        assert!(check(most).is_ok());
        assert_eq!(invariant(check(most + 1)), Invariant::LongestWait);
    }
}

#[test]
fn unanswered_invoke_is_hidden_for_one_to_two_hours() {
    let day = policy(long_waits());
    let check = |now, secs| {
        hidden_after_call(&handling(&day, &seen(2), at(now)), After::Unanswered, Duration::from_secs(secs))
    };
    assert_eq!((check(20.0, 3_600), check(20.0, 7_200)), (Ok(()), Ok(())));
    assert_eq!(invariant(check(20.0, 3_599)), Invariant::SpacedInvokes);
    assert_eq!(invariant(check(20.0, 7_201)), Invariant::LongestWait);
    // The last retry comes a minute before MAX_AGE (86,400 s) is reached, and the `Invoke` call has taken 20 s.
    let near = 86_400.0 - 1_080.5;
    assert_eq!(check(near, 1_000), Ok(()));
    assert_eq!(invariant(check(near, 999)), Invariant::SpacedInvokes);
    assert_eq!(invariant(check(near, 1_001)), Invariant::LongestWait);
    assert_eq!(check(86_400.0 - 139.0, 3_600), Ok(()), "too late for a last retry");
}

#[test]
fn a_failed_action_is_hidden_by_its_receive_count() {
    let check = |count, secs| {
        hidden_after_call(
            &handling(&hourly(), &seen(count), at(20.0)),
            After::Failure,
            Duration::from_secs(secs),
        )
    };
    assert_eq!((check(3, 8), check(100, 3_600)), (Ok(()), Ok(())));
    assert_eq!(invariant(check(3, 9)), Invariant::LongestWait);
    assert_eq!(invariant(check(100, 3_601)), Invariant::LongestWait);
}

#[test]
fn reasons_are_true() {
    let check = |seen: &SeenMessage, now, reason| {
        dead_lettered_for(&handling(&hourly(), seen, at(now)), Some(reason), None)
    };
    let flawed = |flaw| SeenMessage { origin: Origin { flaw: Some(flaw), ..seen(1).origin }, ..seen(1) };
    let spent = SeenMessage {
        origin: Origin { attempt: Attempt { number: 5, ..THIRD }, ..seen(1).origin },
        ..seen(1)
    };
    for (right, now, reason, wrong, then) in [
        (&spent, 20.0, ReasonCode::MaxRetries, &seen(1), 20.0),
        (&seen(2), 3_600.1, ReasonCode::MaxAge, &seen(2), 3_600.0),
        // With less than two minutes left, no last retry fits.
        (&seen(1), 3_480.1, ReasonCode::MaxAge, &seen(1), 3_480.0),
        (&flawed(Flaw::Unlisted), 20.0, ReasonCode::TargetNotAllowed, &seen(1), 20.0),
        (&flawed(Flaw::Unreadable), 20.0, ReasonCode::MalformedRecord, &seen(1), 20.0),
    ] {
        assert_eq!(check(right, now, reason), Ok(()), "{reason}");
        assert_eq!(invariant(check(wrong, then, reason)), Invariant::TrueReasons, "{reason}");
    }
    for never in [ReasonCode::TargetNotFound, ReasonCode::TargetRefused, ReasonCode::MalformedEnvelope] {
        assert_eq!(invariant(check(&spent, 9_999.0, never)), Invariant::TrueReasons, "{never}");
    }
}

/// Returns the pauses that a handler reads at `known_at`.
fn paused(known_at: f64) -> KnownPauses {
    let [from, until] = [600.0, 1_600.0].map(|secs| at(secs).as_secs());
    let mut written = WrittenValues::default();
    for (now, until) in [(600.0, "null".to_owned()), (1_600.0, until.to_string())] {
        let pause = format!(r#"{{"target":"*","from":{from},"until":{until},"spread":300}}"#);
        let text = format!(r#"{{"v":1,"pauses":[{pause}]}}"#);
        write(&mut written, &text, LongestWaits::default(), at(now)).unwrap();
    }
    written.known_at(at(known_at))
}

#[test]
fn paused_time_does_not_age_an_event() {
    let end = 3_600.0 + 1_000.0 + 1_344.0 + 37.5;
    let check = |known: &KnownPauses, now| {
        dead_lettered_for(
            &Handling { known, ..handling(&hourly(), &seen(2), at(now)) },
            Some(ReasonCode::MaxAge),
            None,
        )
    };
    assert_eq!(check(&paused(1_600.0), end + 0.1), Ok(()));
    assert_eq!(invariant(check(&paused(1_600.0), end)), Invariant::PauseEndsNothing);
    assert_eq!(invariant(check(&paused(700.0), 86_400.0)), Invariant::PauseEndsNothing, "it is open");
    assert_eq!(invariant(check(&paused(700.0), 3_600.0)), Invariant::TrueReasons, "nor without the pause");
    assert_eq!(check(&paused(599.0), 3_600.1), Ok(()), "a handler that does not know of it");
    assert_eq!(invariant(check(&KnownPauses::NOTHING, 3_600.1)), Invariant::PauseEndsNothing);
    let reinvoked = |now| {
        retried(&Handling { known: &paused(1_600.0), ..handling(&hourly(), &seen(2), at(now)) }, &RIGHT)
    };
    assert_eq!(reinvoked(end), Ok(()));
    assert_eq!(invariant(reinvoked(end + 0.1)), Invariant::MaxAge);
}

#[test]
fn wait_may_end_within_an_ended_pauses_spread() {
    let check = |known_at, now: f64, until: f64| {
        let known = &paused(known_at);
        deferred(
            &Handling { known, ..handling(&hourly(), &seen(2), at(now)) },
            Duration::from_secs_f64(until - now),
        )
    };
    assert!(check(1_600.0, 1_700.0, 1_901.0).is_ok(), "rounded up");
    assert_eq!(invariant(check(1_600.0, 1_700.0, 1_902.0)), Invariant::LongestWait);
    assert_eq!(invariant(check(1_599.0, 1_700.0, 1_800.0)), Invariant::LongestWait, "it is not over");
}

#[test]
fn held_or_unknown_message_is_hidden_within_bounds() {
    let policy = hourly();
    let kept = |known: &KnownPauses, now, receives, wait| {
        let seen = seen(receives);
        let handling = Handling { known, ..handling(&policy, &seen, at(now)) };
        handling.longest_keep(Duration::from_secs(wait)).is_some()
    };
    let open = paused(700.0);
    assert!(kept(&open, 700.0, 2, 1_344) && !kept(&open, 700.0, 2, 1_345));
    assert!(!kept(&open, 700.0, 1, 1), "not on a first receive");
    assert!(!kept(&paused(1_600.0), 1_600.0, 2, 1), "it is over");
    assert!(kept(&KnownPauses::NOTHING, 700.0, 3, 8) && !kept(&KnownPauses::NOTHING, 700.0, 3, 9));
    assert!(kept(&KnownPauses::NOTHING, 700.0, 1, 2), "even on a first receive");
}

#[test]
fn cancelled_event_is_not_invoked() {
    let cancel = |until: f64| {
        let (at, until) = (at(11.0).as_secs(), at(until).as_secs());
        format!(r#"{{"v":1,"pauses":[],"cancels":[{{"target":"*","at":{at},"until":{until}}}]}}"#)
    };
    let check = |until, known_at| {
        let mut written = WrittenValues::default();
        written.add(Document::read(&cancel(until)).unwrap(), at(11.0));
        let known = &written.known_at(at(known_at));
        retried(&Handling { known, ..handling(&hourly(), &seen(2), at(20.0)) }, &RIGHT)
    };
    assert_eq!(invariant(check(20.0, 11.0)), Invariant::CancelledNotInvoked);
    assert_eq!(check(19.0, 11.0), Ok(()), "the request has ended");
    assert_eq!(check(20.0, 10.0), Ok(()), "the handler does not know of it");
}

#[test]
fn recalls_only_shorten() {
    let recall = |until, after_call, excused| {
        recalls_shorten(EventNumber(7), at(10.0), [at(60.0), at(until)], at(after_call), excused)
    };
    let check = |until, after_call| recall(until, after_call, false);
    assert_eq!((check(10.0, 10.0), check(60.999, 0.0)), (Ok(()), Ok(())), "rounded up");
    assert_eq!(invariant(check(61.0, 0.0)), Invariant::RecallsShorten, "it is longer");
    assert_eq!(invariant(check(59.0, 60.0)), Invariant::RecallsShorten, "within the hour of a call");
    assert_eq!(check(60.0, 60.0), Ok(()));
    assert_eq!(recall(59.0, 60.0, true), Ok(()), "a fault excuses it");
}

#[test]
fn more_hops_than_the_length_of_the_wait() {
    let seconds = Duration::from_secs;
    let mut hops = Hops::default();
    let mut check = |now, delay, excuses| {
        hops.add(at(now));
        hops.excused += excuses;
        fewest_hops(EventNumber(7), &hops, at(now), delay)
    };
    assert_eq!(check(0.0, seconds(451), 0), Ok(()));
    assert_eq!(check(451.0, seconds(450), 0), Ok(()));
    assert_eq!(invariant(check(901.0, seconds(899), 0)), Invariant::FewestHops, "three in 1,800 s");
    assert_eq!(check(901.0, seconds(1), 2), Ok(()), "four, two of them excused");
    for refused in [0, 1_500, 901_000].map(Duration::from_millis) {
        let mut hops = Hops::default();
        hops.add(at(0.0));
        let checked = fewest_hops(EventNumber(7), &hops, at(0.0), refused);
        assert_eq!(invariant(checked), Invariant::FewestHops, "{refused:?}");
    }
}

#[test]
fn duplicates_need_an_excuse_each() {
    let check = |times, excuses| explained_duplicates(EventNumber(7), times, excuses);
    assert_eq!((check(1, 0), check(2, 1)), (Ok(()), Ok(())));
    assert_eq!(invariant(check(2, 0)), Invariant::ExplainedDuplicates);
    assert_eq!(invariant(check(3, 1)), Invariant::ExplainedDuplicates);
}

#[test]
fn failed_command_breaks_an_invariant() {
    assert_eq!(working_commands("pause failed".into(), true), Ok(()));
    let broken = working_commands("pause failed".into(), false).unwrap_err();
    assert_eq!((broken.invariant, &*broken.detail), (Invariant::WorkingCommands, "pause failed"));
}

fn in_flight_limit(hide_up_to: HideUpTo, scenario: &Scenario) -> (usize, InFlightEffect) {
    let settings = Settings { hide_up_to, maximum_concurrency: 5, ..long_waits() };
    most_in_flight(&policy(settings), scenario)
}

fn broken((most, room): (usize, InFlightEffect), in_flight: usize, left_visible: bool) -> Option<Invariant> {
    let checked = bounded_in_flight(in_flight, most, room).and(no_stall(in_flight, left_visible, room));
    checked.err().map(|broken| broken.invariant)
}

#[test]
fn in_flight_is_bounded_and_nothing_stalls() {
    let limit = in_flight_limit(HideUpTo::UpTo(100), &Scenario::default());
    assert_eq!((broken(limit, 250, false), broken(limit, 0, false)), (None, None));
    assert_eq!(broken(limit, 251, false), Some(Invariant::BoundedInFlight));
    assert_eq!(broken(limit, 250, true), Some(Invariant::NoStall));
}

#[test]
fn faults_that_keep_messages_in_flight_lift_the_bound() {
    let with = |fault| {
        let faults = Faults::default().with(fault, Strikes::always(0.1));
        broken(in_flight_limit(HideUpTo::UpTo(100), &Scenario { faults, ..Scenario::default() }), 251, true)
    };
    assert_eq!(with(Fault::InvokeThrottled), Some(Invariant::BoundedInFlight));
    for fault in [Fault::PollerThrottled, Fault::MoveRefused] {
        assert_eq!(with(fault), Some(Invariant::NoStall), "{fault}");
    }
    for fault in [Fault::InFlightLimit, Fault::HandlerOutage, Fault::CountStale] {
        assert_eq!(with(fault), None, "{fault}");
    }
    assert_eq!(broken(in_flight_limit(HideUpTo::Always, &Scenario::default()), 100_000, true), None);
    let small = Scenario { in_flight_limit: 249, ..Scenario::default() };
    assert_eq!(broken(in_flight_limit(HideUpTo::UpTo(100), &small), 251, true), None);
}
