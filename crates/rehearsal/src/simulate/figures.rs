//! The figures of a simulated run as text.

use std::collections::BTreeSet;
use std::time::Duration;

use comeback_operate::Tone;
use comeback_timelapse::{ApiCall, FaultCounts, Percentiles, Scenario, Summary, prices};

use comeback_operate::durations;
use comeback_operate::numbers::{counted, grouped};

/// Describes a run in one line.
pub fn headline(scenario: &Scenario) -> String {
    format!("{}; seed {}", assumptions(scenario), scenario.seed)
}

/// Describes a series of runs, one for each seed, in one line.
pub fn headline_of_seeds(scenario: &Scenario, seeds: u64) -> String {
    let seeds = counted(seeds, "seed", "seeds");
    format!("{}; {seeds} from {} on", assumptions(scenario), scenario.seed)
}

/// Returns a sentence about the events that did not arrive before the end of the run; `None` if all events arrived.
pub fn not_arrived(scenario: &Scenario, events: u64) -> Option<String> {
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

/// A figure, with its value in each of the compared runs.
pub struct Figure {
    /// Name of the figure, such as `delivered`.
    pub label: String,
    /// The figure's text for each run.
    pub values: Vec<String>,
    /// Tone of the figure: whether the figure needs attention.
    pub tone: Tone,
}

/// Returns the figures that stay the same when a run is repeated. Leaves out some, such as the number of moves, if they
/// are zero in every run.
pub fn figures(runs: &[&Summary]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut row = |label: &str, tone: Tone, value: &dyn Fn(&Summary) -> String| {
        let values = runs.iter().map(|run| value(run)).collect();
        figures.push(Figure { label: label.to_owned(), values, tone });
    };
    let count = |count: usize| grouped(count as u64);
    let any = |figure: fn(&Summary) -> usize| runs.iter().any(|run| figure(run) > 0);
    let dead_lettered = |run: &Summary| run.dead_lettered.values().sum::<usize>();
    row("delivered", Tone::Good, &|run| count(run.delivered));
    row("dead-lettered", if any(dead_lettered) { Tone::Bad } else { Tone::Plain }, &|run| {
        count(dead_lettered(run))
    });
    let reasons: BTreeSet<_> = runs.iter().flat_map(|run| run.dead_lettered.keys()).collect();
    for reason in reasons {
        let dead_lettered = |run: &Summary| count(run.dead_lettered.get(reason).copied().unwrap_or(0));
        row(&format!("  {reason}"), Tone::Plain, &dead_lettered);
    }
    row("waiting", if any(|run| run.waiting) { Tone::Warning } else { Tone::Plain }, &|run| {
        count(run.waiting)
    });
    if any(|run| run.not_arrived) {
        row("not arrived", Tone::Warning, &|run| count(run.not_arrived));
    }
    row("attempts per event", Tone::Plain, &|run| percentiles(run.attempts, grouped));
    row("recovery after the outage", Tone::Plain, &|run| percentiles(run.recovery_delay_ms, time));
    row("retries made", Tone::Plain, &|run| grouped(run.retries));
    if any(|run| run.moves as usize) {
        row("sent again with a delay", Tone::Plain, &|run| grouped(run.moves));
        row("  although there was room", Tone::Plain, &|run| grouped(run.moves_with_room));
    }
    row("peak in flight", Tone::Plain, &peak);
    row("peak due, not received", Tone::Plain, &|run| count(run.peak_visible));
    if any(|run| run.peak_delayed) {
        row("peak delayed, not in flight", Tone::Plain, &|run| count(run.peak_delayed));
    }
    for (index, target) in runs[0].targets.iter().enumerate() {
        let of = |run: &Summary| run.targets[index].clone();
        let name = &target.target;
        row(&format!("{name}: delivered"), Tone::Plain, &|run| {
            format!("{} of {}", count(of(run).delivered), count(of(run).events))
        });
        let reasons: BTreeSet<_> = runs.iter().flat_map(|run| of(run).dead_lettered.into_keys()).collect();
        for reason in reasons {
            row(&format!("  {reason}"), Tone::Plain, &|run| {
                count(of(run).dead_lettered.get(reason).copied().unwrap_or(0))
            });
        }
        if any(|run| run.waiting) {
            row("  waiting", Tone::Plain, &|run| count(of(run).waiting));
        }
        row("  attempts per event", Tone::Plain, &|run| percentiles(of(run).attempts, grouped));
        row("  recovery after its outage", Tone::Plain, &|run| percentiles(of(run).recovery_delay_ms, time));
    }
    row("virtual time", Tone::Plain, &|run| durations::text(run.virtual_time()));
    figures
}

/// Returns how often each fault struck, and how many duplicates the faults caused.
pub fn strikes(faults: &FaultCounts) -> Vec<[String; 2]> {
    let led_to = [
        ("duplicate retries they caused", faults.duplicate_retries),
        ("duplicate dead-letters they caused", faults.duplicate_dead_letters),
        ("duplicate copies they caused", faults.duplicate_moves),
    ];
    let all = faults.struck.iter().map(|(&fault, &count)| (fault, count)).chain(led_to);
    all.map(|(what, count)| [what.to_owned(), grouped(count)]).collect()
}

/// Column headings for the rows that [`costs`] returns.
pub const COST_HEADER: [&str; 3] = ["API calls (list price, us-east-1)", "calls", "USD"];

/// Returns a table of a run's costs. Each row has a label, an amount, and the cost of that amount in US dollars at list
/// prices. The last row is the total.
pub fn costs(summary: &Summary) -> Vec<[String; 3]> {
    let mut costs = Vec::new();
    let mut row = |label: String, count: String, usd: f64| {
        costs.push([label, count, format!("{usd:.4}")]);
    };
    for operation in ApiCall::ALL {
        let calls = summary.api_calls.of(operation);
        // Most runs do not read pauses. Their table has no row for that call.
        if operation == ApiCall::ReadPauses && calls == 0 {
            continue;
        }
        row(
            operation.name().into(),
            grouped(calls),
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

pub(super) fn time(ms: u64) -> String {
    durations::text(Duration::from_millis(ms))
}

pub(super) fn percentiles(percentiles: Option<Percentiles>, text: fn(u64) -> String) -> String {
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
        grouped(summary.peak_in_flight as u64),
        grouped(summary.in_flight_limit as u64)
    )
}

/// Maximum number of rows in a table with one row per period of the run.
const ROWS: usize = 24;

/// Number of minutes per row in a table of at most 24 rows.
pub fn minutes_a_row(summary: &Summary) -> usize {
    summary.minutes.len().saturating_sub(1).div_ceil(ROWS).max(1)
}

/// Formats the start of a minute of the run: `03:20`.
pub fn clock(minute: usize) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use comeback_timelapse::SimulatedTarget;

    use super::*;

    #[test]
    fn headline_has_the_assumptions() {
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
    fn headline_names_each_target() {
        let target = |name: &str, share, outage| SimulatedTarget { name: name.into(), share, outage };
        let outage = Some(Duration::from_secs(21_600));
        let targets = vec![target("orders", 2.0, None), target("export", 1.0, outage)];
        assert_eq!(
            headline(&Scenario { targets, ..Scenario::default() }),
            "1,000 events arrive within 3h; orders, 66.7 % of them, is down for the first 3h; export, 33.3 % of them, is down for the first 6h; seed 1"
        );
    }
}
