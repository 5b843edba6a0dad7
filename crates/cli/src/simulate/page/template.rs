//! The parts of the page, as its template takes them. The template escapes all text; only charts are
//! markup.

use askama::Template;
use plotters::style::RGBColor;

use crate::chart::{Colour, PALETTE, name_of};

/// The whole page.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page {
    pub(super) version: &'static str,
    pub(super) palette: [Colour; PALETTE.len()],
    pub(super) headline: String,
    pub(super) tiles: Vec<Tile>,
    pub(super) sections: Vec<Section>,
    pub(super) command: String,
}

/// A figure in large type, for each policy.
pub(super) struct Tile {
    pub(super) label: &'static str,
    pub(super) values: Vec<(String, String)>,
}

/// A heading and what is below it.
#[derive(Default)]
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) heading: &'static str,
    pub(super) paragraphs: Vec<String>,
    pub(super) tables: Vec<Table>,
    pub(super) charts: Vec<Chart>,
}

/// Columns after the first hold figures.
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// A picture, and the figures behind it.
pub(super) struct Chart {
    pub(super) id: &'static str,
    pub(super) heading: String,
    /// The picture in words, for those who do not see it.
    pub(super) description: String,
    pub(super) keys: Vec<Key>,
    pub(super) svg: Svg,
    pub(super) table: Option<Table>,
}

/// A drawing without its outermost element, which the template writes with title and description.
pub(super) struct Svg {
    pub(super) size: (u32, u32),
    pub(super) inner: String,
}

/// What a mark in a chart stands for.
pub(super) struct Key {
    pub(super) symbol: &'static str,
    pub(super) colour: RGBColor,
    pub(super) label: String,
}

impl Key {
    pub(super) fn colour_name(&self) -> &'static str {
        name_of(self.colour)
    }
}
