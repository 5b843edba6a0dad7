//! What a terminal shows: tables, progress bars, foreign text made harmless, and commands to paste into a shell.

use std::borrow::Cow;
#[cfg(feature = "operate")]
use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

/// Width of the narrowest usual terminal.
const COLUMNS: u16 = 80;

/// A spinner turns even while nothing comes.
#[cfg(feature = "operate")]
const TICK: Duration = Duration::from_millis(100);

/// An empty table, at most 80 columns wide: long cells wrap.
pub(crate) fn table() -> Table {
    let mut table = Table::new();
    // Colours are always written; the stream removes them where they cannot be shown.
    table.load_style(presets::UTF8_FULL_CONDENSED).enforce_styling();
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
    table
}

/// An empty table with each row on one line, however long: a key or an ARN that is broken in two cannot be copied.
#[cfg(feature = "operate")]
pub(crate) fn unwrapped_table() -> Table {
    let mut table = table();
    table.set_content_arrangement(ContentArrangement::Disabled);
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
        let bar = Self::with_template(ProgressBar::new_spinner(), &format!("{{spinner}} {figures}"));
        bar.0.enable_steady_tick(TICK);
        bar
    }

    /// Progress that only [`bar`](Self::bar) knows.
    #[cfg(feature = "operate")]
    pub(crate) fn unseen(length: Option<u64>) -> Self {
        let bar = ProgressBar::hidden();
        length.into_iter().for_each(|length| bar.set_length(length));
        Self(bar)
    }

    #[cfg(feature = "operate")]
    pub(crate) fn bar(&self) -> ProgressBar {
        self.0.clone()
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

/// Whether a terminal obeys a character instead of showing it: control characters, and those that turn the direction of the
/// text around them. A tab is harmless.
fn is_obeyed(character: char) -> bool {
    (character.is_control() && character != '\t')
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// A text that may come from anywhere, on one line: what a terminal would obey is escaped, as in `\u{1b}`.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let mut shown = String::new();
    for character in text.chars() {
        if is_obeyed(character) { shown.extend(character.escape_default()) } else { shown.push(character) }
    }
    shown.into()
}

/// The same of a whole page: its lines stay.
#[cfg(feature = "operate")]
pub(crate) fn shown_page(page: String) -> String {
    if page.contains(|character| is_obeyed(character) && character != '\n') {
        shown_lines(&page)
    } else {
        page
    }
}

/// The same of a text that keeps its lines.
pub(crate) fn shown_lines(text: &str) -> String {
    text.split('\n').map(shown).collect::<Vec<_>>().join("\n")
}

/// JSON with the same values, in which everything that a terminal would obey is escaped as JSON does it. serde_json leaves
/// DEL, U+0080 to U+009F and bidirectional controls as they are.
pub(crate) fn shown_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            // White space between values: within a string, JSON escapes it.
            '\n' => shown.push('\n'),
            '\r' => {}
            _ if is_obeyed(character) => shown.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => shown.push(character),
        }
    }
    shown
}

/// How to run our command again: from a checkout if cargo runs it, or by its name.
pub(crate) fn own_command() -> &'static [&'static str] {
    let by_cargo = std::env::var_os("CARGO").is_some();
    if by_cargo { &["cargo", "run", "--release", "-p", "comeback", "--"] } else { &["comeback"] }
}

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
pub(crate) mod tests {
    use super::*;

    /// Sets the title, clears the screen, deletes, and turns the text around.
    pub(crate) const HOSTILE: &str =
        "a\u{1b}]0;b\u{7}c\u{9b}2Jd\u{8}e\u{7f}f\u{202e}g\u{2066}h\u{200f}i\u{61c}j\rk\nl\té";

    /// Whether a terminal would obey something of [`HOSTILE`] in a text. Lines and colours are ours.
    pub(crate) fn is_obeyed_anywhere(text: &str) -> bool {
        text.replace("\u{1b}[", "").contains(|character| is_obeyed(character) && character != '\n')
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let expected =
            "a\\u{1b}]0;b\\u{7}c\\u{9b}2Jd\\u{8}e\\u{7f}f\\u{202e}g\\u{2066}h\\u{200f}i\\u{61c}j\\rk\\nl\té";
        assert_eq!(shown(HOSTILE), expected);
        assert_eq!(shown_lines(HOSTILE), expected.replace("\\n", "\n"));
        for end in ['\u{202a}', '\u{2069}', '\u{80}', '\u{9f}', '\u{200e}', '\0'] {
            assert!(shown(&end.to_string()).is_ascii(), "{end:?}");
        }
    }

    #[test]
    fn json_is_escaped_as_json_does_it_and_keeps_its_values() {
        let json = serde_json::to_string_pretty(&[HOSTILE]).unwrap();
        let shown = shown_json(&json);
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), [HOSTILE]);
        assert!(shown.contains("\\u009b2Jd") && shown.contains("f\\u202eg"), "{shown}");
        assert!(!shown.contains(|character| is_obeyed(character) && character != '\n'), "{shown}");
        assert_eq!(shown_json("[1,\r\n\t2]"), "[1,\n\t2]");
    }

    #[test]
    fn a_shell_reads_the_words_back() {
        let words =
            ["comeback", "", "--vs", "jitter=none,max-age=1h", "50%", "Order*", "It's $5", "a b", "~", "é"];
        let line = command_line(words);
        assert_eq!(line, r#"comeback '' --vs jitter=none,max-age=1h 50% 'Order*' "It's "'$5' 'a b' '~' 'é'"#);
        assert_eq!(shlex::split(&line).unwrap(), words);
    }
}
