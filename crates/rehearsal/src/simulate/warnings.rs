//! Warnings about settings that delayed a run's events or made the run expensive.

use std::time::Duration;

use comeback_engine::Policy;
use comeback_operate::numbers::grouped;
use comeback_timelapse::{Fault, Minute, Scenario, Summary};

use crate::simulate::figures::not_arrived;

/// The pollers are behind if more than this many batches per poller are visible.
const BATCHES_BEHIND: u64 = 10;
/// Number of consecutive minutes for which the pollers must be behind to cause a warning.
const MINUTES_BEHIND: usize = 5;

/// Returns every warning about a run.
pub fn warnings(scenario: &Scenario, policy: &Policy, summary: &Summary) -> Vec<String> {
    let about_pollers = [too_few_pollers(scenario, policy, summary), too_many_pollers(policy, summary)];
    not_arrived(scenario, summary.not_arrived as u64)
        .into_iter()
        .chain(about_pollers.into_iter().flatten())
        .collect()
}

fn too_few_pollers(scenario: &Scenario, policy: &Policy, summary: &Summary) -> Option<String> {
    let pollers = policy.settings().maximum_concurrency;
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
            "for {minutes} minutes in a row, over {} messages were due and not received, although SQS had \
             room: {} pollers are too few, so retries come late. Raise MAXIMUM_CONCURRENCY \
             (--maximum-concurrency) to what `comeback schedule --rate` prints",
            grouped(behind),
            grouped(pollers),
        )
    })
}

/// Returns true if the fault `InFlightLimit`, which stops the pollers from receiving messages, can strike in this
/// minute.
fn others_fill_the_queue(scenario: &Scenario, minute: usize) -> bool {
    let [start, end] = [minute, minute + 1].map(|minute| Duration::from_secs(60 * minute as u64));
    scenario.faults.iter().any(|(fault, strikes)| {
        fault == Fault::InFlightLimit
            && strikes.rate > 0.0
            && strikes.window.start < end
            && start < strikes.window.end
    })
}

/// Returns a warning if more than half of the moved messages could have been hidden instead. The pollers share the
/// room evenly. If there are too many pollers, each has too little room.
fn too_many_pollers(policy: &Policy, summary: &Summary) -> Option<String> {
    (2 * summary.moves_with_room > summary.moves).then(|| {
        format!(
            "{} of {} re-sent messages could have been hidden, because fewer than half of HIDE_UP_TO ({}) \
             were in flight: {} pollers share that room evenly, and none can use another's. Keep \
             MAXIMUM_CONCURRENCY (--maximum-concurrency) near what `comeback schedule --rate` prints",
            grouped(summary.moves_with_room),
            grouped(summary.moves),
            policy.settings().hide_up_to,
            grouped(policy.settings().maximum_concurrency),
        )
    })
}

#[cfg(test)]
mod tests {
    use comeback_engine::Settings;
    use comeback_timelapse::{Faults, Strikes, TARGET_ARN, run};

    use super::*;

    const LIMIT: u32 = 1_000;

    fn policy() -> Policy {
        let target_functions = vec![TARGET_ARN.into()];
        let settings = Settings { target_functions, maximum_concurrency: 3, ..Settings::default() };
        Policy::new(settings).unwrap()
    }

    fn scenario() -> Scenario {
        Scenario { events: 1, batch_size: 2, in_flight_limit: LIMIT as usize, ..Scenario::default() }
    }

    fn summary(minutes: Vec<Minute>) -> Summary {
        Summary { minutes, ..run(&scenario(), &policy().into(), &mut ()).unwrap() }
    }

    /// Returns `minutes` minutes with `visible` visible messages each, between two minutes without any.
    fn visible(minutes: usize, visible: u32) -> Vec<Minute> {
        let quiet = Minute { in_flight: LIMIT - 1, ..Minute::default() };
        let behind = vec![Minute { visible, ..quiet }; minutes];
        [&[quiet], &behind[..], &[quiet]].concat()
    }

    fn held_up(minutes: Vec<Minute>) -> bool {
        too_few_pollers(&scenario(), &policy(), &summary(minutes)).is_some()
    }

    #[test]
    fn too_few_pollers_leave_ten_batches_visible_for_five_minutes() {
        // The threshold is 60 messages: 3 pollers × 2 messages a batch × 10 batches.
        assert!(held_up(visible(5, 61)));
        assert!(!held_up(visible(5, 60)), "ten batches of each");
        assert!(!held_up(visible(4, 61)), "four minutes");
        assert!(!held_up([visible(4, 61), visible(4, 61)].concat()), "not in a row");
        assert!(held_up([visible(4, 61), visible(6, 61)].concat()));
        let summary = summary([visible(5, 61), visible(7, 61)].concat());
        let warnings = warnings(&scenario(), &policy(), &summary);
        assert!(
            warnings[0].starts_with("for 7 minutes in a row, over 60 messages were due and not received, "),
            "{warnings:?}"
        );
    }

    #[test]
    fn full_queue_does_not_blame_the_pollers() {
        let mut full = visible(5, 61);
        full.iter_mut().for_each(|minute| minute.in_flight = LIMIT);
        assert!(!held_up(full));
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let filled = |until| {
            let strikes = Strikes { rate: 1.0, window: minutes(0)..until };
            let faults = Faults::default().with(Fault::InFlightLimit, strikes);
            too_few_pollers(&Scenario { faults, ..scenario() }, &policy(), &summary(visible(6, 61))).is_some()
        };
        // The messages are visible from the start of minute 1 onwards.
        assert!(filled(minutes(2)), "five minutes are left");
        assert!(!filled(minutes(2) + Duration::from_secs(1)));
    }

    #[test]
    fn too_many_pollers_move_despite_room() {
        let with_room = |moves_with_room| Summary { moves: 1_000, moves_with_room, ..summary(Vec::new()) };
        assert_eq!(warnings(&scenario(), &policy(), &with_room(500)), [""; 0]);
        let most = warnings(&scenario(), &policy(), &with_room(501));
        assert!(most[0].starts_with("501 of 1,000 re-sent messages could have been hidden, "), "{most:?}");
        assert_eq!(warnings(&scenario(), &policy(), &summary(Vec::new())), [""; 0], "no move at all");
    }
}
