//! Tests of retries: their number, the waits before them, and which entries are sent again.

use std::time::Duration;

use comeback_delivery::limits::Limits;
use comeback_delivery::{EntryError, ErrorKind, Retries};
use proptest::prelude::*;

use crate::service::{Entry, Fate, ROOMY, Service, complete, entries, error};

const PASSING: Fate = Fate::Error(ErrorKind::Transient);

fn waits(retries: Retries, script: &[Fate]) -> (Vec<u128>, usize) {
    let service = Service::new(script);
    let _: Result<_, _> = complete(service.sender().retries(retries).send(entries([None; 4])));
    (service.waits.borrow().iter().map(Duration::as_millis).collect(), service.sent().len())
}

#[test]
fn waits_are_as_documented() {
    assert_eq!(waits(Retries::none(), &[PASSING]), (vec![], 1));
    let listed = Retries::of([7, 7].map(Duration::from_millis));
    assert_eq!(waits(listed, &[PASSING]), (vec![7, 7], 3));
}

#[test]
fn default_waits_differ_between_senders() {
    let drawn: Vec<_> = (0..100).map(|_| waits(Retries::default(), &[PASSING])).collect();
    for (waits, calls) in &drawn {
        assert_eq!(*calls, 6);
        let within = waits.iter().zip([100, 200, 400, 800, 1_600]);
        assert!(within.clone().all(|(wait, ceiling)| (1..=ceiling).contains(wait)), "{waits:?}");
    }
    assert!(drawn.windows(2).any(|pair| pair[0] != pair[1]), "{drawn:?}");
}

#[test]
fn concurrent_failures_draw_different_waits() {
    let service = Service { limits: Limits { entries: 1, ..ROOMY }, polls: 1, ..Service::new([PASSING]) };
    complete(service.sender().send(entries([None; 4]))).unwrap_err();
    let first: Vec<_> = service.waits.borrow()[..4].to_vec();
    assert!(first.windows(2).any(|pair| pair[0] != pair[1]), "{first:?}");
}

#[test]
fn the_last_error_is_the_cause() {
    let script = [PASSING, Fate::Error(ErrorKind::Throttled)];
    let service = Service::new(script);
    let undelivered =
        complete(service.sender().retries(Retries::of([Duration::ZERO])).send(entries([None]))).unwrap_err();
    assert_eq!(undelivered.entries[0].cause, EntryError::Exhausted(error(ErrorKind::Throttled)));
    assert_eq!((undelivered.entries[0].calls, undelivered.retries), (2, 1));
    assert_eq!(
        undelivered.to_string(),
        "1 of 1 entry was not delivered; the first, number 0: no retries left: Code: message"
    );
}

#[test]
fn logs_hold_no_entry() {
    let service = Service::new([Fate::Error(ErrorKind::Refused)]);
    let undelivered = complete(service.sender().send(entries([None]))).unwrap_err();
    let (debug, text) = (format!("{undelivered:?}"), undelivered.to_string());
    assert!(!debug.contains("entry:") && !debug.contains("size"), "{debug}");
    assert!(debug.contains("index: 0") && text.contains("number 0"), "{debug} {text}");
}

const THROTTLED: Fate = Fate::Error(ErrorKind::Throttled);

#[test]
fn partial_throttling_uses_up_no_retry() {
    // The service accepts the first entry of each call and throttles the others, until one entry is left.
    let taking_one = [Fate::Ok, THROTTLED, THROTTLED, Fate::Ok, THROTTLED];
    let service = Service::new([&taking_one[..], &[THROTTLED]].concat());
    let sender = service.sender().retries(Retries::of([Duration::ZERO; 2]));
    let undelivered = complete(sender.send(entries([None; 3]))).unwrap_err();
    assert_eq!(service.sent(), [vec![0, 1, 2], vec![1], vec![2], vec![2], vec![2]]);
    assert_eq!(undelivered.entries[0].cause, EntryError::Exhausted(error(ErrorKind::Throttled)));
}

#[test]
fn no_retries_means_no_retry_of_throttled() {
    let service = Service::new([Fate::Ok, THROTTLED]);
    complete(service.sender().retries(Retries::none()).send(entries([None; 2]))).unwrap_err();
    assert_eq!(service.sent(), [[0, 1]]);
}

fn many(entries: usize) -> Vec<Entry> {
    (0..entries).map(|id| Entry { id, size: 1, lane: None }).collect()
}

#[test]
fn general_mistake_ends_it_in_few_calls() {
    for (limit, concurrency) in [(10, 4), (10, 1), (25, 4), (500, 4), (1_000, 1)] {
        let limits = Limits { entries: limit, bytes: 10_000, entry_bytes: 10 };
        let all: Vec<usize> = (0..1_000).collect();
        let service = Service { limits, polls: 2, ..refusing(&all) };
        let sender = service.sender().concurrency(concurrency);
        let undelivered = complete(sender.send(many(1_000))).unwrap_err();
        assert!(undelivered.calls <= 12, "{} calls of {limit}", undelivered.calls);
        assert_eq!(undelivered.entries.len(), 1_000);
        let refused = error(ErrorKind::Refused);
        assert!(undelivered.entries.iter().all(|left| left.cause.error() == Some(&refused)));
        let unsent = undelivered.entries.iter().filter(|left| left.calls == 0);
        assert!(unsent.clone().all(|left| matches!(left.cause, EntryError::Halted(_))));
        assert!(unsent.count() >= 1_000usize.saturating_sub(6 * limit), "{limit}");
    }
}

#[test]
fn scattered_bad_entries_are_all_found() {
    let bad: Vec<usize> = (0..1_000).step_by(9).collect();
    for concurrency in [1, 4] {
        let limits = Limits { entries: 10, ..ROOMY };
        let service = Service { limits, polls: 2, ..refusing(&bad) };
        let undelivered = complete(service.sender().concurrency(concurrency).send(many(1_000))).unwrap_err();
        let left: Vec<usize> = undelivered.entries.iter().map(|left| left.index).collect();
        assert_eq!(left, bad, "{concurrency} calls at once");
    }
}

#[test]
fn too_large_calls_end_nothing() {
    let all: Vec<usize> = (0..60).collect();
    let service = Service { bad: (ErrorKind::TooLarge, all.clone()), ..Service::new([Fate::Ok]) };
    let undelivered = complete(service.sender().send(many(60))).unwrap_err();
    assert!(undelivered.entries.iter().all(|left| matches!(left.cause, EntryError::Refused(_))));
}

fn refusing(bad: &[usize]) -> Service {
    Service { bad: (ErrorKind::Refused, bad.to_vec()), ..Service::new([Fate::Ok]) }
}

#[test]
fn refused_call_is_halved_to_the_bad_entry() {
    for kind in [ErrorKind::Refused, ErrorKind::TooLarge] {
        let service = Service { bad: (kind, vec![2]), ..Service::new([Fate::Ok]) };
        let undelivered =
            complete(service.sender().retries(Retries::none()).send(entries([None; 8]))).unwrap_err();
        let calls = [vec![0, 1, 2, 3, 4, 5, 6, 7], vec![0, 1, 2, 3], vec![4, 5, 6, 7]];
        let calls = [&calls[..], &[vec![0, 1], vec![2, 3], vec![2], vec![3]]].concat();
        assert_eq!(service.sent(), calls);
        assert!(service.waits.borrow().is_empty(), "halves wait for nothing, and use up no retries");
        assert_eq!((undelivered.delivered.len(), undelivered.calls, undelivered.retries), (7, 7, 6));
        let [left] = undelivered.entries.as_slice() else { panic!("{undelivered:?}") };
        assert_eq!((left.index, left.calls, &left.cause), (2, 4, &EntryError::Refused(error(kind))));
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
fn no_half_goes_past_the_deadline() {
    let service = refusing(&[0]);
    // The clock ticks at the beginning and at the end of each call, so two calls are over at tick 4.
    let past_deadline = || service.clock.get() >= 4;
    let undelivered =
        complete(service.sender().concurrency(1).send_while(entries([None; 4]), || !past_deadline()))
            .unwrap_err();
    assert_eq!(service.sent(), [vec![0, 1, 2, 3], vec![0, 1]]);
    let stopped = Err(EntryError::Stopped(Some(error(ErrorKind::Refused))));
    assert_eq!(undelivered.by_entry(), vec![stopped; 4]);
}

proptest! {
    #[test]
    fn good_entries_get_through_in_few_calls(
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
    fn only_bad_entries_are_left(count in 1..40usize, bad in prop::collection::vec(0..40usize, 0..40)) {
        let service = Service { limits: Limits { entries: 40, ..ROOMY }, ..refusing(&bad) };
        let outcome = complete(service.sender().send(entries([None; 40])[..count].to_vec()));
        let left: Vec<usize> = outcome.err().map_or(vec![], |it| it.entries.iter().map(|it| it.index).collect());
        let expected: Vec<usize> = (0..count).filter(|index| bad.contains(index)).collect();
        prop_assert_eq!(left, expected);
        prop_assert!(service.sent().len() < 2 * count, "{:?}", service.sent());
    }
}
