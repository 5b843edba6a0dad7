//! The first page, with the output of `comeback status --history`.

use askama::Template;
use axum::Router;
use axum::response::Response;
use comeback_operate::function::command_name;
use comeback_operate::history::History;
use comeback_operate::layout::Fact;
use comeback_operate::numbers::grouped;
use comeback_operate::pauses::OpenPause;
use comeback_operate::status::{DEAD_LETTERS, WAITING};
use comeback_operate::{Block, Text, Tone};
use comeback_rehearsal::figure::Chart;

use crate::console::Console;
use crate::history;
use crate::page::{Frame, Problem, Visit, encoded, ok, page};

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/", page(overview))
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    tiles: Vec<Tile>,
    lines: Vec<Line>,
    /// Open pauses: each name, and the path of the page that resumes it.
    pauses: Vec<(String, String)>,
    /// Charts of the last hours; empty if CloudWatch has no data.
    charts: Vec<Chart>,
}

/// One of the page's large numbers.
struct Tile {
    title: &'static str,
    count: String,
    rest: Text,
    tone: &'static str,
    href: Option<&'static str>,
}

/// A line of the output of `comeback status`.
struct Line {
    title: &'static str,
    lines: Vec<Text>,
    tone: &'static str,
}

async fn overview(visit: Visit) -> Result<Response, Problem> {
    let read = visit.console.status().await;
    let status = read.value?;
    let (tiles, lines): (Vec<_>, Vec<_>) = status.facts().into_iter().partition(|fact| fact.count.is_some());
    let pauses = status.pauses.iter().flatten();
    ok(&Overview {
        frame: visit.frame("Overview", Some(read.at)),
        tiles: tiles.into_iter().map(tile).collect(),
        lines: lines.into_iter().map(line).collect(),
        pauses: pauses.map(|pause| (pause.name().to_owned(), resume(pause))).collect(),
        charts: status.history.iter().flat_map(charts).collect(),
    })
}

fn charts(history: &History) -> Vec<Chart> {
    let series = history.layout().0.into_iter().filter_map(|block| match block {
        Block::Series(series) => Some(history::chart(&series)),
        _ => None,
    });
    series.collect()
}

fn tone(lines: &[Text]) -> &'static str {
    match lines.iter().map(Text::tone).max().unwrap_or_default() {
        Tone::Plain | Tone::Good => "",
        Tone::Warning => "warn",
        Tone::Bad => "bad",
    }
}

fn line(Fact { title, lines, .. }: Fact) -> Line {
    Line { title, tone: tone(&lines), lines }
}

fn tile(Fact { title, count, lines }: Fact) -> Tile {
    let href = match title {
        WAITING => Some("/waiting"),
        DEAD_LETTERS => Some("/dead"),
        _ => None,
    };
    let count = count.map(|(count, _)| grouped(count)).unwrap_or_default();
    Tile { title, count, tone: tone(&lines), rest: Text::joined(lines, " "), href }
}

fn resume(pause: &OpenPause) -> String {
    let name = match pause.target.parse() {
        Ok(function) => command_name(&pause.target, &function),
        Err(_) => pause.target.clone(),
    };
    format!("/resume?plan=yes&function={}", encoded(&name))
}

#[cfg(test)]
mod tests {
    use comeback_engine::{Pauses, Timestamp};

    use super::*;

    #[test]
    fn a_pause_is_resumed_by_its_name() {
        let pause = r#"{"target":"*","from":0,"until":null,"spread":0}"#;
        let href = |target: &str| {
            let pauses = format!(r#"{{"v":1,"pauses":[{}]}}"#, pause.replace('*', target));
            let pauses = Pauses::read(&pauses).unwrap();
            resume(&OpenPause::all_of(&pauses, Timestamp::from_secs(1))[0])
        };
        assert_eq!(href("*"), "/resume?plan=yes&function=%2A");
        let orders = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
        assert_eq!(href(orders), "/resume?plan=yes&function=orders");
        assert_eq!(href(&format!("{orders}:live")), "/resume?plan=yes&function=orders%3Alive");
    }
}
