//! Tables and progress bars for a terminal.

#[cfg(feature = "operate")]
use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// Maximum width of a table, in characters.
const COLUMNS: u16 = 80;

/// Time between two frames of a spinner.
#[cfg(feature = "operate")]
const TICK: Duration = Duration::from_millis(100);

/// An empty table at most 80 columns wide, in which long cells wrap.
pub(crate) fn table() -> Table {
    let mut table = Table::new();
    // Colours are always written. The output stream removes colours that the output cannot show.
    table.load_style(presets::UTF8_FULL_CONDENSED).enforce_styling();
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
    table
}

/// An empty table that puts each row on one line of any length, because a wrapped key or ARN cannot be copied.
#[cfg(feature = "operate")]
pub(crate) fn unwrapped_table() -> Table {
    let mut table = table();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table
}

pub(crate) fn align_right(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        table.column_mut(column).expect("BUG: no such column").set_cell_alignment(CellAlignment::Right);
    }
}

/// A progress bar on standard error, removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Meter(ProgressBar);

impl Meter {
    /// Creates a progress bar for `length` steps, with the indicatif template `figures` to its right.
    pub(crate) fn new(length: u64, figures: &str) -> Self {
        Self::with_template(ProgressBar::new(length), &format!("{{wide_bar}} {figures}"))
    }

    /// A spinner for work of unknown length.
    #[cfg(feature = "operate")]
    pub(crate) fn endless(figures: &str) -> Self {
        let bar = Self::with_template(ProgressBar::new_spinner(), &format!("{{spinner}} {figures}"));
        bar.0.enable_steady_tick(TICK);
        bar
    }

    fn with_template(bar: ProgressBar, template: &str) -> Self {
        let style = ProgressStyle::with_template(template).expect("BUG: indicatif cannot read its template");
        Self(bar.with_style(style).with_finish(ProgressFinish::AndClear))
    }

    pub(crate) fn advance(&self, by: u64) {
        self.0.inc(by);
    }

    pub(crate) fn set(&self, position: u64) {
        self.0.set_position(position);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use comeback_operate::shown::shown_lines;

    /// Text with escape sequences that set a terminal's title, clear its screen, delete characters and reverse the
    /// text.
    pub(crate) const HOSTILE: &str =
        "a\u{1b}]0;b\u{7}c\u{9b}2Jd\u{8}e\u{7f}f\u{202e}g\u{2066}h\u{200f}i\u{61c}j\rk\nl\té";

    /// Returns true if the text contains anything that a terminal would obey, other than line breaks and colours.
    pub(crate) fn is_obeyed_anywhere(text: &str) -> bool {
        let text = text.replace("\u{1b}[", "");
        shown_lines(&text) != text
    }
}
