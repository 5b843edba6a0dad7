//! What ends a delivery early, and what does not.

use comeback_delivery::limits::Limits;
use comeback_delivery::{Cause, ErrorKind, Retries, Sender};

use crate::service::{Fate, ROOMY, Service, complete, entries, error};

const ONE: Limits = Limits { entries: 1, ..ROOMY };

#[test]
fn one_call_that_is_denied_is_enough() {
    for kind in [ErrorKind::Denied, ErrorKind::Missing] {
        let service = Service { limits: ONE, polls: 2, ..Service::new([Fate::Whole(kind)]) };
        let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(2);
        let undelivered = complete(sender.send(entries([None; 8]))).unwrap_err();
        assert_eq!(undelivered.calls, 2, "those that were under way together");
        let causes = undelivered.by_entry();
        assert_eq!(causes[..2], [const { None::<()> }; 2].map(|_| Err(Cause::Refused(error(kind)))));
        assert!(causes[2..].iter().all(|it| *it == Err(Cause::Halted(error(kind)))), "{causes:?}");
    }
}

#[test]
fn calls_under_way_when_another_is_denied_may_deliver() {
    let service =
        Service { limits: ONE, polls: 2, ..Service::new([Fate::Whole(ErrorKind::Denied), Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(2);
    let undelivered = complete(sender.send(entries([None; 3]))).unwrap_err();
    assert_eq!((undelivered.delivered.len(), undelivered.delivered[0].index), (1, 1));
}

#[test]
fn nobody_waits_for_the_retry_of_what_was_handed_back() {
    let script = [Fate::Whole(ErrorKind::Transient), Fate::Whole(ErrorKind::Denied)];
    let service = Service { limits: ONE, polls: 1, ..Service::new(script) };
    let never = |_| std::future::pending::<()>();
    let sender =
        Sender::over(&service, never).concurrency(1).retries(Retries::of([std::time::Duration::MAX]));
    let undelivered = complete(sender.send(entries([None; 3]))).unwrap_err();
    assert_eq!((undelivered.calls, undelivered.entries.len()), (2, 3));
}

#[test]
fn an_entry_that_is_denied_says_nothing_of_the_others() {
    let service = Service { limits: ONE, ..Service::new([Fate::Error(ErrorKind::Denied), Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(1);
    assert_eq!(complete(sender.send(entries([None; 4]))).unwrap_err().delivered.len(), 3);
}

#[test]
fn a_service_that_is_down_ends_it_once_retries_ran_out() {
    let service = Service { limits: ONE, ..Service::new([Fate::Whole(ErrorKind::Transient)]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(1);
    let undelivered = complete(sender.send(entries([None; 50]))).unwrap_err();
    assert!(undelivered.calls <= 60, "{} calls", undelivered.calls);
    let halted = Err(Cause::Halted(error(ErrorKind::Transient)));
    assert_eq!(undelivered.by_entry()[49], halted);
}

#[test]
fn six_calls_that_fail_and_a_seventh_that_works_end_nothing() {
    let down = [Fate::Whole(ErrorKind::Transient); 5];
    let service = Service { limits: ONE, ..Service::new([&down[..], &[Fate::Ok]].concat()) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(1).retries(Retries::none());
    let undelivered = complete(sender.send(entries([None; 20]))).unwrap_err();
    assert_eq!((undelivered.delivered.len(), undelivered.entries.len()), (15, 5));
}

#[test]
fn a_panic_in_on_progress_loses_nothing() {
    let service = Service { limits: ONE, ..Service::new([Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).on_progress(|_| panic!("planned"));
    assert_eq!(complete(sender.send(entries([None; 4]))).unwrap().count(), 4);
}

#[test]
fn limits_can_be_lowered() {
    let service = Service::new([Fate::Ok]);
    let lower = Limits { entries: 2, entry_bytes: 5, ..ROOMY };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).limits(lower);
    let mut entries = entries([None; 4]);
    entries[1].size = 6;
    let undelivered = complete(sender.send(entries)).unwrap_err();
    assert_eq!(undelivered.entries[0].cause, Cause::TooLarge { size: 6, limit: 5 });
    assert_eq!(service.sent(), [vec![0, 2], vec![3]]);
}

#[test]
#[should_panic(expected = "the limit of entries is 11; it must be 1 to 10")]
fn limits_cannot_be_raised() {
    let service = Service::new([Fate::Ok]);
    let _ = Sender::over(&service, |wait| service.sleep(wait)).limits(Limits { entries: 11, ..ROOMY });
}
