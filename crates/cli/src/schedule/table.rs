//! Shows a schedule in the terminal, as a table and a timeline of its retries.

use std::time::Duration;

use anstyle::AnsiColor;
use comeback_operate::durations;
use comeback_rehearsal::axis::TimeAxis;
use comeback_rehearsal::schedule::{axis_of, percent, shown};
use comeback_timelapse::{Schedule, ScheduledRetry};
use comfy_table::{Cell, Color, Table};

use crate::tables::{align_right, table};

/// Returns a table with a row for each retry or, if there are too many to show, for some of them.
pub(super) fn retries(schedule: &Schedule) -> Table {
    let mut table = table();
    table.set_header(["retry", "ceiling", "mean wait", "p5", "p95", "since failure", "events"]);
    for retry in shown(&schedule.retries) {
        let (wait, at) = (retry.wait_seconds, retry.since_first_failure_seconds);
        let ceiling = retry.ceiling_seconds.map(|s| durations::text(Duration::from_secs(s)));
        let share = retry.events as f64 / schedule.events as f64;
        let cells = [
            Cell::new(retry.retry),
            Cell::new(ceiling.as_deref().unwrap_or("-")),
            Cell::new(durations::short(wait.mean)).fg(Color::Cyan),
            Cell::new(durations::short(wait.p5.into())),
            Cell::new(durations::short(wait.p95.into())),
            Cell::new(durations::short(at.mean)).fg(Color::Green),
            Cell::new(percent(share)),
        ];
        table.add_row(cells);
    }
    align_right(&mut table, 0..7);
    table
}

const CELLS: usize = 72;
/// Minimum distance between two ticks, as a share of the axis, so that their labels do not touch.
const TICKS_APART: f64 = 7.0 / CELLS as f64;

/// Draws a timeline with a line for each retry.
pub(super) fn timeline(schedule: &Schedule, max_age: Duration) -> String {
    let axis = axis_of(schedule, max_age);
    // Colours are always written. The output stream removes colours that the output cannot show.
    let colour = AnsiColor::Green.on_default();
    let line =
        |retry: &ScheduledRetry| format!("\n{:>6}  {colour}{}{colour:#}", retry.retry, line(retry, &axis));
    let lines: String = shown(&schedule.retries).map(line).collect();
    format!(" retry  {}{lines}", scale(&axis))
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

/// Formats one retry's line, such as `  ━━━●━━  `: a bar from the 5th to the 95th percentile, and a dot at the mean.
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
    use comeback_engine::{Jitter, Policy, Settings};
    use comeback_timelapse::TARGET_ARN;

    use super::*;

    #[test]
    fn lines_start_and_end_where_the_axis_says() {
        let settings = Settings {
            target_functions: vec![TARGET_ARN.into()],
            base_backoff: 100,
            max_backoff: 100,
            jitter: Jitter::None,
            max_age: 900,
            ..Settings::default()
        };
        let mut schedule = Schedule::of(&Policy::new(settings).unwrap(), 1, 3, &|| {});
        schedule.retries[1].since_first_failure_seconds.p5 = 0;
        schedule.retries[1].since_first_failure_seconds.p95 = 450;
        let picture = timeline(&schedule, Duration::from_secs(900));
        let picture = anstream::adapter::strip_str(&picture).to_string();
        let lines: Vec<&str> = picture.lines().collect();
        assert_eq!(lines[0], " retry  0s       2m        4m       6m        8m       10m       12m      14m");
        assert_eq!(lines[1], "     1          ●");
        assert_eq!(lines[2], "     2  ━━━━━━━━━━━━━━━━●━━━━━━━━━━━━━━━━━━━━");
        assert_eq!(lines.len(), 1 + schedule.retries.len());
    }
}
