//! Prints the results of commands to the terminal, and carries out changes.

use std::fmt::Write as _;
use std::ops::Range;

use anstyle::{AnsiColor, Style};
use comeback_engine::Timestamp;
use comeback_operate::change::{outdated, perform, result_layout};
use comeback_operate::numbers::grouped;
use comeback_operate::shown::shown;
use comeback_operate::{
    Answer, Block, Change, Fact, Failure, Layout, Operator, Performed, Plan as _, Series, Table, Text,
    TimelineEntry, Tone, durations,
};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::failure::CommandFailure;
use crate::operate::session::{Session, confirm};
use crate::tables::{align_right, unwrapped_table};

/// Column at which the values in a list of facts begin.
const FACTS: usize = 14;

/// Formats text with colours, and escapes control characters.
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

/// Formats a block of output for the terminal. Returns an empty string for a long list, a note or a warning.
fn drawn(block: &Block) -> String {
    match block {
        Block::Line(text) => coloured(text) + "\n",
        Block::Facts(facts) => {
            let fact = |fact: &Fact| {
                let lines: Vec<String> = fact.text().iter().map(coloured).collect();
                let lines = lines.join(&format!("\n{:FACTS$}", ""));
                format!("{:<width$} {lines}\n", fact.title, width = FACTS - 1)
            };
            facts.iter().map(fact).collect()
        }
        Block::Table(rows) => format!("{}\n", table(rows)),
        Block::Series(counts) => series(counts),
        Block::Timeline(moments) => timeline(moments),
        Block::Rows(_) | Block::Note(_) | Block::Warning(_) => String::new(),
    }
}

/// Formats each line of the series as a row of bars.
fn series(series: &Series) -> String {
    let title = format!("Last {}", durations::text(series.length()));
    let (step, first) = (durations::text(series.step), clock(series.from, 11..16));
    let mut text =
        format!("{title:<13} {:>8} {:>7} one column per {step}, from {first} UTC\n", "total", "most");
    for (name, counts) in &series.lines {
        let most = counts.iter().copied().max().unwrap_or(0);
        let column = |count: &u64| match count * HEIGHTS.len() as u64 {
            0 => '·',
            height => HEIGHTS[(height.div_ceil(most) - 1) as usize],
        };
        let columns: String = counts.iter().map(column).collect();
        let (total, most) = (grouped(counts.iter().sum()), grouped(most));
        text += &format!("{name:<13} {total:>8} {most:>7} {columns}\n");
    }
    text
}

/// Bars from the lowest to the highest.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Formats the moments as lines of text, grouped by day.
fn timeline(moments: &[TimelineEntry]) -> String {
    let (mut text, mut date) = (String::new(), String::new());
    for TimelineEntry { at, text: what, below } in moments {
        let day = clock(*at, 0..10);
        if day != date {
            text += &format!("\n{day} (UTC)\n");
            date = day;
        }
        let clock = clock(*at, 11..23);
        text += &format!("{clock}  {}\n", coloured(what));
        let margin = clock.len() + 2;
        below.iter().for_each(|line| text += &format!("{:margin$}| {}\n", "", shown(line)));
    }
    text
}

/// Formats a time in RFC 3339, and returns the characters in the range `part`.
fn clock(at: Timestamp, part: Range<usize>) -> String {
    at.to_string().get(part).unwrap_or_default().to_owned()
}

/// Prints a long list without wrapping rows, so that a key can be copied whole. To save memory, the rows are generated
/// twice: first to measure the columns, and then to print.
fn rows<E>(
    heads: &[&str],
    answer: &impl Answer,
    say: &mut impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let width = |cell: &Text| shown(&cell.to_string()).width();
    let mut widths: Vec<usize> = heads.iter().map(|head| head.width()).collect();
    for row in answer.rows() {
        widths.iter_mut().zip(&row).for_each(|(most, cell)| *most = width(cell).max(*most));
    }
    let line = |row: &[Text]| {
        let cells = row.iter().zip(&widths).map(|(cell, most)| {
            let padding = most - width(cell);
            format!("{}{:padding$}  ", coloured(cell), "")
        });
        cells.collect::<String>().trim_end().to_owned() + "\n"
    };
    let heads: Vec<Text> = heads.iter().map(|head| (*head).into()).collect();
    let mut text = line(&heads);
    for row in answer.rows() {
        text += &line(&row);
        if text.len() >= CHUNK {
            say(&text)?;
            text.clear();
        }
    }
    say(&text)
}

/// Bytes to collect before each write.
const CHUNK: usize = 1 << 16;

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

/// Prints a layout: its notes and warnings on standard error, the rest on standard output unless the command prints
/// JSON.
pub(crate) fn draw(layout: &Layout, session: &Session) -> Result<(), CommandFailure> {
    session.say(&layout.0.iter().map(drawn).collect::<String>())?;
    remark(layout, session);
    Ok(())
}

fn remark(layout: &Layout, session: &Session) {
    for block in &layout.0 {
        match block {
            Block::Note(text) => session.note(&text.to_string()),
            Block::Warning(text) => anstream::eprintln!("warning: {}", coloured(text)),
            _ => {}
        }
    }
}

pub(crate) fn answer(answer: &impl Answer, session: &Session) -> Result<(), CommandFailure> {
    let end = answer.end().map_err(CommandFailure::from);
    if session.common.json {
        session.print(answer, end.as_ref().err())?;
    }
    let layout = answer.layout();
    if !session.common.json {
        write(&layout, answer, |text| session.say(text))?;
    }
    remark(&layout, session);
    end
}

fn write<E>(
    layout: &Layout,
    answer: &impl Answer,
    mut say: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    layout.0.iter().try_for_each(|block| match block {
        Block::Rows(heads) => rows(heads, answer, &mut say),
        block => say(&drawn(block)),
    })
}

/// Plans a change, asks the operator to confirm the plan, performs it and shows the result.
pub(crate) async fn change(change: impl Change, session: &Session) -> Result<(), CommandFailure> {
    changed(change, session).await.map(drop)
}

/// Like [`change`], but returns the result, or `None` if the plan was only shown.
pub(crate) async fn changed<C: Change>(
    change: C,
    session: &Session,
) -> Result<Option<C::Done>, CommandFailure> {
    let operator = session.operator();
    let mut plan = change.plan(&operator).await?;
    loop {
        draw(&plan.layout(), session)?;
        match confirmed_and_performed(&change, &operator, &plan, session).await {
            Ok(Some((Performed::Done(done, result), recorded))) => {
                draw(&result_layout(&done, &recorded), session)?;
                let result = result.map_err(CommandFailure::from);
                print(&done, &recorded, result.as_ref().err(), session)?;
                return result.map(|()| Some(done));
            }
            Ok(Some((Performed::Outdated(new), _))) => {
                anstream::eprintln!(
                    "note: the plan is out of date, and nothing was changed; this is the new one"
                );
                plan = new;
            }
            only_planned => {
                let result = only_planned.map(|_| None);
                print(&plan, &Ok(()), result.as_ref().err(), session)?;
                return result;
            }
        }
    }
}

/// Performs a plan once it is confirmed. Returns what [`perform`] returns, or `None` for a dry run or a plan that
/// changes nothing.
async fn confirmed_and_performed<C: Change>(
    change: &C,
    operator: &Operator,
    plan: &C::Plan,
    session: &Session,
) -> Result<Option<(Performed<C>, Result<(), Failure>)>, CommandFailure> {
    let Some(question) = plan.question().filter(|_| !session.common.dry_run) else {
        plan.end()?;
        return Ok(None);
    };
    confirm(&question, session).await?;
    match perform(change, operator, plan).await? {
        // An operator who agreed in advance, with `--yes`, has not seen the new plan, so the change fails.
        (Performed::Outdated(_), _) if !session.can_ask() => Err(outdated().into()),
        performed => Ok(Some(performed)),
    }
}

/// Prints the JSON of a plan or of a change's result, if the command prints JSON.
fn print(
    report: &impl Answer,
    recorded: &Result<(), Failure>,
    failure: Option<&CommandFailure>,
    session: &Session,
) -> Result<(), CommandFailure> {
    if !session.common.json {
        return Ok(());
    }
    let dry_run = session.common.dry_run;
    let not_recorded = recorded.as_ref().err().map(Failure::text);
    session.print(&ChangeReport { report, dry_run, not_recorded }, failure)
}

/// A plan or a result, with the members that the command adds to its JSON.
#[derive(Serialize)]
struct ChangeReport<'a, R> {
    #[serde(flatten)]
    report: &'a R,
    dry_run: bool,
    not_recorded: Option<Text>,
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    use std::time::Duration;

    use comeback_operate::{Piece, text};
    use serde_json::value::RawValue;

    use super::*;
    use crate::tables::tests::{HOSTILE, is_obeyed_anywhere};

    /// Formats an answer as it looks in a terminal without colours.
    pub(crate) fn plain(answer: &impl Answer) -> String {
        let mut text = String::new();
        let say = |part: &str| {
            text += part;
            Ok::<_, Infallible>(())
        };
        write(&answer.layout(), answer, say).unwrap();
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn json_says_that_a_change_is_not_recorded() {
        let payload = RawValue::from_string(r#"{"n":1E400}"#.into()).unwrap();
        let report = BTreeMap::from([("payload", payload)]);
        let json = |dry_run, not_recorded: Option<&str>| {
            let not_recorded = not_recorded.map(Text::from);
            serde_json::to_string(&ChangeReport { report: &report, dry_run, not_recorded }).unwrap()
        };
        let recorded = r#"{"payload":{"n":1E400},"dry_run":true,"not_recorded":null}"#;
        assert_eq!(json(true, None), recorded);
        let denied = r#"{"payload":{"n":1E400},"dry_run":false,"not_recorded":"denied"}"#;
        assert_eq!(json(false, Some("denied")), denied);
    }

    #[derive(Serialize)]
    struct Sample(#[serde(skip)] Vec<Block>, #[serde(skip)] Vec<Vec<Text>>);

    impl Answer for Sample {
        fn layout(&self) -> Layout {
            Layout(self.0.clone())
        }

        fn rows(&self) -> Box<dyn Iterator<Item = Vec<Text>> + '_> {
            Box::new(self.1.iter().cloned())
        }
    }

    #[test]
    fn nothing_in_an_answer_can_command_the_terminal() {
        let hostile = || Text::toned(Tone::Bad, text![HOSTILE, Piece::Event(HOSTILE.into())]);
        let mut table = Table::new(["head"]);
        table.row([hostile()]);
        let moment =
            TimelineEntry { at: Timestamp::from_secs(0), text: hostile(), below: vec![HOSTILE.into()] };
        let blocks = vec![
            Block::Line(hostile()),
            Block::Facts(vec![Fact::new("Title", vec![hostile(), hostile()])]),
            Block::Table(table),
            Block::Timeline(vec![moment]),
            Block::Rows(vec!["head"]),
        ];
        let mut text = String::new();
        let answer = Sample(blocks, vec![vec![hostile()]]);
        let say = |part: &str| {
            text += part;
            Ok::<_, Infallible>(())
        };
        write(&answer.layout(), &answer, say).unwrap();
        assert!(text.matches("\\u{9b}2J").count() == 13 && !is_obeyed_anywhere(&text), "{text}");
    }

    #[test]
    fn rows_stand_in_columns_however_long_they_are() {
        let rows = [["größe-注文", "1"], ["k", "retry now"]].map(|row| row.map(Text::from).into());
        let expected = "key         what\ngröße-注文  1\nk           retry now\n";
        assert_eq!(plain(&Sample(vec![Block::Rows(vec!["key", "what"])], rows.into())), expected);
        let long = "com.acme.orders.".repeat(8);
        let mut table = Table::new(["error"]);
        table.row([&*long]);
        assert!(
            plain(&Sample(vec![Block::Table(table)], Vec::new())).contains(&long),
            "a name is never broken"
        );
    }

    #[test]
    fn counts_over_time_have_a_column_for_each_step() {
        let counts = |steps: usize, points: &[(usize, u64)]| {
            let mut counts = vec![0; steps];
            points.iter().for_each(|(step, count)| counts[*step] = *count);
            counts
        };
        let from = Timestamp::from_rfc3339("2023-11-14T12:50:00Z").unwrap();
        let series = |step: u64, lines: Vec<(&'static str, Vec<u64>)>| {
            Block::Series(Series { from, step: Duration::from_secs(step), lines })
        };
        let hours = series(
            300,
            vec![
                ("arrived", counts(36, &[(0, 8), (23, 700), (34, 4), (35, 2)])),
                ("dead-lettered", counts(36, &[(23, 1), (34, 9)])),
                ("retried", counts(36, &[])),
            ],
        );
        let day = series(1_800, vec![("arrived", counts(48, &[(47, 1_000_000)]))]);
        let expected = "\
Last 3h          total    most one column per 5m, from 12:50 UTC
arrived            714     700 ▁······················█··········▁▁
dead-lettered       10       9 ·······················▁··········█·
retried              0       0 ····································
Last 24h         total    most one column per 30m, from 12:50 UTC
arrived       1,000,000 1,000,000 ···············································█
";
        let text = plain(&Sample(vec![hours, day], Vec::new()));
        assert_eq!(text, expected);
    }

    #[test]
    fn facts_stand_beside_their_titles() {
        let facts = vec![
            Fact::counted("Waiting", 1_234, ": ", "34 delayed".into()),
            Fact::new("Policies", vec!["orders: MAX_AGE=2h".into(), "export-*: BACKOFFS=5m,2h".into()]),
        ];
        let expected = "\
Waiting       1,234: 34 delayed
Policies      orders: MAX_AGE=2h
              export-*: BACKOFFS=5m,2h
";
        assert_eq!(plain(&Sample(vec![Block::Facts(facts)], Vec::new())), expected);
    }
}
