//! Draws answers on a terminal, and takes every change from its plan to its end.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use comeback_operate::change::outdated;
use comeback_operate::shown::shown;
use comeback_operate::{Answer, Block, Change, Ended, Layout, Planned, Table, Text, Tone};

use crate::failure::CommandFailure;
use crate::operate::session::{Session, confirm_question};
use crate::text::terminal::{align_right, unwrapped_table};

/// The column in which the texts of facts begin.
const FACTS: usize = 14;

/// A text in its colours, which the stream removes where they cannot be shown. What a terminal would obey is escaped.
pub(crate) fn coloured(text: &Text) -> String {
    let mut line = String::new();
    for span in text.spans() {
        let said = span.piece.to_string();
        let said = shown(&said);
        let colour = match span.tone {
            Tone::Plain => None,
            Tone::Good => Some(AnsiColor::Green),
            Tone::Warning => Some(AnsiColor::Yellow),
            Tone::Bad => Some(AnsiColor::Red),
        };
        match colour.map(|colour| Style::new().fg_color(Some(colour.into()))) {
            Some(style) => write!(line, "{style}{said}{style:#}").expect("BUG: writing to a String"),
            None => line.push_str(&said),
        }
    }
    line
}

/// The parts of a layout that go to standard output.
pub(crate) fn page(layout: &Layout) -> String {
    let mut page = String::new();
    for block in &layout.0 {
        match block {
            Block::Line(text) => page += &(coloured(text) + "\n"),
            Block::Facts(facts) => {
                for (title, lines) in facts {
                    let lines: Vec<String> = lines.iter().map(coloured).collect();
                    let lines = lines.join(&format!("\n{:FACTS$}", ""));
                    page += &format!("{title:<width$} {lines}\n", width = FACTS - 1);
                }
            }
            Block::Table(rows) => page += &format!("{}\n", table(rows)),
            Block::Note(_) | Block::Warning(_) => {}
        }
    }
    page
}

fn table(rows: &Table) -> comfy_table::Table {
    let mut table = unwrapped_table();
    table.set_header(rows.columns.iter().map(|column| column.head));
    for row in &rows.rows {
        table.add_row(row.iter().map(coloured));
    }
    let numbers = rows.columns.iter().enumerate().filter(|(_, column)| column.is_number);
    align_right(&mut table, numbers.map(|(index, _)| index));
    table
}

/// Draws an answer: its text on standard output, unless JSON is printed, and its remarks on standard error.
pub(crate) fn draw(layout: &Layout, session: &Session) -> Result<(), CommandFailure> {
    session.say(&page(layout))?;
    for block in &layout.0 {
        match block {
            Block::Note(text) => session.note(&text.to_string()),
            Block::Warning(text) => anstream::eprintln!("warning: {}", coloured(text)),
            Block::Line(_) | Block::Facts(_) | Block::Table(_) => {}
        }
    }
    Ok(())
}

/// Prints the answer to a question.
pub(crate) fn answer(answer: &impl Answer, session: &Session) -> Result<(), CommandFailure> {
    session.answer(answer);
    draw(&answer.layout(), session)?;
    Ok(answer.end()?)
}

/// Plans a change, shows the plan, asks, performs it and shows what was done. `dry_run` is `None` for a command that has no
/// such flag.
pub(crate) async fn change<C: Change + 'static>(
    change: C,
    dry_run: Option<bool>,
    session: &Session,
) -> Result<(), CommandFailure> {
    let mut planned = Planned::of(change).await?;
    let flag = dry_run.map(|dry_run| format!(r#"{{"dry_run":{dry_run}}}"#));
    loop {
        session.answer_json(&planned.json, flag.as_deref());
        draw(&planned.layout, session)?;
        let Some(question) = planned.question.as_ref().filter(|_| dry_run != Some(true)) else {
            return Ok(planned.end?);
        };
        confirm_question(question, &planned.json, session).await?;
        match planned.perform().await {
            Ended::Done { layout, json, result } => {
                session.answer_json(&json, flag.as_deref());
                draw(&layout, session)?;
                return Ok(result?);
            }
            Ended::Failed(failure) => return Err(failure.into()),
            // Whoever has agreed beforehand has not seen this plan.
            Ended::Outdated(_) if !session.can_ask() => return Err(outdated().into()),
            Ended::Outdated(new) => {
                anstream::eprintln!(
                    "note: the plan is out of date, and nothing was changed; this is the new one"
                );
                planned = *new;
            }
        }
    }
}
