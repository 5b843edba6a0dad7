use anstyle::AnsiColor;
use comeback_timelapse::{Schedule, ScheduledRetry};

use crate::chart::time_axis::TimeAxis;
use crate::schedule::table::shown;

const CELLS: usize = 72;
/// Ticks are at least this share of the axis apart, so that their labels do not touch.
const TICKS_APART: f64 = 7.0 / CELLS as f64;

/// When each retry comes: a line from left to right for each, where nine events in ten have it.
pub(super) fn timeline(schedule: &Schedule, axis: &TimeAxis) -> String {
    // Colours are always written; the stream removes them where they cannot be shown.
    let colour = AnsiColor::Green.on_default();
    let line =
        |retry: &ScheduledRetry| format!("\n{:>6}  {colour}{}{colour:#}", retry.retry, line(retry, axis));
    let lines: String = shown(&schedule.retries).map(line).collect();
    format!(" retry  {}{lines}", scale(axis))
}

fn cell(share: f64) -> usize {
    (share * (CELLS - 1) as f64).round() as usize
}

fn scale(axis: &TimeAxis) -> String {
    let mut scale = String::new();
    for (seconds, label) in axis.ticks(TICKS_APART) {
        let gap = cell(axis.share(seconds)).saturating_sub(scale.chars().count());
        scale.push_str(&" ".repeat(gap));
        scale.push_str(&label);
    }
    scale
}

/// `  ━━━●━━  `: the mean, between the 5th and the 95th percentile.
fn line(retry: &ScheduledRetry, axis: &TimeAxis) -> String {
    let at = retry.since_first_failure_seconds;
    let [from, mean, to] = [at.p5.into(), at.mean, at.p95.into()].map(|seconds| cell(axis.share(seconds)));
    let mark = |i| match i {
        i if i == mean => '●',
        i if (from..=to).contains(&i) => '━',
        _ => ' ',
    };
    (0..=to.max(mean)).map(mark).collect()
}

#[cfg(test)]
mod tests {
    use comeback_engine::{Policy, Settings};
    use comeback_timelapse::TARGET_ARN;

    use super::*;
    use crate::schedule::axis::axis_of;

    #[test]
    fn lines_start_and_end_where_the_axis_says() {
        let settings = Settings {
            target_functions: vec![TARGET_ARN.into()],
            base_backoff: 100,
            max_backoff: 100,
            jitter: comeback_engine::Jitter::None,
            max_age: 900,
            ..Settings::default()
        };
        let mut schedule = Schedule::of(&Policy::new(settings).unwrap(), 1, 3, &|| {});
        schedule.retries[1].since_first_failure_seconds.p5 = 0;
        schedule.retries[1].since_first_failure_seconds.p95 = 450;
        let picture =
            anstream::adapter::strip_str(&timeline(&schedule, &axis_of(&schedule, 900.0))).to_string();
        let lines: Vec<&str> = picture.lines().collect();
        assert_eq!(lines[0], " retry  0s       2m        4m       6m        8m       10m       12m      14m");
        assert_eq!(lines[1], "     1          ●");
        assert_eq!(lines[2], "     2  ━━━━━━━━━━━━━━━━●━━━━━━━━━━━━━━━━━━━━");
        assert_eq!(lines.len(), 1 + schedule.retries.len());
    }
}
