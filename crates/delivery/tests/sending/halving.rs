use comeback_delivery::limits::Limits;
use comeback_delivery::{Cause, ErrorKind, Retries, Sender};
use proptest::prelude::*;

use crate::service::{Fate, ROOMY, Service, complete, entries, error, poll_until};

fn refusing(bad: &[usize]) -> Service {
    Service { bad: (ErrorKind::Refused, bad.to_vec()), ..Service::new([Fate::Ok]) }
}

#[test]
fn a_call_refused_for_one_entry_goes_again_in_halves_down_to_that_one() {
    for kind in [ErrorKind::Refused, ErrorKind::TooLarge] {
        let service = Service { bad: (kind, vec![2]), ..Service::new([Fate::Ok]) };
        let sender = Sender::over(&service, |wait| service.sleep(wait)).retries(Retries::none());
        let undelivered = complete(sender.send(entries([None; 8]))).unwrap_err();
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
fn an_error_that_no_entry_is_to_blame_for_is_not_halved() {
    for kind in [ErrorKind::Denied, ErrorKind::Missing] {
        let service = Service { bad: (kind, vec![0]), ..Service::new([Fate::Ok]) };
        let sender = Sender::over(&service, |wait| service.sleep(wait));
        let undelivered = complete(sender.send(entries([None; 4]))).unwrap_err();
        assert_eq!((undelivered.calls, undelivered.entries.len()), (1, 4), "{kind:?}");
    }
}

#[test]
fn other_batches_go_before_the_halves() {
    let limits = Limits { entries: 2, ..ROOMY };
    let service = Service { limits, ..refusing(&[0]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(1);
    complete(sender.send(entries([None; 4]))).unwrap_err();
    assert_eq!(service.sent(), [vec![0, 1], vec![2, 3], vec![0], vec![1]]);
}

#[test]
fn a_lane_keeps_its_order_and_ends_with_its_bad_entry() {
    let service = refusing(&[2]);
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    let (one, other) = (Some(1), Some(2));
    let undelivered = complete(sender.send(entries([one, other, one, other, one]))).unwrap_err();
    assert_eq!(service.sent(), [vec![0, 1], vec![2, 3], vec![2], vec![3]]);
    let refused = Err(Cause::Refused(error(ErrorKind::Refused)));
    assert_eq!(undelivered.by_entry(), [Ok(()), Ok(()), refused, Ok(()), Err(Cause::Behind)]);
}

#[test]
fn past_the_deadline_no_half_goes() {
    let service = refusing(&[0]);
    let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(1);
    // A call begins and ends: two are over.
    let past_deadline = || service.clock.get() >= 4;
    let undelivered = complete(sender.send_while(entries([None; 4]), || !past_deadline())).unwrap_err();
    assert_eq!(service.sent(), [vec![0, 1, 2, 3], vec![0, 1]]);
    let stopped = Err(Cause::Stopped(Some(error(ErrorKind::Refused))));
    assert_eq!(undelivered.by_entry(), vec![stopped; 4]);
}

#[test]
fn interrupted_it_goes_on_with_the_halves() {
    let service = Service { polls: 3, ..refusing(&[0]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(1);
    let mut delivery = sender.start(entries([None; 4]));
    poll_until(|| service.sent().len() == 2, delivery.run());
    assert_eq!(service.sent()[1], [0, 1], "under way, and never answered");
    complete(delivery.run());
    let undelivered = delivery.finish().unwrap_err();
    assert_eq!(service.sent()[2..], [vec![2, 3], vec![0, 1], vec![0], vec![1]]);
    assert_eq!(service.waits.borrow().len(), 1, "what was under way is retried");
    assert_eq!((undelivered.entries.len(), undelivered.entries[0].index), (1, 0));
}

proptest! {
    #[test]
    fn every_other_entry_gets_through_in_few_calls(
        (count, bad) in (1..40usize).prop_flat_map(|count| (Just(count), 0..count)),
        concurrency in 1..4usize,
    ) {
        let service = Service { limits: Limits { entries: 40, ..ROOMY }, polls: 1, ..refusing(&[bad]) };
        let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(concurrency);
        let entries = entries([None; 40])[..count].to_vec();
        let undelivered = complete(sender.send(entries)).unwrap_err();
        let left: Vec<usize> = undelivered.entries.iter().map(|left| left.index).collect();
        prop_assert_eq!(left, [bad]);
        let halvings = count.next_power_of_two().ilog2() as usize;
        prop_assert!(service.sent().len() <= 1 + 2 * halvings, "{:?}", service.sent());
    }

    #[test]
    fn whichever_entries_are_bad(count in 1..40usize, bad in prop::collection::vec(0..40usize, 0..40)) {
        let service = Service { limits: Limits { entries: 40, ..ROOMY }, ..refusing(&bad) };
        let sender = Sender::over(&service, |wait| service.sleep(wait));
        let outcome = complete(sender.send(entries([None; 40])[..count].to_vec()));
        let left: Vec<usize> = outcome.err().map_or(vec![], |it| it.entries.iter().map(|it| it.index).collect());
        let expected: Vec<usize> = (0..count).filter(|index| bad.contains(index)).collect();
        prop_assert_eq!(left, expected);
        prop_assert!(service.sent().len() < 2 * count, "{:?}", service.sent());
    }
}
