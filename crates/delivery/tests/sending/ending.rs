//! Tests of deliveries that end early: the service denies access or is down, the deadline comes, or the caller
//! interrupts.

use std::time::Duration;

use comeback_delivery::limits::Limits;
use comeback_delivery::{EntryError, ErrorKind, Retries, Sender};
use proptest::prelude::*;

use crate::service::{Fate, ROOMY, Service, complete, entries, error, poll_until};

const ONE: Limits = Limits { entries: 1, ..ROOMY };

#[test]
fn one_denied_call_ends_it() {
    for kind in [ErrorKind::Denied, ErrorKind::Missing] {
        let service = Service { limits: ONE, polls: 2, ..Service::new([Fate::Whole(kind)]) };
        let undelivered = complete(service.sender().concurrency(2).send(entries([None; 8]))).unwrap_err();
        assert_eq!(undelivered.calls, 2, "those that were under way together");
        let causes = undelivered.by_entry();
        assert_eq!(causes[..2], [const { None::<()> }; 2].map(|_| Err(EntryError::Refused(error(kind)))));
        assert!(causes[2..].iter().all(|it| *it == Err(EntryError::Halted(error(kind)))), "{causes:?}");
    }
}

#[test]
fn handed_back_entries_are_not_waited_for() {
    let script = [Fate::Whole(ErrorKind::Transient), Fate::Whole(ErrorKind::Denied)];
    let service = Service { limits: ONE, polls: 1, ..Service::new(script) };
    let never = |_| std::future::pending::<()>();
    let sender =
        Sender::over(&service, never).concurrency(1).retries(Retries::of([std::time::Duration::MAX]));
    let undelivered = complete(sender.send(entries([None; 3]))).unwrap_err();
    assert_eq!((undelivered.calls, undelivered.entries.len()), (2, 3));
}

#[test]
fn service_down_ends_it_after_retries() {
    let service = Service { limits: ONE, ..Service::new([Fate::Whole(ErrorKind::Transient)]) };
    let undelivered = complete(service.sender().concurrency(1).send(entries([None; 50]))).unwrap_err();
    assert!(undelivered.calls <= 60, "{} calls", undelivered.calls);
    let halted = Err(EntryError::Halted(error(ErrorKind::Transient)));
    assert_eq!(undelivered.by_entry()[49], halted);
}

#[test]
fn later_success_keeps_it_going() {
    let down = [Fate::Whole(ErrorKind::Transient); 5];
    let service = Service { limits: ONE, ..Service::new([&down[..], &[Fate::Ok]].concat()) };
    let undelivered =
        complete(service.sender().concurrency(1).retries(Retries::none()).send(entries([None; 20])))
            .unwrap_err();
    assert_eq!((undelivered.delivered.len(), undelivered.entries.len()), (15, 5));
}

#[test]
fn limits_can_be_lowered() {
    let service = Service::new([Fate::Ok]);
    let lower = Limits { entries: 2, entry_bytes: 5, ..ROOMY };
    let mut entries = entries([None; 4]);
    entries[1].size = 6;
    let undelivered = complete(service.sender().limits(lower).send(entries)).unwrap_err();
    assert_eq!(undelivered.entries[0].cause, EntryError::TooLarge { size: 6, limit: 5 });
    assert_eq!(service.sent(), [vec![0, 2], vec![3]]);
}

#[test]
#[should_panic(expected = "the limit of entries is 11; it must be 1 to 10")]
fn limits_cannot_be_raised() {
    let service = Service::new([Fate::Ok]);
    let _ = service.sender().limits(Limits { entries: 11, ..ROOMY });
}

/// Makes a condition that is true once the service's clock reaches `moment`.
fn until(service: &Service, moment: u32) -> impl Fn() -> bool {
    move || service.clock.get() >= moment
}

const PASSING: Fate = Fate::Error(ErrorKind::Transient);

#[test]
fn no_call_starts_past_the_deadline() {
    let service = Service::new([Fate::Ok]);
    let undelivered = complete(service.sender().send_while(entries([None]), || false)).unwrap_err();
    assert_eq!(service.sent().len(), 0);
    assert_eq!(undelivered.entries[0].cause, EntryError::Stopped(None));
    assert_eq!(undelivered.entries[0].cause.to_string(), "not sent before the deadline");
}

#[test]
fn call_under_way_finishes_and_none_follows() {
    let limits = Limits { entries: 1, ..ROOMY };
    let service = Service { limits, polls: 3, ..Service::new([Fate::Ok, PASSING]) };
    // The clock ticks at the beginning and at the end of each call, so two calls begin before tick 2.
    let undelivered =
        complete(service.sender().concurrency(2).send_while(entries([None; 3]), || !until(&service, 2)()))
            .unwrap_err();
    assert_eq!(service.sent(), [[0], [1]]);
    let causes =
        [Ok(()), Err(EntryError::Stopped(Some(error(ErrorKind::Transient)))), Err(EntryError::Stopped(None))];
    assert_eq!(undelivered.entries[0].cause.to_string(), "not sent before the deadline, after Code: message");
    assert_eq!(undelivered.by_entry(), causes);
    assert!(service.waits.borrow().is_empty(), "nobody waits past the deadline");
}

#[tokio::test(start_paused = true)]
async fn only_a_timer_cuts_a_wait_short() {
    let service = Service::new([PASSING]);
    let hour = Duration::from_secs(3_600);
    let sender = Sender::over(&service, tokio::time::sleep).retries(Retries::of([hour]));
    let started = tokio::time::Instant::now();
    let past_deadline = || started.elapsed().as_secs() >= 2;
    let undelivered = sender.send_while(entries([None]), || !past_deadline()).await.unwrap_err();
    assert_eq!(started.elapsed(), hour);
    assert_eq!(undelivered.by_entry(), [Err(EntryError::Stopped(Some(error(ErrorKind::Transient))))]);

    let started = tokio::time::Instant::now();
    let mut delivery = sender.start(entries([None]));
    tokio::select! {
        () = delivery.run() => panic!("it waits for an hour"),
        () = tokio::time::sleep(Duration::from_secs(2)) => {}
    }
    assert_eq!(started.elapsed().as_secs(), 2);
    let undelivered = delivery.finish().unwrap_err();
    assert_eq!(undelivered.by_entry(), [Err(EntryError::Interrupted(Some(error(ErrorKind::Transient))))]);
}

proptest! {
    #[test]
    fn no_call_starts_past_it(
        moment in 0..40u32,
        polls in 0..3usize,
        concurrency in 1..5usize,
        script in prop::collection::vec(prop::sample::select(vec![Fate::Ok, PASSING, Fate::Cut]), 1..20),
    ) {
        let limits = Limits { entries: 2, ..ROOMY };
        let service = Service { limits, polls, ..Service::new(script) };
        let lanes = std::array::from_fn::<_, 12, _>(|n| (n % 3 == 0).then_some(1));
        let outcome = complete(service.sender().concurrency(concurrency).send_while(entries(lanes), || !until(&service, moment)()));
        for call in service.calls.borrow().iter() {
            // The beginning of a call advances the clock by one tick, so `began` may equal `moment`.
            prop_assert!(call.began <= moment, "{call:?}");
            prop_assert!(call.answers.is_some(), "{call:?}");
        }
        if let Err(undelivered) = outcome {
            prop_assert!(!undelivered.entries.iter().any(|left| matches!(left.cause, EntryError::Interrupted(_))));
        }
    }
}

#[test]
fn unanswered_entries_come_back() {
    let limits = Limits { entries: 2, ..ROOMY };
    let service = Service { limits, polls: 9, ..Service::new([Fate::Ok, PASSING, Fate::Ok]) };
    let sender = service.sender().concurrency(1);
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
    let interrupted = || Err(EntryError::Interrupted(None));
    let failed = Err(EntryError::Interrupted(Some(error(ErrorKind::Transient))));
    assert_eq!(undelivered.by_entry(), [Ok(()), failed, interrupted(), interrupted(), interrupted()]);
}

#[test]
fn second_run_resends_what_was_under_way() {
    let service = Service { polls: 9, ..Service::new([Fate::Ok]) };
    let waits = Retries::of([Duration::from_millis(5)]);
    let sender = service.sender().retries(waits);
    let mut delivery = sender.start(entries([None; 2]));
    poll_until(|| service.sent().len() == 1, delivery.run());
    complete(delivery.run());
    assert_eq!(*service.waits.borrow(), [Duration::from_millis(5)]);
    let delivered = delivery.finish().unwrap();
    assert_eq!((delivered.count(), delivered.calls, delivered.retries), (2, 2, 1));
}
