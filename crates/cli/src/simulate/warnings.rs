//! What a run's figures alone do not say: which setting held its events up, or made it dearer.

use std::time::Duration;

use comeback_engine::Policy;
use comeback_timelapse::{Fault, Minute, Scenario, Summary};
use indicatif::HumanCount;

use crate::simulate::figures::not_arrived;

/// More than this many batches of visible messages for each poller: pollers cannot keep up, ...
const BATCHES_BEHIND: u64 = 10;
/// ... if it lasts for as many minutes in a row. Much that arrives at once is over sooner.
const MINUTES_BEHIND: usize = 5;

/// Every warning about a run.
pub(super) fn warnings(scenario: &Scenario, policy: &Policy, summary: &Summary) -> Vec<String> {
    let about_pollers = [too_few_pollers(scenario, policy, summary), too_many_pollers(policy, summary)];
    not_arrived(scenario, summary.not_arrived as u64)
        .into_iter()
        .chain(about_pollers.into_iter().flatten())
        .collect()
}

/// Says that events waited for pollers, if they did for several minutes.
fn too_few_pollers(scenario: &Scenario, policy: &Policy, summary: &Summary) -> Option<String> {
    let pollers = policy.maximum_concurrency();
    let behind = pollers * scenario.batch_size as u64 * BATCHES_BEHIND;
    let held_up = |(number, minute): (usize, &Minute)| {
        u64::from(minute.visible) > behind
            && (minute.in_flight as usize) < summary.in_flight_limit
            && !others_fill_the_queue(scenario, number)
    };
    let held_up: Vec<bool> = summary.minutes.iter().enumerate().map(held_up).collect();
    let minutes = held_up.split(|held_up| !held_up).map(<[bool]>::len).max().unwrap_or(0);
    (minutes >= MINUTES_BEHIND).then(|| {
        format!(
            "for {minutes} minutes in a row over {} messages were visible, and not received although fewer were in \
             flight than can be: {} pollers are too few, and retries come late. Raise MAXIMUM_CONCURRENCY \
             (--maximum-concurrency) to what `comeback schedule --rate` prints",
            HumanCount(behind),
            HumanCount(pollers),
        )
    })
}

/// Whether the fault that fills the queue strikes in a minute: pollers receive nothing then.
fn others_fill_the_queue(scenario: &Scenario, minute: usize) -> bool {
    let [start, end] = [minute, minute + 1].map(|minute| Duration::from_secs(60 * minute as u64));
    scenario.faults.iter().any(|(fault, strikes)| {
        fault == Fault::InFlightLimit
            && strikes.rate > 0.0
            && strikes.window.start < end
            && start < strikes.window.end
    })
}

/// Says that messages were sent again where they could have been hidden, if that is more than half of the
/// moves.
fn too_many_pollers(policy: &Policy, summary: &Summary) -> Option<String> {
    (2 * summary.moves_with_room > summary.moves).then(|| {
        format!(
            "{} of {} messages that were sent again could have been hidden, because fewer than half of HIDE_UP_TO \
             ({}) were in flight: {} pollers share that room, and none can use another's. Keep MAXIMUM_CONCURRENCY \
             (--maximum-concurrency) near what `comeback schedule --rate` prints",
            HumanCount(summary.moves_with_room),
            HumanCount(summary.moves),
            policy.hide_up_to(),
            HumanCount(policy.maximum_concurrency()),
        )
    })
}

#[cfg(test)]
mod tests;
