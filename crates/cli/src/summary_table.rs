use std::ops::RangeInclusive;
use std::time::Duration;

use comeback_timelapse::{ApiCall, FaultCounts, Percentiles, Scenario, Summary, prices};
use comfy_table::{Cell, CellAlignment, Color, Table, presets};

use crate::duration;
use crate::seeds::Tally;

/// What is being run, in one line.
pub(crate) fn headline(scenario: &Scenario) -> String {
    format!("{}; seed {}", assumptions(scenario), scenario.seed)
}

/// The same of many seeds.
pub(crate) fn headline_of_seeds(scenario: &Scenario, seeds: u64) -> String {
    format!("{}; {} seeds from {} on", assumptions(scenario), thousands(seeds), scenario.seed)
}

fn assumptions(scenario: &Scenario) -> String {
    let target = if scenario.outage.is_zero() {
        String::new()
    } else {
        format!("; their target is down for the first {}", duration::text(scenario.outage))
    };
    let failures = if scenario.failure_rate > 0.0 {
        format!("; {} % of the invocations fail after that", scenario.failure_rate * 100.0)
    } else {
        String::new()
    };
    format!(
        "{} events arrive within {}{target}{failures}",
        thousands(scenario.events as u64),
        duration::text(scenario.arrival_spread),
    )
}

/// A figure of a run as people read it; in colour where it calls for attention.
pub(crate) struct Figure {
    pub(crate) label: String,
    pub(crate) value: String,
    color: Option<Color>,
}

/// What became of the events, and what it took.
pub(crate) fn outcome(summary: &Summary, wall_time: Duration) -> Table {
    let mut table = table();
    for Figure { label, value, color } in figures(summary) {
        table.add_row([Cell::new(label), color.into_iter().fold(Cell::new(value), Cell::fg)]);
    }
    table.add_row(["wall time", &wall(summary.retries, wall_time)]);
    table
}

/// All that the same seed gives again.
pub(crate) fn figures(summary: &Summary) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut row = |label: &str, value: String, color: Option<Color>| {
        figures.push(Figure { label: label.to_owned(), value, color });
    };
    let given_up: usize = summary.dead_lettered.values().sum();
    let bad = |n: usize, color| (n > 0).then_some(color);
    row("delivered", thousands(summary.delivered as u64), Some(Color::Green));
    row("dead-lettered", thousands(given_up as u64), bad(given_up, Color::Red));
    for (reason, &count) in &summary.dead_lettered {
        row(&format!("  {reason}"), thousands(count as u64), None);
    }
    row("waiting", thousands(summary.waiting as u64), bad(summary.waiting, Color::Yellow));
    row("attempts per event", percentiles(summary.attempts, thousands), None);
    let time = |ms| duration::text(Duration::from_millis(ms));
    row("recovery delay after the outage", percentiles(summary.recovery_delay_ms, time), None);
    row("retries made", thousands(summary.retries), None);
    row("peak in flight", peak(summary), None);
    row("peak visible, not yet received", thousands(summary.peak_visible as u64), None);
    row("virtual time", duration::text(summary.virtual_time()), None);
    figures
}

/// The same of many runs.
pub(crate) fn tally(tally: &Tally) -> Table {
    let mut table = table();
    let mut row = |label: &str, count: u64| {
        table.add_row([label, &thousands(count)]);
    };
    row("seeds without a broken invariant", tally.seeds);
    row("events", tally.events);
    row("delivered", tally.delivered);
    for (reason, &count) in &tally.dead_lettered {
        row(&format!("dead-lettered: {reason}"), count);
    }
    row("waiting", tally.waiting);
    row("retries made", tally.retries);
    right(&mut table, 1..=1);
    table
}

/// What went wrong, and how often.
pub(crate) fn faults(faults: &FaultCounts) -> Table {
    let mut table = table();
    table.set_header(["faults", "struck"]);
    table.add_rows(strikes(faults));
    right(&mut table, 1..=1);
    table
}

/// How often each fault struck, and what came of them.
pub(crate) fn strikes(faults: &FaultCounts) -> Vec<[String; 2]> {
    let led_to = [
        ("duplicate retries they led to", faults.duplicate_retries),
        ("duplicate dead-letters they led to", faults.duplicate_dead_letters),
    ];
    let all = faults.struck.iter().map(|(&fault, &count)| (fault, count)).chain(led_to);
    all.map(|(what, count)| [what.to_owned(), thousands(count)]).collect()
}

/// Calls and compute, with their list price.
pub(crate) fn cost(summary: &Summary) -> Table {
    let mut table = table();
    table.set_header(COST_HEADER);
    table.add_rows(costs(summary));
    right(&mut table, 1..=2);
    table
}

/// The columns of [`costs`].
pub(crate) const COST_HEADER: [&str; 3] = ["API calls (list price, us-east-1)", "calls", "USD"];

/// Calls and compute, each with its list price, and the total.
pub(crate) fn costs(summary: &Summary) -> Vec<[String; 3]> {
    let mut costs = Vec::new();
    let mut row = |label: String, count: String, usd: f64| {
        costs.push([label, count, format!("{usd:.4}")]);
    };
    for operation in ApiCall::ALL {
        let calls = summary.api_calls.of(operation);
        row(operation.name().into(), thousands(calls), prices::requests(operation, calls));
    }
    for (function, memory, gb_seconds) in [
        ("retry handler", prices::HANDLER_MEMORY_GB, summary.handler_gb_seconds),
        ("target's retries", prices::TARGET_MEMORY_GB, summary.target_gb_seconds),
    ] {
        let label = format!("{function}, arm64, {} MB", memory * 1_024.0);
        row(label, format!("{gb_seconds:.1} GB-s"), prices::compute(gb_seconds));
    }
    row("total".into(), String::new(), summary.cost_usd);
    costs
}

fn right(table: &mut Table, columns: RangeInclusive<usize>) {
    for column in columns {
        table.column_mut(column).expect("BUG: no such column").set_cell_alignment(CellAlignment::Right);
    }
}

fn table() -> Table {
    let mut table = Table::new();
    // Colours are written in any case; the stream takes them out where they do not belong.
    table.load_style(presets::UTF8_FULL_CONDENSED).enforce_styling();
    table
}

pub(crate) fn percentiles(percentiles: Option<Percentiles>, text: impl Fn(u64) -> String) -> String {
    match percentiles {
        None => "-".into(),
        Some(Percentiles { p50, p99, max }) => {
            format!("p50 {}   p99 {}   max {}", text(p50), text(p99), text(max))
        }
    }
}

pub(crate) fn peak(summary: &Summary) -> String {
    let share = summary.peak_in_flight as f64 / summary.in_flight_limit as f64 * 100.0;
    format!(
        "{} of {} ({share:.1} %)",
        thousands(summary.peak_in_flight as u64),
        thousands(summary.in_flight_limit as u64)
    )
}

fn wall(retries: u64, wall_time: Duration) -> String {
    let rate = retries as f64 / wall_time.as_secs_f64().max(f64::EPSILON);
    format!("{} ({} retries per second)", duration::text(wall_time), thousands(rate as u64))
}

/// `1,234,567`
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_thousands() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(thousands(12_345_678), "12,345,678");
    }

    #[test]
    fn the_headline_says_what_was_assumed() {
        let scenario = Scenario { failure_rate: 0.1, ..Scenario::default() };
        assert_eq!(
            headline(&scenario),
            "1,000 events arrive within 3h; their target is down for the first 3h; 10 % of the invocations fail after that; seed 1"
        );
    }
}
