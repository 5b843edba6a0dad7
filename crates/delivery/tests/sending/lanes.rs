use std::time::Duration;

use comeback_delivery::{Cause, ErrorKind, Lane, Retries, Sender};

use crate::service::{Fate, ROOMY, Service, complete, entries, error};
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
