//! Charts and tables for an HTML page. The templates escape every text except [`Picture::markup`].

use askama::Template;
use plotters::style::RGBColor;

use crate::chart::{Area, Drawing, LineStyle, Padding, name_of, svg};

/// Style sheet for a page. The page must define the colours of [`PALETTE`](crate::chart::PALETTE) as CSS variables.
pub const STYLE: &str = include_str!("../templates/report.css");

/// Size of a chart in pixels. On a phone, a larger chart would be shrunk, and its text would be too small to read.
pub const SIZE: (u32, u32) = (420, 265);
/// Size in pixels of a chart that is as wide as the page and scrolls on a phone.
pub const WIDE: (u32, u32) = (1_200, 250);
/// An HTML table, in which all columns but the first contain figures.
#[derive(Template)]
#[template(path = "table.html")]
pub struct FigureTable {
    /// The caption, displayed above the table.
    pub caption: String,
    /// The heading and the cells of each column.
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
    /// Description of the chart for readers who cannot see the drawing.
    pub description: String,
    /// The meaning of each mark in the chart.
    pub keys: Vec<LegendEntry>,
    /// The drawing.
    pub picture: Picture,
    /// The chart's figures as a table, collapsed below the chart; `None` for a chart without a table.
    pub table: Option<FigureTable>,
}

/// An entry in a chart's legend.
pub struct LegendEntry {
    /// The mark as text, such as `━━`.
    pub symbol: &'static str,
    /// Colour of the mark.
    pub colour: RGBColor,
    /// The text of the legend entry, which says what the mark stands for in the chart.
    pub label: String,
}

impl LegendEntry {
    /// Creates a legend entry for a line.
    pub fn of_line(line: LineStyle, colour: RGBColor, label: impl Into<String>) -> Self {
        Self { symbol: line.symbol(), colour, label: label.into() }
    }

    fn colour_name(&self) -> &'static str {
        name_of(self.colour)
    }
}

impl FigureTable {
    fn rows(&self) -> impl Iterator<Item = Vec<&str>> {
        let cells = |row: usize| self.columns.iter().map(move |(_, cells)| cells[row].as_str()).collect();
        (0..self.columns[0].1.len()).map(cells)
    }
}

/// A drawing without the outermost SVG element, which the chart's template writes.
pub struct Picture {
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// The drawing as SVG elements.
    pub markup: String,
    /// The values to show beside the pointer, for each part of the horizontal axis from left to right.
    values: Vec<Values>,
}

/// The values to show while the pointer is between two points on a chart's horizontal axis.
pub struct Values {
    /// The position of the left point on the axis, from 0 (left end) to 1 (right end).
    pub from: f64,
    /// The position of the right point on the axis, from 0 (left end) to 1 (right end).
    pub to: f64,
    /// The chart's values in words, shown beside the pointer.
    pub text: String,
    /// The page that opens when the reader clicks this part of the chart; `None` if a click does nothing.
    pub href: Option<String>,
}

impl Picture {
    /// Replaces the values to show beside the pointer.
    #[must_use]
    pub fn with_values(self, values: impl IntoIterator<Item = Values>) -> Self {
        Self { values: values.into_iter().collect(), ..self }
    }

    /// Converts a position on the horizontal axis, from 0 to 1, to a position in pixels.
    fn x(&self, share: f64) -> f64 {
        let Padding { left, right, .. } = Padding::PAGE;
        f64::from(left) + share * f64::from(self.size.0 - left - right)
    }

    /// The top of the plot and the plot's height, in pixels.
    fn plot(&self) -> (u32, u32) {
        let top = Padding::PAGE.top;
        (top, self.size.1 - top - Padding::BELOW)
    }

    fn is_wide(&self) -> bool {
        self.size == WIDE
    }

    fn has_links(&self) -> bool {
        self.values.iter().any(|values| values.href.is_some())
    }
}

impl Values {
    /// Returns the values of each part of the axis. Part `n` extends from `edge(n)` to `edge(n + 1)`, as fractions of
    /// the axis.
    pub fn each(
        parts: usize,
        edge: impl Fn(usize) -> f64,
        text: impl Fn(usize) -> String,
    ) -> impl Iterator<Item = Self> {
        (0..parts).map(move |part| Self {
            from: edge(part),
            to: edge(part + 1),
            text: text(part),
            href: None,
        })
    }

    fn width(&self, picture: &Picture) -> f64 {
        picture.x(self.to) - picture.x(self.from)
    }
}

/// Draws a picture whose size is [`SIZE`].
pub fn drawn(draw: impl FnOnce(&Area<'_>) -> Drawing) -> Picture {
    drawn_in(SIZE, draw)
}

/// Draws a picture; `size` is its width and height, in pixels.
pub fn drawn_in(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawing) -> Picture {
    let text = svg(size, draw);
    let inner = text.split_once('>').and_then(|(_, rest)| rest.rsplit_once("</svg>"));
    let markup = inner.expect("BUG: a drawing is an svg element").0.to_owned();
    Picture { size, markup, values: Vec::new() }
}
