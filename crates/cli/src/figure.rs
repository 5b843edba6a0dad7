//! A picture or a table on a page of ours, as `templates/figures.html` draws it. It escapes all text; only a chart's
//! drawing is markup.

use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::axis::{CountAxis, count_label};
use crate::chart::{Area, Drawing, FONT, Frame, GRID, MUTED, name_of, svg};

/// Size of a chart: small, so that its text stays readable on a phone.
pub(crate) const SIZE: (u32, u32) = (420, 265);
/// A size of 15 makes text 12 units high, which is 9 pixels on a phone.
pub(crate) const TEXT: i32 = 15;

/// Columns after the first hold figures.
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<(String, Vec<String>)>,
}

/// A picture, and the figures behind it.
pub(crate) struct Chart {
    pub(crate) id: &'static str,
    pub(crate) heading: String,
    /// The picture in words, for those who do not see it.
    pub(crate) description: String,
    pub(crate) keys: Vec<Key>,
    /// Without its outermost element, which the template writes with title and description.
    pub(crate) svg: String,
    pub(crate) table: Option<Table>,
}

/// What a mark in a chart stands for.
pub(crate) struct Key {
    pub(crate) symbol: &'static str,
    pub(crate) colour: RGBColor,
    pub(crate) label: String,
}

impl Table {
    pub(crate) fn rows(&self) -> impl Iterator<Item = Vec<&str>> {
        let cells = |row: usize| self.columns.iter().map(move |(_, cells)| cells[row].as_str()).collect();
        (0..self.columns[0].1.len()).map(cells)
    }
}

impl Chart {
    pub(crate) fn size(&self) -> (u32, u32) {
        SIZE
    }
}

impl Key {
    pub(crate) fn colour_name(&self) -> &'static str {
        name_of(self.colour)
    }
}

/// The content of the picture's outermost element.
pub(crate) fn drawn(draw: impl FnOnce(&Area<'_>) -> Drawing) -> String {
    let text = svg(SIZE, draw);
    let inner = text.split_once('>').and_then(|(_, rest)| rest.rsplit_once("</svg>"));
    inner.expect("BUG: a drawing is an svg element").0.to_owned()
}

/// Axes and grid. `unit` ends the labels on the left.
pub(crate) fn frame<'a, 'b: 'a, X: Ranged<ValueType = f64> + ValueFormatter<f64>>(
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
