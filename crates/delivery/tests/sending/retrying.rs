//! Which waits, how often, and what goes again: entries that failed, and the halves of a call refused whole.

use std::time::Duration;

use comeback_delivery::limits::Limits;
use comeback_delivery::{Cause, ErrorKind, Retries};
use proptest::prelude::*;

use crate::service::{Fate, ROOMY, Service, complete, entries, error};

const PASSING: Fate = Fate::Error(ErrorKind::Transient);

fn waits(retries: Retries, script: &[Fate]) -> (Vec<u128>, usize) {
    let service = Service::new(script);
    let _: Result<_, _> = complete(service.sender().retries(retries).send(entries([None; 4])));
    (service.waits.borrow().iter().map(Duration::as_millis).collect(), service.sent().len())
}

#[test]
fn waits_are_as_documented() {
    assert_eq!(waits(Retries::linear(), &[PASSING]), (vec![100, 200, 300, 400, 500], 6));
    assert_eq!(waits(Retries::squared(), &[PASSING]), (vec![100, 400, 900, 1_600, 2_500], 6));
    assert_eq!(waits(Retries::none(), &[PASSING]), (vec![], 1));
    let listed = Retries::of([7, 7].map(Duration::from_millis));
    assert_eq!(waits(listed, &[PASSING]), (vec![7, 7], 3));
}

#[test]
fn exponential_waits_are_drawn_under_their_ceilings() {
    for seed in 0..100 {
        let (drawn, calls) = waits(Retries::seeded(seed), &[PASSING]);
        assert_eq!(calls, 6);
        for (wait, ceiling) in drawn.into_iter().zip([100, 200, 400, 800, 1_600]) {
            assert!((1..=ceiling).contains(&wait), "{wait} under {ceiling}");
        }
    }
    let again = |seed| waits(Retries::seeded(seed), &[PASSING]).0;
    assert_eq!(again(7), again(7));
    assert_ne!(again(7), again(8));
}

#[test]
fn by_default_no_two_senders_wait_alike() {
    let drawn: Vec<_> = (0..4).map(|_| waits(Retries::default(), &[PASSING])).collect();
    for (waits, calls) in &drawn {
        assert_eq!(*calls, 6);
        let within = waits.iter().zip([100, 200, 400, 800, 1_600]);
        assert!(within.clone().all(|(wait, ceiling)| (1..=ceiling).contains(wait)), "{waits:?}");
    }
    assert!(drawn.windows(2).any(|pair| pair[0] != pair[1]), "{drawn:?}");
}

#[test]
fn batches_that_fail_at_once_draw_apart() {
    let service = Service { limits: Limits { entries: 1, ..ROOMY }, polls: 1, ..Service::new([PASSING]) };
    complete(service.sender().retries(Retries::seeded(7)).send(entries([None; 4]))).unwrap_err();
    let first: Vec<_> = service.waits.borrow()[..4].to_vec();
    assert!(first.windows(2).any(|pair| pair[0] != pair[1]), "{first:?}");
}

#[test]
fn the_last_error_is_the_cause() {
    let script = [PASSING, Fate::Error(ErrorKind::Throttled)];
    let service = Service::new(script);
    let undelivered =
        complete(service.sender().retries(Retries::of([Duration::ZERO])).send(entries([None]))).unwrap_err();
    assert_eq!(undelivered.entries[0].cause, Cause::Exhausted(error(ErrorKind::Throttled)));
    assert_eq!((undelivered.entries[0].calls, undelivered.retries), (2, 1));
    assert_eq!(
        undelivered.to_string(),
        "1 of 1 entry was not delivered; the first, number 0: no retries left: Code: message"
    );
}

#[test]
fn what_is_logged_holds_no_entry() {
    let service = Service::new([Fate::Error(ErrorKind::Refused)]);
    let undelivered = complete(service.sender().send(entries([None]))).unwrap_err();
    let (debug, text) = (format!("{undelivered:?}"), undelivered.to_string());
    assert!(!debug.contains("entry:") && !debug.contains("size"), "{debug}");
    assert!(debug.contains("index: 0") && text.contains("number 0"), "{debug} {text}");
}

fn refusing(bad: &[usize]) -> Service {
    Service { bad: (ErrorKind::Refused, bad.to_vec()), ..Service::new([Fate::Ok]) }
}

#[test]
fn a_call_refused_for_one_entry_goes_again_in_halves_down_to_that_one() {
    for kind in [ErrorKind::Refused, ErrorKind::TooLarge] {
        let service = Service { bad: (kind, vec![2]), ..Service::new([Fate::Ok]) };
        let undelivered =
            complete(service.sender().retries(Retries::none()).send(entries([None; 8]))).unwrap_err();
        let calls = [vec![0, 1, 2, 3, 4, 5, 6, 7], vec![0, 1, 2, 3], vec![4, 5, 6, 7]];
        let calls = [&calls[..], &[vec![0, 1], vec![2, 3], vec![2], vec![3]]].concat();
        assert_eq!(service.sent(), calls);
        assert!(service.waits.borrow().is_empty(), "halves wait for nothing, and use up no retry");
        assert_eq!((undelivered.delivered.len(), undelivered.calls, undelivered.retries), (7, 7, 6));
        let [left] = undelivered.entries.as_slice() else { panic!("{undelivered:?}") };
        assert_eq!((left.index, left.calls, &left.cause), (2, 4, &Cause::Refused(error(kind))));
    }
}

#[test]
fn other_batches_go_before_the_halves() {
    let limits = Limits { entries: 2, ..ROOMY };
    let service = Service { limits, ..refusing(&[0]) };
    complete(service.sender().concurrency(1).send(entries([None; 4]))).unwrap_err();
    assert_eq!(service.sent(), [vec![0, 1], vec![2, 3], vec![0], vec![1]]);
}

#[test]
fn past_the_deadline_no_half_goes() {
    let service = refusing(&[0]);
    // A call begins and ends: two are over.
    let past_deadline = || service.clock.get() >= 4;
    let undelivered =
        complete(service.sender().concurrency(1).send_while(entries([None; 4]), || !past_deadline()))
            .unwrap_err();
    assert_eq!(service.sent(), [vec![0, 1, 2, 3], vec![0, 1]]);
    let stopped = Err(Cause::Stopped(Some(error(ErrorKind::Refused))));
    assert_eq!(undelivered.by_entry(), vec![stopped; 4]);
}

proptest! {
    #[test]
    fn every_other_entry_gets_through_in_few_calls(
        (count, bad) in (1..40usize).prop_flat_map(|count| (Just(count), 0..count)),
        concurrency in 1..4usize,
    ) {
        let service = Service { limits: Limits { entries: 40, ..ROOMY }, polls: 1, ..refusing(&[bad]) };
        let entries = entries([None; 40])[..count].to_vec();
        let undelivered = complete(service.sender().concurrency(concurrency).send(entries)).unwrap_err();
        let left: Vec<usize> = undelivered.entries.iter().map(|left| left.index).collect();
        prop_assert_eq!(left, [bad]);
        let halvings = count.next_power_of_two().ilog2() as usize;
        prop_assert!(service.sent().len() <= 1 + 2 * halvings, "{:?}", service.sent());
    }

    #[test]
    fn whichever_entries_are_bad(count in 1..40usize, bad in prop::collection::vec(0..40usize, 0..40)) {
        let service = Service { limits: Limits { entries: 40, ..ROOMY }, ..refusing(&bad) };
        let outcome = complete(service.sender().send(entries([None; 40])[..count].to_vec()));
        let left: Vec<usize> = outcome.err().map_or(vec![], |it| it.entries.iter().map(|it| it.index).collect());
        let expected: Vec<usize> = (0..count).filter(|index| bad.contains(index)).collect();
        prop_assert_eq!(left, expected);
        prop_assert!(service.sent().len() < 2 * count, "{:?}", service.sent());
    }
}
