//! The first page: what `comeback status --history` answers.

use anstream::adapter::strip_str;
use anstyle::AnsiColor;
use askama::Template;
use axum::Router;
use axum::response::Response;
use comeback_rehearsal::figure::Chart;
use indicatif::HumanCount;

use crate::operate::function::command_name;
use crate::operate::history::History;
use crate::operate::pauses::OpenPause;
use crate::operate::status::state::Status;
use crate::operate::status::text::{DEAD_LETTERS, DUE, WAITING};
use crate::ui::console::Console;
use crate::ui::page::{Frame, Problem, Visit, encoded, ok, page};

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/", page(overview))
}

#[derive(Template)]
#[template(path = "ui/overview.html")]
struct Overview {
    frame: Frame,
    tiles: Vec<Tile>,
    lines: Vec<Line>,
    /// Open pauses: name, and the address of the page that resumes it.
    pauses: Vec<(String, String)>,
    /// Empty if CloudWatch has no data.
    charts: Vec<Chart>,
}

/// A count in large type.
struct Tile {
    title: &'static str,
    count: String,
    rest: String,
    tone: &'static str,
    href: Option<&'static str>,
}

/// A line of `comeback status`.
struct Line {
    title: &'static str,
    text: String,
    tone: &'static str,
}

async fn overview(visit: Visit) -> Result<Response, Problem> {
    let read = visit.console.status().await;
    let status = read.value?;
    let lines = status.lines(&visit.console.common.place_flags()).into_iter();
    let lines =
        lines.map(|(title, text)| Line { title, tone: tone(&text), text: strip_str(&text).to_string() });
    let (counts, lines): (Vec<_>, Vec<_>) = lines.partition(|line| count(line.title, &status).is_some());
    let pauses = status.pauses.iter().flatten();
    ok(&Overview {
        frame: visit.frame("Overview", Some(read.at)),
        tiles: counts.into_iter().filter_map(|line| tile(line, &status)).collect(),
        lines,
        pauses: pauses.map(|pause| (pause.name().to_owned(), resume(pause))).collect(),
        charts: status.history.as_ref().map(History::charts).unwrap_or_default(),
    })
}

/// As a terminal shows it: what is bad in red, and what needs a look in yellow.
fn tone(text: &str) -> &'static str {
    let has = |colour: AnsiColor| text.contains(&colour.render_fg().to_string());
    match () {
        () if has(AnsiColor::Red) => "bad",
        () if has(AnsiColor::Yellow) => "warn",
        () => "",
    }
}

/// The count that a line begins with, and the page about it.
fn count(title: &str, status: &Status) -> Option<(u64, Option<&'static str>)> {
    match title {
        WAITING => Some((status.retry_queue.in_flight + status.retry_queue.delayed, Some("/waiting"))),
        DUE => Some((status.retry_queue.visible, None)),
        DEAD_LETTERS => Some((status.dead_letters.total(), Some("/dead"))),
        _ => None,
    }
}

fn tile(line: Line, status: &Status) -> Option<Tile> {
    let (count, href) = count(line.title, status)?;
    let count = HumanCount(count).to_string();
    let rest = line.text.strip_prefix(&count).unwrap_or(&line.text);
    let rest = rest.trim_start_matches([':', ',', ' ']).to_owned();
    Some(Tile { title: line.title, count, rest, tone: line.tone, href })
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
    use super::*;

    #[test]
    fn a_pause_is_resumed_by_its_name() {
        let href = |target: &str| resume(&OpenPause::sample(target));
        assert_eq!(href("*"), "/resume?plan=yes&function=%2A");
        let orders = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
        assert_eq!(href(orders), "/resume?plan=yes&function=orders");
        assert_eq!(href(&format!("{orders}:live")), "/resume?plan=yes&function=orders%3Alive");
    }
}
