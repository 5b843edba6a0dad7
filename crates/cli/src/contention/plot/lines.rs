use comeback_contention::{Cell, Report, Strategy};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::chart::count_axis::{CountAxis, range};
use crate::chart::palette::{GRID, INK, MUTED};
use crate::chart::svg::{Area, Drawing, FONT, svg};
use crate::contention::plot::colours::colour;
use crate::contention::tables::{distinct, runs};

const SIZE: (u32, u32) = (900, 560);
/// Room for the names at the lines' ends.
const NAMES_WIDTH: u32 = 120;
/// The least distance between names at the lines' ends, in pixels.
const NAME_HEIGHT: i32 = 17;
/// From this ratio of the most clients to the fewest on, both axes are logarithmic, ...
const WIDE: f64 = 50.0;
/// ... and above this ratio between strategies the axis of the figures is.
const FAR_APART: f64 = 10.0;

/// A figure over the number of clients, a line for each strategy.
pub(super) struct Lines {
    title: &'static str,
    subtitle: String,
    unit: &'static str,
    series: Vec<(Strategy, Vec<(f64, f64)>)>,
}

impl Lines {
    pub(super) fn of_calls(report: &Report) -> Self {
        Self::new(report, "Calls until every client has written", "calls", |cell| cell.calls)
    }

    pub(super) fn of_time(report: &Report) -> Self {
        Self::new(report, "Time until every client has written", "seconds", |cell| cell.time_ms / 1e3)
    }

    fn new(report: &Report, title: &'static str, unit: &'static str, figure: impl Fn(&Cell) -> f64) -> Self {
        let strategies = distinct(report.cells.iter().map(|cell| cell.strategy));
        let of = |strategy| {
            let cells = report.cells.iter().filter(|cell| cell.strategy == strategy);
            let mut points: Vec<(f64, f64)> =
                cells.map(|cell| (f64::from(cell.clients), figure(cell))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            (strategy, points)
        };
        let series = strategies.into_iter().map(of).collect();
        Self { title, subtitle: format!("by backoff strategy, {}", runs(report)), unit, series }
    }

    pub(super) fn draw(&self) -> String {
        let points = || self.series.iter().flat_map(|(_, points)| points.iter().copied());
        let (fewest, most) = range(points().map(|(x, _)| x));
        let ends = self.series.iter().filter_map(|(_, points)| points.last()).map(|(_, y)| *y);
        let (lowest_end, highest_end) = range(ends);
        let log_x = most / fewest >= WIDE;
        let log_y = log_x || highest_end / lowest_end > FAR_APART;
        let (x, y) = (
            CountAxis::over(points().map(|(x, _)| x), log_x),
            CountAxis::over(points().map(|(_, y)| y), log_y),
        );
        let subtitle =
            if log_y { format!("{}; logarithmic scale", self.subtitle) } else { self.subtitle.clone() };
        svg(SIZE, |root| {
            root.draw_text(self.title, &(FONT, 22).into_text_style(root).color(&INK), (24, 18))?;
            root.draw_text(&subtitle, &(FONT, 14).into_text_style(root).color(&MUTED), (24, 48))?;
            let mut chart = ChartBuilder::on(root)
                .margin_top(80)
                .margin_bottom(14)
                .margin_left(16)
                .margin_right(NAMES_WIDTH)
                .x_label_area_size(46)
                .y_label_area_size(72)
                .build_cartesian_2d(x, y)?;
            chart
                .configure_mesh()
                .x_desc("clients")
                .y_desc(self.unit)
                .x_labels(11)
                .y_labels(9)
                .max_light_lines(0)
                .bold_line_style(GRID)
                .axis_style(MUTED)
                .label_style((FONT, 13).into_text_style(root).color(&MUTED))
                .axis_desc_style((FONT, 14).into_text_style(root).color(&INK))
                .draw()?;
            let mut names = Vec::new();
            for (strategy, points) in &self.series {
                let colour = colour(*strategy);
                chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
                chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, colour.filled())))?;
                names.extend(points.last().map(|end| (*strategy, chart.backend_coord(end))));
            }
            draw_names(root, names)
        })
    }
}

/// Names each line at its end, moved apart where lines end close together.
fn draw_names(root: &Area<'_>, mut names: Vec<(Strategy, (i32, i32))>) -> Drawing {
    names.sort_by_key(|(_, (_, y))| *y);
    let mut tops: Vec<i32> = names.iter().map(|(_, (_, y))| *y).collect();
    spread(&mut tops);
    for ((strategy, (x, _)), y) in names.into_iter().zip(tops) {
        let colour = colour(strategy);
        let style = (FONT, 14).into_text_style(root).color(&colour);
        root.draw_text(strategy.name(), &style.pos(Pos::new(HPos::Left, VPos::Center)), (x + 10, y))?;
    }
    Ok(())
}

/// Moves ascending heights apart until each has [`NAME_HEIGHT`] to itself, as little as is needed:
/// heights that touch form a block around their middle.
fn spread(heights: &mut [i32]) {
    let wanted = heights.to_vec();
    let mut blocks: Vec<std::ops::Range<usize>> = Vec::new();
    let top = |block: &std::ops::Range<usize>| {
        let middle = wanted[block.clone()].iter().sum::<i32>() / block.len() as i32;
        middle - NAME_HEIGHT * (block.len() as i32 - 1) / 2
    };
    for i in 0..wanted.len() {
        let mut block = i..i + 1;
        while let Some(above) = blocks.pop() {
            if top(&above) + NAME_HEIGHT * above.len() as i32 <= top(&block) {
                blocks.push(above);
                break;
            }
            block.start = above.start;
        }
        blocks.push(block);
    }
    for block in blocks {
        for (i, height) in heights[block.clone()].iter_mut().enumerate() {
            *height = top(&block) + NAME_HEIGHT * i as i32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread_out(mut heights: Vec<i32>) -> Vec<i32> {
        spread(&mut heights);
        heights
    }

    #[test]
    fn names_far_apart_stay_where_they_are() {
        assert_eq!(spread_out(vec![10, 100, 117]), [10, 100, 117]);
    }

    #[test]
    fn names_that_meet_move_apart_around_their_middle() {
        assert_eq!(spread_out(vec![100, 101]), [92, 109]);
        assert_eq!(spread_out(vec![10, 100, 101, 110, 300]), [10, 86, 103, 120, 300]);
    }

    #[test]
    fn a_name_pushed_into_the_next_takes_it_along() {
        let heights = spread_out(vec![100, 100, 118]);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= NAME_HEIGHT), "{heights:?}");
    }
}
