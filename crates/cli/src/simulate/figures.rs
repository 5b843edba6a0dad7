//! A run's figures as text: for the terminal, and for the page.

use std::fmt::Display;
use std::time::Duration;

use comeback_timelapse::{ApiCall, FaultCounts, Percentiles, Scenario, Summary, prices};
use comfy_table::{Cell, Color, Table, presets};
use indicatif::HumanCount;

use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal::{align_right, table};

/// A run in one line.
pub(super) fn headline(scenario: &Scenario) -> String {
    format!("{}; seed {}", assumptions(scenario), scenario.seed)
}

/// Runs of many seeds in one line.
pub(super) fn headline_of_seeds(scenario: &Scenario, seeds: u64) -> String {
    let seeds = counted(seeds, "seed", "seeds");
    format!("{}; {seeds} from {} on", assumptions(scenario), scenario.seed)
}

/// Sentence about events that the run ended without, if there are any.
pub(super) fn not_arrived(scenario: &Scenario, events: u64) -> Option<String> {
    let text = || {
        format!(
            "{} not arrived: the run ends after {} (--for), and events arrive within {} (--arrival-spread)",
            counted(events, "event has", "events have"),
            durations::text(scenario.duration),
            durations::text(scenario.arrival_spread),
        )
    };
    (events > 0).then(text)
}

fn assumptions(scenario: &Scenario) -> String {
    let target = if scenario.outage.is_zero() {
        String::new()
    } else {
        let whose = if scenario.events == 1 { "its" } else { "their" };
        format!("; {whose} target is down for the first {}", durations::text(scenario.outage))
    };
    let failures = if scenario.failure_rate > 0.0 {
        format!("; {} % of the invocations fail after that", scenario.failure_rate * 100.0)
    } else {
        String::new()
    };
    format!(
        "{} within {}{target}{failures}",
        counted(scenario.events as u64, "event arrives", "events arrive"),
        durations::text(scenario.arrival_spread),
    )
}

/// A figure of a run as people read it, in colour where it calls for attention.
pub(super) struct Figure {
    pub(super) label: String,
    pub(super) value: String,
    pub(super) color: Option<Color>,
}

/// Every figure that the same seed gives again.
pub(super) fn figures(summary: &Summary) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut row = |label: &str, value: &dyn Display, color: Option<Color>| {
        figures.push(Figure { label: label.to_owned(), value: value.to_string(), color });
    };
    let given_up: usize = summary.dead_lettered.values().sum();
    let bad = |n: usize, color| (n > 0).then_some(color);
    row("delivered", &HumanCount(summary.delivered as u64), Some(Color::Green));
    row("dead-lettered", &HumanCount(given_up as u64), bad(given_up, Color::Red));
    for (reason, &count) in &summary.dead_lettered {
        row(&format!("  {reason}"), &HumanCount(count as u64), None);
    }
    row("waiting", &HumanCount(summary.waiting as u64), bad(summary.waiting, Color::Yellow));
    if summary.not_arrived > 0 {
        row("not arrived", &HumanCount(summary.not_arrived as u64), Some(Color::Yellow));
    }
    row("attempts per event", &percentiles(summary.attempts, HumanCount), None);
    let time = |ms| durations::text(Duration::from_millis(ms));
    row("recovery after the outage", &percentiles(summary.recovery_delay_ms, time), None);
    row("retries made", &HumanCount(summary.retries), None);
    if summary.moves > 0 {
        row("sent again with a delay", &HumanCount(summary.moves), None);
        row("  although there was room", &HumanCount(summary.moves_with_room), None);
    }
    row("peak in flight", &peak(summary), None);
    row("peak visible, not received", &HumanCount(summary.peak_visible as u64), None);
    if summary.peak_delayed > 0 {
        row("peak delayed, not in flight", &HumanCount(summary.peak_delayed as u64), None);
    }
    row("virtual time", &durations::text(summary.virtual_time()), None);
    figures
}

/// Strikes of each fault, and the duplicates that faults led to.
pub(super) fn strikes(faults: &FaultCounts) -> Vec<[String; 2]> {
    let led_to = [
        ("duplicate retries they led to", faults.duplicate_retries),
        ("duplicate dead-letters they led to", faults.duplicate_dead_letters),
        ("duplicate copies they led to", faults.duplicate_moves),
    ];
    let all = faults.struck.iter().map(|(&fault, &count)| (fault, count)).chain(led_to);
    all.map(|(what, count)| [what.to_owned(), HumanCount(count).to_string()]).collect()
}

/// The columns of [`costs`].
pub(super) const COST_HEADER: [&str; 3] = ["API calls (list price, us-east-1)", "calls", "USD"];

/// Calls and compute, each with its list price, and the total.
pub(super) fn costs(summary: &Summary) -> Vec<[String; 3]> {
    let mut costs = Vec::new();
    let mut row = |label: String, count: String, usd: f64| {
        costs.push([label, count, format!("{usd:.4}")]);
    };
    for operation in ApiCall::ALL {
        let calls = summary.api_calls.of(operation);
        // Most runs have no parameter to read.
        if operation == ApiCall::ReadPauses && calls == 0 {
            continue;
        }
        row(
            operation.name().into(),
            HumanCount(calls).to_string(),
            prices::requests(operation, summary.api_calls.requests(operation)),
        );
    }
    for (function, memory, gb_seconds) in [
        ("retry handler", prices::HANDLER_MEMORY_GB, summary.handler_gb_seconds),
        ("target's retries", prices::TARGET_MEMORY_GB, summary.target_gb_seconds),
    ] {
        let label = format!("{function}, arm64, {} MB", memory * 1_024.0);
        row(label, format!("{gb_seconds:.1} GB-s"), prices::compute(gb_seconds));
    }
    let megabytes = format!("{:.1} MB", summary.log_bytes as f64 / 1e6);
    row("CloudWatch Logs".into(), megabytes, prices::logs(summary.log_bytes));
    row("total".into(), String::new(), summary.cost_usd);
    costs
}

pub(super) fn percentiles<T: Display>(percentiles: Option<Percentiles>, text: impl Fn(u64) -> T) -> String {
    match percentiles {
        None => "-".into(),
        Some(Percentiles { p50, p99, max }) => {
            format!("p50 {}   p99 {}   max {}", text(p50), text(p99), text(max))
        }
    }
}

pub(super) fn peak(summary: &Summary) -> String {
    let share = summary.peak_in_flight as f64 / summary.in_flight_limit as f64 * 100.0;
    format!(
        "{} of {} ({share:.1} %)",
        HumanCount(summary.peak_in_flight as u64),
        HumanCount(summary.in_flight_limit as u64)
    )
}

/// Outcome of the events, and what it took.
pub(super) fn outcome_table(summary: &Summary, wall_time: Duration) -> Table {
    let mut table = table();
    for Figure { label, value, color } in figures(summary) {
        table.add_row([Cell::new(label), color.into_iter().fold(Cell::new(value), Cell::fg)]);
    }
    table.add_row(["wall time", &wall(summary.retries, wall_time)]);
    table
}

/// Faults, with their strikes.
pub(super) fn fault_table(faults: &FaultCounts) -> Table {
    let mut table = table();
    table.set_header(["faults", "struck"]);
    table.add_rows(strikes(faults));
    align_right(&mut table, 1..=1);
    table
}

/// Calls and compute, with their list price.
pub(super) fn cost_table(summary: &Summary) -> Table {
    let mut table = table();
    table.set_header(COST_HEADER);
    table.add_rows(costs(summary));
    align_right(&mut table, 1..=2);
    table
}

fn wall(retries: u64, wall_time: Duration) -> String {
    let rate = retries as f64 / wall_time.as_secs_f64().max(f64::EPSILON);
    format!("{} ({} a second)", durations::text(wall_time), counted(rate as u64, "retry", "retries"))
}

/// Rows at most; a day gives one an hour.
const ROWS: usize = 24;
const BAR_CELLS: usize = 50;
/// Eighths of a character cell.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Minutes to a row, so that there are 24 of them at most.
pub(super) fn minutes_a_row(summary: &Summary) -> usize {
    summary.minutes.len().saturating_sub(1).div_ceil(ROWS).max(1)
}

/// `03:20`: when a minute of the run begins.
pub(super) fn clock(minute: usize) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

/// Retries over time, a row for each 24th of the run.
pub(super) fn retries_over_time(summary: &Summary) -> Table {
    let step = minutes_a_row(summary);
    let mut counts: Vec<u64> = summary
        .minutes
        .chunks(step)
        .map(|minutes| minutes.iter().map(|m| u64::from(m.retries)).sum())
        .collect();
    // The run's last moment begins a minute of its own.
    if counts.len() > 1 && counts.last() == Some(&0) {
        counts.pop();
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let mut table = Table::new();
    table.load_style(presets::NOTHING).enforce_styling();
    table.set_header([
        "from",
        "retries",
        &format!("a row is {}", durations::text(Duration::from_secs(step as u64 * 60))),
    ]);
    for (row, &count) in counts.iter().enumerate() {
        let bar = Cell::new(bar(count, most)).fg(Color::Cyan);
        table.add_row([Cell::new(clock(row * step)), Cell::new(HumanCount(count)), bar]);
    }
    align_right(&mut table, [1]);
    table
}

/// A bar in proportion to the longest; anything above zero is visible.
fn bar(count: u64, most: u64) -> String {
    if count == 0 {
        return String::new();
    }
    let eighths = (count as f64 / most as f64 * (BAR_CELLS * 8) as f64).round().max(1.0) as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_says_what_was_assumed() {
        let scenario = Scenario { failure_rate: 0.1, ..Scenario::default() };
        assert_eq!(
            headline(&scenario),
            "1,000 events arrive within 3h; their target is down for the first 3h; 10 % of the invocations fail after that; seed 1"
        );
        let one = Scenario { events: 1, ..Scenario::default() };
        let alone = "1 event arrives within 3h; its target is down for the first 3h";
        assert_eq!(headline(&one), format!("{alone}; seed 1"));
        assert_eq!(headline_of_seeds(&one, 1), format!("{alone}; 1 seed from 1 on"));
    }

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(0, 100), "");
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(50, 100), "█".repeat(25));
        assert_eq!(bar(100, 100), "█".repeat(50));
        assert_eq!(bar(101, 400), format!("{}▋", "█".repeat(12)));
    }
}
