//! Tests of deliveries that end early: the service denies access or is down, or the deadline passes.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use comeback_delivery::limits::Limits;
use comeback_delivery::{EntryError, ErrorKind, Retries, Sender};
use proptest::prelude::*;

use crate::service::{Fate, ROOMY, Service, complete, entries, error};

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
    let deadline = tokio::time::sleep(Duration::from_secs(2));
    let undelivered = sender.send_until(entries([None]), deadline).await.unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 2);
    assert_eq!(undelivered.by_entry(), [Err(EntryError::Stopped(Some(error(ErrorKind::Transient))))]);
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
    let deadline = poll_fn(|_| if service.sent().len() == 2 { Poll::Ready(()) } else { Poll::Pending });
    let undelivered =
        complete(service.sender().concurrency(1).send_until(entries([None; 5]), deadline)).unwrap_err();
    assert_eq!(service.sent(), [[0, 1], [2, 3]]);
    let calls: Vec<u64> = undelivered.entries.iter().map(|left| left.calls).collect();
    assert_eq!(calls, [1, 1, 1, 0], "1 failed, 2 and 3 were under way, 4 was not sent");
    let failed = Err(EntryError::Stopped(Some(error(ErrorKind::Transient))));
    let unanswered = || Err(EntryError::Unanswered);
    let unsent = Err(EntryError::Stopped(None));
    assert_eq!(undelivered.by_entry(), [Ok(()), failed, unanswered(), unanswered(), unsent]);
}
