//! What an environment knows, and when it reads.

use super::*;
use crate::account::CallFailure;
use crate::known_pauses::KnownPauses;
use crate::report::PausesRead;
use crate::{Policy, Settings};

fn of(maximum_concurrency: u64) -> KnownPauses {
    KnownPauses::of(&Policy::new(Settings { maximum_concurrency, ..Settings::default() }).unwrap())
}

fn failure() -> CallFailure {
    CallFailure { cause: "throttled".into(), remedy: None }
}

fn text(pauses: &[Pause]) -> Option<String> {
    Some(Pauses::of(pauses.to_vec()).write())
}

/// Seconds from a read at `at(0)` until the next is due, in tenths.
fn next_read(known: &KnownPauses) -> u64 {
    let tenth = |tenth| Timestamp::from_millis(at(0).as_millis() + 100 * tenth);
    (0..10_000).find(|&tenths| known.is_due(tenth(tenths))).expect("it reads again")
}

#[test]
fn a_handler_without_a_parameter_never_reads_and_knows_that_nothing_is_paused() {
    let none = KnownPauses::none();
    assert!(!none.is_due(at(0)) && none.known() == Some(&Pauses::default()));
}

#[test]
fn a_parameter_that_is_not_there_holds_no_pauses() {
    let mut known = of(10);
    assert_eq!((known.is_due(at(0)), known.known()), (true, None));
    assert_eq!(known.read(Ok(None), at(0), "m-1"), PausesRead::Known { long: Vec::new() });
    assert_eq!(known.known(), Some(&Pauses::default()));
}

#[test]
fn the_next_read_comes_after_the_interval_or_up_to_a_quarter_more() {
    for (environments, interval) in [(2, 300), (100, 300), (101, 303), (1_000, 3_000)] {
        let next: Vec<u64> = (0..200)
            .map(|message| {
                let mut known = of(environments);
                known.read(Ok(None), at(0), &format!("m-{message}"));
                next_read(&known)
            })
            .collect();
        let (first, last) = (next.iter().min().unwrap(), next.iter().max().unwrap());
        assert!(*first >= interval && *last <= interval + interval / 4 + 1, "{first} to {last}");
        assert!(last - first > interval / 5, "environments drift apart: {first} to {last}");
    }
}

#[test]
fn a_failure_leaves_what_is_known_until_the_next_read() {
    let mut known = of(10);
    known.read(Ok(text(&[pause(ORDERS, 0, None)])), at(0), "m-1");
    for answer in [Err(failure()), Ok(Some("garbage".into()))] {
        let PausesRead::AsBefore(problem) = known.read(answer.clone(), at(0), "m-1") else {
            panic!("{answer:?}")
        };
        assert_eq!(
            problem.remedy.is_some(),
            answer.is_ok(),
            "an operator can repair a garbled one: {problem:?}"
        );
        assert!(known.known().unwrap().of_function(ORDERS).next().is_some() && next_read(&known) >= 300);
    }
    known.read(Ok(None), at(0), "m-1");
    assert_eq!(known.known(), Some(&Pauses::default()), "the parameter was deleted");
}

#[test]
fn while_nothing_was_ever_read_each_batch_reads() {
    let mut known = of(10);
    for answer in [Err(failure()), Ok(Some("{}".into()))] {
        assert!(matches!(known.read(answer, at(0), "m-1"), PausesRead::Unknown(_)));
        assert!(known.is_due(at(0)) && known.known().is_none());
    }
}

#[test]
fn a_pause_that_is_open_for_over_a_day_is_named() {
    let day = 86_400;
    let all = [pause(ORDERS, 0, None), pause("*", 1, None), pause(PAYMENTS, 0, Some(day))];
    let long = |now| match of(10).read(Ok(text(&all)), at(now), "m-1") {
        PausesRead::Known { long } => long,
        other => panic!("{other:?}"),
    };
    assert_eq!((long(day), long(day + 1)), (vec![], vec![all[0].clone()]));
}
