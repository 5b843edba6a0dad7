//! A schedule in the terminal: the policy, its retries, the outcome, and when retries come.

use std::time::Duration;

use anstyle::AnsiColor;
use comeback_engine::Policy;
use comeback_timelapse::{Schedule, ScheduledRetry};
use comfy_table::{Cell, Color, Table};
use indicatif::HumanCount;

use crate::axis::TimeAxis;
use crate::text::durations;
use crate::text::numbers::{counted, round_step};
use crate::text::terminal::{align_right, table};

/// Up to this many retries have a row each.
const ROWS: usize = 32;
/// Of more retries, the first ones have a row, ...
const FIRST_ROWS: usize = 12;
/// ... and about as many round numbers as this.
const ROUND_ROWS: usize = 12;

/// The policy, and what was made of it.
pub(super) fn headline(policy: &Policy, schedule: &Schedule) -> String {
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

/// How many retries an event has, and what ends them.
pub(super) fn outcome(schedule: &Schedule) -> String {
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
        .map(|(reason, &count)| format!("{reason} ({})", HumanCount(count as u64)))
        .collect();
    format!("{range}; dead-lettered as {}", reasons.join(" and "))
}

/// A row for each retry, or for some of them where there are very many.
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

/// The retries that have a row.
pub(super) fn shown(retries: &[ScheduledRetry]) -> impl Iterator<Item = &ScheduledRetry> {
    let all = retries.len();
    let step = round_step(|step| all / step as usize <= ROUND_ROWS) as usize;
    let has_row = move |n| all <= ROWS || n <= FIRST_ROWS || n % step == 0 || n == all;
    retries.iter().filter(move |retry| has_row(retry.retry as usize))
}

/// `100 %`, `97.3 %`; anything less than all is shown as less, anything more than none as more.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        100.0 => "100 %".into(),
        percent if percent < 0.1 => "< 0.1 %".into(),
        percent => format!("{:.1} %", percent.min(99.9)),
    }
}

/// From the first retry to `MAX_AGE`, or to the last retry where `MAX_RETRIES` comes long before.
/// Logarithmic where the gaps between retries grow, linear where they are even.
pub(super) fn axis_of(schedule: &Schedule, max_age: Duration) -> TimeAxis {
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

const CELLS: usize = 72;
/// Ticks are at least this share of the axis apart, so that their labels do not touch.
const TICKS_APART: f64 = 7.0 / CELLS as f64;

/// When each retry comes: a line from left to right for each, where nine events in ten have it.
pub(super) fn timeline(schedule: &Schedule, max_age: Duration) -> String {
    let axis = axis_of(schedule, max_age);
    // Colours are always written; the stream removes them where they cannot be shown.
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
    use comeback_engine::{Jitter, Settings};
    use comeback_timelapse::{Spread, TARGET_ARN};

    use super::*;

    #[test]
    fn only_all_is_100_percent_and_only_none_is_nothing() {
        assert_eq!(
            [1.0, 0.9999, 0.681, 0.001, 0.0009].map(percent),
            ["100 %", "99.9 %", "68.1 %", "0.1 %", "< 0.1 %"]
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
