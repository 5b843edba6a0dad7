use comeback_timelapse::Schedule;

use crate::chart::time_axis::TimeAxis;

/// From the first retry to `MAX_AGE`, or to the last retry where `MAX_RETRIES` comes long before.
/// Logarithmic where the gaps between retries grow, linear where they are even.
pub(super) fn axis_of(schedule: &Schedule, max_age: f64) -> TimeAxis {
    let times = || schedule.retries.iter().map(|retry| retry.since_first_failure_seconds);
    let first = times().next().map_or(1, |time| time.p5);
    let halfway = times().nth(schedule.retries.len() / 2).map_or(0.0, |time| time.mean);
    let last = f64::from(times().map(|time| time.p95).max().unwrap_or(1));
    let end = if last * 3.0 < max_age { last * 1.1 } else { max_age };
    if halfway < 0.2 * last {
        TimeAxis::logarithmic(f64::from(first.max(1)) / 1.3, end)
    } else {
        TimeAxis::linear(end)
    }
}
