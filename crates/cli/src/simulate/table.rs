use std::time::Duration;

use comeback_timelapse::{FaultCounts, Summary};
use comfy_table::{Cell, Table};
use indicatif::HumanCount;

use crate::simulate::figures::{COST_HEADER, Figure, costs, figures, strikes};
use crate::simulate::tally::Tally;
use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal::{align_right, table};

/// What became of the events, and what it took.
pub(super) fn outcome(summary: &Summary, wall_time: Duration) -> Table {
    let mut table = table();
    for Figure { label, value, color } in figures(summary) {
        table.add_row([Cell::new(label), color.into_iter().fold(Cell::new(value), Cell::fg)]);
    }
    table.add_row(["wall time", &wall(summary.retries, wall_time)]);
    table
}

/// The figures of many runs.
pub(super) fn tally(tally: &Tally) -> Table {
    let mut table = table();
    let mut row = |label: &str, count: u64| {
        table.add_row([label, &HumanCount(count).to_string()]);
    };
    row("seeds without a broken invariant", tally.seeds);
    row("events", tally.events);
    row("delivered", tally.delivered);
    for (reason, &count) in &tally.dead_lettered {
        row(&format!("dead-lettered: {reason}"), count);
    }
    row("waiting", tally.waiting);
    if tally.not_arrived > 0 {
        row("not arrived", tally.not_arrived);
    }
    row("retries made", tally.retries);
    align_right(&mut table, 1..=1);
    table
}

/// What went wrong, and how often.
pub(super) fn faults(faults: &FaultCounts) -> Table {
    let mut table = table();
    table.set_header(["faults", "struck"]);
    table.add_rows(strikes(faults));
    align_right(&mut table, 1..=1);
    table
}

/// Calls and compute, with their list price.
pub(super) fn cost(summary: &Summary) -> Table {
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
