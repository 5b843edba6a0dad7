//! A picture or a table on a page. The template escapes all text and adds the frame; only a chart's drawing is markup.

use askama::Template;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::axis::{CountAxis, count_label};
use crate::chart::{Area, Drawing, FONT, Frame, GRID, MUTED, name_of, svg};

/// The style sheet of a page with figures. The colours of [`PALETTE`](crate::chart::PALETTE) are its variables.
pub const STYLE: &str = include_str!("../templates/report.css");

/// Size of a chart: small, so that its text stays readable on a phone.
pub const SIZE: (u32, u32) = (420, 265);
/// A size of 15 makes text 12 units high, which is 9 pixels on a phone.
pub const TEXT: i32 = 15;

/// A table, displayed as HTML. Columns after the first hold figures.
#[derive(Template)]
#[template(path = "table.html")]
pub struct Table {
    /// The line above it.
    pub caption: String,
    /// Column heads, each with the cells below it.
    pub columns: Vec<(String, Vec<String>)>,
}

/// A picture, and the figures behind it, displayed as HTML.
#[derive(Template)]
#[template(path = "chart.html")]
pub struct Chart {
    /// Its anchor on the page.
    pub id: &'static str,
    /// The line above it.
    pub heading: String,
    /// The picture in words, for readers who cannot see it.
    pub description: String,
    /// Meanings of its marks.
    pub keys: Vec<Key>,
    /// The drawing without its outermost element, which the template writes with title and description.
    pub svg: String,
    /// Its figures, folded under it.
    pub table: Option<Table>,
}

/// The meaning of a mark in a chart.
pub struct Key {
    /// The mark.
    pub symbol: &'static str,
    /// Its colour.
    pub colour: RGBColor,
    /// Its meaning.
    pub label: String,
}

impl Table {
    fn rows(&self) -> impl Iterator<Item = Vec<&str>> {
        let cells = |row: usize| self.columns.iter().map(move |(_, cells)| cells[row].as_str()).collect();
        (0..self.columns[0].1.len()).map(cells)
    }
}

impl Chart {
    fn size(&self) -> (u32, u32) {
        SIZE
    }
}

impl Key {
    fn colour_name(&self) -> &'static str {
        name_of(self.colour)
    }
}

/// The content of the picture's outermost element.
pub fn drawn(draw: impl FnOnce(&Area<'_>) -> Drawing) -> String {
    let text = svg(SIZE, draw);
    let inner = text.split_once('>').and_then(|(_, rest)| rest.rsplit_once("</svg>"));
    inner.expect("BUG: a drawing is an svg element").0.to_owned()
}

/// Axes and grid. `unit` ends the labels on the left.
pub fn frame<'a, 'b: 'a, X: Ranged<ValueType = f64> + ValueFormatter<f64>>(
    root: &'a Area<'b>,
    (x, y): (X, CountAxis),
    x_title: &str,
    unit: &str,
) -> Result<Frame<'a, 'b, X, CountAxis>, Box<dyn std::error::Error>> {
    let mut chart = ChartBuilder::on(root)
        .margin_top(12)
        .margin_right(16)
        .x_label_area_size(46)
        .y_label_area_size(66)
        .build_cartesian_2d(x, y)?;
    let small = (FONT, TEXT).into_text_style(root).color(&MUTED);
    chart
        .configure_mesh()
        .x_desc(x_title)
        .x_labels(8)
        .y_labels(7)
        .y_label_formatter(&|y| count_label(*y) + unit)
        .max_light_lines(0)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(MUTED)
        .label_style(small.clone())
        .axis_desc_style(small)
        .draw()?;
    Ok(chart)
}
