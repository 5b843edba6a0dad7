use std::time::Duration;

use comeback_delivery::limits::Limits;
use comeback_delivery::{Cause, ErrorKind, Retries, Sender};
use proptest::prelude::*;

use crate::service::{Fate, ROOMY, Service, complete, entries, error};

/// Whether the service's clock is there.
fn until(service: &Service, moment: u32) -> impl Fn() -> bool {
    move || service.clock.get() >= moment
}

const PASSING: Fate = Fate::Error(ErrorKind::Transient);

#[test]
fn past_the_deadline_nothing_is_called() {
    let service = Service::new([Fate::Ok]);
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    let undelivered = complete(sender.send_while(entries([None]), || false)).unwrap_err();
    assert_eq!(service.sent().len(), 0);
    assert_eq!(undelivered.entries[0].cause, Cause::Stopped(None));
    assert_eq!(undelivered.entries[0].cause.to_string(), "not sent before the deadline");
}

#[test]
fn a_call_under_way_is_let_finish_and_none_follows() {
    let limits = Limits { entries: 1, ..ROOMY };
    let service = Service { limits, polls: 3, ..Service::new([Fate::Ok, PASSING]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(2);
    // The clock ticks when a call begins and when it ends: two begin.
    let undelivered = complete(sender.send_while(entries([None; 3]), || !until(&service, 2)())).unwrap_err();
    assert_eq!(service.sent(), [[0], [1]]);
    let causes = [Ok(()), Err(Cause::Stopped(Some(error(ErrorKind::Transient)))), Err(Cause::Stopped(None))];
    assert_eq!(undelivered.entries[0].cause.to_string(), "not sent before the deadline, after Code: message");
    assert_eq!(undelivered.by_entry(), causes);
    assert!(service.waits.borrow().is_empty(), "nobody waits past the deadline");
}

#[test]
fn it_is_looked_at_after_a_wait() {
    let service = Service::new([PASSING]);
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    // 1 the call begins, 2 it ends, 3 the wait ends.
    let undelivered = complete(sender.send_while(entries([None]), || !until(&service, 3)())).unwrap_err();
    assert_eq!((undelivered.calls, service.waits.borrow().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_not_cut_short_but_a_timer_beside_it_ends_it() {
    let service = Service::new([PASSING]);
    let hour = Duration::from_secs(3_600);
    let sender = Sender::over(&service, tokio::time::sleep).retries(Retries::of([hour]));
    let started = tokio::time::Instant::now();
    let past_deadline = || started.elapsed().as_secs() >= 2;
    let undelivered = sender.send_while(entries([None]), || !past_deadline()).await.unwrap_err();
    assert_eq!(started.elapsed(), hour);
    assert_eq!(undelivered.by_entry(), [Err(Cause::Stopped(Some(error(ErrorKind::Transient))))]);

    let started = tokio::time::Instant::now();
    let mut delivery = sender.start(entries([None]));
    tokio::select! {
        () = delivery.run() => panic!("it waits for an hour"),
        () = tokio::time::sleep(Duration::from_secs(2)) => {}
    }
    assert_eq!(started.elapsed().as_secs(), 2);
    let undelivered = delivery.finish().unwrap_err();
    assert_eq!(undelivered.by_entry(), [Err(Cause::Interrupted(Some(error(ErrorKind::Transient))))]);
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
        let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(concurrency);
        let lanes = std::array::from_fn::<_, 12, _>(|n| (n % 3 == 0).then_some(1));
        let outcome = complete(sender.send_while(entries(lanes), || !until(&service, moment)()));
        for call in service.calls.borrow().iter() {
            // It begins a tick after it was started.
            prop_assert!(call.began <= moment, "{call:?}");
            prop_assert!(call.answers.is_some(), "{call:?}");
        }
        if let Err(undelivered) = outcome {
            prop_assert!(!undelivered.entries.iter().any(|left| matches!(left.cause, Cause::Interrupted(_))));
        }
    }
}
