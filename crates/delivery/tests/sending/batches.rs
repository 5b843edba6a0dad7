//! Tests for packing entries into as few batches as possible, while keeping the order of each lane.

use comeback_delivery::limits::Limits;
use comeback_delivery::{EntryError, ErrorKind, Lane, Left, Retries};
use proptest::prelude::*;

use crate::service::{Entry, Fate, ROOMY, Service, complete, entries, error};

fn sized(sizes: &[usize]) -> Vec<Entry> {
    (0..).zip(sizes).map(|(id, &size)| Entry { id, size, lane: None }).collect()
}

fn batches(limits: Limits, sizes: &[usize]) -> Vec<Vec<usize>> {
    let service = Service { limits, ..Service::new([Fate::Ok]) };
    let _: Result<_, _> = complete(service.sender().concurrency(3).send(sized(sizes)));
    service.sent()
}

#[test]
fn batch_is_full_at_its_limit() {
    let limits = Limits { entries: 3, bytes: 10, entry_bytes: 10 };
    assert_eq!(batches(limits, &[1, 1, 1, 1]), [vec![0, 1, 2], vec![3]]);
    assert_eq!(batches(limits, &[4, 6, 4, 6]), [[0, 1], [2, 3]]);
    assert_eq!(batches(limits, &[4, 7, 3, 8]), [vec![0], vec![1, 2], vec![3]]);
    assert_eq!(batches(limits, &[10, 10]), [[0], [1]]);
}

#[test]
fn overflowing_sizes_are_over_the_limit() {
    let half = usize::MAX / 2 + 1;
    let limits = Limits { entries: 10, bytes: usize::MAX - 1, entry_bytes: half };
    assert_eq!(batches(limits, &[half, half]), [[0], [1]]);
}

#[test]
fn too_large_entry_is_refused_others_go() {
    for limits in
        [Limits { entries: 3, bytes: 90, entry_bytes: 9 }, Limits { entries: 3, bytes: 9, entry_bytes: 90 }]
    {
        let service = Service { limits, ..Service::new([Fate::Ok]) };
        let undelivered = complete(service.sender().send(sized(&[8, 10, 9]))).unwrap_err();
        let entry = Entry { id: 1, size: 10, lane: None };
        let left = Left { index: 1, entry, cause: EntryError::TooLarge { size: 10, limit: 9 }, calls: 0 };
        assert_eq!(undelivered.entries, [left]);
        assert_eq!(undelivered.delivered.len(), 2);
        assert_eq!(
            undelivered.to_string(),
            "1 of 3 entries were not delivered; the first, number 1: too large: 10 bytes, the limit is 9"
        );
    }
}

#[test]
fn size_in_a_call_may_differ() {
    let limits = Limits { entries: 3, bytes: 10, entry_bytes: 8 };
    let service = Service { limits, overhead: 4, ..Service::new([Fate::Ok]) };
    let undelivered = complete(service.sender().send(sized(&[1, 1, 6, 7, 9]))).unwrap_err();
    assert_eq!(service.sent(), [vec![0, 1], vec![2]]);
    let causes: Vec<EntryError> = undelivered.entries.into_iter().map(|left| left.cause).collect();
    assert_eq!(
        causes,
        [EntryError::TooLarge { size: 11, limit: 10 }, EntryError::TooLarge { size: 9, limit: 8 }]
    );
}

#[test]
#[should_panic(expected = "concurrency is 0; it must be at least 1")]
fn no_concurrency_is_refused() {
    let service = Service::new([Fate::Ok]);
    let _ = service.sender().concurrency(0);
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

const LANE: Option<u8> = Some(1);
const OTHER: Option<u8> = Some(2);

#[test]
fn lane_waits_for_its_first_entry() {
    let service =
        Service { polls: 2, ..Service::new([Fate::Error(ErrorKind::Transient), Fate::Ok, Fate::Ok]) };
    complete(service.sender().send(entries([LANE, OTHER, LANE, OTHER]))).unwrap();
    assert_eq!(service.sent(), [vec![0, 1], vec![3], vec![0], vec![2]]);
}

#[test]
fn entries_behind_a_left_one_are_left() {
    let script = [Fate::Error(ErrorKind::Refused), Fate::Ok, Fate::Ok];
    let service = Service::new(script);
    let undelivered = complete(service.sender().send(entries([LANE, OTHER, LANE, OTHER, None]))).unwrap_err();
    let causes = [
        Err(EntryError::Refused(error(ErrorKind::Refused))),
        Ok(()),
        Err(EntryError::Behind),
        Ok(()),
        Ok(()),
    ];
    assert_eq!(undelivered.by_entry(), causes);
    assert_eq!(
        EntryError::Behind.to_string(),
        "not sent, because an earlier entry of the same group or key was \
                                           not delivered"
    );
}

#[test]
fn too_large_entry_splits_its_lane() {
    let limits = Limits { entry_bytes: 5, ..ROOMY };
    let service = Service { limits, ..Service::new([Fate::Ok]) };
    let mut entries = entries([LANE, LANE, LANE, OTHER]);
    entries[1].size = 6;
    let undelivered = complete(service.sender().send(entries)).unwrap_err();
    let causes = [Ok(()), Err(EntryError::TooLarge { size: 6, limit: 5 }), Err(EntryError::Behind), Ok(())];
    assert_eq!(undelivered.by_entry(), causes);
}

#[test]
fn lanes_of_different_parts_are_different() {
    assert_eq!(Lane::new(["ab", "c"]), Lane::new(["ab", "c"]));
    assert_ne!(Lane::new(["ab", "c"]), Lane::new(["a", "bc"]));
    assert_ne!(Lane::new(["ab", ""]), Lane::new(["ab"]));
}

#[test]
fn last_wins_survives_a_too_large_entry() {
    let limits = Limits { entry_bytes: 5, ..ROOMY };
    let service = Service { limits, lanes: Lane::last_wins, ..Service::new([Fate::Ok]) };
    let mut entries = entries([LANE, LANE, LANE]);
    entries[1].size = 6;
    let undelivered = complete(service.sender().send(entries)).unwrap_err();
    assert_eq!(undelivered.by_entry(), [Ok(()), Err(EntryError::TooLarge { size: 6, limit: 5 }), Ok(())]);
}

#[test]
fn last_wins_survives_a_left_write() {
    let (refused, throttled) = (Fate::Error(ErrorKind::Refused), Fate::Error(ErrorKind::Throttled));
    for (fate, cause) in [
        (refused, EntryError::Refused(error(ErrorKind::Refused))),
        (throttled, EntryError::Exhausted(error(ErrorKind::Throttled))),
    ] {
        let service = Service { lanes: Lane::last_wins, ..Service::new([fate, Fate::Ok]) };
        let sender = service.sender().retries(Retries::none());
        let undelivered = complete(sender.send(entries([LANE, LANE, LANE]))).unwrap_err();
        assert_eq!(service.sent(), [[0], [1], [2]]);
        assert_eq!(undelivered.by_entry(), [Err(cause), Ok(()), Ok(())]);
    }
}

proptest! {
    /// Whatever fails, each entry in a lane arrives at most once, and the entries that arrive keep their order.
    #[test]
    fn lanes_keep_their_order(
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
        let service = Service { limits, polls: 1, ..Service::new(fates) };
        let entries: Vec<Entry> =
            (0..).zip(&lanes).map(|(id, lane)| Entry { id, size: 1, lane: *lane }).collect();
        let outcomes = comeback_delivery::by_entry(complete(service.sender().concurrency(calls).send(entries)));
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
