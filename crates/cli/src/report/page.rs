//! The page's parts as its template takes them. All text is escaped there; only charts are markup.

use askama::Template;
use plotters::style::RGBColor;

use crate::svg::{BLUE, GREEN, GREY, GRID, INK, MUTED, ORANGE, PURPLE};

/// The whole page.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page {
    pub(super) version: &'static str,
    pub(super) palette: Vec<Colour>,
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
    /// What is to be seen, for those who do not see it.
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

/// A colour of the charts as a CSS variable, for a light page and for a dark one.
pub(super) struct Colour {
    pub(super) name: &'static str,
    pub(super) light: String,
    pub(super) dark: &'static str,
}

/// Every colour that a chart may use, by its name in the style sheet. The dark ones are of the same
/// hue, light enough for text on the dark page.
const PALETTE: [(RGBColor, &str, &str); 9] = [
    (RGBColor(0xff, 0xff, 0xff), "paper", "#17181B"),
    (INK, "ink", "#EAEAEA"),
    (MUTED, "muted", "#AFB1B5"),
    (GRID, "grid", "#3A3C41"),
    (BLUE, "blue", "#5DB7EA"),
    (ORANGE, "orange", "#FF9447"),
    (GREEN, "green", "#35C79C"),
    (PURPLE, "purple", "#DB8FD2"),
    (GREY, "grey", "#BDBDBD"),
];

pub(super) fn palette() -> Vec<Colour> {
    let colour = |(rgb, name, dark)| Colour { name, light: hex(rgb), dark };
    PALETTE.into_iter().map(colour).collect()
}

impl Key {
    pub(super) fn colour_name(&self) -> &'static str {
        let named = PALETTE.iter().find(|(rgb, ..)| *rgb == self.colour);
        named.expect("BUG: a colour outside the palette").1
    }
}

/// As `plotters` writes it, for the style sheet to find it.
fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}
