use comeback_delivery::limits::Limits;
use comeback_delivery::{Cause, Left, Progress, Sender};
use proptest::prelude::*;

use crate::service::{Entry, Fate, Service, complete};

fn sized(sizes: &[usize]) -> Vec<Entry> {
    (0..).zip(sizes).map(|(id, &size)| Entry { id, size, lane: None }).collect()
}

fn batches(limits: Limits, sizes: &[usize]) -> Vec<Vec<usize>> {
    let service = Service { limits, ..Service::new([Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait)).concurrency(3);
    let _: Result<_, _> = complete(sender.send(sized(sizes)));
    service.sent()
}

#[test]
fn nothing_is_no_call() {
    let service = Service::new([Fate::Ok]);
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    let delivered = complete(sender.send([])).unwrap();
    assert_eq!((delivered.count(), delivered.calls, delivered.retries), (0, 0, 0));
}

#[test]
fn a_batch_is_full_at_a_limit_and_not_before() {
    let limits = Limits { entries: 3, bytes: 10, entry_bytes: 10 };
    assert_eq!(batches(limits, &[1, 1, 1, 1]), [vec![0, 1, 2], vec![3]]);
    assert_eq!(batches(limits, &[4, 6, 4, 6]), [[0, 1], [2, 3]]);
    assert_eq!(batches(limits, &[4, 7, 3, 8]), [vec![0], vec![1, 2], vec![3]]);
    assert_eq!(batches(limits, &[10, 10]), [[0], [1]]);
}

#[test]
fn sizes_that_overflow_together_are_over_the_limit() {
    let half = usize::MAX / 2 + 1;
    let limits = Limits { entries: 10, bytes: usize::MAX - 1, entry_bytes: half };
    assert_eq!(batches(limits, &[half, half]), [[0], [1]]);
}

#[test]
fn what_can_never_fit_is_refused_with_its_size_and_the_others_go() {
    for limits in
        [Limits { entries: 3, bytes: 90, entry_bytes: 9 }, Limits { entries: 3, bytes: 9, entry_bytes: 90 }]
    {
        let service = Service { limits, ..Service::new([Fate::Ok]) };
        let sender = Sender::over(&service, |wait| service.sleep(wait));
        let undelivered = complete(sender.send(sized(&[8, 10, 9]))).unwrap_err();
        let entry = Entry { id: 1, size: 10, lane: None };
        let left = Left { index: 1, entry, cause: Cause::TooLarge { size: 10, limit: 9 }, calls: 0 };
        assert_eq!(undelivered.entries, [left]);
        assert_eq!(undelivered.delivered.len(), 2);
        assert_eq!(
            undelivered.to_string(),
            "1 of 3 entries were not delivered; the first, number 1: too large: 10 bytes, the limit is 9"
        );
    }
}

#[test]
fn a_call_may_count_an_entry_otherwise_than_the_entry_counts() {
    let limits = Limits { entries: 3, bytes: 10, entry_bytes: 8 };
    let service = Service { limits, overhead: 4, ..Service::new([Fate::Ok]) };
    let sender = Sender::over(&service, |wait| service.sleep(wait));
    let undelivered = complete(sender.send(sized(&[1, 1, 6, 7, 9]))).unwrap_err();
    assert_eq!(service.sent(), [vec![0, 1], vec![2]]);
    let causes: Vec<Cause> = undelivered.entries.into_iter().map(|left| left.cause).collect();
    assert_eq!(causes, [Cause::TooLarge { size: 11, limit: 10 }, Cause::TooLarge { size: 9, limit: 8 }]);
}

#[test]
fn progress_is_reported_after_each_call() {
    let service = Service {
        limits: Limits { entries: 2, bytes: 9, entry_bytes: 5 },
        ..Service::new([Fate::Ok, Fate::Error(comeback_delivery::ErrorKind::Refused)])
    };
    let reported = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = reported.clone();
    let sender = Sender::over(&service, |wait| service.sleep(wait))
        .on_progress(move |progress| seen.lock().unwrap().push(progress));
    complete(sender.send(sized(&[1, 1, 6, 1]))).unwrap_err();
    let progress = |delivered, left, calls| Progress { entries: 4, delivered, left, calls, retries: 0 };
    assert_eq!(*reported.lock().unwrap(), [progress(1, 2, 1), progress(1, 3, 2)]);
}

#[test]
#[should_panic(expected = "concurrency is 0; it must be at least 1")]
fn no_concurrency_is_refused() {
    let service = Service::new([Fate::Ok]);
    let _ = Sender::over(&service, |wait| service.sleep(wait)).concurrency(0);
}

proptest! {
    #[test]
    fn batches_are_few(
        entries in 1..12usize,
        bytes in 1..60usize,
        sizes in prop::collection::vec(0..60usize, 0..200),
    ) {
        let sizes: Vec<usize> = sizes.into_iter().filter(|&size| size <= bytes).collect();
        let batches = batches(Limits { entries, bytes, entry_bytes: bytes }, &sizes);
        let least = sizes.len().div_ceil(entries).max(sizes.iter().sum::<usize>().div_ceil(bytes));
        prop_assert!(batches.len() <= 3 * least + 1, "{} batches, {least} at least", batches.len());
        prop_assert_eq!(batches.concat(), (0..sizes.len()).collect::<Vec<_>>());
    }
}
