//! Text for people, with functions, events, moments and suggested commands as values.
//!
//! A terminal draws a text as [`Display`](fmt::Display) writes it, in colour; a page makes links and buttons of its
//! spans. So neither has to find them in prose.

use std::fmt;

use comeback_engine::Timestamp;
use serde::{Serialize, Serializer};

use crate::command::Command;

/// A text, made of spans.
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

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its content.
    pub piece: Piece,
    /// Its tone.
    pub tone: Tone,
}

/// The content of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Plain words.
    Words(String),
    /// A function, as the text names it and as a command would.
    Function {
        /// As the text names it.
        shown: String,
        /// As a command names it.
        name: String,
    },
    /// An event, by its key.
    Event(String),
    /// A moment, with its wording in the text.
    Moment {
        /// As the text writes it, such as `2m 5s ago`.
        shown: String,
        /// The moment.
        at: Timestamp,
    },
    /// A command of ours.
    Command(Command, Quotes),
    /// A command for a shell, such as one of the AWS CLI.
    Shell(String, Quotes),
}

/// The quotes around a command: backquotes within a sentence, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quotes {
    /// Backquotes, as within a sentence.
    Backquotes,
    /// None, as for a command on its own.
    Bare,
}

/// The tone of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    /// The tone of ordinary text.
    #[default]
    Plain,
    /// All is well.
    Good,
    /// Something needs a look.
    Warning,
    /// Something is wrong.
    Bad,
}

impl Text {
    /// A text in one tone.
    pub fn toned(tone: Tone, text: impl Into<Self>) -> Self {
        let spans = text.into().0.into_iter();
        Self(spans.map(|span| Span { tone: span.tone.max(tone), ..span }).collect())
    }

    /// This text, followed by another.
    #[must_use]
    pub fn and(mut self, more: impl Into<Self>) -> Self {
        self.push(more);
        self
    }

    /// Adds a text at the end.
    pub fn push(&mut self, more: impl Into<Self>) {
        self.0.extend(more.into().0);
    }

    /// Joins texts with words between them.
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

    /// Its spans, in order.
    pub fn spans(&self) -> &[Span] {
        &self.0
    }

    /// The strongest tone of its spans.
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

/// The command, without quotes.
impl From<Command> for Text {
    fn from(command: Command) -> Self {
        Piece::Command(command, Quotes::Bare).into()
    }
}

/// The moment, as RFC 3339.
impl From<Timestamp> for Text {
    fn from(at: Timestamp) -> Self {
        Piece::Moment { shown: at.to_string(), at }.into()
    }
}

/// A command of ours in backquotes, as within a sentence.
pub fn quoted(command: Command) -> Text {
    Piece::Command(command, Quotes::Backquotes).into()
}

/// A command for a shell, without quotes.
pub fn shell(command: impl Into<String>) -> Text {
    Piece::Shell(command.into(), Quotes::Bare).into()
}

/// Makes a text of the given parts: words, commands, moments, texts.
#[macro_export]
macro_rules! text {
    ($($part:expr),* $(,)?) => {{
        let mut text = $crate::text::Text::default();
        $(text.push($part);)*
        text
    }};
}
