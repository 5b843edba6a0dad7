//! The layout of an answer: written once, drawn by a terminal and by a page.

use std::time::Duration;

use comeback_engine::Timestamp;

use crate::numbers::grouped;
use crate::text;
use crate::text::Text;

/// The parts of an answer, from top to bottom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout(pub Vec<Block>);

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A line of text; an empty one separates parts.
    Line(Text),
    /// Titles with their texts, side by side.
    Facts(Vec<Fact>),
    /// Counts over time.
    Series(Series),
    /// A table.
    Table(Table),
    /// A series of events, in order of time.
    Timeline(Vec<Moment>),
    /// The place for the answer's [`rows`](crate::Answer::rows), with the heads of their columns. Each row stands on
    /// one line.
    Rows(Vec<&'static str>),
    /// A remark that is not part of the answer: on standard error, after `note: `.
    Note(Text),
    /// A remark about something that may be wrong: on standard error, after `warning: `.
    Warning(Text),
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The moment.
    pub at: Timestamp,
    /// The event in words.
    pub text: Text,
    /// The lines of a log that belong to it.
    pub below: Vec<String>,
}

/// A table, whose cells may be functions, events or moments. A row stays on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The heads of the columns.
    pub columns: Vec<Column>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<Text>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its head.
    pub head: &'static str,
    /// Its cells are figures, aligned to the right.
    pub is_number: bool,
}

/// A title with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The title.
    pub title: &'static str,
    /// The count that begins the text, if one does, and the separator between it and the rest of the first line. That
    /// line has the tone of both.
    pub count: Option<(u64, &'static str)>,
    /// The text, which may have several lines.
    pub lines: Vec<Text>,
}

/// Counts over time, in steps of equal length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The beginning of the first step.
    pub from: Timestamp,
    /// The length of a step.
    pub step: Duration,
    /// Names such as `arrived`, each with a count for each step.
    pub lines: Vec<(&'static str, Vec<u64>)>,
}

impl Fact {
    /// A fact without a count.
    pub fn new(title: &'static str, lines: Vec<Text>) -> Self {
        Self { title, count: None, lines }
    }

    /// A fact whose text begins with a count. The rest, if any, follows after a separator such as `, `.
    pub fn counted(title: &'static str, count: u64, separator: &'static str, rest: Text) -> Self {
        Self { title, count: Some((count, separator)), lines: vec![rest] }
    }

    /// Its text, with the count.
    pub fn text(&self) -> Vec<Text> {
        let mut lines = self.lines.clone();
        if let (Some((count, _)), Some(first)) = (self.count, lines.first_mut()) {
            *first = Text::toned(first.tone(), text![grouped(count), self.rest()]);
        }
        lines
    }

    /// The first line after the count, with the separator; empty if the count is everything.
    pub fn rest(&self) -> Text {
        let separator = self.count.map_or("", |(_, separator)| separator);
        match self.lines.first() {
            Some(first) if !first.is_empty() => text![separator, first],
            _ => Text::default(),
        }
    }
}

impl Series {
    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.lines.first().map_or(0, |(_, counts)| counts.len())
    }

    /// The beginning of a step; the first step is 0.
    pub fn at(&self, step: usize) -> Timestamp {
        self.from.saturating_add(self.step * step as u32)
    }

    /// The length of all steps.
    pub fn length(&self) -> Duration {
        self.step * self.steps() as u32
    }
}

impl Column {
    /// A column of texts.
    pub fn new(head: &'static str) -> Self {
        Self { head, is_number: false }
    }
}

impl Table {
    /// A table without rows.
    pub fn new<const N: usize>(heads: [&'static str; N]) -> Self {
        Self { columns: heads.map(Column::new).into(), rows: Vec::new() }
    }

    /// Adds a column at the end, with a cell for each row.
    pub fn add(&mut self, head: &'static str, cells: impl IntoIterator<Item = Text>) {
        self.columns.push(Column::new(head));
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    }

    /// Adds a row.
    pub fn row<T: Into<Text>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl Layout {
    /// Adds a line.
    pub fn line(&mut self, text: impl Into<Text>) {
        self.0.push(Block::Line(text.into()));
    }

    /// Adds a note.
    pub fn note(&mut self, text: impl Into<Text>) {
        self.0.push(Block::Note(text.into()));
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.0.push(Block::Table(table));
    }

    /// Adds the parts of another layout.
    pub fn and(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}
