//! Tables for a terminal.

use comfy_table::{ContentArrangement, Table, presets};

/// The narrowest terminal that is usual.
const COLUMNS: u16 = 80;

/// A table that is no wider than 80 columns: a cell that is too long has several lines.
pub(crate) fn table() -> Table {
    let mut table = Table::new();
    // Colours are always written; the stream removes them where they cannot be shown.
    table.load_style(presets::UTF8_FULL_CONDENSED).enforce_styling();
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
    table
}
