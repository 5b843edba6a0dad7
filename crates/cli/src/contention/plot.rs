//! Draws the plots for `comeback contention`.

use std::path::Path;

use comeback_contention::{Cell, Strategy, StudyReport, Write, writes};
use comeback_rehearsal::axis::{CountAxis, range};
use comeback_rehearsal::chart::{
    Area, BLUE, Drawing, FONT, GREEN, GREY, GRID, INK, LineStyle, MUTED, ORANGE, PURPLE, Padding, frame,
    header, style, svg, write,
};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::contention::tables::{runs, strategies};
use crate::failure::CommandFailure;
use crate::output::{create, fill};

/// Writes the report's plots to a folder, which is created if it does not exist.
pub(super) fn write_all(folder: &Path, report: &StudyReport, seed: u64) -> Result<(), CommandFailure> {
    for (name, svg) in [
        ("calls.svg", lines(report, "Calls until every client has written", "calls", |cell| cell.calls)),
        (
            "time.svg",
            lines(report, "Time until every client has written", "seconds", |cell| cell.time_ms / 1e3),
        ),
        ("arrivals.svg", arrivals(report, seed)),
    ] {
        let file = folder.join(name);
        fill(create(&file)?, &file, &svg)?;
    }
    Ok(())
}

fn colour(strategy: Strategy) -> RGBColor {
    match strategy {
        Strategy::None => GREY,
        Strategy::Exponential => ORANGE,
        Strategy::Equal => PURPLE,
        Strategy::Full => BLUE,
        Strategy::Decorrelated => GREEN,
    }
}

const SIZE: (u32, u32) = (900, 560);
/// Width of the right margin, in pixels.
const NAMES_WIDTH: u32 = 120;
/// Minimum distance between two names in the right margin, in pixels.
const NAME_HEIGHT: i32 = 17;
/// Both axes are logarithmic if the highest number of clients is at least this many times the lowest.
const WIDE: f64 = 50.0;
/// The vertical axis is logarithmic if the strategies' values at the highest number of clients differ by more than
/// this factor.
const FAR_APART: f64 = 10.0;

/// Draws `figure` against the number of clients, with a line for each strategy.
fn lines(report: &StudyReport, title: &str, unit: &str, figure: impl Fn(&Cell) -> f64) -> String {
    let of = |strategy| {
        let cells = report.cells.iter().filter(|cell| cell.strategy == strategy);
        let mut points: Vec<(f64, f64)> = cells.map(|cell| (f64::from(cell.clients), figure(cell))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (strategy, points)
    };
    let series: Vec<(Strategy, Vec<(f64, f64)>)> = strategies(report).map(of).collect();
    let points = || series.iter().flat_map(|(_, points)| points.iter().copied());
    let (fewest, most) = range(points().map(|(x, _)| x));
    let ends = series.iter().filter_map(|(_, points)| points.last()).map(|(_, y)| *y);
    let (lowest_end, highest_end) = range(ends);
    let log_x = most / fewest >= WIDE;
    let log_y = log_x || highest_end / lowest_end > FAR_APART;
    let x = CountAxis::over(points().map(|(x, _)| x), log_x);
    let y = CountAxis::over(points().map(|(_, y)| y), log_y);
    let scale = if log_y { "; logarithmic scale" } else { "" };
    let subtitle = format!("by backoff strategy, {}{scale}", runs(report));
    svg(SIZE, |root| {
        header(root, title, [subtitle.as_str()], 18)?;
        let room = Padding { right: NAMES_WIDTH, ..Padding::below(80) };
        let mut chart = frame(root, (x, "clients"), (y, unit), room)?;
        let mut names = Vec::new();
        for (strategy, points) in &series {
            let colour = colour(*strategy);
            LineStyle::Thick.draw(&mut chart, points.clone(), colour)?;
            chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, colour.filled())))?;
            names.extend(points.last().map(|end| (*strategy, chart.backend_coord(end))));
        }
        draw_names(root, names)
    })
}

/// Writes each strategy's name beside the end of its line.
fn draw_names(root: &Area<'_>, mut names: Vec<(Strategy, (i32, i32))>) -> Drawing {
    names.sort_by_key(|(_, (_, y))| *y);
    let wanted: Vec<i32> = names.iter().map(|(_, (_, y))| *y).collect();
    for ((strategy, (x, _)), y) in names.into_iter().zip(spread(&wanted)) {
        let style = style(14, colour(strategy), HPos::Left, VPos::Center);
        write(root, strategy.name(), style, (x + 10, y))?;
    }
    Ok(())
}

/// Spreads vertical positions, given in ascending order, so that they are at least [`NAME_HEIGHT`] apart.
fn spread(wanted: &[i32]) -> Vec<i32> {
    let top = |block: &[i32]| {
        let middle = block.iter().sum::<i32>() / block.len() as i32;
        middle - NAME_HEIGHT * (block.len() as i32 - 1) / 2
    };
    let mut blocks: Vec<Vec<i32>> = Vec::new();
    for &height in wanted {
        let mut block = vec![height];
        let touches =
            |above: &[i32], block: &[i32]| top(above) + NAME_HEIGHT * above.len() as i32 > top(block);
        while let Some(above) = blocks.pop_if(|above| touches(above, &block)) {
            block.splice(0..0, above);
        }
        blocks.push(block);
    }
    let heights =
        blocks.iter().flat_map(|block| (top(block)..).step_by(NAME_HEIGHT as usize).take(block.len()));
    heights.collect()
}

/// Maximum number of clients in `arrivals.svg`.
const READABLE_CLIENTS: u32 = 50;
/// End of the time axis of `arrivals.svg`, in milliseconds. By then, the strategies visibly differ.
const WINDOW_MS: f64 = 5_000.0;
const WIDTH: u32 = 900;
const HEADER_HEIGHT: u32 = 86;
const PANEL_HEIGHT: u32 = 130;
const FOOTER_HEIGHT: u32 = 50;

/// Draws `arrivals.svg`, which has a panel for each strategy, with a dot for each write that reaches the server.
fn arrivals(report: &StudyReport, seed: u64) -> String {
    let most = report.cells.iter().map(|cell| cell.clients).max().unwrap_or(1);
    let clients = most.min(READABLE_CLIENTS);
    let run = |strategy| (strategy, writes(clients, strategy, seed).expect("BUG: the study was not checked"));
    let runs: Vec<(Strategy, Vec<Write>)> = strategies(report).map(run).collect();
    let longest =
        runs.iter().filter_map(|(_, writes)| writes.last()).map(|write| write.at_ms).fold(0.0, f64::max);
    let window = WINDOW_MS.min(longest * 1.02);
    let height = HEADER_HEIGHT + PANEL_HEIGHT * runs.len() as u32 + FOOTER_HEIGHT;
    svg((WIDTH, height), |root| {
        let (top, panels) = root.split_vertically(HEADER_HEIGHT);
        draw_key(&top, clients, window < longest)?;
        for (i, (strategy, writes)) in runs.iter().enumerate() {
            let last = i + 1 == runs.len();
            let height = PANEL_HEIGHT + if last { FOOTER_HEIGHT } else { 0 };
            let panel = panels.clone().shrink((0, PANEL_HEIGHT * i as u32), (WIDTH, height));
            Panel { clients, window, strategy: *strategy, writes, last }.draw(&panel)?;
        }
        Ok(())
    })
}

fn draw_key(area: &Area<'_>, clients: u32, cut: bool) -> Drawing {
    let cut = if cut { format!("; the first {} s", WINDOW_MS / 1e3) } else { String::new() };
    let note = format!("one run of each strategy, a row of dots for each client{cut}");
    header(area, &format!("When the calls of {clients} clients arrive"), [note.as_str()], 18)?;
    let label = |text, x| write(area, text, style(14, MUTED, HPos::Left, VPos::Center), (x, 55));
    area.draw(&Circle::new((700, 55), 3, MUTED.mix(0.6).filled()))?;
    label("refused", 709)?;
    area.draw(&Circle::new((784, 55), 4, INK.filled()))?;
    label("accepted", 793)
}

struct Panel<'a> {
    clients: u32,
    /// Width of the panel's time axis, in milliseconds.
    window: f64,
    strategy: Strategy,
    writes: &'a [Write],
    /// True for the bottom panel, which has the time axis below it.
    last: bool,
}

impl Panel<'_> {
    fn draw(&self, panel: &Area<'_>) -> Drawing {
        let Self { clients, window, strategy, writes, last } = *self;
        let colour = colour(strategy);
        let done = writes.last().map_or(0.0, |write| write.at_ms) / 1e3;
        for (text, size, colour, y) in [
            (strategy.name().to_owned(), 15, colour, 34),
            (format!("{} calls", writes.len()), 13, MUTED, 58),
            (format!("done after {done:.1} s"), 13, MUTED, 76),
        ] {
            write(panel, &text, style(size, colour, HPos::Left, VPos::Top), (24, y))?;
        }
        let mut chart = ChartBuilder::on(panel)
            .margin_top(6)
            .margin_bottom(6)
            .margin_left(150)
            .margin_right(28)
            .x_label_area_size(if last { FOOTER_HEIGHT } else { 0 })
            .build_cartesian_2d(0.0..window / 1e3, -1.0..f64::from(clients))?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_y_mesh()
            .disable_y_axis()
            .x_labels(11)
            .max_light_lines(0)
            .bold_line_style(GRID)
            .axis_style(MUTED);
        mesh.label_style((FONT, 13).into_text_style(panel).color(&MUTED))
            .axis_desc_style((FONT, 14).into_text_style(panel).color(&INK));
        if last {
            mesh.x_desc("seconds since the clients started");
        }
        mesh.draw()?;
        for (accepted, size, style) in [(false, 2, colour.mix(0.6).filled()), (true, 3, INK.filled())] {
            let shown = writes.iter().filter(|write| write.accepted == accepted && write.at_ms <= window);
            let dots =
                shown.map(|write| Circle::new((write.at_ms / 1e3, f64::from(write.client)), size, style));
            chart.draw_series(dots)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_far_apart_stay_where_they_are() {
        assert_eq!(spread(&[10, 100, 117]), [10, 100, 117]);
    }

    #[test]
    fn names_that_meet_move_apart_around_their_middle() {
        assert_eq!(spread(&[100, 101]), [92, 109]);
        assert_eq!(spread(&[10, 100, 101, 110, 300]), [10, 86, 103, 120, 300]);
    }

    #[test]
    fn a_name_pushed_into_the_next_takes_it_along() {
        let heights = spread(&[100, 100, 118]);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= NAME_HEIGHT), "{heights:?}");
    }
}
