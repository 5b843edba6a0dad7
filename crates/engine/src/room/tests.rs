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
fn a_new_environment_has_no_room_before_its_first_look() {
    let mut room = room(HideUpTo::UpTo(1_000), 5);
    assert!(room.left() == 0 && room.is_unknown() && room.is_low(at(0)));
    room.looked(&found(200, 1), at(0));
    assert_eq!(room.left(), 80, "(1,000 - 200) / 10");
    assert!(!room.is_unknown() && !room.is_low(at(500)));
}

#[test]
fn the_next_look_comes_when_room_is_low_and_a_minute_after_the_last() {
    let mut room = room(HideUpTo::UpTo(1_000), 5);
    room.looked(&found(0, 1), at(0));
    room.take(90);
    assert!(room.left() == 10 && !room.is_low(at(61)), "a batch fits");
    room.take(1);
    assert!(!room.is_low(at(60)) && room.is_low(at(61)));
    room.take(20);
    assert_eq!(room.left(), 0);
    room.looked(&found(2_000, 61), at(61));
    assert!(room.left() == 0 && !room.is_low(at(120)) && room.is_low(at(121)));
}

#[test]
fn a_failed_look_is_no_room_for_a_minute() {
    let mut room = room(HideUpTo::UpTo(1_000), 5);
    room.looked(&found(0, 1), at(0));
    room.looked(&Err(CallFailure { cause: "throttled".into(), remedy: None }), at(100));
    assert!(room.left() == 0 && !room.is_low(at(159)) && room.is_low(at(160)));
}

#[test]
fn where_a_look_could_not_change_the_room_none_is_made() {
    for (hide_up_to, pollers, left) in
        [(HideUpTo::Always, 2, u64::MAX), (HideUpTo::UpTo(0), 2, 0), (HideUpTo::UpTo(39), 20, 0)]
    {
        let mut room = room(hide_up_to, pollers);
        assert!(!room.is_unknown() && !room.is_low(at(0)), "{hide_up_to}");
        room.take(10);
        assert_eq!((room.left(), room.is_low(at(1_000))), (left, false), "{hide_up_to}");
    }
}

proptest! {
    /// The bound of the type's docs, with counts a minute old and every environment as greedy as it can be:
    /// each hides all it may, as soon as it may, has a batch in hand all the time, and nothing ever comes back.
    /// Now and then an environment is replaced by a new one.
    #[test]
    fn at_most_twice_as_many_and_a_batch_a_poller_are_in_flight(
        most in 1..2_000u64,
        pollers in 2..20u64,
        turns in prop::collection::vec((0..20usize, 0..30u64, 0..10u8), 1..600),
    ) {
        let mut rooms = vec![(room(HideUpTo::UpTo(most), pollers), 0); pollers as usize];
        let in_hand = 10 * pollers;
        let (mut now, mut in_flight) = (0, in_hand);
        let mut history = vec![(0, in_hand)];
        for (turn, later, fate) in turns {
            now += later;
            let (room_of, born) = &mut rooms[turn % pollers as usize];
            if fate == 0 && now >= *born + 60 {
                (*room_of, *born) = (room(HideUpTo::UpTo(most), pollers), now);
            }
            if room_of.is_low(at(now)) {
                let minute_ago = now.saturating_sub(60);
                let count = history.iter().rev().find(|(at, _)| *at <= minute_ago).map_or(in_hand, |(_, n)| *n);
                room_of.looked(&found(count, now), at(now));
            }
            let hidden = room_of.left().min(10);
            room_of.take(hidden);
            in_flight += hidden;
            history.push((now, in_flight));
            prop_assert!(in_flight <= 2 * most + in_hand, "{in_flight} of {most}, {pollers} pollers");
        }
    }
}
