//! The layout of a command's output, which both the command line and the console draw.

use std::time::Duration;

use comeback_engine::Timestamp;

use crate::numbers::grouped;
use crate::text;
use crate::text::Text;

/// The layout of a command's output: its blocks, from top to bottom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout(pub Vec<Block>);

/// A part of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A line of text, or an empty line between two parts of the output.
    Line(Text),
    /// A list of titles, each with text to its right.
    Facts(Vec<Fact>),
    /// Numbers over time, drawn as a chart.
    Series(Series),
    /// A table.
    Table(Table),
    /// Events, oldest first.
    Timeline(Vec<TimelineEntry>),
    /// The place for the answer's [`rows`](crate::Answer::rows), one per line under these column headings. The
    /// console draws nothing there: its Waiting page lists the rows itself.
    Rows(Vec<&'static str>),
    /// A note about the output, which the `comeback` command prints to standard error after `note: `.
    Note(Text),
    /// A warning, which the `comeback` command prints to standard error after `warning: `.
    Warning(Text),
}

/// An entry in a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEntry {
    /// The time of the event.
    pub at: Timestamp,
    /// A description of what happened.
    pub text: Text,
    /// Log lines to print below the event.
    pub below: Vec<String>,
}

/// A table of text cells, with each row on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The rows from top to bottom, each with a cell for each column.
    pub rows: Vec<Vec<Text>>,
}

/// A column of a table, without its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The text at the top of the column.
    pub head: &'static str,
    /// True for numbers, which are right-aligned.
    pub is_number: bool,
}

/// A title with text beside it: `Waiting` with `12 events`, for example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The title of the fact, such as `Waiting`.
    pub title: &'static str,
    /// A number to show before the text, with the separator between them. The number has the [tone](Text::tone) of the
    /// first line.
    pub count: Option<(u64, &'static str)>,
    /// The lines of text beside the title. The first line does not include `count`.
    pub lines: Vec<Text>,
}

/// A chart of counts over time, with one count for each of several periods of equal length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The start of the first period in the chart.
    pub from: Timestamp,
    /// The length of each period in the chart.
    pub step: Duration,
    /// The lines of the chart, each with a name, such as `arrived`, and one count for each period.
    pub lines: Vec<(&'static str, Vec<u64>)>,
}

impl Fact {
    /// Creates a fact without a count.
    pub fn new(title: &'static str, lines: Vec<Text>) -> Self {
        Self { title, count: None, lines }
    }

    /// Creates a fact whose text is a count, followed by `separator` and `rest` unless `rest` is empty.
    pub fn counted(title: &'static str, count: u64, separator: &'static str, rest: Text) -> Self {
        Self { title, count: Some((count, separator)), lines: vec![rest] }
    }

    /// Returns the lines of text beside this fact's title. If the fact has a count, the first line starts with it.
    pub fn text(&self) -> Vec<Text> {
        let mut lines = self.lines.clone();
        if let (Some((count, _)), Some(first)) = (self.count, lines.first_mut()) {
            *first = Text::toned(first.tone(), text![grouped(count), self.rest()]);
        }
        lines
    }

    /// Returns the text after the count: the separator and the first line. If the line is empty, so is the result.
    fn rest(&self) -> Text {
        let separator = self.count.map_or("", |(_, separator)| separator);
        match self.lines.first() {
            Some(first) if !first.is_empty() => text![separator, first],
            _ => Text::default(),
        }
    }
}

impl Series {
    /// Returns the number of periods in the chart.
    pub fn steps(&self) -> usize {
        self.lines.first().map_or(0, |(_, counts)| counts.len())
    }

    /// Returns the start of one of the chart's periods, which are numbered from 0.
    pub fn at(&self, step: usize) -> Timestamp {
        self.from.saturating_add(self.step * step as u32)
    }

    /// Returns the length of time that the whole chart covers.
    pub fn length(&self) -> Duration {
        self.step * self.steps() as u32
    }
}

impl Column {
    /// A column with left-aligned cells.
    pub fn new(head: &'static str) -> Self {
        Self { head, is_number: false }
    }
}

impl Table {
    /// An empty table with these column headings.
    pub fn new<const N: usize>(heads: [&'static str; N]) -> Self {
        Self { columns: heads.map(Column::new).into(), rows: Vec::new() }
    }

    /// Adds a row at the end.
    pub fn row<T: Into<Text>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl Layout {
    /// Adds a [`Block::Line`].
    pub fn line(&mut self, text: impl Into<Text>) {
        self.0.push(Block::Line(text.into()));
    }

    /// Adds a [`Block::Note`].
    pub fn note(&mut self, text: impl Into<Text>) {
        self.0.push(Block::Note(text.into()));
    }

    /// Adds a [`Block::Table`].
    pub fn table(&mut self, table: Table) {
        self.0.push(Block::Table(table));
    }

    /// Adds the blocks of another layout at the end.
    pub fn and(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}
