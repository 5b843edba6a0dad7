//! The layout of an answer: written once, drawn by a terminal and by a page.

use std::time::Duration;

use comeback_engine::Timestamp;

use crate::text::Text;

/// The parts of an answer, from top to bottom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout(pub Vec<Block>);

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A line of text; an empty one keeps parts apart.
    Line(Text),
    /// Titles with their texts, side by side. A text may have several lines.
    Facts(Vec<(&'static str, Vec<Text>)>),
    /// Counts over time.
    Series(Series),
    /// A table.
    Table(Table),
    /// What happened, the first first.
    Timeline(Vec<Moment>),
    /// The place of the answer's [`rows`](crate::Answer::rows), by the heads of their columns. Each stands on one line.
    Rows(Vec<&'static str>),
    /// A remark that is not part of the answer: on standard error, after `note: `.
    Note(Text),
    /// A remark about something that may be wrong: on standard error, after `warning: `.
    Warning(Text),
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// What happened.
    pub text: Text,
    /// Lines of a log that belong to it.
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

/// Counts over time, in steps of equal length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The begin of the first step.
    pub from: Timestamp,
    /// The length of a step.
    pub step: Duration,
    /// What is counted, such as `arrived`, each with a count for each step.
    pub lines: Vec<(&'static str, Vec<u64>)>,
}

impl Series {
    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.lines.first().map_or(0, |(_, counts)| counts.len())
    }

    /// The begin of a step; the first is 0.
    pub fn at(&self, step: usize) -> Timestamp {
        self.from.saturating_add(self.step * step as u32)
    }

    /// The length of all steps.
    pub fn length(&self) -> Duration {
        self.step * self.steps() as u32
    }
}

impl Table {
    /// A table without rows.
    pub fn new<const N: usize>(heads: [&'static str; N]) -> Self {
        let column = |head| Column { head, is_number: false };
        Self { columns: heads.map(column).into(), rows: Vec::new() }
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
