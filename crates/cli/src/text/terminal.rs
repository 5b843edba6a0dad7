//! What a terminal shows: tables, progress bars, and commands to paste into a shell.

use std::borrow::Cow;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// Width of the narrowest usual terminal.
const COLUMNS: u16 = 80;

/// An empty table, at most 80 columns wide: long cells wrap.
pub(crate) fn table() -> Table {
    let mut table = Table::new();
    // Colours are always written; the stream removes them where they cannot be shown.
    table.load_style(presets::UTF8_FULL_CONDENSED).enforce_styling();
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
    table
}

/// Aligns columns of figures to the right.
pub(crate) fn align_right(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        table.column_mut(column).expect("BUG: no such column").set_cell_alignment(CellAlignment::Right);
    }
}

/// Progress bar on standard error until it is dropped; hidden unless that is a terminal.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// `figures` stands to the right of the bar, in indicatif's template language.
    pub(crate) fn new(length: u64, figures: &str) -> Self {
        Self::with_template(ProgressBar::new(length), &format!("{{wide_bar}} {figures}"))
    }

    /// A spinner, for work of unknown length, with `figures` to its right.
    #[cfg(feature = "operate")]
    pub(crate) fn endless(figures: &str) -> Self {
        Self::with_template(ProgressBar::new_spinner(), &format!("{{spinner}} {figures}"))
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

/// How a checkout runs our command.
pub(crate) const FROM_CHECKOUT: [&str; 6] = ["cargo", "run", "--release", "-p", "comeback", "--"];

/// Joins the words of a command into a line to paste into a shell.
pub(crate) fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Quoted unless every shell reads it as one plain word. `shlex` alone would quote `=`, `,` and `%` too, which our
/// flags' values are full of.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/@=%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    shlex::try_quote(word).expect("BUG: a NUL in a command line")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_words_back() {
        let words =
            ["comeback", "", "--vs", "jitter=none,max-age=1h", "50%", "Order*", "It's $5", "a b", "~", "é"];
        let line = command_line(words);
        assert_eq!(line, r#"comeback '' --vs jitter=none,max-age=1h 50% 'Order*' "It's "'$5' 'a b' '~' 'é'"#);
        assert_eq!(shlex::split(&line).unwrap(), words);
    }
}
