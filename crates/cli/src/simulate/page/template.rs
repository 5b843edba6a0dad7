//! The parts of the page, as `templates/report.html` takes them. It escapes all text; only charts are markup.

use askama::Template;
use plotters::style::RGBColor;

use crate::chart::{Colour, PALETTE, name_of};

/// Size of a chart: small, so that its text stays readable on a phone.
pub(super) const SIZE: (u32, u32) = (420, 265);

/// The whole page.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page {
    pub(super) version: &'static str,
    pub(super) palette: [Colour; PALETTE.len()],
    pub(super) headline: String,
    pub(super) tiles: Vec<Tile>,
    pub(super) outcome: Vec<Table>,
    pub(super) has_outage: bool,
    pub(super) retries: Vec<String>,
    pub(super) retry_charts: [Chart; 2],
    /// Of each target, in the first run. Empty if there is only one.
    pub(super) target_charts: Vec<Chart>,
    pub(super) depth: Vec<String>,
    pub(super) queue_charts: [Chart; 2],
    pub(super) recovery: Option<(Chart, Table)>,
    pub(super) life: Option<Chart>,
    /// How to find a policy that recovers sooner, or costs less.
    pub(super) plan: Option<String>,
    pub(super) limit: Vec<String>,
    pub(super) limit_by_rate: Table,
    pub(super) cost: Table,
    pub(super) command: String,
}

/// A figure in large type, for each policy.
pub(super) struct Tile {
    pub(super) label: &'static str,
    pub(super) values: Vec<(String, String)>,
}

/// Columns after the first hold figures.
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) columns: Vec<(String, Vec<String>)>,
}

/// A picture, and the figures behind it.
pub(super) struct Chart {
    pub(super) id: &'static str,
    pub(super) heading: String,
    /// The picture in words, for those who do not see it.
    pub(super) description: String,
    pub(super) keys: Vec<Key>,
    /// Without its outermost element, which the template writes with title and description.
    pub(super) svg: String,
    pub(super) table: Option<Table>,
}

/// What a mark in a chart stands for.
pub(super) struct Key {
    pub(super) symbol: &'static str,
    pub(super) colour: RGBColor,
    pub(super) label: String,
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
