use proptest::prelude::*;

use super::*;
use crate::Settings;

fn room(hide_up_to: HideUpTo, pollers: u64) -> Room {
    let settings = Settings { hide_up_to, maximum_concurrency: pollers, ..Settings::default() };
    Room::of(&Policy::new(settings).unwrap())
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(1_000_000 + seconds)
}

fn found(in_flight: u64, seconds: u64) -> Result<Look, CallFailure> {
    Ok(Look { in_flight, at: at(seconds) })
}

#[test]
fn a_new_environment_hides_its_first_batch_and_then_looks() {
    let mut room = room(HideUpTo::UpTo(1_000), 5);
    assert_eq!(room.left(), u64::MAX);
    room.take(10);
    assert_eq!(room.left(), u64::MAX, "the batch goes on");
    assert!(room.end_batch(at(0)) && room.left() == 0);
    room.looked(&found(200, 1), at(0));
    assert!(room.left() == 80 && !room.end_batch(at(500)), "(1,000 - 200) / 10");
}

#[test]
fn the_next_look_comes_when_room_is_low_and_a_minute_after_the_last() {
    let mut room = room(HideUpTo::UpTo(1_000), 5);
    assert!(room.end_batch(at(0)));
    room.looked(&found(0, 1), at(0));
    room.take(90);
    assert!(room.left() == 10 && !room.end_batch(at(61)), "a batch fits");
    room.take(1);
    assert!(!room.end_batch(at(60)) && room.end_batch(at(61)));
    room.take(20);
    assert_eq!(room.left(), 0);
    room.looked(&found(2_000, 61), at(61));
    assert!(room.left() == 0 && !room.end_batch(at(120)) && room.end_batch(at(121)));
}

#[test]
fn a_failed_look_is_no_room_for_a_minute() {
    let mut room = room(HideUpTo::UpTo(1_000), 5);
    assert!(room.end_batch(at(0)));
    room.looked(&found(0, 1), at(0));
    room.take(95);
    room.looked(&Err(CallFailure { cause: "throttled".into(), remedy: None }), at(100));
    assert!(room.left() == 0 && !room.end_batch(at(159)) && room.end_batch(at(160)));
}

#[test]
fn always_and_never_need_no_look() {
    for (hide_up_to, left) in [(HideUpTo::Always, u64::MAX), (HideUpTo::UpTo(0), 0)] {
        let mut room = room(hide_up_to, 2);
        assert_eq!(room.left(), left, "in a first batch");
        room.take(10);
        assert!(!room.end_batch(at(0)));
        assert!(room.left() == left && !room.end_batch(at(1_000)));
    }
}

proptest! {
    /// The bound of the type's docs, with counts a minute old and every environment as greedy as it can be:
    /// each hides all it may, as soon as it may, and nothing ever comes back.
    #[test]
    fn at_most_twice_as_many_and_a_batch_a_poller_are_in_flight(
        most in 1..2_000u64,
        pollers in 2..20u64,
        turns in prop::collection::vec((0..20usize, 0..30u64), 1..600),
    ) {
        let mut rooms = vec![room(HideUpTo::UpTo(most), pollers); pollers as usize];
        let (mut now, mut in_flight) = (0, 0);
        let mut history = vec![(0, 0)];
        for (turn, later) in turns {
            now += later;
            let room = &mut rooms[turn % pollers as usize];
            let hidden = room.left().min(10);
            room.take(hidden);
            in_flight += hidden;
            history.push((now, in_flight));
            if room.end_batch(at(now)) {
                let minute_ago = now.saturating_sub(60);
                let count = history.iter().rev().find(|(at, _)| *at <= minute_ago).map_or(0, |(_, count)| *count);
                room.looked(&found(count, now), at(now));
            }
            prop_assert!(in_flight <= 2 * most + 10 * pollers, "{in_flight} of {most}, {pollers} pollers");
        }
    }
}
