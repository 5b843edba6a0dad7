//! The first page: counts, the functions from worst to best, and charts for the last few hours.

use askama::Template;
use axum::response::Response;
use comeback_engine::Timestamp;
use comeback_operate::deployment::Deployment;
use comeback_operate::function::{command_name, shown_name};
use comeback_operate::history::History;
use comeback_operate::layout::{Fact, Layout};
use comeback_operate::pauses::OpenPause;
use comeback_operate::waiting::functions::{FUNCTION_HEADS, FunctionState, Health};
use comeback_operate::waiting::reading::Reading;
use comeback_operate::waiting::recent::EventCounts;
use comeback_operate::{Text, Tone};
use futures_util::future::join;

use crate::console::{Console, LogRead};
use crate::page::{Frame, Problem, Visit, ok};
use crate::response::encoded;

const MOST_FUNCTIONS: usize = 50;
/// If all of a function's waiting events are due within this many seconds, the page does not offer *Retry now*.
const SOON: u64 = 60;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    tiles: Vec<Tile>,
    about_counts: Text,
    /// Facts that the page shows prominently.
    loud: Vec<Fact>,
    quiet: Vec<Fact>,
    /// Name of each open pause, and the path of the page for ending it.
    pauses: Vec<(String, String)>,
    functions: LogRead<FunctionTable>,
    /// Counts for the last few hours; empty if they could not be read.
    history: Layout,
}

/// A large number at the top of the page, with its title.
struct Tile {
    fact: Fact,
    href: Option<&'static str>,
    /// The change in the tile's number over the last hour, in words; empty if it is unknown.
    change: String,
}

struct FunctionTable {
    rows: Vec<Row>,
    notes: Vec<Text>,
    last_hour: [String; 3],
}

struct Row {
    name: String,
    href: String,
    cells: [Text; FUNCTION_HEADS.len()],
    is_paused: bool,
    waiting: u64,
    dead_lettered: u64,
    spark: Vec<Bar>,
    /// Path of the retry plan for the function's waiting events, or `None` if a retry would change nothing.
    retry: Option<String>,
    /// The label and path of the *Pause* or *Resume* button, or `None` if the function's pause also covers other
    /// functions.
    pause: Option<(&'static str, String)>,
}

/// A bar in a small chart, in SVG units.
struct Bar {
    x: usize,
    y: u64,
    height: u64,
    class: &'static str,
}

pub(super) async fn overview(visit: Visit) -> Result<Response, Problem> {
    let console = &visit.console;
    let (read, mut functions) = join(console.status(), functions(console)).await;
    let status = read.value?;
    let open: Vec<_> = status.pauses.iter().flatten().map(resume).collect();
    let mut last_hour = <[String; 3]>::default();
    if let LogRead::Read { value: Ok(table), .. } = &mut functions {
        table.rows.iter_mut().for_each(|row| row.resume_if(&open));
        last_hour = std::mem::take(&mut table.last_hour);
    }
    let links = [Some("/waiting"), None, Some("/dead")];
    let tiles = status.counts().into_iter().zip(links).zip(last_hour);
    let (loud, quiet) = status.facts().into_iter().partition(|fact| tone(&fact.lines) >= Tone::Warning);
    ok(&Overview {
        frame: visit.frame("Overview", Some(read.at)),
        tiles: tiles.map(|((fact, href), change)| Tile { fact, href, change }).collect(),
        about_counts: status.about_counts(),
        pauses: open,
        loud,
        quiet,
        functions,
        history: status.metrics.history.as_ref().map(History::layout).unwrap_or_default(),
    })
}

fn tone(lines: &[Text]) -> Tone {
    lines.iter().map(Text::tone).max().unwrap_or_default()
}

fn resume(open: &OpenPause) -> (String, String) {
    let target = open.pause.target.to_string();
    let name = target.parse().map_or_else(|_| target.clone(), |function| command_name(&target, &function));
    let path = format!("/resume?plan=yes&function={}", encoded(&name));
    (open.name(), path)
}

async fn functions(console: &Console) -> LogRead<FunctionTable> {
    let look = |reading: &Reading, now| {
        let report = reading.functions(now);
        let row = |state| Row::of(state, report.row(state), &reading.deployment, now);
        FunctionTable {
            rows: report.states.iter().take(MOST_FUNCTIONS).map(row).collect(),
            notes: report.notes(),
            last_hour: report.last_hour(),
        }
    };
    console.waiting(look).await
}

impl Row {
    fn of(
        state: &FunctionState<'_>,
        cells: [Text; FUNCTION_HEADS.len()],
        deployment: &Deployment,
        now: Timestamp,
    ) -> Self {
        let href = encoded(&command_name(state.target, &deployment.handler_arn));
        let is_worth_it = state.back_by.is_none_or(|by| by.since(now).as_secs() > SOON);
        let is_paused = state.state == Health::Paused;
        let can_retry = state.waiting > 0 && !is_paused && is_worth_it;
        Self {
            name: shown_name(state.target).to_owned(),
            cells,
            is_paused,
            waiting: state.waiting,
            dead_lettered: state.dead_lettered,
            spark: spark(&state.steps),
            retry: can_retry.then(|| format!("/retry?plan=yes&function={href}")),
            pause: Some(("Pause", format!("/pause?function={href}"))),
            href,
        }
    }

    /// Shows the *Resume* button for a paused function, but only if an open pause covers that function alone.
    fn resume_if(&mut self, open: &[(String, String)]) {
        if self.is_paused {
            let path = format!("/resume?plan=yes&function={}", self.href);
            self.pause = open.iter().any(|(_, open)| *open == path).then_some(("Resume", path));
        }
    }
}

/// Half the height of a small chart, in SVG units.
const MIDDLE: u64 = 12;

/// A small chart of a function's recent counts, with failures above the middle and retries below it.
fn spark(steps: &[EventCounts]) -> Vec<Bar> {
    let most = steps.iter().map(|step| step.failed.max(step.retried)).max().unwrap_or(0).max(1);
    let height = |count: u64| (count * MIDDLE).div_ceil(most);
    let bars = steps.iter().enumerate().flat_map(|(n, step)| {
        let (x, failed, retried) = (3 * n, height(step.failed), height(step.retried));
        [
            Bar { x, y: MIDDLE - failed, height: failed, class: "failed" },
            Bar { x, y: MIDDLE, height: retried, class: "retried" },
        ]
    });
    bars.filter(|bar| bar.height > 0).collect()
}
