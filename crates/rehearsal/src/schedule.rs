//! Shows a policy's schedule in words and pictures: when each retry of an event is due.

mod plot;

use std::time::Duration;

use comeback_engine::Policy;
use comeback_operate::durations;
use comeback_operate::numbers::{counted, grouped, round_step};
use comeback_timelapse::{Schedule, ScheduledRetry};

use crate::axis::TimeAxis;
use crate::figure::Chart;

pub use plot::draw;

/// Maximum number of rows in a table that shows every retry.
const ROWS: usize = 32;
/// Number of early retries in a table that shows only some retries.
const FIRST_ROWS: usize = 12;
/// Maximum number of rows for round retry numbers, such as 50 and 100, in a table that shows only some retries.
const ROUND_ROWS: usize = 12;

/// Draws a policy's schedule for an HTML page.
pub fn chart(policy: &Policy) -> Chart {
    plot::chart(policy, &of_few_events(policy, 1))
}

/// Computes a policy's schedule, accurate to a few per cent, from a tenth of the usual number of events.
pub(crate) fn of_few_events(policy: &Policy, seed: u64) -> Schedule {
    Schedule::of(policy, seed, Schedule::default_events(policy, seed) / 10, &|| {})
}

/// Returns a headline of two lines: the policy, then the number of events that the schedule was computed from.
pub fn headline(policy: &Policy, schedule: &Schedule) -> String {
    let backoff = policy.backoff();
    let ceilings: Vec<String> = policy
        .settings()
        .backoffs
        .iter()
        .map(|&ceiling| durations::flag(Duration::from_secs(ceiling)))
        .collect();
    let ceilings = if ceilings.is_empty() {
        let [base, cap] = [backoff.base(), backoff.cap()].map(durations::text);
        format!("BASE_BACKOFF {base}, MAX_BACKOFF {cap}")
    } else {
        format!("BACKOFFS {}", ceilings.join(","))
    };
    format!(
        "MAX_AGE {}, MAX_RETRIES {}, {ceilings}, JITTER {}\n{} every time, until dead-lettered; seed {}",
        durations::text(policy.max_age()),
        policy.settings().max_retries,
        backoff.jitter(),
        counted(schedule.events as u64, "event that fails", "events that fail"),
        schedule.seed
    )
}

/// Describes the number of retries per event, and the reasons why an event's retries end.
pub fn outcome(schedule: &Schedule) -> String {
    let made = schedule.retries_made;
    let range = if made.min == made.max {
        format!("{}, each event", counted(made.max as u64, "retry", "retries"))
    } else {
        format!(
            "{:.1} retries on average, {} to {} for nine events in ten, {} to {} for all",
            made.mean, made.p5, made.p95, made.min, made.max
        )
    };
    let reasons: Vec<String> = schedule
        .dead_lettered
        .iter()
        .map(|(reason, &count)| format!("{reason} ({})", grouped(count as u64)))
        .collect();
    format!("{range}; dead-lettered as {}", reasons.join(" and "))
}

/// Returns the retries in the schedule's table: all, or a selection with round numbers if there are many.
pub fn shown(retries: &[ScheduledRetry]) -> impl Iterator<Item = &ScheduledRetry> {
    let all = retries.len();
    let step = round_step(|step| all / step as usize <= ROUND_ROWS) as usize;
    let has_row = move |n| all <= ROWS || n <= FIRST_ROWS || n % step == 0 || n == all;
    retries.iter().filter(move |retry| has_row(retry.retry as usize))
}

/// Formats a share, such as `97.3 %`, without rounding it to `0 %` or `100 %`.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".into(),
        100.0 => "100 %".into(),
        percent if percent < 0.1 => "< 0.1 %".into(),
        percent => format!("{:.1} %", percent.min(99.9)),
    }
}

/// Returns the time axis of a schedule: logarithmic if the gaps between retries grow, otherwise linear.
pub fn axis_of(schedule: &Schedule, max_age: Duration) -> TimeAxis {
    let times = || schedule.retries.iter().map(|retry| retry.since_first_failure_seconds);
    let first = times().next().map_or(1, |time| time.p5);
    let halfway = times().nth(schedule.retries.len() / 2).map_or(0.0, |time| time.mean);
    let last = f64::from(times().map(|time| time.p95).max().unwrap_or(1));
    let max_age = max_age.as_secs_f64();
    let end = if last * 3.0 < max_age { last * 1.1 } else { max_age };
    if halfway < 0.2 * last {
        TimeAxis::logarithmic(f64::from(first.max(1)) / 1.3, end)
    } else {
        TimeAxis::linear(end)
    }
}

#[cfg(test)]
mod tests {
    use comeback_timelapse::Spread;

    use super::*;

    #[test]
    fn only_all_is_100_percent_and_only_none_is_0() {
        assert_eq!(
            [1.0, 0.9999, 0.681, 0.001, 0.0009, 0.0].map(percent),
            ["100 %", "99.9 %", "68.1 %", "0.1 %", "< 0.1 %", "0 %"]
        );
    }

    fn rows(retries: u64) -> Vec<u64> {
        let none = Spread { mean: 0.0, p5: 0, p95: 0 };
        let retry = |retry| ScheduledRetry {
            retry,
            ceiling_seconds: None,
            events: 1,
            wait_seconds: none,
            since_first_failure_seconds: none,
        };
        let retries: Vec<ScheduledRetry> = (1..=retries).map(retry).collect();
        shown(&retries).map(|retry| retry.retry).collect()
    }

    #[test]
    fn very_many_retries_have_rows_at_round_numbers() {
        assert_eq!(rows(0), [0; 0]);
        assert_eq!(rows(32), (1..=32).collect::<Vec<_>>());
        let first: Vec<u64> = (1..=12).collect();
        assert_eq!(rows(185), [&first[..], &[20, 40, 60, 80, 100, 120, 140, 160, 180, 185]].concat());
        assert_eq!(rows(10_000).len(), 12 + 10);
    }
}
