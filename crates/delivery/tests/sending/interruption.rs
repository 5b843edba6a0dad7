use std::time::Duration;

use comeback_delivery::limits::Limits;
use comeback_delivery::{Cause, ErrorKind, Retries, Sender};

use crate::service::{Fate, ROOMY, Service, complete, entries, error, poll_until};

const PASSING: Fate = Fate::Error(ErrorKind::Transient);

#[test]
fn what_was_not_answered_comes_back() {
    let limits = Limits { entries: 2, ..ROOMY };
    let service = Service { limits, polls: 9, ..Service::new([Fate::Ok, PASSING, Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(1);
    let mut delivery = sender.start(entries([None; 5]));
    poll_until(|| service.sent().len() == 2, delivery.run());
    let undelivered = delivery.finish().unwrap_err();
    assert_eq!(service.sent(), [[0, 1], [2, 3]]);
    let calls: Vec<u64> = undelivered.entries.iter().map(|left| left.calls).collect();
    assert_eq!(calls, [1, 1, 1, 0], "1 failed, 2 and 3 were under way, 4 was not sent");
    assert_eq!(
        undelivered.entries[0].cause.to_string(),
        "interrupted, after Code: message",
        "{undelivered:?}"
    );
    let interrupted = || Err(Cause::Interrupted(None));
    let failed = Err(Cause::Interrupted(Some(error(ErrorKind::Transient))));
    assert_eq!(undelivered.by_entry(), [Ok(()), failed, interrupted(), interrupted(), interrupted()]);
}

#[test]
fn what_never_ran_comes_back_whole() {
    let service = Service::new([Fate::Ok]);
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    let undelivered = sender.start(entries([None; 3])).finish().unwrap_err();
    assert_eq!((undelivered.entries.len(), undelivered.calls), (3, 0));
}

#[test]
fn run_again_it_sends_again_what_was_under_way_after_a_wait() {
    let service = Service { polls: 9, ..Service::new([Fate::Ok]) };
    let waits = Retries::of([Duration::from_millis(5)]);
    let sender = Sender::over(&service, |wait| service.sleep(wait)).retries(waits);
    let mut delivery = sender.start(entries([None; 2]));
    poll_until(|| service.sent().len() == 1, delivery.run());
    complete(delivery.run());
    assert_eq!(*service.waits.borrow(), [Duration::from_millis(5)]);
    let delivered = delivery.finish().unwrap();
    assert_eq!((delivered.count(), delivered.calls, delivered.retries), (2, 2, 1));
}

#[test]
fn run_again_without_a_retry_left_it_gives_up_what_was_under_way() {
    let service = Service { polls: 9, ..Service::new([Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).retries(Retries::none());
    let mut delivery = sender.start(entries([None]));
    poll_until(|| service.sent().len() == 1, delivery.run());
    complete(delivery.run());
    let undelivered = delivery.finish().unwrap_err();
    assert!(matches!(undelivered.entries[0].cause, Cause::Exhausted(_)), "{undelivered:?}");
}
