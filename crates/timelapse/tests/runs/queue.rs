//! Simulated runs that reach limits of SQS or of the event source mapping, or in which the handler is too slow.

use std::time::Duration;

use comeback_engine::{Jitter, Outcome, Settings};
use comeback_timelapse::{ApiCall, EventNumber, Fault, Faults, Scenario, Strikes, Summary, Watcher};

use super::{busy, hours, long_waits, summary, watched};

#[test]
fn sqs_accepts_every_call_of_the_handler() {
    struct NoProblem;
    impl Watcher for NoProblem {
        fn decided(&mut self, _: Duration, event: EventNumber, outcome: &Outcome<'_>) {
            assert!(outcome.problem().is_none(), "event {event}: {outcome:?}");
            assert!(outcome.step().is_some());
        }
    }
    watched(&busy(), long_waits(), &mut NoProblem);
}

#[test]
fn the_longest_deferral_is_one_sqs_accepts() {
    struct Longest(u64);
    impl Watcher for Longest {
        fn decided(&mut self, _: Duration, _: EventNumber, outcome: &Outcome<'_>) {
            assert!(outcome.problem().is_none(), "{outcome:?}");
            self.0 = self.0.max(outcome.visibility_timeout().unwrap_or_default().as_secs());
        }
    }
    let settings =
        Settings { base_backoff: 43_170, jitter: Jitter::None, max_age: 14 * 86_400, ..long_waits() };
    let slow = Duration::from_secs(20);
    let scenario = Scenario {
        events: 5,
        duration: hours(96),
        outage: hours(48),
        handler_run_time: slow,
        ..Scenario::default()
    };
    let mut longest = Longest(0);
    let summary = watched(&scenario, settings, &mut longest);
    assert_eq!((summary.delivered, longest.0), (5, 43_170));
}

/// Handler run time that goes past the batch's deadline, which is 7 s before the handler's timeout. In that case, the
/// handler makes no calls.
const LATE: Duration = Duration::from_secs(58);

#[test]
fn handler_past_its_deadline_loses_nothing() {
    let late = Scenario { handler_run_time: LATE, events: 5, ..Scenario::default() };
    let summary = summary(&late, long_waits());
    assert_eq!((summary.waiting, summary.retries), (5, 0));
    assert_eq!(summary.api_calls.of(ApiCall::ChangeMessageVisibilityBatch), 0);
    assert!(summary.api_calls.of(ApiCall::InvokeHandler) > 5, "messages come back after the queue's timeout");
}

/// 1,000 receives, one every 1,230 s, take 14 days and 5 hours, which is longer than the retention period.
#[test]
fn sqs_moves_no_message_before_its_retention_ends() {
    let late =
        Scenario { handler_run_time: LATE, events: 3, duration: hours(15 * 24), ..Scenario::default() };
    let summary = summary(&late, long_waits());
    assert_eq!(summary.dead_lettered, [("expired", 3)].into());
}

#[test]
fn a_refusal_of_the_queue_is_final() {
    let faults = Faults::default().with(Fault::StaleReceiptHandle, Strikes::always(1.0));
    let summary = summary(&Scenario { faults, duration: hours(2), ..busy() }, long_waits());
    let calls = |call| summary.api_calls.of(call);
    assert!(calls(ApiCall::ChangeMessageVisibilityBatch) <= calls(ApiCall::InvokeHandler));
}

#[test]
fn stalled_queue_dead_letters_events_before_sqs_deletes_them() {
    // Only one message is in flight at a time, and it stays in flight for 12 hours.
    let settings =
        Settings { base_backoff: 43_170, jitter: Jitter::None, max_age: 14 * 86_400, ..long_waits() };
    let summary = summary(&Scenario { in_flight_limit: 1, ..two_weeks() }, settings);
    assert_eq!(summary.peak_in_flight, 1);
    // The wait of one event is shortened, so that it gets a last retry before it would be dead-lettered.
    assert_eq!((summary.dead_lettered, summary.delivered), ([("max_age", 39)].into(), 1));
}

fn two_weeks() -> Scenario {
    Scenario { events: 40, arrival_spread: hours(1), duration: hours(15 * 24), ..Scenario::default() }
}

#[test]
fn too_few_pollers_show_as_visible_messages() {
    let scenario = Scenario { events: 500, ..Scenario::default() };
    let slow = Duration::from_secs(28);
    let slow = Scenario { handler_run_time: slow, ..scenario.clone() };
    let free = summary(&scenario, long_waits());
    let few = summary(&slow, Settings { maximum_concurrency: 2, ..long_waits() });
    assert!(few.peak_in_flight < free.peak_in_flight, "{} in flight", few.peak_in_flight);
    assert!(few.peak_visible > 10 * free.peak_visible, "{} and {}", few.peak_visible, free.peak_visible);
}

#[test]
fn fewer_or_smaller_batches_cost_time_or_calls() {
    let burst = Scenario {
        events: 100,
        arrival_spread: Duration::ZERO,
        handler_run_time: Duration::from_secs(5),
        ..Scenario::default()
    };
    let settings =
        |maximum_concurrency| Settings { jitter: Jitter::None, maximum_concurrency, ..long_waits() };
    let wide = summary(&burst, settings(50));
    let narrow = summary(&burst, settings(2));
    let single = summary(&Scenario { batch_size: 1, ..burst }, settings(50));
    let last = |summary: &Summary| summary.recovery_delay_ms.unwrap().max;
    assert!(last(&narrow) > last(&wide) + 20_000, "{} and {}", last(&narrow), last(&wide));
    let calls = |summary: &Summary| summary.api_calls.of(ApiCall::ChangeMessageVisibilityBatch);
    assert_eq!(calls(&wide) * 10, calls(&single), "ten first receives cost one call");
}
