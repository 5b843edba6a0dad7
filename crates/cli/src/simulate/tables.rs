//! Tables of a simulation's results for the terminal.

use std::time::Duration;

use comeback_operate::numbers::{counted, grouped};
use comeback_operate::{Tone, durations};
use comeback_rehearsal::simulate::figures::{
    COST_HEADER, Figure, clock, costs, figures, minutes_a_row, strikes,
};
use comeback_timelapse::{FaultCounts, Summary};
use comfy_table::{Cell, Color, Table, presets};

use crate::tables::{align_right, table};

pub(super) fn outcome_table(summary: &Summary, wall_time: Duration) -> Table {
    let mut table = table();
    for Figure { label, values, tone } in figures(&[summary]) {
        let value = Cell::new(&values[0]);
        let value = match tone {
            Tone::Plain => value,
            Tone::Good => value.fg(Color::Green),
            Tone::Warning => value.fg(Color::Yellow),
            Tone::Bad => value.fg(Color::Red),
        };
        table.add_row([Cell::new(label), value]);
    }
    let rate = summary.retries as f64 / wall_time.as_secs_f64().max(f64::EPSILON);
    let rate = counted(rate as u64, "retry", "retries");
    table.add_row(["wall time", &format!("{} ({rate} a second)", durations::text(wall_time))]);
    table
}

pub(super) fn fault_table(faults: &FaultCounts) -> Table {
    let mut table = table();
    table.set_header(["faults", "struck"]);
    table.add_rows(strikes(faults));
    align_right(&mut table, 1..=1);
    table
}

pub(super) fn cost_table(summary: &Summary) -> Table {
    let mut table = table();
    table.set_header(COST_HEADER);
    table.add_rows(costs(summary));
    align_right(&mut table, 1..=2);
    table
}

const BAR_CELLS: usize = 50;
/// Characters that fill 0 to 7 eighths of a cell, from the left.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar chart of retries over time, with a row for each of up to 24 parts of the run.
pub(super) fn retries_over_time(summary: &Summary) -> Table {
    let step = minutes_a_row(summary);
    let mut counts: Vec<u64> = summary
        .minutes
        .chunks(step)
        .map(|minutes| minutes.iter().map(|m| u64::from(m.retries)).sum())
        .collect();
    // A run that ends at the start of a minute has a last row without retries. That row is left out.
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
        table.add_row([Cell::new(clock(row * step)), Cell::new(grouped(count)), bar]);
    }
    align_right(&mut table, [1]);
    table
}

/// Draws a bar for a count. The bar of any count above 0 is visible, and the bar of `most` has the full width.
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
    fn bars_are_in_proportion() {
        assert_eq!(bar(0, 100), "");
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(50, 100), "█".repeat(25));
        assert_eq!(bar(100, 100), "█".repeat(50));
        assert_eq!(bar(101, 400), format!("{}▋", "█".repeat(12)));
    }
}
