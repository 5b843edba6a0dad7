use std::time::Duration;

use comeback_timelapse::Summary;
use comfy_table::{Cell, CellAlignment, Color, Table, presets};
use indicatif::HumanCount;

use crate::text::durations;

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
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
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
    use super::bar;

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(0, 100), "");
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(50, 100), "█".repeat(25));
        assert_eq!(bar(100, 100), "█".repeat(50));
        assert_eq!(bar(101, 400), format!("{}▋", "█".repeat(12)));
    }
}
