//! Simulated runs in which the handler moves messages.

use std::collections::BTreeSet;
use std::time::Duration;

use comeback_engine::{HideUpTo, Outcome, Settings, What};
use comeback_timelapse::{ApiCall, EventNumber, Scenario, Watcher};
use rayon::prelude::*;

use super::{HOUR, long_waits, summary, watched};

fn hiding(hide_up_to: HideUpTo) -> Settings {
    Settings { hide_up_to, ..long_waits() }
}

/// Event, number and due time (in ms) of every retry.
#[derive(Default)]
struct Retries(BTreeSet<(usize, u64, u64)>);

impl Watcher for Retries {
    fn decided(&mut self, _: Duration, event: EventNumber, outcome: &Outcome<'_>) {
        if let (What::Reinvoke { due, .. }, Some(retry)) = (&outcome.what, outcome.retry()) {
            self.0.insert((event.0, retry, due.as_millis()));
        }
    }
}

/// Calls take no time, so each retry comes at its due time.
#[test]
fn hiding_and_moving_give_the_same_retries() {
    (1..=4u64).into_par_iter().for_each(|seed| {
        let scenario = Scenario {
            seed,
            events: 200,
            poll_delay: Duration::ZERO,
            handler_run_time: Duration::ZERO,
            ..Scenario::default()
        };
        let [hidden, mixed, moved] = [HideUpTo::Always, HideUpTo::UpTo(50), HideUpTo::UpTo(0)].map(|how| {
            let mut retries = Retries::default();
            let summary =
                watched(&scenario, Settings { maximum_concurrency: 2, ..hiding(how) }, &mut retries);
            assert_eq!(summary.delivered, 200, "seed {seed}, {how}");
            (retries.0, summary.moves)
        });
        assert!(hidden.0.len() > 2_000 && hidden.1 == 0 && mixed.1 > 200 && moved.1 > mixed.1);
        assert_eq!(hidden.0, moved.0, "seed {seed}");
        assert_eq!(hidden.0, mixed.0, "seed {seed}");
    });
}

/// Between two counts, the number of messages in flight may rise to twice `HIDE_UP_TO`, plus a batch for each poller.
#[test]
fn bounded_messages_in_flight_delay_no_event() {
    let scenario = Scenario { events: 4_000, arrival_spread: HOUR, outage: HOUR, ..Scenario::default() };
    let few = |hide_up_to| Settings { maximum_concurrency: 2, ..hiding(hide_up_to) };
    let bounded = summary(&scenario, few(HideUpTo::UpTo(400)));
    let free = summary(&scenario, few(HideUpTo::Always));
    assert_eq!((bounded.delivered, free.delivered), (4_000, 4_000));
    assert!(free.peak_in_flight > 3_900, "{}", free.peak_in_flight);
    assert!((350..=820).contains(&bounded.peak_in_flight), "{}", bounded.peak_in_flight);
    assert!(bounded.peak_delayed > 3_000, "{}", bounded.peak_delayed);
    let [late, early] =
        [bounded, free].map(|summary| summary.recovery_delay_ms.expect("an outage").p99 as f64);
    assert!((0.95..1.05).contains(&(late / early)), "{late} and {early} ms");
}

/// At its limit in flight, SQS withholds messages. Here, the limit is the bound on what the handler keeps in flight.
#[test]
fn limit_equal_to_the_bound_stalls_nothing() {
    let scenario = Scenario {
        events: 500,
        arrival_spread: HOUR,
        in_flight_limit: 2 * 40 + 2 * 10,
        ..Scenario::default()
    };
    let summary = summary(&scenario, Settings { maximum_concurrency: 2, ..hiding(HideUpTo::UpTo(40)) });
    assert_eq!(summary.delivered, 500);
}

#[test]
fn without_room_only_the_handlers_messages_are_in_flight() {
    let scenario = Scenario { events: 500, ..Scenario::default() };
    let summary = summary(&scenario, hiding(HideUpTo::UpTo(0)));
    assert_eq!(summary.delivered, 500);
    assert!(summary.peak_in_flight <= 100, "{}", summary.peak_in_flight);
    let hidden = summary.api_calls.of(ApiCall::ChangeMessageVisibilityBatch);
    assert!(
        hidden <= summary.api_calls.of(ApiCall::InvokeHandler),
        "once a batch, before its calls: {hidden}"
    );
    assert_eq!((summary.api_calls.of(ApiCall::GetQueueAttributes), summary.moves_with_room), (0, 0));
    assert!(summary.moves > summary.retries, "a wait takes one move at least");
}

#[test]
fn nothing_moves_with_room_and_counts_are_few() {
    let summary = summary(&Scenario::default(), long_waits());
    assert_eq!((summary.moves, summary.peak_delayed), (0, 0));
    let counts = summary.api_calls.of(ApiCall::GetQueueAttributes);
    assert!((1..100).contains(&counts), "{counts} counts in a day");
}

/// With many pollers, each environment may hide only a few messages, because all pollers share the room.
#[test]
fn too_many_pollers_move_despite_room() {
    let moved = |maximum_concurrency| {
        let settings = Settings { maximum_concurrency, ..hiding(HideUpTo::UpTo(1_000)) };
        summary(&Scenario { events: 500, ..Scenario::default() }, settings)
    };
    let (few, many) = (moved(2), moved(1_000));
    assert_eq!((few.moves, few.moves_with_room), (0, 0));
    assert!(many.moves_with_room > 0 && many.moves_with_room <= many.moves, "{} moves", many.moves);
    assert_eq!((few.delivered, many.delivered), (500, 500));
}
