//! Tests for the figures that a run returns.

use std::time::Duration;

use comeback_engine::{Jitter, Settings};
use comeback_timelapse::{ApiCall, Percentiles, Scenario, Summary};

use super::{busy, dead_lettered, hours, long_waits, summary};

#[test]
fn every_minute_has_the_queues_depth() {
    let spread = hours(1);
    let scenario = Scenario { events: 200, arrival_spread: spread, ..Scenario::default() };
    let free = summary(&scenario, long_waits());
    let depths = |summary: &Summary| -> Vec<u32> { summary.minutes.iter().map(|m| m.in_flight).collect() };
    assert_eq!(depths(&free).iter().copied().max(), Some(free.peak_in_flight as u32));
    // The messages of all events that have arrived are hidden until the outage ends.
    assert!(depths(&free)[60..180].iter().all(|&depth| depth == 200), "{:?}", depths(&free));
    assert!((90..110).contains(&depths(&free)[30]), "half of them have arrived");
    assert_eq!(depths(&free).last(), Some(&0));
    // Without jitter, nothing happens between the single event's retries at 8,191 s and 16,383 s.
    let one = Scenario { events: 1, arrival_spread: Duration::ZERO, ..Scenario::default() };
    let quiet = summary(&one, Settings { jitter: Jitter::None, ..long_waits() });
    assert!(depths(&quiet)[140..270].iter().all(|&depth| depth == 1), "{:?}", depths(&quiet));
    let limited = summary(&Scenario { in_flight_limit: 20, ..scenario }, long_waits());
    let waiting = limited.minutes[60];
    assert_eq!(waiting.in_flight, 20);
    assert!((180..=185).contains(&waiting.visible), "the others are not received: {waiting:?}");
}

#[test]
fn delays_cover_events_that_arrived_in_the_outage() {
    let summary = summary(&Scenario { duration: hours(4), ..busy() }, long_waits());
    let delays = &summary.recovery_delays_ms;
    assert!((15..25).contains(&summary.events_hit), "half arrive during the outage: {}", summary.events_hit);
    assert!(delays.len() < summary.events_hit && delays.is_sorted(), "some are still waiting: {delays:?}");
    assert_eq!(Percentiles::of(delays.clone()), summary.recovery_delay_ms);
}

#[test]
fn calls_match_the_events() {
    let summary = summary(&busy(), Settings { max_retries: 5, ..long_waits() });
    let calls = |operation| summary.api_calls.of(operation);
    let dead_lettered = dead_lettered(&summary) as u64;
    assert!(dead_lettered > 0 && summary.delivered > 0);
    assert_eq!(calls(ApiCall::InvokeTarget), summary.retries);
    // Each invocation ends in a delivery or in an invocation record.
    assert_eq!(calls(ApiCall::SendMessage) + summary.delivered as u64, summary.retries + 40);
    assert!(calls(ApiCall::SendMessageBatch) <= dead_lettered);
    assert!(calls(ApiCall::DeleteMessageBatch) <= summary.retries + dead_lettered);
    let minutes = |count: fn(&comeback_timelapse::Minute) -> u32| {
        summary.minutes.iter().map(|minute| u64::from(count(minute))).sum::<u64>()
    };
    assert_eq!(minutes(|minute| minute.retries), summary.retries);
    assert_eq!(minutes(|minute| minute.delivered), summary.delivered as u64);
    assert_eq!(minutes(|minute| minute.dead_lettered), dead_lettered);
    let events_of: Vec<usize> = summary.events_by_attempts.clone();
    assert_eq!(
        (events_of.iter().sum::<usize>(), events_of.len() as u64 - 1),
        (40, summary.attempts.unwrap().max)
    );
    let attempts: usize = events_of.iter().enumerate().map(|(attempts, events)| attempts * events).sum();
    assert_eq!(attempts as u64, summary.retries);
}
