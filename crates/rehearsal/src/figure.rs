//! Pictures and tables on an HTML page. The template escapes all text and adds the frame; only a chart's drawing is
//! markup.

use askama::Template;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::axis::{CountAxis, count_label};
use crate::chart::{Area, Drawing, FONT, Frame, GRID, MUTED, name_of, svg};

/// Style sheet for a page with figures. The colours of [`PALETTE`](crate::chart::PALETTE) are CSS variables in it.
pub const STYLE: &str = include_str!("../templates/report.css");

/// Size of a chart in pixels: small, so that its text stays readable on a phone.
pub const SIZE: (u32, u32) = (420, 265);
/// Size of text in a chart. It makes text 12 units high, which is 9 pixels on a phone.
pub const TEXT: i32 = 15;

/// A table that is displayed as HTML. All columns but the first hold figures.
#[derive(Template)]
#[template(path = "table.html")]
pub struct Table {
    /// The caption, displayed above the table.
    pub caption: String,
    /// Columns of the table: each has a head and the cells below it.
    pub columns: Vec<(String, Vec<String>)>,
}

/// A chart that is displayed as HTML, with its figures in a table below.
#[derive(Template)]
#[template(path = "chart.html")]
pub struct Chart {
    /// The chart's anchor on the page.
    pub id: &'static str,
    /// The heading, displayed above the chart.
    pub heading: String,
    /// Describes the chart in words, for readers who cannot see it.
    pub description: String,
    /// The legend: the meaning of each mark in the chart.
    pub keys: Vec<Key>,
    /// The drawing, without the outermost SVG element. The template writes that element, with title and description.
    pub svg: String,
    /// The chart's figures as a table, folded below the chart; `None` for a chart without one.
    pub table: Option<Table>,
}

/// An entry of a chart's legend.
pub struct Key {
    /// The mark as a character, such as `━━`.
    pub symbol: &'static str,
    /// Colour of the mark.
    pub colour: RGBColor,
    /// Meaning of the mark.
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

/// Draws a chart and returns the content of its outermost SVG element.
pub fn drawn(draw: impl FnOnce(&Area<'_>) -> Drawing) -> String {
    let text = svg(SIZE, draw);
    let inner = text.split_once('>').and_then(|(_, rest)| rest.rsplit_once("</svg>"));
    inner.expect("BUG: a drawing is an svg element").0.to_owned()
}

/// Draws a chart's axes and grid. `unit` ends the labels on the left.
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
