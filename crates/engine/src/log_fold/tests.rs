use std::hash::{BuildHasherDefault, DefaultHasher};

use proptest::prelude::*;
use proptest::sample::{Index, subsequence};

use super::*;
use crate::dead_letter::{Reason, ReasonCode};
use crate::log_line::tests::{event, happenings, line};

type Fold = LogFold<BuildHasherDefault<DefaultHasher>>;

fn at(second: u64) -> Timestamp {
    Timestamp::from_secs(second)
}

fn folded<'l>(lines: impl IntoIterator<Item = &'l LogLine<'static>>) -> Fold {
    let mut fold = Fold::default();
    lines.into_iter().for_each(|line| fold.take(line));
    fold
}

fn said(message: usize, second: u64, what: What) -> LogLine<'static> {
    let mut line = line(what);
    line.timestamp = at(second);
    line.event.as_mut().unwrap().request_id = Some(format!("r-{message}").into());
    line
}

fn defers(second: u64, due: u64) -> LogLine<'static> {
    said(
        0,
        second,
        What::Defer { due: at(due), due_by: DueBy::Policy, delay: 60, early: None, failure: None },
    )
}

fn reinvoked() -> What {
    What::Reinvoke { due: at(112), invoke_request_id: None, early: None }
}

fn waits_for(lines: &[LogLine<'static>]) -> Vec<WaitsFor> {
    folded(lines).waiting().map(|message| message.waits_for).collect()
}

#[test]
fn a_message_waits_until_a_line_settles_it() {
    let backoff = WaitsFor::Due { due: at(112), by: DueBy::Policy };
    assert_eq!(waits_for(&[defers(110, 112)]), [backoff]);
    let dead_lettered = What::DeadLetter { reason: Reason::new(ReasonCode::MaxAge, "old"), due: None };
    for end in [reinvoked(), dead_lettered].map(|end| said(0, 112, end)) {
        assert_eq!(waits_for(&[defers(110, 112), end.clone()]), []);
        // The batch that deferred the message ended later than the batch that settled it.
        assert_eq!(waits_for(&[end, defers(115, 112)]), []);
    }
}

#[test]
fn each_failure_is_its_own_message() {
    let changed = |change: fn(&mut LoggedEvent<'static>)| {
        let mut line = defers(120, 130);
        change(line.event.as_mut().unwrap());
        let end = said(0, 112, reinvoked());
        waits_for(&[defers(110, 112), end, line])
    };
    let waits = [WaitsFor::Due { due: at(130), by: DueBy::Policy }];
    assert_eq!(changed(|event| event.retry += 1), waits);
    assert_eq!(changed(|event| event.request_id = Some("r-9".into())), waits, "a copy of the event");
    assert_eq!(changed(|event| event.first_failure = at(500)), waits, "redriven");
    assert_eq!(changed(|event| event.target = "arn:g".into()), waits, "redriven to another function");
    assert_eq!(changed(|event| event.error_type = None), []);
}

#[test]
fn the_latest_line_sets_the_wait() {
    let keep = |cause, delay, not_before| What::Keep {
        cause,
        delay,
        not_before,
        reason: None,
        due: None,
        failure: None,
    };
    let next_try = |cause, at: Option<Timestamp>| WaitsFor::NextTry { cause, at };
    let defer = |due_by| What::Defer { due: at(910), due_by, delay: 60, early: None, failure: None };
    let hold = What::Hold { due: at(112), delay: 1_344, not_before: None, failure: None };
    for (last, expected) in [
        (defer(DueBy::RetryAfter), WaitsFor::Due { due: at(910), by: DueBy::RetryAfter }),
        (keep(Cause::Unanswered, Some(4_000), None), next_try(Cause::Unanswered, Some(at(4_200)))),
        (keep(Cause::Refused, Some(7), Some(at(900))), next_try(Cause::Refused, Some(at(900)))),
        (keep(Cause::DeadLetterNotSent, None, None), next_try(Cause::DeadLetterNotSent, None)),
        (keep(Cause::PausesUnknown, Some(7), None), next_try(Cause::PausesUnknown, Some(at(207)))),
        (hold, WaitsFor::Resume),
    ] {
        let lines = [said(0, 200, last), defers(110, 909)];
        assert_eq!(waits_for(&lines), [expected], "in either order");
    }
    let fold = folded(&[defers(110, 909)]);
    assert_eq!(fold.waiting().next().unwrap().next_check(), at(170));
}

#[test]
fn a_line_without_an_event_changes_nothing() {
    let unparsed = LogLine { event: None, ..defers(110, 112) };
    assert_eq!(waits_for(&[unparsed]), []);
}

#[test]
fn too_many_functions_and_errors_are_one_kind() {
    let mut fold = Fold::default();
    for n in 0..MOST_KINDS + 5 {
        let mut line = said(n, 110, defers(110, 112).what.into_owned());
        line.event.as_mut().unwrap().error_type = Some(format!("E-{n}").into());
        fold.take(&line);
    }
    assert_eq!(fold.kinds().len(), MOST_KINDS + 1);
    assert_eq!(fold.kinds().last(), Some(&MessageKind::default()));
    assert_eq!(fold.waiting().filter(|it| it.kind as usize == MOST_KINDS).count(), 5);
}

#[test]
fn settled_messages_take_little_room() {
    let mut fold = Fold::default();
    for n in 0..50_000 {
        fold.take(&said(n, 110, defers(110, 112).what.into_owned()));
        fold.take(&said(n, 112, reinvoked()));
    }
    assert_eq!((fold.waiting().len(), fold.settled.len()), (0, 50_000));
    assert!(size_of::<WaitingMessage>() <= 80, "{}", size_of::<WaitingMessage>());
}

/// Computes the expected state from all lines at once, whereas the fold takes one line at a time.
fn judged(lines: &[LogLine<'static>], message: usize) -> Option<Result<WaitsFor, ()>> {
    let id = format!("r-{message}");
    let about = lines.iter().filter(|line| {
        line.event.as_ref().is_some_and(|event| event.request_id.as_deref() == Some(id.as_str()))
    });
    let about: Vec<_> = about.collect();
    if about.iter().any(|line| line.what.settles()) {
        return Some(Err(()));
    }
    let last = about.iter().max_by_key(|line| line.timestamp)?;
    WaitsFor::of(last).map(|(waits_for, _)| Ok(waits_for))
}

fn state(fold: &Fold, message: usize) -> Option<Result<WaitsFor, ()>> {
    let event = LoggedEvent { request_id: Some(format!("r-{message}").into()), ..event() };
    fold.state_of(&event).map(|state| match state {
        MessageState::Waiting(waiting) => Ok(waiting.waits_for),
        MessageState::Settled => Err(()),
    })
}

const MESSAGES: usize = 4;

/// Log lines about a few messages, each with a different time.
fn some_lines() -> impl Strategy<Value = Vec<LogLine<'static>>> {
    let line = (0..MESSAGES, any::<Index>(), any::<Index>(), 0..5_000u64);
    prop::collection::vec(line, 0..40).prop_map(|lines| {
        let causes = [Cause::Refused, Cause::Unanswered, Cause::PausesUnknown];
        let lines = lines.into_iter().enumerate().map(|(n, (message, what, which, seconds))| {
            let mut what = happenings()[what.index(5)].clone();
            match &mut what {
                What::Defer { due, .. } => *due = at(seconds),
                What::Keep { cause, not_before, .. } => {
                    (*cause, *not_before) = (causes[which.index(3)], Some(at(seconds)));
                }
                _ => {}
            }
            said(message, n as u64, what)
        });
        lines.collect()
    })
}

proptest! {
    #[test]
    fn order_and_repeats_do_not_matter(
        (lines, shuffled) in some_lines().prop_flat_map(|lines| {
            let twice = [lines.clone(), lines.clone()].concat();
            (Just(lines), Just(twice).prop_shuffle())
        }),
    ) {
        let (fold, read) = (folded(&lines), folded(shuffled.iter().map(|line| {
            let text = serde_json::to_string(line).unwrap();
            &*Box::leak(Box::new(LogLine::read(&text).unwrap()))
        })));
        for message in 0..MESSAGES {
            prop_assert_eq!(state(&fold, message), judged(&lines, message));
            prop_assert_eq!(state(&read, message), judged(&lines, message));
        }
        prop_assert_eq!(fold.waiting().len(), read.waiting().len());
    }

    #[test]
    fn a_cut_log_settles_no_waiting_message(
        (lines, cut) in some_lines().prop_flat_map(|lines| {
            let len = lines.len();
            (Just(lines.clone()), subsequence(lines, 0..=len))
        }),
    ) {
        let (fold, cut) = (folded(&lines), folded(&cut));
        for message in 0..MESSAGES {
            match (state(&fold, message), state(&cut, message)) {
                (Some(Ok(_)), Some(cut)) => prop_assert!(cut.is_ok(), "it waits, and the cut log settles it"),
                (None, cut) => prop_assert_eq!(cut, None),
                _ => {}
            }
        }
    }

    #[test]
    fn lines_of_the_same_time_count_in_any_order(
        (lines, shuffled) in some_lines().prop_flat_map(|mut lines| {
            lines.iter_mut().for_each(|line| line.timestamp = at(line.timestamp.as_secs() / 10));
            (Just(lines.clone()), Just(lines).prop_shuffle())
        }),
    ) {
        let (fold, shuffled) = (folded(&lines), folded(&shuffled));
        for message in 0..MESSAGES {
            prop_assert_eq!(state(&fold, message), state(&shuffled, message));
        }
    }
}
