use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use comeback_delivery::Cause;
use tokio::sync::Notify;

use crate::apis::{Api, accounted, texts};
use crate::service::{Answer, Service};

crate::for_every_api!(
    cancelled_it_hands_back_what_was_not_answered,
    dropped_and_run_again_it_delivers_the_rest,
    past_its_deadline_it_calls_no_more,
);

/// A service that answers the first calls and goes silent, and says when it is.
async fn falling_silent(answered: usize) -> (Service, Arc<Notify>) {
    let silent = Arc::new(Notify::new());
    let tell = silent.clone();
    let mut calls = 0;
    let service = Service::start(move |call| {
        calls += 1;
        if calls <= answered {
            return Answer::done(call);
        }
        tell.notify_one();
        Answer::Silence
    });
    (service.await, silent)
}

async fn cancelled_it_hands_back_what_was_not_answered<A: Api>() {
    let count = 5 * A::LIMITS.entries;
    let (service, silent) = falling_silent(2).await;
    let sender = A::sender(&service).concurrency(1);
    let mut delivery = sender.start(A::entries(count));
    tokio::select! {
        () = delivery.run() => panic!("the service is silent"),
        () = silent.notified() => {}
    }
    let undelivered = delivery.finish().unwrap_err();
    assert_eq!((undelivered.delivered.len(), undelivered.calls), (2 * A::LIMITS.entries, 3));
    assert_eq!(undelivered.entries[0].calls, 1, "it was under way, and may have arrived");
    assert_eq!(undelivered.entries[A::LIMITS.entries].calls, 0);
    let causes = accounted::<A>(&service, &texts(count), Err(undelivered));
    assert!(causes.values().all(|cause| *cause == Cause::Interrupted(None)), "{causes:?}");
}

async fn dropped_and_run_again_it_delivers_the_rest<A: Api>() {
    let count = 3 * A::LIMITS.entries;
    let silent = Arc::new(Notify::new());
    let tell = silent.clone();
    let mut calls = 0;
    let service = Service::start(move |call| {
        calls += 1;
        if calls != 2 {
            return Answer::done(call);
        }
        tell.notify_one();
        Answer::Silence
    })
    .await;
    let sender = A::sender(&service).concurrency(1);
    let mut delivery = sender.start(A::entries(count));
    tokio::select! {
        () = delivery.run() => panic!("the service is silent"),
        () = silent.notified() => {}
    }
    delivery.run().await;
    let delivered = delivery.finish().expect("the service answers again");
    assert_eq!((delivered.count(), delivered.calls, delivered.retries), (count, 4, 1));
    accounted::<A>(&service, &texts(count), Ok(delivered));
}

async fn past_its_deadline_it_calls_no_more<A: Api>() {
    let count = 5 * A::LIMITS.entries;
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = calls.clone();
    let service = Service::start(move |call| {
        seen.fetch_add(1, Ordering::SeqCst);
        Answer::done(call)
    })
    .await;
    let over = || calls.load(Ordering::SeqCst) >= 2;
    let sender = A::sender(&service).concurrency(1);
    let undelivered = sender.send_while(A::entries(count), || !over()).await.unwrap_err();
    assert_eq!((undelivered.delivered.len(), undelivered.calls), (2 * A::LIMITS.entries, 2));
    let causes = accounted::<A>(&service, &texts(count), Err(undelivered));
    assert!(causes.values().all(|cause| *cause == Cause::Stopped(None)), "{causes:?}");
}
