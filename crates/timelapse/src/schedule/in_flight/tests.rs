use proptest::prelude::*;

use super::*;
use crate::schedule::RetriesMade;
use crate::schedule::moves_of;

const LIMIT: usize = 1_000;

/// Returns a schedule in which each event is retried once. `waits` contains the wait of each event, in seconds.
fn schedule(waits: &[u32], hide_up_to: HideUpTo) -> Schedule {
    let retries_made = RetriesMade { mean: 1.0, min: 1, p5: 1, p95: 1, max: 1 };
    let (dead_lettered, retries) = (Default::default(), Vec::new());
    let moves: u64 = waits.iter().copied().map(moves_of).sum();
    let moves_of_an_event = moves as f64 / waits.len() as f64;
    let (events, waits) = (waits.len(), waits.to_vec());
    Schedule { seed: 1, events, retries_made, dead_lettered, retries, waits, moves_of_an_event, hide_up_to }
}

fn always(waits: &[u32], rate: f64) -> InFlight {
    schedule(waits, HideUpTo::Always).in_flight(rate, LIMIT)
}

#[test]
fn rate_times_wait_is_waiting() {
    let in_flight = always(&[100, 300], 2.0);
    assert_eq!((in_flight.mean_wait_seconds, in_flight.waiting, in_flight.in_flight), (200.0, 400.0, 400.0));
    assert_eq!((in_flight.full_after_seconds, in_flight.highest_events_per_second), (None, Some(5.0)));
}

#[test]
fn limit_is_reached_after_some_are_dead_lettered() {
    let full_after =
        |rate, limit| schedule(&[100, 300], HideUpTo::Always).in_flight(rate, limit).full_after_seconds;
    assert_eq!(full_after(10.0, 1_000), Some(100.0), "none has been dead-lettered yet");
    assert_eq!(full_after(10.0, 500), Some(50.0));
    // At first, the number of waiting events grows by 10 a second. After 100 s, half of the events leave as
    // dead-letters, so the number grows by 5 a second.
    assert_eq!(full_after(10.0, 1_500), Some(200.0));
    assert_eq!(full_after(10.0, 2_000), Some(300.0), "the limit is reached exactly");
    assert_eq!(full_after(10.0, 2_001), None);
}

#[test]
fn events_not_hidden_are_delayed_without_limit() {
    // If 10 events a second wait 2,700 s each, then 27,000 events wait, and each takes 3 moves. Hiding 900 messages
    // saves one move a second.
    let in_flight = schedule(&[2_700], HideUpTo::UpTo(900)).in_flight(10.0, LIMIT);
    assert_eq!(
        (in_flight.waiting, in_flight.in_flight, in_flight.in_flight_at_most),
        (27_000.0, 900.0, 1_800.0)
    );
    assert_eq!((in_flight.moves.delayed, in_flight.moves.per_second), (26_100.0, 29.0));
    assert_eq!((in_flight.full_after_seconds, in_flight.highest_events_per_second), (None, None));
}

#[test]
fn queue_limit_below_hide_up_to_is_reached() {
    let full_after =
        |hide_up_to| schedule(&[2_700], HideUpTo::UpTo(hide_up_to)).in_flight(10.0, LIMIT).full_after_seconds;
    assert_eq!((full_after(999), full_after(1_000)), (None, Some(100.0)));
}

#[test]
fn hidden_messages_save_moves_and_their_price() {
    // If no message is hidden, there are 4 moves a second. With 900 hidden messages, there are 3 moves a second, or
    // 10,800 an hour.
    let moves = MoveCosts::of(4.0, 2_700.0, 900.0);
    assert_eq!((moves.delayed, moves.per_second), (1_800.0, 3.0));
    assert!((moves.usd_per_hour - 10_800.0 * 0.248_433_5e-6).abs() < 1e-9, "{moves:?}");
    // Each event-hour of delay takes 6 moves.
    let usd = moves.usd_per_million_event_hours.unwrap();
    assert!((usd - 6.0 * 0.248_433_5).abs() < 1e-9, "{usd}");
}

#[test]
fn nothing_moves_with_room_for_all() {
    let none =
        MoveCosts { delayed: 0.0, per_second: 0.0, usd_per_hour: 0.0, usd_per_million_event_hours: None };
    assert_eq!(MoveCosts::of(4.0, 2_700.0, 2_700.0), none);
}

#[test]
fn pollers_are_rounded_up_to_at_least_two() {
    // A batch has 10 messages, and 10 batches a second keep one poller busy.
    assert_eq!(pollers(0.0, 0.0), 2);
    assert_eq!(pollers(50.0, 100.0), 2, "200 messages a second");
    assert_eq!(pollers(50.0, 101.0), 3);
    assert_eq!(pollers(50_000.0, 500.0), 1_005);
}

proptest! {
    #[test]
    fn every_event_waits_somewhere(
        mut waits in proptest::collection::vec(1..100_000u32, 1..20),
        rate in 0.001..10_000.0f64,
        hide_up_to in 0..=55_000u64,
    ) {
        waits.sort_unstable();
        let of = |hide_up_to| schedule(&waits, HideUpTo::UpTo(hide_up_to)).in_flight(rate, 120_000);
        let in_flight = of(hide_up_to);
        let InFlight { waiting, moves, .. } = in_flight;
        prop_assert!((in_flight.in_flight + moves.delayed - waiting).abs() <= waiting * 1e-9);
        prop_assert!(in_flight.in_flight <= hide_up_to as f64);
        prop_assert!(in_flight.in_flight_at_most <= 2.0 * hide_up_to as f64);
        prop_assert_eq!((in_flight.full_after_seconds, in_flight.highest_events_per_second), (None, None));
        // A delay lasts at most 900 s, so each delayed event is sent again at least once in 900 s.
        prop_assert!(moves.per_second >= moves.delayed / 900.0 * 0.999_999);
        // Hiding messages never increases the number of moves.
        let none_hidden = of(0);
        prop_assert!(moves.per_second <= none_hidden.moves.per_second);
        prop_assert!(moves.usd_per_hour <= none_hidden.moves.usd_per_hour);
        prop_assert!((2..=none_hidden.pollers).contains(&in_flight.pollers));
    }
}
