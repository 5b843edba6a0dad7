//! Human-readable text, in which functions, events, times and suggested commands are typed values.
//!
//! The `comeback` command prints the text with [`Display`](fmt::Display). The console turns the values into links and
//! buttons.

use std::fmt;

use comeback_engine::Timestamp;
use serde::{Serialize, Serializer};

use crate::command::Command;

/// Human-readable text, made of spans.
///
/// ```
/// use comeback_operate::{Command, CommandName, text, text::quoted};
///
/// let resume = Command::new(CommandName::Resume, ["orders"], " --stack shop");
/// let hint = text!["orders is paused; see ", quoted(resume)];
/// assert_eq!(hint.to_string(), "orders is paused; see `comeback resume orders --stack shop`");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(Vec<Span>);

/// A part of a [`Text`], with its tone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The content of the span.
    pub piece: Piece,
    /// The tone of the span.
    pub tone: Tone,
}

/// The content of a span: words, or a value that the console may show as a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Plain words.
    Words(String),
    /// A Lambda function.
    Function {
        /// The function's name as the text shows it, such as `orders`.
        shown: String,
        /// The name to write in a command. For a function in another account or region, this is the ARN.
        name: String,
    },
    /// The key of an event.
    Event(String),
    /// A point in time.
    Moment {
        /// The point in time in words, such as `2m 5s ago`.
        shown: String,
        /// The exact time that `shown` puts into words.
        at: Timestamp,
    },
    /// A `comeback` command.
    Command(Command, Quotes),
    /// A shell command, such as an AWS CLI command.
    Shell(String, Quotes),
}

/// The quotes around a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quotes {
    /// Backticks, for a command within a sentence.
    Backquotes,
    /// No quotes, for a command on its own.
    Bare,
}

/// The tone of a span, which the `comeback` command shows as a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    /// The text is neither good nor bad news.
    #[default]
    Plain,
    /// Nothing is wrong.
    Good,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Bad,
}

impl Text {
    /// Returns the text with the tone of each span raised to at least `tone`. The variants of [`Tone`] are in
    /// ascending order.
    pub fn toned(tone: Tone, text: impl Into<Self>) -> Self {
        let spans = text.into().0.into_iter();
        Self(spans.map(|span| Span { tone: span.tone.max(tone), ..span }).collect())
    }

    /// Appends `more`, and returns the whole text.
    #[must_use]
    pub fn and(mut self, more: impl Into<Self>) -> Self {
        self.push(more);
        self
    }

    /// Appends `more`.
    pub fn push(&mut self, more: impl Into<Self>) {
        self.0.extend(more.into().0);
    }

    /// Joins texts with the separator `between`.
    pub fn joined(texts: impl IntoIterator<Item = Self>, between: &str) -> Self {
        let mut all = Self::default();
        for (number, text) in texts.into_iter().enumerate() {
            if number > 0 {
                all.push(between);
            }
            all.push(text);
        }
        all
    }

    /// Splits the text at the line breaks in its words.
    pub fn lines(&self) -> Vec<Self> {
        let mut lines = vec![Self::default()];
        for Span { piece, tone } in &self.0 {
            let parts = match piece {
                Piece::Words(words) => words.split('\n').map(|part| Piece::Words(part.to_owned())).collect(),
                value => vec![value.clone()],
            };
            for (number, piece) in parts.into_iter().enumerate() {
                if number > 0 {
                    lines.push(Self::default());
                }
                let line = lines.last_mut().expect("BUG: it begins with one");
                line.0.push(Span { piece, tone: *tone });
            }
        }
        lines
    }

    /// Replaces a placeholder, such as `TOPIC_ARN`, in words and shell commands.
    pub(crate) fn replace(&mut self, placeholder: &str, value: &str) {
        for span in &mut self.0 {
            if let Piece::Words(text) | Piece::Shell(text, _) = &mut span.piece {
                *text = text.replace(placeholder, value);
            }
        }
    }

    /// The spans of the text, in order.
    pub fn spans(&self) -> &[Span] {
        &self.0
    }

    /// The most serious tone of any span.
    pub fn tone(&self) -> Tone {
        self.0.iter().map(|span| span.tone).max().unwrap_or_default()
    }

    /// Returns true if the text has no characters.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|span| matches!(&span.piece, Piece::Words(words) if words.is_empty()))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|span| span.piece.fmt(f))
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(text) | Self::Event(text) => f.write_str(text),
            Self::Function { shown, .. } | Self::Moment { shown, .. } => f.write_str(shown),
            Self::Command(command, Quotes::Bare) => write!(f, "{command}"),
            Self::Command(command, Quotes::Backquotes) => write!(f, "`{command}`"),
            Self::Shell(command, Quotes::Bare) => write!(f, "{command}"),
            Self::Shell(command, Quotes::Backquotes) => write!(f, "`{command}`"),
        }
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<Piece> for Text {
    fn from(piece: Piece) -> Self {
        Self(vec![Span { piece, tone: Tone::Plain }])
    }
}

impl From<String> for Text {
    fn from(words: String) -> Self {
        Piece::Words(words).into()
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl From<&String> for Text {
    fn from(words: &String) -> Self {
        words.clone().into()
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Self {
        text.clone()
    }
}

/// Converts a command to text without quotes.
impl From<Command> for Text {
    fn from(command: Command) -> Self {
        Piece::Command(command, Quotes::Bare).into()
    }
}

/// Converts a point in time to text in RFC 3339 format.
impl From<Timestamp> for Text {
    fn from(at: Timestamp) -> Self {
        Piece::Moment { shown: at.to_string(), at }.into()
    }
}

/// A `comeback` command in backquotes, for use within a sentence.
pub fn quoted(command: Command) -> Text {
    Piece::Command(command, Quotes::Backquotes).into()
}

/// A shell command that is shown without quotes.
pub fn shell(command: impl Into<String>) -> Text {
    Piece::Shell(command.into(), Quotes::Bare).into()
}

/// Joins words, commands, points in time and texts into one [`Text`].
#[macro_export]
macro_rules! text {
    ($($part:expr),* $(,)?) => {{
        let mut text = $crate::text::Text::default();
        $(text.push($part);)*
        text
    }};
}

/// Removes a byte-order mark, which some Windows editors write, from the start of a file.
///
/// # Errors
///
/// Fails if the file is UTF-16.
pub fn without_mark(bytes: &[u8]) -> Result<&[u8], &'static str> {
    match bytes {
        // UTF-16, with or without a byte-order mark: JSON always begins with an ASCII character.
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 1..=0xff, ..] | [1..=0xff, 0, ..] => {
            Err("it is UTF-16, as Windows PowerShell's `>` writes; save it as UTF-8")
        }
        _ => Ok(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_only_at_a_break_in_words() {
        let two = Text::toned(Tone::Bad, text!["run ", shell("a\nb"), ":\nor wait"]);
        let lines = two.lines();
        assert_eq!(lines.iter().map(ToString::to_string).collect::<Vec<_>>(), ["run a\nb:", "or wait"]);
        assert_eq!(lines.iter().map(Text::tone).collect::<Vec<_>>(), [Tone::Bad; 2]);
    }
}
