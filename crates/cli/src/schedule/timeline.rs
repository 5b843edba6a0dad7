use comeback_timelapse::{Retry, Schedule};
use comfy_table::{Cell, CellAlignment, Color, Table, presets};

use super::axis::TimeAxis;
use super::table::shown;

const CELLS: usize = 72;
/// Ticks are this share of the axis apart at least, so that their labels do not meet.
const TICKS_APART: f64 = 7.0 / CELLS as f64;

/// When each retry comes: a line from left to right for each, where nine events in ten have it.
pub(super) fn timeline(schedule: &Schedule, axis: &TimeAxis) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).enforce_styling();
    table.set_header(["retry", &scale(axis)]);
    for retry in shown(schedule) {
        table.add_row([Cell::new(retry.retry), Cell::new(line(retry, axis)).fg(Color::Green)]);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn cell(share: f64) -> usize {
    (share * (CELLS - 1) as f64).round() as usize
}

fn scale(axis: &TimeAxis) -> String {
    let mut scale = String::new();
    for (share, label) in axis.ticks(TICKS_APART) {
        let gap = cell(share).saturating_sub(scale.chars().count());
        scale.push_str(&" ".repeat(gap));
        scale.push_str(&label);
    }
    scale
}

/// `  ━━━●━━  `: the mean, between the 5th and the 95th percentile.
fn line(retry: &Retry, axis: &TimeAxis) -> String {
    let at = retry.since_first_failure_seconds;
    let [from, mean, to] = [at.p5.into(), at.mean, at.p95.into()].map(|seconds| cell(axis.share(seconds)));
    let mark = |i| match i {
        i if i == mean => '●',
        i if (from..=to).contains(&i) => '━',
        _ => ' ',
    };
    (0..=to.max(mean)).map(mark).collect()
}
