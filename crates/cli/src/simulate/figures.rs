//! A run's figures as text: for the terminal, and for the page.

use std::collections::BTreeSet;
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
            "{} not arrived: the run ends after {} (--for), but events arrive over {} (--arrival-spread)",
            counted(events, "event has", "events have"),
            durations::text(scenario.duration),
            durations::text(scenario.arrival_spread),
        )
    };
    (events > 0).then(text)
}

fn assumptions(scenario: &Scenario) -> String {
    let target = outages(scenario);
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

/// How long the target is down, or each target, with its share of the events.
fn outages(scenario: &Scenario) -> String {
    let down = |outage: Duration| format!("is down for the first {}", durations::text(outage));
    if let [target] = scenario.targets.as_slice() {
        let outage = target.outage.unwrap_or(scenario.outage);
        let whose = if scenario.events == 1 { "its" } else { "their" };
        return if outage.is_zero() { String::new() } else { format!("; {whose} target {}", down(outage)) };
    }
    let all: f64 = scenario.targets.iter().map(|target| target.share).sum();
    let each = scenario.targets.iter().map(|target| {
        let outage = target.outage.unwrap_or(scenario.outage);
        let outage = if outage.is_zero() { "is never down".into() } else { down(outage) };
        format!("; {}, {} of them, {outage}", target.name, percent(target.share / all))
    });
    each.collect()
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1_000.0).round() / 10.0)
}

/// A figure of each run as people read it, in colour where that of the first calls for attention.
pub(super) struct Figure {
    pub(super) label: String,
    pub(super) values: Vec<String>,
    color: Option<Color>,
}

/// Every figure that the same seed gives again; what is rare, only if a run has it.
pub(super) fn figures(runs: &[&Summary]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut row = |label: &str, color: Option<Color>, value: &dyn Fn(&Summary) -> String| {
        let values = runs.iter().map(|run| value(run)).collect();
        figures.push(Figure { label: label.to_owned(), values, color });
    };
    let count = |count: usize| HumanCount(count as u64).to_string();
    let any = |figure: fn(&Summary) -> usize| runs.iter().any(|run| figure(run) > 0);
    let dead_lettered = |run: &Summary| run.dead_lettered.values().sum::<usize>();
    let time = |ms| durations::text(Duration::from_millis(ms));
    row("delivered", Some(Color::Green), &|run| count(run.delivered));
    row("dead-lettered", any(dead_lettered).then_some(Color::Red), &|run| count(dead_lettered(run)));
    let reasons: BTreeSet<_> = runs.iter().flat_map(|run| run.dead_lettered.keys()).collect();
    for reason in reasons {
        let dead_lettered = |run: &Summary| count(run.dead_lettered.get(reason).copied().unwrap_or(0));
        row(&format!("  {reason}"), None, &dead_lettered);
    }
    row("waiting", any(|run| run.waiting).then_some(Color::Yellow), &|run| count(run.waiting));
    if any(|run| run.not_arrived) {
        row("not arrived", Some(Color::Yellow), &|run| count(run.not_arrived));
    }
    row("attempts per event", None, &|run| percentiles(run.attempts, HumanCount));
    row("recovery after the outage", None, &|run| percentiles(run.recovery_delay_ms, time));
    row("retries made", None, &|run| HumanCount(run.retries).to_string());
    if any(|run| run.moves as usize) {
        row("sent again with a delay", None, &|run| HumanCount(run.moves).to_string());
        row("  although there was room", None, &|run| HumanCount(run.moves_with_room).to_string());
    }
    row("peak in flight", None, &peak);
    row("peak due, not received", None, &|run| count(run.peak_visible));
    if any(|run| run.peak_delayed) {
        row("peak delayed, not in flight", None, &|run| count(run.peak_delayed));
    }
    for (index, target) in runs[0].targets.iter().enumerate() {
        let of = |run: &Summary| run.targets[index].clone();
        let name = &target.target;
        row(&format!("{name}: delivered"), None, &|run| {
            format!("{} of {}", count(of(run).delivered), count(of(run).events))
        });
        let reasons: BTreeSet<_> = runs.iter().flat_map(|run| of(run).dead_lettered.into_keys()).collect();
        for reason in reasons {
            row(&format!("  {reason}"), None, &|run| {
                count(of(run).dead_lettered.get(reason).copied().unwrap_or(0))
            });
        }
        if any(|run| run.waiting) {
            row("  waiting", None, &|run| count(of(run).waiting));
        }
        row("  attempts per event", None, &|run| percentiles(of(run).attempts, HumanCount));
        row("  recovery after its outage", None, &|run| percentiles(of(run).recovery_delay_ms, time));
    }
    row("virtual time", None, &|run| durations::text(run.virtual_time()));
    figures
}

/// Strikes of each fault, and the duplicates that faults led to.
pub(super) fn strikes(faults: &FaultCounts) -> Vec<[String; 2]> {
    let led_to = [
        ("duplicate retries they caused", faults.duplicate_retries),
        ("duplicate dead-letters they caused", faults.duplicate_dead_letters),
        ("duplicate copies they caused", faults.duplicate_moves),
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
    for Figure { label, values, color } in figures(&[summary]) {
        table.add_row([Cell::new(label), color.into_iter().fold(Cell::new(&values[0]), Cell::fg)]);
    }
    let rate = summary.retries as f64 / wall_time.as_secs_f64().max(f64::EPSILON);
    let rate = counted(rate as u64, "retry", "retries");
    table.add_row(["wall time", &format!("{} ({rate} a second)", durations::text(wall_time))]);
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
    use comeback_timelapse::SimulatedTarget;

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
    fn the_headline_names_several_targets() {
        let target = |name: &str, share, outage| SimulatedTarget { name: name.into(), share, outage };
        let outage = Some(Duration::from_secs(21_600));
        let targets = vec![target("orders", 2.0, None), target("export", 1.0, outage)];
        assert_eq!(
            headline(&Scenario { targets, ..Scenario::default() }),
            "1,000 events arrive within 3h; orders, 66.7 % of them, is down for the first 3h; export, 33.3 % of them, is down for the first 6h; seed 1"
        );
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
