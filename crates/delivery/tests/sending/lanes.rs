use std::time::Duration;

use comeback_delivery::{Cause, ErrorKind, Lane, Retries, Sender};

use proptest::prelude::*;

use crate::service::{Entry, Fate, ROOMY, Service, complete, entries, error};
use comeback_delivery::limits::Limits;

const LANE: Option<u8> = Some(1);
const OTHER: Option<u8> = Some(2);

#[test]
fn entries_of_a_lane_go_one_at_a_time_beside_others() {
    let service = Service { polls: 2, ..Service::new([Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    let delivered = complete(sender.send(entries([LANE, LANE, None, OTHER, LANE, OTHER]))).unwrap();
    assert_eq!(service.sent(), [vec![0, 2, 3], vec![1, 5], vec![4]]);
    assert_eq!((delivered.calls, delivered.retries), (3, 0));
}

#[test]
fn a_lane_waits_for_its_first_and_the_others_do_not() {
    let service =
        Service { polls: 2, ..Service::new([Fate::Error(ErrorKind::Transient), Fate::Ok, Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    complete(sender.send(entries([LANE, OTHER, LANE, OTHER]))).unwrap();
    assert_eq!(service.sent(), [vec![0, 1], vec![3], vec![0], vec![2]]);
}

#[test]
fn what_is_behind_an_entry_that_is_left_is_left_too() {
    let script = [Fate::Error(ErrorKind::Refused), Fate::Ok, Fate::Ok];
    let service = Service::new(script);
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    let undelivered = complete(sender.send(entries([LANE, OTHER, LANE, OTHER, None]))).unwrap_err();
    let causes = [Err(Cause::Refused(error(ErrorKind::Refused))), Ok(()), Err(Cause::Behind), Ok(()), Ok(())];
    assert_eq!(undelivered.by_entry(), causes);
    assert_eq!(Cause::Behind.to_string(), "not sent: an entry before it, of the same group or key, was left");
}

#[test]
fn what_is_behind_an_entry_out_of_retries_is_left_too() {
    let service = Service::new([Fate::Error(ErrorKind::Throttled)]);
    let sender = Sender::over(&service, |wait| service.sleep(wait)).retries(Retries::of([Duration::ZERO]));
    let undelivered = complete(sender.send(entries([LANE, LANE]))).unwrap_err();
    assert_eq!(service.sent(), [[0], [0]]);
    assert_eq!(undelivered.by_entry()[1], Err(Cause::Behind));
}

#[test]
fn what_is_behind_an_entry_that_never_fits_is_left_and_what_is_before_it_goes() {
    let limits = Limits { entry_bytes: 5, ..ROOMY };
    let service = Service { limits, ..Service::new([Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    let mut entries = entries([LANE, LANE, LANE, OTHER]);
    entries[1].size = 6;
    let undelivered = complete(sender.send(entries)).unwrap_err();
    let causes = [Ok(()), Err(Cause::TooLarge { size: 6, limit: 5 }), Err(Cause::Behind), Ok(())];
    assert_eq!(undelivered.by_entry(), causes);
}

#[test]
fn lanes_of_different_parts_are_different() {
    assert_eq!(Lane::new(["ab", "c"]), Lane::new(["ab", "c"]));
    assert_ne!(Lane::new(["ab", "c"]), Lane::new(["a", "bc"]));
    assert_ne!(Lane::new(["ab", ""]), Lane::new(["ab"]));
}

#[test]
fn a_lane_that_goes_together_fills_calls_and_never_two_at_once() {
    let limits = Limits { entries: 3, ..ROOMY };
    let service = Service { limits, polls: 2, lanes: Lane::together, ..Service::new([Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    complete(sender.send(entries([LANE, LANE, OTHER, LANE, LANE, OTHER, LANE]))).unwrap();
    assert_eq!(service.sent(), [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
}

#[test]
fn what_a_later_one_of_its_call_overtook_is_left_with_those_behind() {
    let failed = Fate::Error(ErrorKind::Transient);
    let limits = Limits { entries: 4, ..ROOMY };
    let service =
        Service { limits, lanes: Lane::together, ..Service::new([Fate::Ok, failed, Fate::Ok, failed]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(1);
    let undelivered = complete(sender.send(entries([LANE; 6]))).unwrap_err();
    assert_eq!(service.sent(), [[0, 1, 2, 3]]);
    let overtaken = Err(Cause::Overtaken(error(ErrorKind::Transient)));
    let behind = || Err(Cause::Behind);
    assert_eq!(undelivered.by_entry(), [Ok(()), overtaken, Ok(()), behind(), behind(), behind()]);
}

#[test]
fn the_last_of_a_call_go_again_together_and_in_order() {
    let failed = Fate::Error(ErrorKind::Transient);
    let limits = Limits { entries: 3, ..ROOMY };
    let script = [Fate::Ok, failed, failed, Fate::Ok];
    let service = Service { limits, lanes: Lane::together, ..Service::new(script) };
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    complete(sender.send(entries([LANE; 5]))).unwrap();
    assert_eq!(service.sent(), [vec![0, 1, 2], vec![1, 2, 3], vec![4]]);
}

#[test]
fn where_the_last_wins_one_that_never_fits_leaves_none_behind() {
    let limits = Limits { entry_bytes: 5, ..ROOMY };
    let service = Service { limits, lanes: Lane::last_wins, ..Service::new([Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    let mut entries = entries([LANE, LANE, LANE]);
    entries[1].size = 6;
    let undelivered = complete(sender.send(entries)).unwrap_err();
    assert_eq!(undelivered.by_entry(), [Ok(()), Err(Cause::TooLarge { size: 6, limit: 5 }), Ok(())]);
}

proptest! {
    /// Whatever fails: the entries of a lane that arrive do so in their order, each once.
    #[test]
    fn lanes_that_go_together_keep_their_order(
        lanes in prop::collection::vec(prop::option::of(0..3u8), 0..40),
        fates in prop::collection::vec(
            prop::sample::select(vec![
                Fate::Ok,
                Fate::Ok,
                Fate::Error(ErrorKind::Transient),
                Fate::Error(ErrorKind::Refused),
                Fate::Whole(ErrorKind::Transient),
                Fate::Whole(ErrorKind::Refused),
            ]),
            1..60,
        ),
        calls in 1..4usize,
    ) {
        let limits = Limits { entries: 4, ..ROOMY };
        let service = Service { limits, polls: 1, lanes: Lane::together, ..Service::new(fates) };
        let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(calls);
        let entries: Vec<Entry> =
            (0..).zip(&lanes).map(|(id, lane)| Entry { id, size: 1, lane: *lane }).collect();
        let outcomes = comeback_delivery::by_entry(complete(sender.send(entries)));
        prop_assert_eq!(outcomes.len(), lanes.len());
        let mut arrived = Vec::new();
        for call in service.calls.borrow().iter() {
            let answers = call.answers.clone().expect("each call ends");
            let taken = call.ids.iter().zip(&answers);
            arrived.extend(taken.filter(|(_, fate)| Fate::kind(**fate, answers[0]).is_none()).map(|(id, _)| *id));
        }
        for lane in 0..3 {
            let of_lane: Vec<usize> = arrived.iter().copied().filter(|id| lanes[*id] == Some(lane)).collect();
            prop_assert!(of_lane.is_sorted_by(|one, next| one < next), "{of_lane:?}");
        }
        for (id, outcome) in outcomes.iter().enumerate() {
            prop_assert_eq!(outcome.is_ok(), arrived.contains(&id), "{} {:?}", id, outcome);
        }
    }
}
